"""Conditional collapse of a family predicted by a line through the other families.

Plain least-squares intervals, and intervals that carry the noise of the collapse rates through. Families are
simple means over their rows, as in the primary test.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import latent
from analysis.association import checked, family_means
from analysis.errors import DataError

LEVELS = (80, 95)  # percent
ENDS = [f"{end}_{level}" for level in LEVELS for end in ("low", "high")]


def _line(x, y, at):
    """Least-squares lines through (x, y): prediction at `at` and its error, one a line of `y`."""
    n = len(x)
    away, ahead = x - x.mean(), at - x.mean()
    spread = away @ away
    slope, middle = y @ away / spread, y.mean(axis=-1)
    left = y - np.expand_dims(middle, -1) - np.expand_dims(slope, -1) * away
    error = np.sqrt((left**2).sum(axis=-1) / (n - 2) * (1 + 1 / n + ahead**2 / spread))
    return middle + slope * ahead, error


def _interval(predicted, error, df):
    ends = {}
    for level in LEVELS:
        reach = sps.t.ppf((1 + level / 100) / 2, df) * error
        ends |= {f"low_{level}": predicted - reach, f"high_{level}": predicted + reach}
    return ends


def predict_families(rows, *, predictor="alpha_tot", outcome="c_cond", by="family"):
    """Outcome of each family predicted from the others.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row`, the grouping column, predictor and outcome (fractions); at least four families.
    predictor, outcome, by : str
        Columns.

    Returns
    -------
    DataFrame
        One line a family, sorted by name: ``family, n_rows``, the predictor's mean, ``observed, predicted,
        error`` (standard error of a prediction), ``df``, ``low_80, high_80, low_95, high_95`` (not clipped),
        ``inside_80, inside_95``, ``rank_observed, rank_predicted``.

    Raises
    ------
    DataError
        A column is missing, or fewer than four families have both values.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.4, Table 25.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.2, 0.3, 0.4],
    ...                      "c_cond": [0.1, 0.2, 0.3, 0.6]})
    >>> predict_families(rows)[["family", "predicted", "df", "inside_95"]].round(3).values.tolist()[-1]
    ['I', 0.4, 1, False]
    """
    means = _means(rows, predictor, outcome, by, least=4)
    lines = []
    for i in means.index:
        rest = means.drop(i)
        predicted, error = _line(rest[predictor].to_numpy(), rest[outcome].to_numpy(), means.at[i, predictor])
        df = len(rest) - 2
        lines.append({"family": means.at[i, by], "n_rows": means.at[i, "n_rows"],
                      predictor: means.at[i, predictor], "observed": means.at[i, outcome],
                      "predicted": predicted, "error": error, "df": df, **_interval(predicted, error, df)})
    found = _inside(pd.DataFrame(lines))
    return found.assign(rank_observed=found["observed"].rank(), rank_predicted=found["predicted"].rank())


def _means(rows, predictor, outcome, by, least):
    """Family means in order of their names, from the rows that have both values."""
    known = checked(rows, [predictor, outcome], by).dropna()
    found = known[by].nunique()
    if found < least:
        raise DataError(f"field {by!r}: {found} with {predictor} and {outcome}; expected {least} or more")
    return family_means(known, by=by, columns=[predictor, outcome]).sort_values(by, ignore_index=True)


def _inside(found, low=-np.inf, high=np.inf):
    for level in LEVELS:
        ends = found[[f"low_{level}", f"high_{level}"]].clip(low, high)
        found[f"inside_{level}"] = found["observed"].between(ends.iloc[:, 0], ends.iloc[:, 1])
    return found


def propagate_families(rows, *, draws=20_000, seed=20260430, released_order=True):
    """`predict_families` with the noise of every collapse rate carried through.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `family, alpha_tot, c_cond, collapse, init_correct`; their order matters for seeded
        draws.
    draws, seed : int
        Draws a family; seed of numpy's default generator, used through all families in order of their names.
    released_order : bool
        Draw rate by rate and draw by draw, as the released script does; False draws in blocks, which gives
        other numbers from the same distribution, faster.

    Returns
    -------
    DataFrame
        One line a family: ``family, observed``, then ``low_80, high_80, low_95, high_95`` (fractions, not
        clipped), ``inside_80, inside_95`` for the limits clipped to 0..1.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.4, Table 26: in each draw a
    Jeffreys beta of every row, family means, a line through the other families and t noise scaled by the
    prediction error.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.2, 0.3, 0.4],
    ...                      "collapse": [10, 20, 30, 60], "init_correct": 100})
    >>> rows["c_cond"] = rows["collapse"] / 100
    >>> found = propagate_families(rows, draws=200)
    >>> found["family"].tolist(), bool((found["low_80"] < found["high_80"]).all())
    (['F', 'G', 'H', 'I'], True)
    """
    rng, gammas = np.random.default_rng(seed), latent.shapes(rows)
    means = _means(rows, "alpha_tot", "c_cond", "family", least=4)
    member = (rows["family"].to_numpy() == means["family"].to_numpy()[:, None]).astype(float)
    member /= member.sum(axis=1, keepdims=True)
    x, df = means["alpha_tot"].to_numpy(), len(means) - 3
    lines = []
    for i, line in enumerate(means.itertuples()):
        if released_order:
            drawn = [(rng.standard_gamma(gammas), rng.standard_t(df)) for _ in range(draws)]
            rates, noise = [both for both, _ in drawn], np.array([t for _, t in drawn])
        else:
            rates, noise = rng.standard_gamma(gammas, (draws, len(gammas))), rng.standard_t(df, draws)
        kept = np.arange(len(means)) != i
        predicted, error = _line(x[kept], latent.betas(rates) @ member[kept].T, x[i])
        tails = [tail / 200 for level in LEVELS for tail in (100 - level, 100 + level)]
        ends = np.quantile(predicted + error * noise, tails)
        lines.append({"family": line.family, "observed": line.c_cond, **dict(zip(ENDS, ends, strict=True))})
    return _inside(pd.DataFrame(lines), 0, 1)


def coverage_by_seed(rows, seeds, *, draws=20_000):
    """How many families `propagate_families` covers under other seeds.

    Parameters
    ----------
    rows : DataFrame
        As for `propagate_families`.
    seeds : sequence of int
    draws : int
        Draws a family.

    Returns
    -------
    DataFrame
        One line a seed: ``seed, inside_80, inside_95`` (families covered), ``outside_95`` (the others'
        names), and of the family that comes closest to its upper 95% limit ``closest, observed, high_95``.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.4, Table 26.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.2, 0.3, 0.4],
    ...                      "collapse": [10, 20, 30, 60], "init_correct": 100})
    >>> rows["c_cond"] = rows["collapse"] / 100
    >>> coverage_by_seed(rows, [1, 2], draws=200)["seed"].tolist()
    [1, 2]
    """
    lines = []
    for seed in seeds:
        found = propagate_families(rows, draws=draws, seed=seed, released_order=False)
        closest = found.loc[(found["high_95"] - found["observed"]).abs().idxmin()]
        lines.append({
            "seed": seed, "inside_80": found["inside_80"].sum(), "inside_95": found["inside_95"].sum(),
            "outside_95": ", ".join(found.loc[~found["inside_95"], "family"]), "closest": closest["family"],
            "observed": closest["observed"], "high_95": closest["high_95"],
        })
    return pd.DataFrame(lines)


def prediction_summary(found):
    """What the predictions of all families say together.

    Parameters
    ----------
    found : DataFrame
        From `predict_families`.

    Returns
    -------
    DataFrame
        One line: ``n_families, rho, p`` (Spearman of predicted and observed, t approximation, two-sided),
        ``inside_80, inside_95`` (counts), ``missed_80`` (names), ``mean_rank_error``.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.4.

    Examples
    --------
    >>> found = pd.DataFrame({"family": list("FGH"), "predicted": [1, 2, 3], "observed": [1, 3, 2],
    ...                       "inside_80": [True, True, False], "inside_95": True,
    ...                       "rank_predicted": [1, 2, 3], "rank_observed": [1, 3, 2]})
    >>> prediction_summary(found)[["rho", "inside_80", "missed_80"]].values.tolist()
    [[0.5, 2, 'H']]
    """
    rho = sps.spearmanr(found["predicted"], found["observed"])
    return pd.DataFrame([{
        "n_families": len(found), "rho": rho.statistic, "p": rho.pvalue,
        "inside_80": found["inside_80"].sum(), "inside_95": found["inside_95"].sum(),
        "missed_80": ", ".join(found.loc[~found["inside_80"], "family"]),
        "mean_rank_error": (found["rank_predicted"] - found["rank_observed"]).abs().mean(),
    }])


def predict_rows(rows, added, *, predictor="alpha_tot", outcome="c_cond", by="family"):
    """Outcome of outside rows predicted by the line through all families of the cohort.

    Parameters
    ----------
    rows, added : DataFrame
        The cohort, as for `predict_families` but of at least three families, and outside rows; those without
        predictor or outcome are left out.
    predictor, outcome, by : str
        Columns.

    Returns
    -------
    DataFrame
        One line a usable outside row: ``row, family``, the predictor, ``observed, predicted, error, df``, the
        four limits, ``inside_80, inside_95``.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abc"), "family": list("FGH"), "alpha_tot": [0.1, 0.2, 0.3],
    ...                      "c_cond": [0.1, 0.2, 0.3]})
    >>> new = pd.DataFrame({"row": ["x"], "family": ["F"], "alpha_tot": [0.4], "c_cond": [0.4]})
    >>> predict_rows(rows, new)[["row", "predicted"]].round(3).values.tolist()
    [['x', 0.4]]
    """
    means = _means(rows, predictor, outcome, by, least=3)
    df = len(means) - 2
    columns = ["row", "family", predictor, "observed", "predicted", "error", "df", *ENDS]
    lines = []
    for line in added.to_dict("records"):
        if pd.notna(line.get(predictor)) and pd.notna(line.get(outcome)):
            predicted, error = _line(means[predictor].to_numpy(), means[outcome].to_numpy(), line[predictor])
            lines.append({"row": line["row"], "family": line[by], predictor: line[predictor],
                          "observed": line[outcome], "predicted": predicted, "error": error, "df": df,
                          **_interval(predicted, error, df)})
    return _inside(pd.DataFrame(lines, columns=columns))
