"""The specification curve of the sealed cohort, over the axes that the released script has."""

from itertools import product

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import latent

OUTCOMES = ("c_cond", "c_cond_low", "collapse_rate")
NOISY = ("alpha_tot", "alpha_no_strongest", "alpha_adv")
PREDICTORS = (*NOISY, "log_ratio")


def predictors(nine, strongest_probe, ratios):
    """The sealed rows with every predictor of the curve.

    Parameters
    ----------
    nine : DataFrame
        From `sealed.nine_rows`.
    strongest_probe : DataFrame
        `row, probe_set, n_flip, n_probes`.
    ratios : DataFrame
        `row, log_ratio`: logarithm of the social over the argument contrast.

    Returns
    -------
    DataFrame
        The same rows with `alpha_no_strongest` and `log_ratio`.

    Examples
    --------
    >>> probes = pd.DataFrame({"row": ["a"], "probe_set": ["no_strongest"], "n_flip": [3], "n_probes": [12]})
    >>> nine = pd.DataFrame({"row": ["a"]})
    >>> predictors(nine, probes, pd.DataFrame({"row": ["a"], "log_ratio": [-1.0]})).values.tolist()
    [['a', 0.25, -1.0]]
    """
    rest = strongest_probe[strongest_probe["probe_set"] == "no_strongest"].set_index("row")
    return nine.assign(alpha_no_strongest=nine["row"].map(rest["n_flip"] / rest["n_probes"]),
                       log_ratio=nine["row"].map(ratios.set_index("row")["log_ratio"]))


def specification_curve(rows, *, draws=5_000, seed=20260424):
    """The sealed association over predictors and outcomes, with and without initial accuracy taken out.

    Parameters
    ----------
    rows : DataFrame
        From `predictors`.
    draws, seed : int
        For the cells with noise on both sides.

    Returns
    -------
    DataFrame
        One line a cell: ``predictor, outcome`` (conditional collapse, its lower Wilson limit, collapse over
        all debates), ``adjusted`` (none, initial accuracy, noise), ``rho``.

    Notes
    -----
    These are the axes of the released script: four predictors by three outcomes by two, and noise for the
    three predictors that are rates. The paper names three pools, correlations and predictors; of these only
    one pool is public. An adjusted cell ranks again what a line through the ranks of accuracy leaves.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.7.

    Examples
    --------
    >>> rows = pd.DataFrame({name: [0.1, 0.2, 0.3, 0.5] for name in (*PREDICTORS, *OUTCOMES)})
    >>> rows = rows.assign(init_acc=[0.5, 0.6, 0.4, 0.7], sd_alpha=0.01)
    >>> rows = rows.assign(collapse=[1, 2, 3, 5], init_correct=10)
    >>> specification_curve(rows, draws=20)["adjusted"].value_counts().to_dict()
    {'none': 12, 'initial accuracy': 12, 'noise': 3}
    """
    start = sps.rankdata(rows["init_acc"])
    start = start - start.mean()

    def left(values):
        ranks = sps.rankdata(values)
        return ranks - ranks @ start / (start @ start) * start

    lines = []
    for predictor, outcome in product(PREDICTORS, OUTCOMES):
        x, y = rows[predictor], rows[outcome]
        lines += [(predictor, outcome, "none", sps.spearmanr(x, y).statistic),
                  (predictor, outcome, "initial accuracy", sps.spearmanr(left(x), left(y)).statistic)]
    drawn = latent.correlations(rows, NOISY, clip=False, draws=draws, seed=seed)
    lines += [(predictor, "c_cond", "noise", np.median(drawn[predictor])) for predictor in NOISY]
    return pd.DataFrame(lines, columns=["predictor", "outcome", "adjusted", "rho"])


def by_adjustment(curve):
    """Signs and spread of the cells, by what is adjusted for.

    Parameters
    ----------
    curve : DataFrame
        From `specification_curve`.

    Returns
    -------
    DataFrame
        One line an adjustment and one for all: ``adjusted, cells, positive, low, median, high``.

    Examples
    --------
    >>> cells = pd.DataFrame({"adjusted": ["none", "none", "noise"], "rho": [0.2, -0.4, 0.6]})
    >>> by_adjustment(cells).values.tolist()
    [['none', 2, 1, -0.4, -0.1, 0.2], ['noise', 1, 1, 0.6, 0.6, 0.6], ['all', 3, 2, -0.4, 0.2, 0.6]]
    """
    both = pd.concat([curve, curve.assign(adjusted="all")])
    groups = both.groupby("adjusted", sort=False)["rho"]
    out = groups.agg(cells="size", positive=_positive, low="min", median="median", high="max")
    return out.reset_index()


def _positive(rho):
    return int((rho > 0).sum())


def stated_axes(nine):
    """The cells that the paper's wording names, as far as one public pool goes.

    Parameters
    ----------
    nine : DataFrame
        From `sealed.nine_rows`.

    Returns
    -------
    DataFrame
        One line a cell: ``method`` (Spearman, Kendall, Pearson), ``predictor`` (total flip rate, flips away
        from right answers, total flip rate with initial accuracy taken out of both sides), ``rho``. A method
        on ranks takes accuracy out of ranks, Pearson out of the values; Kendall's partial is that of the
        three pairwise coefficients.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.7.

    Examples
    --------
    >>> nine = pd.DataFrame({"alpha_tot": [0.1, 0.2, 0.3, 0.5], "alpha_adv": [0.1, 0.2, 0.5, 0.3],
    ...                      "init_acc": [0.5, 0.6, 0.4, 0.7], "c_cond": [0.0, 0.1, 0.2, 0.3]})
    >>> len(stated_axes(nine)), stated_axes(nine).loc[0, "rho"].round(6)
    (9, np.float64(1.0))
    """
    methods = {"Spearman": sps.spearmanr, "Kendall": sps.kendalltau, "Pearson": sps.pearsonr}
    lines = []
    for method, correlate in methods.items():
        pairs = {(a, b): correlate(nine[a], nine[b]).statistic
                 for a, b in (("alpha_tot", "c_cond"), ("alpha_adv", "c_cond"), ("alpha_tot", "init_acc"),
                              ("c_cond", "init_acc"))}
        xz, yz = pairs["alpha_tot", "init_acc"], pairs["c_cond", "init_acc"]
        given = (pairs["alpha_tot", "c_cond"] - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
        lines += [(method, "alpha_tot", pairs["alpha_tot", "c_cond"]),
                  (method, "alpha_adv", pairs["alpha_adv", "c_cond"]),
                  (method, "alpha_tot | init_acc", given)]
    return pd.DataFrame(lines, columns=["method", "predictor", "rho"])
