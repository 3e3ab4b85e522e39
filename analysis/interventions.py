"""Paired tests and percentages of which only the result is printed: what they could rest on.

A paired comparison of two arms on n questions has two cells that matter: questions that only the first arm
has, and questions that only the second has. Where a paper prints their difference, or a p value, few pairs of
cells may remain, or none.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections E.5, E.6 and E.9.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import claims, claims_arithmetic, rounding
from analysis.errors import choice

TESTS = ("exact", "corrected", "uncorrected")
_TIE = 1e-9  # a value half way between two printed ones may have been rounded either way


# --- McNemar ------------------------------------------------------------------------------------------------


def mcnemar_p(only_a, only_b, *, test="exact"):
    """Two-sided p of McNemar's test for many pairs of discordant cells.

    Parameters
    ----------
    only_a, only_b : array_like of int, shape (m,)
        Questions that only the first and only the second arm has.
    test : {"exact", "corrected", "uncorrected"}
        Binomial; chi-square with the continuity correction; chi-square without it.

    Returns
    -------
    ndarray of float, shape (m,)
        1 where there is no discordant question.

    References
    ----------
    McNemar (1947), Psychometrika 12; Edwards (1948) for the correction.

    Examples
    --------
    >>> mcnemar_p([5, 0], [1, 0]).tolist()
    [0.21875, 1.0]
    >>> float(mcnemar_p([8], [6], test="uncorrected")[0].round(3))
    0.593
    """
    choice("test", test, TESTS)
    a, b = np.atleast_1d(only_a).astype(float), np.atleast_1d(only_b).astype(float)
    total, apart = a + b, np.abs(a - b)
    if test == "exact":
        return np.minimum(1.0, 2 * sps.binom.cdf(np.minimum(a, b), total, 0.5))
    apart = np.maximum(apart - (test == "corrected"), 0)
    return sps.chi2.sf(np.divide(apart**2, total, out=np.zeros_like(total), where=total > 0), 1)


def discordant(n, net=None, *, first=None):
    """All pairs of discordant cells that what is known allows.

    Parameters
    ----------
    n : int
        Pairs, each a question under both arms.
    net : int or sequence of int, optional
        Second arm's count minus the first's; several where rounding leaves several; any unless given.
    first : int, optional
        First arm's count, if known.

    Returns
    -------
    DataFrame
        `only_a`, `only_b`: counts with only_b - only_a among `net`, at most n together, and, if `first` is
        known, only_a at most `first` and only_b at most n - `first`.

    Examples
    --------
    >>> discordant(4, 2).values.tolist()
    [[0, 2], [1, 3]]
    >>> discordant(100, -7, first=80)["only_a"].agg(["min", "max"]).tolist()
    [7, 27]
    """
    only_a, only_b = np.divmod(np.arange((n + 1) ** 2), n + 1)
    fits = only_a + only_b <= n
    if net is not None:
        fits &= np.isin(only_b - only_a, np.atleast_1d(net))
    if first is not None:
        fits &= (only_a <= first) & (only_b <= n - first)
    return pd.DataFrame({"only_a": only_a[fits], "only_b": only_b[fits]})


class Range(NamedTuple):
    """Smallest and largest p over `cells` possible pairs of discordant cells."""

    low: float
    high: float
    cells: int


def mcnemar_range(n, net=None, *, first=None, test="exact"):
    """Range of McNemar's p over everything that could lie behind the printed counts.

    Parameters
    ----------
    n, net, first
        As for `discordant`.
    test : str
        As for `mcnemar_p`.

    Returns
    -------
    Range
        Ends are NaN where nothing fits.

    References
    ----------
    E.5, E.6, Table 36.

    Examples
    --------
    >>> found = mcnemar_range(100, -7, first=80)
    >>> round(found.low, 4), round(found.high, 4), found.cells
    (0.0156, 0.3817, 21)
    """
    cells = discordant(n, net, first=first)
    p = mcnemar_p(cells["only_a"], cells["only_b"], test=test)
    return Range(float(p.min()), float(p.max()), len(p)) if len(p) else Range(np.nan, np.nan, 0)


def cells_for_p(p, step, n, net=None, *, first=None, test="exact"):
    """Pairs of discordant cells whose p rounds to a printed one.

    Parameters
    ----------
    p, step : float
        Printed p and one unit of its last digit.
    n, net, first, test
        As for `mcnemar_range`.

    Returns
    -------
    DataFrame
        `only_a`, `only_b`, `p`; empty where the printed p cannot come from this test.

    References
    ----------
    E.5, E.6, Table 36.

    Examples
    --------
    >>> cells_for_p(0.485, 0.001, 800, 10)[["only_a", "only_b"]].values.tolist()
    [[78, 88]]
    """
    cells = discordant(n, net, first=first)
    cells["p"] = mcnemar_p(cells["only_a"], cells["only_b"], test=test)
    return cells[(cells["p"] - p).abs() <= step / 2 + _TIE * step].reset_index(drop=True)


# --- what is printed ----------------------------------------------------------------------------------------


class Paired(NamedTuple):
    """Claims that tell of one paired comparison: questions, p, difference in points, percentages."""

    n: str
    p: str | None = None
    net: str | None = None
    sign: int = 1  # -1 where the difference is printed as a reduction
    arms: tuple | None = None


PAIRED = {
    "Haiku, independence prompt, accuracy": Paired("e5.n", arms=("e5.haiku_acc0", "e5.haiku_acc1")),
    "Haiku, independence prompt, collapse": Paired("e5.n", "e5.haiku_mcn"),
    "GPT-4o-mini, independence prompt, accuracy": Paired("e5.n", arms=("e5.gpt_acc0", "e5.gpt_acc1")),
    "GPT-4o-mini, independence prompt, collapse": Paired("e5.n", "e5.gpt_mcn"),
    "Phi-4-mini, frozen policy, accuracy": Paired("e6.test_n", "e6.phi_acc_p", "e6.phi_acc"),
    "Phi-4-mini, frozen policy, collapse": Paired("e6.test_n", "e6.phi_coll_p", "e6.phi_coll"),
    "Phi-4-mini, fresh questions, accuracy": Paired("e6.rep_n", "e6.rep_acc_p", "e6.rep_acc", -1),
    "Phi-4-mini, fresh questions, collapse": Paired("e6.rep_n", "e6.rep_coll_p", "e6.rep_coll"),
    "Haiku, frozen policy, accuracy": Paired("e6.test_n", "e6.haiku_acc_p"),
    "Haiku, frozen policy, collapse": Paired("e6.test_n", "e6.haiku_coll_p"),
    "Qwen3-4B, frozen policy, accuracy": Paired("e6.q4_test", "e6.q4_acc_p"),
    "Qwen3-4B, frozen policy, collapse": Paired("e6.q4_test", "e6.q4_coll_p"),
}
# Printed percentages and the claim that prints their denominator.
PERCENTAGES = {
    "development questions, Haiku": ("e6.dev_n", "e9.haiku.*"),
    "development questions, Phi-4-mini": ("e6.dev_n", "e9.phi.*"),
    "held-out questions, Phi-4-mini": ("e6.test_n", "e6.phi_acc,e6.phi_coll"),
    "fresh questions, Phi-4-mini": ("e6.rep_n", "e6.rep_acc,e6.rep_coll"),
    "independence prompt": ("e5.n", "e5.haiku_acc*,e5.gpt_acc*"),
}


def paired_tests():
    """The paper's paired tests: range of p that the printed counts leave, and cells that give the printed p.

    Returns
    -------
    DataFrame
        One line a test: `claim` (that prints p, or the first arm), `test`, `n`, `net` (second arm minus first,
        missing where nothing tells), `low` and `high` (range of the exact p over all cells that fit), `p`
        (printed, missing where none is), then
        `exact`, `corrected`, `uncorrected`: pairs of cells whose p under this test rounds to the printed one;
        `only_a`, `only_b` where the exact test leaves one pair; `apart_low`, `apart_high`: range of
        the difference, unsigned, over the pairs of the exact test. Without a known difference, a pair and its
        mirror image count once.

    References
    ----------
    E.5 and E.6, Tables 34 and 36.

    Examples
    --------
    >>> found = paired_tests().set_index("claim").loc["e6.phi_acc_p"]
    >>> found[["n", "exact", "only_a", "only_b"]].astype(int).tolist()
    [800, 1, 78, 88]
    """
    named = [(test.n, test.p, test.net, *(test.arms or ())) for test in PAIRED.values()]
    printed = _printed([claim for names in named for claim in names if claim])
    lines = []
    for name, test in PAIRED.items():
        n, net, first = _whole(printed[test.n]), None, None
        if test.arms is not None:
            (first,), (second,) = (rounding.possible_counts(printed[arm], n) for arm in test.arms)
            net = [second - first]
        elif test.net is not None:
            net = [test.sign * k for k in rounding.possible_counts(printed[test.net], n)]
        span = mcnemar_range(n, net, first=first)
        line = {"claim": test.p or test.arms[0], "test": name, "n": n, "net": net[0] if net else np.nan}
        line |= {"low": span.low, "high": span.high}
        lines.append(line | _with_p(printed.get(test.p), n, net, first))
    out = pd.DataFrame(lines)
    counts = ["net", *TESTS, "apart_low", "apart_high", "only_a", "only_b"]
    return out.astype(dict.fromkeys(counts, "Int64"))


def _printed(ids):
    """Numbers as printed, by claim id."""
    return claims.registry().set_index("id").loc[list(dict.fromkeys(ids)), "printed"].to_dict()


def _whole(text):
    return int(claims.parse_printed(text).value)


def _with_p(text, n, net, first):
    """What a printed p adds: how many pairs of cells give it under each test, and what they share."""
    if text is None:
        return {}
    printed = claims.parse_printed(text)
    cells = {test: cells_for_p(printed.value, printed.step, n, net, first=first, test=test) for test in TESTS}
    if net is None:
        cells = {test: found[found["only_a"] <= found["only_b"]] for test, found in cells.items()}
    exact = cells["exact"]
    apart = (exact["only_b"] - exact["only_a"]).abs()
    out = {"p": printed.value, **{test: len(found) for test, found in cells.items()}}
    out |= {"apart_low": apart.min(), "apart_high": apart.max()}
    return out | (exact[["only_a", "only_b"]].iloc[0].to_dict() if len(exact) == 1 else {})


def percentages():
    """The printed percentages of small samples, and the counts that give them.

    Returns
    -------
    DataFrame
        One line a group of percentages with one denominator: `claims` (patterns of ids), `of` (what), `n`
        (printed), `percents` (how many are printed), `possible` (how many of these some count out of n
        gives), `sizes` (the denominators up to n that give them all, a list).

    References
    ----------
    E.5, E.6 and E.9.

    Examples
    --------
    >>> found = percentages().set_index("claims").loc["e9.phi.*"]
    >>> found[["n", "percents", "possible"]].astype(int).tolist(), found["sizes"]
    ([200, 6, 0], [192])
    """
    every = claims.registry()["id"].tolist()
    lines = []
    for name, (size, patterns) in PERCENTAGES.items():
        ids = claims_arithmetic.operands(patterns, every)
        printed = _printed([size, *ids])
        n, texts = _whole(printed[size]), [printed[claim] for claim in ids]
        possible = sum(bool(rounding.possible_counts(text, n)) for text in texts)
        lines.append({"claims": patterns, "of": name, "n": n, "percents": len(texts), "possible": possible,
                      "sizes": rounding.possible_denominators(texts, most=n)})
    return pd.DataFrame(lines)
