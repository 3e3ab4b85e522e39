"""The paper's choices beside the other answer: tie rules, duplicated questions, converged fits, gates row by row."""

import pandas as pd

from analysis import data, ledger, localize, replay


def ties(interval="wilson"):
    """Pool the paper's debates under both tie rules the release can answer, and once without repeated questions.

    Parameters
    ----------
    interval : {"wilson", "jeffreys"}

    Returns
    -------
    DataFrame
        `ledger.summarize` lines; `row` says which choice.

    References
    ----------
    Section 3.1 (tie rule); one released source holds question ids twice.

    Examples
    --------
    >>> ties()["collapse"].iloc[0]
    np.int64(253)
    """
    usual = data.debates()
    cases = {
        "ties alphabetic (the paper)": usual,
        "ties undecided, counted as wrong": data.debates(tie="undecided"),
        "ties alphabetic, each question once a row": usual[usual["replicate"] == 0],
    }
    return pd.concat([ledger.summarize(debates, None, interval).assign(row=name) for name, debates in cases.items()], ignore_index=True)


def fits(debates):
    """Out-of-fold areas of the published and of the converged fit, over all debates and over right starts only.

    Parameters
    ----------
    debates : DataFrame
        As `ledger.debates` returns them.

    Returns
    -------
    DataFrame
        `fit, over, view, n, n_pos, auc`; the last line is initial correctness alone, without any fit. Only a right start can
        collapse, so areas over all debates reward a model for knowing who started right.

    References
    ----------
    Section 5.1 and appendix E.1.

    Examples
    --------
    >>> found = fits(data.debates())
    >>> found["over"].unique().tolist(), len(found)
    (['all debates', 'right starts'], 13)
    """
    fell, start = debates["cell"].eq("collapse"), debates["correct_0"].astype(float)
    cohorts = {"all debates": start >= 0, "right starts": start == 1}
    lines = []
    for fit in localize.FITS:
        for view in localize.VIEWS:
            score = localize.oof_scores(debates, view=view, fit=fit)
            lines += [
                {"fit": fit, "over": over, "view": view, "n": int(chosen.sum()), "n_pos": int(fell[chosen].sum()), "auc": localize.auc(fell[chosen], score[chosen])}
                for over, chosen in cohorts.items()
            ]
    alone = {"fit": "none", "over": "all debates", "view": "initial correctness alone", "n": len(debates), "n_pos": int(fell.sum()), "auc": localize.auc(fell, start)}
    return pd.DataFrame([*lines, alone])


def gates(paper, added):
    """Replay every fixed gate in every row.

    Parameters
    ----------
    paper, added : DataFrame
        Debates of the paper's and of the added rows.

    Returns
    -------
    DataFrame
        `row, added, gate` and the columns of `replay.replay`.

    Examples
    --------
    >>> gates(data.debates(), data.debates().iloc[:0]).shape[0]
    24
    """
    parts = [
        replay.replay(debates, gate, by="row").assign(gate=gate, added=outside)
        for debates, outside in [(paper, False), (added, True)]
        if len(debates)
        for gate in replay.GATES
    ]
    return pd.concat(parts, ignore_index=True)
