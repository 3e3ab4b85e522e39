"""The generator makes what it says: records in shape, set values in the averages."""

import numpy as np
import pandas as pd
import pytest

from analysis.errors import DataError
from analysis.layers import persistence, records, simulate, stance
from analysis.layers.agreement import ac1, count_table, kappa
from analysis.layers.relabelling import chain_ids


@pytest.fixture(scope="module")
def many():
    """Debates enough for shares to be known to about half a point."""
    setting = simulate.Setting(questions=60, default_share={"friendly": 0.1, "neutral": 0.0, "hostile": 0.3})
    return setting, simulate.debates(setting, runs=40, judges=2, seed=5)


def test_records_have_their_shape():
    setting = simulate.Setting(questions=4, iterations=2, propositions=3)
    made = simulate.study(setting, seed=1)
    turns = made["turns"]
    assert len(made["debates"]) == 4 * 3 and len(turns) == 12 * 3 * 3
    assert turns.turn_id.is_unique and made["reads"].read_id.is_unique and made["debates"].debate_id.is_unique
    roots = turns.iteration == 0
    assert turns[roots][["parent_id", "agreed_level", "opinion_shift"]].isna().all(axis=None)
    assert not turns[roots].agreed_level_explicit.any() and turns[~roots].agreed_level.notna().all()
    before = turns.set_index("turn_id").iteration
    assert (turns[~roots].parent_id.map(before) == turns[~roots].iteration - 1).all()
    assert chain_ids(turns)[~roots].str.count(r"\|").eq(2).all()  # parents are turns of the same debate
    assert set(made["judgements"].turn_id) == set(turns[~roots].turn_id)
    assert len(made["cells"]) == 3 * 2 * 2 * 3 and (made["cells"].receiver != made["cells"].opponent).all()
    found = persistence.pairs(made["requeries"])
    assert (found.excluded == "").all()
    assert set(found.turn_id) == set(persistence.targets(turns).query(
        "own_opinion_exact and stance_arm != 'friendly'").turn_id)


def test_records_pass_all_checks_and_come_back_from_disk(tmp_path):
    made = simulate.study(simulate.Setting(questions=3, propositions=2), seed=1)
    for kind, frame in made.items():
        records.write(frame, tmp_path / f"{kind}.jsonl")
    found = records.check(tmp_path)
    assert set(found) == set(made)
    table = stance.read_cells(found["reads"], found["cells"])
    assert (table.conviction_own - table.set_conviction).abs().max() < 1e-9


def test_equal_seeds_give_equal_records():
    setting = simulate.Setting(questions=3, propositions=2)
    for name, frame in simulate.study(setting, seed=3).items():
        pd.testing.assert_frame_equal(frame, simulate.study(setting, seed=3)[name])
    other = simulate.study(setting, seed=4)["turns"]
    assert not other.agreed_level.equals(simulate.study(setting, seed=3)["turns"].agreed_level)


def near(share, value, n):
    return abs(share - value) < 5 * np.sqrt(0.25 / n)


def test_shares_of_labels_and_judgements_are_the_set_ones(many):
    setting, made = many
    turns = made["turns"][made["turns"].iteration >= 1]
    for arm, part in turns.groupby("stance"):
        text = (part.text_severity == 0).mean()
        assert near(text, setting.agree[arm], 2400)  # debates, not turns, are independent
        assert near(1 - part.agreed_level_explicit.mean(), setting.default_share[arm], len(part))
        own = part[part.agreed_level_explicit]
        labelled = (own.agreed_level == "fully_agreed").mean()
        kept = 1 - setting.label_inflation if arm == "hostile" else 1
        assert near(labelled, kept * (own.text_severity == 0).mean(), len(own))
        default = part[~part.agreed_level_explicit]
        assert (default.agreed_level == "fully_agreed").all()
    judged = made["judgements"].merge(turns[["turn_id", "text_severity"]], on="turn_id")
    agreeing = judged[judged.text_severity == 0]
    assert near((agreeing.severity == 2).mean(), setting.judge_bias, len(agreeing))
    assert (judged.severity == judged.text_severity)[judged.text_severity > 0].all()


def test_agreement_of_two_judges_is_the_set_one(many):
    setting, made = many
    one, two = (part.sort_values("turn_id").severity.to_numpy() for _,
                part in made["judgements"].groupby("judge_model"))
    table = count_table(one, two, range(4))
    true = simulate.truth(setting)
    assert ac1(table).value == pytest.approx(true["judge_ac1"], abs=0.01)
    assert kappa(table, weights="quadratic").value == pytest.approx(true["judge_kappa"], abs=0.015)


def test_persistence_is_the_set_one(many):
    setting, made = many
    requeries = simulate.requeries(made["turns"], setting, seed=2)
    found = persistence.pairs(requeries)
    hostile, neutral = found[found.stance_arm == "hostile"], found[found.stance_arm == "neutral"]
    assert near(hostile["second"].mean(), setting.persistence, len(hostile) / 2)
    assert near(hostile["first"].mean(), setting.persistence - setting.stance_dependence, len(hostile) / 2)
    assert near(neutral["first"].mean(), setting.persistence, len(neutral) / 2)


def test_truth_by_simple_arithmetic():
    setting = simulate.Setting(agree={"friendly": 0.8, "neutral": 0.5, "hostile": 0.4}, label_inflation=0.25,
                               judge_bias=0.2, stance_dependence=0.3,
                               conviction={"strong": -2, "weak": -1, "irrelevant": 0},
                               direction={"strong": 0.6, "weak": 0.2, "irrelevant": 0.1})
    found = {name: value for name, value in simulate.truth(setting).items() if not name.startswith("judge_")}
    assert found == pytest.approx({
        "text_drop": 0.4, "self_drop": 0.5, "blind_drop": 0.32, "blind_over_self": 0.64,
        "self_minus_blind": 0.18,
        "removed_minus_retained": -0.3, "draw1_minus_draw2": 0, "conviction": -1.5, "direction": 0.4,
        "strong_minus_irrelevant": 0.5, "strong_minus_weak": 0.4})
    perfect = simulate.truth(simulate.Setting(judge_bias=0.0))
    assert perfect["judge_ac1"] == pytest.approx(1) and perfect["judge_kappa"] == pytest.approx(1)


@pytest.mark.parametrize("setting", [
    simulate.Setting(propositions=10),
    simulate.Setting(propositions=10, heat=0.8),
    simulate.Setting(propositions=20, pole_share=0.5, direction_spread=0.1,
                     direction={"strong": 0.6, "weak": 0.4, "irrelevant": 0.2}),
    simulate.Setting(propositions=10, conviction=dict.fromkeys(stance.KINDS, -3.0)),
])
def test_every_cell_has_its_set_conviction_and_direction(setting):
    reads, cells = simulate.likert(setting, seed=11)
    table = stance.read_cells(reads, cells)
    assert table.valid.all() and table.heat_matched.astype(bool).all() and table.length_matched.all()
    assert (table.conviction_own - table.set_conviction).abs().max() < 1e-9
    assert (table.heat_free_shift - table.set_direction).abs().max() < 1e-6
    share = (table.groupby("proposition_id").bucket.first() == "pole").mean()
    assert (share > 0) == (setting.pole_share > 0)


def test_cells_scatter_around_the_set_means():
    setting = simulate.Setting(propositions=200)
    _, cells = simulate.likert(setting, seed=1)
    for kind, part in cells.groupby("kind"):
        units = part.groupby("proposition_id")[["set_conviction", "set_direction"]].mean()
        error = units.std() / np.sqrt(len(units))
        assert abs(units.set_conviction.mean() - setting.conviction[kind]) < 4 * error.set_conviction
        assert abs(units.set_direction.mean() - setting.direction[kind]) < 4 * error.set_direction


def test_runs_are_separate_studies():
    setting = simulate.Setting(questions=3, propositions=2)
    made = simulate.debates(setting, runs=2, seed=0)
    assert made["debates"].question_id.str.partition("/")[0].value_counts().to_dict() == {"0": 9, "1": 9}
    reads, cells = simulate.likert(setting, runs=2, seed=0)
    assert sorted(cells.receiver.unique()) == ["receiver/0", "receiver/1"]
    assert stance.read_cells(reads, cells, signs=False).valid.all()


@pytest.mark.parametrize(("change", "message"), [
    ({"agree": {"friendly": 0.9, "neutral": 0.5, "hostile": 0.3}, "agree_spread": 0.2},
     r"agree\['friendly'\]=0.9"),
    ({"judge_bias": 1.2}, "judge_bias=1.2: expected a share"),
    ({"stance_dependence": 0.9}, "stance_dependence=0.9 with"),
    ({"questions": 0}, "questions=0: expected at least 1"),
    ({"heat": 0.0}, "heat=0.0: expected a positive number"),
])
def test_impossible_settings(change, message):
    with pytest.raises(ValueError, match=message):
        simulate.Setting(**change)


def test_reads_that_cannot_exist_are_refused():
    # A stance that stays as firm as it was cannot have moved across half of the scale.
    far = simulate.Setting(conviction=dict.fromkeys(stance.KINDS, 3.0),
                           direction=dict.fromkeys(stance.KINDS, 3.0))
    with pytest.raises(DataError, match="no read has both"):
        simulate.likert(far)
