"""What it takes to audit one model: model generations by the protocol's sizes, dollars, and files.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", A.3.2 (cost card) and A.3.4.
"""

import pandas as pd

from analysis.errors import DataError

QUANTITIES = {
    ("alpha_lite_triage", "initial_answer_completions"): "questions",
    ("alpha_lite_triage", "probe_completions"): "questions x probes",
    ("paper_full_fingerprint", "initial_answer_rows"): "questions x agents x conditions",
    ("paper_full_fingerprint", "probe_completions"): "questions x agents x conditions x probes",
    ("direct_debate_audit", "approx_debate_completions"): "questions x agents x (rounds + 1)",
}


def completions(questions, *, agents, rounds, conditions, probes):
    """Model generations that each way of auditing a model takes.

    Parameters
    ----------
    questions : int
    agents : int
        Of a panel; the light triage asks one.
    rounds : int
        Debate rounds after the independent answers.
    conditions : int
        System prompts of the full probe; the light triage uses one.
    probes : int
        Counterarguments a record.

    Returns
    -------
    DataFrame
        `card, quantity, formula, completions`, in the order and under the names of the released cost card.

    References
    ----------
    Table 11.

    Examples
    --------
    >>> completions(10, agents=3, rounds=3, conditions=3, probes=8)["completions"].tolist()
    [10, 80, 90, 720, 120]
    """
    firsts = questions * agents * conditions
    numbers = [questions, questions * probes, firsts, firsts * probes, questions * agents * (rounds + 1)]
    out = pd.DataFrame(list(QUANTITIES), columns=["card", "quantity"])
    return out.assign(formula=list(QUANTITIES.values()), completions=numbers)


def against_card(planned, card):
    """Set planned generations beside a released cost card.

    Parameters
    ----------
    planned : DataFrame
        From `completions`.
    card : DataFrame
        `card, quantity, value`.

    Returns
    -------
    DataFrame
        `card, quantity, formula, completions, released, agrees`.

    Raises
    ------
    DataError
        The card has other lines.

    References
    ----------
    Table 11.

    Examples
    --------
    >>> planned = completions(10, agents=3, rounds=3, conditions=3, probes=8)
    >>> card = planned[["card", "quantity"]].assign(value=[10, 80, 90, 720, 150])
    >>> against_card(planned, card)["agrees"].tolist()
    [True, True, True, True, False]
    """
    names = ["card", "quantity"]
    both = planned.merge(card[[*names, "value"]], on=names, how="outer", indicator="side")
    odd = both.loc[both["side"] != "both", names]
    if len(odd):
        card_name, quantity = odd.iloc[0]
        raise DataError(f"cost card {card_name!r}, {quantity!r}: on one side only; expected the same lines")
    out = planned.merge(card[[*names, "value"]].rename(columns={"value": "released"}), on=names)
    return out.assign(agrees=out["completions"] == out["released"])


def rounds_told(traces, *, agents):
    """Rounds after the first answers that the logged states of each trace file amount to.

    Parameters
    ----------
    traces : DataFrame
        `lane, n` debates, `n_states` logged answers.
    agents : int

    Returns
    -------
    Series of float
        By lane; whole where every debate has the same rounds.

    Examples
    --------
    >>> traces = pd.DataFrame({"lane": ["a"], "n": [10], "n_states": [150]})
    >>> rounds_told(traces, agents=3).to_dict()
    {'a': 4.0}
    """
    return (traces["n_states"] / traces["n"] / agents - 1).set_axis(traces["lane"])


def dollars(rows):
    """Probe cost against debate cost of rows whose provider's bill is released.

    Parameters
    ----------
    rows : DataFrame
        `row, n` debates, `alpha_records`, `probe_cost_usd`, `debate_cost_usd`.

    Returns
    -------
    DataFrame
        Rows with a cost: the same columns, `probes_over_debates` (ratio) and both costs a question
        (`probe_each`, `debate_each`).

    References
    ----------
    A.3.2; D.2.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "n": 10, "alpha_records": 90, "probe_cost_usd": [4.0, 0.0],
    ...                      "debate_cost_usd": [2.0, 0.0]})
    >>> dollars(rows)[["row", "probes_over_debates", "probe_each"]].values.tolist()
    [['a', 2.0, 0.4]]
    """
    paid = rows[(rows["probe_cost_usd"] > 0) & (rows["debate_cost_usd"] > 0)]
    paid = paid[["row", "n", "alpha_records", "probe_cost_usd", "debate_cost_usd"]].reset_index(drop=True)
    return paid.assign(
        probes_over_debates=paid["probe_cost_usd"] / paid["debate_cost_usd"],
        probe_each=paid["probe_cost_usd"] / paid["n"], debate_each=paid["debate_cost_usd"] / paid["n"],
    )


def audited(traces, probes):
    """Records that the released parser audit counts, by file.

    Parameters
    ----------
    traces, probes : DataFrame
        `file, n` and `file, n_records`.

    Returns
    -------
    Series of int

    Examples
    --------
    >>> traces = pd.DataFrame({"file": ["a"], "n": [200]})
    >>> audited(traces, pd.DataFrame({"file": ["b"], "n_records": [1800]})).to_dict()
    {'a': 200, 'b': 1800}
    """
    return pd.concat([traces.set_index("file")["n"], probes.set_index("file")["n_records"]])


# --- files --------------------------------------------------------------------------------------------------


def provenance(entries, audited):
    """Released files and what their entries tell: checksum, records, day, time from first to last record.

    Parameters
    ----------
    entries : DataFrame
        `lane, file, sha256, n_records, first, last` (times as text: seconds since 1970, or ISO; may be
        missing), `backends`, `model`, `providers`.
    audited : Series of int
        Records that another released table counts, by file.

    Returns
    -------
    DataFrame
        `lane, file, sha_prefix` (12 characters), `n_records`, `n_audited` (missing where the other table
        lacks the file), `day`, `seconds` (missing without times), `backends, model, providers`.

    Raises
    ------
    DataError
        A checksum is not one, or a time cannot be read.

    References
    ----------
    Table 14.

    Examples
    --------
    >>> entries = pd.DataFrame({"lane": "a", "file": "a.jsonl", "sha256": "0f" * 32, "n_records": [20],
    ...                         "first": "1777280400.0", "last": "1777280490.0", "backends": "local",
    ...                         "model": "m", "providers": None})
    >>> found = provenance(entries, pd.Series({"a.jsonl": 20}))
    >>> found[["sha_prefix", "n_audited", "day", "seconds"]].values.tolist()
    [['0f0f0f0f0f0f', 20, '2026-04-27', 90.0]]
    """
    odd = entries[~entries["sha256"].str.fullmatch(r"[0-9a-f]{64}")]
    if len(odd):
        file, found = odd[["file", "sha256"]].iloc[0]
        raise DataError(f"file {file!r}, field 'sha256': {found!r}; expected 64 hex digits")
    first, last = (entries[name].map(_time) for name in ("first", "last"))
    return pd.DataFrame({
        "lane": entries["lane"], "file": entries["file"], "sha_prefix": entries["sha256"].str[:12],
        "n_records": entries["n_records"], "n_audited": entries["file"].map(audited).astype("Int64"),
        "day": [at.strftime("%Y-%m-%d") if pd.notna(at) else None for at in first],
        "seconds": (pd.to_datetime(last) - pd.to_datetime(first)).dt.total_seconds(),
        **{name: entries[name] for name in ("backends", "model", "providers")},
    })


def _time(text):
    if pd.isna(text):
        return pd.NaT
    try:
        return pd.Timestamp(float(text), unit="s")
    except ValueError:
        pass
    try:
        return pd.Timestamp(text)
    except ValueError:
        raise DataError(f"time {text!r}: expected seconds since 1970 or an ISO time") from None
