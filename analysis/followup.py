"""Two ways to revise from the same first answers: private revision minus peer debate, both tie scorings.

Each arm is a frame of answers (see `analysis.ledger`) whose `replicate` counts its runs; all runs of both
arms start from the same Round 0, so that arms differ in the revision rounds only. Ties and empty panels are
no majority here: they count as wrong ("binary" scoring) or earn 1/k credit ("expected" scoring).
"""

import numpy as np
import pandas as pd

from analysis import ledger, transfer
from analysis.errors import DataError
from analysis.resampling import resamples

# Scoring -> tie rule of the ledger.
SCORINGS = {"binary": "undecided", "expected": "expected"}
QUANTITIES = ("accuracy", "correction", "collapse", "to_wrong", "to_undecided")
FLAGS = ("abstained", "truncated", "unclosed")


def outcomes(answers, scoring="binary", *, endpoint=None):
    """What became of each debate.

    Parameters
    ----------
    answers : DataFrame
        Answers of one arm.
    scoring : {"binary", "expected"}
        A tie or an empty panel counts as wrong, or a k-way tie with the right label earns 1/k.
    endpoint : int, optional
        Round that counts as the last; each row's last unless given.

    Returns
    -------
    DataFrame
        `row, question, replicate`; credits `start` and `accuracy` (Round 0 and endpoint); `correction` and
        `collapse`, whose difference is the change of credit. Under binary scoring a collapse is told apart:
        `to_wrong` (a wrong label is elected) and `to_undecided` (none is); they are missing under expected
        scoring, which breaks ties at random.

    References
    ----------
    G.5.

    Examples
    --------
    >>> peer, _ = example()
    >>> outcomes(peer)[["accuracy", "correction", "collapse"]].sum().tolist()
    [3.0, 1.0, 2.0]
    """
    if scoring not in SCORINGS:
        raise ValueError(f"scoring={scoring!r}: expected one of {', '.join(SCORINGS)}")
    seen = ledger.debates(answers, tie=SCORINGS[scoring], endpoint=endpoint)
    out = seen[["row", "question", "replicate"]].copy()
    start, end = ledger.as_float(seen["correct_0"]), ledger.final_credit(seen)
    out["start"], out["accuracy"] = start, end
    out["correction"], out["collapse"] = (1 - start) * end, start * (1 - end)
    if scoring == "expected":
        return out.assign(to_wrong=np.nan, to_undecided=np.nan)
    last = [seen[f"majority_{k}"].iat[at] for at, k in enumerate(seen["endpoint"])]
    undecided = pd.isna(pd.Series(last, dtype=object)).to_numpy()
    return out.assign(to_wrong=out["collapse"] * ~undecided, to_undecided=out["collapse"] * undecided)


def _complete(answers, arm):
    """Answers with every key column."""
    lacking = [name for name in ("question", "round", "agent", "answer", "gold") if name not in answers]
    if lacking:
        raise DataError(f"{arm} arm: columns missing: {', '.join(lacking)}")
    usual = {"row": "row", "replicate": 0}
    return answers.assign(**{name: value for name, value in usual.items() if name not in answers})


def _first(answers, arm):
    """First answers of one row, a line a question and agent, a column a run; no answer is an empty text."""
    start = answers[answers["round"] == 0].fillna({"answer": ""})
    start = start.drop_duplicates(["question", "agent", "replicate"])
    wide = start.pivot(index=["question", "agent"], columns="replicate", values="answer")
    # A run without Round 0 is a difference too.
    wide = wide.reindex(columns=sorted(answers["replicate"].unique()))
    wide.columns = [f"{arm} run {k}" for k in wide.columns]
    return wide


def shared_start(peer, private):
    """Check that every run of both arms starts from the same first answers.

    Parameters
    ----------
    peer, private : DataFrame
        Answers of the arms.

    Returns
    -------
    (DataFrame, DataFrame)
        The arms, with `row` and `replicate` where they were absent.

    Raises
    ------
    DataError
        A first answer or a right answer differs between runs, or a question or agent is not in all of them.

    Examples
    --------
    >>> peer, private = example()
    >>> shared_start(peer, private.assign(answer=private["answer"].replace("A", "D")))
    Traceback (most recent call last):
    analysis.errors.DataError: row 'made-up', question 'q1', agent '1', Round 0: 'A' in peer run 0 and 'D' in
    private run 0; expected one first answer in all runs
    """
    arms = {"peer": _complete(peer, "peer"), "private": _complete(private, "private")}
    for arm, answers in arms.items():
        if not (answers["round"] == 0).any():
            raise DataError(f"{arm} arm: no line of Round 0; expected the independent answers")
    for row in pd.unique(pd.concat([answers["row"] for answers in arms.values()])):
        parts = {arm: answers[answers["row"] == row] for arm, answers in arms.items()}
        for arm, part in parts.items():
            if part.empty:
                raise DataError(f"row {row!r}: not in the {arm} arm; expected both arms of every row")
        first = [_first(part, arm) for arm, part in parts.items()]
        _check_start(row, first[0].join(first[1], how="outer"))
        golds = pd.concat(list(parts.values())).groupby("question", sort=False)["gold"].unique()
        for question, gold in golds[golds.map(len) > 1].items():
            where = f"row {row!r}, question {question!r}, field 'gold'"
            raise DataError(f"{where}: {', '.join(map(repr, gold))}; expected one right answer in all runs")
    return arms["peer"], arms["private"]


def _check_start(row, table):
    """Refuse first answers that are not the same in all runs."""
    same = table.eq(table.iloc[:, 0], axis=0) & table.notna()
    if not same.all(axis=None):
        at, run = map(int, np.argwhere(~same.to_numpy())[0])
        question, agent = table.index[at]
        ends = ((table.iat[at, k], table.columns[k]) for k in (0, run))
        told = [f"{repr(label) if isinstance(label, str) else 'no line'} in {run}" for label, run in ends]
        where = f"row {row!r}, question {question!r}, agent {agent!r}, Round 0"
        raise DataError(f"{where}: {' and '.join(told)}; expected one first answer in all runs")


def compare(peer, private, *, endpoint=None, draws=10_000, seed=0, level=0.95):
    """Private revision minus peer debate, in points of the question pool.

    Parameters
    ----------
    peer, private : DataFrame
        Answers of the arms, each with any number of runs (`replicate`) from one Round 0.
    endpoint : int, optional
        As in `outcomes`.
    draws, seed : int
        Bootstrap resamples of questions, and the seed of `random.Random` that draws them.
    level : float
        Level of the percentile intervals.

    Returns
    -------
    DataFrame
        One line a row, scoring and quantity: `row, scoring, quantity, peer, private` (means over questions of
        run means, in points), `difference` with `low` and `high` (missing with a single question), `answers`
        (the difference in correct answers or transitions of the pool), `n_questions, peer_runs,
        private_runs`. The difference in accuracy is that in corrections minus that in collapses; that in
        collapses is the sum of both kinds.

    Raises
    ------
    DataError
        The arms do not share their questions and first answers.

    References
    ----------
    G.5; Tables 8, 43 and 44 (paired bootstrap over questions of run means).

    Examples
    --------
    >>> found = compare(*example(), draws=200).set_index(["scoring", "quantity"])["difference"]
    >>> found[[("binary", "accuracy"), ("expected", "accuracy")]].round(1).tolist()
    [-12.5, 6.2]
    """
    arms = dict(zip(("peer", "private"), shared_start(peer, private)))
    lines = []
    for scoring in SCORINGS:
        done = {arm: outcomes(answers, scoring, endpoint=endpoint) for arm, answers in arms.items()}
        for row in done["peer"]["row"].unique():
            runs = {arm: seen[seen["row"] == row] for arm, seen in done.items()}
            means = {arm: seen.groupby("question")[list(QUANTITIES)].mean() for arm, seen in runs.items()}
            counted = {f"{arm}_runs": seen["replicate"].nunique() for arm, seen in runs.items()}
            lines.append(_lines(means, draws, seed, level).assign(row=row, scoring=scoring, **counted))
    out = pd.concat(lines).dropna(subset="difference").reset_index(drop=True)
    head = ["row", "scoring", "quantity"]
    return out[[*head, *(name for name in out if name not in head)]]


def _lines(means, draws, seed, level):
    """Arms, differences and their intervals for one row and scoring."""
    difference = (means["private"] - means["peer"].reindex(means["private"].index)).to_numpy()
    n = len(difference)
    low = high = np.full(len(QUANTITIES), np.nan)
    if n > 1:
        times = (np.bincount(sample, minlength=n) for sample in resamples(n, draws, seed))
        drawn = np.array([drawn @ difference for drawn in times]) / n
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return pd.DataFrame({
        "quantity": QUANTITIES,
        "peer": 100 * means["peer"].mean().to_numpy(),
        "private": 100 * means["private"].mean().to_numpy(),
        "difference": 100 * difference.mean(axis=0),
        "low": 100 * low,
        "high": 100 * high,
        "answers": difference.sum(axis=0),
        "n_questions": n,
    })


def quality(answers, *, limit=0.02, by="row"):
    """Quality control of an arm: missing answers, truncated replies, unclosed reasoning.

    Parameters
    ----------
    answers : DataFrame
        Answers, with booleans `truncated`, `unclosed` and `abstained` (an explicit refusal to choose) where
        they were recorded.
    limit : float
        Largest share that each of the three may have.
    by : str or list of str
        Columns that name a line.

    Returns
    -------
    DataFrame
        `n` (answers of all rounds and agents), `missing, abstained, truncated, unclosed` (counts; missing
        where not recorded), `strict` and `amended` (whether every recorded share is within the limit; the
        amended criterion does not count an explicit abstention as a missing answer).

    Notes
    -----
    The paper names the amended criterion without a formula; this is our reading of its one sentence.

    References
    ----------
    G.5.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "answer": ["A", None, "B"], "abstained": [False, True, False]})
    >>> quality(seen)[["missing", "strict", "amended"]].values.tolist()
    [[1, False, True]]
    """
    missing = answers["answer"].isna()
    told = {name: answers[name].eq(True) for name in FLAGS if name in answers}
    counted = pd.DataFrame({"n": 1, "missing": missing} | told, index=answers.index)
    counted["unexplained"] = missing & ~told.get("abstained", False)
    names = [by] if isinstance(by, str) else list(by)
    out = counted.astype(int).groupby([answers[name] for name in names], sort=False).sum().reset_index()
    both = [name for name in ("truncated", "unclosed") if name in out]
    for criterion, first in (("strict", "missing"), ("amended", "unexplained")):
        out[criterion] = (out[[first, *both]].div(out["n"], axis=0) <= limit + 1e-12).all(axis=1)
    unknown = pd.array([pd.NA] * len(out), dtype="Int64")
    out = out.assign(**{name: unknown for name in FLAGS if name not in out})
    return out[[*names, "n", "missing", *FLAGS, "strict", "amended"]]


def side_by_side(peer, private):
    """Each debate of both arms with its panels and both credits.

    Parameters
    ----------
    peer, private : DataFrame
        Answers of the arms, one run each.

    Returns
    -------
    DataFrame
        `question, gold`, the answers at Round 0 (`start`) and at the end of each arm (`peer`, `private`; a
        dash is no answer), and the end credits `peer_binary, private_binary, peer_expected,
        private_expected`.

    Examples
    --------
    >>> side_by_side(*example())[["start", "peer", "private"]].iloc[1].tolist()
    ['AAB', 'AAA', 'ABC']
    """
    peer, private = shared_start(peer, private)
    out = peer.drop_duplicates("question")[["question", "gold"]].set_index("question")
    last = {"peer": (peer, peer["round"].max()), "private": (private, private["round"].max())}
    for name, (arm, k) in ({"start": (peer, 0)} | last).items():
        panel = arm[arm["round"] == k].sort_values("agent", kind="stable").fillna({"answer": "–"})
        out[name] = panel.groupby("question")["answer"].agg("".join)
    for scoring in SCORINGS:
        for name, arm in (("peer", peer), ("private", private)):
            out[f"{name}_{scoring}"] = outcomes(arm, scoring).set_index("question")["accuracy"]
    return out.reset_index()


def pools(shares, sizes, digits=4):
    """Which pool sizes can give printed accuracies.

    Parameters
    ----------
    shares : mapping of str to float
        Name and printed fraction.
    sizes : sequence of int
        Pool sizes, in questions.
    digits : int
        Decimals of the fraction.

    Returns
    -------
    DataFrame
        One line a share and size: `share, printed, size, correct` (the whole number of questions that rounds
        to it; missing if none).

    References
    ----------
    G.5.

    Examples
    --------
    >>> pools({"medium": 0.7455}, [1000, 2000])["correct"].tolist()
    [<NA>, 1491]
    """
    lines = [
        (name, value, size, next(iter(transfer.whole_counts(value, size, digits)), pd.NA))
        for name, value in shares.items() for size in sizes
    ]
    return pd.DataFrame(lines, columns=["share", "printed", "size", "correct"]).astype({"correct": "Int64"})


# Made up: the three answers at first, after peer debate, after private revision ("-": no answer); A is right.
_EXAMPLE = (
    "AAA AAA AAA", "AAB AAA ABC", "AAB BBB ABC", "AAB BBB AAB",
    "ABC AAA ABC", "BBA BBB AB-", "BBA BBB BBA", "BBB BBB BBB",
)


def example():
    """Answers of two arms on eight questions, made up to show where the two scorings part.

    Returns
    -------
    (DataFrame, DataFrame)
        Peer debate and private revision: three agents, Round 0 and Round 1, one run each.

    Examples
    --------
    >>> [len(arm) for arm in example()]
    [48, 48]
    """
    arms = []
    for end in (1, 2):
        lines = [
            ("made-up", f"q{q}", 0, k, str(agent), None if label == "-" else label, "A")
            for q, panels in enumerate(map(str.split, _EXAMPLE), start=1)
            for k, panel in enumerate((panels[0], panels[end]))
            for agent, label in enumerate(panel, start=1)
        ]
        columns = ["row", "question", "replicate", "round", "agent", "answer", "gold"]
        arms.append(pd.DataFrame(lines, columns=columns).astype({"answer": "str"}))
    return tuple(arms)
