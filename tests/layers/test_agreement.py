"""Agreement of raters, scores, distributions and printed percentages."""

from itertools import product
from math import log2

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from analysis.errors import DataError
from analysis.layers import agreement
from analysis.layers.inference import unit_bootstrap

STANCE = np.array([[11, 0, 0, 0], [1, 8, 0, 0], [0, 0, 20, 0], [0, 0, 0, 0]])
MOVES = np.array([[17, 1, 0, 0, 0], [0, 3, 0, 0, 0], [0, 2, 7, 0, 0], [0, 2, 1, 1, 0], [0, 0, 1, 0, 5]])

# Items of the human benchmark: cluster, then severities by human 1, human 2 and the judge.
BENCHMARK = "a000 a111 a212 b322 b222 b010 c112 c232 c001 d333 d101 d221".split()

tables = st.integers(2, 4).flatmap(lambda q: st.lists(
    st.lists(st.integers(0, 6), min_size=q, max_size=q), min_size=q, max_size=q)).map(np.array)


def ac1_by_hand(counts):
    """Gwet's formula, term by term."""
    n, q = sum(map(sum, counts)), len(counts)
    agree = sum(counts[k][k] for k in range(q)) / n
    used = [(sum(counts[k]) + sum(row[k] for row in counts)) / (2 * n) for k in range(q)]
    chance = sum(share * (1 - share) for share in used) / (q - 1)
    return (agree - chance) / (1 - chance)


# --- two raters ---


def test_two_judges_on_stance():
    got = agreement.ac1(STANCE)
    assert (got.value, got.observed, got.n, got.n_labels) == (pytest.approx(0.963711, abs=5e-7), 0.975, 40, 3)
    assert got.value == pytest.approx(ac1_by_hand(STANCE[:3, :3].tolist()), abs=1e-12)
    legal = agreement.ac1(STANCE, categories="legal")
    assert legal.value == pytest.approx(0.968458, abs=5e-7) and legal.n_labels == 4
    assert legal.value == pytest.approx(ac1_by_hand(STANCE.tolist()), abs=1e-12)
    values = [agreement.kappa(STANCE, weights=weights).value for weights in (None, "linear", "quadratic")]
    assert values == pytest.approx([0.959839, 0.972527, 0.983165], abs=5e-7)
    a, b = np.repeat(np.argwhere(STANCE), STANCE[STANCE > 0], axis=0).T
    assert agreement.spearman_with_ties(a, b).rho == pytest.approx(0.989416, abs=5e-7)


def test_two_judges_on_moves():
    got = agreement.ac1(MOVES)
    assert (got.value, got.observed) == (pytest.approx(0.786829, abs=5e-7), pytest.approx(0.825))
    assert agreement.kappa(MOVES).value == pytest.approx(0.757576, abs=5e-7)


def test_two_judges_on_options():
    # 36 of 40 equal and the pooled chance term, as published; the labels behind them do not matter.
    assert (0.9 - 0.053603) / (1 - 0.053603) == pytest.approx(0.894336, abs=5e-7)
    options = np.diag([2] * 18)
    options[0, 1] = options[2, 3] = options[4, 5] = options[6, 7] = 1
    got = agreement.ac1(options)
    assert got.observed == 0.9 and got.value == pytest.approx(ac1_by_hand(options.tolist()), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(tables)
def test_coefficients_agree_with_other_computations(table):
    if not table.sum():
        assert agreement.ac1(table).flags == agreement.kappa(table).flags == ("no_pairs",)
        return
    legal = agreement.ac1(table, categories="legal")
    assert legal.value == pytest.approx(ac1_by_hand(table.tolist()), abs=1e-10)
    assert agreement.coefficients(table, "ac1") == pytest.approx(legal.value, abs=1e-10)
    for weights, statsmodels_name, name in ((None, None, "kappa"), ("linear", "linear", "linear_kappa"),
                                            ("quadratic", "quadratic", "quadratic_kappa")):
        got = agreement.kappa(table, weights=weights)
        if got.flags:
            assert got.flags == ("one_label",) and np.isnan(got.value)
            assert np.isnan(agreement.coefficients(table, name))
            continue
        other = cohens_kappa(table, wt=statsmodels_name, return_results=False)
        assert got.value == pytest.approx(other, abs=1e-10)
        assert got.value == pytest.approx((got.observed - got.chance) / (1 - got.chance), abs=1e-10)
        assert agreement.coefficients(table, name) == pytest.approx(got.value, abs=1e-10)
    a, b = np.repeat(np.argwhere(table), table[table > 0], axis=0).T
    if np.ptp(a) and np.ptp(b):
        rho = sps.spearmanr(a, b).statistic
        assert agreement.coefficients(table, "spearman") == pytest.approx(rho, abs=1e-10)
    else:
        assert np.isnan(agreement.coefficients(table, "spearman"))


def test_one_label_is_undefined_not_perfect():
    alone = [[12, 0], [0, 0]]
    assert agreement.ac1(alone)[0:2] == (pytest.approx(np.nan, nan_ok=True), 1.0)
    assert agreement.ac1(alone).flags == ("one_label",)
    assert agreement.ac1(alone, categories="legal").value == 1
    assert agreement.kappa(alone).flags == ("one_label",) and agreement.kappa(alone).observed == 1
    apart = agreement.kappa([[0, 12], [0, 0]])  # each rater has one label, but not the same
    assert apart.value == 0 and apart.observed == 0


def test_labels_are_checked():
    got = agreement.count_table(["x", "y", "y"], ["x", "y", "x"], ["x", "y", "z"])
    assert got.to_numpy().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert got.index.tolist() == ["x", "y", "z"]
    with pytest.raises(DataError, match="second rater, label 1: 'w', expected one of x, y"):
        agreement.count_table(["x", "y"], ["x", "w"], ["x", "y"])
    with pytest.raises(DataError, match="first rater, label 0: None"):
        agreement.count_table([None, "y"], ["x", "y"], ["x", "y"])
    with pytest.raises(DataError, match="2 and 1 labels"):
        agreement.count_table(["x", "y"], ["x"], ["x", "y"])
    with pytest.raises(DataError, match="cluster 1: missing"):
        agreement.cluster_tables(["x", "y"], ["x", "y"], ["q", None], ["x", "y"])
    for call in (agreement.ac1, agreement.kappa):
        with pytest.raises(ValueError, match="as many rows as columns"):
            call([[1, 2, 3], [4, 5, 6]])
        with pytest.raises(ValueError, match="counts from 0"):
            call([[1, -2], [4, 5]])
    with pytest.raises(ValueError, match="categories='all': expected one of observed, legal"):
        agreement.ac1(STANCE, categories="all")
    with pytest.raises(ValueError, match="weights='cubic'"):
        agreement.kappa(STANCE, weights="cubic")
    with pytest.raises(ValueError, match="name='pi'"):
        agreement.coefficients(STANCE, "pi")


def test_a_collapsed_judge_shows():
    assert agreement.top_share([1, 1, 1, 0, np.nan]) == (1, 0.75)
    assert agreement.top_share(["b", "a"]) == ("a", 0.5)
    label, share = agreement.top_share([])
    assert label is None and np.isnan(share)


# --- intervals over clusters ---


def test_human_benchmark_example():
    clusters = [item[0] for item in BENCHMARK]
    severities = np.array([[int(digit) for digit in item[1:]] for item in BENCHMARK])
    for ratings, labels, name, want in (
        (severities, range(4), "quadratic_kappa", (0.805195, 0.746858, -0.058337, -0.252507, 0.123092)),
        (severities >= 2, [False, True], "kappa", (0.833333, 0.583333, -0.25, -0.648649, 0.216976)),
    ):
        pairs = [agreement.cluster_tables(ratings[:, i], ratings[:, j], clusters, labels)
                 for i, j in ((0, 1), (0, 2), (1, 2))]
        triple = np.stack(pairs, axis=1)

        def delta(drawn, name=name):
            human, first, second = np.moveaxis(agreement.coefficients(drawn.sum(axis=1), name), -1, 0)
            return (first + second) / 2 - human

        human, first, second = agreement.coefficients(triple.sum(axis=0), name)
        interval = unit_bootstrap(triple, delta)
        assert interval.n_boot == 256
        got = (human, (first + second) / 2, delta(triple[None])[0], *interval[:2])
        # 1e-6: one printed difference was taken between its two rounded terms.
        assert got == pytest.approx(want, abs=1e-6)


def test_cluster_interval_equals_a_loop_over_the_libraries():
    rng = np.random.default_rng(2)
    clusters = np.repeat(list("abcd"), 6)
    a = rng.integers(0, 3, 24)
    b = np.where(rng.random(24) < 0.7, a, rng.integers(0, 3, 24))
    tables = agreement.cluster_tables(a, b, clusters, range(4))
    by_hand = {"ac1": [], "quadratic_kappa": [], "spearman": []}
    for pick in product("abcd", repeat=4):
        rows = np.concatenate([np.flatnonzero(clusters == name) for name in pick])
        table = agreement.count_table(a[rows], b[rows], range(3)).to_numpy()  # label 3 is never used
        by_hand["ac1"].append(ac1_by_hand(table.tolist()))
        by_hand["quadratic_kappa"].append(cohen_kappa_score(a[rows], b[rows], weights="quadratic"))
        by_hand["spearman"].append(sps.spearmanr(a[rows], b[rows]).statistic)
    for name, values in by_hand.items():
        got = agreement.cluster_interval(tables, name)
        assert got[:2] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-10) and got.n_boot == 256
    legal = agreement.cluster_interval(tables, "ac1", categories="legal")
    assert legal.low > agreement.cluster_interval(tables, "ac1").low


# --- scores ---


def test_auroc_example_and_edges():
    assert agreement.auroc([2.1, 0.4, 1.3, -0.2], [-1, 0.4, -2.2]).value == pytest.approx(0.875)
    assert agreement.auroc([1, 1], [1, 1, 1]).value == 0.5
    none = agreement.auroc([], [1.0, 2.0])
    assert np.isnan(none.value) and none.flags == ("one_class",) and none.n_negative == 2
    with pytest.raises(ValueError, match=r"negative\[1\] is missing"):
        agreement.auroc([1.0], [0.0, None])


@settings(max_examples=30, deadline=None)
@given(*[st.lists(st.integers(-3, 3), min_size=1, max_size=7)] * 2)
def test_auroc_counts_pairs(positive, negative):
    pairs = [1 if p > n else 0.5 if p == n else 0 for p in positive for n in negative]
    assert agreement.auroc(positive, negative).value == pytest.approx(np.mean(pairs))


def test_auroc_interval_equals_a_loop_over_all_resamples():
    positive, negative = [3, 4, 1], [1, 2, 0]
    items = [(score, 1) for score in positive] + [(score, 0) for score in negative]
    values, undefined = [], 0
    for pick in product(items, repeat=6):
        up, down = [s for s, c in pick if c], [s for s, c in pick if not c]
        if up and down:
            values.append(np.mean([(p > n) + (p == n) / 2 for p in up for n in down]))
        else:
            undefined += 1
    got = agreement.auroc_interval(positive, negative)
    assert got[:2] == pytest.approx(np.quantile(values, [0.025, 0.975]))
    assert got.n_undefined == undefined == 2 * 3**6
    alone = agreement.auroc_interval(positive, [])
    assert np.isnan(alone.low) and "undefined_bootstrap" in alone.flags


def test_tied_correlation_example():
    own = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 1])
    blind = np.array([0, 0, 0, 1, 1, 2, 2, 1, 2, 2])
    got = agreement.spearman_with_ties(own, blind)
    assert got == (pytest.approx(0.764349, abs=5e-7), 10, (0, 0), 0.3, ())
    signal = (own > 0) | (blind > 0)
    subset = agreement.spearman_with_ties(own[signal], blind[signal])
    assert subset.n == 7 and subset.rho == pytest.approx(0.378119, abs=5e-7)
    flat = agreement.spearman_with_ties([2, 2, 2], [0, 1, 2])
    assert np.isnan(flat.rho) and flat.flags == ("constant",)
    ranks = [sps.rankdata(values) for values in (own, blind)]
    assert got.rho == pytest.approx(np.corrcoef(ranks)[0, 1])


# --- distributions ---


def distance_by_hand(p, q):
    def bits(values):
        return -sum(value * log2(value) for value in values if value > 1e-300)

    divergence = bits([(a + b) / 2 for a, b in zip(p, q, strict=True)]) - (bits(p) + bits(q)) / 2
    return max(divergence, 0) ** 0.5


def test_option_example():
    first = np.mean([(0.7, 0.2, 0.1, 0, 0), (0.1, 0.8, 0.1, 0, 0), (0, 0.1, 0.2, 0.6, 0.1)], axis=0)
    final = np.mean([(0.7, 0.2, 0.1, 0, 0), (0.6, 0.3, 0.1, 0, 0), (0, 0.1, 0.1, 0.3, 0.5)], axis=0)
    assert agreement.entropy([first, final]) == pytest.approx([2.054773, 2.082394], abs=5e-7)
    human = np.array([0.30, 0.35, 0.20, 0.15])
    for stage, distance, divergence in ((first, 0.090613, 0.008211), (final, 0.193616, 0.037487)):
        kept = stage[:4] / stage[:4].sum()
        got = agreement.js_distance(kept, human)
        assert (got, got**2) == (pytest.approx(distance, abs=5e-7), pytest.approx(divergence, abs=5e-7))
        assert got == pytest.approx(distance_by_hand(kept, human), abs=1e-12)


weights = st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda w: sum(w) > 0.1)


@settings(max_examples=40, deadline=None)
@given(weights, weights)
def test_distance_is_a_metric_between_0_and_1(p, q):
    p, q = (np.array(w) / sum(w) for w in (p, q))
    got = agreement.js_distance(p, q)
    assert 0 <= got <= 1 + 1e-12 and got == pytest.approx(agreement.js_distance(q, p), abs=1e-9)
    assert got == pytest.approx(distance_by_hand(p, q), abs=1e-7)
    assert agreement.js_distance(p, p) == pytest.approx(0, abs=1e-7)
    assert agreement.js_distance([p, q], [q, p]).shape == (2,)


def test_distance_edges():
    assert agreement.js_distance([1, 0, 0], [0, 0.5, 0.5]) == 1
    assert agreement.js_distance([0, 0, 1], [0, 5e-324, 1]) == 0
    assert agreement.entropy([0.25] * 4) == 2 and agreement.entropy([1, 0]) == 0
    refused = {"sums to 1.1": [0.5, 0.6], "-0.5": [1.5, -0.5], "nan": [np.nan, 1], "last axis": 0.5}
    for message, bad in refused.items():
        with pytest.raises(ValueError, match=message):
            agreement.entropy(bad)
    with pytest.raises(ValueError, match="2 options and q has 3"):
        agreement.js_distance([0.5, 0.5], [0.5, 0.25, 0.25])


def test_reads_at_two_temperatures():
    prior = np.array([-9, -8.2, -7.5, -6, -4, -1.7, -0.26])
    assert np.exp(prior).sum() == pytest.approx(0.975481, abs=5e-7)
    sharp, flat = agreement.softmax(prior), agreement.softmax(prior, 2)
    assert agreement.expectation(sharp) == pytest.approx(6.763115, abs=5e-7)
    assert agreement.expectation(flat) == pytest.approx(6.292378, abs=5e-7)
    control = [-9, -8, -7.2, -5.8, -3.9, -1.5, -0.32]
    assert agreement.entropy(agreement.softmax(control, 2)) == pytest.approx(1.708933, abs=5e-7)
    assert agreement.softmax(prior + 100, 2) == pytest.approx(flat, abs=1e-12)
    every = agreement.softmax(prior, np.array([1.0, 2.0]))
    assert every.shape == (2, 7) and every[1] == pytest.approx(flat)
    by_hand = [np.exp(value / 2) for value in prior]
    assert flat == pytest.approx(by_hand / np.sum(by_hand), abs=1e-12)
    with pytest.raises(ValueError, match="temperature=0"):
        agreement.softmax(prior, 0)


# --- printed percentages ---


def test_printed_percentages():
    assert not agreement.grim("66.3", 173) and not agreement.grim("81.1", 505)
    assert agreement.grim("23.1", 39) and agreement.grim("100.0", 173) and not agreement.grim("100.6", 173)
    with pytest.raises(ValueError, match="n=0"):
        agreement.grim("50.0", 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_a_rounded_count_is_always_possible(n, data):
    k = data.draw(st.integers(0, n))
    assert agreement.grim(f"{100 * k / n:.1f}", n)


def test_labels_of_frames_and_series_are_taken_in_order():
    frame = pd.DataFrame({"a": ["n", "y", "y"], "b": ["n", "n", "y"], "q": [1, 2, 2]}, index=[5, 3, 9])
    got = agreement.cluster_tables(frame.a, frame.b, frame.q, ["n", "y"])
    assert got.sum(axis=0).tolist() == agreement.count_table(frame.a, frame.b, ["n", "y"]).to_numpy().tolist()
