"""A server on loopback: whatever it does leaves a recorded missing answer; a killed run goes on."""

import collections
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from analysis import ledger
from analysis.collect import logs, quality
from analysis.collect.calls import seed_of
from analysis.collect.debate import debate
from analysis.collect.run import _set_aside, run
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
MODEL = "openai-api/loopback/model"


def fault(status, **error):
    return (
        status,
        json.dumps({"error": error or {"message": "sk-not-a-real-key is bad", "type": "x"}}).encode(),
        None,
    )


def misbehave(request):
    """The question says what goes wrong."""
    text = request["messages"][-1]["content"]
    question = re.search(r"\[(\w+)\] Which one", text)[1]
    return {
        "good": (200, "It is two.\nFinal Answer: B", "stop"),
        "broken": fault(500),
        "denied": fault(401),
        "toolong": fault(
            400,
            message="maximum context length is 10 tokens",
            type="invalid_request_error",
            code="context_length_exceeded",
        ),
        "garbage": (200, b"<html>not json</html>", None),
        "empty": (200, "", "stop"),
        "null": (200, None, "stop"),
        "cyrillic": (200, "Ответ: правильно второе", "stop"),
        "chinese": (200, "答案是二。", "stop"),
        "cut": (200, "Let us see: option A is", "length"),
        "pondering": (200, "<think>B or A, B or", "length"),
        "thought": (200, "<think>A? No, B.</think>Final Answer: B", "stop"),
    }.get(question, (200, "Final Answer: B", "stop"))


def test_every_failure_is_a_recorded_missing_answer(serve, evaluate, write_pool):
    server = serve(misbehave)
    names = [
        "good",
        "broken",
        "denied",
        "toolong",
        "garbage",
        "empty",
        "null",
        "cyrillic",
        "chinese",
        "cut",
        "pondering",
        "thought",
    ]
    path = evaluate(
        debate(
            pool=write_pool(dict.fromkeys(names, "B")), rounds=1, agents=2, retries=0, timeout=60, cache=False
        ),
        MODEL,
        model_base_url=server.url,
    )
    answers = logs.answers(path)
    assert len(answers) == len(names) * 4
    told = dict(iter(answers.groupby("question")))
    for name in ("good", "thought"):
        assert told[name]["answer"].tolist() == ["B"] * 4
    for name in set(names) - {"good", "thought", "cut"}:
        assert told[name]["answer"].isna().all(), name
    rules = {name: sorted(set(part["rule"])) for name, part in told.items()}
    assert {rules[name][0] for name in ("broken", "denied", "garbage")} == {"failed"}
    assert {rules[name][0] for name in ("empty", "null")} == {"empty"}
    assert {rules[name][0] for name in ("cyrillic", "chinese")} == {"none"}
    assert rules["pondering"] == ["unfinished_reasoning"]
    errors = {name: set(part["error"].dropna()) for name, part in told.items()}
    assert errors["broken"] == {"InternalServerError 500"} and errors["denied"] == {"AuthenticationError 401"}
    assert told["cut"]["truncated"].all() and told["toolong"]["answer"].isna().all()
    assert (
        told["cut"]["answer"].tolist() == ["A"] * 4
    )  # the paper's coder reads the last letter; it is marked as cut
    assert (
        logs.answers(path, texts=True).query("question == 'thought'")["text"].tolist()
        == ["Final Answer: B"] * 4
    )
    checked = quality.checks(logs.replies(path)).set_index(["arm", "check"])["k"]
    assert (checked["peer", "unclosed"], checked["peer", "missing"]) == (4, 36)
    # A reply that is cut: "cut" and "pondering"; some providers' too-long error is one, too.
    assert checked["peer", "truncated"] == 8 + 4 * int(told["toolong"]["truncated"].all())
    assert len(ledger.debates(answers)) == len(names)
    assert not any("sk-not" in str(value) for value in answers.astype(str).to_numpy().ravel())
    asked = collections.Counter(
        place_of(request) for request in server.requests if "[broken]" not in str(request)
    )
    assert set(asked.values()) == {1} and len(asked) == (len(names) - 1) * 4  # nothing was asked twice


def test_a_call_that_takes_too_long_is_a_missing_answer(serve, evaluate, write_pool):
    over = threading.Event()

    def hang(request):
        if "latest answers" not in request["messages"][-1]["content"]:
            over.wait(60)
        return 200, "Final Answer: B", "stop"

    server = serve(hang)
    task = debate(pool=write_pool({"q1": "B"}), rounds=1, agents=2, retries=0, timeout=1, cache=False)
    first = logs.answers(evaluate(task, MODEL, model_base_url=server.url)).query("round == 0")
    over.set()
    assert first["error"].tolist() == ["AttemptTimeoutError"] * 2
    assert first["answer"].isna().all() and first["rule"].tolist() == ["failed"] * 2


def test_settings_reach_the_server(serve, evaluate, write_pool):
    server = serve(lambda request: (200, "Final Answer: A", "stop"))
    evaluate(
        debate(pool=write_pool({"q1": "A"}), rounds=1, max_tokens=77, cache=False),
        MODEL,
        model_base_url=server.url,
    )
    first = [
        request for request in server.requests if "latest answers" not in request["messages"][-1]["content"]
    ]
    assert [request["temperature"] for request in sorted(first, key=lambda r: r["temperature"])] == [
        0.5,
        0.7,
        1.0,
    ]
    assert {
        request.get("max_tokens", request.get("max_completion_tokens")) for request in server.requests
    } == {77}
    assert len({request["seed"] for request in server.requests}) == 6
    assert first[0]["messages"][0]["role"] == "system"


# --- interruption -------------------------------------------------------------------------------------------


def place_of(request):
    """What tells a call from every other one of the run below."""
    return request["seed"], request["messages"][-1]["content"]


OPTIONS = {"arms": ["peer", "private"], "rounds": 2}
KILLED = """
import sys
from analysis.collect.debate import debate
from analysis.collect.run import _set_aside, run
run(debate(pool=sys.argv[1], arms=["peer", "private"], rounds=2), sys.argv[2], model=sys.argv[3],
    base_url=sys.argv[4], max_connections=4, max_samples=3, display="none", log_buffer=100)
"""


def test_a_killed_run_goes_on_and_pays_for_nothing_twice(serve, write_pool, tmp_path, monkeypatch):
    """Killed for real in the middle of debates: 5 questions, 15 calls each, 35 of the 75 answered by then.

    Samples that were done by then are not in the log yet (log_buffer): Inspect recovers them from its buffer.
    """
    paid_before = 35
    state, numbers = {"holding": True}, itertools.count(1)

    def behave(request):
        deadline = time.monotonic() + 60
        number = next(numbers)
        while state["holding"] and number > paid_before and time.monotonic() < deadline:
            time.sleep(0.01)
        return 200, f"Final Answer: {'ABCD'[request['seed'] % 4]}", "stop"

    server = serve(behave)
    pool, folder = write_pool({f"q{k}": "A" for k in range(5)}), tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, pool, str(folder), MODEL, server.url],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    deadline = time.monotonic() + 60
    while len(server.answered) < paid_before and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)  # for what was answered to be written; what is held back has been asked for, and not paid
    os.kill(process.pid, signal.SIGKILL)
    said = process.communicate()[0]
    assert process.returncode == -signal.SIGKILL, said
    paid = [place_of(request) for request in server.answered]
    assert len(paid) == paid_before
    state["holding"] = False
    time.sleep(0.1)  # for the held threads to find that nobody listens
    server.answered.clear()

    monkeypatch.setenv("INSPECT_CACHE_DIR", "")  # restored after run() has set it
    options = {
        "model": MODEL,
        "base_url": server.url,
        "max_connections": 4,
        "max_samples": 3,
        "display": "none",
    }
    found = run(debate(pool=pool, **OPTIONS), folder, **options)
    again = [place_of(request) for request in server.answered]
    assert not set(again) & set(paid)
    assert len(again) == len(set(again)) == 5 * 15 - paid_before

    answers = logs.answers(found, arm="all")
    assert len(answers) == 2 * 5 * 9 and answers["answer"].notna().all()
    assert not answers.duplicated(["row", "question", "round", "agent"]).any()
    # As if it had never been killed: each answer follows from its call's seed.
    expected = [
        "ABCD"[seed_of(0, line.question, 0, line.round, int(line.agent)) % 4] for line in answers.itertuples()
    ]
    assert answers["answer"].tolist() == expected

    asked = len(server.requests)
    assert run(debate(pool=pool, **OPTIONS), folder, **options) == found
    assert len(server.requests) == asked  # everything was there
    with pytest.raises(DataError, match="holds a run with other questions or settings"):
        run(debate(pool=pool, arms=["peer"], rounds=2), folder, **options)


def test_a_torn_log_does_not_stop_a_run(serve, write_pool, tmp_path, monkeypatch):
    """A loss of power can leave half a log; what it held is in the stored replies."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")
    server = serve(lambda request: (200, "Final Answer: A", "stop"))
    pool, folder = write_pool({"q1": "A"}), tmp_path / "run"
    options = {"model": MODEL, "base_url": server.url, "display": "none"}
    (path,) = run(debate(pool=pool, rounds=1), folder, **options)
    path.write_bytes(path.read_bytes()[:3000])
    (again,) = run(debate(pool=pool, rounds=1), folder, **options)
    assert len(server.requests) == 6
    assert logs.answers(again)["answer"].tolist() == ["A"] * 6
    assert path.with_name(f"{path.name}.torn").stat().st_size == 3000 and logs.found_at(folder) == [again]


def test_an_interrupted_second_try_at_failed_calls_is_no_finished_run(serve, write_pool, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")
    server = serve(lambda request: fault(400))
    pool, folder = write_pool({"q1": "A"}), tmp_path / "run"
    options = {"model": MODEL, "base_url": server.url, "display": "none"}
    (path,) = run(debate(pool=pool, rounds=1, retries=0), folder, **options)
    _set_aside(path)
    with pytest.raises(DataError, match="the run is not finished"):
        logs.answers(folder / "logs")
    assert len(logs.answers(folder / "logs", unfinished="keep")) == 6
    server.behave = lambda request: (200, "Final Answer: A", "stop")
    (path,) = run(debate(pool=pool, rounds=1, retries=0), folder, **options)
    assert logs.answers(path)["answer"].tolist() == ["A"] * 6


def test_an_unfinished_log_is_refused_unless_asked_for(serve, write_pool, tmp_path):
    """The log that a killed run leaves is no row: it would count fewer debates than were meant."""
    path = tmp_path / "killed.eval"
    with zipfile.ZipFile(path, "w") as log:
        log.writestr(
            "_journal/start.json", json.dumps({"version": 2, "eval": {"task_id": "t", "dataset": {}}})
        )
        sample = {
            "id": "q1",
            "epoch": 1,
            "target": "A",
            "metadata": {},
            "store": {
                "debate": {
                    "card": {},
                    "arms": ["peer"],
                    "agents": 1,
                    "rounds": 1,
                    "policy": "reference",
                    "models": ["m"],
                    "replies": [
                        {
                            "arm": "initial",
                            "round": 0,
                            "agent": 1,
                            "answer": "A",
                            "rule": "final_tag",
                            "text": "A",
                        }
                    ],
                }
            },
        }
        log.writestr("samples/q1_epoch_1.json", json.dumps(sample))

    with pytest.raises(DataError, match="not finished .status 'started'.; run the same command again"):
        logs.answers(path)
    kept = logs.answers(path, unfinished="keep")
    assert kept["answer"].tolist()[0] == "A" and kept["rule"].tolist()[1] == "not_asked"


def test_failed_calls_are_asked_again_once_the_logs_are_gone(serve, write_pool, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("INSPECT_CACHE_DIR", "")  # restored after the run has set it
    down = threading.Event()
    down.set()

    def answer(request):
        failing = down.is_set() and "[q2]" in request["messages"][-1]["content"]
        return fault(500) if failing else (200, "Final Answer: A", "stop")

    server = serve(answer)
    pool, out = write_pool({"q1": "A", "q2": "A"}), tmp_path / "run"

    def go():
        server.requests.clear()
        task = debate(pool=pool, rounds=1, retries=0)
        path = run(task, out, model=MODEL, base_url=server.url, display="plain")[0]
        return logs.answers(path), ["[q1]" in str(request) for request in server.requests]

    answers, _ = go()
    assert "2 of 2 questions, time left: done" in capfd.readouterr().err
    assert answers.groupby("question")["answer"].count().to_dict() == {"q1": 6, "q2": 0}
    down.clear()
    answers, asked = go()
    assert asked == [] and answers.groupby("question")["answer"].count().to_dict() == {"q1": 6, "q2": 0}
    shutil.rmtree(out / "logs")
    answers, asked = go()
    assert asked == [False] * 6 and answers.groupby("question")["answer"].count().to_dict() == {"q1": 6, "q2": 6}
