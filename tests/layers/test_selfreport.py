"""Self-reports: a worked example by hand, gates, bounds, and records that must be refused."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors import DataError
from analysis.layers import inference, selfreport

# Severities by chain: question -> (friendly chains, hostile chains).
CHAINS = {
    "Q1": ([[0, 0, 0], [0, 1, 0]], [[2, 2, 1], [1, 0, 1]]),
    "Q2": ([[0, 0], [1, 0]], [[2, 2], [0, 1]]),
    "Q3": ([[0, 0, 1], [0, 0]], [[3, 2, 2], [1, 1]]),
}


def made(chains=CHAINS, timing="per_turn", composition="tri3"):
    """Debates and turns in which member a1, a2, ... answers the root of b."""
    debates, turns = [], []
    for question, sides in chains.items():
        for stance, side in zip(("friendly", "hostile"), sides, strict=True):
            debate = f"{question}-{stance}"
            debates.append({"debate_id": debate, "question_id": question, "composition": composition,
                            "stance": stance, "timing": timing, "status": "completed"})
            turns.append({"turn_id": f"{debate}-root", "debate_id": debate, "member_id": "b",
                          "parent_id": None, "iteration": 0, "agreed_level": None,
                          "agreed_level_explicit": False, "opinion_shift": None})
            for number, chain in enumerate(side):
                turns += [{"turn_id": f"{debate}-{number}-{place}", "debate_id": debate,
                           "member_id": f"a{number}", "parent_id": f"{debate}-root", "iteration": place + 1,
                           "agreed_level": selfreport.LEVELS[level], "agreed_level_explicit": True,
                           "opinion_shift": level} for place, level in enumerate(chain)]
    return pd.DataFrame(debates), pd.DataFrame(turns)


@pytest.fixture
def turns():
    return selfreport.debate_turns(*made())


def test_the_worked_example(turns):
    wide = selfreport.by_question(turns)
    assert wide["friendly"].tolist() == pytest.approx([5 / 6, 0.75, 0.8])
    assert wide["hostile"].tolist() == pytest.approx([1 / 6, 0.25, 0])
    assert wide.mean().tolist() == pytest.approx([0.794444, 0.138889], abs=5e-7)
    result = selfreport.collapse(turns)
    assert result.estimate == pytest.approx(0.655556, abs=5e-7) and result.p == 0.25
    assert (result.low, result.high, result.n_boot) == (
        pytest.approx(0.536111, abs=5e-7), pytest.approx(0.771111, abs=5e-7), 27)
    pooled = selfreport.collapse(turns, average="pooled")
    assert pooled.estimate == pytest.approx(12 / 15 - 2 / 15) and pooled.role == "robustness"
    assert pooled.low <= pooled.estimate <= pooled.high
    found = selfreport.nulls(turns)
    assert (found["record"].p, found["chain"].p) == (0.25, pytest.approx(4 / 216))
    assert found["decides"] is found["record"]
    assert selfreport.diagonal(turns) == {"below": 3, "equal": 0, "above": 0, "n": 3}
    dissent = {one.name: (one.k, one.n) for one in selfreport.rates(turns, "dissent")}
    assert dissent == {"dissent[friendly]": (0, 15), "dissent[hostile]": (7, 15)}


def test_dissent_that_lasts(turns):
    chains = selfreport.durability(turns)
    found = chains.groupby("stance")["durable"].agg(["sum", "count"])
    # Hostile chains that dissented before their last turn: 2 2 1 (ends at 1), 2 2, 3 2 2.
    assert found.loc["hostile"].tolist() == [2, 3] and found.loc["friendly", "count"] == 0
    null = inference.stance_null(chains, "durable", level="chain", average="pooled")
    assert np.isnan(null.estimate)
    gap = selfreport.durability_gap(turns)
    assert gap["rates"].loc["hostile"].tolist() == [2, 3, pytest.approx(2 / 3)]
    assert np.isnan(gap["rates"].loc["friendly", "rate"]) and np.isnan(gap["decides"].estimate)


def test_a_gap_in_how_long_dissent_lasts_against_a_count_of_all_relabellings():
    chains = {"Q1": ([[2, 0], [2, 2, 1]], [[2, 2], [3, 3]]), "Q2": ([[2, 1], [0, 0]], [[2, 3], [2, 0]])}
    gap = selfreport.durability_gap(selfreport.debate_turns(*made(chains)))
    # Eligible: friendly 0 of 3, hostile 3 of 4. Per question the durable chains among all chains, by stance.
    assert gap["rates"][["k", "n"]].to_numpy().tolist() == [[3, 4], [0, 3]]
    assert gap["chain"].estimate == pytest.approx(0.75)
    durable = {"Q1": [0, 0, 1, 1], "Q2": [0, None, 1, 0]}
    gaps = []
    for picks in itertools.product(itertools.combinations(range(4), 2), repeat=2):
        told = [(k in pick, value) for pick, values in zip(picks, durable.values(), strict=True)
                for k, value in enumerate(values) if value is not None]
        mine, other = ([value for side, value in told if side is wanted] for wanted in (True, False))
        gaps.append(np.mean(mine) - np.mean(other))
    assert gap["chain"].p == pytest.approx(np.mean(np.abs(gaps) >= 0.75 - 1e-9))
    assert gap["decides"].p == max(gap["chain"].p, gap["record"].p)


def test_labels_filled_in_by_default_are_left_out_and_bound_the_rate():
    debates, turns = made()
    # Severities 2 and 2.
    hostile = turns.index[turns["debate_id"].eq("Q1-hostile") & turns["iteration"].gt(0)][:2]
    turns.loc[hostile, "agreed_level_explicit"] = False
    read = selfreport.debate_turns(debates, turns)
    assert selfreport.explicit_share(read).set_index("stance").loc["hostile", ["k", "n"]].tolist() == [13, 15]
    found = selfreport.bounds(read).set_index("stance").loc["hostile"]
    assert found[["k", "explicit", "dropped"]].tolist() == [2, 13, 2]
    assert found[["low", "high"]].tolist() == pytest.approx([2 / 15, 4 / 15])
    result = selfreport.collapse(read)
    assert result.status == "gated" and not result.claimable and result.exclusions == {"not_explicit": 2}
    assert "differential_exclusion" in result.flags
    counts = selfreport.exclusions(read).set_index("stance")
    assert counts["n"].tolist() == [15, 15] and counts["not_explicit"].tolist() == [0, 2]
    # Two further hostile turns that were dropped, on top of the fifteen: 2/17 and 4/17.
    more = pd.concat([selfreport.debate_turns(*made()), read[read["excluded"] != ""]])
    found = selfreport.bounds(more).set_index("stance").loc["hostile", ["low", "high"]]
    assert found.tolist() == pytest.approx([2 / 17, 4 / 17])


def test_debates_that_failed_are_left_out_and_counted():
    debates, turns = made()
    debates.loc[debates["debate_id"] == "Q3-hostile", "status"] = "api_error"
    result = selfreport.collapse(selfreport.debate_turns(debates, turns))
    assert result.n_units == 2 and result.exclusions == {"api_error": 5}
    assert result.estimate == pytest.approx((2 / 3 + 0.5) / 2)


def test_no_debate_is_undefined_and_not_zero():
    debates, turns = made(timing="none")
    read = selfreport.debate_turns(debates, turns[turns["parent_id"].isna()])
    result = selfreport.collapse(read)
    assert result.status == "undefined" and np.isnan(result.estimate) and not result.claimable


def test_one_question_and_all_ties_are_defined():
    one = selfreport.collapse(selfreport.debate_turns(*made({"Q1": CHAINS["Q1"]})))
    assert (one.estimate, one.p, one.n_units) == (pytest.approx(2 / 3), 1.0, 1)
    assert "cannot_reach_0.05" in one.flags
    ties = selfreport.collapse(selfreport.debate_turns(*made({name: ([[0]], [[0]]) for name in "abcdefgh"})))
    assert (ties.estimate, ties.p) == (0, 1.0) and "no_information" in ties.flags


def test_compositions_and_timings_are_never_mixed(turns):
    for field, value in (("composition", "solo"), ("timing", "after")):
        with pytest.raises(DataError, match=f"field '{field}'"):
            selfreport.collapse(pd.concat([turns, turns.assign(**{field: value})]))


@pytest.mark.parametrize(("field", "value", "message"), [
    ("agreed_level", "agreed", "field 'agreed_level': 'agreed', expected one of fully_agreed"),
    ("opinion_shift", 7, "field 'opinion_shift': 7"),
    ("debate_id", "elsewhere", "field 'debate_id': 'elsewhere', expected a debate"),
    ("parent_id", None, "field 'parent_id'"),
    ("parent_id", "nobody", "field 'parent_id': 'nobody' is not a turn"),
    ("iteration", 0, "field 'iteration': 0, expected 1 or more"),
])
def test_wrong_turns_are_refused(field, value, message):
    debates, turns = made()
    turns[field] = turns[field].astype(object)
    turns.loc[1, field] = value
    with pytest.raises(DataError, match=message):
        selfreport.debate_turns(debates, turns)


def test_a_labelled_root_a_missing_stance_and_turns_without_debate_are_refused():
    debates, turns = made()
    turns.loc[0, "agreed_level"] = "fully_agreed"
    with pytest.raises(DataError, match="expected no label on a first opinion"):
        selfreport.debate_turns(debates, turns)
    debates, turns = made()
    with pytest.raises(DataError, match="field 'stance': missing"):
        selfreport.debate_turns(debates.assign(stance=None), turns)
    with pytest.raises(DataError, match="expected no debate turns at timing 'none'"):
        selfreport.debate_turns(*made(timing="none"))


def test_shifts_and_views_of_one_member_or_round(turns):
    # Shifts equal severities here: a single 3, in the hostile debate on Q3.
    counts = selfreport.large_shifts(turns).set_index("debate_id")
    assert counts["large"].sum() == 1 and counts.loc["Q3-hostile", ["large", "n"]].tolist() == [1, 5]
    by_round = {one.name: (one.k, one.n) for one in selfreport.rates(turns, by=("stance", "iteration"))}
    assert by_round["full[friendly, 1]"] == (5, 6) and by_round["full[hostile, 1]"] == (1, 6)
    first = selfreport.collapse(turns[turns["member_id"] == "a0"])
    # Member a0: friendly 1, 1, 2/3 of its turns agree fully; hostile none.
    assert first.estimate == pytest.approx((1 + 1 + 2 / 3) / 3) and first.n_rows == 16
    shift = selfreport.collapse(turns, "opinion_shift")
    assert shift.unit == "scale points" and shift.estimate < 0


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(*[st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=2)] * 2), min_size=1))
@settings(max_examples=25, deadline=None)
def test_the_collapse_is_a_mean_of_question_means_and_turns_with_the_stances(chains):
    read = selfreport.debate_turns(*made(chains))
    full = [[np.mean([x == 0 for chain in side for x in chain]) for side in sides]
            for sides in chains.values()]
    gaps = [friendly - hostile for friendly, hostile in full]
    result = selfreport.collapse(read, draws=100)
    assert result.estimate == pytest.approx(np.mean(gaps)) and result.n_units == len(chains)
    turned = selfreport.collapse(read, stances=("hostile", "friendly"), draws=100)
    assert turned.estimate == pytest.approx(-result.estimate) and turned.p == result.p
