"""The earlier sealed cohort: its rank tests, partial correlations and supplementary checks.

Nine of its eleven rows have released flip rates; they are the rows of the sealed rank tests. Two of the
columns that it was published with, the debate flip rate and the social to argument ratio, are constants in
the released script and are kept as such. """

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import stats
from analysis.association import partial, row_association
from analysis.errors import DataError

CHANNELS = ("alpha_tot", "alpha_adv", "alpha_cor")
# Released tests over all eleven rows, in their order: method, predictor, outcome.
RELEASED = (
    ("Spearman", "debate_flip_rate", "collapse_rate"), ("Spearman", "debate_flip_rate", "c_cond"),
    ("Spearman", "debate_flip_rate", "correction_rate"), ("Spearman", "sa_ratio", "c_cond"),
    ("Kendall", "debate_flip_rate", "c_cond"), ("Spearman", "init_acc", "c_cond"),
    ("Spearman", "init_acc", "collapse_rate"),
)


def nine_rows(sealed_rows, sealed_vectors):
    """The rows of the sealed rank tests, with family, counts, rates and flip rates.

    Parameters
    ----------
    sealed_rows : DataFrame
        `row, family`, counts and rates, as `data.sealed_rows` returns them.
    sealed_vectors : DataFrame
        `row` (without the maker's first name), `alpha_tot, alpha_adv, alpha_cor, alpha_noisy, sd_alpha`.

    Returns
    -------
    DataFrame
        One line a row of `sealed_vectors`, in its order.

    Raises
    ------
    DataError
        A row of the second table is not in the first.

    Examples
    --------
    >>> older = pd.DataFrame({"row": ["Claude Sonnet 4.5", "other"], "family": ["A", "B"],
    ...                       "c_cond": [0.1, 0.2]})
    >>> nine_rows(older, pd.DataFrame({"row": ["Sonnet 4.5"], "alpha_tot": [0.5]})).values.tolist()
    [['Sonnet 4.5', 0.5, 'A', 0.1]]
    """
    known = sealed_rows.assign(row=sealed_rows["row"].str.removeprefix("Claude "))
    flips = sealed_vectors.drop(columns=["init_correct", "collapse"], errors="ignore")
    rows = flips.merge(known, on="row", validate="1:1")
    if len(rows) != len(sealed_vectors):
        lost = sorted(set(sealed_vectors["row"]) - set(rows["row"]))
        raise DataError(f"sealed_vectors.csv, field 'row': {lost[0]!r}; expected a row of sealed_rows.csv")
    return rows


def rank_tests(nine, predictors=(*CHANNELS, "debate_flip_rate"), *, outcome="c_cond"):
    """Rank correlation of each predictor with conditional collapse over the nine rows.

    Parameters
    ----------
    nine : DataFrame
        From `nine_rows`.
    predictors : sequence of str
        Columns.
    outcome : str
        Column.

    Returns
    -------
    DataFrame
        The columns of `row_association` with exact p, one line a predictor.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 4.3, A.3.5 (Table 15) and C.8.

    Examples
    --------
    >>> nine = pd.DataFrame({"row": list("abcd"), "family": "F", "alpha_tot": [1, 2, 3, 4],
    ...                      "c_cond": [1, 3, 2, 4]})
    >>> rank_tests(nine, ["alpha_tot"])[["rho", "two_sided_count", "n_orders"]].values.tolist()
    [[0.8, 8, 24]]
    """
    tests = [row_association(nine, name, outcome, exact=True) for name in predictors]
    return pd.concat(tests, ignore_index=True)


def released_tests(sealed_rows):
    """The correlations released for all eleven rows, most of them with the constant debate flip rate.

    Parameters
    ----------
    sealed_rows : DataFrame
        As `data.sealed_rows` returns them.

    Returns
    -------
    DataFrame
        One line a test: ``method`` (Spearman or Kendall), ``predictor, outcome, n_rows, statistic, p``
        (asymptotic, two-sided).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", A.3.5 (released with Table 16).

    Examples
    --------
    >>> columns = ("debate_flip_rate", "sa_ratio", "init_acc", "c_cond", "collapse_rate", "correction_rate")
    >>> found = released_tests(pd.DataFrame({name: [0.1, 0.2, 0.3, 0.4] for name in columns}))
    >>> len(found), found["statistic"].round(6).unique().tolist()
    (7, [1.0])
    """
    lines = []
    for method, predictor, outcome in RELEASED:
        x, y = sealed_rows[predictor], sealed_rows[outcome]
        found = sps.spearmanr(x, y) if method == "Spearman" else sps.kendalltau(x, y)
        lines.append({"method": method, "predictor": predictor, "outcome": outcome, "n_rows": len(x),
                      "statistic": found.statistic, "p": found.pvalue})
    return pd.DataFrame(lines)


def partials(nine, control="init_acc"):
    """Partial rank correlations of each channel with conditional collapse, a control taken out.

    Parameters
    ----------
    nine : DataFrame
        From `nine_rows`.
    control : str
        Column.

    Returns
    -------
    DataFrame
        The columns of `association.partial`, one line a channel, and ``p_holm`` (Holm over the channels, of
        the t approximation).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.6, Table 28.

    Examples
    --------
    >>> nine = pd.DataFrame({"row": list("abcde"), "family": "F", "init_acc": [1, 1, 2, 2, 1],
    ...                      "alpha_tot": [1, 2, 3, 4, 5], "alpha_adv": [1, 2, 3, 5, 4],
    ...                      "alpha_cor": [5, 4, 3, 1, 2], "c_cond": [2, 1, 4, 3, 5]})
    >>> partials(nine)[["predictor", "rho"]].round(3).values.tolist()
    [['alpha_tot', 0.782], ['alpha_adv', 0.554], ['alpha_cor', -0.554]]
    """
    tests = [partial(nine, control, level="row", predictor=name) for name in CHANNELS]
    found = pd.concat(tests, ignore_index=True)
    return found.assign(p_holm=stats.holm(found["p_t"]))


def left_out_r2(x, y):
    """Share of the rank variance of `y` that a line through the ranks of the other rows predicts.

    Parameters
    ----------
    x, y : Series of float
        Paired values.

    Returns
    -------
    float
        1 - residual over total sum of squares, each row predicted without itself; negative if the mean is the
        better guess.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.8 (2).

    Examples
    --------
    >>> round(left_out_r2(pd.Series([1, 2, 3, 4]), pd.Series([2.0, 4.0, 5.0, 9.0])), 6)
    1.0
    """
    x, y = x.rank().to_numpy(), y.rank().to_numpy()
    away = x - x.mean()
    left = y - y.mean() - (away @ y) / (away @ away) * away
    # What the line misses when a row is not used to fit it, from its pull on its own fitted value.
    missed = left / (1 - 1 / len(x) - away**2 / (away @ away))
    return float(1 - (missed**2).sum() / ((y - y.mean()) ** 2).sum())


def clustered_logit(nine, predictors=("alpha_adv", "init_acc")):
    """Logistic model of each debate that starts right, rows of a family being one cluster.

    Parameters
    ----------
    nine : DataFrame
        Rows with the predictors, `family`, `init_correct` and `collapse` (counts).
    predictors : sequence of str
        Columns, the same for all debates of a row.

    Returns
    -------
    DataFrame
        One line a predictor: ``predictor, coefficient, z`` (robust errors). Working correlation:
        independence.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.8 (3).

    Examples
    --------
    >>> nine = pd.DataFrame({"family": list("FGHI"), "alpha_adv": [0.1, 0.2, 0.4, 0.5], "init_correct": 50,
    ...                      "collapse": [2, 6, 9, 15]})
    >>> found = clustered_logit(nine, ["alpha_adv"])
    >>> bool(found["coefficient"].item() > 0 and found["z"].item() > 2)
    True
    """
    lines = nine.loc[nine.index.repeat(nine["init_correct"])]
    fell = (lines.groupby(level=0).cumcount() < lines["collapse"]).astype(float).to_numpy()
    from statsmodels.genmod.families import Binomial  # here: it takes long to import
    from statsmodels.genmod.generalized_estimating_equations import GEE

    design = np.column_stack([np.ones(len(lines)), lines[list(predictors)]])
    fit = GEE(fell, design, groups=lines["family"].to_numpy(), family=Binomial()).fit()
    return pd.DataFrame({"predictor": list(predictors), "coefficient": fit.params[1:], "z": fit.tvalues[1:]})


def flip_rates(sealed_rows, debates, probe_cells, asked):
    """The released "debate flip rate" beside what debates and probes give.

    Parameters
    ----------
    sealed_rows : DataFrame
        `row`, `debate_flip_rate` (the released constant).
    debates : DataFrame
        Debates of the traced rows, whose names are those of `sealed_rows` in lower case with hyphens.
    probe_cells : DataFrame
        `model, condition, n_flip` (flips are counted among readable replies).
    asked : Series of int
        Probes of the default condition that each model was asked, unreadable replies included.

    Returns
    -------
    DataFrame
        One line a sealed row: ``row, released``; ``any_flip, majority_change`` with ``n`` (debates in which
        an agent's answer, or the majority, is another after Round 1; missing without public debates);
        ``probe_flips, probe_asked, probe_rate`` (default condition, an unreadable reply being no flip);
        ``is_probe_rate`` (the released value is the probe rate to its three decimals; missing if unknown).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 1 and Table 16.

    Examples
    --------
    >>> cells = pd.DataFrame({"model": ["M"], "condition": "default", "n_flip": 5})
    >>> none = pd.DataFrame({"row": [], "n_flipped_1": [], "changed_1": []})
    >>> released = pd.DataFrame({"row": ["M"], "debate_flip_rate": [0.5]})
    >>> found = flip_rates(released, none, cells, pd.Series({"M": 10}))
    >>> found[["released", "probe_rate", "is_probe_rate"]].values.tolist()
    [[0.5, 0.5, True]]
    """
    short = sealed_rows["row"].str.removeprefix("Claude ")
    by_row = debates.assign(any_flip=debates["n_flipped_1"] > 0).groupby("row")
    moved = by_row[["any_flip", "changed_1"]].sum().rename(columns={"changed_1": "majority_change"})
    traced = moved.assign(n=by_row.size()).reindex(short.map(slug)).reset_index(drop=True).astype("Int64")
    flips = probe_cells[probe_cells["condition"] == "default"].groupby("model")["n_flip"].sum()
    out = sealed_rows[["row", "debate_flip_rate"]].reset_index(drop=True).join(traced)
    out = out.rename(columns={"debate_flip_rate": "released"})
    known = pd.Index(asked.index)
    out["probe_flips"] = short.map(flips).where(short.isin(known)).to_numpy()
    out["probe_asked"] = short.map(asked).to_numpy()
    out["probe_rate"] = out["probe_flips"] / out["probe_asked"]
    same = (out["probe_rate"] - out["released"]).abs() < 0.0005 + 1e-9
    return out.assign(is_probe_rate=same.astype("boolean").mask(out["probe_rate"].isna()))


def slug(name):
    """Name of a model as rows are named: lower case, hyphens for blanks.

    Examples
    --------
    >>> slug("Gemini 3-flash")
    'gemini-3-flash'
    """
    return name.lower().replace(" ", "-")


def default_probes_asked(strongest_probe):
    """Probes of the default condition that each model was asked, unreadable replies included.

    Parameters
    ----------
    strongest_probe : DataFrame
        `row, probe_set, n_probes`: its "all" lines count the non-social arm, and there were as many social
        probes.

    Returns
    -------
    Series of int
        By model.

    Examples
    --------
    >>> table = pd.DataFrame({"row": ["M", "M"], "probe_set": ["all", "no_strongest"], "n_probes": [40, 30]})
    >>> default_probes_asked(table).to_dict()
    {'M': 80}
    """
    everything = strongest_probe[strongest_probe["probe_set"] == "all"].set_index("row")["n_probes"]
    return 2 * everything
