"""Printed numbers of the robustness checks: noise carried through, other specifications, repeated probes.

Draws follow the order of the released scripts, so that a seed gives the published numbers. A beta is drawn
as numpy draws it, from two gammas, because many small calls of its beta take twice as long.
"""

from itertools import combinations, product

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import data, screen, stats
from analysis.claims_screen import _nine

OUTCOMES = ("c_cond", "c_cond_low", "collapse_rate")
NOISY = ("alpha_tot", "alpha_no_strongest", "alpha_adv")
REPEATS = (1, 2, 3)


# --- noise in collapse rates and flip rates -----------------------------------------------------------------


def _shapes(rows):
    """Shapes of the gammas behind each row's Jeffreys posterior of conditional collapse, two a row."""
    return np.column_stack([rows["collapse"] + 0.5, rows["init_correct"] - rows["collapse"] + 0.5]).ravel()


def _rates(gammas):
    """Beta draws from pairs of gamma draws."""
    gammas = np.asarray(gammas)
    return gammas[:, ::2] / (gammas[:, ::2] + gammas[:, 1::2])


def propagated_predictions(model_rows, *, draws=20_000, seed=20260430):
    """Collapse of each family predicted from the others, the noise of every collapse rate carried through.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort; the order of rows matters for seeded draws.
    draws, seed : int
        Draws a family; seed of numpy's default generator, used through all families in order of their names.

    Returns
    -------
    DataFrame
        One line a family: ``family, observed``, then ``low_80, high_80, low_95, high_95`` (fractions, not
        clipped), ``inside_80, inside_95`` for the limits clipped to 0..1.

    References
    ----------
    C.4, Table 26: in each draw a Jeffreys beta of every row, family means, a line through the six other
    families and t noise with four degrees of freedom scaled by the prediction error.

    Examples
    --------
    >>> found = propagated_predictions(data.model_rows(), draws=200)
    >>> found["family"].tolist()[:2], bool((found["low_80"] < found["high_80"]).all())
    (['Anthropic', 'DeepSeek'], True)
    """
    rng = np.random.default_rng(seed)
    shapes = _shapes(model_rows)
    families = screen.family_means(model_rows, columns=["alpha_tot", "c_cond"]).sort_values("family")
    member = (model_rows["family"].to_numpy() == families["family"].to_numpy()[:, None]).astype(float)
    member /= member.sum(axis=1, keepdims=True)
    x, n = families["alpha_tot"].to_numpy(), len(families) - 1
    lines = []
    for i, line in enumerate(families.itertuples()):
        drawn = [(rng.standard_gamma(shapes), rng.standard_t(n - 2)) for _ in range(draws)]
        noise = np.array([t for _, t in drawn])
        kept = np.arange(n + 1) != i
        y = _rates([gammas for gammas, _ in drawn]) @ member[kept].T
        away, ahead = x[kept] - x[kept].mean(), x[i] - x[kept].mean()
        spread = away @ away
        slope, middle = y @ away / spread, y.mean(axis=1)
        left = y - middle[:, None] - slope[:, None] * away
        error = np.sqrt((left**2).sum(axis=1) / (n - 2) * (1 + 1 / n + ahead**2 / spread))
        ends = np.quantile(middle + slope * ahead + error * noise, [0.1, 0.9, 0.025, 0.975])
        low_80, high_80, low_95, high_95 = np.clip(ends, 0, 1)
        lines.append({
            "family": line.family, "observed": line.c_cond,
            **dict(zip(("low_80", "high_80", "low_95", "high_95"), ends, strict=True)),
            "inside_80": low_80 <= line.c_cond <= high_80, "inside_95": low_95 <= line.c_cond <= high_95,
        })
    return pd.DataFrame(lines)


def predictions(model_rows):
    """How many families lie inside the intervals of `propagated_predictions`.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.4, Table 26.

    Examples
    --------
    >>> int(predictions(data.model_rows())["c4.eiv80"])
    5
    """
    found = propagated_predictions(model_rows)
    return {"c4.eiv80": found["inside_80"].sum(), "c4.eiv95": found["inside_95"].sum()}


def _ranked(values):
    return sps.zscore(sps.rankdata(values, axis=1), axis=1)


def _latent(rows, predictors, *, draws, seed, ends=(-np.inf, np.inf)):
    """Rank correlations of noisy predictors with Jeffreys draws of conditional collapse, the noise shared."""
    rng, shapes = np.random.default_rng(seed), _shapes(rows)
    drawn = [(rng.standard_normal(len(rows)), rng.standard_gamma(shapes)) for _ in range(draws)]
    noise = np.array([z for z, _ in drawn]) * rows["sd_alpha"].to_numpy()
    y = _ranked(_rates([gammas for _, gammas in drawn]))
    return {name: (_ranked(np.clip(rows[name].to_numpy() + noise, *ends)) * y).mean(axis=1)
            for name in predictors}


def measurement_error(model_rows, *, draws=20_000, seed=20260427):
    """Rank association of latent flip rates and collapse rates, drawn around their estimates.

    Parameters
    ----------
    model_rows : DataFrame
        The realised cohort; the order of rows matters for seeded draws.
    draws, seed : int
        Number of draws; seed of numpy's default generator.

    Returns
    -------
    dict of str to float

    References
    ----------
    Sections 4.3 and C.6 (R1): a normal draw of every flip rate, clipped to 0..1, then a Jeffreys beta draw
    of every conditional collapse, in each round.

    Examples
    --------
    >>> bool(0.7 < measurement_error(data.model_rows(), draws=50)["s4.3.eiv_median"] < 0.9)
    True
    """
    rho = _latent(model_rows, ["alpha_tot"], draws=draws, seed=seed, ends=(0, 1))["alpha_tot"]
    low, high = np.quantile(rho, [0.025, 0.975])
    return {
        "s4.3.eiv_median": np.median(rho), "c6.eiv14_lo": low, "c6.eiv14_hi": high,
        "c6.eiv14_pr": (rho > 0).mean(),
    }


# --- the sealed nine rows -----------------------------------------------------------------------------------


def nine_rows(sealed_rows, sealed_vectors, strongest_probe, channel_contrasts):
    """The nine rows of the sealed rank tests with every predictor released for them.

    Parameters
    ----------
    sealed_rows, sealed_vectors, strongest_probe, channel_contrasts : DataFrame
        From `analysis.data`.

    Returns
    -------
    DataFrame
        Rows with `alpha_tot, alpha_adv`, the flip rate without the strongest probe `alpha_no_strongest`,
        `log_ratio` of social to argument contrasts, `alpha_noisy, sd_alpha`, counts and rates.

    Examples
    --------
    >>> names = ("sealed_vectors", "strongest_probe", "channel_contrasts")
    >>> len(nine_rows(data.sealed_rows(), *map(data.table, names)))
    9
    """
    noise = sealed_vectors[["row", "alpha_noisy", "sd_alpha"]]
    rows = _nine(sealed_rows, sealed_vectors).merge(noise, on="row")
    rest = strongest_probe[strongest_probe["probe_set"] == "no_strongest"].set_index("row")
    ratios = social_to_argument(channel_contrasts).set_index("row")["log_ratio"]
    return rows.assign(alpha_no_strongest=rows["row"].map(rest["n_flip"] / rest["n_probes"]),
                       log_ratio=rows["row"].map(ratios))


def social_to_argument(channel_contrasts, *, constant=1e-3):
    """The social contrast set against the argument contrast, as a ratio and as a log-ratio.

    Parameters
    ----------
    channel_contrasts : DataFrame
        `row, social, argument`.
    constant : float
        Added to the denominator, and to both contrasts under the logarithm, where negative ones count as 0.
        The default is the released script's; with a smaller one the two orders agree better.

    Returns
    -------
    DataFrame
        ``row, ratio, log_ratio``.

    References
    ----------
    Section 3, eq. 4; C.6 (R3).

    Examples
    --------
    >>> contrasts = pd.DataFrame({"row": ["a", "b"], "social": [0.1, -0.02], "argument": [0.3, 0.18]})
    >>> social_to_argument(contrasts, constant=0.1)[["ratio", "log_ratio"]].round(3).values.tolist()
    [[0.2, -0.693], [-0.067, -1.03]]
    """
    social, argument = channel_contrasts["social"], channel_contrasts["argument"]
    ratio = social / (social.abs() + argument.abs() + constant)
    log = np.log((social.clip(lower=0) + constant) / (argument.clip(lower=0) + constant))
    return pd.DataFrame({"row": channel_contrasts["row"], "ratio": ratio, "log_ratio": log})


def specification_curve(rows, *, draws=5_000, seed=20260424):
    """The sealed association over predictors and outcomes, with and without initial accuracy taken out.

    Parameters
    ----------
    rows : DataFrame
        From `nine_rows`.
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
    C.7.

    Examples
    --------
    >>> names = ("sealed_vectors", "strongest_probe", "channel_contrasts")
    >>> cells = specification_curve(nine_rows(data.sealed_rows(), *map(data.table, names)), draws=100)
    >>> cells["adjusted"].value_counts().to_dict()
    {'none': 12, 'initial accuracy': 12, 'noise': 3}
    """
    start = sps.rankdata(rows["init_acc"])
    start = start - start.mean()

    def left(values):
        ranks = sps.rankdata(values)
        return ranks - ranks @ start / (start @ start) * start

    lines = []
    for predictor, outcome in product((*NOISY, "log_ratio"), OUTCOMES):
        x, y = rows[predictor], rows[outcome]
        lines += [(predictor, outcome, "none", sps.spearmanr(x, y).statistic),
                  (predictor, outcome, "initial accuracy", sps.spearmanr(left(x), left(y)).statistic)]
    drawn = _latent(rows, NOISY, draws=draws, seed=seed)
    lines += [(predictor, "c_cond", "noise", np.median(rho)) for predictor, rho in drawn.items()]
    return pd.DataFrame(lines, columns=["predictor", "outcome", "adjusted", "rho"])


def sealed_noise(rows, *, draws=5_000, seed=20260419):
    """Latent rank correlation of the sealed rows.

    Parameters
    ----------
    rows : DataFrame
        From `nine_rows`.
    draws, seed : int

    Returns
    -------
    dict of str to float

    References
    ----------
    C.6 (R1) and C.7.

    Examples
    --------
    >>> names = ("sealed_vectors", "strongest_probe", "channel_contrasts")
    >>> rows = nine_rows(data.sealed_rows(), *map(data.table, names))
    >>> round(float(sealed_noise(rows)["c6.eiv9_med"]), 3)
    0.733
    """
    rho = _latent(rows, ["alpha_noisy"], draws=draws, seed=seed)["alpha_noisy"]
    low, high = np.quantile(rho, [0.025, 0.975])
    return {"c6.eiv9_med": np.median(rho), "c6.eiv9_lo": low, "c6.eiv9_hi": high,
            "c6.eiv9_pr": (rho > 0).mean()}


def specifications(rows):
    """Number, signs and median of the specifications.

    Parameters
    ----------
    rows : DataFrame
        From `nine_rows`.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.7.

    Examples
    --------
    >>> names = ("sealed_vectors", "strongest_probe", "channel_contrasts")
    >>> specifications(nine_rows(data.sealed_rows(), *map(data.table, names)))["c7.cells"]
    27
    """
    rho = specification_curve(rows)["rho"]
    return {"c7.cells": len(rho), "c7.positive": (rho > 0).sum(), "c7.median": rho.median()}


def strongest_dropped(sealed_rows, sealed_vectors, strongest_probe):
    """The sealed association with and without the strongest argument.

    Parameters
    ----------
    sealed_rows, sealed_vectors, strongest_probe : DataFrame
        From `analysis.data`. The probes are the non-social ones of the default condition: four, then three.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.6 (R2).

    Examples
    --------
    >>> names = ("sealed_vectors", "strongest_probe")
    >>> found = strongest_dropped(data.sealed_rows(), *map(data.table, names))
    >>> round(float(found["c6.r2_base_rho"]), 3), round(float(found["c6.r2_rank"]), 2)
    (0.683, 0.95)
    """
    counts = strongest_probe
    probes = counts.assign(alpha=counts["n_flip"] / counts["n_probes"],
                           adverse=counts["n_flip_right"] / counts["n_init_right_probes"])
    rate = probes.pivot(index="row", columns="probe_set", values=["alpha", "adverse"])
    outcome = _nine(sealed_rows, sealed_vectors).set_index("row")["c_cond"]
    base, dropped = (sps.spearmanr(rate["alpha", name].loc[outcome.index], outcome)
                     for name in ("all", "no_strongest"))
    low, high = stats.fisher_z_interval(dropped.statistic, len(outcome))
    change = pd.concat([rate[name, "no_strongest"] - rate[name, "all"] for name in ("alpha", "adverse")])
    return {
        "c6.r2_base_rho": base.statistic, "c6.r2_base_p": base.pvalue, "c6.r2_drop_rho": dropped.statistic,
        "c6.r2_drop_p": dropped.pvalue, "c6.r2_drop_lo": low, "c6.r2_drop_hi": high,
        "c6.r2_dalpha_lo": change.min(), "c6.r2_dalpha_hi": change.max(),
        "c6.r2_rank": sps.spearmanr(rate["alpha", "all"], rate["alpha", "no_strongest"]).statistic,
    }


def log_ratio(channel_contrasts):
    """Whether ratio and log-ratio order the sealed rows alike.

    Parameters
    ----------
    channel_contrasts : DataFrame
        As for `social_to_argument`.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.6 (R3).

    Examples
    --------
    >>> round(float(log_ratio(data.table("channel_contrasts"))["c6.r3_rho"]), 3)
    0.983
    """
    found = social_to_argument(channel_contrasts)
    return {"c6.r3_rho": sps.spearmanr(found["ratio"], found["log_ratio"]).statistic}


# --- probes repeated on three days --------------------------------------------------------------------------


def repeated_panel(repeat_panel, *, probes_each=8):
    """Agreement of repeated probes within a day and between days.

    Parameters
    ----------
    repeat_panel : DataFrame
        One line a day and question: flip rates and first answers of three repeats, unparsed replies.
    probes_each : int
        Probes a repeat.

    Returns
    -------
    dict of str to float
        Of the days, or pairs of days, the least favourable value.

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> found = repeated_panel(data.table("repeat_panel"))
    >>> found["c6.r5_instab"], float(found["c6.r5_none"])
    (0, 0.04375)
    """
    alpha = repeat_panel[[f"alpha_{k}" for k in REPEATS]]
    first = repeat_panel[[f"answer_{k}" for k in REPEATS]]
    lines = repeat_panel.assign(mean=alpha.mean(axis=1), range=alpha.max(axis=1) - alpha.min(axis=1),
                                unstable=first.nunique(axis=1) > 1, usual=first.mode(axis=1)[0])
    days = lines.groupby("day")
    unread = days["n_unparsed"].sum() / (days.size() * len(REPEATS) * probes_each)
    means, usual = (lines.pivot(index="question", columns="day", values=name) for name in ("mean", "usual"))
    pairs = list(combinations(means.columns, 2))
    apart = pd.DataFrame([(means[a] - means[b]).abs() for a, b in pairs])
    return {
        "c6.r5_instab": int(days["unstable"].sum().max()), "c6.r5_range_mean": days["range"].mean().max(),
        "c6.r5_range_max": lines["range"].max(), "c6.r5_none": unread.max(),
        "c6.r5_rho": min(sps.spearmanr(means[a], means[b]).statistic for a, b in pairs),
        "c6.r5_mad": apart.mean(axis=1).max(), "c6.r5_maxd": apart.max(axis=None),
        "c6.r5_majchg": max((usual[a] != usual[b]).sum() for a, b in pairs),
    }


def reply_temperature(table):
    """Rows and unreadable replies of the sweep over how replies to probes were sampled.

    Parameters
    ----------
    table : DataFrame
        One line a row and arm.

    Returns
    -------
    dict of str to float

    References
    ----------
    G.2.

    Examples
    --------
    >>> reply_temperature(data.table("reply_temperature"))["g2.rows"]
    7
    """
    return {"g2.rows": table["row"].nunique(), "g2.none": table["unparsed_rate"].max()}
