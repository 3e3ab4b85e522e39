"""Measures of probe records on records composed so that every answer can be had by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats as sps

from analysis import ledger, probes, stats, synthetic
from analysis.errors import DataError
from analysis.probes_channels import UNITS

EIGHT = list(product(probes.STRENGTHS, (False, True)))


def record(question, flips, *, row="m", condition="default", agent="0", replicate=0, first="A", gold="A",
           unread=(), to="B"):
    """Eight probes of one record; `flips` and `unread` are their numbers: weak first, every second social."""
    return pd.DataFrame([{
        "row": row, "question": question, "replicate": replicate, "condition": condition, "agent": agent,
        "gold": gold, "initial_answer": first, "initial_correct": first == gold, "probe": i,
        "strength": strength, "social": social, "parsed": i not in unread,
        "post_answer": None if i in unread else to if i in flips else first,
        "revised": i in flips and i not in unread,
    } for i, (strength, social) in enumerate(EIGHT)])


def stack(*records):
    return pd.concat(records, ignore_index=True)


# --- contrasts ----------------------------------------------------------------------------------------------


def test_contrasts_of_one_record_by_hand():
    # Social probes 1, 3, 5, 7; strong and very strong ones 4 to 7. Flips: 1, 4, 5, 7.
    found = probes.contrasts(record("p", {1, 4, 5, 7})).iloc[0]
    assert found["alpha"] == 0.5
    assert found["social"] == 3 / 4 - 1 / 4
    assert found["argument"] == 3 / 4 - 1 / 4
    assert found["ratio"] == pytest.approx(0.5 / (0.5 + 0.5 + 1e-6), abs=1e-12)
    assert found["n_probes"] == 8


def test_contrast_is_not_very_strong_minus_weak():
    # Only moderate and strong flip: the stored per-record sensitivity would be 0.
    found = probes.contrasts(record("p", {2, 3, 4, 5})).iloc[0]
    assert found["argument"] == 0.0
    found = probes.contrasts(record("p", {4, 5})).iloc[0]
    assert found["argument"] == 0.5


def test_no_flip_has_ratio_zero_and_still_counts():
    frame = stack(record("p", set()), record("q", {1, 3, 5, 7}))
    found = probes.sa_ratio(frame, draws=200, epsilon=0.001).iloc[0]
    assert found["n_units"] == 2
    assert found["ratio"] == pytest.approx((0 + 1 / 1.001) / 2)
    assert found["pooled"] == pytest.approx(0.5 / 0.501)


def test_units_are_questions_or_records():
    # One agent moves on social probes only, the other on strong ones only: question 1/2, records 1 and 0.
    frame = stack(record("p", {1, 3, 5, 7}), record("p", {4, 5, 6, 7}, agent="1"))
    assert probes.sa_ratio(frame, draws=10)["ratio"].item() == pytest.approx(0.5, abs=1e-5)
    by_record = probes.sa_ratio(frame, unit="record", draws=10).iloc[0]
    assert by_record["n_units"] == 2 and by_record["ratio"] == pytest.approx(0.5, abs=1e-5)
    frame = stack(frame, record("p", {1, 3, 5, 7}, agent="2"))
    assert probes.sa_ratio(frame, unit="record", draws=10)["ratio"].item() == pytest.approx(2 / 3, abs=1e-5)
    # Flips of 12: social 4 + 2 + 4, solo 0 + 2 + 0; strong 2 + 4 + 2, weak 2 + 0 + 2.
    social, argument = 10 / 12 - 2 / 12, 8 / 12 - 4 / 12
    expected = social / (social + argument)
    assert probes.sa_ratio(frame, draws=10)["ratio"].item() == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ValueError, match="unit='agent': expected one of question, record"):
        probes.sa_ratio(frame, unit="agent")


def test_interval_is_the_percentile_bootstrap_of_question_ratios():
    rng = np.random.default_rng(8)
    frame = stack(*(record(f"q{i}", set(np.flatnonzero(rng.random(8) < 0.4))) for i in range(40)))
    found = probes.sa_ratio(frame, draws=4000, seed=1).iloc[0]
    values = probes.contrasts(frame, by=["row", "question"])["ratio"].to_numpy()
    assert found["ratio"] == pytest.approx(values.mean())
    theirs = sps.bootstrap((values,), np.mean, n_resamples=4000, method="percentile",
                           rng=np.random.default_rng(2))
    assert [found["low"], found["high"]] == pytest.approx(list(theirs.confidence_interval), abs=0.02)
    assert probes.sa_ratio(frame, draws=300, seed=5).equals(probes.sa_ratio(frame, draws=300, seed=5))
    wider = probes.sa_ratio(frame, draws=4000, seed=1, level=0.99).iloc[0]
    assert wider["low"] < found["low"] < found["high"] < wider["high"]


def test_one_question_has_no_interval():
    found = probes.sa_ratio(record("p", {1}), draws=10).iloc[0]
    assert np.isnan(found["low"]) and np.isnan(found["high"])


def test_unread_replies_stay_or_go():
    # Social probe 1 is not read: kept, 3 social of 4 flip; dropped, 3 of 3.
    frame = record("p", {1, 3, 5, 7}, unread={1})
    assert probes.contrasts(frame)["social"].item() == 3 / 4
    assert probes.contrasts(frame, unparsed="drop")["social"].item() == 1.0


def test_other_conditions_count_only_when_asked_for():
    frame = stack(record("p", {1, 3, 5, 7}), record("p", set(), condition="anti_social"))
    assert probes.contrasts(frame, by="row")["social"].item() == 1.0
    assert probes.contrasts(frame, by="row", conditions="all")["social"].item() == 0.5
    split = probes.sa_ratio(frame, by=["row", "condition"], conditions="all", draws=10)
    assert split.set_index("condition")["ratio"].round(4).to_dict() == {"default": 1.0, "anti_social": 0.0}


def test_normalised_and_log_ratio():
    assert probes.normalised(-0.2, 0.2, epsilon=0) == -0.5
    assert probes.normalised(0.0, 0.0) == 0.0
    found = probes.log_ratio(np.array([0.3, -0.4]), np.array([0.1, 0.1]), constant=0.01)
    assert found.tolist() == pytest.approx([np.log(0.31 / 0.11), np.log(0.01 / 0.11)])


# --- without the strongest ----------------------------------------------------------------------------------


def test_what_the_strongest_check_drops():
    frame = stack(record("p", {0, 6, 7}), record("q", {7}, first="B", to="A"))
    both = probes.without_strongest(frame).set_index("probe_set")
    assert both["n_probes"].tolist() == [16, 12]
    assert both["n_flip"].tolist() == [4, 1]
    assert both[["n_flip_right", "n_flip_wrong"]].to_numpy().tolist() == [[3, 1], [1, 0]]
    solo = probes.without_strongest(frame, arms="solo").set_index("probe_set")
    assert solo["n_probes"].tolist() == [8, 6]
    assert solo["n_flip"].tolist() == [2, 1]
    with pytest.raises(ValueError, match="arms='social': expected one of both, solo"):
        probes.without_strongest(frame, arms="social")


def test_change_and_association_without_the_strongest():
    counts = pd.DataFrame({
        "row": list("aabbccdd"), "probe_set": ["all", "no_strongest"] * 4, "n_probes": [4, 3] * 4,
        "n_flip": [1, 0, 2, 2, 3, 1, 4, 3], "n_init_right_probes": 2, "n_flip_right": [1, 0] * 4,
    })
    change = probes.strongest_change(counts)
    assert change["change"].tolist() == pytest.approx([-1 / 4, 1 / 6, -5 / 12, 0])
    assert change["adverse_change"].tolist() == [-0.5] * 4
    assert change["rank"].tolist() == [1, 2, 3, 4] and change["rank_dropped"].tolist() == [1, 3, 2, 4]
    tests = probes.strongest_association(change, pd.Series([0.1, 0.2, 0.3, 0.4], index=list("abcd")))
    assert tests["rho"].tolist() == pytest.approx([1.0, 0.8])
    assert tests["p"].iloc[1] == pytest.approx(sps.spearmanr([1, 3, 2, 4], [1, 2, 3, 4]).pvalue)
    z = np.arctanh(0.8) + np.array([-1, 1]) * sps.norm.ppf(0.975) / np.sqrt(1)
    assert tests.loc[1, ["low", "high"]].tolist() == pytest.approx(np.tanh(z).tolist())


# --- channels -----------------------------------------------------------------------------------------------


def channel(flips, condition, **options):
    """One record a question: so many of its eight probes flip."""
    return stack(*(record(f"q{i}", set(range(k)), condition=condition, **options)
                   for i, k in enumerate(flips)))


def test_manipulation_by_hand():
    low, high = [0, 2, 2, 4], [2, 6, 4, 4]
    frame = stack(channel([1, 1, 2, 4], "default"), channel(low, "anti_social"),
                  channel(high, "anti_argument"))
    found = probes.manipulation(frame).iloc[0]
    x, y = np.array(high) / 8, np.array(low) / 8
    assert found[["default", "anti_social", "anti_argument"]].tolist() == [8 / 32, 8 / 32, 16 / 32]
    assert found["order"] == "partial"
    assert found["n_pairs"] == 4 and found["difference"] == pytest.approx(np.mean(x - y))
    assert found["d"] == pytest.approx(np.mean(x - y) / np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    assert found["d_paired"] == pytest.approx(np.mean(x - y) / np.std(x - y, ddof=1))
    theirs = pingouin.ttest(x, y, paired=True).iloc[0]
    assert [found["t"], found["p"]] == pytest.approx([theirs["T"], theirs["p_val"]])
    assert found["d"] == pytest.approx(pingouin.compute_effsize(x, y, paired=True, eftype="cohen"))


def test_pairs_are_records_or_questions():
    frame = stack(
        channel([0, 2, 4], "anti_social"), channel([4, 2, 0], "anti_social", agent="1"),
        channel([4, 4, 8], "anti_argument"), channel([6, 4, 0], "anti_argument", agent="1"),
    )
    by_record = probes.manipulation(frame, unit="record").iloc[0]
    assert by_record["n_pairs"] == 6
    by_question = probes.manipulation(frame).iloc[0]
    assert by_question["n_pairs"] == 3
    assert by_question["difference"] == pytest.approx(by_record["difference"])
    x, y = np.array([5, 4, 4]) / 8, np.array([2, 2, 2]) / 8
    assert by_question["t"] == pytest.approx(sps.ttest_rel(x, y).statistic)
    assert set(UNITS) == {"record", "question"}
    with pytest.raises(ValueError, match="unit='probe': expected one of question, record"):
        probes.manipulation(frame, unit="probe")


def test_a_record_without_its_partner_is_no_pair():
    frame = stack(channel([0, 2, 3], "anti_social"), channel([4, 4], "anti_argument"))
    assert probes.manipulation(frame)["n_pairs"].item() == 2
    alone = probes.manipulation(channel([0, 2], "default")).iloc[0]
    assert alone["n_pairs"] == 0 and np.isnan(alone["d"]) and alone["order"] == ""


def test_holm_over_the_rows_given():
    rng = np.random.default_rng(1)
    shifts = {"anti_social": {"a": 0, "b": 0, "c": 0}, "anti_argument": {"a": 0, "b": 2, "c": 1}}
    frame = stack(*(channel(np.clip(rng.binomial(8, 0.3, 12) + shift, 0, 8), condition, row=row)
                    for condition, by_row in shifts.items() for row, shift in by_row.items()))
    found = probes.manipulation(frame)
    np.testing.assert_allclose(found["p_holm"], stats.holm(found["p"]))
    assert found["significant"].tolist() == (found["p_holm"] <= 0.05).tolist()
    assert (found["p_holm"] >= found["p"]).all()


@pytest.mark.parametrize(("rates", "expected"), [
    ((0.3, 0.1, 0.5), "strict"), ((0.3, 0.3, 0.5), "partial"), ((0.6, 0.1, 0.5), "partial"),
    ((0.3, 0.5, 0.5), "none"), ((0.3, 0.6, 0.5), "none"), ((np.nan, 0.6, 0.5), ""),
])
def test_order_of_conditions(rates, expected):
    assert probes.ordering(*rates) == expected


def test_conditions_count_records_and_unread_replies():
    frame = stack(record("p", {0, 1}, unread={1}), record("q", {0}),
                  record("p", {0}, condition="anti_social"))
    found = probes.by_condition(frame).set_index("condition")
    assert found[["k", "n", "n_unparsed", "n_records"]].to_numpy().tolist() == [[2, 16, 1, 2], [1, 8, 0, 1]]
    assert probes.by_condition(frame, unparsed="drop")["n"].tolist() == [15, 8]


def test_shared_pool_keeps_questions_of_all_rows():
    frame = stack(record("p", {1, 3}, row="a"), record("q", {0}, row="a", first="B"),
                  record("q", {4, 5}, row="b"), record("r", {0}, row="b"))
    assert set(probes.shared_questions(frame)["question"]) == {"q"}
    found = probes.shared_pool(frame).set_index("row")
    assert found[["n_questions", "n_records", "alpha"]].to_numpy().tolist() == [[1, 1, 1 / 8], [1, 1, 2 / 8]]
    assert found["init_acc"].tolist() == [0, 1]
    assert found.loc["a", ["social", "argument"]].tolist() == [-0.25, -0.25]
    assert found.loc["b", ["social", "argument"]].tolist() == [0.0, 0.5]
    assert found.loc["a", "ratio"] == pytest.approx(-0.5, abs=1e-5)
    with pytest.raises(DataError, match="none that all 2 rows have"):
        probes.shared_questions(frame[frame["question"] != "q"])


# --- counts by where the agent starts -----------------------------------------------------------------------


def test_tally_by_hand():
    frame = stack(
        record("p", {0, 1, 2}, unread={2}), record("q", {0, 2}, first="B", to="A"),
        record("r", {3}, first="B", to="C"), record("s", {0}, first=None, to="A"),
    )
    found = probes.tally(frame).set_index("social")
    solo = found.loc[False]
    # Probes 0, 2, 4, 6 of four records; one unread.
    assert solo[["n_probes", "n_init_right_probes", "n_init_wrong_probes"]].tolist() == [15, 3, 8]
    assert solo[["n_adv", "n_cor", "n_neutral", "n_flip"]].tolist() == [1, 2, 0, 3]
    assert found.loc[True, ["n_adv", "n_cor", "n_neutral", "n_flip"]].tolist() == [1, 0, 1, 2]
    kept = probes.tally(frame, unparsed="no_revision").set_index("social")
    assert kept.loc[False, ["n_probes", "n_unparsed", "n_init_right_probes"]].tolist() == [16, 1, 4]


def test_tally_agrees_with_channels_and_flip_rate(tmp_path):
    import json

    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in synthetic.probes(15, seed=2)))
    frame = probes.read(path)
    counts = probes.tally(frame, by="condition").set_index("condition")
    channels = probes.decompose(frame, by="condition", unparsed="drop", conditions="all")
    wide = channels.pivot(index="condition", columns="channel", values="k").loc[counts.index]
    np.testing.assert_array_equal(wide[["adv", "cor", "neutral"]], counts[["n_adv", "n_cor", "n_neutral"]])
    flips = probes.flip_rate(frame, by="condition", unparsed="drop", conditions="all").set_index("condition")
    assert flips["k"].to_dict() == counts["n_flip"].to_dict()
    assert flips["n"].to_dict() == counts["n_probes"].to_dict()


# --- repeats ------------------------------------------------------------------------------------------------


def test_split_half_is_one_when_every_probe_agrees():
    frame = stack(*(record(question, set(range(8)) if question in "qs" else set()) for question in "pqrs"))
    assert probes.reliability(frame)["split_half"].item() == pytest.approx(1.0)


def test_split_half_by_hand_for_two_probes():
    frame = stack(record("p", {0, 1}), record("q", {0}), record("r", set()), record("s", {1}))
    two = frame[frame["probe"] < 2]
    r = np.corrcoef([1, 1, 0, 0], [1, 0, 0, 1])[0, 1]
    assert probes.reliability(two)["split_half"].item() == pytest.approx(2 * r / (1 + r), abs=1e-12)
    flips = [True, True, True, False] + [True, False, True, True] + [False] * 4 + [False, True, False, False]
    four = frame[frame["probe"] < 4].assign(revised=flips)
    cells = four.pivot(index="question", columns="probe", values="revised").astype(float)
    ways = [([0, a], [b for b in (1, 2, 3) if b != a]) for a in (1, 2, 3)]
    rs = [np.corrcoef(cells[one].mean(axis=1), cells[two].mean(axis=1))[0, 1] for one, two in ways]
    stepped = [2 * r / (1 + r) for r in rs]
    assert probes.reliability(four)["split_half"].item() == pytest.approx(np.mean(stepped))


def test_agents_and_repeats():
    rng = np.random.default_rng(3)
    ease = rng.random(12)
    frame = stack(*(record(f"q{i}", set(np.flatnonzero(rng.random(8) < ease[i])), agent=str(agent),
                           replicate=replicate)
                    for i in range(12) for agent in range(3) for replicate in range(2)))
    found = probes.reliability(frame).iloc[0]
    rates = frame.groupby(["question", "agent"])["revised"].mean().unstack().to_numpy(float)
    # Two-way random, absolute agreement, single: from the mean squares.
    n, k = rates.shape
    rows, columns = rates.mean(axis=1), rates.mean(axis=0)
    ms_r = k * ((rows - rates.mean()) ** 2).sum() / (n - 1)
    ms_c = n * ((columns - rates.mean()) ** 2).sum() / (k - 1)
    ms_e = ((rates - rows[:, None] - columns + rates.mean()) ** 2).sum() / ((n - 1) * (k - 1))
    icc = (ms_r - ms_e) / (ms_r + (k - 1) * ms_e + k * (ms_c - ms_e) / n)
    assert found["icc"] == pytest.approx(icc, abs=1e-9)
    assert found["icc_low"] < icc < found["icc_high"]
    twice = frame.groupby(["question", "replicate"])["revised"].mean().unstack()
    assert found["retest"] == pytest.approx(np.corrcoef(twice[0], twice[1])[0, 1])
    once = probes.reliability(frame[frame["replicate"] == 0]).iloc[0]
    assert np.isnan(once["retest"]) and once["n_questions"] == 12
    alone = probes.reliability(frame[frame["agent"] == "0"]).iloc[0]
    assert np.isnan(alone["icc"])


def panel():
    """Two days, two questions, two repeats; on the second day one repeat of q moves."""
    days = []
    for day, flips in (("one", ({0}, {0}, {1, 2}, {1, 2})), ("two", ({0}, {0}, {1, 2}, {1, 2, 3, 4}))):
        p0, p1, q0, q1 = flips
        days.append(stack(record("p", p0), record("p", p1, replicate=1), record("q", q0, unread={7}),
                          record("q", q1, replicate=1, first="B" if day == "two" else "A")).assign(day=day))
    always = [record("r", set(range(8)), replicate=k).assign(day=day)
              for day in ("one", "two") for k in (0, 1)]
    return stack(*days, *always)


def test_repeated_panel_by_hand():
    lines = probes.repeats(panel())
    assert len(lines) == 12
    assert lines.query("day == 'one' and question == 'q'")["alpha"].tolist() == [2 / 8, 2 / 8]
    days = probes.sessions(lines).set_index("day")
    sizes = days[["n_questions", "n_repeats", "n_probes", "n_unparsed"]]
    assert sizes.to_numpy().tolist() == [[3, 6, 48, 1]] * 2
    assert days["unstable"].tolist() == [0, 1]
    assert days["range_max"].tolist() == [0.0, 0.25]
    assert days["range_mean"].tolist() == pytest.approx([0, 0.25 / 3])
    pairs = probes.session_pairs(lines).iloc[0]
    assert pairs[["n_questions", "same"]].tolist() == [3, 2]
    assert pairs["rho"] == pytest.approx(1.0)
    assert [pairs["mean_difference"], pairs["max_difference"]] == pytest.approx([0.125 / 3, 0.125])
    assert pairs["answer_changes"] == 0  # A and B are equally usual: the alphabetically first counts
    with pytest.raises(DataError, match="'week': no such column"):
        probes.repeats(panel(), session="week")


def test_answer_that_is_never_read_is_an_answer_of_its_own():
    frame = panel()
    frame.loc[frame["day"].eq("two") & frame["question"].eq("p"), "initial_answer"] = None
    pairs = probes.session_pairs(probes.repeats(frame)).iloc[0]
    assert pairs["answer_changes"] == 1 and pairs["same"] == 1


# --- single questions ---------------------------------------------------------------------------------------


def test_question_areas_by_hand():
    said = pd.DataFrame({
        "question": np.repeat(list("pqrs"), 6), "round": [0, 0, 0, 1, 1, 1] * 4, "agent": list("123123") * 4,
        "answer": list("AAAAAA") + list("AABBBB") + list("AAAAAA") + list("BBBAAA"), "gold": "A",
        "row": "m", "replicate": 0,
    })
    debates = ledger.debates(said)
    frame = stack(record("p", {0}), record("q", {0}), record("r", {0, 1, 2}), record("s", set()))
    found = probes.question_auc(debates, frame).set_index("score")
    # Right starts p, q, r; q collapses: most disagreement; of flip rates 1/8, 1/8, 3/8 it has a lower one.
    assert found[["n", "n_pos"]].to_numpy().tolist() == [[3, 1]] * 3
    assert found.loc["disagreement", "auc"] == 1.0
    assert found.loc["alpha", "auc"] == pytest.approx((0 + 0.5) / 2)
    every = probes.question_auc(debates, frame, among="all").set_index("score")
    assert every.loc["alpha", ["n", "n_pos"]].tolist() == [4, 1]
    assert every.loc["alpha", "auc"] == pytest.approx((0 + 0.5 + 1) / 3)
    assert probes.question_auc(debates)["score"].tolist() == ["disagreement"]
    with pytest.raises(ValueError, match="among='wrong': expected one of right_starts, all"):
        probes.question_auc(debates, among="wrong")


def test_no_probes_give_no_lines():
    nothing = probes.empty()
    for measure in (probes.tally, probes.flip_rate, probes.decompose, probes.by_condition, probes.sa_ratio,
                    probes.manipulation, probes.without_strongest, probes.reliability):
        assert len(measure(nothing)) == 0, measure.__name__
    assert len(probes.strongest_change(probes.without_strongest(nothing))) == 0


def test_stored_probes_come_back_as_they_were(tmp_path):
    frame = stack(record("p", {1}, unread={2}), record("q", {0}, first=None))
    full = probes.empty()
    kinds = full.dtypes.to_dict() | {"revised": bool, "replicate": int, "probe": int}
    frame = frame.assign(alt_answer="C", strength_value=0.5)[list(full)].astype(kinds)
    frame.to_csv(tmp_path / "p.csv", index=False)
    pd.testing.assert_frame_equal(probes.read_stored(tmp_path / "p.csv"), frame)
    frame.drop(columns="social").to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(DataError, match="columns missing: social"):
        probes.read_stored(tmp_path / "p.csv")
