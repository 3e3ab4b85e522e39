"""Four ways to count a debate whose first or last vote elects nobody, all met in the released sources.

A coding reads answers; which released table used which is said in `accountings`, where the same trace files
were counted more than once.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3.1, D.1, D.3, E.2.1
and E.7.
"""

import numpy as np
import pandas as pd

from analysis import ledger
from analysis.errors import choice

CODINGS = {
    "initially_wrong": "a first vote without an answer counts as wrong",
    "outside": "a first vote without an answer is in neither denominator",
    "dropped": "a debate without a first or a last answer is left out",
    "unique": "a tie elects nobody either; the last vote then falls back to the tie rule",
}
_LEDGER = {"initially_wrong": "initially_wrong", "outside": "undecided", "dropped": "drop"}
COUNTS = ["n", "init_correct", "init_wrong", "collapse", "correction", "final_correct"]


def coded(answers, coding, *, stored=None, endpoint=None):
    """Reduce answers to debates under one coding of a missing majority.

    Parameters
    ----------
    answers : DataFrame
        Long answers with `gold`.
    coding : {"initially_wrong", "outside", "dropped", "unique"}
        Ties go to the alphabetically first label, and a missing vote is

        - initially_wrong: wrong, at either end (full GPQA rows);
        - outside: at the start in neither denominator, at the end neither collapse nor correction (matched
        held-out rows);
        - dropped: reason to leave the debate out (Round-1 replay);
        - unique: as a tie is; a start without a unique majority takes its stored flag, wrong where none is
        stored, an end
          without one the stored or else the alphabetic majority (four-round replication).
    stored : DataFrame, optional
        For "unique": `row, question, replicate` and `initial_correct` (bool, may be missing) or `majority`
        (label of the stored last majority), or both.
    endpoint : int, optional
        As for `ledger.debates`.

    Returns
    -------
    DataFrame
        As `ledger.debates`; under "unique", `majority_0` and `correct_0` are those of the unique vote.

    Raises
    ------
    ValueError
        Unknown coding, or `stored` with another one than "unique".

    References
    ----------
    Tables 29 and 30; E.2.1 and E.7.

    Examples
    --------
    >>> said = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1, 1],
    ...                      "agent": list("1212"), "answer": list("ABAA"), "gold": "A"})
    >>> [coded(said, coding)["cell"].item() for coding in CODINGS]
    ['preserved', 'preserved', 'preserved', 'correction']
    """
    choice("coding", coding, tuple(CODINGS))
    if coding != "unique":
        if stored is not None:
            raise ValueError(f"stored, with coding={coding!r}: expected it with coding='unique' only")
        return ledger.debates(answers, missing=_LEDGER[coding], endpoint=endpoint)
    out = ledger.debates(answers, endpoint=endpoint)
    unique = ledger.debates(answers, tie="undecided", endpoint=endpoint)
    start, end = unique["correct_0"].to_numpy(bool), ledger.final_credit(out) == 1
    if stored is not None:
        start, end = _fallback(unique, start, end, stored)
    cells = [start & end, start & ~end, ~start & end]
    cell = np.select(cells, ledger.CELLS[:3], default=ledger.CELLS[3])
    onset = out["onset"].where(cell == "collapse")
    return out.assign(majority_0=unique["majority_0"], correct_0=start, onset=onset,
                      cell=pd.Categorical(cell, categories=ledger.CELLS))


def _fallback(unique, start, end, stored):
    """Starts and ends without a unique majority, from what was stored."""
    lines = unique[ledger.KEY].merge(stored, on=ledger.KEY, how="left", validate="1:1")
    if "initial_correct" in lines:
        flag = lines["initial_correct"].astype("boolean").fillna(False).to_numpy(bool)
        start = np.where(unique["majority_0"].isna(), flag, start)
    if "majority" in lines:
        last = unique["endpoint"].astype(int)
        split = np.array([pd.isna(unique.at[i, f"majority_{k}"]) for i, k in last.items()])
        known = lines["majority"].notna().to_numpy()
        end = np.where(split & known, (lines["majority"] == unique["gold"]).to_numpy(bool), end)
    return start, end


def compare(answers, *, interval="wilson", stored=None, endpoint=None):
    """Count the same debates under all four codings.

    Parameters
    ----------
    answers : DataFrame
        Long answers with `gold`.
    interval : {"wilson", "jeffreys"}
    stored, endpoint
        As for `coded`.

    Returns
    -------
    DataFrame
        One line a row and coding: `coding` and the columns of `ledger.summarize`; `unexplained` is the part
        of the change in right majorities that corrections minus collapses leave over.

    References
    ----------
    Sections 3.3 and A.3.3.

    Examples
    --------
    >>> said = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "round": [0, 0, 1, 1],
    ...                      "agent": list("1212"), "answer": [None, None, "A", "A"], "gold": "A"})
    >>> compare(said)[["coding", "n", "correction", "unexplained"]].values.tolist()[:3]
    [['initially_wrong', 1, 1, 0], ['outside', 1, 0, 1], ['dropped', 0, 0, 0]]
    """
    if answers.empty:
        return pd.DataFrame(columns=["row", "coding", *COUNTS, "unexplained"])
    parts = []
    for coding in CODINGS:
        debates = coded(answers, coding, stored=stored if coding == "unique" else None, endpoint=endpoint)
        found = ledger.summarize(debates, interval=interval).set_index("row")
        whole = found.columns[found.dtypes == int]
        # A row that loses all its debates is still a line.
        found = found.reindex(pd.Index(answers["row"].unique(), name="row"))
        found[whole] = found[whole].fillna(0).astype(int)
        parts.append(found.reset_index().assign(coding=coding))
    out = pd.concat(parts, ignore_index=True)
    net = out["correction"] - out["collapse"]
    return out.assign(unexplained=out["final_correct"] - out["init_correct"] - net)


def accountings(model_rows, four_round_ledger, replay_sources, parser_audit, holdouts):
    """The same trace files as several released tables count them.

    Parameters
    ----------
    model_rows, four_round_ledger, replay_sources, parser_audit, holdouts : DataFrame
        Tables of those names, as `analysis.data` gives them.

    Returns
    -------
    DataFrame
        One line a row and accounting: `row, accounting` (cohort, replication, replay, audit, held out),
        `coding` (of `CODINGS`; the cohort and the audit differ at the end only, where one takes the stored
        majority and the other the alphabetic one), `COUNTS`, `unexplained` as in `compare`. Rows are those
        with at least two accountings. Where every start is defined, a count of right starts that is not
        released follows from the others.

    References
    ----------
    Table 22 and C.1; E.2.1; E.7; A.3.3; Table 29.

    Examples
    --------
    >>> from analysis import data
    >>> names = ("four_round_ledger", "replay_sources", "parser_audit", "holdouts")
    >>> found = accountings(data.model_rows(), *map(data.table, names))
    >>> found[found["row"] == "deepseek-v4-flash"][["accounting", "n", "correction"]].values.tolist()
    [['cohort', 200, 7], ['replication', 200, 7], ['replay', 180, 1], ['audit', 180, 1]]
    """
    later = four_round_ledger[four_round_ledger["row"].notna()]
    primary = replay_sources[replay_sources["primary"]]
    named = _names(later, primary, holdouts)
    replayed = primary.assign(row=primary["trace_source"].map(named), n=primary["usable"])
    audit = parser_audit[parser_audit["parser"] == "no_fallback"]
    audited = audit.assign(
        row=audit["lane"].str.removesuffix("-n200").str.removesuffix("-a7"),
        n=audit["n"] - audit["unlabelled"], final_correct=audit["kept_correct"] + audit["correction"],
    )
    # Other rows of the cohort come from other traces, even where a held-out row has the same name.
    cohort = model_rows[model_rows["row"].isin(later["row"])]
    parts = {
        ("cohort", "initially_wrong"): cohort, ("held out", "outside"): holdouts,
        ("replication", "unique"): later, ("replay", "dropped"): replayed,
        ("audit", "dropped"): audited,
    }
    out = pd.concat([part.reindex(columns=["row", *COUNTS]).assign(accounting=name, coding=coding)
                     for (name, coding), part in parts.items()])
    # Where all are defined, right starts follow from right ends; wrong ones are the others.
    start = out["final_correct"] - out["correction"] + out["collapse"]
    out["init_correct"] = out["init_correct"].fillna(start)
    out["init_wrong"] = out["init_wrong"].fillna(out["n"] - out["init_correct"])
    out = out.dropna(subset=["row", "collapse"])
    out = out[out.groupby("row")["row"].transform("size") > 1]
    out[COUNTS] = out[COUNTS].astype(int)
    order = {row: at for at, row in enumerate(dict.fromkeys([*later["row"], *out["row"]]))}
    out = out.sort_values("row", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    unexplained = out["final_correct"] - out["init_correct"] - out["correction"] + out["collapse"]
    return out[["row", "accounting", "coding", *COUNTS]].assign(unexplained=unexplained)


def _names(later, replay_sources, holdouts):
    """Row of each trace file that the replay reads: named in the first table, or in the file's own name."""
    known = later.set_index("trace_source")["row"].to_dict()
    spelled = {f"{row.replace('.', '_').replace('-', '_')}_n200": row for row in holdouts["row"]}
    for source in replay_sources["trace_source"]:
        short = source.removeprefix("openrouter_")
        if short in spelled:
            known[source] = spelled[short]
    return known


def totals(lines, rows):
    """Sum of the accountings over the same rows.

    Parameters
    ----------
    lines : DataFrame
        From `accountings`.
    rows : sequence of str
        Rows to add up; an accounting that lacks one of them is left out.

    Returns
    -------
    DataFrame
        One line an accounting: `accounting, coding`, `COUNTS`, `unexplained`.

    References
    ----------
    Table 22; E.2.1; E.7.

    Examples
    --------
    >>> lines = pd.DataFrame({"row": ["a", "b", "a"], "accounting": ["x", "x", "y"], "coding": "dropped",
    ...                       "unexplained": 0, **{name: 1 for name in COUNTS}})
    >>> totals(lines, ["a", "b"])[["accounting", "n"]].values.tolist()
    [['x', 2]]
    """
    chosen = lines[lines["row"].isin(rows)]
    groups = chosen.groupby(["accounting", "coding"], sort=False)
    sums = groups[[*COUNTS, "unexplained"]].sum()
    return sums[groups["row"].nunique() == len(rows)].reset_index()


# --- what the codings read ----------------------------------------------------------------------------------


def example():
    """Five made-up debates on which the codings part ways.

    Returns
    -------
    DataFrame
        Long answers of three agents in Round 0 and one more round; the right answer is A everywhere.

    Examples
    --------
    >>> said = example()
    >>> {coding: len(coded(said, coding)) for coding in CODINGS}
    {'initially_wrong': 5, 'outside': 5, 'dropped': 3, 'unique': 5}
    """
    votes = {
        "tied start": ("ABC", "BBC"), "no first answer": ("---", "AAB"), "no last answer": ("AAB", "---"),
        "tied start, right end": ("BAC", "AAB"), "tied end": ("AAB", "ABC"),
    }
    lines = [
        (question, step, str(agent), None if answer == "-" else answer)
        for question, rounds in votes.items()
        for step, answers in enumerate(rounds) for agent, answer in enumerate(answers)
    ]
    out = pd.DataFrame(lines, columns=["question", "round", "agent", "answer"])
    return out.assign(row="made up", replicate=0, gold="A")


def cells(answers):
    """The cell of each debate under each coding.

    Parameters
    ----------
    answers : DataFrame
        Long answers with `gold`.

    Returns
    -------
    DataFrame
        `row, question, replicate, start, end` (answers given, in order of agents), one column a coding: the
        cell, "none" for a debate that stays without one, "left out" for one that is dropped.

    Examples
    --------
    >>> cells(example()).set_index("question").loc["no first answer", list(CODINGS)].tolist()
    ['correction', 'none', 'left out', 'correction']
    """
    out = ledger.debates(answers)[[*ledger.KEY, "endpoint"]]
    said = answers.sort_values("agent", kind="stable").fillna({"answer": "–"})
    words = said.groupby([*ledger.KEY, "round"])["answer"].agg(" ".join)
    for name, step in (("start", 0 * out["endpoint"]), ("end", out["endpoint"])):
        at = pd.MultiIndex.from_arrays([*(out[key] for key in ledger.KEY), step])
        out[name] = words.reindex(at).to_numpy()
    for coding in CODINGS:
        found = coded(answers, coding)
        known = found.set_index(ledger.KEY)["cell"].astype("str").fillna("none")
        out[coding] = known.reindex(pd.MultiIndex.from_frame(out[ledger.KEY])).fillna("left out").to_numpy()
    return out.drop(columns="endpoint")


def unread(traces, probes):
    """Answers that the parser could not read, in debates and in probes of the same model.

    Parameters
    ----------
    traces : DataFrame
        `lane, n, agents_init_unparsed, agents_final_unparsed, no_final_majority, n_states, states_unparsed,
        states_tagged` by trace file.
    probes : DataFrame
        `file, n_probes, n_unparsed` by probe file.

    Returns
    -------
    DataFrame
        The traces with `probe_file, n_probes, n_unparsed` of the probe file that is named as the lane is
        (missing if none is).

    References
    ----------
    Table 13.

    Examples
    --------
    >>> traces = pd.DataFrame({"lane": ["m-1"], "n_states": [30], "states_unparsed": [2]})
    >>> probes = pd.DataFrame({"file": ["sa_causal_vllm_m-1.jsonl", "sa_causal_m-1_smoke.jsonl"],
    ...                        "n_probes": [80, 8], "n_unparsed": [4, 0]})
    >>> unread(traces, probes)[["lane", "n_probes", "n_unparsed"]].values.tolist()
    [['m-1', 80, 4]]
    """
    routes = r"^sa_causal_(?:vllm_|router_|openrouter_)?|\.jsonl$"
    named = probes.assign(lane=probes["file"].str.replace(routes, "", regex=True))
    named = named.rename(columns={"file": "probe_file"})[["lane", "probe_file", "n_probes", "n_unparsed"]]
    return traces.merge(named, on="lane", how="left", validate="1:1")
