"""The pre-debate screen: does a model's probe flip rate rank its conditional collapse?

Works on the frame of model rows (one line a model-scaffold row) and knows nothing of files. The unit of the
primary test is the family: rows of one family are averaged first, then ranked, and all orders of the families
are counted. Everything at the level of model rows, and everything that drops, regroups or adds rows, is a
sensitivity to it.
"""

import numpy as np
import pandas as pd

from analysis.association import (
    LEVELS,
    checked,
    counted,
    derived,
    effective_families,
    family_association,
    family_means,
    partial,
    row_association,
)
from analysis.errors import DataError, choice
from analysis.family_draws import family_bootstrap
from analysis.latent import errors_in_variables
from analysis.pairs import pairwise_audit, plan_families

__all__ = [
    "ALL_ADDED", "LEVELS", "PAPER", "PREDICTORS",
    "checks", "comparators", "drop_families", "effective_families", "errors_in_variables",
    "family_association", "family_means", "leave_one_family_out", "leave_one_row_out", "pairwise_audit",
    "partial", "plan_families", "row_association", "taxonomies", "with_added",
]

PREDICTORS = ("alpha_tot", "init_acc", "capability_pressure", "final_acc", "correction_rate", "collapse_rate")
PAPER = "paper"
ALL_ADDED = "all added"


def drop_families(rows, families, *, level="family", predictor="alpha_tot", outcome="c_cond", how="mean",
by="family"):
    """The association without some families.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `family_association`.
    families : str or list of str
        Families to drop together.
    level : {"family", "row"}
        Test family values, or the model rows that remain.
    predictor, outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        One line: ``dropped`` (names joined by " + ") and the columns of `family_association` or
        `row_association`.

    Raises
    ------
    DataError
        When a family is not among the rows.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2, Table 24.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.3, 0.4, 0.5],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03]})
    >>> drop_families(rows, ["I"])[["dropped", "n_families", "rho", "two_sided_count", "n_orders"]]
      dropped  n_families  rho  two_sided_count  n_orders
    0       I           3  1.0                2         6
    """
    choice("level", level, LEVELS)
    families = [families] if isinstance(families, str) else list(families)
    checked(rows, [], by)
    for family in families:
        if family not in set(rows[by]):
            raise DataError(f"{by}={family!r}: expected one of {', '.join(sorted(set(rows[by])))}")
    left = rows[~rows[by].isin(families)]
    if level == "family":
        out = family_association(left, predictor, outcome, how=how, by=by)
    else:
        out = row_association(left, predictor, outcome, by=by)
    out.insert(0, "dropped", " + ".join(families))
    return out


def leave_one_family_out(
    rows, *, level="family", predictor="alpha_tot", outcome="c_cond", how="mean", by="family"
):
    """The association without each family in turn.

    Parameters
    ----------
    rows, level, predictor, outcome, how, by
        As for `drop_families`.

    Returns
    -------
    DataFrame
        One line a family, sorted by name, with the columns of `drop_families`.

    Raises
    ------
    DataError
        As `family_association`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2, Tables 23 and 24.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.3, 0.4, 0.5],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03]})
    >>> leave_one_family_out(rows)["rho"].tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    checked(rows, [predictor, outcome], by)
    drops = [drop_families(rows, [family], level=level, predictor=predictor, outcome=outcome, how=how, by=by)
             for family in sorted(set(rows[by]))]
    return pd.concat(drops, ignore_index=True)


def leave_one_row_out(
    rows, family="Qwen", *, predictor="alpha_tot", outcome="c_cond", how="mean", by="family"
):
    """Both associations without each model row of one family in turn.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `family_association`.
    family : str or None
        Family whose rows are dropped; None for every row.
    predictor, outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        One line a dropped row, in the order of `rows`: ``dropped, n_rows, row_rho, row_p_asymptotic,
        row_p_asymptotic_one_sided, n_families, family_rho, family_p_two_sided, family_p_one_sided,
        family_two_sided_count, family_one_sided_count, family_n_orders``.

    Raises
    ------
    DataError
        When the family is not among the rows.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2, Table 24.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcde"), "family": list("FFGHI"),
    ...                      "alpha_tot": [0.1, 0.3, 0.4, 0.5, 0.7], "c_cond": [0.0, 0.02, 0.05, 0.03, 0.2]})
    >>> left = leave_one_row_out(rows, "F")
    >>> left[["dropped", "n_rows", "row_rho", "family_rho", "family_two_sided_count"]]
      dropped  n_rows  row_rho  family_rho  family_two_sided_count
    0       a       4      0.8         0.8                       8
    1       b       4      0.8         0.8                       8
    """
    checked(rows, [predictor, outcome], by)
    if family is not None and family not in set(rows[by]):
        raise DataError(f"{by}={family!r}: expected one of {', '.join(sorted(set(rows[by])))}")
    records = []
    for name in rows["row"] if family is None else rows.loc[rows[by] == family, "row"]:
        left = rows[rows["row"] != name]
        single = row_association(left, predictor, outcome, by=by).iloc[0]
        grouped = family_association(left, predictor, outcome, how=how, by=by).iloc[0]
        records.append({
            "dropped": name, "n_rows": single["n_rows"], "row_rho": single["rho"],
            "row_p_asymptotic": single["p_asymptotic"],
            "row_p_asymptotic_one_sided": single["p_asymptotic_one_sided"],
            "n_families": grouped["n_families"],
            **{f"family_{field}": grouped[field] for field in (
                "rho", "p_two_sided", "p_one_sided", "two_sided_count", "one_sided_count", "n_orders")},
        })
    return counted(records)


def taxonomies(rows, groupings, *, predictor="alpha_tot", outcome="c_cond", how="mean", by="family"):
    """The family association under other groupings of the same rows.

    Parameters
    ----------
    rows : DataFrame
        Model rows, as for `family_association`.
    groupings : dict of {str: dict of {str: str}} or DataFrame
        Taxonomy to row to group, or a frame with `taxonomy, row, group`. A row a taxonomy does not list keeps
        its family.
    predictor, outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        One line a taxonomy, the rows' own first (named after `by`): ``taxonomy`` and the columns of
        `family_association`, with the number of groups in ``n_families``.

    Raises
    ------
    DataError
        When the frame lacks a column.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.2, Table 24.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FFGH"), "alpha_tot": [0.1, 0.3, 0.4, 0.5],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03]})
    >>> taxonomies(rows, {"F split": {"a": "F1", "b": "F2"}})[["taxonomy", "n_families", "rho"]]
      taxonomy  n_families  rho
    0   family           3  0.5
    1  F split           4  0.8
    """
    if isinstance(groupings, pd.DataFrame):
        for name in ("taxonomy", "row", "group"):
            if name not in groupings:
                raise DataError(f"groupings: no column {name!r}: expected taxonomy, row, group")
        groupings = {name: dict(zip(lines["row"], lines["group"], strict=True))
                     for name, lines in groupings.groupby("taxonomy", sort=False)}
    checked(rows, [predictor, outcome], by)
    parts = []
    for name, groups in {by: {}, **groupings}.items():
        grouped = rows.assign(**{by: [groups.get(*line) for line in zip(rows["row"], rows[by], strict=True)]})
        part = family_association(grouped, predictor, outcome, how=how, by=by)
        part.insert(0, "taxonomy", name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def comparators(rows, predictors=PREDICTORS, outcome="c_cond", *, how="mean", by="family"):
    """How well other quantities rank the same outcome, over model rows and over families.

    Parameters
    ----------
    rows : DataFrame
        Model rows. `capability_pressure` (1 - init_acc) and `collapse_rate` (collapse / n) are made when
        absent.
    predictors : list of str
        Columns; each is tested on the rows that have it.
    outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        One line a predictor: ``predictor, outcome, row_n, row_rho, row_p_asymptotic, family_n, family_rho,
        family_p_asymptotic, direction`` (sign of the family rho), exact ``family_p_two_sided``, and
        ``family_p_one_sided`` in that direction, with their counts and ``family_n_orders``; ``note``.

    Raises
    ------
    DataError
        As `family_association`.

    Notes
    -----
    Only the flip rate and initial accuracy are known before a debate; final accuracy, correction and collapse
    rate come out of the debates themselves and show how much of the association is confounded, not a rival
    screen.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. C.5, Table 4.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "init_acc": [0.9, 0.8, 0.6, 0.7],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03]})
    >>> tested = comparators(rows, ["init_acc", "capability_pressure"])
    >>> tested[["predictor", "family_rho", "family_one_sided_count"]]
                 predictor  family_rho  family_one_sided_count
    0             init_acc        -1.0                       1
    1  capability_pressure         1.0                       1
    """
    records = []
    for predictor in predictors:
        single = row_association(rows, predictor, outcome, by=by).iloc[0]
        grouped = family_association(rows, predictor, outcome, how=how, by=by).iloc[0]
        observed = grouped
        if grouped["rho"] < 0:
            turned = rows.assign(**{predictor: -derived(rows)[predictor]})
            observed = family_association(turned, predictor, outcome, how=how, by=by).iloc[0]
        records.append({
            "predictor": predictor, "outcome": outcome, "row_n": single["n_rows"], "row_rho": single["rho"],
            "row_p_asymptotic": single["p_asymptotic"], "family_n": grouped["n_families"],
            "family_rho": grouped["rho"], "family_p_asymptotic": grouped["p_asymptotic"],
            "direction": {1: "positive", -1: "negative", 0: "none"}.get(np.sign(grouped["rho"]), ""),
            "family_p_two_sided": grouped["p_two_sided"], "family_p_one_sided": observed["p_one_sided"],
            "family_two_sided_count": grouped["two_sided_count"],
            "family_one_sided_count": observed["one_sided_count"], "family_n_orders": grouped["n_orders"],
            "note": grouped["note"] or single["note"],
        })
    return counted(records)


def with_added(rows, added, *, predictor="alpha_tot", outcome="c_cond", how="mean", by="family"):
    """The primary statistic with outside rows, each alone and all together: a sensitivity, never the result.

    Parameters
    ----------
    rows : DataFrame
        The cohort's model rows, as for `family_association`.
    added : DataFrame
        Outside rows with at least `row`. One without family, predictor or outcome gets a line that says so.
    predictor, outcome, how, by
        As for `family_association`.

    Returns
    -------
    DataFrame
        First the cohort as it is (``rows`` = "paper", ``added`` False), then one line an added row (its id)
        and, with more than one, "all added" (the usable ones): ``rows, added, n_added``, the columns of
        `family_association`, ``row_rho`` over all model rows, ``note``.

    Raises
    ------
    DataError
        When an added row's id is already taken.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. D.5 does the same for one
    held-out row.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": list("abcd"), "family": list("FGHI"), "alpha_tot": [0.1, 0.3, 0.4, 0.5],
    ...                      "c_cond": [0.0, 0.02, 0.05, 0.03]})
    >>> new = pd.DataFrame({"row": ["x"], "family": ["I"], "c_cond": [0.2]})
    >>> with_added(rows, new)[["rows", "added", "rho", "note"]]
        rows  added  rho                                note
    0  paper  False  0.8
    1      x   True  NaN  alpha_tot is missing: cannot enter
    """
    if added.empty:  # also a frame without any column: nothing was added yet
        added = pd.DataFrame({"row": pd.Series(dtype="str")})
    if "row" not in added:
        raise DataError(f"added rows: no column 'row' in {', '.join(map(str, added.columns))}: expected ids")
    ids = [*rows["row"], *added["row"]]
    taken = [name for name in added["row"] if ids.count(name) > 1]
    if taken:
        raise DataError(f"added row {taken[0]!r}: the id is already taken: expected a new one")
    rows = derived(rows)
    both = pd.concat([rows, derived(added)], ignore_index=True)
    fields = [by, predictor, outcome]
    lacks = {line["row"]: [name for name in fields if name not in both or pd.isna(line[name])]
             for _, line in both[both["row"].isin(added["row"])].iterrows()}

    def line(label, ids, note=""):
        some = both[both["row"].isin([*rows["row"], *ids])]
        found = family_association(some, predictor, outcome, how=how, by=by).iloc[0].to_dict()
        note = "; ".join(text for text in (found.pop("note"), note) if text)
        row_rho = row_association(some, predictor, outcome, by=by)["rho"].item()
        head = {"rows": label, "added": label != PAPER, "n_added": len(ids)}
        return {**head, **found, "row_rho": row_rho, "note": note}

    def empty(label, note):
        head = {"rows": label, "added": True, "n_added": 0}
        return {**head, "predictor": predictor, "outcome": outcome, "how": how, "note": note}

    lines = [line(PAPER, [])]
    for name, gaps in lacks.items():
        why = f"{' and '.join(gaps)} {'is' if len(gaps) == 1 else 'are'} missing: cannot enter"
        lines.append(empty(name, why) if gaps else line(name, [name]))
    if len(lacks) > 1:
        usable = [name for name, gaps in lacks.items() if not gaps]
        left_out = [name for name, gaps in lacks.items() if gaps]
        why = f"without {', '.join(left_out)}" if left_out else ""
        lines.append(line(ALL_ADDED, usable, why) if usable else empty(ALL_ADDED, "no added row can enter"))
    return counted(lines).astype(dict.fromkeys(("n_rows", "n_missing", "n_families"), "Int64"))


def checks(rows):
    """The primary test and the checks around it, side by side.

    Parameters
    ----------
    rows : DataFrame
        Model rows with `row, family, alpha_tot, c_cond, init_acc, debate_revision_proxy, collapse,
        init_correct, sd_alpha`.

    Returns
    -------
    DataFrame
        One line a check: ``check, level`` (family or row), ``n`` (units), ``rho``, ``low, high, interval``
        (95% limits and what they are), ``p_two_sided, p_method`` (exact or t approximation),
        ``two_sided_count, n_orders``.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", Table 23.

    Examples
    --------
    >>> from analysis import data
    >>> found = checks(data.model_rows())
    >>> found["check"].tolist()[0], found["rho"].round(4).tolist()[0]
    ('family means', 0.8929)
    """
    alone, noisy = row_association(rows).iloc[0], errors_in_variables(rows).iloc[0]
    drawn = family_bootstrap(rows).iloc[0]
    lines = []
    for check, found in (("family means", family_association(rows)),
                         ("family medians", family_association(rows, how="median")),
                         ("family means, initial accuracy taken out", partial(rows))):
        line = found.iloc[0]
        lines.append({"check": check, "level": "family", "n": line["n" if "n" in line else "n_families"],
                      "p_method": "exact", **line[["rho", "p_two_sided", "two_sided_count", "n_orders"]]})
    for check, line, rho, interval in (
        ("rows", alone, "rho", "Fisher's z"),
        ("rows, families drawn again", drawn, "rho", "family bootstrap"),
        ("rows, median with noise in both measures", noisy, "median", "latent draws"),
    ):
        lines.append({"check": check, "level": "row", "n": line["n_rows"], "rho": line[rho],
                      **line[["low", "high"]], "interval": interval})
    lines[3] |= {"p_two_sided": alone["p_asymptotic"], "p_method": "t"}
    for name, controls in (("initial accuracy", "init_acc"),
                           ("debate revision proxy", "debate_revision_proxy"),
                           ("both", ["init_acc", "debate_revision_proxy"])):
        line = partial(rows, controls, level="row").iloc[0]
        lines.append({"check": f"rows, {name} taken out", "level": "row", "n": line["n"], "rho": line["rho"],
                      "p_two_sided": line["p_t"], "p_method": "t"})
    return counted(lines).astype({"n": "Int64"})
