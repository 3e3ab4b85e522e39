"""Which counts a printed percentage can come from."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import claims, rounding


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(0, 2))
def test_a_rounded_share_finds_its_count(pair, digits):
    k, n = pair
    assert k in rounding.possible_counts(f"{100 * k / n:.{digits}f}", n)


@given(st.integers(1, 400), st.integers(0, 1000))
def test_counts_are_exactly_those_that_round(n, tenths):
    printed = f"{tenths / 10:.1f}"
    expected = [k for k in range(0, n + 1) if abs(1000 * k - tenths * n) * 2 <= n]
    assert rounding.possible_counts(printed, n) == expected


@pytest.mark.parametrize(("printed", "n", "unit", "counts"), [
    ("1.25", 800, "pp", [10]), ("-1.12", 800, "pp", [-9]), ("0.705", 120, "rate", []), ("0.325", 120, "rate", [39]), ("50", 3, "percent", []),
    ("9.20", 3240, "percent", [298]),
])
def test_units_and_signs(printed, n, unit, counts):
    assert rounding.possible_counts(printed, n, unit=unit) == counts


def test_development_percentages_of_one_model_have_another_denominator():
    registry = claims.registry()
    found = rounding.percentages(registry)
    never = found[found["n_counts"] == 0]
    assert len(never) == 6 and never["id"].str.startswith("e9.phi.").all() and (never["n"] == 200).all()
    assert rounding.possible_denominators(never["printed"], most=300) == [192]
    assert [rounding.possible_counts(text, 192) for text in never["printed"]] == [[107], [5], [112], [14], [115], [9]]
    haiku = found[found["id"].str.startswith("e9.haiku.")]
    assert len(haiku) == 6 and (haiku["n_counts"] == 1).all()


def test_only_shares_with_a_printed_denominator_are_asked():
    lines = pd.DataFrame({"id": list("abcde"), "quantity": "q", "printed": "7.0", "value": 7.0, "unit": ["percent", "percent", "rate", "percent", "percent"],
                          "scope": ["200 dev", "N=14 rows", "200 dev", "100 debates, 50 questions", "1,255 debates"],
                          "kind": ["point", "point", "point", "point", "ci_low"], "rebuild": "gated"})
    assert rounding.percentages(lines)["id"].tolist() == ["a"]
