"""The command line: what it prints, for people and machines, and how it ends."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cli, coder, ledger, replay, rows, stats, traces
from analysis import data as tables
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
DEBATES = ROOT / "data" / "debates.csv"
EXAMPLE = ROOT / "data" / "examples" / "synthetic_debates.jsonl"
PROBES = ROOT / "data" / "examples" / "synthetic_probes.jsonl"
LEDGER_FIELDS = {"row", "n", "preserved", "collapse", "correction", "unrepaired", "init_correct", "final_correct", "c_cond", "c_cond_low",
                 "c_cond_high", "onset"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(ROOT / "data", copy, ignore=shutil.ignore_patterns("rows"))
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    return copy


def run(*arguments, **options):
    """Run in this process; data problems come out as the exceptions that `main` turns into status 1."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], **options)


def shell(*arguments, **options):
    command = [sys.executable, "-m", "analysis", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, **options)


def strict(text):
    """JSON as other languages read it: no NaN, no Infinity."""
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def machine(*arguments, **options):
    done = run(*arguments, "--json", **options)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return strict(done.stdout)


def usage(*arguments):
    """A wrong use: status 2, the usage and one error line on standard error, nothing on standard output."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: ") and "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return line


# --- help ---------------------------------------------------------------------------------------------------

RUN = ["--model", "--out", "--base-url", "--pool", "--n", "--seed", "--max-tokens", "--reasoning", "--policy", "--card",
       "--dry-run", "--price-in", "--price-out"]
OPTIONS = {
    "code": ["--policy", "--labels", "--numbers", "--json"],
    "ledger": ["--policy", "--labels", "--arm", "--tie", "--missing", "--interval", "--endpoint", "--json"],
    "replay": ["--gate", "--actions", "--w-collapse", "--w-correction", "--policy", "--labels", "--arm", "--tie", "--missing", "--json"],
    "screen": ["--added", "--json"],
    "claims": ["--verdict", "--page", "--json"],
    "mlm": ["--fit", "--draws", "--tune", "--chains", "--seed", "--json"],
    "card": ["--out", "--list", "--validate", "--schema", "--json"],
    "row": ["add", "check", "list", "remove", "export"],
    "row export": ["--tier", "--out", "--license", "--creator", "--json"],
    "row add": ["--id", "--model", "--family", "--policy", "--labels", "--probes", "--arm", "--synthetic", "--json"],
    "row check": ["--id", "--model", "--family", "--policy", "--labels", "--probes", "--arm", "--synthetic", "--json"],
    "row list": ["--json"],
    "fetch": ["--revision", "--cache", "--from", "--add", "--json"],
    "collect": ["debate", "probe", "estimate", "select"],
    "collect debate": [*RUN, "--arms", "--rounds", "--confidence", "--gate", "--round0", "--role", "--json"],
    "collect probe": [*RUN, "--conditions", "--target", "--repairs", "--json"],
    "collect estimate": ["--pool", "--n", "--arms", "--conditions", "--price-in", "--price-out", "--json"],
    "collect select": ["--pool", "--out", "--n", "--json"],
    "row remove": ["--json"],
    "book": ["execute", "refresh", "prune", "metadata"],
    "book execute": ["--tie", "--missing", "--interval", "--added-rows", "--row"],
    "book refresh": [],
    "book prune": ["--keep"],
    "book metadata": [],
}


def test_help_names_every_command():
    done = run("--help")
    assert done.exit_code == 0
    told = re.findall(r"^  ([a-z]+)  ", done.stdout.split("Commands:")[1], re.MULTILINE)
    assert set(told) == {name.split()[0] for name in OPTIONS}
    assert "1 data problem" in done.stdout.replace("\n ", "")


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_a_command_names_its_options(command):
    done = run(*command.split(), "--help", env={"COLUMNS": "200"})
    assert done.exit_code == 0 and done.stdout.startswith("Usage: ")
    for option in OPTIONS[command]:
        assert re.search(rf"(^|\s){option}\b", done.stdout), option


def test_choices_are_those_of_the_modules():
    assert get_args(cli.Ties) == ledger.TIES
    assert get_args(cli.MissingRules) == ledger.MISSING
    assert get_args(cli.Intervals) == stats.INTERVALS
    assert get_args(cli.Policies) == coder.POLICIES == traces.POLICIES


# --- exit status, in processes of their own -----------------------------------------------------------------


def test_status_0_in_a_process():
    done = shell("--help")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("Usage: python -m analysis")


def test_status_1_in_a_process(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()
    done = shell("ledger", empty, "--json")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {empty}: the file is empty\n")


def test_status_2_in_a_process():
    done = shell("ledger", DEBATES, "--missing", "drop")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "missing='drop': a feature matrix holds no answers" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("problem", [DataError("x.csv, line 3"), FileNotFoundError("x.csv: there is no such file"),
                                     UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid")])
def test_data_problems_are_one_line_on_standard_error(monkeypatch, capsys, problem):
    def broken():
        raise problem

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    told = capsys.readouterr()
    assert (stopped.value.code, told.out, told.err) == (1, "", f"error: {problem}\n")


def test_a_defect_of_ours_is_no_data_problem(monkeypatch):
    def broken():
        raise ValueError("a defect")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ValueError, match="a defect"):
        cli.main()


def test_a_closed_pipe_leaves_no_traceback():
    command = f"{sys.executable} -m analysis ledger {DEBATES} --json | true"
    piped = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert piped.stderr == ""


def test_ctrl_c_ends_quietly(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(coder, "code_answers", interrupted)
    done = run("code", "-", input="Final Answer: A")
    assert (done.exit_code, done.output) == (130, "")


# --- code ---------------------------------------------------------------------------------------------------


def test_code_of_one_reply_from_standard_input():
    assert machine("code", "-", input="I weigh A.\nFinal Answer: C\n") == [{"label": "C", "rule": "final_tag"}]
    assert machine("code", "-", "--labels", "AB", input="Final Answer: C") == [{"label": None, "rule": "none"}]
    assert machine("code", "-", "--numbers", input="that makes 1,200 in all") == [{"value": 1200, "rule": "last_number"}]
    assert machine("code", "-", input="") == [{"label": None, "rule": "empty"}]


@pytest.mark.parametrize("policy", coder.POLICIES)
def test_code_of_a_file(tmp_path, policy):
    texts = ["Final Answer: A. No: Final Answer: B", "D", None]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps({"id": k, "response": text}) + "\n" for k, text in enumerate(texts)))
    expected = coder.code_answers(texts, policy=policy)
    found = machine("code", path, "--policy", policy)
    assert [line["label"] for line in found] == [None if v != v else v for v in expected["label"]]
    assert [line["rule"] for line in found] == expected["rule"].tolist()
    assert found[0]["label"] == ("A" if policy == "reference" else "B")


def test_code_refuses_a_file_without_text(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("question,answer\nq,A\n")
    with pytest.raises(DataError, match=r"other.csv: no column 'text'; its columns are question, answer"):
        run("code", path, catch_exceptions=False)
    assert "expected the letters of the options" in usage("code", "-", "--labels", "12")


# --- ledger -------------------------------------------------------------------------------------------------


def test_ledger_of_the_released_debates():
    found = machine("ledger", DEBATES)
    assert all(LEDGER_FIELDS <= set(line) for line in found)
    assert [line["row"] for line in found] == ["gemini/3-flash", "openai/gpt-5.4-mini", "vllm/llama-3.1-8b", "vllm/phi-4-mini", "vllm/qwen3-4b", "vllm/qwen3-8b"]
    total = {name: sum(line[name] for line in found) for name in ("n", "collapse", "correction", "preserved", "unrepaired", "init_correct", "final_correct")}
    assert (total["n"], total["collapse"], total["correction"]) == (6925, 253, 816)
    assert total["final_correct"] - total["init_correct"] == 816 - 253
    assert total["n"] == total["preserved"] + total["unrepaired"] + 816 + 253
    onset = {k: sum(line["onset"][k] for line in found) for k in ("1", "2", "3")}
    assert onset == {"1": 149, "2": 47, "3": 57}
    for line in found:
        assert list(line["onset"]) == ["1", "2", "3"] and sum(line["onset"].values()) == line["collapse"]
        assert line["c_cond"] == pytest.approx(line["collapse"] / line["init_correct"])
        assert line["c_cond_low"] < line["c_cond"] < line["c_cond_high"]
        assert all(isinstance(line[name], int) for name in ("n", "collapse", "correction", "init_correct"))


def debates_file(folder, name="mine.csv", n_rounds=1, lines=None):
    """Two agents. Round 0: q1 A, A (right); q2 B, A (tied, A right); q3 none, none; q4 C, C (wrong). Then q1 B, B; the others A, A."""
    first = {"q1": "AA", "q2": "BA", "q3": "--", "q4": "CC"}
    out = []
    for question, said in first.items():
        for k in range(n_rounds + 1):
            now = said if k == 0 else "BB" if question == "q1" else "AA"
            out += [{"question": question, "round": k, "agent": agent, "answer": None if a == "-" else a, "gold": "A"} for agent, a in zip("xy", now)]
    path = folder / name
    pd.DataFrame(out).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("options, counts", [
    # n, preserved, collapse, correction, unrepaired, undefined, init_correct, init_wrong: counted by hand
    ([], [4, 1, 1, 2, 0, 0, 2, 2]),
    (["--tie", "alphabetic"], [4, 1, 1, 2, 0, 0, 2, 2]),
    (["--tie", "undecided"], [4, 0, 1, 3, 0, 0, 1, 3]),
    (["--tie", "expected"], [4, 0.5, 1, 2.5, 0, 0, 1.5, 2.5]),
    (["--missing", "initially_wrong"], [4, 1, 1, 2, 0, 0, 2, 2]),
    (["--missing", "drop"], [3, 1, 1, 1, 0, 0, 2, 1]),
    (["--missing", "undecided"], [4, 1, 1, 1, 0, 1, 2, 1]),
    (["--tie", "undecided", "--missing", "drop"], [3, 0, 1, 2, 0, 0, 1, 2]),
])
def test_ledger_choices(tmp_path, options, counts):
    (line,) = machine("ledger", debates_file(tmp_path), *options)
    names = ["n", "preserved", "collapse", "correction", "unrepaired", "undefined", "init_correct", "init_wrong"]
    assert [line[name] for name in names] == counts
    assert line["onset"] == {"1": 1} and line["row"] == "mine"


def test_ledger_intervals(tmp_path):
    path = debates_file(tmp_path)
    (wilson,), (jeffreys,) = machine("ledger", path, "--interval", "wilson"), machine("ledger", path, "--interval", "jeffreys")
    found = stats.jeffreys(1, 2)
    assert (jeffreys["c_cond_low"], jeffreys["c_cond_high"]) == pytest.approx((float(found[0]), float(found[1])))
    assert wilson["c_cond_low"] != jeffreys["c_cond_low"]


def test_ledger_endpoint():
    whole, short = machine("ledger", EXAMPLE)[0], machine("ledger", EXAMPLE, "--endpoint", "2")[0]
    assert list(whole["onset"]) == ["1", "2", "3"] and list(short["onset"]) == ["1", "2"]
    said = traces.validate(traces.read(EXAMPLE))
    expected = ledger.summarize(ledger.debates(said[said["round"] <= 2])).iloc[0]
    assert [short[name] for name in ledger.CELLS] == expected[list(ledger.CELLS)].tolist()
    with pytest.raises(DataError, match="endpoint=9: expected one of rounds 1, 2, 3"):
        run("ledger", EXAMPLE, "--endpoint", "9", catch_exceptions=False)
    assert "--endpoint" in usage("ledger", EXAMPLE, "--endpoint", "0")


def test_ledger_of_several_files_of_different_length(tmp_path):
    one, two = debates_file(tmp_path, "one.csv"), debates_file(tmp_path, "two.csv", n_rounds=4)
    found = machine("ledger", one, two, DEBATES)
    assert [line["row"] for line in found[:2]] == ["one", "two"] and len(found) == 8
    for line, path in zip(found, (one, two)):
        (alone,) = machine("ledger", path)
        assert {k: v for k, v in line.items() if k != "onset"} == {k: v for k, v in alone.items() if k != "onset"}
    assert found[1]["onset"] == {"1": 1, "2": 0, "3": 0, "4": 0}
    assert sum(line["collapse"] for line in found[2:]) == 253
    with pytest.raises(DataError, match=r"one.csv: row 'one' was read from .*one.csv already"):
        run("ledger", one, tmp_path / "." / "one.csv", catch_exceptions=False)


def test_ledger_labels_and_policy(tmp_path):
    path = tmp_path / "said.jsonl"
    lines = [{"question": "q", "round": k, "agent": a, "gold": "B", "text": text} for k in (0, 1) for a, text in
             [("x", "Final Answer: B, no, Final Answer: A"), ("y", "Final Answer: B, no, Final Answer: A")]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert machine("ledger", path, "--labels", "ABCD")[0]["preserved"] == 1
    assert machine("ledger", path, "--labels", "ABCD", "--policy", "strict")[0]["unrepaired"] == 1
    with pytest.raises(DataError, match=r"'gold': 'B'; expected one of A, C"):
        run("ledger", path, "--labels", "AC", catch_exceptions=False)


@pytest.mark.parametrize("arguments, words", [
    (["ledger"], "Missing argument"),
    (["ledger", EXAMPLE, "--tie", "majority"], "'alphabetic', 'undecided', 'expected'"),
    (["ledger", EXAMPLE, "--missing", "zero"], "'initially_wrong', 'drop', 'undecided'"),
    (["ledger", EXAMPLE, "--interval", "wald"], "'wilson', 'jeffreys'"),
    (["ledger", EXAMPLE, "--policy", "loose"], "'reference', 'strict', 'anchored'"),
    (["ledger", EXAMPLE, "--labels", ""], "expected distinct letters or digits"),
    (["ledger", EXAMPLE, "--labels", "A,B"], "expected distinct letters or digits"),
    (["ledger", EXAMPLE, "--labels", "AAB"], "expected distinct letters or digits"),
    (["ledger", EXAMPLE, "--endpoint", "last"], "--endpoint"),
    (["ledger", DEBATES, "--missing", "undecided"], "expected initially_wrong"),
    (["ledger", DEBATES, "--tie", "expected"], "expected alphabetic or undecided"),
    (["ledger", EXAMPLE, DEBATES, "--tie", "expected"], "expected alphabetic or undecided"),
    (["replay", DEBATES], "one of --gate NAME and --actions FILE"),
    (["replay", DEBATES, "--gate", "disagreement", "--actions", EXAMPLE], "one of --gate NAME and --actions FILE"),
    (["replay", DEBATES, "--gate", "freeze"], "expected one of always_freeze, round1_majority_change, round1_any_flip, disagreement"),
    (["replay", DEBATES, "--gate", "disagreement", "--w-collapse", "-1"], "--w-collapse"),
    (["replay", DEBATES, "--gate", "disagreement", "--w-collapse", "nan"], "--w-collapse"),
    (["replay", DEBATES, "--gate", "disagreement", "--w-correction", "inf"], "--w-correction"),
    (["replay", DEBATES, "--gate", "disagreement", "--missing", "drop"], "expected initially_wrong"),
    (["screen", "--rows", "x"], "--rows"),
    (["claims", "extra"], "extra"),
    (["code"], "Missing argument"),
    (["row", "add", EXAMPLE, "--id", "x"], "--model"),
    (["row", "add", EXAMPLE, "--id", "x", "--model", "M", "--family", "F", "--labels", "A B"], "expected distinct letters"),
    (["row", "remove"], "Missing argument"),
    (["row", "frobnicate"], "frobnicate"),
    (["nonsense"], "nonsense"),
])
def test_wrong_use(arguments, words):
    assert words in usage(*arguments)


@pytest.mark.parametrize("arguments, words", [
    (["ledger", "no-such-file.csv"], "no-such-file.csv: there is no such file"),
    (["ledger", ROOT / "data"], "is a directory"),
    (["replay", "no-such-file.csv", "--gate", "disagreement"], "no such file"),
    (["replay", EXAMPLE, "--actions", "no-such-file.csv"], "no such file|No such file"),
    (["replay", EXAMPLE, "--actions", DEBATES], "row|action"),
    (["screen", "--added", "no-such-row"], "id 'no-such-row': no such row"),
    (["row", "remove", "no-such-row"], "id 'no-such-row': no such row"),
    (["row", "add", EXAMPLE, "--id", "../x", "--model", "M", "--family", "F"], "id '../x'"),
    (["row", "check", DEBATES], "expected one model-scaffold row a file"),
])
def test_data_problems(root, arguments, words):
    done = run(*arguments)
    assert done.stdout == ""
    assert isinstance(done.exception, (DataError, OSError)), done.exception
    assert re.search(words, str(done.exception)) and "\n" not in str(done.exception)


def test_tables_for_people():
    lines = run("ledger", EXAMPLE).stdout.splitlines()
    assert len(lines) == 2 and lines[0].split()[:3] == ["row", "n", "preserved"] and lines[1].split()[-1].count("/") == 2
    assert run("replay", EXAMPLE, "--gate", "list").stdout.split() == ["gate", *replay.GATES]


# --- replay -------------------------------------------------------------------------------------------------


def test_replay_of_a_gate():
    found = machine("replay", DEBATES, "--gate", "always_freeze")
    assert [line["row"] for line in found][-1] == "(all)" and len(found) == 7
    last = found[-1]
    assert (last["n"], last["gated"], last["prevented"], last["lost"], last["net"]) == (6925, 6925, 253, 816, 253 - 816)
    assert last["delta_pp"] == pytest.approx(100 * (253 - 816) / 6925) and last["break_even"] == pytest.approx(816 / 253)
    for field in ("gated", "prevented", "lost", "net"):
        assert sum(line[field] for line in found[:-1]) == last[field]
    weighted = machine("replay", DEBATES, "--gate", "always_freeze", "--w-collapse", "4", "--w-correction", "0.5")[-1]
    assert weighted["net"] == 4 * 253 - 0.5 * 816


def test_every_listed_gate_runs():
    names = [line["gate"] for line in machine("replay", EXAMPLE, "--gate", "list")]
    assert names == list(replay.GATES)
    for name in names:
        (line,) = machine("replay", EXAMPLE, "--gate", name)
        assert {"row", "n", "gated", "prevented", "lost", "net", "delta_pp", "break_even"} <= set(line)


def test_replay_of_actions(tmp_path):
    debates = debates_file(tmp_path)
    actions = tmp_path / "actions.csv"
    actions.write_text("row,question,action\nmine,q2,continue\nmine,q1,freeze\nmine,q4,freeze\nmine,q3,continue\n")
    (line,) = machine("replay", debates, "--actions", actions, "--w-collapse", "3")
    # q1 collapses and is frozen; q4 is corrected and is frozen; q3 is corrected and goes on.
    assert [line[name] for name in ("n", "gated", "prevented", "lost", "net")] == [4, 2, 1, 1, 2]
    assert line["delta_pp"] == pytest.approx(50)
    actions.write_text(actions.read_text().replace("q4,freeze", "q4,stop"))
    with pytest.raises(DataError, match=r"actions.csv, line 4.*'stop'"):
        run("replay", debates, "--actions", actions, catch_exceptions=False)


def test_what_cannot_be_told_is_null_and_infinite_is_a_word(tmp_path):
    path = tmp_path / "good.csv"
    pd.DataFrame([{"question": "q", "round": k, "agent": "a", "answer": "A", "gold": "A"} for k in (0, 1)]).to_csv(path, index=False)
    (line,) = machine("replay", path, "--gate", "always_freeze")
    assert line["break_even"] is None and line["net"] == 0
    (line,) = machine("ledger", path)
    assert line["correction_rate"] is None and line["c_cond"] == 0
    pd.DataFrame([{"question": "q", "round": k, "agent": "a", "answer": "BA"[k], "gold": "A"} for k in (0, 1)]).to_csv(path, index=False)
    (line,) = machine("replay", path, "--gate", "always_freeze")
    assert (line["prevented"], line["lost"], line["break_even"]) == (0, 1, "inf")


# --- screen and claims --------------------------------------------------------------------------------------


def test_screen(root):
    (paper,) = machine("screen")
    assert (paper["rows"], paper["added"], paper["n_rows"], paper["n_families"]) == ("paper", False, 14, 7)
    assert round(paper["rho"], 4) == 0.8929
    assert (paper["two_sided_count"], paper["n_orders"]) == (62, 5040)
    rows.add(EXAMPLE, id="mine", model="M", family="Mine", probes=PROBES)
    assert machine("screen") == [paper]
    found = machine("screen", "--added", "mine")
    assert found[0] == paper and [line["rows"] for line in found] == ["paper", "mine"] and found[1]["n_families"] == 8


def test_claims():
    done = shell("claims", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = strict(done.stdout)
    printed = pd.read_csv(ROOT / "data/claims/paper.csv", dtype=str, keep_default_na=False)
    assert [line["id"] for line in found] == printed["id"].tolist()
    assert all({"id", "printed", "computed", "verdict", "notebook"} <= set(line) for line in found)
    assert [line["printed"] for line in found] == printed["printed"].tolist()
    assert {line["verdict"] for line in found} <= {"holds", "differs", "aggregate", "gated", "setting", "open"}
    for line in found:
        if line["verdict"] in ("holds", "differs"):
            assert line["computed"] is not None and line["notebook"], line["id"]
    totals = {line["id"]: (line["printed"], line["computed"], line["verdict"]) for line in found}
    assert totals["abs.n_debates"] == ("6,925", 6925, "holds") and totals["abs.collapses"] == ("253", 253, "holds")


# --- row ----------------------------------------------------------------------------------------------------

ADD = ["row", "add", EXAMPLE, "--id", "mine", "--model", "My Model", "--family", "Mine"]


def test_row_from_check_to_remove(root):
    assert machine("row", "list") == []
    assert run("row", "list").stdout == "There are no added rows.\n"
    checked = machine("row", "check", EXAMPLE, "--probes", PROBES)
    assert rows.ids() == []
    added = machine(*ADD, "--probes", PROBES, "--synthetic")
    told = ledger.summarize(ledger.debates(traces.read(EXAMPLE))).iloc[0]
    assert {name: checked[name] for name in ledger.CELLS} == {name: told[name] for name in ledger.CELLS}
    assert checked["c_cond"] == pytest.approx(told["c_cond"])
    for field in ("layout", "n_debates", "n_agents", "n_rounds", "n_answers", "n_missing", "alpha_tot", "n_probes", "n_flips", "labels"):
        assert checked[field] == added[field] is not None
    assert (added["id"], added["model"], added["family"], added["synthetic"]) == ("mine", "My Model", "Mine", True)
    (listed,) = machine("row", "list")
    assert listed == {field: added[field] for field in listed}
    assert machine("row", "remove", "mine") == {"removed": "mine"}
    assert machine("row", "list") == []


def test_row_for_people(root):
    told = run("row", "check", EXAMPLE).stdout
    assert re.search(r"^n_debates +120$", told, re.MULTILINE) and told.endswith("Nothing was stored: this was a check.\n")
    assert "Row mine added." in run(*ADD).stdout
    assert run("row", "list").stdout.splitlines()[1].split()[0] == "mine"
    assert run("row", "remove", "mine").stdout == "Row mine removed.\n"


def test_row_add_refuses_what_is_taken(root):
    assert run(*ADD).exit_code == 0
    done = run(*ADD)
    assert done.stdout == "" and isinstance(done.exception, DataError)
    assert str(done.exception) == "id 'mine': already taken; expected a new one, or remove it first: row remove mine"


def test_row_labels_that_a_coder_cannot_take(root, tmp_path):
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps({"question": "q", "round": k, "agent": "a", "gold": "x1", "text": "1"}) + "\n" for k in (0, 1)))
    assert "labels" in usage("row", "check", path, "--labels", "12")


def test_list_of_a_row_without_answers(root, tmp_path):
    path = tmp_path / "matrix.csv"
    seen = pd.read_csv(DEBATES)
    seen[seen["model"] == "vllm/qwen3-8b"].to_csv(path, index=False)
    machine("row", "add", path, "--id", "matrix", "--model", "M", "--family", "Mine")
    machine(*ADD, "--probes", PROBES)
    by_id = {line["id"]: line for line in machine("row", "list")}
    assert [by_id["matrix"][name] for name in ("n_debates", "n_answers", "n_missing", "alpha_tot", "n_probes")] == [200, None, None, None, None]
    assert [by_id["mine"][name] for name in ("n_debates", "n_answers", "n_probes")] == [120, 1440, 480]
    assert isinstance(by_id["mine"]["n_probes"], int)
    whole = tables.model_rows().set_index("row").loc["qwen3-8b"]
    found = rows.summary(["matrix"]).iloc[0]
    assert found[["n", "collapse", "correction"]].tolist() == whole[["n", "collapse", "correction"]].tolist()


def test_unicode_survives(root):
    done = machine("row", "check", EXAMPLE, "--model", "Modèle 模型")
    assert done["model"] == "Modèle 模型"
