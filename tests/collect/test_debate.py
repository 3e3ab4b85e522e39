"""Scripted debates through the whole chain: what was planned is what the ledger counts, in every arm."""

import re

import pandas as pd
import pytest

from analysis import ledger, replay, traces
from analysis.collect import logs, prompts, quality
from analysis.collect.debate import debate

# Gold is B everywhere. Each question's answers, round by round, three agents each; "-" is an empty reply, "!"
# a failed call. Round 0 is the same in all arms; an arm without a plan of its own keeps Round 0.
ROUND0 = {
    "preserved": "BBA",
    "early": "BBA",
    "late": "BBA",
    "corrected": "AAB",
    "stuck": "AAB",
    "tie_lost": "CBD",
    "tie_won": "ABC",
    "silent": "---",
    "half": "B-!",
}
PLAN = {
    "peer": {
        "preserved": "BBB BBB BBB",
        "early": "AAB AAA AAA",
        "late": "BBA BAB AAB",
        "corrected": "ABB BBB BBB",
        "stuck": "AAA CCC AAC",
        "tie_lost": "BBC CCB CCC",
        "tie_won": "ABB BBB BBB",
        "silent": "--- B-- BBB",
        "half": "B!- BB- -B-",
    },
    "private": {"early": "BBA BBA BBA", "corrected": "AAB AAB BBB", "tie_lost": "CBD DDB DDD"},
    "self_review": {"late": "AAB BBA BBB", "stuck": "BBB BBB BBB"},
    "independence": {"early": "AAA AAA BBA", "preserved": "AAB AAB AAB"},
    "shielded": {"corrected": "--- --- ---", "preserved": "--- --- ---"},
}
# Counted by hand: (preserved, collapse, correction, unrepaired) of the nine questions, and collapses by onset
# round. tie_lost starts with the alphabetically first of B, C, D (right), tie_won with A (wrong), silent with
# nothing (wrong).
COUNTS = {
    "peer": ((2, 3, 3, 1), {1: 1, 2: 1, 3: 1}),
    "private": ((4, 1, 1, 3), {1: 0, 2: 1, 3: 0}),
    "self_review": ((5, 0, 1, 3), {1: 0, 2: 0, 3: 0}),
    "independence": ((4, 1, 0, 4), {1: 1, 2: 0, 3: 0}),
    "shielded": ((4, 1, 0, 4), {1: 1, 2: 0, 3: 0}),
}


def planned(text):
    """The reply to a prompt of the marked card."""
    arm, number, agent = re.search(r"<<(\w+) (\d) (\d)>>", text).groups()
    question = re.search(r"\[(\w+)\] Which one", text)[1]
    rounds = [ROUND0[question], *PLAN.get(arm, {}).get(question, " ".join([ROUND0[question]] * 3)).split()]
    letter = rounds[int(number)][int(agent) - 1]
    if letter == "!":
        return ConnectionError("sk-secret is not to be stored")
    return (
        ""
        if letter == "-"
        else f"{arm} {number} {agent} of {question} has its reasons.\nFinal Answer: {letter}"
    )


@pytest.fixture(scope="module")
def all_arms(scripted, card_path, write_pool, tmp_path_factory):
    from inspect_ai import eval

    pool = write_pool(dict.fromkeys(ROUND0, "B"))
    model = scripted(lambda text, _: planned(text))
    task = debate(pool=pool, arms=",".join(PLAN), card=str(card_path), cache=False)
    log = eval(task, model=model.model, log_dir=str(tmp_path_factory.mktemp("logs")), display="none")[0]
    assert log.status == "success"
    return log, model.asked


@pytest.mark.parametrize("arm", PLAN)
def test_the_ledger_counts_what_was_planned(all_arms, arm):
    answers = logs.answers(all_arms[0].location, arm=arm)
    debates = ledger.debates(answers)
    summary = ledger.summarize(debates).iloc[0]
    assert tuple(summary[list(ledger.CELLS)]) == COUNTS[arm][0]
    onset = ledger.onset(debates).iloc[0]
    assert {k: onset[f"round_{k}"] for k in (1, 2, 3)} == COUNTS[arm][1]


@pytest.mark.parametrize("arm", PLAN)
def test_every_answer_is_where_it_was_planned(all_arms, arm):
    found = logs.answers(all_arms[0].location, arm=arm, texts=True)
    assert len(found) == 9 * 4 * 3
    for line in found.itertuples():
        rounds = [
            ROUND0[line.question],
            *PLAN[arm].get(line.question, " ".join([ROUND0[line.question]] * 3)).split(),
        ]
        letter = rounds[line.round][int(line.agent) - 1]
        assert line.answer == letter if letter not in "-!" else pd.isna(line.answer)
        assert line.rule == {"-": "empty", "!": "failed"}.get(letter, "final_tag")
        assert (line.error == "ConnectionError") == (letter == "!")
        assert pd.isna(line.text) == (letter in "-!")
    assert found["temperature"].tolist()[:3] == [0.5, 0.7, 1.0]
    assert found["tokens_out"].notna().sum() == (found["rule"] != "failed").sum()


def test_round_0_is_asked_once_and_belongs_to_all_arms(all_arms):
    log, asked = all_arms
    assert sum("<<initial" in text for text in asked) == 9 * 3
    assert len(asked) == 9 * 3 * (1 + 3 * 5)
    frames = [logs.answers(log.location, arm=arm).query("round == 0")["answer"].tolist() for arm in PLAN]
    assert all(pd.Series(frame).equals(pd.Series(frames[0])) for frame in frames)


def test_each_arm_shows_what_it_should(all_arms):
    _, asked = all_arms
    for text in asked:
        arm, number, agent = re.search(r"<<(\w+) (\d) (\d)>>", text).groups()
        seen = set(re.findall(r"\w+ (\d) (\d) of \w+ has its reasons", text))
        if arm == "initial":
            assert not seen
            continue
        rounds = {shown for shown, _ in seen}
        assert rounds <= {str(int(number) - 1)}  # nothing but the round before
        if arm in ("private", "self_review"):
            assert {shown for _, shown in seen} <= {agent}
    peers = [text for text in asked if "<<peer 1 1>>" in text and "[early]" in text]
    assert len(peers) == 1 and peers[0].count("has its reasons") == 3
    shielded = next(text for text in asked if "<<shielded 1 1>>" in text and "[early]" in text)
    assert shielded.count("has its reasons") == 3
    assert shielded.count("Final Answer: ") == 2  # its own, and the request


def test_the_score_tells_cells_and_marks_failed_debates(all_arms):
    scores = {sample.id: sample.scores["ledger_cell"] for sample in all_arms[0].samples}
    assert scores["early"].metadata["cells"] == {
        "peer": "collapse",
        "private": "preserved",
        "self_review": "preserved",
        "independence": "preserved",
        "shielded": "preserved",
    }
    assert scores["half"].metadata["marked"]["peer"] == ["ConnectionError"]
    assert scores["early"].metadata["marked"] == {}
    assert scores["early"].value["peer collapse"] == 1 and scores["early"].answer == "A"
    assert scores["early"].explanation.splitlines()[3] == "peer, round 3: A A A (wrong) -> A"


def test_no_message_of_a_provider_gets_into_a_record(all_arms):
    assert "sk-secret" not in str([sample.store for sample in all_arms[0].samples])


def test_records_carry_card_pool_and_models(all_arms, card_path):
    answers = logs.answers(all_arms[0].location)
    card = prompts.load(card_path)
    assert answers.attrs["card"] == card.told
    assert [run["pool"]["n"] for run in answers.attrs["runs"]] == [9] and answers.attrs["arm"] == "peer"
    assert answers["row"].unique().tolist() == ["mockllm/model"]
    everything = logs.answers(all_arms[0].location, arm="all")
    assert everything["row"].unique().tolist() == [f"mockllm/model ({arm})" for arm in PLAN]
    assert ledger.summarize(ledger.debates(everything))["collapse"].tolist() == [
        COUNTS[arm][0][1] for arm in PLAN
    ]


def test_quality_counts_missing_answers(all_arms):
    checked = quality.checks(logs.replies(all_arms[0].location)).set_index(["arm", "check"])
    # Round 0: "---" and "-!"; peer, rounds 1-3: "---", "B--", "B!-", "BB-", "-B-".
    assert checked.loc[("initial", "missing"), ["k", "n"]].tolist() == [5, 27]
    assert checked.loc[("peer", "missing"), ["k", "n"]].tolist() == [5 + 3 + 2 + 2 + 1 + 2, 108]
    assert not checked.loc[("peer", "missing"), "passes"] and checked.loc[("peer", "truncated"), "passes"]


def test_answers_enter_the_checks_of_any_other_source(all_arms, tmp_path):
    answers = logs.answers(all_arms[0].location)
    assert len(traces.validate(answers, labels="ABCD")) == len(answers)
    path = traces.write_open_tier(answers, tmp_path / "open.jsonl")
    pd.testing.assert_frame_equal(
        ledger.summarize(ledger.debates(traces.read(path))), ledger.summarize(ledger.debates(answers))
    )


# --- what else a debate can be told -------------------------------------------------------------------------


def test_epochs_are_replicates_and_mixed_panels_go_by_role(scripted, evaluate, write_pool):
    def says(letter):
        return scripted(lambda text, config: f"Final Answer: {letter}").model

    roles = {"agent_2": says("A"), "agent_3": says("A")}
    path = evaluate(
        debate(pool=write_pool({"q1": "A"}), rounds=1, cache=False), says("B"), model_roles=roles, epochs=2
    )
    answers = logs.answers(path)
    assert answers.groupby("replicate")["answer"].apply("".join).tolist() == ["BAABAA", "BAABAA"]
    assert ledger.debates(answers)["cell"].tolist() == ["preserved", "preserved"]


def test_seeds_differ_by_place_and_replicate_and_are_the_same_in_all_arms(scripted, evaluate, write_pool):
    seeds = []
    model = scripted(lambda text, config: seeds.append(config.seed) or "Final Answer: A")
    evaluate(
        debate(pool=write_pool({"q1": "A", "q2": "A"}), arms="peer,private", rounds=2, cache=False),
        model.model,
        epochs=2,
    )
    assert len(seeds) == 2 * 2 * 3 * (1 + 2 * 2)
    assert len(set(seeds)) == 2 * 2 * 3 * 3


def test_confidence_numbers_and_temperatures_left_out(scripted, evaluate, tmp_path):
    pool = tmp_path / "numbers.jsonl"
    pool.write_text('{"id": "n1", "question": "[n1] How many?", "gold": "1200"}\n')
    seen = []

    def say(text, config):
        seen.append(config.temperature)
        return (
            "Confidence: 80%\nFinal Answer: 1,200" if "Expert" in text else "Confidence: 55\nFinal Answer: 7"
        )

    path = evaluate(
        debate(pool=str(pool), rounds=1, confidence=True, temperatures=None, cache=False), scripted(say).model
    )
    answers = logs.answers(path)
    assert answers["answer"].tolist() == ["7"] * 3 + ["1200"] * 3
    assert answers["confidence"].tolist() == [55] * 3 + [80] * 3
    assert ledger.debates(answers)["cell"].tolist() == ["correction"]
    assert set(seen) == {None}


def test_a_later_run_branches_from_a_saved_round_0(all_arms, scripted, evaluate, write_pool, card_path):
    pool = write_pool(dict.fromkeys(ROUND0, "B"))
    model = scripted(lambda text, _: planned(text))
    task = debate(pool=pool, arms="private", card=str(card_path), round0=all_arms[0].location, cache=False)
    path = evaluate(task, model.model)
    assert not any("<<initial" in text for text in model.asked)
    again, before = logs.answers(path), logs.answers(all_arms[0].location, arm="private")
    pd.testing.assert_frame_equal(
        again[["question", "round", "agent", "answer"]], before[["question", "round", "agent", "answer"]]
    )


def test_a_limit_of_the_sample_leaves_the_rest_missing(scripted, evaluate, write_pool, card_path):
    pool = write_pool({"early": "B"})
    path = evaluate(
        debate(pool=pool, card=str(card_path), cache=False),
        scripted(lambda text, _: planned(text)).model,
        token_limit=70,
    )
    answers = logs.answers(path)
    assert len(answers) == 12
    assert answers.query("round == 0")["answer"].tolist() == list("BBA")
    assert answers.query("round == 3")["rule"].unique().tolist() == ["not_asked"]
    assert "limit:token" in set(answers["error"].dropna())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": "peer,panel"}, "arms='panel': expected one of peer"),
        ({"rounds": 0}, "rounds=0: expected a whole number from 1"),
        ({"gate": "never"}, "gate='never': expected one of None, always_freeze"),
        ({"pool": "nowhere.csv"}, "no such file"),
    ],
)
def test_a_wrong_option_is_refused_before_any_call(options, message):
    with pytest.raises(ValueError, match=message):
        debate(**options)


# --- live gates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", replay.GATES)
def test_a_live_gate_does_what_replay_says_it_would_have_done(
    all_arms, scripted, evaluate, write_pool, card_path, gate
):
    """The full debates are saved; the live gate runs beside them and freezes where it fires."""
    full = ledger.debates(logs.answers(all_arms[0].location))
    fires = replay.GATES[gate](full).to_numpy()
    model = scripted(lambda text, _: planned(text))
    pool = write_pool(dict.fromkeys(ROUND0, "B"))
    path = evaluate(
        debate(pool=pool, card=str(card_path), gate=gate, gate_action="keep", cache=False), model.model
    )
    said = logs.actions(path)
    assert (said["action"] == "freeze").tolist() == fires.tolist()
    live = ledger.debates(logs.answers(path))
    told = replay.actions(said, live.assign(row="mockllm/model"))
    assert told.tolist() == fires.tolist()
    # Replay's arithmetic on the saved debates is the difference between the two ledgers.
    line = replay.replay(full, fires).iloc[0]
    before, after = (ledger.summarize(frame).iloc[0] for frame in (full, live))
    assert before["collapse"] - after["collapse"] == line["prevented"]
    assert before["correction"] - after["correction"] == line["lost"]
    assert after["final_correct"] - before["final_correct"] == line["net"]
    rounds_asked = {"always_freeze": 0, "disagreement": 0}.get(gate, 1)
    assert len(model.asked) == 27 + 9 * 9 - int(fires.sum()) * 3 * (3 - rounds_asked)


def test_a_live_gate_sees_nothing_later_and_nothing_of_what_is_right(
    scripted, evaluate, write_pool, monkeypatch
):
    seen = []
    monkeypatch.setitem(
        replay.GATES, "spy", lambda debates: seen.append(set(debates)) or debates["n_flipped_2"] > 9
    )
    evaluate(
        debate(pool=write_pool({"q1": "A"}), gate="spy", cache=False),
        scripted(lambda text, config: "Final Answer: A").model,
    )
    assert [max(int(name[-1]) for name in names if name[-1].isdigit()) for names in seen] == [0, 1, 2]
    hidden = ("gold", "correct", "cell", "onset")
    assert not any(name.startswith(hidden) for names in seen for name in names)


def test_a_gate_that_only_records_changes_nothing(all_arms, scripted, evaluate, write_pool, card_path):
    pool = write_pool(dict.fromkeys(ROUND0, "B"))
    task = debate(pool=pool, card=str(card_path), gate="round1_any_flip", cache=False)
    path = evaluate(task, scripted(lambda text, _: planned(text)).model)
    full = logs.answers(all_arms[0].location)
    pd.testing.assert_frame_equal(
        logs.answers(path)[["question", "round", "agent", "answer"]],
        full[["question", "round", "agent", "answer"]],
    )
    assert (logs.actions(path)["action"] == "freeze").sum() == replay.GATES["round1_any_flip"](
        ledger.debates(full)
    ).sum()


def test_a_gate_that_stops_keeps_the_latest_answers(scripted, evaluate, write_pool, card_path):
    pool = write_pool({"early": "B"})
    path = evaluate(
        debate(
            pool=pool, card=str(card_path), gate="round1_majority_change", gate_action="stop", cache=False
        ),
        scripted(lambda text, _: planned(text)).model,
    )
    answers = logs.answers(path)
    assert ["".join(part) for _, part in answers.groupby("round")["answer"]] == ["BBA", "AAB", "AAB", "AAB"]
    assert answers["rule"].tolist()[6:] == ["carried"] * 6
    assert len(logs.replies(path)) == 6
