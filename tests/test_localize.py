"""Onset, feature views, out-of-fold scores and the paired bootstrap."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from analysis import data, ledger, localize
from analysis.errors import DataError
from analysis.resampling import resamples


@pytest.fixture(scope="module")
def paper():
    return data.debates()


@pytest.fixture(scope="module")
def scores(paper):
    return {view: localize.oof_scores(paper, view=view) for view in localize.VIEWS}


def composed(n=60, seed=3):
    """Three-round debates of two rows, drawn at random but for the columns' consistency."""
    rng = np.random.default_rng(seed)
    right = rng.random((n, 4)) < 0.6
    frame = pd.DataFrame({"row": np.where(np.arange(n) % 2, "b", "a"),
                          "question": [f"q{i // 2}" for i in range(n)]})
    frame["replicate"], frame["endpoint"], frame["unanimous_0"] = 0, 3, rng.random(n) < 0.5
    for k in range(4):
        frame[f"correct_{k}"], frame[f"agree_{k}"] = right[:, k], rng.integers(1, 4, n) / 3
        if k:
            frame[f"changed_{k}"], frame[f"n_flipped_{k}"] = rng.random(n) < 0.3, rng.integers(0, 4, n)
    cells = np.array([["unrepaired", "correction"], ["collapse", "preserved"]])
    frame["cell"] = cells[right[:, 0].astype(int), right[:, 3].astype(int)]
    first_wrong = (~right).argmax(axis=1)
    frame["onset"] = pd.array(np.where(frame["cell"] == "collapse", first_wrong, 0), "Int64")
    frame.loc[frame["cell"] != "collapse", "onset"] = pd.NA
    return frame


def named_as_published(frame):
    """Source names of the release to ours: gemini_3-flash, openai_gpt-5.4-mini, vllm_llama-3.1-8b, ..."""
    name = frame["model"].str.replace("^(openai|vllm)_", "", regex=True)
    frame = frame.assign(row=name.replace({"gemini_3-flash": "gemini-3-flash", "_pooled": "pooled"}))
    if "feature_view" in frame:
        frame["view"] = frame["feature_view"].str.removesuffix("_trajectory")
    return frame


# --- onset ---


def test_onset_of_the_paper(paper):
    table = localize.onset_table(paper).set_index("row")
    pooled = table.loc["pooled"]
    assert pooled[["n", "collapse", "round_1", "round_2", "round_3", "unlocalized"]].tolist() == [6925, 253,
                                                                                                  149, 47,
                                                                                                  57, 0]
    assert pooled["share_1"] == 149 / 253
    assert table["collapse"].tolist() == [1, 1, 86, 112, 50, 3, 253]
    # Wilson's closed form
    z, p, n = 1.959963984540054, 149 / 253, 253
    centre, half = (p + z * z / (2 * n)), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert pooled["share_1_low"] == pytest.approx((centre - half) / (1 + z * z / n), abs=1e-12)
    assert pooled["share_1_high"] == pytest.approx((centre + half) / (1 + z * z / n), abs=1e-12)


def test_onset_matches_the_reported_table(paper, shared):
    reported = pd.read_csv(shared / "upstream/inputs/cascade_onset_rounds.csv")
    reported = named_as_published(reported).set_index("row")
    counts = {"n": "n_debates", "collapse": "n_collapses",
              "unlocalized": "unlocalized"} | {f"round_{k}": f"round_{k}" for k in (1, 2, 3)}
    found = localize.onset_table(paper).set_index("row")
    assert found.index.tolist() == reported.index.tolist()
    theirs = reported[list(counts.values())]
    assert found[list(counts)].to_numpy(int).tolist() == theirs.to_numpy(int).tolist()


def test_a_round_that_a_row_does_not_have_is_missing():
    frame = pd.DataFrame({
        "row": ["short", "short", "long", "long"], "cell": ["collapse", "preserved", "collapse", "collapse"],
        "endpoint": [1, 1, 2, 2], "onset": pd.array([1, None, 2, 1], "Int64"),
    })
    table = localize.onset_table(frame).set_index("row")
    assert pd.isna(table.loc["short", "round_2"]) and pd.isna(table.loc["short", "share_2"])
    assert table.loc["long", "round_2"] == 1 and table.loc["pooled", "round_2"] == 1


def test_counts_that_have_no_onset_are_shown():
    frame = pd.DataFrame({"cell": ["collapse"] * 3, "endpoint": 1,
                          "onset": pd.array([1, None, None], "Int64")})
    line = localize.onset_table(frame, by=None).iloc[0]
    assert line["collapse"] == line["round_1"] + line["unlocalized"] == 3


def test_a_row_without_collapse_has_no_share():
    frame = pd.DataFrame({"cell": ["preserved"], "endpoint": 1, "onset": pd.array([None], "Int64")})
    line = localize.onset_table(frame, by=None).iloc[0]
    assert line["round_1"] == 0 and math.isnan(line["share_1"])


def test_onset_of_nothing():
    with pytest.raises(DataError, match="no debates"):
        localize.onset_table(composed().iloc[:0])


# --- features, folds, fits ---


def test_views_are_nested_and_in_order(paper):
    views = localize.features(paper)
    assert {view: X.shape for view, X in views.items()} == {"baseline": (6925, 3), "r1": (6925, 6),
                                                            "full": (6925, 10)}
    np.testing.assert_array_equal(views["full"][:, :3], views["baseline"])
    np.testing.assert_array_equal(views["full"][:, 4], paper["n_flipped_1"])
    np.testing.assert_array_equal(views["full"][:, 6:],
                                  paper[["changed_2", "agree_2", "changed_3", "agree_3"]].astype(float))


def test_full_view_stops_at_the_last_round_that_every_debate_has():
    frame = composed()
    frame.loc[frame["row"] == "a", "endpoint"] = 2
    assert localize.features(frame)["full"].shape[1] == 8
    assert localize.features(frame[frame["row"] == "b"])["full"].shape[1] == 10
    assert localize.features(frame, rounds=1)["full"].shape[1] == 6


def test_a_missing_feature_column_is_named():
    with pytest.raises(DataError, match="no column 'agree_1'"):
        localize.features(composed().drop(columns="agree_1"))


def test_folds_are_the_published_ones():
    order = list(range(23))
    random.Random(42).shuffle(order)
    fold = localize.folds(23)
    assert [sorted(np.flatnonzero(fold == i).tolist()) for i in range(5)] == [sorted(order[i::5])
                                                                              for i in range(5)]
    with pytest.raises(ValueError, match="n_folds=1: expected at least 2"):
        localize.folds(10, 1)


def test_published_fit_is_plain_gradient_descent():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (50, 2)).astype(float), rng.integers(0, 2, 50)
    w, b = [0.0, 0.0], 0.0
    for _ in range(300):
        slope, push = [0.0, 0.0], 0.0
        for row, label in zip(X, y, strict=True):
            error = 1 / (1 + math.exp(-(b + w[0] * row[0] + w[1] * row[1]))) - label
            slope = [slope[0] + error * row[0], slope[1] + error * row[1]]
            push += error
        w = [wi - 0.1 * (si / 50 + 1e-3 * wi) for wi, si in zip(w, slope, strict=True)]
        b -= 0.1 * push / 50
    weights, bias = localize.published_fit(X, y)
    assert weights.tolist() == pytest.approx(w, abs=1e-12) and bias == pytest.approx(b, abs=1e-12)


def test_converged_fit_is_where_the_descent_would_end(paper):
    """At the optimum the gradient of the same penalised loss vanishes."""
    part = paper[paper["row"] == "phi-4-mini"].reset_index(drop=True)
    score = localize.oof_scores(part, view="r1", fit="converged")
    fold = localize.folds(len(part))
    X, y = localize.features(part)["r1"], (part["cell"] == "collapse").to_numpy(float)
    train = fold != 0
    total = np.ones(train.sum(), dtype=int)
    weights, bias = localize._optimum(X[train], total, y[train])
    error = expit(X[train] @ weights + bias) - y[train]
    assert np.abs(X[train].T @ error / train.sum() + 1e-3 * weights).max() < 1e-8
    assert abs(error.mean()) < 1e-8
    np.testing.assert_allclose(score[fold == 0], expit(X[~train] @ weights + bias), atol=1e-7)


# --- scores and areas ---


def test_pooled_areas_of_the_paper(paper, scores):
    label = paper["cell"] == "collapse"
    found = {view: localize.auc(label, score) for view, score in scores.items()}
    assert found["baseline"] == pytest.approx(0.6690917029222472, abs=1e-12)
    assert found["r1"] == pytest.approx(0.768466649605217, abs=1e-12)
    assert found["full"] == pytest.approx(0.845866686097762, abs=1e-12)


def test_areas_match_the_reported_ones_in_every_row(paper, shared):
    reported = named_as_published(pd.read_csv(shared / "upstream/reported/cascade_auc_by_model.csv"))
    both = localize.auc_table(paper).merge(reported, on=["row", "view"], suffixes=("", "_reported"),
                                           validate="1:1")
    assert len(both) == 21
    assert (both["n"] == both["n_reported"]).all() and (both["n_pos"] == both["n_pos_reported"]).all()
    assert (both["n_folds"] == both["n_folds_reported"]).all()
    np.testing.assert_allclose(both["fold_mean"], both["auc_fold_mean"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both["fold_sd"], both["auc_fold_sd"], rtol=0, atol=1e-12)


def test_areas_match_the_reported_ones_in_every_fold(paper, shared):
    reported = named_as_published(pd.read_csv(shared / "upstream/reported/cascade_auc_folds.csv"))
    found = localize.auc_table(paper, each_fold=True)
    assert len(found) == len(reported)
    for group, part in found.groupby(["row", "view"]):
        theirs = reported[(reported["row"] == group[0]) & (reported["view"] == group[1])].sort_values("fold")
        np.testing.assert_allclose(part["auc"], theirs["auc"], rtol=0, atol=1e-12, err_msg=str(group))


def test_the_published_fit_ranks_below_its_own_first_feature(paper, scores):
    label = paper["cell"] == "collapse"
    alone = localize.auc(label, paper["correct_0"])
    converged = localize.oof_scores(paper, view="baseline", fit="converged")
    assert localize.auc(label, scores["baseline"]) < alone < localize.auc(label, converged)
    # from the counts: all 253 collapses start right, 3,458 - 253 of the 6,672 others do
    assert alone == pytest.approx(1 - (3458 - 253) / (6925 - 253) / 2, abs=1e-12)


def test_a_row_scored_by_itself_is_as_if_it_were_alone(paper):
    by_row = localize.oof_scores(paper, view="r1", by="row")
    part = paper[paper["row"] == "qwen3-4b"]
    pd.testing.assert_series_equal(by_row[part.index], localize.oof_scores(part, view="r1"), check_exact=True)


def test_equal_features_in_one_fold_tie_exactly(paper, scores):
    X, fold = localize.features(paper)["full"], localize.folds(len(paper))
    keys = pd.Series(list(map(tuple, np.column_stack([X, fold]).tolist())))
    assert scores["full"].groupby(keys.to_numpy()).nunique().max() == 1


def test_an_undefined_debate_is_not_scored_in_any_view():
    frame = composed()
    frame["correct_0"] = frame["correct_0"].astype("boolean")
    frame.loc[4, "correct_0"] = pd.NA
    frame.loc[7, "agree_3"] = np.nan
    frame["cell"] = frame["cell"].where(frame.index != 9)
    for view in localize.VIEWS:
        score = localize.oof_scores(frame, view=view)
        assert score.index[score.isna()].tolist() == [4, 7, 9]
    rest = localize.oof_scores(frame.drop(index=[4, 7, 9]), view="r1")
    pd.testing.assert_series_equal(localize.oof_scores(frame, view="r1").dropna(), rest)
    assert (localize.auc_table(frame, by=None)["n"] == 57).all()


def test_ledger_output_under_each_rule_goes_through():
    rng = np.random.default_rng(1)
    answers = pd.MultiIndex.from_product([[f"q{i}" for i in range(40)], range(3), ["1", "2", "3"]],
                                         names=["question", "round", "agent"])
    answers = answers.to_frame(index=False).assign(row="m", replicate=0, gold="A")
    answers["answer"] = pd.Series(rng.choice(["A", "B", "C", None], len(answers), p=[0.5, 0.3, 0.1, 0.1]),
                                  dtype="str")
    for options in ({}, {"tie": "undecided"}, {"tie": "expected"}, {"missing": "undecided"},
                    {"missing": "drop"}):
        debates = ledger.debates(answers, **options)
        table = localize.auc_table(debates)
        usable = debates["cell"].notna()
        assert (table["n"] == int(usable.sum())).all()
        assert (table["n_pos"] == int((debates["cell"] == "collapse").sum())).all()


def test_one_class_has_no_area():
    frame = composed()
    frame["cell"] = "preserved"
    table = localize.auc_table(frame)
    assert table["auc"].isna().all() and (table["n_folds"] == 0).all()
    assert localize.oof_scores(frame, view="full", fit="converged").eq(0).all()
    assert math.isnan(localize.auc([1, 1], [0.1, 0.2]))
    with pytest.raises(ValueError, match="one class"):
        localize.roc([0, 0], [0.1, 0.2])


def test_unknown_options_list_the_known():
    with pytest.raises(ValueError, match="view='all': expected one of baseline, r1, full"):
        localize.oof_scores(composed(), view="all")
    with pytest.raises(ValueError, match="fit='best': expected one of published, converged"):
        localize.auc_table(composed(), fit="best")
    with pytest.raises(ValueError, match="unit='model': expected one of debate, question, row, two-way"):
        localize.auc_lift(composed(), np.zeros(60), np.zeros(60), unit="model")


labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2,
                    max_size=60).filter(lambda x: len({y for y, _ in x}) == 2)


@settings(deadline=None)
@given(labelled)
def test_auc_is_the_share_of_ordered_pairs(pairs):
    positive = [s for y, s in pairs if y]
    negative = [s for y, s in pairs if not y]
    wins = sum((p > q) + (p == q) / 2 for p in positive for q in negative)
    y, score = zip(*pairs, strict=True)
    assert localize.auc(y, score) == pytest.approx(wins / len(positive) / len(negative), abs=1e-12)
    assert localize.auc(y, score) == pytest.approx(roc_auc_score(y, score), abs=1e-12)


@settings(deadline=None)
@given(labelled)
def test_roc_encloses_the_area(pairs):
    y, score = zip(*pairs, strict=True)
    curve = localize.roc(y, score)
    assert curve["fpr"].is_monotonic_increasing and curve["tpr"].is_monotonic_increasing
    assert np.trapezoid(curve["tpr"], curve["fpr"]) == pytest.approx(localize.auc(y, score), abs=1e-12)


# --- bootstrap ---


@pytest.mark.parametrize(("n", "seed"), [(6925, 20260424), (1, 0), (2, 5), (3, 7), (64, 9), (65, 9),
                                         (100_000, 11)])
def test_bulk_draws_are_pythons(n, seed):
    rng = random.Random(seed)
    for drawn in resamples(n, 3, seed):
        assert drawn.tolist() == [rng.randrange(n) for _ in range(n)]


def test_lifts_of_the_paper(paper, scores, shared):
    reported = pd.read_csv(shared / "upstream/reported/cascade_auc_bootstrap.csv").set_index("quantity")
    for name, pair in {"delta_r1_minus_baseline": ("baseline", "r1"),
                       "delta_full_minus_r1": ("r1", "full")}.items():
        found, theirs = localize.auc_lift(paper, *(scores[view] for view in pair)), reported.loc[name]
        assert found.lift == pytest.approx(theirs["obs"], abs=1e-12)
        assert found.median == pytest.approx(theirs["median"], abs=1e-12)
        assert found.low == pytest.approx(theirs["ci_2_5"], abs=1e-12)
        assert found.high == pytest.approx(theirs["ci_97_5"], abs=1e-12)
        assert (found.n, found.n_pos, found.n_boot, found.n_used) == (6925, 253, 1000, 1000)


def test_lift_interval_of_the_paper_to_three_places(paper, scores):
    r1 = localize.auc_lift(paper, scores["baseline"], scores["r1"])
    full = localize.auc_lift(paper, scores["r1"], scores["full"])
    assert (round(r1.low, 3), round(r1.high, 3)) == (0.080, 0.118)
    assert (round(full.low, 3), round(full.high, 3)) == (0.064, 0.092)


@settings(deadline=None, max_examples=20)
@given(labelled, st.integers(0, 1000))
def test_bootstrap_equals_the_plain_loop(pairs, seed):
    y = np.array([label for label, _ in pairs])
    a = np.array([score for _, score in pairs], dtype=float)
    b = np.roll(a, 1)
    rng, lifts = random.Random(seed), []
    for _ in range(20):
        drawn = [rng.randrange(len(y)) for _ in y]
        lift = localize.auc(y[drawn], b[drawn]) - localize.auc(y[drawn], a[drawn])
        if not math.isnan(lift):
            lifts.append(lift)
    found = localize.auc_lift(pd.DataFrame({"cell": np.where(y, "collapse", "preserved")}), a, b, n_boot=20,
                              seed=seed)
    assert found.n_used == len(lifts)
    if lifts:
        assert [found.low, found.median, found.high] == pytest.approx(np.percentile(lifts,
                                                                                    [2.5, 50,
                                                                                     97.5]).tolist(),
                                                                      abs=1e-12)


def test_clustered_bootstrap_draws_questions_whole():
    frame = composed()
    a, b = np.arange(60) % 7, np.arange(60) % 11
    y = (frame["cell"] == "collapse").to_numpy()
    members = [np.flatnonzero(frame["question"] == q) for q in frame["question"].unique()]
    rng, lifts = random.Random(8), []
    for _ in range(50):
        drawn = np.concatenate([members[rng.randrange(30)] for _ in range(30)])
        lifts.append(localize.auc(y[drawn], b[drawn]) - localize.auc(y[drawn], a[drawn]))
    found = localize.auc_lift(frame, a, b, n_boot=50, seed=8, unit="question")
    assert [found.low, found.high] == pytest.approx(np.percentile(lifts, [2.5, 97.5]).tolist(), abs=1e-12)


def test_rows_are_drawn_whole_and_crossed_with_questions():
    frame = composed()
    a, b = np.arange(60) % 7, np.arange(60) % 11
    y = (frame["cell"] == "collapse").to_numpy()
    questions, rows = frame["question"].unique(), frame["row"].unique()
    by_question, by_row, both = random.Random(8), random.Random(8), random.Random(9)

    def lift(drawn):
        return localize.auc(y[drawn], b[drawn]) - localize.auc(y[drawn], a[drawn])

    row_lifts, crossed = [], []
    for _ in range(50):
        members = [np.flatnonzero(frame["row"] == rows[by_row.randrange(2)]) for _ in rows]
        row_lifts.append(lift(np.concatenate(members)))
        drawn_questions = [questions[by_question.randrange(len(questions))] for _ in questions]
        drawn_rows = [rows[both.randrange(2)] for _ in rows]
        cell = [np.flatnonzero((frame["row"] == row) & (frame["question"] == question))
                for row in drawn_rows for question in drawn_questions]
        crossed.append(lift(np.concatenate(cell)))
    for unit, lifts in {"row": row_lifts, "two-way": crossed}.items():
        found = localize.auc_lift(frame, a, b, n_boot=50, seed=8, unit=unit)
        assert [found.low, found.high] == pytest.approx(np.percentile(lifts, [2.5, 97.5]).tolist(), abs=1e-12)


def test_scores_must_fit_and_holes_are_left_out(paper, scores):
    with pytest.raises(ValueError, match="expected one each"):
        localize.auc_lift(paper, scores["r1"][:5], scores["full"])
    holed = scores["r1"].copy()
    holed.iloc[:200] = np.nan
    found = localize.auc_lift(paper, holed, scores["full"], n_boot=5)
    again = localize.auc_lift(paper[200:], scores["r1"][200:], scores["full"][200:], n_boot=5)
    assert found == again and found.n == 6725
