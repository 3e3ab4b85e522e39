"""Tables about what a row costs as a reader sees them."""

import pandas as pd

from analysis.book import count, number

CARDS = {
    "alpha_lite_triage": "light triage", "paper_full_fingerprint": "full probe",
    "direct_debate_audit": "debates",
}
QUANTITIES = {
    "initial_answer_completions": "first answers", "initial_answer_rows": "first answers",
    "probe_completions": "probe replies", "approx_debate_completions": "debate answers",
}


def _name(line):
    return f"{line.row} (added)" if getattr(line, "added", False) else line.row


def cost_card(lines):
    """Model generations by the protocol's sizes beside the released card.

    Parameters
    ----------
    lines : DataFrame
        `costs.against_card`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"card": "direct_debate_audit", "quantity": "approx_debate_completions", "completions": 2400}
    >>> one |= {"formula": "questions x agents", "released": 3000, "agrees": False}
    >>> cost_card(pd.DataFrame([one])).iloc[0].tolist()
    ['debates', 'debate answers', 'questions × agents', '2,400', '3,000', 'no']
    """
    return pd.DataFrame({
        "Way": lines["card"].map(CARDS),
        "What": lines["quantity"].map(QUANTITIES),
        "Computed as": lines["formula"].str.replace(" x ", " × "),
        "Generations": lines["completions"].map(count),
        "Released card": lines["released"].map(count),
        "Agrees": lines["agrees"].map({True: "yes", False: "no"}),
    })


def generations(lines):
    """Logged generations of each row: debates and probes.

    Parameters
    ----------
    lines : DataFrame
        `row, n` debates, `n_states` logged debate answers, `n_probes` logged replies (missing without
        probes), optionally `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "n": 200, "n_states": 3000, "n_probes": 14400}
    >>> generations(pd.DataFrame([one])).iloc[0].tolist()
    ['m', '200', '3,000', '15.0', '14,400', '4.8']
    """
    return pd.DataFrame({
        "Row": [_name(line) for line in lines.itertuples()],
        "Debates": lines["n"].map(count),
        "Debate answers": lines["n_states"].map(count),
        "Answers a debate": [number(k / n, 1) for k, n in zip(lines["n_states"], lines["n"])],
        "Probe replies": lines["n_probes"].map(count),
        "Probe replies / debate answers": [number(k / n, 1) if pd.notna(k) else "–"
                                           for k, n in zip(lines["n_probes"], lines["n_states"])],
    })


def dollars(lines):
    """What probing and debating cost at a provider.

    Parameters
    ----------
    lines : DataFrame
        `costs.dollars`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "n": 200, "probe_cost_usd": 26.5, "debate_cost_usd": 6.92, "probe_each": 0.1325}
    >>> one |= {"probes_over_debates": 3.83, "debate_each": 0.0346}
    >>> dollars(pd.DataFrame([one])).iloc[0].tolist()
    ['m', '200', '26.50', '6.92', '3.83', '0.133', '0.035']
    """
    return pd.DataFrame({
        "Row": lines["row"],
        "Questions": lines["n"].map(count),
        "Full probe, US dollars": [number(v, 2) for v in lines["probe_cost_usd"]],
        "Debates, US dollars": [number(v, 2) for v in lines["debate_cost_usd"]],
        "Probe over debates": [number(v, 2) for v in lines["probes_over_debates"]],
        "Probe, a question": [number(v, 3) for v in lines["probe_each"]],
        "Debates, a question": [number(v, 3) for v in lines["debate_each"]],
    })


def provenance(lines):
    """Released files: checksum, records, day and span.

    Parameters
    ----------
    lines : DataFrame
        `costs.provenance`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"lane": "m", "file": "m.jsonl", "sha_prefix": "0f0f0f0f0f0f", "n_records": 20, "n_audited": 20}
    >>> one |= {"day": None, "seconds": 272.0, "backends": "openrouter"}
    >>> provenance(pd.DataFrame([one])).iloc[0].tolist()
    ['m.jsonl', '0f0f0f0f0f0f', '20', '20', '–', '4.5 min', 'openrouter']
    """
    return pd.DataFrame({
        "File": lines["file"],
        "SHA-256 begins": lines["sha_prefix"],
        "Records": lines["n_records"].map(count),
        "Records in the parser audit": lines["n_audited"].map(count),
        "Day": lines["day"].fillna("–"),
        "First to last record": lines["seconds"].map(_span),
        "Route": lines["backends"].fillna("–").str.replace("_", " "),
    })


def _span(seconds):
    if pd.isna(seconds):
        return "–"
    if seconds < 1:
        return "under a second"
    return f"{number(seconds, 0)} s" if seconds < 100 else f"{number(seconds / 60, 1)} min"
