"""Noise in flip rates and collapse rates carried through the rank association.

A row's flip rate is drawn around its estimate and its conditional collapse from its posterior; the
correlation of the drawn values is that of the latent rates. Draws follow the order of the released scripts,
so that a seed gives the published numbers. A beta is drawn as numpy draws it, from two gammas, because many
small calls of its beta take twice as long. """

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.errors import DataError

NEEDED = ("collapse", "init_correct", "sd_alpha")
# How the released script treats the earlier sealed rows: own flip rates and seed, draws not kept in 0..1.
SEALED = {"predictor": "alpha_noisy", "clip": False, "draws": 5_000, "seed": 20260419}


def shapes(rows):
    """Shapes of the gammas behind each row's Jeffreys posterior of conditional collapse.

    Parameters
    ----------
    rows : DataFrame
        `collapse`, `init_correct` (counts of debates).

    Returns
    -------
    ndarray of shape (2 n,)
        Two a row, in the order of rows.

    Examples
    --------
    >>> shapes(pd.DataFrame({"collapse": [0, 3], "init_correct": [10, 5]})).tolist()
    [0.5, 10.5, 3.5, 2.5]
    """
    kept = rows["init_correct"] - rows["collapse"]
    return np.column_stack([rows["collapse"] + 0.5, kept + 0.5]).ravel()


def betas(gammas):
    """Beta draws from pairs of gamma draws.

    Parameters
    ----------
    gammas : array_like of shape (draws, 2 n)
        As `shapes` orders them.

    Returns
    -------
    ndarray of shape (draws, n)

    Examples
    --------
    >>> betas([[1.0, 3.0, 2.0, 2.0]]).tolist()
    [[0.25, 0.5]]
    """
    gammas = np.asarray(gammas)
    return gammas[:, ::2] / (gammas[:, ::2] + gammas[:, 1::2])


def correlations(rows, predictors=("alpha_tot",), *, clip=True, draws=20_000, seed=20260427):
    """Rank correlations of drawn flip rates and drawn collapse rates, one a draw.

    Parameters
    ----------
    rows : DataFrame
        The predictors (fractions), `sd_alpha` (their noise), `collapse` and `init_correct` (counts). The
        order of rows matters for seeded draws.
    predictors : sequence of str
        Columns; all of them get the same noise and the same drawn collapse rates.
    clip : bool
        Keep drawn flip rates within 0 and 1.
    draws, seed : int
        Number of draws; seed of numpy's default generator.

    Returns
    -------
    DataFrame
        One line a draw, one column a predictor.

    Raises
    ------
    DataError
        A column is missing or holds a missing value; fewer than two rows; more collapses than right starts.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.6 (R1): in each draw a normal
    for every flip rate, then a Jeffreys beta for every conditional collapse.

    Examples
    --------
    >>> rows = pd.DataFrame({"alpha_tot": [0.1, 0.3, 0.9], "sd_alpha": 0.01, "collapse": [1, 20, 90],
    ...                      "init_correct": 100})
    >>> correlations(rows, draws=20)["alpha_tot"].round(6).unique().tolist()
    [1.0]
    """
    for name in (*predictors, *NEEDED):
        if name not in rows:
            raise DataError(f"rows: no column {name!r}: expected {', '.join((*predictors, *NEEDED))}")
        if rows[name].isna().any():
            gaps = rows[name].isna().sum()
            raise DataError(f"rows, field {name!r}: missing in {gaps} rows: expected numbers")
    if len(rows) < 2:
        raise DataError(f"rows: {len(rows)}: expected 2 or more, to rank")
    odd = rows[(rows["collapse"] < 0) | (rows["collapse"] > rows["init_correct"])]
    if len(odd):
        of = odd["init_correct"].iat[0]
        raise DataError(f"rows, field 'collapse': {odd['collapse'].iat[0]}: expected a count from 0 to {of}")
    rng, gammas = np.random.default_rng(seed), shapes(rows)
    drawn = [(rng.standard_normal(len(rows)), rng.standard_gamma(gammas)) for _ in range(draws)]
    noise = np.array([z for z, _ in drawn]) * rows["sd_alpha"].to_numpy()
    y = _ranked(betas([both for _, both in drawn]))
    ends = (0, 1) if clip else (-np.inf, np.inf)
    return pd.DataFrame({name: (_ranked(np.clip(rows[name].to_numpy() + noise, *ends)) * y).mean(axis=1)
                         for name in predictors})


def _ranked(values):
    return sps.zscore(sps.rankdata(values, axis=1), axis=1)


def errors_in_variables(
    rows, predictor="alpha_tot", *, clip=True, draws=20_000, seed=20260427, level=0.95
):
    """Rank association of latent flip rates and collapse rates.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `correlations`.
    predictor : str
        Column with the flip rates.
    clip, draws, seed
        As for `correlations`; the defaults are those published for the realised cohort, ``**latent.SEALED``
        gives those of the earlier sealed rows.
    level : float
        Coverage of the interval.

    Returns
    -------
    DataFrame
        One line: ``predictor, n_rows, rho`` (of the estimates), ``median, mean, low, high`` (quantiles over
        draws), ``share_positive, draws, seed``.

    Raises
    ------
    DataError
        As `correlations`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.6 (R1) and C.7.

    Examples
    --------
    >>> rows = pd.DataFrame({"alpha_tot": [0.1, 0.3, 0.9], "sd_alpha": 0.01, "collapse": [1, 20, 90],
    ...                      "init_correct": 100})
    >>> errors_in_variables(rows, draws=20)[["rho", "median", "share_positive"]].round(6).values.tolist()
    [[1.0, 1.0, 1.0]]
    """
    rho = correlations(rows, [predictor], clip=clip, draws=draws, seed=seed)[predictor]
    low, high = np.quantile(rho, [(1 - level) / 2, (1 + level) / 2])
    return pd.DataFrame([{
        "predictor": predictor, "n_rows": len(rows),
        "rho": sps.spearmanr(rows[predictor], rows["collapse"] / rows["init_correct"]).statistic,
        "median": np.median(rho), "mean": rho.mean(), "low": low, "high": high,
        "share_positive": (rho > 0).mean(), "draws": draws, "seed": seed,
    }])
