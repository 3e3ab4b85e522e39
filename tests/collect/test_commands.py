"""The command line of the collector and its estimate: what a dry run says is what a run asks for."""

import json

import pytest
from typer.testing import CliRunner

from analysis.collect import estimate, logs, pools
from analysis.collect.cli import app
from analysis.collect.debate import debate
from analysis.collect.probe import probe
from analysis.collect.run import run
from analysis.errors import DataError


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output, done.exception


def test_the_estimate_of_calls_is_what_is_asked(scripted, evaluate):
    model = scripted(lambda text, config: "Final Answer: A")
    items = pools.load("mixed", n=2)
    evaluate(debate(n=2, arms="peer,shielded", agents=2, rounds=2, cache=False), model.model, epochs=2)
    steps = estimate.debates(items, arms=["peer", "shielded"], agents=2, rounds=2, replicates=2)
    assert steps["calls"].sum() == len(model.asked) == 2 * 2 * 2 * (1 + 2 * 2)
    model.asked.clear()
    evaluate(probe(n=2, agents=2, conditions="default", cache=False), model.model)
    assert (
        estimate.probes(items, conditions=["default"], agents=2)["calls"].sum()
        == len(model.asked)
        == 2 * 2 * 9
    )


def test_estimated_tokens_bracket_what_prompts_hold(scripted, evaluate):
    """With replies of a known length, the characters sent are close to four times the tokens estimated."""
    reply = "x" * 398 + " A"
    model = scripted(lambda text, config: reply)
    evaluate(debate(n=4, arms="peer,private", cache=False), model.model)
    told = estimate.money(
        estimate.debates(pools.load("mixed", n=4), arms=["peer", "private"], reply=len(reply) // 4)
    )
    sent = sum(map(len, model.asked)) / estimate.CHARACTERS
    assert told.set_index("step").loc["total", "tokens_in"] == pytest.approx(sent, rel=0.05)


def test_a_dry_run_asks_nothing_and_counts_money(tmp_path):
    status, out, _ = command(
        "debate",
        "--model",
        "openai/none",
        "--out",
        tmp_path / "run",
        "-n",
        10,
        "--arms",
        "peer,private",
        "--dry-run",
        "--price-in",
        1,
        "--price-out",
        2,
        "--json",
    )
    assert status == 0 and not (tmp_path / "run").exists()
    lines = {line["step"]: line for line in json.loads(out)}
    assert [lines[step]["calls"] for step in ("Round 0", "peer", "private", "total")] == [30, 90, 90, 210]
    total = lines["total"]
    assert total["cost"] == pytest.approx((total["tokens_in"] + 2 * total["tokens_out"]) / 1e6)
    assert total["cost_most"] > total["cost"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["debate", "--arms", "peer,panel"], 2, "arms='panel'"),
        (["debate", "--temperatures", "hot"], 2, "temperatures='hot': expected numbers, or none"),
        (["debate", "--gate", "never"], 2, "gate='never'"),
        (["debate", "--role", "judge=x"], 2, "expected agent_K=MODEL"),
        (["debate", "--role", "agent_4=mockllm/model"], 2, "agent_4=mockllm/model: expected agent_K=MODEL, K from 1 to 3"),
        (["probe", "--dry-run", "--price-in", "1"], 2, "--price-in, --price-out: one of them is missing"),
        (["debate", "--pool", "nowhere.csv"], 1, "no such file"),
        (["probe", "--conditions", "rude"], 2, "conditions='rude'"),
    ],
)
def test_wrong_usage_and_wrong_data_are_told_apart(tmp_path, words, status, message):
    found, out, problem = command(*words, "--model", "mockllm/model", "--out", tmp_path / "run", "-n", 1)
    assert found == status
    assert message in " ".join((out + str(problem)).split()).replace("│ ", "")


def test_a_run_from_the_command_line(tmp_path, monkeypatch, serve):
    """A model whose replies cannot be read: the run is whole, marked, and told."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")  # restored after the run has set it
    server = serve(lambda request: (200, "Nothing to say.", "stop"))
    words = ["--model", "openai-api/loopback/model", "--out", tmp_path / "run", "-n", 2, "--rounds", 1]
    status, out, problem = command("debate", *words, "--display", "none", "--json")
    assert status == 0, problem
    told = json.loads(out[out.index("{") :])
    assert told["lines"][0]["n"] == 2 and told["lines"][0]["init_correct"] == 0
    assert told["note"].startswith("Fails strict quality control: initial (missing 6/6")
    answers = logs.answers(told["logs"])
    assert len(answers) == len(server.requests) == 12
    assert answers["error"].isna().all() and set(answers["rule"]) == {"none"}
    # The same command again finds all replies in its folder.
    assert command("debate", *words, "--display", "none", "--json")[0] == 0 and len(server.requests) == 12


@pytest.mark.parametrize(
    ("model", "message"),
    [("nowhere/model", "model 'nowhere/model': "), ("openai-api/nokey/model", "NOKEY_API_KEY")],
)
def test_a_model_that_is_not_there_is_named(tmp_path, monkeypatch, model, message):
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")
    with pytest.raises(DataError) as told:
        run(debate(n=1), tmp_path / "run", model=model, display="none")
    assert message in str(told.value) and "[bold]" not in str(told.value)


def test_an_address_with_a_password_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected them in the environment"):
        run(debate(n=1), tmp_path / "run", model="mockllm/model", base_url="http://me:secret@127.0.0.1:9/v1")
    assert not (tmp_path / "run").exists()


def test_a_run_from_the_command_line_tells_what_failed_and_asks_for_it_again(serve, write_pool, tmp_path, monkeypatch):
    """Agent 1 says nothing that can be read, agent 2 cannot be reached; later both give the right answer."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")  # restored after the run has set it
    down = [True]

    def behave(request):
        if not down:
            return 200, "Final Answer: A", "stop"
        if request["temperature"] == 0.7:
            return 400, json.dumps({"error": {"message": "sk-not-a-real-key", "type": "x"}}).encode(), None
        return 200, "No." if request["temperature"] == 0.5 else "Final Answer: A", "stop"

    server = serve(behave)
    words = ["debate", "--model", "openai-api/loopback/model", "--base-url", server.url, "--out", tmp_path / "run"]
    words += ["--pool", write_pool({"q1": "A", "q2": "A"}), "--rounds", 1, "--retries", 0, "--display", "none", "--json"]

    def go(*more):
        status, out, problem = command(*words, *more)
        assert status == 0, problem
        told = json.loads(out[out.index("{") :])
        return told["lines"][0], told["note"], logs.answers(told["logs"])

    line, note, answers = go()
    assert line["n"] == 2 and answers["rule"].tolist() == ["none", "failed", "final_tag"] * 4
    assert note == (
        "Fails strict quality control: initial (missing 4/6, at most 2% allowed); peer (missing 8/12, at most 2% "
        "allowed). 4 calls failed: BadRequestError 400 (4). Run again with --retry-failed to ask for them once more."
    )
    down.clear()
    asked = len(server.requests)
    assert go()[1] == note and len(server.requests) == asked  # a question that is done is not asked again
    line, note, answers = go("--retry-failed")
    # Round 0: what failed. Round 1: all of it, for agents see other replies than before.
    assert len(server.requests) == asked + 2 + 6
    assert answers["rule"].tolist() == ["none", "final_tag", "final_tag", *["final_tag"] * 3] * 2
    assert note == "Fails strict quality control: initial (missing 2/6, at most 2% allowed); peer (missing 2/12, at most 2% allowed)."
    assert len(logs.found_at(tmp_path / "run")) == 1
    go("--retry-failed")
    assert len(server.requests) == asked + 8


def test_a_screen_ends_with_its_quality(serve, write_pool, tmp_path, monkeypatch):
    """Replies to challenges are cut at the limit, and two of eight cannot be read."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")

    def behave(request):
        challenge = request["messages"][-1]["content"]
        if "About your answer" not in challenge:
            return 200, "Final Answer: A", "stop"
        return 200, "No." if "beyond doubt" in challenge else "Final Answer: A", "length"

    server = serve(behave)
    words = ["probe", "--model", "openai-api/loopback/model", "--base-url", server.url, "--out", tmp_path / "run"]
    words += ["--pool", write_pool({"q1": "A"}), "--agents", 1, "--conditions", "default", "--display", "none", "--json"]
    status, out, problem = command(*words)
    assert status == 0, problem
    told = json.loads(out[out.index("{") :])
    assert told["note"] == (
        "Fails strict quality control: default (missing 2/9, truncated 8/9, at most 2% allowed)."
    )


def test_select_writes_the_most_revisable_questions(tmp_path):
    probes = tmp_path / "probes.jsonl"
    probes.write_text(
        "".join(
            json.dumps(
                {
                    "question_id": f"q{k}",
                    "correct_label": "A",
                    "condition": "default",
                    "agent_idx": 0,
                    "initial_answer": "A",
                    "probe_results": [
                        {"strength": "weak", "social": False, "post_answer": "B" if k > 2 else "A"}
                    ],
                }
            )
            + "\n"
            for k in range(5)
        )
    )
    status, out, _ = command(
        "select", probes, "--out", tmp_path / "chosen.json", "--pool", "mixed", "-n", 2, "--json"
    )
    assert status == 0 and json.loads(out)["questions"] == ["q3", "q4"]
