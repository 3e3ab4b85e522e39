"""The command line of the collector and its estimate: what a dry run says is what a run asks for."""

import json

import pytest
from typer.testing import CliRunner

from analysis.collect import estimate, logs, pools
from analysis.collect.cli import app
from analysis.collect.debate import debate
from analysis.collect.probe import probe


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
