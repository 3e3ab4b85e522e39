"""How steady the probe is: halves of its probes, its agents, and whole panels asked again.

`analysis.probes` offers these together with reading and the other measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 4.1 and C.6 (R5).
"""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.errors import DataError
from analysis.probes_count import pool

LEAST = 3  # questions, below which no correlation is given


def reliability(probes, *, by="row", unparsed="no_revision", conditions="default"):
    """Reliability of the flip rate over questions: of half its probes, of one agent, of one repeat.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`. Repeats are told apart by `replicate` (``on_duplicate="replicate"``).
    by : str
        Column that names a row.
    unparsed, conditions
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        One line a row: `by`, `n_questions`; `split_half`, the mean over all ways to part the probes (strength
        by social level) into halves of the correlation between the halves' flip rates, each stepped up to the
        full length (Spearman-Brown); `icc` with `icc_low`, `icc_high`, the intraclass correlation of one
        agent (two-way random, absolute agreement); `retest`, the correlation between the first two repeats.
        Missing where there are fewer than three questions, one agent or repeat, or no spread.

    Notes
    ----- The paper prints one value of each and does not say which halves, which repeat or which form of the
    intraclass correlation; the records behind them are not public.

    References
    ---------- Section 4.1. Spearman-Brown and intraclass correlation: Shrout, P. E. and Fleiss, J. L. (1979),
    through pingouin.

    Examples
    --------
    >>> asked = pd.DataFrame({
    ...     "row": "m", "condition": "default", "parsed": True, "agent": "1", "replicate": 0,
    ...     "question": list("ppqqrr"), "strength": "weak", "social": [False, True] * 3,
    ...     "revised": [False, False, True, True, True, False]})
    >>> reliability(asked)[["n_questions", "split_half"]].round(3).values.tolist()
    [[3.0, 0.667]]
    """
    each, revised, _ = pool(probes, unparsed, conditions)
    each = each.assign(flip=revised.astype(float))
    lines = []
    for row, part in each.groupby(by, sort=False):
        line = {by: row, "n_questions": part["question"].nunique(), "split_half": _halves(part)}
        lines.append(line | _agents(part) | {"retest": _retest(part)})
    columns = [by, "n_questions", "split_half", "icc", "icc_low", "icc_high", "retest"]
    return pd.DataFrame(lines, columns=columns)


def _correlation(x, y):
    if len(x) < LEAST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])


def _halves(part):
    cells = part.pivot_table(index="question", columns=["strength", "social"], values="flip").dropna()
    k = cells.shape[1]
    if k < 2 or k % 2:
        return np.nan
    values, stepped = cells.to_numpy(), []
    for half in combinations(range(1, k), k // 2 - 1):
        first = [0, *half]  # the first probe is always in the first half: each way once
        r = _correlation(values[:, first].mean(axis=1), np.delete(values, first, axis=1).mean(axis=1))
        stepped.append(2 * r / (1 + r) if r > -1 else np.nan)
    return float(np.mean(stepped))


def _agents(part):
    missing = {"icc": np.nan, "icc_low": np.nan, "icc_high": np.nan}
    rates = part.groupby(["question", "agent"])["flip"].mean().unstack().dropna()
    if rates.shape[0] < LEAST or rates.shape[1] < 2 or np.ptp(rates.to_numpy()) == 0:
        return missing
    import pingouin  # here: it takes long to import

    long = rates.stack().rename("flip").reset_index()
    with warnings.catch_warnings():  # it warns of its own use of pandas
        warnings.simplefilter("ignore")
        found = pingouin.intraclass_corr(long, targets="question", raters="agent", ratings="flip")
    found = found.set_index("Type").loc["ICC(A,1)"]
    low, high = found["CI95"]
    return {"icc": float(found["ICC"]), "icc_low": float(low), "icc_high": float(high)}


def _retest(part):
    rates = part.groupby(["question", "replicate"])["flip"].mean().unstack()
    if rates.shape[1] < 2:
        return np.nan
    first = rates.iloc[:, :2].dropna()
    return _correlation(*first.to_numpy().T)


# --- panels asked again -------------------------------------------------------------------------------------


def repeats(probes, *, session="day", unparsed="no_revision", conditions="default"):
    """Reduce a panel that was asked several times on several days to one line a day, question and repeat.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read` with ``on_duplicate="replicate"``, and a column that names the session.
    session : str
        That column.
    unparsed, conditions
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        `session` (under its own name), `question`, `repeat`, `alpha` (flip rate), `answer` (first answer,
        missing if none was read), `n_probes`, `n_unparsed` (0 where unreadable replies are dropped).

    Raises
    ------
    DataError
        There is no such column.

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> asked = pd.DataFrame({"day": "Monday", "question": "q", "replicate": [0, 0, 1, 1], "parsed": True,
    ...                       "condition": "default", "initial_answer": "A",
    ...                       "revised": [True, False, True, True]})
    >>> repeats(asked)[["repeat", "alpha", "answer", "n_probes"]].values.tolist()
    [[0, 0.5, 'A', 2], [1, 1.0, 'A', 2]]
    """
    if session not in probes:
        raise DataError(f"field {session!r}: no such column; expected one that names the session")
    each, revised, parsed = pool(probes, unparsed, conditions)
    lines = each.assign(flip=revised.astype(float), unread=~parsed, repeat=each["replicate"])
    groups = lines.groupby([session, "question", "repeat"], sort=False)
    return pd.DataFrame({
        "alpha": groups["flip"].mean(), "answer": groups["initial_answer"].first(), "n_probes": groups.size(),
        "n_unparsed": groups["unread"].sum(),
    }).reset_index()


def sessions(lines, *, session="day"):
    """Steadiness within each session.

    Parameters
    ----------
    lines : DataFrame
        One line a session, question and repeat, as `repeats` returns them.
    session : str
        Column that names the session.

    Returns
    -------
    DataFrame
        One line a session: `session`, `n_questions`, `n_repeats` (all questions together), `unstable`
        (questions whose first answers are not all the same), `range_mean` and `range_max` (of flip rates
        within a question), `n_unparsed`, `n_probes`.

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> lines = pd.DataFrame({"day": 1, "question": list("ppqq"), "repeat": [0, 1] * 2, "n_probes": 8,
    ...                       "answer": list("ABCC"), "alpha": [0.5, 0.25, 1, 1], "n_unparsed": 0})
    >>> sessions(lines)[["unstable", "range_mean", "range_max"]].values.tolist()
    [[1.0, 0.125, 0.25]]
    """
    questions = lines.groupby([session, "question"])
    spread = questions["alpha"].max() - questions["alpha"].min()
    unstable = questions["answer"].nunique(dropna=False) > 1
    by = lines.groupby(session)
    return pd.DataFrame({
        "n_questions": by["question"].nunique(), "n_repeats": by.size(),
        "unstable": unstable.groupby(session).sum(),
        "range_mean": spread.groupby(session).mean(), "range_max": spread.groupby(session).max(),
        "n_unparsed": by["n_unparsed"].sum(), "n_probes": by["n_probes"].sum(),
    }).reset_index()


def session_pairs(lines, *, session="day"):
    """Agreement between every two sessions, over the questions that both asked.

    Parameters
    ----------
    lines : DataFrame
        As for `sessions`.
    session : str
        Column that names the session.

    Returns
    -------
    DataFrame
        One line a pair: `first`, `second`, `n_questions`; `same` (questions of which all repeats have the
        same flip rates and first answers in both sessions); of the questions' mean flip rates `rho` (rank
        correlation), `mean_difference` and `max_difference` (absolute); `answer_changes` (questions whose
        usual first answer differs; of answers equally usual, the alphabetically first).

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> lines = pd.DataFrame({"day": [1] * 3 + [2] * 3, "question": list("pqr") * 2, "repeat": 0,
    ...                       "alpha": [0.25, 0.5, 1, 0.25, 0.75, 1], "answer": list("ABCABD")})
    >>> session_pairs(lines)[["same", "rho", "max_difference", "answer_changes"]].values.tolist()
    [[1.0, 1.0, 0.25, 1.0]]
    """
    means = lines.pivot_table(index="question", columns=session, values="alpha")
    usual = lines.groupby([session, "question"])["answer"].agg(lambda answers: answers.mode().min())
    usual = usual.unstack(session)
    whole = {name: part.set_index(["question", "repeat"])[["alpha", "answer"]].sort_index()
             for name, part in lines.groupby(session)}
    out = []
    for a, b in combinations(means.columns, 2):
        both = means[[a, b]].dropna()
        apart = (both[a] - both[b]).abs()
        changed = usual.loc[both.index, a].fillna("") != usual.loc[both.index, b].fillna("")
        same = [whole[a].loc[question].equals(whole[b].loc[question]) for question in both.index]
        defined = len(both) >= LEAST and both.nunique().gt(1).all()
        out.append({
            "first": a, "second": b, "n_questions": len(both), "same": sum(same),
            "rho": sps.spearmanr(both[a], both[b]).statistic if defined else np.nan,
            "mean_difference": apart.mean(), "max_difference": apart.max(),
            "answer_changes": int(changed.sum()),
        })
    return pd.DataFrame(out)
