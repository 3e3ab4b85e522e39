"""The two channels manipulated: flip rates under three system prompts, and rows on the questions they share.

`analysis.probes` offers these together with reading and the other measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 5.2, B.3 and B.6 to
B.8.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import stats
from analysis.errors import DataError, choice
from analysis.probes_contrasts import EPSILON, contrasts
from analysis.probes_count import flip_rate, pool, records
from analysis.probes_read import CONDITIONS

UNITS = {"question": ["question"], "record": ["question", "replicate", "agent"]}
PAIR = ("anti_argument", "anti_social")


def by_condition(probes, *, by="row", unparsed="no_revision", interval="wilson"):
    """Flip rates under each system prompt, with the records behind them.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str or list of str
        Columns that name a row.
    unparsed, interval
        As for `flip_rate`; with the default, every record counts with all its probes.

    Returns
    -------
    DataFrame
        One line a row and condition: `by`, `condition`, `k`, `n`, `rate`, `low`, `high`, `n_unparsed`,
        `n_records`.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "question": "q", "replicate": 0, "agent": "1", "parsed": True,
    ...                       "condition": ["default", "anti_social"], "revised": [True, False]})
    >>> by_condition(asked)[["condition", "k", "n", "n_records"]].values.tolist()
    [['default', 1, 1, 1], ['anti_social', 0, 1, 1]]
    """
    keys = [*([by] if isinstance(by, str) else by), "condition"]
    rates = flip_rate(probes, by=keys, unparsed=unparsed, conditions="all", interval=interval)
    return rates.merge(records(probes, by=keys)[[*keys, "n_records"]], on=keys)


def ordering(default, anti_social, anti_argument):
    """How the three conditions are ordered, in the words of the paper's table.

    Parameters
    ----------
    default, anti_social, anti_argument : float
        Flip rates.

    Returns
    -------
    str
        "strict" where anti-argument is above default and default above anti-social; "partial" where only
        anti-argument is above anti-social; "none" otherwise; "" where a rate is missing.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> ordering(0.3, 0.1, 0.5), ordering(0.6, 0.1, 0.5), ordering(0.3, 0.5, 0.5)
    ('strict', 'partial', 'none')
    """
    if pd.isna([default, anti_social, anti_argument]).any():
        return ""
    if anti_argument > default > anti_social:
        return "strict"
    return "partial" if anti_argument > anti_social else "none"


def manipulation(probes, *, by="row", unit="question", unparsed="no_revision", level=0.05):
    """Compare the anti-argument with the anti-social prompt, paired, row by row.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`, under both manipulated prompts.
    by : str
        Column that names a row.
    unit : {"question", "record"}
        What is paired: flip rates of the same question over its agents, or of the same question and agent.
        The agents of a question are not independent of each other.
    unparsed : {"no_revision", "drop"}
        As for `flip_rate`.
    level : float
        Family-wise level of Holm's rule over the rows.

    Returns
    -------
    DataFrame
        One line a row: `by`, `default`, `anti_social`, `anti_argument` (flip rates), `order` (see
        `ordering`), `n_pairs`, `difference` (mean of the pairs), `d` (difference over the root mean square of
        the two standard deviations), `d_paired` (difference over the standard deviation of the differences),
        `t`, `p` (paired t test, two-sided), `p_holm`, `significant`. Missing where there are fewer than two
        pairs, or no spread.

    Notes
    ----- The paper does not say how d and p are made. Its printed d and p of one row do not fit each other if
    d is over the standard deviation of the differences (see `analysis.probes_released.effect_readings`); they
    fit if it is over that of the two conditions, as here.

    References
    ----------
    Section 5.2; Table 20.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "question": list("ppqqrr"), "replicate": 0, "agent": "1",
    ...                       "parsed": True, "condition": ["anti_social", "anti_argument"] * 3,
    ...                       "revised": [False, True, False, True, True, True]})
    >>> manipulation(asked)[["n_pairs", "difference", "d", "t"]].round(3).values.tolist()
    [[3.0, 0.667, 1.633, 2.0]]
    """
    choice("unit", unit, tuple(UNITS))
    each, revised, _ = pool(probes, unparsed, "all")
    keys = [by, *UNITS[unit], "condition"]
    rates = each.assign(flip=revised.astype(float)).groupby(keys, dropna=False)["flip"].mean()
    whole = flip_rate(probes, by=[by, "condition"], unparsed=unparsed, conditions="all")
    whole = whole.pivot(index=by, columns="condition", values="rate").reindex(columns=CONDITIONS)
    lines = []
    for row in each[by].unique():
        units = rates.xs(row, level=by).unstack("condition").reindex(columns=list(PAIR)).dropna()
        line = {by: row, **whole.loc[row].to_dict(), "order": ordering(*whole.loc[row])}
        lines.append(line | _paired(units))
    columns = [by, *CONDITIONS, "order", "n_pairs", "difference", "d", "d_paired", "t", "p"]
    out = pd.DataFrame(lines, columns=columns)
    tested = out["p"].notna()
    out["p_holm"] = np.nan
    if tested.any():
        out.loc[tested, "p_holm"] = stats.holm(out.loc[tested, "p"])
    return out.assign(significant=out["p_holm"] <= level)


def _paired(units):
    """Paired comparison of the two columns of `units`."""
    first, second = (units[name].to_numpy(float) for name in PAIR)
    nothing = dict.fromkeys(("difference", "d", "d_paired", "t", "p"), np.nan)
    if len(units) < 2:
        return {"n_pairs": len(units)} | nothing
    difference, spread = (first - second).mean(), (first - second).std(ddof=1)
    pooled = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    out = {"n_pairs": len(units)} | nothing | {"difference": difference}
    if pooled > 0:
        out["d"] = difference / pooled
    if spread > 0:
        test = sps.ttest_rel(first, second)
        out |= {"d_paired": difference / spread, "t": test.statistic, "p": test.pvalue}
    return out


# --- questions that all rows share --------------------------------------------------------------------------


def shared_questions(probes, *, by="row"):
    """Keep the probes of those questions that every row was asked.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str
        Column that names a row.

    Returns
    -------
    DataFrame
        The same lines, fewer.

    Raises
    ------
    DataError
        The rows share no question.

    References
    ----------
    B.3.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": ["a", "a", "b"], "question": ["p", "q", "q"]})
    >>> shared_questions(asked)["question"].tolist()
    ['q', 'q']
    """
    askers = probes.groupby("question")[by].nunique()
    shared = askers.index[askers == probes[by].nunique()]
    if not len(shared):
        raise DataError(f"field 'question': none that all {probes[by].nunique()} rows have; expected some")
    return probes[probes["question"].isin(shared)]


def shared_pool(probes, *, by="row", unparsed="no_revision", conditions="default", epsilon=EPSILON):
    """S/A and its parts of every row on the questions that all rows share.

    Parameters
    ----------
    probes : DataFrame
        One line a probe of several rows, from `read`.
    by, unparsed, conditions, epsilon
        As for `contrasts`.

    Returns
    -------
    DataFrame
        One line a row: `by`, `n_questions`, `n_records`, `alpha`, `social`, `argument`, `ratio` (of the
        pooled contrasts), `init_acc` (records with a right first answer, of those whose first answer was
        read).

    Raises
    ------
    DataError
        As `shared_questions`.

    References
    ----------
    Table 18.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": list("abb"), "question": list("qqp"), "replicate": 0, "agent": "1",
    ...                       "condition": "default", "strength": "weak", "social": False, "parsed": True,
    ...                       "initial_correct": True, "revised": [True, False, True]})
    >>> shared_pool(asked)[["row", "n_questions", "alpha"]].values.tolist()
    [['a', 1, 1.0], ['b', 1, 0.0]]
    """
    shared = shared_questions(probes, by=by)
    out = contrasts(shared, by=by, unparsed=unparsed, conditions=conditions, epsilon=epsilon)
    counts = records(shared, by=by, conditions=conditions).set_index(by)
    each, _, _ = pool(shared, "no_revision", conditions)
    firsts = each.drop_duplicates([by, "condition", *UNITS["record"]])
    right = firsts["initial_correct"].astype("Float64").groupby(firsts[by]).mean()
    out = out.assign(init_acc=out[by].map(right).astype(float), **{
        name: out[by].map(counts[name]) for name in ("n_questions", "n_records")
    })
    return out[[by, "n_questions", "n_records", "alpha", "social", "argument", "ratio", "init_acc"]]
