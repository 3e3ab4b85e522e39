"""The rounds sweep, on hand-counted debates."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis.errors import DataError
from analysis.layers import inference, rounds


def sweep(shifts, max_iterations=3, prefix="d"):
    """Debates of one question each, with a root and one turn per shift."""
    debates = pd.DataFrame({"debate_id": [f"{prefix}{i}" for i in range(len(shifts))],
                            "question_id": [f"q{i}" for i in range(len(shifts))],
                            "max_iterations": max_iterations, "status": "completed"})
    turns = pd.DataFrame([{"debate_id": f"{prefix}{i}", "iteration": at, "opinion_shift": shift}
                          for i, row in enumerate(shifts) for at, shift in enumerate([None, *row])])
    return debates, turns


def test_shifts_of_the_worked_example():
    totals = rounds.debate_totals(*sweep([[0, 1, 3, 0], [2, 0, 0, 4], [0, 0, 1, 1]]))
    assert totals.large_shifts.tolist() == [1, 1, 0]
    assert totals.sum_of_shifts.tolist() == [4, 6, 2] and totals.n_shifts.tolist() == [2, 2, 2]
    assert totals.n_nodes.tolist() == [5, 5, 5]
    result, = rounds.rounds_sweep(totals)
    assert result.estimate == pytest.approx(0.666667, abs=5e-7) and (result.k, result.n) == (2, 3)
    assert result.role == "descriptive" and np.isnan(result.p)


def test_no_large_shift_in_thirty_debates_is_not_zero():
    result, = rounds.rounds_sweep(rounds.debate_totals(*sweep([[0, 1]] * 30)))
    assert (result.estimate, result.low, result.high) == (0, 0, 0.1)
    assert inference.zero_events(30).exact == pytest.approx(0.095034, abs=5e-7)
    some, = rounds.rounds_sweep(rounds.debate_totals(*sweep([[0, 3]] * 3 + [[0, 1]] * 27)))
    assert some.estimate == pytest.approx(0.1) and some.low < 0.1 <= some.high  # they overlap


def test_unfinished_debates_and_missing_scores():
    debates, turns = sweep([[3], [4], [None]])
    debates.loc[1, "status"] = "api_error"
    totals = rounds.debate_totals(debates, turns)
    assert totals.debate_id.tolist() == ["d0", "d2"]
    assert totals.n_unlabelled.tolist() == [0, 1] and totals.large_shifts.tolist() == [1, 0]


def test_a_completed_debate_without_turns_counts_as_nothing():
    debates, turns = sweep([[3], [0]])
    assert rounds.debate_totals(debates, turns[turns.debate_id == "d0"]).n_nodes.tolist() == [2, 0]


def test_tokens_join_by_run():
    debates, turns = sweep([[0]])
    ledger = pd.DataFrame({"run_id": "d0", "call_id": ["1", "2", "3"], "item_id": "q0", "arm": "D",
                           "role": ["member", "chairman", "judge"], "completion_tokens": [10, 20, 99],
                           "reasoning_tokens": [1, 0, 0]})
    assert rounds.debate_totals(debates, turns, ledger).tokens.tolist() == [31]


def many(seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame([{"debate_id": f"{q}.{r}", "question_id": q, "max_iterations": r,
                          "n_nodes": 4 + 5 * r + int(rng.integers(0, 4))} for q in range(12) for r in (1, 2,
                                                                                                       3, 4)])


def test_slope_against_scipy():
    frame = many()
    result = rounds.rounds_slope(frame, "n_nodes")
    fit = sps.linregress(frame.max_iterations, frame.n_nodes)
    assert result.estimate == pytest.approx(fit.slope, abs=1e-9)
    assert result.low < fit.slope < result.high and result.n_units == 12 and result.n_rows == 48
    # The interval resamples whole questions: the same draws, each fitted by scipy.
    drawn = np.random.default_rng(0).integers(0, 12, size=(200, 12), dtype=np.int32)
    wide = frame.pivot(index="question_id", columns="max_iterations", values="n_nodes")
    slopes = [sps.linregress(np.tile([1, 2, 3, 4], 12),
                             wide.iloc[rows].to_numpy().ravel()).slope for rows in drawn]
    found = rounds.rounds_slope(frame, "n_nodes", draws=200, seed=0)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(slopes, [0.025, 0.975])), abs=1e-9)


def test_slope_on_shared_or_all_questions():
    frame = pd.concat([many(), pd.DataFrame({"question_id": [99], "max_iterations": 3, "n_nodes": 500})])
    shared, every = rounds.rounds_slope(frame, "n_nodes"), rounds.rounds_slope(frame, "n_nodes", shared=False)
    assert shared.estimate == rounds.rounds_slope(many(), "n_nodes").estimate
    assert shared.exclusions == {"question_not_shared": 1} and every.n_units == 13
    assert every.estimate == pytest.approx(sps.linregress(frame.max_iterations, frame.n_nodes).slope)


def test_one_number_of_rounds_has_no_slope():
    result = rounds.rounds_slope(many().query("max_iterations == 2"), "n_nodes")
    assert result.status == "undefined" and np.isnan(result.estimate)


def test_difference_is_paired():
    result = rounds.rounds_difference(many(), "n_nodes", 1, 4)
    wide = many().pivot(index="question_id", columns="max_iterations", values="n_nodes")
    assert result.estimate == pytest.approx((wide[4] - wide[1]).mean()) and np.isnan(result.p)
    with pytest.raises(ValueError, match="rounds=7: expected one of 1, 2, 3, 4"):
        rounds.rounds_difference(many(), "n_nodes", 1, 7)


def test_bad_records_are_named():
    debates, turns = sweep([[0, 1]])
    with pytest.raises(DataError, match="'opinion_shift': 5.0, expected one of 0, 1, 2, 3, 4"):
        rounds.debate_totals(debates, turns.assign(opinion_shift=[None, 5, 1]))
    with pytest.raises(DataError, match="'stray', expected the id of a debate"):
        rounds.debate_totals(debates, turns.assign(debate_id="stray"))
    with pytest.raises(DataError, match="never pooled"):
        rounds.debate_totals(pd.concat([debates.assign(timing="after"),
                                        debates.assign(debate_id="e", timing="per_turn")]), turns)
    with pytest.raises(ValueError, match="measure='words'"):
        rounds.rounds_sweep(many(), "words")
