"""The ledger's cells crossed with expressed agreement and conviction."""

import numpy as np
import pandas as pd
import pytest

from analysis import ledger
from analysis.errors import DataError
from analysis.layers import crossing, simulate, stance


def joined_study(n=60, replicates=2, seed=0):
    """Debates with cells, values made so that every mean can be counted by hand in pandas."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"question": np.repeat([f"q{i}" for i in range(n)], replicates),
                          "replicate": np.tile(range(replicates), n)})
    frame["cell"] = rng.choice(crossing.CELLS, len(frame))
    agreement = frame.assign(agreement=rng.integers(0, 7, len(frame)) / 6).drop(columns="cell")
    conviction = pd.DataFrame({"question": frame.question.unique(), "conviction": rng.normal(-1, 1, n)})
    return frame, agreement, conviction


def test_join_by_question_and_by_debate():
    frame, agreement, conviction = joined_study()
    joined = crossing.join(frame, agreement=agreement, conviction=conviction)
    assert len(joined) == len(frame) and joined.index.equals(frame.index)
    assert joined.agreement.tolist() == agreement.agreement.tolist()
    # A question's value serves all its debates.
    assert joined.groupby("question").conviction.nunique().eq(1).all()
    shuffled = crossing.join(frame.sample(frac=1, random_state=1), agreement=agreement, conviction=conviction)
    pd.testing.assert_frame_equal(shuffled.sort_index(), joined)


def test_cells_weigh_questions_equally():
    frame, agreement, conviction = joined_study(replicates=3)
    joined = crossing.join(frame, agreement=agreement, conviction=conviction)
    table = crossing.cells(joined).set_index("cell")
    for name in crossing.CELLS:
        part = joined[joined.cell == name]
        assert table.loc[name, "debates"] == len(part)
        assert table.loc[name, "questions"] == part.question.nunique()
        by_hand = np.mean([g.agreement.mean() for _, g in part.groupby("question")])
        assert table.loc[name, "agreement"] == pytest.approx(by_hand)
        assert table.loc[name, "agreement_low"] < by_hand < table.loc[name, "agreement_high"]
        assert table.loc[name,
                         "conviction"] == pytest.approx(part.drop_duplicates("question").conviction.mean())
        share = np.mean([(g.cell == name).mean() for _, g in joined.groupby("question")])
        assert table.loc[name, "share"] == pytest.approx(share)
    assert table.loc[list(crossing.CELLS), "share"].sum() == pytest.approx(1)
    assert table.loc["all", "debates"] == len(frame) and table.loc["all", "share"] == 1


def test_cross_counts_every_debate_once():
    frame, agreement, conviction = joined_study()
    joined = crossing.join(frame, agreement=agreement[::2], conviction=conviction.iloc[:50])
    table = crossing.cross(joined)
    assert table.debates.sum() == len(frame)
    assert {"unmeasured"} <= set(table.conviction) and {"unmeasured"} <= set(table.agreement)
    assert table.groupby("cell").share.sum().tolist() == pytest.approx([1] * 4)
    row = table.query("cell == 'collapse' and conviction == 'eroded' and agreement == 'agreeing'").iloc[0]
    inside = (joined.conviction < 0) & (joined.agreement >= 0.5)
    collapsed = joined.cell == "collapse"
    assert row.debates == (inside & collapsed).sum() and row.of == collapsed.sum()
    assert row.questions == joined.question[inside & collapsed].nunique()
    assert row.share == pytest.approx(np.mean([inside[g.index].mean() for _,
                                               g in joined[collapsed].groupby("question")]))
    assert row.low <= row.share <= row.high
    complete = crossing.cross(crossing.join(frame, agreement=agreement, conviction=conviction))
    assert len(complete) == 4 * 2 * 2 and "unmeasured" not in set(complete.agreement)


def test_cuts_move_debates():
    frame, agreement, conviction = joined_study()
    joined = crossing.join(frame, agreement=agreement, conviction=conviction)
    strict = crossing.cross(joined, eroded=-1.0, agreeing=1.0)
    assert strict[strict.conviction == "eroded"].debates.sum() == (joined.conviction < -1).sum()
    assert strict[strict.agreement == "agreeing"].debates.sum() == (joined.agreement == 1).sum()


def test_difference_resamples_questions_with_all_their_debates():
    frame, agreement, conviction = joined_study()
    joined = crossing.join(frame, agreement=agreement, conviction=conviction)
    result = crossing.difference(joined, "agreement")
    table = crossing.cells(joined).set_index("cell").agreement
    assert result.estimate == pytest.approx(table["collapse"] - table["preserved"])
    assert result.low < result.estimate < result.high and result.role == "exploratory" and np.isnan(result.p)
    back = crossing.difference(joined, "agreement", first="preserved", second="collapse")
    assert (back.estimate, back.low, back.high) == pytest.approx((-result.estimate, -result.high,
                                                                  -result.low))
    # The same by a loop over resampled questions.
    rng = np.random.default_rng(0)
    names = joined.question.unique()
    means = {cell: joined[joined.cell == cell].groupby("question").agreement.mean().to_dict()
             for cell in ("collapse", "preserved")}
    gaps = []
    for _ in range(500):
        drawn = rng.choice(names, len(names))
        ends = [np.mean([of[name] for name in drawn if name in of]) for of in means.values()]
        gaps.append(ends[0] - ends[1])
    assert np.std(gaps) == pytest.approx((result.high - result.low) / (2 * 1.96), rel=0.2)


def test_empty_and_undefined_cells_have_a_defined_result():
    frame = pd.DataFrame({"question": ["a", "b", "c"], "cell": ["preserved", "preserved", None]})
    joined = crossing.join(frame, agreement=pd.DataFrame({"question": ["a", "b"], "agreement": [1.0, 1.0]}))
    assert joined.cell.tolist() == ["preserved", "preserved", "undefined"] and joined.conviction.isna().all()
    table = crossing.cells(joined).set_index("cell")
    assert table.loc["collapse", "debates"] == 0 and np.isnan(table.loc["collapse", "agreement"])
    assert table.loc["undefined", "share"] == pytest.approx(1 / 3)
    # Both questions fully agree: an interval without width would claim to be certain.
    assert table.loc["preserved", "agreement_low"] < 1 == table.loc["preserved", "agreement_high"]
    empty = crossing.difference(joined, "agreement")
    assert empty.status == "undefined" and np.isnan(empty.estimate) and not empty.claimable


@pytest.mark.parametrize(("change", "message"), [
    (lambda d, a, c: (d.assign(cell="lost"), a, c), "field 'cell': 'lost', expected one of preserved"),
    (lambda d, a, c: (d.assign(row=["x", "y"] * (len(d) // 2)), a, c), "models are never pooled"),
    (lambda d, a, c: (d, pd.concat([a, a]), c), "2 rows, expected one"),
    (lambda d, a, c: (d, a, c.rename(columns={"question": "item"})), "conviction: none of the columns"),
    (lambda d, a, c: (d, a, c.assign(question=c.question + "x")), "conviction: no debate has its question"),
    (lambda d, a, c: (d, a.drop(columns="agreement"), c), "no field 'agreement'"),
])
def test_bad_joins(change, message):
    debates, agreement, conviction = change(*joined_study(n=4))
    with pytest.raises(DataError, match=message):
        crossing.join(debates, agreement=agreement, conviction=conviction)


def test_bad_choices():
    joined = crossing.join(joined_study(n=4)[0])
    with pytest.raises(ValueError, match="measure='shift': expected one of agreement, conviction"):
        crossing.difference(joined, "shift")
    with pytest.raises(ValueError, match="two different cells"):
        crossing.difference(joined, "agreement", first="collapse", second="collapse")
    with pytest.raises(DataError, match="no field 'conviction'"):
        crossing.cells(joined.drop(columns="conviction"))


def test_from_answers_turns_and_reads_to_one_table():
    """Answers through the ledger, turns through their labels, reads through the stance table."""
    setting = simulate.Setting(questions=12, propositions=12)
    made = simulate.study(setting, seed=2)
    rng = np.random.default_rng(3)
    answers = pd.DataFrame([
        {"row": "m", "question": f"q{q}", "replicate": 0, "round": r, "agent": agent,
         "answer": rng.choice(["A", "B"]),
         "gold": "A"} for q in range(12) for r in range(2) for agent in "abc"])
    debates = ledger.debates(answers)
    hostile = made["turns"][made["turns"].stance == "hostile"]
    agreement = crossing.expressed_agreement(hostile)
    table = stance.read_cells(made["reads"], made["cells"], signs=False)
    table["proposition_id"] = table.proposition_id.str.replace("p", "q")
    conviction = crossing.conviction_change(table)
    joined = crossing.join(debates, agreement=agreement, conviction=conviction)
    assert joined[["agreement", "conviction"]].notna().all(axis=None)
    replies = hostile[hostile.iteration >= 1]
    labels = (replies.agreed_level == "fully_agreed").groupby(replies.question_id).mean()
    assert joined.set_index("question").agreement.to_dict() == pytest.approx(labels.to_dict())
    by_hand = made["cells"].query("kind != 'irrelevant'").groupby("proposition_id").set_conviction.mean()
    assert joined.conviction.tolist() == pytest.approx(by_hand[joined.question.str.replace("q",
                                                                                           "p")].tolist())
    assert crossing.cross(joined).debates.sum() == 12
    assert crossing.cells(joined).query("cell != 'all'").debates.sum() == 12


def test_default_labels_do_not_count_as_agreement():
    setting = simulate.Setting(questions=6, default_share=dict.fromkeys(simulate.STANCES, 0.5))
    turns = simulate.debates(setting, seed=1)["turns"]
    found = crossing.expressed_agreement(turns)
    replies = turns[turns.iteration >= 1]
    assert (found.n_turns + found.n_default).sum() == len(replies)
    assert found.n_default.sum() == (~replies.agreed_level_explicit).sum() > 0
    own = replies[replies.agreed_level_explicit]
    by_hand = (own.agreed_level == "fully_agreed").groupby(own.debate_id).mean()
    assert found.set_index("debate_id").agreement.dropna().to_dict() == pytest.approx(by_hand.to_dict())


def test_conviction_leaves_out_invalid_and_irrelevant_cells():
    cells = pd.DataFrame({"receiver": "m", "proposition_id": "q",
                          "kind": ["strong", "weak", "irrelevant", "strong"],
                          "valid": [True, True, True, False], "conviction_own": [-1.0, -3, 9, np.nan],
                          "conviction_peak": 0.0})
    assert crossing.conviction_change(cells).iloc[0].tolist() == ["q", -2.0, 2]
    assert crossing.conviction_change(cells, anchor="peak").conviction.tolist() == [0.0]
    with pytest.raises(DataError, match="models are never pooled"):
        crossing.conviction_change(pd.concat([cells, cells.assign(receiver="n")]))
