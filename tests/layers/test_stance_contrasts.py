"""Contrasts over propositions, temperature fit, gold stances and rounds."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from analysis.errors import DataError
from analysis.layers import stance, stance_gold
from analysis.layers import stance_contrasts as contrasts
from analysis.layers.inference import holm_family
from analysis.layers.results import to_frame

GOLD = [[-4, -3, -2.5, -1.5, -1, -1.2, -2], [-1, -1.2, -2, -2.2, -3, -3.5, -4],
        [-3, -2.8, -1.9, -1.2, -1, -2, -2.5], [-5, -4, -3, -2, -1, -0.9, -1.5]]
SIDES = ["agree", "disagree", "disagree", "agree"]


def measured(rows, **columns):
    """Cells as read_cells gives them, with what a test does not set at a harmless value."""
    frame = pd.DataFrame(rows)
    defaults = {"receiver": "m", "opponent": "o", "stance": "hostile", "kind": "strong", "bucket": "mid",
                "valid": True, "reason": "", "heat_matched": True, "T_unstable": False,
                "anchors_differ": False,
                "prior_margin": 2.0, "largest": 0.8}
    for name, value in (defaults | columns).items():
        if name not in frame or name in columns:
            frame[name] = value
    return frame


WORKED = measured({"proposition_id": ["p1"] * 4 + ["p2"] * 2 + ["p3"] * 4,
                   "heat_free_shift": [0.6, 0.8, 0.4, 0.2, 1.0, 1.2, -0.1, 0.1, 0.3, 0.1]})


# --- worked examples ----------------------------------------------------------------------------------------

def test_worked_mean_over_propositions():
    assert contrasts.propositions(WORKED, "heat_free_shift").tolist() == pytest.approx([0.5, 1.1, 0.1])
    result = contrasts.direction(WORKED)
    assert result.estimate == pytest.approx(0.566667, abs=5e-7) and result.p == 0.25
    assert WORKED.heat_free_shift.mean() == pytest.approx(0.46)  # what pooling cells would say
    assert (result.n_units, result.n_rows, result.unit, result.unit_name) == (3, 10, "scale points",
                                                                              "proposition")
    assert "cannot_reach_0.05" in result.flags and result.gates[0].name == "self_test"


def test_worked_temperature_fit():
    fit = stance_gold.fit_temperature(GOLD, SIDES)
    assert fit.temperature == pytest.approx(0.650160, abs=5e-7)
    assert fit.loss == pytest.approx(0.373606, abs=5e-7) and fit.flags == ()
    assert stance_gold.gold_loss(GOLD, SIDES, 1) == pytest.approx(0.391992, abs=5e-7)
    assert stance_gold.gold_loss(GOLD, SIDES, 2) == pytest.approx(0.473468, abs=5e-7)


def test_worked_signed_margins_and_auroc():
    margins = [1.678222, -2.102083, 0.810805, 2.589970]
    assert stance_gold.signed_margin(GOLD).tolist() == pytest.approx(margins, abs=5e-7)
    single = stance_gold.signed_margin([-3, -2.5, -2, -1.5, -1.2, -1.6, -2.2])
    assert single == pytest.approx(0.831797, abs=5e-7)
    gold = pd.DataFrame({"receiver_model": "m", "proposition_id": list("abcd"), "side": SIDES,
                         "logprob": GOLD})
    result = stance_gold.gold_auroc(gold)["m"]
    assert result.estimate == 1 and result.role == "descriptive" and np.isnan(result.p)
    # Too many resamples of four statements have one side only.
    assert np.isnan(result.low) and "undefined_bootstrap" in result.flags


def test_grid_of_the_paper():
    cells = []
    for receiver, n in (("llama", 19), ("deepseek", 17), ("qwen", 15)):
        others = [name for name in ("llama", "deepseek", "qwen") if name != receiver]
        cells += [dict(zip(("receiver", "proposition_id", "opponent", "stance", "kind"), c, strict=True))
                  for c in product([receiver], range(n), others, stance.STANCES, stance.KINDS)]
    grid = contrasts.grid(pd.DataFrame(cells))
    assert (grid.full == grid.cells).all() and grid.cells.sum() == 612
    mid = pd.DataFrame(cells).query("receiver == 'llama' and proposition_id < 8 and kind != 'irrelevant'")
    assert len(mid) == 64


# --- temperature and gold -----------------------------------------------------------------------------------

def test_loss_is_the_log_loss_of_the_library():
    rng = np.random.default_rng(0)
    reads, sides = rng.normal(0, 2, (30, 7)), rng.choice(["agree", "disagree"], 30)
    for temperature in (0.5, 1, 3):
        p = np.exp(log_softmax(reads / temperature, axis=1))
        agree = p[:, 4:].sum(axis=1) + p[:, 3] / 2
        expected = log_loss(sides, np.column_stack([agree, 1 - agree]), labels=["agree", "disagree"])
        assert stance_gold.gold_loss(reads, sides, temperature) == pytest.approx(expected)


def test_fit_recovers_the_temperature_that_made_the_answers():
    rng = np.random.default_rng(1)
    reads = rng.normal(0, 4, (40_000, 7))
    p = np.exp(log_softmax(reads / 3.0, axis=1))
    agree = rng.random(len(reads)) < p[:, 4:].sum(axis=1) + p[:, 3] / 2
    fit = stance_gold.fit_temperature(reads, np.where(agree, "agree", "disagree"))
    assert fit.temperature == pytest.approx(3.0, rel=0.05)


def test_fit_at_a_bound_is_degenerate():
    sharp = stance_gold.fit_temperature([[-5, -4, -3, -2, -1, 0, 1.0]] * 3, ["agree"] * 3)
    assert sharp.temperature == pytest.approx(0.25, rel=1e-3) and sharp.flags == ("degenerate", "one_class")
    wrong = stance_gold.fit_temperature([[-5, -4, -3, -2, -1, 0, 1.0], [1, 0, -1, -2, -3, -4, -5.0]],
                                      ["disagree", "agree"])
    assert wrong.temperature == pytest.approx(16, rel=1e-3) and wrong.flags == ("degenerate",)


def test_bad_gold():
    with pytest.raises(DataError, match="gold read 1, field 'side': 'yes', expected one of agree, disagree"):
        stance_gold.fit_temperature(GOLD[:2], ["agree", "yes"])
    with pytest.raises(DataError, match="none, expected reads"):
        stance_gold.fit_temperature(np.zeros((0, 7)), [])
    with pytest.raises(DataError, match="gold read 0, field 'logprob': not finite"):
        stance_gold.fit_temperature([[np.nan] * 7], ["agree"])
    gold = pd.DataFrame({"receiver_model": "m", "proposition_id": list("aacd"), "side": SIDES,
                         "logprob": GOLD})
    with pytest.raises(DataError, match="proposition_id 'a', field 'side'"):
        stance_gold.gold_auroc(gold)


def test_auroc_by_receiver_over_statements():
    rng = np.random.default_rng(3)
    gold = pd.DataFrame({"receiver_model": ["m", "n"] * 20, "proposition_id": np.repeat(np.arange(20), 2),
                         "side": np.repeat(["agree", "disagree"] * 10, 2)})
    gold["logprob"] = list(rng.normal(0, 1, (40, 7)))
    twice = pd.concat([gold, gold])  # a second read of every statement adds no statement
    for name, result in stance_gold.gold_auroc(twice).items():
        part = gold[gold.receiver_model == name]
        scores = stance_gold.signed_margin(part.logprob.tolist())
        agree = (part.side == "agree").to_numpy()
        above = np.subtract.outer(scores[agree], scores[~agree])
        assert result.estimate == pytest.approx(((above > 0) + (above == 0) / 2).mean())
        assert result.n_units == 20 and result.n_rows == 40 and result.low < result.estimate < result.high
    one = stance_gold.gold_auroc(gold[gold.side == "agree"])["m"]
    assert one.status == "undefined" and "one_class" in one.flags and not one.claimable


# --- contrasts ----------------------------------------------------------------------------------------------

def test_kinds_and_buckets_in_scope():
    cells = measured({"proposition_id": list("aaabbcc"), "heat_free_shift": [1, 3, 100, 5, 7, 9, 9.0],
                      "kind": ["strong", "weak", "irrelevant", "strong", "weak", "strong", "weak"],
                      "bucket": ["mid"] * 5 + ["pole", "mid"],
                      "conviction_own": [-1, -3, 50, -5, -7, -9, -9.0]})
    direction = contrasts.direction(cells)
    assert direction.estimate == 4 and direction.n_units == 2  # a: 2, b: 6; c has both buckets
    assert direction.exclusions == {"mixed_bucket": 2}
    assert contrasts.direction(cells, bucket="all").n_units == 3
    assert contrasts.conviction(cells).estimate == pytest.approx(-17 / 3)
    with pytest.raises(ValueError, match="bucket='middle': expected one of mid, pole, all"):
        contrasts.direction(cells, bucket="middle")


def test_faulty_cells_leave_and_are_counted():
    cells = measured({"proposition_id": list("aabb"), "heat_free_shift": [1, np.nan, 3, np.nan],
                      "valid": [True, False, True, True], "reason": ["", "treat_letter_mass", "", ""],
                      "heat_matched": [True, None, True, False], "T_unstable": [True, None, False, False]})
    result = contrasts.direction(cells)
    assert result.estimate == 2 and result.n_rows == 2
    assert result.exclusions == {"treat_letter_mass": 1, "heat_unmatched": 1}
    assert "T_unstable:1" in result.flags


def test_arms_that_lose_more_cells_are_flagged():
    cells = measured({"proposition_id": list("abcd") * 2, "heat_free_shift": 1.0,
                      "stance": ["hostile"] * 4 + ["friendly"] * 4})
    cells.loc[0, ["valid", "reason"]] = [False, "no_lean"]
    assert "differential_exclusion" in contrasts.direction(cells).flags


def test_content_gap_is_matched_on_opponent_and_stance():
    cells = measured({
        "proposition_id": ["a"] * 5 + ["b"] * 2, "opponent": ["o", "o", "q", "q", "q", "o", "o"],
        "kind": ["strong", "irrelevant", "strong", "irrelevant", "weak", "strong", "weak"],
        "heat_free_shift": [1.0, 0.2, 0.4, 0.4, 0.1, 5.0, 1.0]})
    gap = contrasts.content_gap(cells)
    assert gap.estimate == pytest.approx((0.8 + 0.0) / 2) and gap.n_units == 1 and gap.n_rows == 4
    assert gap.exclusions == {"unpaired": 1}
    gradient = contrasts.content_gap(cells, kinds=("strong", "weak"))
    assert gradient.estimate == pytest.approx((0.3 + 4.0) / 2) and gradient.name == "strong_minus_weak"
    none = contrasts.content_gap(cells[cells.kind == "strong"])
    assert none.status == "undefined" and np.isnan(none.estimate) and none.exclusions == {"unpaired": 3}


def test_mid_minus_pole_needs_propositions_for_a_p():
    rng = np.random.default_rng(0)
    few = measured({"proposition_id": range(17), "heat_free_shift": rng.normal(1, 0.3, 17),
                    "bucket": ["mid"] * 15 + ["pole"] * 2})
    result = contrasts.mid_minus_pole(few)
    assert np.isnan(result.p) and {"upper_bound", "no_p_few_propositions", "mid:15",
                                   "pole:2"} <= set(result.flags)
    means = few.groupby("bucket").heat_free_shift.mean()
    assert result.estimate == pytest.approx(means["mid"] - means["pole"])
    assert result.low < result.estimate < result.high and result.role == "exploratory"
    enough = measured({"proposition_id": range(12),
                       "heat_free_shift": [1.0] * 6 + [0.1] * 6 + 0.01 * np.arange(12),
                       "bucket": ["mid"] * 6 + ["pole"] * 6})
    assert contrasts.mid_minus_pole(enough).p == pytest.approx(2 / 924)  # 12 choose 6 divisions
    alone = contrasts.mid_minus_pole(few.iloc[:16])
    assert np.isnan(alone.low) and np.isfinite(alone.estimate)
    assert contrasts.mid_minus_pole(few.iloc[:15]).status == "undefined"


def test_saturated_receiver_is_unmeasurable_not_null():
    cells = measured({"proposition_id": range(8), "conviction_own": [-0.2, -0.1, -0.3, 0.0, -0.2, -0.3, -0.1,
                                                                     -0.2],
                      "conviction_peak": 0.0, "heat_free_shift": 0.0}, prior_margin=26.0, largest=0.9999)
    for result in (contrasts.conviction(cells), contrasts.direction(cells)):
        assert result.status == "unmeasurable" and not result.claimable
        assert {g.name for g in result.gates if not g.passed} == {"saturated_margin", "saturated_share"}
    free = contrasts.conviction(cells.assign(prior_margin=[26.0] * 7 + [3], largest=0.99))
    assert free.status == "ok" and free.claimable


def test_failing_self_test_blocks_direction_but_not_conviction(monkeypatch):
    broken = stance.self_test(lambda *reads, temperature: stance.direction(*reads, temperature=temperature)
                              ._replace(heat_free=np.zeros(1)))
    gate = stance.gates.check(stance.gates.SELF_TEST, broken.passed.mean())
    monkeypatch.setattr(stance, "self_test_gate", lambda: gate)
    cells = WORKED.assign(conviction_own=-1.0)
    assert contrasts.direction(cells).status == "gated" and not contrasts.direction(cells).claimable
    assert contrasts.conviction(cells).claimable


def test_receivers_are_never_pooled_and_holm_runs_over_them():
    rng = np.random.default_rng(2)
    cells = pd.concat([measured({"proposition_id": range(n), "conviction_own": rng.normal(-1, 1.2, n)},
                                receiver=name)
                       for name, n in (("llama", 9), ("qwen", 8), ("deepseek", 7))], ignore_index=True)
    with pytest.raises(DataError, match="models are never pooled"):
        contrasts.conviction(cells)
    found = contrasts.by_receiver(cells, contrasts.conviction)
    assert list(found) == ["llama", "qwen", "deepseek"]
    adjusted = holm_family({name: result.p for name, result in found.items()}, "any").p_holm
    assert [r.p_holm for r in found.values()] == pytest.approx(adjusted.tolist())
    assert {r.family for r in found.values()} == {"conviction over receivers"}
    pinned = cells.assign(prior_margin=np.where(cells.receiver == "llama", 30.0, 2.0))
    without = contrasts.by_receiver(pinned, contrasts.conviction)
    assert without["llama"].status == "unmeasurable" and np.isnan(without["llama"].p_holm)
    assert without["qwen"].p_holm <= found["qwen"].p_holm
    assert len(to_frame(found.values())) == 3


def test_cells_that_are_all_ties_or_of_one_proposition():
    same = measured({"proposition_id": range(12), "conviction_own": 0.0})
    result = contrasts.conviction(same)
    assert result.p == 1 and "no_information" in result.flags
    one = contrasts.conviction(measured({"proposition_id": ["a"], "conviction_own": [-2.0]}))
    assert one.estimate == -2 and one.p == 1 and np.isnan(one.low)
    assert {"few_units", "cannot_reach_0.05"} <= set(one.flags)


def test_from_reads_to_results():
    """Three propositions in all their cells, through the table of cells."""
    rng = np.random.default_rng(5)
    reads, cells = [], []
    for i, own in enumerate((6, 0, 2)):
        logits = -1.2 * np.abs(np.arange(7) - own)
        prior = log_softmax(logits) - 0.02
        pole = stance.opponent_pole(prior)
        reads.append((f"p{i}", f"x{i}", "prior", prior))
        for kind, tilt in (("strong", 0.3), ("weak", 0.2), ("irrelevant", 0.0)):
            for arm in stance.STANCES:
                key = f"{i}{kind}{arm}"
                control = logits + rng.normal(0, 0.01, 7)
                treat = control / 1.5 + tilt * pole * np.arange(7)
                reads.append((f"c{key}", f"x{i}", "control", log_softmax(control) - 0.02))
                reads.append((f"t{key}", f"x{i}", "treat", log_softmax(treat) - 0.02))
                cells.append(("m", "o", f"x{i}", arm, kind, pole, f"p{i}", f"t{key}", f"c{key}"))
    reads = pd.DataFrame(reads, columns=["read_id", "proposition_id", "phase", "logprob"]).assign(
        receiver_model="m", generation_mode="reasoning_off", probe_mode="reasoning_off")
    cells = pd.DataFrame(cells, columns=["receiver", "opponent", "proposition_id", "stance", "kind", "pole",
                                         "prior",
                                         "treat", "control"])
    table = stance.read_cells(reads, cells)
    assert table.valid.all() and table.bucket.value_counts().to_dict() == {"pole": 12, "mid": 6}
    irrelevant = table[table.kind == "irrelevant"]
    assert irrelevant.heat_free_shift.abs().max() < 1e-8  # heating alone, though it moved the mean
    assert irrelevant.raw_shift[irrelevant.bucket == "pole"].min() > 0.1
    gap = contrasts.content_gap(table)
    assert gap.n_units == 3 and gap.n_rows == 12 and gap.low > 0
    assert contrasts.conviction(table).estimate < 0 and contrasts.direction(table).n_units == 1


# --- rounds -------------------------------------------------------------------------------------------------

def test_rounds_keep_the_index_of_every_value():
    margins = measured({"proposition_id": ["a", "a", "b"], "opponent": ["o", "q", "o"],
                        "margin_0": [1.0, 3.0, 4.0], "margin_1": [0.5, 0.5, 1.0],
                        "margin_2": [0.6, 0.8, 1.0]})
    found = contrasts.rounds(margins)
    assert list(found) == ["margin_0", "margin_1", "margin_2", "net", "after_round_1"]
    values = {name: result.estimate for name, result in found.items()}
    assert values == pytest.approx({"margin_0": 3.0, "margin_1": 0.75, "margin_2": 0.85, "net": -2.15,
                                    "after_round_1": 0.1})
    assert np.isnan(found["margin_0"].p) and found["net"].p == 0.5 and found["net"].n_units == 2


def test_rounds_of_two_kinds_are_matched_differences():
    margins = measured({"proposition_id": list("aab"), "kind": ["strong", "irrelevant", "strong"],
                        "margin_0": [1.0, 1.0, 9], "margin_1": [0.2, 0.9, 9]})
    found = contrasts.rounds(margins, kinds=("strong", "irrelevant"))
    assert found["net"].estimate == pytest.approx(-0.7) and found["net"].n_units == 1
    assert "after_round_1" not in found


def test_round_margins_follow_the_first_stance():
    rng = np.random.default_rng(0)
    reads = measured({"proposition_id": np.repeat(["a", "b"], 4), "round": [3, 1, 0, 2] * 2})
    reads["logprob"] = list(rng.normal(0, 2, (8, 7)))
    table = contrasts.round_margins(reads).set_index("proposition_id")
    for name, part in reads.groupby("proposition_id"):
        by_round = part.set_index("round").logprob
        own = int(np.argmax(by_round[0]))
        for number in range(4):
            rest = np.delete(by_round[number], own)
            assert table.loc[name, f"margin_{number}"] == pytest.approx(by_round[number][own] - rest.max())
    with pytest.raises(DataError, match="round 2: 0 reads, expected one"):
        contrasts.round_margins(reads.drop(index=3))
    with pytest.raises(DataError, match="round 2: 2 reads, expected one"):
        contrasts.round_margins(pd.concat([reads, reads.loc[[3]]]))
