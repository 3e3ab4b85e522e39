"""Scripted probes: planned revisions come out of the measures; targets, repairs, missing replies."""

import re

import pytest

from analysis import probes as probe_frames
from analysis.collect import logs, pools
from analysis.collect.probe import _target, probe
from analysis.errors import DataError

GOLDS = {"right": "A", "wrong": "B", "mute": "A", "shy": "A"}


def planned(text, config):
    """First answers are A; a model that gives way to reports of others, and to the strongest argument."""
    question = re.search(r"\[(\w+)\] Which one", text)[1]
    strength = re.search(r"<<argument (\w+)>>", text)
    condition = re.search(r"<<condition (\w+)>>", text)[1]
    if strength is None:
        if question == "mute":
            return "I would rather not say" if config.temperature == 0.5 else ""
        if question == "shy" and "<<repair>>" not in text:
            return "Let me think about that"
        return "Final Answer: A"
    target = re.search(
        r"The central idea of the question leads to (\w)|\b([B-D])\b(?! may be the better choice. Read)",
        text.split("<<argument")[1],
    )
    target = target[1] or target[2]
    if strength[1] == "weak" and condition == "anti_argument":
        return ""
    gives_way = "<<social" in text or strength[1] == "very_strong"
    if condition == "anti_social":
        gives_way = strength[1] == "very_strong"
    return f"Final Answer: {target if gives_way else 'A'}"


@pytest.fixture(scope="module")
def path(scripted, write_pool, card_path, tmp_path_factory):
    from inspect_ai import eval

    task = probe(pool=write_pool(GOLDS), card=str(card_path), temperatures=(0.5, 0.7), agents=2, cache=False)
    model = scripted(planned)
    log = eval(task, model=model.model, log_dir=str(tmp_path_factory.mktemp("logs")), display="none")[0]
    assert log.status == "success" and not any(sample.error for sample in log.samples)
    # right and wrong: 1 + 8 calls; shy: one repair more; mute: two repairs where there is a text, none where
    # there is none
    assert len(model.asked) == 3 * 2 * (9 + 9 + 10) + 3 * (1 + 2) + 3 * 1
    return log.location


def test_planned_revisions_are_what_the_measures_count(path):
    frame = logs.probes(path, row="m")
    rates = probe_frames.flip_rate(frame, by="condition", conditions="all").set_index("condition")
    # Default: the four social probes and the solo very strong one, of eight; six records (three questions,
    # two agents).
    assert rates.loc["default", ["k", "n"]].tolist() == [5 * 6, 8 * 6]
    assert rates.loc["anti_social", ["k", "n"]].tolist() == [2 * 6, 8 * 6]
    # An empty reply is no revision: the two weak ones are missing, the three other social ones and the solo
    # one revise.
    assert rates.loc["anti_argument", ["k", "n", "n_unparsed"]].tolist() == [4 * 6, 8 * 6, 2 * 6]
    social = probe_frames.flip_rate(frame, by="social").set_index("social")["k"]
    assert (social[True], social[False]) == (4 * 6, 1 * 6)


def test_stored_measures_follow_the_papers_equations(path):
    record = next(
        r for r in logs.probe_records(path) if r["question_id"] == "right" and r["condition"] == "default"
    )
    assert (record["alpha_total"], record["alpha_solo"], record["alpha_social"]) == (5 / 8, 1 / 4, 1.0)
    assert record["by_strength"] == {"weak": 0.5, "moderate": 0.5, "strong": 0.5, "very_strong": 1.0}
    assert (record["social_sensitivity"], record["argument_sensitivity"]) == (0.75, 0.25)
    assert record["sa_ratio"] == pytest.approx(0.75, abs=1e-5)
    assert record["usage"] == {"prompt_tokens": 90, "completion_tokens": 45}
    assert (record["temperature"], record["reply_temperature"], record["backend"]) == (0.5, 0.0, "inspect_ai")


def test_a_very_strong_argument_against_a_wrong_answer_is_for_the_right_one(path):
    for record in logs.probe_records(path):
        for result in record["probe_results"]:
            assert result["alt_answer"] != record["initial_answer"]
            if record["question_id"] == "wrong" and result["strength"] == "very_strong":
                assert result["alt_answer"] == "B"
            else:
                assert result["alt_answer"] != record["correct_label"]
    channels = probe_frames.decompose(logs.probes(path, row="m")).set_index("channel")
    assert channels.loc["cor", ["k", "n"]].tolist() == [2 * 2, 8 * 2]


def test_repairs_and_records_without_an_answer(path):
    plan = logs.probe_plan(path).set_index("condition")
    assert plan.loc["default"].tolist() == [8, 6, 2, 48, 0]
    shy = [record for record in logs.probe_records(path) if record["question_id"] == "shy"]
    assert {(record["initial_parse_repaired"], record["initial_repair_attempts"]) for record in shy} == {
        (True, 1)
    }
    assert "mute" not in {record["question_id"] for record in logs.probe_records(path)}


def test_replies_for_quality_control(path):
    """Eight records a condition, two of them without an initial answer; weak replies are empty in one condition."""
    replies = logs.probe_replies(path)
    lost = replies.groupby("arm")["missing"].agg(["sum", "size"])
    assert lost.loc["default"].tolist() == [2, 8 + 6 * 8]
    assert lost.loc["anti_argument"].tolist() == [2 + 2 * 6, 8 + 6 * 8]
    assert not replies[["truncated", "unclosed"]].any(axis=None) and replies["error"].isna().all()


def test_texts_stay_in_the_gated_tier(path):
    assert "<<argument" not in str(logs.probe_records(path)) and "Final Answer" not in str(
        logs.probe_records(path)
    )
    assert "<<argument" in str(logs.probe_records(path, texts=True))


def test_the_two_rules_for_targets():
    item = pools.Item("q", "Q?", tuple("wxyz"), "A", "mine", "MIT")
    assert [_target(item, initial, "weak", "first_other", ()) for initial in "ABC"] == ["B", "A", "A"]
    drawn = {_target(item, "B", "weak", "random_wrong", (k,)) for k in range(50)}
    assert drawn == {"C", "D"}
    assert _target(item, "B", "very_strong", "random_wrong", ()) == "A"
    assert _target(item, "B", "very_strong", "first_other", ()) == "A"
    two = pools.Item("q", "Q?", ("x", "y"), "A", "mine", "MIT")
    assert _target(two, "B", "weak", "random_wrong", ()) == "A"


def test_numeric_items_cannot_be_probed(tmp_path):
    pool = tmp_path / "numbers.jsonl"
    pool.write_text('{"id": "n1", "question": "How many?", "gold": "12"}\n')
    with pytest.raises(DataError, match="no options to argue for"):
        probe(pool=str(pool))


def test_the_light_screen_asks_less(scripted, evaluate, write_pool, card_path):
    model = scripted(planned)
    task = probe(
        pool=write_pool({"right": "A"}),
        card=str(card_path),
        conditions="default",
        agents=1,
        strengths="weak,strong",
        target="first_other",
        cache=False,
    )
    found = evaluate(task, model.model)
    assert len(model.asked) == 1 + 4
    assert {result["alt_answer"] for result in logs.probe_records(found)[0]["probe_results"]} == {"B"}
    assert logs.probes(found)["revised"].tolist() == [False, True, False, True]
