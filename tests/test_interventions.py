"""What printed tests and percentages can rest on: against brute force, other libraries, answers by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import contingency_tables

from analysis import claims, interventions, stats

small = st.integers(0, 40)


@settings(deadline=None)
@given(small, small)
def test_p_agrees_with_other_libraries(a, b):
    table = [[7, a], [b, 9]]
    exact = interventions.mcnemar_p(a, b)[0]
    assert exact == pytest.approx(stats.mcnemar(a, b).p_two_sided, abs=1e-12)
    if a + b:
        assert exact == pytest.approx(min(1, contingency_tables.mcnemar(table, exact=True).pvalue), abs=1e-12)
        for test, correction in {"uncorrected": False, "corrected": True}.items():
            theirs = contingency_tables.mcnemar(table, exact=False, correction=correction).pvalue
            if a != b or test == "uncorrected":  # theirs corrects a difference of nothing to one of one
                assert interventions.mcnemar_p(a, b, test=test)[0] == pytest.approx(theirs, abs=1e-12)


def test_p_by_hand():
    # 1 against 4: 2 (1 + 5) / 32; 0 against 3: 2 / 8; equal cells and none: 1.
    assert interventions.mcnemar_p([1, 0, 3, 0], [4, 3, 3, 0]).tolist() == [0.375, 0.25, 1.0, 1.0]
    assert interventions.mcnemar_p(2, 2, test="corrected") == 1
    assert interventions.mcnemar_p(0, 0, test="uncorrected") == 1
    with pytest.raises(ValueError, match="test='mid': expected one of exact, corrected, uncorrected"):
        interventions.mcnemar_p(1, 2, test="mid")


eight = st.integers(-8, 8)
nets = st.one_of(st.none(), eight, st.lists(eight, min_size=1, max_size=3))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8), nets, st.one_of(st.none(), st.integers(0, 8)))
def test_discordant_cells_against_all_two_by_two_tables(n, net, first):
    wanted = set()
    nets = None if net is None else {net} if isinstance(net, int) else set(net)
    for both, a, b in itertools.product(range(n + 1), repeat=3):
        if both + a + b <= n and (nets is None or b - a in nets) and (first is None or both + a == first):
            wanted.add((a, b))
    found = interventions.discordant(n, net, first=first)
    assert set(map(tuple, found.to_numpy().tolist())) == wanted and len(found) == len(wanted)


def test_range_by_hand():
    # Of 10 questions the first arm has 8, the second 7: one is lost at least, at most 2 are gained.
    found = interventions.mcnemar_range(10, -1, first=8)
    # Pairs: 1 against 0, 2 against 1, 3 against 2, each with p = 1.
    assert found == (1.0, 1.0, 3)
    # Five gained and none lost up to 7 against 2: p = 2 / 32, and 2 (1 + 9 + 36) / 512.
    found = interventions.mcnemar_range(10, 5, first=2)
    assert (found.low, found.high, found.cells) == (0.0625, pytest.approx(92 / 512), 3)
    assert interventions.mcnemar_range(10, 11).cells == 0


def test_cells_for_a_printed_p_by_hand():
    # Only 1 against 5 (and its mirror) gives 2 (1 + 6) / 64 = 0.21875 with six discordant of at most six.
    found = interventions.cells_for_p(0.219, 0.001, 6)
    assert found[["only_a", "only_b"]].values.tolist() == [[1, 5], [5, 1]]
    assert interventions.cells_for_p(0.219, 0.001, 6, 4)[["only_a", "only_b"]].values.tolist() == [[1, 5]]
    assert interventions.cells_for_p(0.3, 0.001, 6).empty


# --- what is printed ---


def test_printed_tests():
    found = interventions.paired_tests().set_index("claim")
    assert len(found) == len(interventions.PAIRED)
    unique = found[found["exact"] == 1]
    assert unique[["n", "net", "only_a", "only_b"]].values.tolist() == [
        [800, 10, 78, 88], [800, -9, 39, 30], [1500, -29, 165, 136], [1500, 6, 60, 66]]
    for line in unique.itertuples():
        assert round(stats.mcnemar(line.only_a, line.only_b).p_two_sided, 3) == line.p
        assert line.only_b - line.only_a == line.net
    # No 2 x 2 table over 100 questions gives this p exactly or corrected.
    odd = found.loc["e5.haiku_mcn"]
    assert odd[["exact", "corrected", "uncorrected"]].tolist() == [0, 0, 2]
    every = [stats.mcnemar(a, b).p_two_sided for a in range(101) for b in range(a, 101 - a)]
    assert not any(round(p, 3) == odd["p"] for p in every)
    ones = found[found["p"] == 1.0]
    assert len(ones) == 3 and (ones["apart_high"] <= 1).all()
    assert found.loc["e5.haiku_acc0", ["net", "p"]].isna().tolist() == [False, True]


def test_printed_percentages():
    found = interventions.percentages().set_index("claims")
    assert found.loc["e9.phi.*", "possible"] == 0 and found.loc["e9.phi.*", "sizes"] == [192]
    assert (found["possible"] == found["percents"]).sum() == len(found) - 1
    assert found.loc["e9.haiku.*", "sizes"] == [200]


def test_every_claim_of_the_tests_is_printed():
    ids = set(claims.registry()["id"])
    for test in interventions.PAIRED.values():
        assert {name for name in (test.n, test.p, test.net, *(test.arms or ())) if name} <= ids


def test_the_effect_of_the_correction_is_to_raise_p():
    a, b = np.meshgrid(np.arange(30), np.arange(30))
    tests = ("corrected", "uncorrected")
    corrected, plain = (interventions.mcnemar_p(a.ravel(), b.ravel(), test=test) for test in tests)
    assert (corrected >= plain).all()
