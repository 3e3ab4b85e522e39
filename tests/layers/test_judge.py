"""The blind judge: worked examples by hand, reliability gates, people, the ratio, and bad judgements."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis.errors import DataError
from analysis.layers import judge, selfreport
from analysis.layers.results import Gate

STANCE = np.array([[11, 0, 0, 0], [1, 8, 0, 0], [0, 0, 20, 0], [0, 0, 0, 0]])
MOVE = np.array([[17, 0, 1, 0, 0], [0, 7, 2, 0, 0], [0, 0, 3, 0, 0], [0, 1, 2, 1, 0], [0, 1, 0, 0, 5]])
ROWS = "abcdefghij"


def sample(stance=STANCE, move=MOVE, questions=10):
    """Two judges on 40 turns with these cross tables."""
    pairs = [np.repeat(np.argwhere(table), table[table > 0], axis=0) for table in (stance, move)]
    lines = []
    for place, (levels, moves) in enumerate(zip(*pairs, strict=True)):
        lines += [{"turn_id": f"t{place}", "question_id": ROWS[place % questions], "judge_model": name,
                   "severity": int(levels[k]), "move_type": judge.MOVES[moves[k]]}
                  for k, name in enumerate("jk")]
    return pd.DataFrame(lines)


def battery(right=10, n=10):
    return pd.DataFrame([{"item_id": i, "judge_model": name, "severity": 0, "known_severity": int(i >= right),
                          "move_type": "challenge", "known_move_type": "challenge"}
                         for i in range(n) for name in "jk"])


def test_two_judges_on_forty_turns():
    found = judge.reliability(sample(), ("j", "k"), battery=battery())
    values = {one.name: one for one in found.results}
    assert values["stance_ac1"].estimate == pytest.approx(0.963711, abs=5e-7)
    assert values["stance_ac1_legal"].estimate == pytest.approx(0.968458, abs=5e-7)
    assert values["stance_quadratic_kappa"].estimate == pytest.approx(0.983165, abs=5e-7)
    assert values["move_ac1"].estimate == pytest.approx(0.786829, abs=5e-7)
    assert values["move_ac1"].n_rows == 40 and values["move_ac1"].n_units == 10
    assert all(gate.passed for gate in found.gates)


def test_the_options_that_two_judges_name():
    # 36 of 40 equal over 18 options, whose pooled shares make a chance agreement of 0.053603.
    equal = [6, 6, 3, 3, 2, 3, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1]
    pairs = [(k, k) for k, n in enumerate(equal) for _ in range(n)] + [(1, 16), (4, 1), (3, 14), (16, 12)]
    read = sample().assign(option=[f"option {k}" for pair in pairs for k in pair])
    found = judge.reliability(read, ("j", "k"), battery=battery())
    option = next(one for one in found.results if one.name == "option_ac1")
    assert option.estimate == pytest.approx(0.894336, abs=5e-7) and option.n_rows == 40
    assert "judge_ac1[option]" in {gate.name for gate in found.gates}
    assert all(gate.passed for gate in found.gates)
    other = read.assign(option=read["option"].where(read["judge_model"] == "j", "option 0"))
    gates = {gate.name: gate.passed for gate in judge.reliability(other, ("j", "k"), battery=battery()).gates}
    assert not gates["judge_ac1[option]"] and gates["judge_ac1[stance]"]


def test_gates_that_fail():
    def failed(**options):
        read = options.pop("read", sample())
        gates = judge.reliability(read, ("j", "k"), **{"battery": battery()} | options).gates
        return {gate.name for gate in gates if not gate.passed}

    assert failed() == set()
    assert failed(battery=None) == failed(battery=battery(right=7)) == {"judge_battery"}
    assert failed(read=sample()[:60]) >= {"judge_sample"}
    unread = sample()
    unread.loc[unread.index[:6], "severity"] = np.nan
    assert failed(read=unread) == {"parse_rate", "judge_sample"}
    # A judge that knows one label agrees with one that does the same; the collapse is caught.
    lazy = sample().assign(severity=0)
    assert {"top_label_share[stance]", "judge_ac1[stance]"} <= failed(read=lazy)
    none = judge.reliability(sample().assign(severity=np.nan), ("j", "k"))
    assert none.results[0].status == "undefined" and not none.gates[0].passed
    with pytest.raises(DataError, match="no 'm', expected one of j, k"):
        judge.reliability(sample(), ("j", "m"))


ITEMS = pd.DataFrame([(item[0], *map(int, item[1:])) for item in
                      "a000 a111 a212 b322 b222 b010 c112 c232 c001 d333 d101 d221".split()],
                     columns=["cluster", "human_1", "human_2", "judge"])


def test_a_judge_beside_two_people():
    found = judge.benchmark(ITEMS)
    assert found["human_human"] == pytest.approx(0.805195, abs=5e-7)
    assert found["judge_human"] == pytest.approx(0.746858, abs=5e-7)
    delta = found["delta"]
    # Exactly -0.0583363; the example subtracts the two rounded coefficients.
    assert delta.estimate == pytest.approx(0.746858 - 0.805195, abs=1e-6) and delta.n_boot == 256
    assert (delta.low, delta.high) == (pytest.approx(-0.252507, abs=5e-7), pytest.approx(0.123092, abs=5e-7))
    assert found["verdict"] == "compatible"
    found = judge.benchmark(ITEMS, "direction")
    assert found["human_human"] == pytest.approx(0.833333, abs=5e-7)
    assert found["judge_human"] == pytest.approx(0.583333, abs=5e-7)
    assert found["delta"].estimate == pytest.approx(-0.25)
    assert found["delta"].low == pytest.approx(-0.648649, abs=5e-7)
    assert found["delta"].high == pytest.approx(0.216976, abs=5e-7)
    with pytest.raises(DataError, match="field 'judge': 4, expected one of 0, 1, 2, 3"):
        judge.benchmark(ITEMS.assign(judge=4))
    with pytest.raises(ValueError, match="axis='move': expected one of severity, direction"):
        judge.benchmark(ITEMS, "move")


def test_a_judge_against_the_grain_is_below():
    turned = ITEMS.assign(human_2=ITEMS["human_1"], judge=3 - ITEMS["human_1"])
    items = pd.concat([turned.assign(cluster=ITEMS["cluster"] + str(k)) for k in range(3)])
    assert judge.benchmark(items)["verdict"] == "below"
    same = judge.benchmark(ITEMS.assign(human_1=1, human_2=1, judge=1))
    assert same["verdict"] == "undefined" and np.isnan(same["delta"].estimate)


# Full agreement: friendly and hostile by self-report, friendly and hostile by the judge.
ARMS = np.array([(.9, .3, .85, .25), (.8, .4, .8, .35), (.7, .1, .75, .05), (.6, .3, .5, .3)])


def test_the_ratio_of_falls():
    own, blind = pd.Series(ARMS[:, 0] - ARMS[:, 1]), pd.Series(ARMS[:, 2] - ARMS[:, 3])
    found = judge.ratio(own, blind)
    assert found.self_drop.estimate == pytest.approx(0.475)
    assert found.blind_drop.estimate == pytest.approx(0.4875)
    assert (found.self_drop.low, found.self_drop.high) == (pytest.approx(0.35), pytest.approx(0.60))
    assert found.ratio.estimate == pytest.approx(1.026316, abs=5e-7)
    assert (found.ratio.low, found.ratio.high) == (pytest.approx(0.807692, abs=5e-7), pytest.approx(1.15))
    assert found.gap.estimate == pytest.approx(-0.0125)
    assert (found.gap.low, found.gap.high) == (pytest.approx(-0.075), pytest.approx(0.0625))
    assert found.mean_of_ratios == pytest.approx(0.989583, abs=5e-7) and found.level == 2
    assert judge.ratio(own, blind * 1.4).level == 0
    assert judge.ratio(own, blind * np.array([.5, 1.6, .6, 1.5])).level == 1
    flat = judge.ratio(own - own.mean(), blind)
    assert flat.ratio.status == "undefined" and flat.level == 0 and "self_drop_holds_0" in flat.ratio.flags
    for some in (own[:1], own[:0], own * 0 + 0.5):
        few = judge.ratio(some, blind)
        assert few.ratio.status == "undefined" and few.level == 0  # no interval of the self-reported fall
    failed = judge.ratio(own, blind, judge_gates=[Gate("judge_ac1", 0.5, 0.6, False)])
    for gated in (failed, found):  # a judge that failed, and one that nobody checked
        assert (gated.ratio.status, gated.blind_drop.status, gated.gap.status) == ("gated",) * 3
        assert gated.self_drop.status == "ok"
    passed = judge.ratio(own, blind, judge_gates=[Gate("judge_ac1", 0.7, 0.6, True)])
    assert passed.ratio.claimable and passed.blind_drop.claimable


def test_turn_by_turn():
    own, blind = [0, 0, 0, 0, 1, 1, 2, 2, 3, 1], [0, 0, 0, 1, 1, 2, 2, 1, 2, 2]
    found = judge.companion(own, blind)
    assert (found.exact, found.harder, found.softer) == (0.5, 0.3, 0.2)
    assert (found.both_zero, found.n_signal, found.unbacked_pushback) == (0.3, 7, 0)
    assert found.rho == pytest.approx(0.764349, abs=5e-7)
    assert found.rho_signal == pytest.approx(0.378119, abs=5e-7)
    merged = judge.companion(own, blind, levels=3)
    assert (merged.exact, merged.softer) == (0.6, 0.1)
    assert np.isnan(judge.companion([0, 0], [0, 0]).rho) and np.isnan(judge.companion([], []).exact)
    assert judge.companion([2, 3, 0], [0, 0, 0]).unbacked_pushback == pytest.approx(2 / 3)
    for wrong in ([0, 4], [0, np.nan], [0]):
        with pytest.raises(ValueError, match="expected severities 0..3 of the same turns"):
            judge.companion([0, 1], wrong)


def test_correlations_turn_by_turn_have_an_interval_over_questions():
    rng = np.random.default_rng(1)
    own = rng.integers(0, 4, 90)
    blind, questions = np.clip(own + rng.integers(-1, 2, 90), 0, 3), np.repeat(np.arange(6), 15)
    found = judge.companion(own, blind, questions=questions)
    # Six questions: all resamples, here each with the correlation of its own rows.
    rows = [np.flatnonzero(questions == question) for question in range(6)]
    pick = [np.concatenate([rows[k] for k in drawn]) for drawn in itertools.product(range(6), repeat=6)][::97]
    all_turns = [sps.spearmanr(own[at], blind[at]).statistic for at in pick]
    pushed = [at[(own[at] > 0) | (blind[at] > 0)] for at in pick]
    signal = [sps.spearmanr(own[at], blind[at]).statistic for at in pushed]
    for interval, sampled in ((found.rho_interval, all_turns), (found.rho_signal_interval, signal)):
        assert interval == pytest.approx(np.quantile(sampled, [0.025, 0.975]), abs=0.03)
    assert found.rho_signal_interval[0] < found.rho_signal < found.rho_signal_interval[1]
    assert np.isnan(judge.companion(own, blind).rho_interval).all()


# --- from judgements to the measures of self-reports ---


def turns():
    lines = [(f"{question}{stance}{k}", question, stance) for question in "pq"
             for stance in ("friendly", "hostile") for k in range(2)]
    frame = pd.DataFrame(lines, columns=["turn_id", "question_id", "stance"])
    return frame.assign(composition="tri", timing="after", member_id="m", status="completed",
                        excluded="not_explicit")


def judgements(severity, **fields):
    told = {"judge_model": "j", "judge_family": "other", "move_type": "challenge", "payload_hash": "h"}
    return pd.DataFrame({"turn_id": turns()["turn_id"], "severity": severity}).assign(**told | fields)


def test_readings_replace_labels_and_go_through_the_same_measure():
    read = judge.read(turns(), judgements([0, 0, 2, 3, 0, 1, 0, 2]))
    assert selfreport.by_question(read).to_numpy().tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert selfreport.collapse(read).estimate == 0.5
    moved = read.assign(move_type=np.where(read["severity"] > 1, "challenge", "concession"))
    shifts = {one.name: one for one in judge.move_shift(moved)}
    assert shifts["hostile_minus_friendly_challenge"].estimate == pytest.approx(0.75)
    assert all(one.p_holm == 1 for one in shifts.values())


def test_moves_need_gates_of_the_move_axis():
    read = judge.read(turns(), judgements(1))
    read.loc[0, "move_type"] = None
    stance, both = (judge.reliability(sample(), ("j", "k"), battery=battery(), moves=moves).gates
                    for moves in (False, True))
    for gates, status in (((), "gated"), (stance, "gated"), (both, "ok")):
        found = judge.move_shift(read, judge_gates=gates)
        assert {one.status for one in found} == {status} and found[0].exclusions == {"no_move": 1}


def test_several_judges_a_lower_median_and_no_judge_of_the_authors_family():
    votes = pd.concat([judgements(1, judge_model="j"), judgements(3, judge_model="k"),
                       judgements(2, judge_model="own", judge_family="mine", move_type="restatement")])
    read = judge.read(turns(), votes, families={"m": "mine"})
    assert set(read["severity"]) == {1.0} and set(read["n_judges"]) == {2}
    assert set(read["move_type"]) == {"challenge"}
    told = judge.read(turns().assign(member_family="mine"), votes)
    assert set(told["n_judges"]) == {2}
    with pytest.raises(DataError, match="families: no member 'm', expected the family of every"):
        judge.read(turns(), votes, families={"someone else": "mine"})
    alone = judge.read(turns(), judgements(1, judge_family="mine"), families={"m": "mine"})
    assert set(alone["excluded"]) == {"own_family"} and alone["severity"].isna().all()


def test_unread_replies_are_left_out_and_counted():
    read = judge.read(turns(), judgements([None, 0, 2, 3, 0, 1, 0, 2])[:-1])
    assert read["excluded"].tolist() == ["unread", *[""] * 6, "not_judged"]
    assert selfreport.collapse(read).exclusions == {"unread": 1, "not_judged": 1}


@pytest.mark.parametrize(("change", "message"), [
    ({"severity": 5}, "field 'severity': 5"),
    ({"move_type": "shouting"}, "field 'move_type': 'shouting'"),
    ({"turn_id": "root"}, "turn_id 'root': expected a turn that answers"),
    ({"payload_hash": None}, "field 'payload_hash': missing"),
])
def test_bad_judgements_are_refused(change, message):
    votes = judgements(1).astype(object)
    for field, value in change.items():
        votes.loc[3, field] = value
    with pytest.raises(DataError, match=message):
        judge.read(turns(), votes)


def test_a_judge_that_saw_something_else_is_refused():
    seen = turns().assign(payload_hash=judge.payload_hash("parent", "reply"))
    judge.read(seen, judgements(1, payload_hash=judge.payload_hash("parent", "reply")))
    with pytest.raises(DataError, match="nothing shows that the judge was blind"):
        judge.read(seen, judgements(1, payload_hash=judge.payload_hash("parent, stance: hostile", "reply")))
