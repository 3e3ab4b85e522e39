"""One-feature gates: the search against a plain loop, rows held out, hindsight."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import data, replay, stumps
from analysis.errors import DataError


@pytest.fixture(scope="module")
def paper():
    return data.debates()


@pytest.fixture(scope="module")
def local(paper):
    return paper[paper["row"].isin(data.LOCAL_ROWS)]


def plain(train, features, penalty, decimals):
    """The search as said, one debate at a time."""
    n, best, best_rank = len(train), None, (0.0, 0.0, 0.0, 0.0)
    for feature in features:
        values = [float(v) for v in train[feature]]
        known = [v for v in values if not math.isnan(v)]
        if not known:
            continue
        fill = sum(known) / len(known)
        tried = [float(np.percentile(known, p)) for p in range(0, 101, 5)]
        if len(set(known)) <= 25:
            tried += sorted(set(known))
        for threshold in tried if decimals is None else [round(t, decimals) for t in tried]:
            for direction in ("from", "up to"):
                gated = prevented = lost = 0
                for value, cell in zip(values, train["cell"], strict=True):
                    value = fill if math.isnan(value) else value
                    if value >= threshold if direction == "from" else value <= threshold:
                        gated += 1
                        prevented += cell == "collapse"
                        lost += cell == "correction"
                net = (prevented - lost) / n
                rank = (net - penalty * (gated / n), net, -lost, -gated / n)
                if rank > best_rank:
                    best, best_rank = (feature, direction, threshold, gated, prevented, lost), rank
    return best, best_rank[0]


cells = st.sampled_from(["preserved", "collapse", "correction", "unrepaired"])
flips = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan])
thirds = st.sampled_from([1 / 3, 2 / 3, 1.0])
frames = st.lists(st.tuples(cells, flips, thirds), min_size=1, max_size=25)


@settings(deadline=None, max_examples=60)
@given(frames, st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from([12, None]))
def test_search_equals_the_plain_loop(debates, penalty, decimals):
    frame = pd.DataFrame(debates, columns=["cell", "n_flipped_1", "agree_0"])
    features = ["n_flipped_1", "agree_0"]
    rule = stumps.learn(frame, features, penalty=penalty, decimals=decimals)
    best, objective = plain(frame, features, penalty, decimals)
    assert rule.objective == pytest.approx(objective, abs=1e-15)
    if best is None:
        assert rule.feature is None and not rule(frame).any()
    else:
        assert (rule.feature, rule.direction, rule.threshold) == best[:3]
        assert (rule.gated, rule.prevented, rule.lost) == best[3:]
        scored = replay.replay(frame, rule).iloc[0]
        assert scored[["gated", "prevented", "lost"]].tolist() == list(best[3:])


def test_many_distinct_values_leave_percentiles_only():
    values = np.arange(26.0)
    assert len(stumps.thresholds(values)) == 21
    assert len(stumps.thresholds(values[:25])) == 21 + 25
    assert stumps.thresholds(values)[:3].tolist() == [0, 1.25, 2.5]


def test_by_hand():
    """Three debates flip thrice and would collapse; freezing them nets 3 of 10, less the price of 3 of 10."""
    frame = pd.DataFrame({"n_flipped_1": [3, 3, 3, 2, 2, 1, 0, 0, 0, 0],
                          "cell": ["collapse"] * 3 + ["correction"] * 2 + ["preserved"] * 5})
    rule = stumps.learn(frame, ["n_flipped_1"])
    assert (rule.feature, rule.direction) == ("n_flipped_1", "from")
    assert (rule.gated, rule.prevented, rule.lost) == (3, 3, 0)
    assert rule.objective == pytest.approx(0.3 - 0.02 * 0.3, abs=1e-15)
    assert rule(frame).tolist() == [True] * 3 + [False] * 7
    # Above a price of 1 a debate no collapse pays.
    assert stumps.learn(frame, ["n_flipped_1"], penalty=1.5).feature is None


def test_a_rounded_two_thirds_leaves_two_thirds_alone():
    frame = pd.DataFrame({"agree_0": [1 / 3, 2 / 3, 2 / 3, 1.0], "cell": ["correction", *["collapse"] * 3]})
    rounded, exact = (stumps.learn(frame, ["agree_0"], decimals=d) for d in (12, None))
    assert (exact.gated, exact.prevented) == (3, 3)
    # The percentile at 2/3 is now just above it; one between 1/3 and 2/3 still does.
    at_two_thirds = exact._replace(threshold=round(2 / 3, 12))
    assert at_two_thirds(frame).tolist() == [False] * 3 + [True]
    assert rounded.threshold < 2 / 3 and rounded.prevented == 3


def test_the_released_thresholds_were_rounded(shared):
    """A released rule freezes from 0.666666666667 on; its counts fit only if 2/3 is not frozen."""
    folds = pd.read_csv(shared / "upstream/reported/policy_replay_learned_folds.csv")
    line = folds[(folds["rule_feature"] == "init_agree_frac") & (folds["rule_direction"] == "high")].iloc[0]
    n, gated = int(line["n_train"]), int(line["train_gated"])
    thirds = round(3 * n * line["rule_fill_value"])  # agreeing agents, of three a debate
    with_two_thirds = n - gated  # then as many debates would have three different answers
    assert with_two_thirds + 3 * gated < thirds or with_two_thirds + 2 * gated > thirds
    # Frozen at full agreement only: the others are at 1/3 or 2/3.
    others = thirds - 3 * gated
    assert n - gated <= others <= 2 * (n - gated)


def test_released_objectives_are_those_of_the_search(shared):
    folds = pd.read_csv(shared / "upstream/reported/policy_replay_learned_folds.csv")
    found = (folds["train_net"] - stumps.PENALTY * folds["train_gated"]) / folds["n_train"]
    np.testing.assert_allclose(found, folds["train_objective"], rtol=0, atol=1e-15)
    learned = folds[folds["rule_kind"] != "no_gate"]
    assert (learned["train_objective"] > 0).all() and len(learned) > 10


# --- held out ---


def four_rows():
    """In rows a to c the debates that flip twice collapse, in d they are corrected."""
    frame = pd.DataFrame({"row": np.repeat(list("abcd"), 5), "n_flipped_1": [2, 2, 0, 0, 1] * 4})
    twice = frame["n_flipped_1"] == 2
    frame["cell"] = np.where(twice, np.where(frame["row"] == "d", "correction", "collapse"), "preserved")
    return frame


def test_folds_by_hand():
    found = stumps.folds(four_rows(), ["n_flipped_1"]).set_index("row")
    assert found.loc["d", ["gated", "prevented", "lost", "net"]].tolist() == [2, 0, 2, -2]
    assert found.loc["a", ["gated", "prevented", "lost", "net"]].tolist() == [2, 2, 0, 2]
    training = [f"train_{name}" for name in ("n", "gated", "prevented", "lost")]
    assert found.loc["d", training].tolist() == [15, 6, 6, 0]
    assert found.loc["d", "objective"] == pytest.approx((6 - 0.02 * 6) / 15)
    assert found.loc["a", ["train_prevented", "train_lost"]].tolist() == [4, 2]
    assert found.loc["pooled", ["gated", "prevented", "lost"]].tolist() == [8, 6, 2]
    assert pd.isna(found.loc["pooled", "feature"])


def test_what_is_held_out_does_not_touch_its_rule(local):
    before = stumps.folds(local, penalty=0.0).set_index("row")
    changed = local.assign(cell=local["cell"].astype(str))
    changed.loc[changed["row"] == "qwen3-4b", "cell"] = "collapse"
    after = stumps.folds(changed, penalty=0.0).set_index("row")
    rule = ["feature", "direction", "threshold", "train_n", "objective"]
    assert before.loc["qwen3-4b", rule].tolist() == after.loc["qwen3-4b", rule].tolist()
    assert before.loc["qwen3-4b", "gated"] == after.loc["qwen3-4b", "gated"] > 0


def test_folds_need_four_rows_and_their_features(paper):
    with pytest.raises(DataError, match="'row': 3 distinct"):
        stumps.folds(four_rows().query("row != 'd'"), ["n_flipped_1"])
    with pytest.raises(DataError, match="no column 'unanimous_0'"):
        stumps.folds(four_rows())
    with pytest.raises(DataError, match="no debates to learn from"):
        stumps.learn(paper.iloc[:0])


def test_a_feature_that_training_does_not_have_is_passed_over():
    frame = four_rows().assign(agree_1=math.nan)
    assert stumps.learn(frame, ["agree_1", "n_flipped_1"]).feature == "n_flipped_1"


@pytest.mark.parametrize("features", [stumps.ROUND_0, stumps.ROUND_1], ids=["round 0", "round 1"])
def test_nothing_pays_on_the_public_debates(paper, local, features):
    for debates in (paper, local):
        found = stumps.folds(debates, features)
        assert found["feature"].isna().all() and found["gated"].eq(0).all()


def test_public_rows_against_the_plain_loop(local):
    held = "qwen3-4b"
    train = local[local["row"] != held]
    rule = stumps.learn(train, ["changed_1", "n_flipped_1"], penalty=0.0)
    best, objective = plain(train, ["changed_1", "n_flipped_1"], 0.0, 12)
    assert (rule.feature, rule.direction, rule.threshold, rule.gated, rule.prevented, rule.lost) == best
    assert rule.objective == pytest.approx(objective)
    line = stumps.folds(local, penalty=0.0).set_index("row").loc[held]
    fired = local.loc[local["row"] == held, "n_flipped_1"] <= 0
    cell = local.loc[local["row"] == held, "cell"]
    wanted = [fired.sum(), (fired & (cell == "collapse")).sum(), (fired & (cell == "correction")).sum()]
    assert line[["gated", "prevented", "lost"]].tolist() == wanted


def test_hindsight(paper):
    found = stumps.oracle(paper).set_index("row")
    for row, part in paper.groupby("row", sort=False):
        best, _ = plain(part, stumps.ROUND_1, 0.0, None) if len(part) < 300 else (None, None)
        if best is not None:
            assert found.loc[row, ["prevented", "lost"]].tolist() == list(best[4:])
    assert found.loc["llama-3.1-8b", ["prevented", "lost", "net"]].tolist() == [43, 27, 16]
    assert found.loc["pooled", "net"] == found["net"].iloc[:-1].sum()
    assert (found["net"] >= 0).all() and (found["delta_pp"] <= found["ceiling_pp"]).all()
    assert found.loc["pooled", "ceiling_pp"] == pytest.approx(100 * 253 / 6925)


def test_sweep_repeats_the_folds(paper, local):
    found = stumps.sweep({"six": paper, "four": local})
    assert found[["cohort", "rows"]].drop_duplicates().values.tolist() == [["six", 6], ["four", 4]]
    line = found.query("cohort == 'four' and features == 'Round 1' and penalty == 0").iloc[0]
    again = stumps.folds(local, penalty=0.0).iloc[-1]
    assert line[replay.COLUMNS].tolist() == again[replay.COLUMNS].tolist()
    assert line["rules"] == 1


def test_tie_credit_is_learned_from_fractions():
    frame = pd.DataFrame({"correct_0": [1.0, 1.0, 0.5], "correct_1": [0.0, 0.5, 0.5], "endpoint": 1,
                          "n_flipped_1": [2, 2, 0], "cell": ["collapse", None, None]})
    rule = stumps.learn(frame, ["n_flipped_1"], penalty=0.0)
    assert (rule.gated, rule.prevented, rule.lost) == (2, 1.5, 0)


def test_no_debates_and_no_such_column_are_refused(paper):
    with pytest.raises(DataError, match="no column 'model'"):
        stumps.folds(paper, by="model")
    for debates, by in ((paper.iloc[:0], "row"), (paper, "model")):
        with pytest.raises(DataError, match=f"expected some, with '{by}'"):
            stumps.oracle(debates, by=by)
