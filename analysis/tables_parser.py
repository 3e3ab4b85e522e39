"""Tables about reading answers and counting votes as a reader sees them."""

import pandas as pd

from analysis import codings, stats
from analysis.book import count, number, percent, rate

PARSERS = {"no_fallback": "without the last-letter step", "final_tag_only": "final tag only"}
ACCOUNTINGS = {
    "cohort": "rows of the cohort", "replication": "four-round replication", "replay": "Round 1 replay",
    "audit": "parser audit", "held out": "held-out rows", "here": "this copy",
}
CODINGS = {
    "initially_wrong": "counts as wrong", "outside": "is in no denominator", "dropped": "debate left out",
    "unique": "wrong, as is a tied start",
}
HEADINGS = {
    "initially_wrong": "Missing vote is wrong", "outside": "Missing vote is outside",
    "dropped": "Debate is left out", "unique": "Tie is no majority either",
}


def _share(k, n, digits=1):
    return f"{percent(k / n, digits)} ({count(k)}/{count(n)})" if n and pd.notna(k) else "–"


def _shares(k, n, digits=1):
    return [_share(*pair, digits) for pair in zip(k, n, strict=True)]


def _name(line):
    return f"{line.row} (added)" if getattr(line, "added", False) else line.row


# --- reading ------------------------------------------------------------------------------------------------


def unread(lines):
    """Answers and replies that the parser could not read, by trace file.

    Parameters
    ----------
    lines : DataFrame
        `codings.unread`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> unread(codings.unread(data.table("parser_traces"), data.table("parser_probes"))).iloc[0].tolist()[1:3]
    ['8.80% (264/3,000)', '86']
    """
    return pd.DataFrame({
        "Traces": lines["lane"],
        "Debate answers not read": _shares(lines["states_unparsed"], lines["n_states"], 2),
        "First answers not read": lines["agents_init_unparsed"].map(count),
        "Last answers not read": lines["agents_final_unparsed"].map(count),
        "Debates without a last majority": _shares(lines["no_final_majority"], lines["n"]),
        "Answers with a final tag": _shares(lines["states_tagged"], lines["n_states"]),
        "Probe replies not read": _shares(lines["n_unparsed"], lines["n_probes"], 2),
    })


def audit(counts):
    """How many debates a stricter parser labels, how many cells it moves, and what the tie rule decides.

    Parameters
    ----------
    counts : DataFrame
        The table parser_audit.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> audit(data.table("parser_audit")).iloc[2].tolist()[2:4]
    ['23.5% (47/200)', '19.1% (9/47)']
    """
    return pd.DataFrame({
        "Traces": counts["lane"],
        "Parser": counts["parser"].map(PARSERS),
        "Debates labelled": _shares(counts["strict_labelled"], counts["n"]),
        "Cells moved": _shares(counts["cell_changed"], counts["strict_labelled"]),
        "Collapses without a label": _shares(counts["collapse_unlabelled"], counts["collapse"]),
        "Corrections without a label": _shares(counts["correction_unlabelled"], counts["correction"]),
        "Votes decided by the tie rule": _shares(counts["tied_reductions"], counts["reductions"]),
    })


def moved(debates):
    """From which cell to which the released changed debates move.

    Parameters
    ----------
    debates : DataFrame
        The table parser_changed_debates.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> moved(data.table("parser_changed_debates")).columns.tolist()
    ['Parser', 'From', 'To', 'Debates', 'First vote was tied', 'First answers it no longer reads']
    """
    groups = debates.groupby(["parser", "cell", "strict_cell"], sort=False)
    found = groups.agg(n=("question", "size"), tied=("tied_0", "sum"), lost=("strict_unparsed_0", "sum"))
    found = found.reset_index()
    found = found.sort_values(["parser", "n"], ascending=[False, False], kind="stable", ignore_index=True)
    return pd.DataFrame({
        "Parser": found["parser"].map(PARSERS), "From": found["cell"], "To": found["strict_cell"],
        "Debates": found["n"].map(count), "First vote was tied": _shares(found["tied"], found["n"]),
        "First answers it no longer reads": found["lost"].map(count),
    })


# --- votes --------------------------------------------------------------------------------------------------


def ties(usual, undecided):
    """Collapses and corrections with ties given to the alphabetically first answer, and counted as wrong.

    Parameters
    ----------
    usual, undecided : DataFrame
        `ledger.summarize` of the same debates under both rules, in the same order, optionally with `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = pd.DataFrame({"row": ["m"], "collapse": 1, "init_correct": 6, "correction": 2, "init_wrong": 4})
    >>> ties(one, one.assign(init_correct=5, init_wrong=5)).iloc[0].tolist()
    ['m', '1', '16.7% (1/6)', '20.0% (1/5)', '50.0% (2/4)', '40.0% (2/5)']
    """
    tied = usual["init_correct"] - undecided["init_correct"].to_numpy()
    return pd.DataFrame({
        "Row": [_name(line) for line in usual.itertuples()],
        "First votes tied and right": tied.map(count),
        "Collapses, alphabetic": _shares(usual["collapse"], usual["init_correct"]),
        "Collapses, ties wrong": _shares(undecided["collapse"], undecided["init_correct"]),
        "Corrections, alphabetic": _shares(usual["correction"], usual["init_wrong"]),
        "Corrections, ties wrong": _shares(undecided["correction"], undecided["init_wrong"]),
    })


def cells(found):
    """The cell of each debate under the four codings.

    Parameters
    ----------
    found : DataFrame
        `codings.cells`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> cells(codings.cells(codings.example())).iloc[1].tolist()[1:5]
    ['– – –', 'A A B', 'correction', 'none']
    """
    return pd.DataFrame({
        "Debate": found["question"], "First answers": found["start"], "Last answers": found["end"],
        **{heading: found[coding] for coding, heading in HEADINGS.items()},
    })


def accountings(lines):
    """The same debates counted in several ways.

    Parameters
    ----------
    lines : DataFrame
        `row, accounting, coding, n, init_correct, init_wrong, collapse, correction, final_correct,
        unexplained`, optionally `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "accounting": "replay", "coding": "dropped", "n": 180, "init_correct": 149}
    >>> one |= {"init_wrong": 31, "collapse": 0, "correction": 1, "final_correct": 150, "unexplained": 0}
    >>> accountings(pd.DataFrame([one])).iloc[0].tolist()[3:7]
    ['180', '0.0% (0/149)', '3.2% (1/31)', '150']
    """
    return pd.DataFrame({
        "Row": [_name(line) for line in lines.itertuples()],
        "Counted for": lines["accounting"].map(ACCOUNTINGS),
        "A missing majority": lines["coding"].map(CODINGS),
        "Debates": lines["n"].map(count),
        "Collapses / right at first": _shares(lines["collapse"], lines["init_correct"]),
        "Corrections / wrong at first": _shares(lines["correction"], lines["init_wrong"]),
        "Right at last": lines["final_correct"].map(count),
        "Gain left over": lines["unexplained"].map(lambda v: number(v, 0)),
    })


def totals(lines):
    """Sums of several accountings over the same rows, with intervals.

    Parameters
    ----------
    lines : DataFrame
        `codings.totals`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"accounting": "replay", "coding": "dropped", "n": 180, "init_correct": 149, "init_wrong": 31}
    >>> one |= {"collapse": 0, "correction": 1, "final_correct": 150}
    >>> totals(pd.DataFrame([one])).iloc[0].tolist()[2:4]
    ['180', '0.0% [0.0, 2.5] (0/149)']
    """
    fell = stats.proportion(lines["collapse"], lines["init_correct"])[["k", "n", "low", "high"]]
    rose = stats.proportion(lines["correction"], lines["init_wrong"])[["k", "n", "low", "high"]]
    return pd.DataFrame({
        "Counted for": lines["accounting"].map(ACCOUNTINGS),
        "A missing majority": lines["coding"].map(CODINGS),
        "Debates": lines["n"].map(count),
        "Collapses / right at first": [rate(*line) for line in fell.itertuples(index=False)],
        "Corrections / wrong at first": [rate(*line) for line in rose.itertuples(index=False)],
        "Right at last": lines["final_correct"].map(count),
        "Net": [number(c - d, 0) for c, d in zip(lines["correction"], lines["collapse"])],
    })
