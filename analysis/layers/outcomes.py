"""Outcomes that have an answer key: accuracy by arm, and equivalence of two arms.

The unit is the item: repeated runs are averaged first, and arms are compared on the items that all completed.
"""

from dataclasses import replace
from itertools import combinations
from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm

from analysis import stats
from analysis.errors import DataError, choice
from analysis.layers import frames, gates, inference, tokens as budgets
from analysis.layers.results import Gate, Result

CONTAMINATION_LEAD = 0.10  # above the human baseline by this much, items were probably seen in training
FEW_DISCORDANT = 20
MISSING = ("exclude", "incorrect")
JUDGE_LABELS = ("preregistered", "frozen", "post_result")


class Discordance(NamedTuple):
    """Result of `discordance`: two arms on the items that all arms completed."""

    first: str
    second: str
    n: int
    b: int
    c: int
    p: float
    rule_of_three: float
    exact_bound: float
    flags: tuple[str, ...]


class EquivalenceReport(NamedTuple):
    """Result of `equivalence`; `primary` decides, `agree` tells whether all intervals say the same."""

    primary: Result
    others: tuple[Result, ...]
    n: int
    b: int | None
    c: int | None
    equivalent: bool
    agree: bool


# --- accuracy -----------------------------------------------------------------------------------------------

def _outcomes(outcomes, judge):
    """Return the checked rows of one judge, with `reason` for those that have no outcome."""
    frames.need(outcomes, "outcomes", ("item_id", "arm", "attempted"), nullable=("correct",),
                allowed={"correct": (True, False), "attempted": (True, False)})
    if judge is not None:
        frames.need(outcomes, "outcomes", ("judge_model",))
        choice("judge", judge, tuple(outcomes.judge_model.unique()))
        outcomes = outcomes[outcomes.judge_model == judge]
    frames.single(outcomes, "outcomes", "judge_model", "name the judge, outcomes of several are not mixed")
    attempted = outcomes.attempted.astype(bool)
    reason = np.select([~attempted, outcomes.correct.isna()], ["not_attempted", "no_outcome"], "")
    return outcomes.assign(reason=reason,
                           score=outcomes.correct.astype("boolean").astype("Float64").astype(float))


def item_table(outcomes, *, judge=None, missing="exclude"):
    """Score of every item in every arm.

    Parameters
    ----------
    outcomes : DataFrame
        One row a run: ``item_id, arm, correct`` (missing if it ended without outcome), ``attempted``;
        ``judge_model`` where several judges scored the same runs.
    judge : str, optional
        The judge to use; needed if there are several.
    missing : {"exclude", "incorrect"}
        A run without outcome is left out, or counts as wrong; the second only if that was fixed beforehand.

    Returns
    -------
    DataFrame of float
        Index the items, columns the arms, in order of appearance; the mean of an item's runs in an arm, 0..1,
        NaN without any.

    Raises
    ------
    DataError
        On missing fields, values that are not true or false, or several judges without `judge`.
    ValueError
        On an unknown judge or option.

    Examples
    --------
    >>> outcomes = pd.DataFrame({"item_id": ["i", "i", "j"], "arm": ["none", "after", "none"],
    ...                          "correct": [True, False, None], "attempted": True})
    >>> item_table(outcomes).values.tolist()
    [[1.0, 0.0], [nan, nan]]
    """
    choice("missing", missing, MISSING)
    rows = _outcomes(outcomes, judge)
    score = rows.score.where(rows.attempted.astype(bool))
    if missing == "incorrect":
        score = score.fillna(0.0)
    table = rows.assign(score=score).pivot_table(index="item_id", columns="arm", values="score",
                                                 aggfunc="mean", dropna=False, sort=False)
    table = table.reindex(index=rows.item_id.unique(), columns=rows.arm.unique())
    return table.rename_axis(index="item_id", columns="arm")


def accuracy(outcomes, *, judge=None, level=0.95):
    """Accuracy of every arm over the items it completed.

    Parameters
    ----------
    outcomes, judge
        As in `item_table`.
    level : float

    Returns
    -------
    DataFrame
        One line an arm: ``arm, k, n, rate, low, high`` (Wilson; k has fractions where runs were averaged),
        and the runs left out, ``not_attempted`` and ``no_outcome``. Intervals that overlap are no test: see
        `compare`.

    Raises
    ------
    DataError, ValueError
        As `item_table`.

    References
    ----------
    Wilson (1927). "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", sec. 5.

    Examples
    --------
    >>> outcomes = pd.DataFrame({"item_id": range(50), "arm": "none", "correct": [True] * 47 + [False] * 3,
    ...                          "attempted": True})
    >>> accuracy(outcomes).round(4)
        arm   k   n  rate     low    high  not_attempted  no_outcome
    0  none  47  50  0.94  0.8378  0.9794              0           0
    """
    rows = _outcomes(outcomes, judge)
    table = item_table(outcomes, judge=judge)
    found = stats.proportion(table.sum(), table.notna().sum(), level=level)
    lost = pd.crosstab(rows.arm, rows.reason).reindex(
        index=table.columns, columns=["not_attempted", "no_outcome"], fill_value=0)
    return found.assign(**lost).rename_axis("arm").reset_index()


def _complete(outcomes, arms, judge):
    """Return scores of the items that all arms completed, arms, and exclusions."""
    table = item_table(outcomes, judge=judge)
    arms = list(table.columns) if arms is None else list(arms)
    for arm in arms:
        choice("arms", arm, tuple(table.columns))
    if len(arms) < 2 or len(set(arms)) < len(arms):
        raise ValueError(f"arms={arms}: expected two or more different arms")
    whole = table[arms].dropna()
    return whole, arms, len(table) - len(whole)


def _binary(table):
    return bool(table.isin([0, 1]).all(axis=None))


def _discordant(first, second):
    return int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())


def discordance(outcomes, *, arms=None, judge=None):
    """Discordant items of every pair of arms, with McNemar's exact p.

    Parameters
    ----------
    outcomes, judge
        As in `item_table`; one run per item and arm.
    arms : sequence of str, optional
        All arms if left out.

    Returns
    -------
    list of Discordance
        `b` items that only the first arm has right, `c` only the second. b - c = 0 does not say that no item
        differs: with b = c = 0 the flag is ``no_discordant_pairs``, and the bounds limit the discordance
        rate.

    Raises
    ------
    DataError
        As `item_table`, and on items with repeated runs that disagree (they are no pairs: see `compare`).
    ValueError
        On unknown arms, or fewer than two.

    References
    ----------
    McNemar (1947); Fagerland, Lydersen and Laake (2013).

    Examples
    --------
    >>> outcomes = pd.DataFrame({"item_id": list("abab"), "arm": ["none", "none", "after", "after"],
    ...                          "correct": [True, True, True, False], "attempted": True})
    >>> discordance(outcomes)[0][:6]
    ('none', 'after', 2, 1, 0, 1.0)
    """
    table, arms, _ = _complete(outcomes, arms, judge)
    mixed = table[~table.isin([0, 1]).all(axis=1)]
    if len(mixed):
        raise DataError(f"outcomes, item_id {mixed.index.tolist()[0]!r}: repeated runs disagree, "
                        "expected one run per item and arm")
    out = []
    for first, second in combinations(arms, 2):
        b, c = _discordant(table[first], table[second])
        found = inference.mcnemar(b, c, len(table))
        out.append(Discordance(first, second, len(table), b, c, found.p, found.rule_of_three,
                               found.exact_bound, found.flags))
    return out


def compare(outcomes, *, arms=None, judge=None, human_baseline=None, family="accuracy by arm", level=0.95,
            draws=10_000, seed=0):
    """Do arms differ in accuracy, on the items that all of them completed?

    Parameters
    ----------
    outcomes, judge
        As in `item_table`.
    arms : sequence of str, optional
        All if left out; the first ones are subtracted from the later ones.
    human_baseline : float, optional
        Known human accuracy on these items. If every arm's lower limit is 10 points above, the results are
        flagged ``contamination_suspected``.
    family : str
        Name of the pairwise tests that Holm's correction covers.
    level, draws, seed
        Of the bootstrap over items.

    Returns
    -------
    list of Result
        ``<later>_minus_<earlier>`` for every pair of arms, with McNemar's exact p (the sign-flip test, which
        it is a case of, where runs were averaged) and a bootstrap interval over items; and for three or more
        arms ``cochran_q`` over all (undefined for averaged runs or if no item differs). Status "ceiling" when
        all arms reach 0.90: the items cannot tell them apart.

    Raises
    ------
    DataError, ValueError
        As `discordance`.

    References
    ----------
    McNemar (1947); Cochran (1950), The comparison of percentages in matched samples (through statsmodels).

    Examples
    --------
    >>> rows = [(item, arm, int(hit)) for item, hits in enumerate(["111", "100", "011", "110"])
    ...         for arm, hit in zip(["none", "after", "per_turn"], hits)]
    >>> outcomes = pd.DataFrame(rows, columns=["item_id", "arm", "correct"]).assign(attempted=True)
    >>> [(result.name, result.estimate, result.p) for result in compare(outcomes)][:2]
    [('after_minus_none', 0.0, 1.0), ('per_turn_minus_none', -0.25, 1.0)]
    """
    table, arms, dropped = _complete(outcomes, arms, judge)
    rates = accuracy(outcomes, judge=judge).set_index("arm").loc[arms]
    stated = (gates.check(gates.CEILING, rates.rate.min()),)
    runs = _outcomes(outcomes, judge)
    runs = runs[runs.arm.isin(arms)]
    flags = inference.differential_exclusion((runs.reason != "").groupby(runs.arm).sum().to_dict(),
                                             runs.groupby("arm").size().to_dict())
    if human_baseline is not None and rates.low.min() > human_baseline + CONTAMINATION_LEAD:
        flags = (*flags, "contamination_suspected")
    binary = _binary(table)
    common = {"gates": stated, "exclusions": {"not_in_all_arms": dropped} if dropped else {}, "flags": flags}
    pairs = []
    for first, second in combinations(arms, 2):
        result = inference.test_units(
            f"{second}_minus_{first}", table[second] - table[first], "share", unit_name="item",
            n_rows=2 * len(table), level=level, draws=draws, seed=seed, **common)
        if binary and len(table):
            found = inference.mcnemar(*_discordant(table[first], table[second]), len(table))
            result = replace(result, p=found.p, p_method="McNemar, exact", exact=True,
                             n_draws=None).with_flags(*found.flags)
        pairs.append(_at_ceiling(result))
    pairs = inference.holm_results(pairs, family)
    return [*pairs, _at_ceiling(_cochran(table, binary, common))] if len(arms) > 2 else pairs


def _at_ceiling(result):
    """Return a result whose gate of the ceiling failed with the status that says so."""
    failed = any(gate.name == gates.CEILING.name and not gate.passed for gate in result.gates)
    return replace(result, status="ceiling") if failed and result.n_units else result


def _cochran(table, binary, common):
    moved = int((table.nunique(axis=1) > 1).sum())
    q = p = nan
    flags = common["flags"]
    if binary and moved:
        from statsmodels.stats.contingency_tables import cochrans_q  # here: it takes long to import

        found = cochrans_q(table.to_numpy())
        q, p = float(found.statistic), float(found.pvalue)
    else:
        flags = (*flags, "no_discordant_items" if binary else "averaged_runs")
    return Result("cochran_q", q, "chi-square", n_units=len(table), unit_name="item", n_rows=table.size,
                  n_nonzero=moved, p=p, p_method="Cochran Q, chi-square", exact=False, flags=flags,
                  exclusions=common["exclusions"],
                  status="ok" if binary and moved else "undefined").with_gates(*common["gates"])


def released_after(released, cutoff):
    """Were all items published after the latest training cut-off?

    Parameters
    ----------
    released : Series of datetime or str
        Release date by item.
    cutoff : datetime or str
        Latest training cut-off of the models.

    Returns
    -------
    Gate
        Its value is the share of items released later; a missing date counts as earlier.

    Examples
    --------
    >>> released_after(pd.Series(["2026-03-01", "2025-01-01"]), "2025-12-31")
    Gate(name='released_after_cutoff', value=0.5, threshold=1.0, passed=False)
    """
    later = pd.to_datetime(released) > pd.Timestamp(cutoff)
    share = float(later.mean()) if len(later) else nan
    return Gate("released_after_cutoff", share, 1.0, share == 1)


# --- equivalence of two arms --------------------------------------------------------------------------------

def tango(b, c, n, *, level=0.90):
    """Score interval of the difference of two paired shares.

    Parameters
    ----------
    b, c : int
        Items that only the first arm has right, and only the second.
    n : int
        All items.
    level : float

    Returns
    -------
    low, high : float
        Limits of (b - c) / n. Their width is not 0 without discordant items.

    Raises
    ------
    ValueError
        On impossible counts.

    References
    ----------
    Tango, T. (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design.

    Examples
    --------
    >>> [round(end, 6) for end in tango(19, 17, 235)]
    [-0.034376, 0.051701]
    """
    if not (n >= 1 and b >= 0 and c >= 0 and b + c <= n):
        raise ValueError(f"b={b}, c={c}, n={n}: expected counts from 0 with b + c <= n")
    z = norm.isf((1 - level) / 2)

    def score(d):
        # Maximum likelihood share of "only the second" when the difference is d.
        half = (2 * n - b + c) * d - b - c
        share = (sqrt(max(half**2 + 8 * n * c * d * (1 - d), 0.0)) - half) / (4 * n)
        variance = n * (2 * share + d * (1 - d))
        gap = b - c - n * d
        if variance > 0:
            return gap / sqrt(variance)
        return inf * gap if gap else 0.0

    estimate, edge = (b - c) / n, 1 - 1e-12

    def end(side):
        def beyond(d):
            return np.clip(score(d), -1e6, 1e6) + side * z

        far = side * edge
        if estimate * side >= edge or beyond(far) * side > 0:
            return float(side)
        return float(brentq(beyond, estimate, far, xtol=1e-12))

    return end(-1), end(1)


def equivalence(outcomes, margin, *, frozen, judge=None, judge_label="preregistered", arms=("I", "D"),
                missing="exclude", tokens=None, draws=10_000, seed=0):
    """Is one arm as accurate as another, within a margin fixed beforehand?

    Parameters
    ----------
    outcomes, judge, missing
        As in `item_table`. An item without outcome in one arm is left out of both, or counts as wrong.
    margin : float
        Half width of the range of equivalence, a fraction.
    frozen : bool
        Whether margin, judge and items were fixed before any outcome was seen; the result is gated otherwise.
    judge_label : {"preregistered", "frozen", "post_result"}
        "frozen" and "post_result" name additional judges; their results are robustness.
    arms : tuple of str
        The second minus the first. Of a solo, an independent and a debating arm only debating minus
        independent changes nothing but what the members see of each other.
    tokens : Result, optional
        From `tokens.token_match` of the two arms; its verdict joins the flags, without it the flag is
        ``no_token_ledger``.
    draws, seed : int
        Of the bootstrap over items.

    Returns
    -------
    EquivalenceReport
        Three results with 90 % intervals: item bootstrap, Student's t (p of the two one-sided tests) and
        Tango's score interval (binary outcomes only). The bootstrap decides, or with fewer than 20 discordant
        items Tango's. `equivalent`: the deciding interval lies strictly inside (-margin, margin) and no gate
        failed. `b` and `c`: items that only the second and only the first arm has right.

    Raises
    ------
    DataError, ValueError
        As `item_table`; on unknown arms or options or a margin that is not positive.

    References
    ----------
    Schuirmann (1987); Lakens (2017); Tango (1998). "A Layered Analysis of Disagreement and Answer Quality in
    Multi-Agent LLM Debate", sec. 5, three-arm comparison.

    Examples
    --------
    >>> hits = {"I": [True] * 30 + [False] * 30, "D": [True] * 31 + [False] * 29}
    >>> outcomes = pd.DataFrame([{"item_id": i, "arm": arm, "correct": hit, "attempted": True}
    ...                          for arm, row in hits.items() for i, hit in enumerate(row)])
    >>> report = equivalence(outcomes, 0.075, frozen=True)
    >>> report.primary.name, report.primary.interval, report.b, report.c, report.equivalent
    ('D_minus_I', 'Tango score', 1, 0, True)
    """
    choice("judge_label", judge_label, JUDGE_LABELS)
    choice("missing", missing, MISSING)
    if not margin > 0:
        raise ValueError(f"margin={margin}: expected a positive number")
    first, second = arms
    table = item_table(outcomes, judge=judge, missing=missing)
    for arm in arms:
        choice("arms", arm, tuple(table.columns))
    if missing == "incorrect":  # items that an arm has no run of at all
        table = table.fillna(0.0)
    whole = table[[first, second]].dropna()
    x, lost = whole[second] - whole[first], len(table) - len(whole)
    role = "primary" if judge_label == "preregistered" else "robustness"
    flags = () if judge_label == "preregistered" else (f"{judge_label}_judge",)
    verdict = next((f for f in tokens.flags if f in budgets.MATCHES), "") if tokens is not None else ""
    flags = (*flags, f"tokens_{verdict}" if verdict else "no_token_ledger")
    name, common = f"{second}_minus_{first}", {
        "unit_name": "item", "n_rows": 2 * len(whole), "level": 0.90, "role": role,
        "gates": (gates.check(gates.FROZEN_MARGIN, bool(frozen)),), "flags": flags,
        "exclusions": {"not_in_both_arms": lost} if lost else {}, "seed": seed}
    boot = inference.test_units(name, x, "share", test=False, draws=draws, **common)
    if not len(whole):
        return EquivalenceReport(boot, (), 0, None, None, False, True)
    plain = Result(name, boot.estimate, "share", n_units=len(whole), **common).with_gates()
    found = [boot, plain]
    if len(whole) > 1:
        t = inference.tost(x, margin)
        found[1] = replace(plain, low=t.low, high=t.high, interval="Student t", p=t.p,
                           p_method="two one-sided t tests")
        found[1] = found[1].with_flags(*t.flags)
    else:
        found[1] = replace(plain, interval="Student t", status="undefined").with_flags("one_item")
    b = c = None
    decides = 0
    if _binary(whole):
        b, c = _discordant(whole[second], whole[first])
        low, high = tango(b, c, len(whole))
        found.append(replace(plain, low=low, high=high, interval="Tango score"))
        decides = 2 if b + c < FEW_DISCORDANT else 0
    inside = [-margin < result.low and result.high < margin for result in found]  # not if missing
    found = [replace(result, role=role if at == decides else "robustness").with_flags(
        "inside_margin" if within else "not_inside_margin")
             for at, (result, within) in enumerate(zip(found, inside, strict=True))]
    primary = found.pop(decides)
    return EquivalenceReport(primary, tuple(found), len(whole), b, c, inside[decides] and primary.claimable,
                             len(set(inside)) == 1)


def whole_systems(outcomes, *, solo="S", arms=("I", "D"), judge=None, draws=10_000, seed=0):
    """A solo solver against multi-agent arms: whole systems, which differ in more than debate.

    Parameters
    ----------
    outcomes, judge
        As in `item_table`.
    solo : str
        Arm of the solo solver.
    arms : sequence of str
    draws, seed : int

    Returns
    -------
    list of Result
        ``<arm>_minus_<solo>`` on the items of both; descriptive, without p: the roster and the way to the
        final answer change too.

    Raises
    ------
    DataError, ValueError
        As `item_table`.

    Examples
    --------
    >>> outcomes = pd.DataFrame({"item_id": [0, 1] * 2, "arm": ["S", "S", "D", "D"],
    ...                          "correct": [True, True, True, False], "attempted": True})
    >>> [(result.name, result.estimate, result.role) for result in whole_systems(outcomes, arms=["D"])]
    [('D_minus_S', -0.5, 'descriptive')]
    """
    out = []
    for arm in arms:
        table, _, lost = _complete(outcomes, (solo, arm), judge)
        out.append(inference.test_units(
            f"{arm}_minus_{solo}", table[arm] - table[solo], "share", unit_name="item", n_rows=2 * len(table),
            test=False, draws=draws, seed=seed, role="descriptive",
            exclusions={"not_in_both_arms": lost} if lost else {}))
    return out
