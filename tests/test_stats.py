"""Statistics against hand-computed values, brute force, other libraries and published numbers."""

from itertools import permutations, product
from math import factorial, sqrt

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import stats


def brute_force(x, y):
    """Count orders with scipy's rho of each, the slow and obvious way."""
    rho = sps.spearmanr(x, y).statistic
    every = [np.corrcoef(sps.rankdata(x), ranks)[0, 1] for ranks in permutations(sps.rankdata(y))]
    return (
        sum(abs(r) >= abs(rho) - 1e-12 for r in every),
        sum(r >= rho - 1e-12 for r in every),
        len(every),
    )


# --- exact Spearman ---


@pytest.mark.parametrize(("x", "y"), [
    ([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5]),
    ([1, 2, 3, 4, 5, 6], [6, 5, 4, 2, 3, 1]),
    ([1, 1, 2, 3, 4, 5], [2, 1, 4, 3, 6, 5]),
    ([1, 1, 1, 2, 3, 3], [0.0, 0.0, 0.2, 0.1, 0.5, 0.5]),
    ([1, 1, 1, 1, 1, 2], [3, 1, 2, 2, 2, 9]),
    ([5, 3, 1, 1], [0, 0, 1, 2]),
    ([1, 2], [2, 1]),
])
def test_counts_equal_brute_force(x, y):
    got = stats.exact_spearman(x, y)
    assert (got.two_sided_count, got.one_sided_count, got.n_orders) == brute_force(x, y)
    assert got.rho == pytest.approx(sps.spearmanr(x, y).statistic, abs=1e-14)
    assert got.p_two_sided == got.two_sided_count / got.n_orders
    assert got.p_one_sided == got.one_sided_count / got.n_orders


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=6))
def test_counts_equal_brute_force_with_many_ties(pairs):
    x, y = map(list, zip(*pairs, strict=True))
    got = stats.exact_spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(got.rho) and np.isnan(got.p_two_sided) and got.two_sided_count is None
    else:
        assert (got.two_sided_count, got.one_sided_count, got.n_orders) == brute_force(x, y)


@pytest.mark.parametrize("y", [
    [3, 1, 2, 5, 4, 7, 6],
    [3, 1, 1, 5, 4, 7, 7],
])
def test_equals_scipy_exhaustive_permutation_at_seven(y):
    x = [1, 2, 3, 3, 5, 6, 7] if len(set(y)) < 7 else [1, 2, 3, 4, 5, 6, 7]
    got = stats.exact_spearman(x, y)
    for alternative, p, of in (("greater", got.p_one_sided, lambda r: r), ("greater", got.p_two_sided, abs)):
        found = sps.permutation_test(
            (y,), lambda v, of=of: of(sps.spearmanr(x, v).statistic), permutation_type="pairings",
            n_resamples=np.inf, alternative=alternative,
        )
        assert len(found.null_distribution) == 5040
        assert p == found.pvalue


def test_published_family_ranks():
    # Family means of Table 3 in alphabetical order of family; 62 and 31 of 5,040 as in sec. C.2.
    got = stats.exact_spearman([4, 1, 2, 7, 3, 5, 6], [4, 1, 2, 5, 3, 6, 7])
    assert got == (pytest.approx(25 / 28), 62 / 5040, 31 / 5040, 7, 5040, 62, 31)


@pytest.mark.parametrize("n", [11, 14])
def test_extremes_of_a_long_null_are_known(n):
    straight = np.arange(n)
    perfect = stats.exact_spearman(straight, straight)
    assert (perfect.rho, perfect.two_sided_count, perfect.one_sided_count) == (1.0, 2, 1)
    assert perfect.n_orders == factorial(n)
    # One swap of neighbours is the next best: n - 1 orders reach it, and the perfect one.
    swapped = straight.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    near = stats.exact_spearman(straight, swapped)
    assert (near.one_sided_count, near.two_sided_count) == (n, 2 * n)


def test_null_of_fourteen_with_ties_has_the_moments_theory_gives():
    x = np.array([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12])
    y = np.array([0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10])
    null = stats.spearman_null(x, y)
    assert null["count"].sum() == factorial(14)
    weight = null["count"] / factorial(14)
    # Under a random order any correlation has mean 0 and variance 1/(n - 1), ties or not.
    assert (null["rho"] * weight).sum() == pytest.approx(0, abs=1e-15)
    assert (null["rho"]**2 * weight).sum() == pytest.approx(1 / 13, abs=1e-14)


def test_tied_null_counts_every_order_with_its_multiplicity():
    null = stats.spearman_null([1, 1, 2], [1, 2, 3])
    # The 2 falls on the 1, 2 or 3, each in two of the six orders.
    assert null["count"].tolist() == [2, 2, 2]
    assert null["rho"].to_numpy() == pytest.approx([-sqrt(0.75), 0, sqrt(0.75)])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=10))
def test_null_does_not_depend_on_side_order_or_scale(pairs):
    x, y = (np.array(v) for v in zip(*pairs, strict=True))
    one, other = stats.exact_spearman(x, y), stats.exact_spearman(y, x)
    assert one[1:] == other[1:] or np.isnan(one.rho)
    stretched = stats.exact_spearman(np.exp(x / 3.0), y)
    assert stretched == one or np.isnan(one.rho)
    turned = stats.exact_spearman(-x, y)
    assert turned.two_sided_count == one.two_sided_count
    if one.two_sided_count is not None:
        # Orders at or above rho, and orders at or below it, are all orders with those at rho met twice.
        null = stats.spearman_null(x, y)
        at = null.loc[np.isclose(null["rho"], one.rho, atol=1e-12, rtol=0), "count"].item()
        assert one.one_sided_count + turned.one_sided_count == one.n_orders + at


def test_infinite_values_can_be_ranked():
    assert stats.exact_spearman([1, 2, np.inf], [1, 2, 3]).rho == 1.0


@pytest.mark.parametrize(("x", "y", "message"), [
    ([1, 2, np.nan], [1, 2, 3], r"x\[2\] is missing"),
    (pd.array([1, None, 2], dtype="Int64"), [1, 2, 3], r"x\[1\] is missing"),
    ([1, 2], [1, 2, 3], "x has 2 values and y has 3"),
    ([1], [1], "at least 2"),
    (range(17), range(17), "17 pairs: expected at most 16"),
    ([[1, 2]], [[1, 2]], "one dimension"),
])
def test_unusable_pairs_are_named(x, y, message):
    with pytest.raises(ValueError, match=message):
        stats.exact_spearman(x, y)


# --- partial Spearman ---

ALPHA, C_COND, INIT_ACC = [4, 1, 2, 7, 3, 5, 6], [4, 1, 2, 5, 3, 6, 7], [6, 5, 7, 3, 4, 2, 1]


def test_partial_of_published_family_ranks():
    got = stats.partial_spearman(ALPHA, C_COND, INIT_ACC)
    # One control: the textbook formula on the three pairwise rank correlations (25, -19, -23 of 28).
    xy, xz, yz = (sps.pearsonr(a, b).statistic for a, b in
                  ((ALPHA, C_COND), (ALPHA, INIT_ACC), (C_COND, INIT_ACC)))
    assert got.rho == pytest.approx((xy - xz * yz) / sqrt((1 - xz**2) * (1 - yz**2)), abs=1e-12)
    assert (got.two_sided_count, got.one_sided_count, got.n_orders) == (442, 221, 5040)
    assert got.df == 4
    assert got.p_t == pytest.approx(0.07513045462522985, abs=1e-12)


def test_partial_exact_counts_equal_whole_number_arithmetic():
    # Squared partial correlations compared as fractions of integers: no rounding, hence no tolerance.
    def cross(a, b):
        return 7 * int(np.dot(a, b)) - sum(a) * sum(b)

    xz, zz, xx = cross(ALPHA, INIT_ACC), cross(INIT_ACC, INIT_ACC), cross(ALPHA, ALPHA)

    def terms(y):
        yz = cross(y, INIT_ACC)
        return cross(ALPHA, y) * zz - xz * yz, cross(y, y) * zz - yz**2

    top, bottom = terms(C_COND)
    assert xx * zz > xz**2 and top > 0
    two = one = 0
    for y in permutations(C_COND):
        t, b = terms(y)
        if b > 0 and t * t * bottom >= top * top * b:
            two += 1
            one += t > 0
    assert (two, one) == (442, 221)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_partial_agrees_with_pingouin(k):
    rng = np.random.default_rng(k)
    frame = pd.DataFrame(rng.normal(size=(14, 2 + k)), columns=["x", "y", *"abc"[:k]])
    frame.loc[3, "y"] = frame.loc[8, "y"]
    frame.loc[2, "a"] = frame.loc[5, "a"]
    expected = pingouin.partial_corr(frame, "x", "y", covar=list("abc"[:k]), method="spearman")
    got = stats.partial_spearman(frame["x"], frame["y"], frame[list("abc"[:k])])
    assert got.rho == pytest.approx(expected["r"].item(), abs=1e-10)
    assert got.p_t == pytest.approx(expected.filter(regex="^p[-_]?val$").iloc[0, 0], abs=1e-10)
    assert got.df == 12 - k
    assert got.n_orders is None and got.two_sided_count is None and np.isnan(got.p_two_sided)


def test_partial_exact_equals_a_loop_over_least_squares_fits():
    x, y, z = [1, 2, 3, 4, 5, 6], [2, 1, 1, 4, 6, 5], [[1, 2], [1, 3], [2, 1], [3, 3], [2, 5], [4, 5]]
    got = stats.partial_spearman(x, y, z)
    design = np.column_stack([np.ones(6), sps.rankdata(z, axis=0)])

    def rest(v):
        return v - design @ np.linalg.lstsq(design, v, rcond=None)[0]

    left = rest(sps.rankdata(x))
    # An order that the controls explain to the last digit has no correlation: only rounding noise is left of it.
    rests = [rest(np.array(v)) for v in permutations(sps.rankdata(y))]
    every = [np.corrcoef(left, v)[0, 1] for v in rests if np.linalg.norm(v) > 1e-9]
    rho = np.corrcoef(left, rest(sps.rankdata(y)))[0, 1]
    assert got.rho == pytest.approx(rho, abs=1e-12)
    assert got.two_sided_count == sum(abs(r) >= abs(rho) - 1e-12 for r in every)
    assert got.one_sided_count == sum(r >= rho - 1e-12 for r in every)


def test_partial_is_undefined_where_the_control_explains_all():
    got = stats.partial_spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 4, 3, 2, 1])
    assert np.isnan(got.rho) and np.isnan(got.p_t) and got.two_sided_count is None


def test_a_repeated_or_constant_control_takes_no_degree_of_freedom():
    once = stats.partial_spearman(ALPHA, C_COND, INIT_ACC)
    more = stats.partial_spearman(ALPHA, C_COND, np.column_stack([INIT_ACC, INIT_ACC, np.ones(7)]))
    assert more.df == once.df and more.rho == pytest.approx(once.rho, abs=1e-12)
    assert more.two_sided_count == 442


def test_partial_needs_controls_of_the_same_length():
    with pytest.raises(ValueError, match="controls: shape"):
        stats.partial_spearman([1, 2, 3], [1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match=r"controls\[:, 0\]\[1\] is missing"):
        stats.partial_spearman([1, 2, 3], [1, 2, 3], [1, np.nan, 2])


# --- multiple tests and intervals ---


def test_holm_by_hand():
    # Sorted .01, .02, .04 times 3, 2, 1: .03, .04, .04; a missing p is no test.
    assert stats.holm([0.04, 0.01, np.nan, 0.02])[[0, 1, 3]] == pytest.approx([0.04, 0.03, 0.04])
    assert np.isnan(stats.holm([0.04, np.nan])[1])
    assert stats.holm([0.9, 0.9]).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"p\[1\]=1.2"):
        stats.holm([0.1, 1.2])


@pytest.mark.parametrize(("k", "n"), [(0, 149), (2, 93), (86, 1016), (36, 82), (10, 10)])
def test_intervals_equal_scipy(k, n):
    exact = sps.binomtest(k, n).proportion_ci(method="wilson")
    assert stats.wilson(k, n) == pytest.approx((exact.low, exact.high), abs=1e-12)
    beta = sps.beta(k + 0.5, n - k + 0.5)
    assert stats.jeffreys(k, n, level=0.9) == pytest.approx((beta.ppf(0.05), beta.ppf(0.95)), abs=1e-12)


def test_wilson_by_hand():
    # k = 0: the upper end is z^2 / (n + z^2).
    z = 1.959963984540054
    assert stats.wilson(0, 10) == pytest.approx((0, z**2 / (10 + z**2)), abs=1e-12)
    assert stats.wilson(10, 10) == pytest.approx((10 / (10 + z**2), 1), abs=1e-12)


def test_intervals_equal_the_published_ones(shared):
    said = pd.read_csv(shared / "upstream/reported/c_cond_intervals_n14.csv")
    k, n = said["k_collapses"], said["n_init_correct"]
    for method, prefix in ((stats.wilson, "wilson"), (stats.jeffreys, "jeffreys")):
        low, high = method(k, n)
        assert low == pytest.approx(said[f"{prefix}_lo"].to_numpy(), abs=1e-9)
        assert high == pytest.approx(said[f"{prefix}_hi"].to_numpy(), abs=1e-9)
    assert (stats.jeffreys(0, 149)[0] > 0) and stats.wilson(0, 149)[0] == 0


@pytest.mark.filterwarnings("error")
def test_no_trials_give_no_rate_and_no_warning():
    got = stats.proportion(pd.Series([0, 3], index=["a", "b"]), pd.Series([0, 4], index=["a", "b"]))
    assert got.index.tolist() == ["a", "b"]
    assert got.loc["a", ["rate", "low", "high"]].isna().all()
    assert got.loc["b", "rate"] == 0.75 and got["n"].dtype == "int64"
    missing = stats.proportion(pd.array([1, None], dtype="Int64"), 4, interval="jeffreys")
    assert missing["rate"].tolist()[0] == 0.25 and missing.loc[1, ["k", "rate", "low"]].isna().all()
    assert all(np.isnan(stats.wilson(0, 0)))


def test_fractional_credit_is_allowed():
    got = stats.proportion([2.5], [10])
    assert got.loc[0, "rate"] == 0.25 and got.loc[0, "low"] < 0.25 < got.loc[0, "high"]


@pytest.mark.parametrize(("k", "n", "message"), [
    ([1, 5], [4, 4], "k=5, n=4 at position 1: k is larger than n"),
    (-1, 4, "k is negative"),
    (0, -4, "n is negative"),
])
def test_impossible_counts_are_named(k, n, message):
    for method in (stats.wilson, stats.jeffreys, stats.proportion):
        with pytest.raises(ValueError, match=message):
            method(k, n)


def test_unknown_interval_lists_the_known():
    with pytest.raises(ValueError, match="interval='wald': expected one of wilson, jeffreys"):
        stats.proportion(1, 2, interval="wald")
    with pytest.raises(ValueError, match="level=95"):
        stats.wilson(1, 2, level=95)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.99))
@settings(max_examples=50, deadline=None)
def test_intervals_hold_the_rate_and_mirror(counts, level):
    k, n = counts
    low, high = stats.wilson(k, n, level)
    assert 0 <= low <= k / n + 1e-12 and k / n - 1e-12 <= high <= 1
    assert stats.wilson(n - k, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    low, high = stats.jeffreys(k, n, level)
    assert 0 < low < high < 1
    assert stats.jeffreys(n - k, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_fisher_z_interval_equals_the_published_one():
    # Table 23's model-row interval rounds the critical value to 1.96; the second (Table 15) does not.
    assert stats.fisher_z_interval(0.8294834502328513, 14, z=1.96) == pytest.approx(
        (0.5338512107463473, 0.9444192145492749), abs=1e-12)
    exact = stats.fisher_z_interval(0.7833333333333333, 9)
    assert exact == pytest.approx((0.24847592645234534, 0.9521298135422592), abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_fisher_z_interval_at_its_ends():
    assert stats.fisher_z_interval(1.0, 10) == (1.0, 1.0)
    low, high = stats.fisher_z_interval([0.5, 0.5, np.nan], [3, 4, 10])
    assert np.isnan(low[[0, 2]]).all() and np.isnan(high[[0, 2]]).all() and low[1] < 0.5 < high[1]
    with pytest.raises(ValueError, match="rho=1.5"):
        stats.fisher_z_interval(1.5, 10)


# --- paired tests ---


def test_mcnemar_by_hand():
    # 7 of 8 one way: (1 + 8) / 256 one-sided, twice that two-sided.
    assert stats.mcnemar(7, 1) == (7, 1, pytest.approx(18 / 256), pytest.approx(9 / 256))
    assert stats.mcnemar(1, 7).p_one_sided == pytest.approx(255 / 256)
    assert stats.mcnemar(13, 13).p_two_sided == 1.0
    assert stats.mcnemar(0, 0)[2:] == (1.0, 1.0)
    for bad in (-1, 0.5):
        with pytest.raises(ValueError, match="b="):
            stats.mcnemar(bad, 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_sign_flip_equals_brute_force(d):
    got = stats.sign_flip(d)
    sums = [sum(s * v for s, v in zip(signs, d, strict=True)) for signs in product((1, -1), repeat=len(d))]
    assert got.n_patterns == 2 ** len(d)
    assert got.two_sided_count == sum(abs(s) >= abs(sum(d)) for s in sums)
    assert got.one_sided_count == sum(s >= sum(d) for s in sums)
    assert got.p_two_sided == got.two_sided_count / 2 ** len(d)


def test_sign_flip_of_equal_units_is_the_binomial():
    got = stats.sign_flip([1.0] * 17 + [-1.0] * 8)
    assert got.method == "exact" and got.n_patterns == 2**25
    assert got.one_sided_count == sps.binom.sf(16, 25, 0.5) * 2**25
    assert got.p_two_sided == pytest.approx(sps.binomtest(17, 25).pvalue, abs=1e-12)


def test_sign_flip_ties_survive_decimal_fractions():
    # 0.1 + 0.2 - 0.3 is not 0 in floating point, and still ties with it.
    got = stats.sign_flip([0.1, 0.2, -0.3])
    assert got.two_sided_count == 8 and got.one_sided_count == 5


def test_sign_flip_says_when_it_samples():
    rng = np.random.default_rng(3)
    d = rng.normal(0.2, 1, 60)
    got = stats.sign_flip(d, draws=20_005, seed=5)
    assert got.method == "monte carlo" and got.n_patterns == 20_005
    assert got.p_two_sided == (got.two_sided_count + 1) / 20_006
    assert got == stats.sign_flip(d, draws=20_005, seed=5)
    normal = 2 * sps.norm.sf(abs(d.sum()) / np.sqrt((d**2).sum()))
    assert got.p_two_sided == pytest.approx(normal, abs=0.02)
    with pytest.raises(ValueError, match="empty"):
        stats.sign_flip([])


def test_tost_by_hand_and_with_pingouin():
    d = np.array([0.1, -0.1, 0.2, 0.0])
    got = stats.tost(d, low=-0.5, high=0.4)
    error = d.std(ddof=1) / 2
    assert got.p_above_low == pytest.approx(sps.t.sf((0.05 + 0.5) / error, 3), abs=1e-12)
    assert got.p_below_high == pytest.approx(sps.t.sf((0.4 - 0.05) / error, 3), abs=1e-12)
    assert got.p == max(got.p_above_low, got.p_below_high)
    half = sps.t.ppf(0.95, 3) * error
    assert (got.ci_low, got.ci_high) == pytest.approx((0.05 - half, 0.05 + half), abs=1e-12)

    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 20), rng.normal(0.1, 1, 20)
    paired = pingouin.tost(x, y, bound=0.5, paired=True)
    expected = paired.filter(regex="^p[-_]?val$").iloc[0, 0]
    assert stats.tost(x, y, -0.5, 0.5).p == pytest.approx(expected, abs=1e-9)
    welch = pingouin.tost(x, y[:15], bound=0.5, paired=False, correction=True)
    got = stats.tost(x, y[:15], -0.5, 0.5, paired=False)
    assert got.p == pytest.approx(welch.filter(regex="^p[-_]?val$").iloc[0, 0], abs=1e-9)
    assert got.n == 35 and got.df == pytest.approx(welch["dof"].item(), abs=0.01)


def test_tost_interval_and_p_agree():
    rng = np.random.default_rng(1)
    for shift in np.linspace(-0.6, 0.6, 13):
        got = stats.tost(rng.normal(shift, 0.5, 12), low=-0.4, high=0.4)
        assert (got.p < 0.05) == (-0.4 < got.ci_low and got.ci_high < 0.4)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: stats.tost([1, 2, 3]), "expected low < high"),
    (lambda: stats.tost([1, 2, 3], low=1, high=-1), "expected low < high"),
    (lambda: stats.tost([1, 2, 3], [1, 2], -1, 1), "x has 3 values and y has 2"),
    (lambda: stats.tost([1], low=-1, high=1), "at least 2"),
    (lambda: stats.tost([1, 2], low=-1, high=1, alpha=0.7), "alpha=0.7"),
])
def test_tost_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
