"""Social and argument contrasts of the flip rate, their ratio, and the check without the strongest argument.

`analysis.probes` offers these together with reading and the other measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section 3.2, equations 2 to 4.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import stats
from analysis.errors import choice
from analysis.probes_count import named, pool, tally
from analysis.probes_read import RECORD, STRENGTHS

EPSILON = 1e-6  # equation 4
LOG_CONSTANT = 1e-3  # the released log-ratio check; the paper names no other than equation 4's
STRONG = ("strong", "very_strong")
UNITS = {"question": ["question"], "record": RECORD[1:]}
ARMS = ("both", "solo")


def normalised(social, argument, *, epsilon=EPSILON):
    """Social contrast as a share of both contrasts, with the social one's sign.

    Parameters
    ----------
    social, argument : float or array_like
        Contrasts of the flip rate.
    epsilon : float
        Added to the denominator; it only decides what two zero contrasts give (0).

    Returns
    -------
    float or array
        -1 to 1.

    References
    ----------
    Equation 4.

    Examples
    --------
    >>> normalised(0.1, -0.3).round(3), normalised(0.0, 0.0)
    (np.float64(0.25), np.float64(0.0))
    """
    return social / (np.abs(social) + np.abs(argument) + np.float64(epsilon))


def log_ratio(social, argument, *, constant=LOG_CONSTANT):
    """Logarithm of the social over the argument contrast, both moved away from zero.

    Parameters
    ----------
    social, argument : float or array_like
        Contrasts of the flip rate. Negative ones count as 0, as in the released script: as printed, the
        formula is not defined for them.
    constant : float
        Added to both. It sets how far below the others a row without a social contrast stands.

    Returns
    -------
    float or array

    References
    ----------
    C.6 (R3).

    Examples
    --------
    >>> log_ratio(np.array([0.1, -0.02]), np.array([0.3, 0.18]), constant=0.1).round(3).tolist()
    [-0.693, -1.03]
    """
    return np.log((np.maximum(social, 0) + constant) / (np.maximum(argument, 0) + constant))


def contrasts(probes, *, by=RECORD, unparsed="no_revision", conditions="default", epsilon=EPSILON):
    """Social and argument contrast of the flip rate and their ratio, one line a record unless told otherwise.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str or list of str
        Columns that name a line, such as "row" (all its probes together) or ["row", "question"].
    unparsed, conditions
        As for `flip_rate`. Where unreadable replies are dropped, arms may become unequal; each is then the
        share of what is left of it.
    epsilon : float
        As for `normalised`.

    Returns
    -------
    DataFrame
        `by`, `n_probes`, `alpha` (flip rate), `social` (social minus solo probes), `argument` (strong and
        very strong minus weak and moderate ones), `ratio`. A contrast is missing where one of its arms has no
        probe.

    References
    ----------
    Equations 2 to 4.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "parsed": True,
    ...                       "strength": ["weak", "very_strong"] * 2,
    ...                       "social": [False, False, True, True], "revised": [False, True, True, True]})
    >>> contrasts(asked, by="row")[["alpha", "social", "argument", "ratio"]].round(3).values.tolist()
    [[0.75, 0.5, 0.5, 0.5]]
    """
    each, revised, _ = pool(probes, unparsed, conditions)
    keys = named(by)
    social = each["social"].astype("boolean")
    arms = {"social_arm": social, "solo_arm": ~social,
            "strong_arm": each["strength"].isin(STRONG), "weak_arm": each["strength"].isin(STRENGTHS[:2])}
    flips = pd.Series(revised.astype(float), index=each.index)
    within = {name: flips.where(arm.fillna(False).to_numpy(bool)) for name, arm in arms.items()}
    groups = pd.DataFrame({"alpha": flips, **within}).groupby([each[key] for key in keys], sort=False,
                                                              dropna=False)
    rates = groups.mean()
    out = pd.DataFrame({
        "n_probes": groups.size(), "alpha": rates["alpha"], "social": rates["social_arm"] - rates["solo_arm"],
        "argument": rates["strong_arm"] - rates["weak_arm"],
    })
    return out.assign(ratio=normalised(out["social"], out["argument"], epsilon=epsilon)).reset_index()


def sa_ratio(probes, *, by="row", unit="question", unparsed="no_revision", conditions="default",
             epsilon=EPSILON, constant=LOG_CONSTANT, draws=10_000, seed=0, level=0.95):
    """S/A of each row: how much of the two sensitivities is social, with a bootstrap interval over questions.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`.
    by : str or list of str
        Columns that name a line of the result.
    unit : {"question", "record"}
        The ratio is taken within each question (its agents together) or each record, then averaged.
    unparsed, conditions
        As for `flip_rate`.
    epsilon, constant : float
        As for `normalised` and `log_ratio`.
    draws : int
        Resamples of the units.
    seed : int or numpy.random.Generator
    level : float
        Of the percentile interval.

    Returns
    -------
    DataFrame
        `by`, `n_units` (with both contrasts), `social`, `argument` (mean contrasts), `ratio` (mean of the
        units' ratios) with its interval `low`, `high` (missing below two units), `pooled` (the ratio of the
        mean contrasts) and `log_ratio` (of the mean contrasts).

    Notes
    -----
    The paper describes the mean ratio; what is released for nine of its rows is the pooled one. The two
    differ, because a question on which nothing moves has ratio 0 and still counts.

    References
    ----------
    Equation 4; Table 17 and B.2.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "parsed": True,
    ...                       "question": ["p"] * 4 + ["q"] * 4, "strength": ["weak", "very_strong"] * 4,
    ...                       "social": [False, False, True, True] * 2,
    ...                       "revised": [False, True, True, True] + [False, False, False, True]})
    >>> sa_ratio(asked, draws=100)[["n_units", "ratio", "low", "high", "pooled"]].round(3).values.tolist()
    [[2.0, 0.5, 0.5, 0.5, 0.5]]
    """
    choice("unit", unit, tuple(UNITS))
    keys = named(by)
    within = list(dict.fromkeys([*keys, *UNITS[unit]]))
    units = contrasts(probes, by=within, unparsed=unparsed, conditions=conditions, epsilon=epsilon)
    units = units.dropna(subset=["ratio"])
    rng = np.random.default_rng(seed)
    lines = []
    for name, part in units.groupby(keys, sort=False, dropna=False):
        social, argument, ratio = part[["social", "argument", "ratio"]].mean()
        low, high = _interval(part["ratio"].to_numpy(), draws, rng, level)
        lines.append(dict(zip(keys, name, strict=True)) | {
            "n_units": len(part), "social": social, "argument": argument, "ratio": ratio, "low": low,
            "high": high, "pooled": normalised(social, argument, epsilon=epsilon),
            "log_ratio": log_ratio(social, argument, constant=constant),
        })
    columns = [*keys, "n_units", "social", "argument", "ratio", "low", "high", "pooled", "log_ratio"]
    return pd.DataFrame(lines, columns=columns)


def _interval(values, draws, rng, level):
    """Percentile interval of the mean under resampling; undefined for fewer than two values."""
    if len(values) < 2:
        return np.nan, np.nan
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(draws)]
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2])


# --- without the strongest argument -------------------------------------------------------------------------


def without_strongest(probes, *, by="row", arms="both", unparsed="no_revision", conditions="default"):
    """Counts with all arguments and without the very strong one.

    Parameters
    ----------
    probes : DataFrame
        One line a probe, from `read`, with `gold`.
    by : str or list of str
        Columns that name a line of the result.
    arms : {"both", "solo"}
        All eight probes, of which six are left (the paper's text), or the four without social pressure, of
        which three are left (the released counts).
    unparsed, conditions
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        Two lines a row: `by`, `probe_set` (all, no_strongest), `n_probes`, `n_init_right_probes`,
        `n_init_wrong_probes`, `n_flip`, `n_flip_right` and `n_flip_wrong` (by the first answer, whatever the
        last).

    References
    ----------
    C.6 (R2); B.5.

    Examples
    --------
    >>> asked = pd.DataFrame({"row": "m", "condition": "default", "social": False, "gold": "A",
    ...                       "strength": ["weak", "very_strong"], "initial_answer": "A",
    ...                       "post_answer": ["A", "B"], "revised": [False, True], "parsed": True})
    >>> without_strongest(asked)[["probe_set", "n_flip", "n_probes"]].values.tolist()
    [['all', 1, 2], ['no_strongest', 0, 1]]
    """
    choice("arms", arms, ARMS)
    if arms == "solo":
        probes = probes[probes["social"].eq(False).fillna(False).to_numpy(bool)]
    sets = {"all": probes, "no_strongest": probes[(probes["strength"] != STRENGTHS[-1]).to_numpy(bool)]}
    parts = [tally(part, by=by, unparsed=unparsed, conditions=conditions).assign(probe_set=name)
             for name, part in sets.items()]
    out = pd.concat(parts, ignore_index=True)
    out = out.assign(n_flip_right=out["n_adv"], n_flip_wrong=out["n_cor"] + out["n_neutral"])
    return out[[*named(by), "probe_set", "n_probes", "n_init_right_probes", "n_init_wrong_probes", "n_flip",
                "n_flip_right", "n_flip_wrong"]]


def strongest_change(counts):
    """What leaving the strongest argument out does to each row's flip rate and to its place among the rows.

    Parameters
    ----------
    counts : DataFrame
        Two lines a row, as `without_strongest` returns them.

    Returns
    -------
    DataFrame
        One line a row: `row`, `alpha` and `alpha_dropped` (flip rates), `adverse` and `adverse_dropped` (of
        right first answers), `change` and `adverse_change`, `rank` and `rank_dropped` (1 is the lowest flip
        rate).

    References
    ----------
    C.6 (R2).

    Examples
    --------
    >>> two = pd.DataFrame({"row": ["a", "a", "b", "b"], "probe_set": ["all", "no_strongest"] * 2,
    ...                     "n_probes": [8, 6, 8, 6], "n_flip": [4, 2, 3, 3], "n_init_right_probes": 4,
    ...                     "n_flip_right": 1})
    >>> strongest_change(two)[["row", "change", "rank", "rank_dropped"]].round(3).values.tolist()
    [['a', -0.167, 2.0, 1.0], ['b', 0.125, 1.0, 2.0]]
    """
    rates = counts.assign(alpha=counts["n_flip"] / counts["n_probes"],
                          adverse=counts["n_flip_right"] / counts["n_init_right_probes"])
    sets = {name: part.set_index("row") for name, part in rates.groupby("probe_set")}
    whole, rest = (sets.get(name, rates.iloc[:0].set_index("row")) for name in ("all", "no_strongest"))
    out = whole[["alpha", "adverse"]].join(rest[["alpha", "adverse"]].add_suffix("_dropped"))
    out["change"] = out["alpha_dropped"] - out["alpha"]
    out["adverse_change"] = out["adverse_dropped"] - out["adverse"]
    out["rank"], out["rank_dropped"] = out["alpha"].rank(), out["alpha_dropped"].rank()
    return out.rename_axis("row").reset_index()


def strongest_association(change, outcome):
    """Rank correlation of the flip rate with an outcome, with and without the strongest argument.

    Parameters
    ----------
    change : DataFrame
        As `strongest_change` returns it.
    outcome : Series of float
        By row.

    Returns
    -------
    DataFrame
        Lines all and no_strongest: `probe_set, n, rho, p` (t approximation), `low, high` (95%, Fisher z).

    References
    ----------
    C.6 (R2).

    Examples
    --------
    >>> change = pd.DataFrame({"row": list("abcd"), "alpha": [1, 2, 3, 4], "alpha_dropped": [1, 2, 4, 3]})
    >>> outcome = pd.Series([0.1, 0.2, 0.3, 0.4], index=list("abcd"))
    >>> strongest_association(change, outcome)["rho"].round(3).tolist()
    [1.0, 0.8]
    """
    y = change["row"].map(outcome)
    lines = []
    for name, column in (("all", "alpha"), ("no_strongest", "alpha_dropped")):
        found = sps.spearmanr(change[column], y)
        low, high = stats.fisher_z_interval(found.statistic, len(y))
        lines.append({"probe_set": name, "n": len(y), "rho": found.statistic, "p": found.pvalue,
                      "low": low, "high": high})
    return pd.DataFrame(lines)
