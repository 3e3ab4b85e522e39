"""Token budgets, on hand-made ledgers."""

from math import exp, log

import numpy as np
import pandas as pd
import pytest

from analysis.errors import DataError
from analysis.layers import tokens


def ledger(spent, role="member"):
    """One call per arm and item."""
    return pd.DataFrame([{"run_id": "r", "item_id": item, "arm": arm, "call_id": f"{arm}{item}", "model": "m",
                          "role": role,
                          "prompt_tokens": 100, "completion_tokens": count, "reasoning_tokens": 0,
                          "status": "ok"}
                         for arm, counts in spent.items() for item, count in enumerate(counts)])


def test_worked_example_is_undetermined():
    frame = ledger({"I": [2600, 2900], "D": [2700, 2650]})
    result = tokens.token_match(frame, ("D", "I"))
    assert result.estimate == pytest.approx(0.974135, abs=5e-7)
    assert log(result.estimate) == pytest.approx(-0.026205, abs=5e-7)
    ratios = np.log([2700 / 2600, 2650 / 2900])
    assert ratios == pytest.approx([0.037740, -0.090151], abs=5e-7)
    assert (result.low, result.high) == pytest.approx(tuple(np.exp(np.quantile(
        [(a + b) / 2 for a in ratios for b in ratios], [0.05, 0.95]))))
    assert result.flags[0] == "undetermined" and result.status == "gated"
    totals = tokens.spend(frame).groupby("arm").spend.sum()
    assert totals.to_dict() == {"I": 5500, "D": 5350} and totals.D / totals.I == pytest.approx(0.972727,
                                                                                               abs=5e-7)


@pytest.mark.parametrize("factor, verdict, claimable", [
    (1.02, "matched", True), (0.96, "matched", True), (1.3, "unmatched", False), (0.7, "unmatched", False),
    (1.10, "undetermined", False)])
def test_verdicts(factor, verdict, claimable):
    rng = np.random.default_rng(1)
    base = rng.uniform(2000, 3000, 60)
    result = tokens.token_match(ledger({"A": base * factor * np.exp(rng.normal(0, 0.05, 60)), "B": base}),
                                ("A", "B"))
    assert result.flags[0] == verdict and result.claimable is claimable
    assert result.low < result.estimate < result.high and result.level == 0.9


def test_turning_the_arms_around_inverts_the_ratio():
    frame = ledger({"A": [110] * 6 + [90] * 6, "B": [100] * 12})
    one, other = (tokens.token_match(frame, arms) for arms in (("A", "B"), ("B", "A")))
    assert one.estimate == pytest.approx(1 / other.estimate) and one.low == pytest.approx(1 / other.high)
    assert one.flags[0] == other.flags[0]


def test_items_that_are_all_alike():
    assert tokens.token_match(ledger({"A": [100] * 20, "B": [100] * 20}), ("A", "B")).claimable
    result = tokens.token_match(ledger({"A": [130] * 20, "B": [100] * 20}), ("A", "B"))
    assert result.flags[0] == "unmatched" and result.low == result.high == pytest.approx(1.3)


def test_failed_and_repeated_calls_count_judges_do_not():
    frame = pd.concat([
        ledger({"A": [100]}), ledger({"A": [40]}).assign(call_id="again", status="error"),
        ledger({"A": [10]}, "chairman").assign(call_id="chair", reasoning_tokens=5),
        ledger({"A": [999]}, "judge").assign(call_id="judge"),
        ledger({"A": [999]}, "probe").assign(call_id="probe")])
    assert tokens.spend(frame)[["spend", "prompt_tokens", "n_calls"]].values.tolist() == [[155, 300, 3]]
    table = tokens.budgets(frame).set_index("role")
    assert table.n_failed.to_dict() == {"member": 1, "chairman": 0, "judge": 0, "probe": 0}
    assert table.in_budget.to_dict() == {"member": True, "chairman": True, "judge": False, "probe": False}


def test_items_without_a_ratio_are_counted():
    frame = ledger({"A": [100, 0, None, 120, 130], "B": [100, 100, 100, 110]})
    result = tokens.token_match(frame, ("A", "B"))
    assert result.exclusions == {"no_tokens": 1, "unknown_tokens": 1, "one_arm": 1}
    assert result.n_units == 2 and result.estimate == pytest.approx(exp(log(120 / 110) / 2))
    nothing = tokens.token_match(ledger({"A": [0], "B": [5]}), ("A", "B"))
    assert nothing.status == "undefined" and np.isnan(nothing.estimate) and nothing.flags[0] == "undetermined"


def test_bad_ledgers_are_named():
    frame = ledger({"A": [1, 2]})
    with pytest.raises(DataError, match="'role': 'solver', expected one of member, chairman, judge, probe"):
        tokens.spend(frame.assign(role="solver"))
    with pytest.raises(DataError, match="row 1, field 'completion_tokens': -5"):
        tokens.spend(frame.assign(completion_tokens=[1, -5]))
    with pytest.raises(DataError, match="call_id='x': 2 rows"):
        tokens.spend(frame.assign(call_id="x"))
    with pytest.raises(ValueError, match="arms='B': expected one of A"):
        tokens.token_match(frame, ("A", "B"))


def test_jury_outside_the_families():
    frame = pd.DataFrame({"model": ["a1", "b1", "c1"], "role": ["member", "chairman", "judge"]})
    families = {"a1": "a", "b1": "b", "c1": "c"}
    assert tokens.outside_jury(frame, families).passed
    assert not tokens.outside_jury(frame, families | {"c1": "b"}).passed
    assert not tokens.outside_jury(frame, {"a1": "a", "b1": "b"}).passed  # nobody knows the judge's family
    assert not tokens.outside_jury(frame[:2], families).passed
