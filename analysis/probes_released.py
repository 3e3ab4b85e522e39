"""What the released probe counts and the printed channel results say about how they were made.

Statistics of records are in `analysis.probes`; here are checks of tables that hold only their totals.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 5.2, B.6, C.6 (R3).
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis.probes_channels import ordering
from analysis.probes_contrasts import EPSILON, LOG_CONSTANT, log_ratio, normalised
from analysis.probes_read import CONDITIONS


def social_to_argument(contrasts, *, epsilon=EPSILON, constant=LOG_CONSTANT):
    """Both ratios of released contrasts.

    Parameters
    ----------
    contrasts : DataFrame
        `row, social, argument`.
    epsilon, constant : float
        As for `probes.normalised` and `probes.log_ratio`.

    Returns
    -------
    DataFrame
        The same with `ratio` and `log_ratio`.

    References
    ----------
    Equation 4; C.6 (R3).

    Examples
    --------
    >>> contrasts = pd.DataFrame({"row": ["a", "b"], "social": [0.1, -0.02], "argument": [0.3, 0.18]})
    >>> social_to_argument(contrasts, constant=0.1)[["ratio", "log_ratio"]].round(3).values.tolist()
    [[0.25, -0.693], [-0.1, -1.03]]
    """
    social, argument = contrasts["social"], contrasts["argument"]
    return contrasts.assign(ratio=normalised(social, argument, epsilon=epsilon),
                            log_ratio=log_ratio(social, argument, constant=constant))


def log_ratio_orders(contrasts, *, constants=(1e-2, 1e-3, 1e-4, 1e-5, EPSILON), epsilon=EPSILON):
    """How far ratio and log-ratio order the rows alike, by the constant under the logarithm.

    Parameters
    ----------
    contrasts : DataFrame
        `row, social, argument`.
    constants : sequence of float
        Each is tried.
    epsilon : float
        Of the ratio.

    Returns
    -------
    DataFrame
        `constant`, `n` rows, `n_negative` (rows whose social contrast is negative, for which the printed
        formula has no logarithm), `rho`, `n_moved` (rows that change places).

    References
    ----------
    C.6 (R3).

    Examples
    --------
    >>> contrasts = pd.DataFrame({"row": list("abc"), "social": [0.01, 0.1, -0.1],
    ...                           "argument": [0.02, 0.4, 0.1]})
    >>> log_ratio_orders(contrasts, constants=[1e-3, 1])[["constant", "rho", "n_moved"]].values.tolist()
    [[0.001, 1.0, 0.0], [1.0, 0.5, 2.0]]
    """
    lines = []
    for constant in constants:
        found = social_to_argument(contrasts, epsilon=epsilon, constant=constant)
        moved = found["ratio"].rank() != found["log_ratio"].rank()
        lines.append({
            "constant": constant, "n": len(found), "n_negative": int((found["social"] < 0).sum()),
            "rho": sps.spearmanr(found["ratio"], found["log_ratio"]).statistic, "n_moved": int(moved.sum()),
        })
    return pd.DataFrame(lines)


def argument_readings(contrasts, asked):
    """Which definition the released argument contrasts can have, by whole numbers.

    Parameters
    ----------
    contrasts : DataFrame
        `row, social, argument`: contrasts over the probes of the default condition.
    asked : Series of int
        Probes of one social level, by row (half of the row's probes).

    Returns
    -------
    DataFrame
        `row`, `asked`, `social_flips` and `argument_flips` (the contrasts times `asked`: differences of flips
        between two halves of the probes), `halves` (whether strong and very strong minus weak and moderate is
        possible) and `extremes` (whether very strong minus weak is).

    Notes
    -----
    Two halves of the same flips differ by an even number if and only if all flips are even in number,
    however they are halved: both differences are even or both are odd. The difference of two quarters, in
    rates, counts twice.

    References
    ----------
    Equations 2 and 3; C.6 (R3).

    Examples
    --------
    >>> contrasts = pd.DataFrame({"row": ["a", "b"], "social": [0.1, 0.1], "argument": [0.3, 0.2]})
    >>> argument_readings(contrasts, pd.Series({"a": 10, "b": 10}))[["halves", "extremes"]].values.tolist()
    [[True, False], [False, True]]
    """
    n = contrasts["row"].map(asked)
    flips = {name: contrasts[name] * n for name in ("social", "argument")}
    whole = {name: (values - values.round()).abs() < 1e-6 for name, values in flips.items()}
    even = {name: values.round() % 2 == 0 for name, values in flips.items()}
    return pd.DataFrame({
        "row": contrasts["row"], "asked": n, "social_flips": flips["social"].round(6),
        "argument_flips": flips["argument"].round(6),
        "halves": whole["social"] & whole["argument"] & (even["social"] == even["argument"]),
        "extremes": whole["argument"] & even["argument"],
    })


def effect_readings(printed):
    """Whether printed d and p of a row can belong together, under three readings.

    Parameters
    ----------
    printed : DataFrame
        `n` (pairs of records), `d`, `d_step`, `p`, `p_step` (half a unit of the last printed digit).

    Returns
    -------
    DataFrame
        The same with `paired_records`, `paired_questions` (a third as many pairs; both with d over the
        standard deviation of the differences) and `two_samples` (d over the common standard deviation,
        records not paired): can a t test on some d that rounds to the printed one give a p that rounds to the
        printed one?

    References
    ----------
    Table 20.

    Examples
    --------
    >>> p = 2 * sps.t.sf(0.2 * 10, 99)
    >>> printed = pd.DataFrame({"n": [100], "d": [0.2], "d_step": [0.0005], "p": [p], "p_step": [0.0005]})
    >>> effect_readings(printed)[["paired_records", "paired_questions", "two_samples"]].values.tolist()
    [[True, False, False]]
    """
    n, d = printed["n"], printed["d"]
    readings = {"paired_records": (n, n - 1), "paired_questions": (n / 3, n / 3 - 1),
                "two_samples": (n / 2, 2 * n - 2)}
    out = printed.copy()
    for name, (weight, df) in readings.items():
        most, least = (2 * sps.t.sf((d + sign * printed["d_step"]) * np.sqrt(weight), df) for sign in (-1, 1))
        out[name] = (least <= printed["p"] + printed["p_step"]) & (most >= printed["p"] - printed["p_step"])
    return out


def rates_by_condition(probe_cells, kept, *, nominal, conditions, each):
    """Flip rates over all records, bounded by where lost records may lie.

    Parameters
    ----------
    probe_cells : DataFrame
        `model, condition, n_flip`: the released counts are of readable replies, an unreadable one is
        no flip.
    kept : Series of int
        Records of the three conditions together, by model.
    nominal : int
        Records of a model that lost none.
    conditions, each : int
        Conditions, and probes a record.

    Returns
    -------
    DataFrame
        One line a model of `kept` and condition: `model, condition, k` flips, `n` probes if no record of this
        condition was lost, `n_least` if all lost ones were of this condition, `rate_low, rate_high`.

    References
    ----------
    Table 20 and Figure 3.

    Examples
    --------
    >>> cells = pd.DataFrame({"model": "m", "condition": "default", "n_flip": [3, 5]})
    >>> found = rates_by_condition(cells, pd.Series({"m": 29}), nominal=30, conditions=3, each=8)
    >>> found[["k", "n", "n_least"]].values.tolist()
    [[8.0, 80.0, 72.0]]
    """
    flips = probe_cells.groupby(["model", "condition"], sort=False)["n_flip"].sum().rename("k").reset_index()
    flips = flips[flips["model"].isin(kept.index)].reset_index(drop=True)
    lost = nominal - flips["model"].map(kept)
    most = nominal / conditions
    out = flips.assign(n=most * each, n_least=(most - lost) * each)
    return out.assign(rate_low=out["k"] / out["n"], rate_high=out["k"] / out["n_least"])


def two_arms(table, arms=("greedy", "matched_temperature")):
    """Flip rates of the same rows under two ways of sampling the replies.

    Parameters
    ----------
    table : DataFrame
        `row, arm, alpha`, and what else is known of a row and arm.
    arms : pair of str
        Names in `arm`.

    Returns
    -------
    DataFrame
        One line a row: `row`, one column an arm, `difference` (second minus first), and the largest
        `unparsed_rate` of both (missing where none is released).

    References
    ----------
    G.2.

    Examples
    --------
    >>> table = pd.DataFrame({"row": ["a", "a"], "arm": ["greedy", "matched_temperature"],
    ...                       "alpha": [0.5, 0.4], "unparsed_rate": [0.01, 0.02]})
    >>> two_arms(table)[["difference", "unparsed_rate"]].round(2).values.tolist()
    [[-0.1, 0.02]]
    """
    wide = table.pivot(index="row", columns="arm", values="alpha").reindex(table["row"].unique())[list(arms)]
    wide["difference"] = wide[arms[1]] - wide[arms[0]]
    wide["unparsed_rate"] = table.groupby("row")["unparsed_rate"].max()
    return wide.rename_axis(columns=None).reset_index()


def later_lanes(files, holdouts, *, nominal, near=0.99):
    """Later probe runs by provider lane: records kept, replies unread, flip rates where released.

    Parameters
    ----------
    files : DataFrame
        `file, n_records, n_probes, n_unparsed`: released counts of all probe files; whole runs (names that
        end in "_n200.jsonl") through the provider are taken.
    holdouts : DataFrame
        `row, alpha_default, alpha_anti_social, alpha_anti_argument` of the few whose flip rates are released.
    nominal : int
        Records of a run that was not stopped.
    near : float
        Share of them from which a run is near complete.

    Returns
    -------
    DataFrame
        `lane, n_records, near_complete, n_probes, n_unparsed, default, anti_social, anti_argument, order`
        (rates missing where not released; see `probes.ordering`), most records first.

    References
    ----------
    Table 21.

    Examples
    --------
    >>> files = pd.DataFrame({"file": [f"sa_causal_openrouter_m_1_{run}.jsonl" for run in ("n200", "smoke")],
    ...                       "n_records": [1800, 9], "n_probes": [14400, 72], "n_unparsed": [10, 0]})
    >>> held = pd.DataFrame({"row": ["m-1"], "alpha_default": 0.2, "alpha_anti_social": 0.1,
    ...                      "alpha_anti_argument": 0.3})
    >>> later_lanes(files, held, nominal=1800)[["lane", "near_complete", "order"]].values.tolist()
    [['m-1', True, 'strict']]
    """
    start, end = "sa_causal_openrouter_", "_n200.jsonl"
    chosen = files[files["file"].str.startswith(start) & files["file"].str.endswith(end)]
    key = chosen["file"].str.removeprefix(start).str.removesuffix(end)
    rates = holdouts.set_index(holdouts["row"].str.replace(r"[-.]", "_", regex=True))
    out = pd.DataFrame({
        "lane": key.map(rates["row"]).fillna(key.str.replace("_", "-")), "n_records": chosen["n_records"],
        "near_complete": chosen["n_records"] >= near * nominal, "n_probes": chosen["n_probes"],
        "n_unparsed": chosen["n_unparsed"],
        **{name: key.map(rates[f"alpha_{name}"]) for name in CONDITIONS},
    })
    out["order"] = [ordering(*line) for line in out[list(CONDITIONS)].itertuples(index=False)]
    return out.sort_values("n_records", ascending=False, kind="stable", ignore_index=True)
