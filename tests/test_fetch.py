"""The open tier: composed files of every family, damage of every kind, and the hub's side of a download."""

import hashlib
import http.server
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import huggingface_hub as hub
import pandas as pd
import pytest
from huggingface_hub import errors
from typer.testing import CliRunner

from analysis import cli, data, fetch, rows
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KNOWN = "debate_traces_openrouter_mistral_small_4_n20.jsonl"  # a file with a released checksum


def layout_a(question, before, after, gold="B", model="m-a"):
    return {
        "question_id": question,
        "correct_label": gold,
        "model": model,
        "initial_answers": before,
        "initial_majority": None,
        "round_traces": [{"round": 1, "answers": after, "majority": None}],
        "final_answers": after,
        "majority_answer": None,
    }


def layout_b(question, *votes, gold="B", model="m-b", **more):
    def states(answers, number):
        found = [
            {"agent_id": f"agent_{k}", "answer": answer, "reasoning": None, "round_num": number, "cost": 0.0}
            for k, answer in enumerate(answers)
        ]
        return found[::-1]  # agents come unordered

    return {
        "question_id": question,
        "correct_label": gold,
        "model_name": model,
        "backend": "here",
        **more,
        "initial_states": states(votes[0], 0),
        "round_traces": [states(v, k) for k, v in enumerate(votes[1:], 1)],
        "majority_answer": "",
    }


def probe(question, posts, model="m-b", **more):
    results = [
        {
            "strength": "weak",
            "strength_value": 0.25,
            "social": bool(k % 2),
            "alt_answer": "A",
            "post_answer": post,
            "revised": post not in (None, "B"),
        }
        for k, post in enumerate(posts)
    ]
    return {
        "question_id": question,
        "benchmark": "mmlu_pro",
        "correct_label": "B",
        "condition": "default",
        "agent_idx": 0,
        "initial_answer": "B",
        "initial_correct": True,
        "model_name": model,
        "probe_results": results,
    } | more


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def tier():
    """Name -> bytes: every family, each with a ledger that is known by hand."""
    matrix = pd.read_csv(ROOT / "data" / "debates.csv").head(3)
    return {
        # collapse, correction, and a question that stands twice (the second time preserved)
        "results/debate_traces_first.jsonl": lines(
            layout_a("q1", ["B", "B", "A"], ["A", "A", "A"]),
            layout_a("q2", ["A", None, "A"], ["B", "B", "A"]),
            layout_a("q1", ["B", "B", "B"], ["B", "B", None]),
        ),
        # four rounds, unrepaired and preserved
        "results/debate_traces_second.jsonl": lines(
            layout_b("q1", "AAB", "AAB", "BBA", "AAA", "AAA"),
            layout_b("q2", "BBB", "BBB", "AAB", "BBB", "BBB"),
        ),
        "results/sa_causal_second.jsonl": lines(probe("q1", ["B", "A"]), probe("q2", [None, "B"])),
        "results/cross_benchmark_m_n2.jsonl": lines(
            layout_b("g1", "BBA", "AAA", benchmark="gpqa"),
            layout_b("t1", "BBA", "BBB", benchmark="truthfulqa"),
        ),
        "results/r5_gemini_alpha_panel_20260427_day1.jsonl": lines(
            probe("q1", ["A", "A"], "gemini"), probe("q1", ["B", "A"], "gemini")
        ),
        "per_debate_r1_features.csv": matrix.to_csv(index=False).encode(),
        "per_debate_r1_features.jsonl": b"",
        "README.md": b"What it is.\n",
    }


def lay(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def by_file(frame):
    return frame.set_index("file")


@pytest.fixture
def folder(tmp_path):
    return lay(tmp_path / "tier", tier())


# --- a folder -----------------------------------------------------------------------------------------------


def test_every_family_becomes_rows_with_the_planned_ledger(folder):
    files, ledgers, screens = fetch.survey(folder)
    there = by_file(files[files["state"] != "missing"])
    assert there["kind"].to_dict() == {
        "README.md": "other",
        "per_debate_r1_features.csv": "features",
        "per_debate_r1_features.jsonl": "features",
        "results/cross_benchmark_m_n2.jsonl": "debates",
        "results/debate_traces_first.jsonl": "debates",
        "results/debate_traces_second.jsonl": "debates",
        "results/r5_gemini_alpha_panel_20260427_day1.jsonl": "probes",
        "results/sa_causal_second.jsonl": "probes",
    }
    assert there["records"].dropna().astype(int).to_dict() == {
        "per_debate_r1_features.csv": 3,
        "per_debate_r1_features.jsonl": 0,
        "results/cross_benchmark_m_n2.jsonl": 2,
        "results/debate_traces_first.jsonl": 3,
        "results/debate_traces_second.jsonl": 2,
        "results/r5_gemini_alpha_panel_20260427_day1.jsonl": 2,
        "results/sa_causal_second.jsonl": 2,
    }
    assert there["state"].value_counts().to_dict() == {"read": 6, "other": 1, "empty": 1}
    cells = ledgers.set_index(["file", "row"])[["n", "preserved", "collapse", "correction", "unrepaired"]]
    assert cells.loc[("results/debate_traces_first.jsonl", "m-a")].tolist() == [3, 1, 1, 1, 0]
    assert cells.loc[("results/debate_traces_second.jsonl", "m-b")].tolist() == [2, 1, 0, 0, 1]
    assert cells.loc[("results/cross_benchmark_m_n2.jsonl", "m-b (gpqa)")].tolist() == [1, 0, 1, 0, 0]
    assert cells.loc[("results/cross_benchmark_m_n2.jsonl", "m-b (truthfulqa)")].tolist() == [1, 1, 0, 0, 0]
    rates = screens.set_index("file")[["k", "n"]].astype(int)
    assert rates.loc["results/sa_causal_second.jsonl"].tolist() == [1, 4]
    assert rates.loc["results/r5_gemini_alpha_panel_20260427_day1.jsonl"].tolist() == [3, 4]


def test_the_whole_feature_matrix_gives_the_ledger_of_the_book(tmp_path):
    lay(tmp_path, {"per_debate_r1_features.csv": (ROOT / "data" / "debates.csv").read_bytes()})
    _, ledgers, _ = fetch.survey(tmp_path)
    from analysis import ledger

    ours = ledger.summarize(data.debates()).set_index("row")
    theirs = ledgers.assign(
        row=ledgers["row"].str.replace(r"^(gemini|openai|vllm)_", "", regex=True)
    ).set_index("row")
    assert theirs["n"].sum() == len(data.debates())
    assert sorted(theirs["collapse"]) == sorted(ours["collapse"]) and sorted(theirs["correction"]) == sorted(
        ours["correction"]
    )


def test_files_that_the_metadata_name_and_that_are_not_there_are_missing(folder):
    files, _, _ = fetch.survey(folder)
    missing = files[files["state"] == "missing"]
    assert set(missing["file"]) == set(data.table("provenance")["file"])
    assert missing["bytes"].isna().all()


def test_a_wrong_checksum_counts_for_nothing(folder):
    lay(folder, {KNOWN: lines(layout_a("q1", ["B"], ["B"]))})
    files, ledgers, _ = fetch.survey(folder)
    line = by_file(files).loc[KNOWN]
    assert (line["checksum"], line["state"]) == ("differs", "refused")
    assert "not the released file" in line["note"] and KNOWN not in set(ledgers["file"])


def test_a_pointer_of_git_lfs_is_called_what_it_is(folder):
    lay(folder, {KNOWN: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"})
    assert "Git LFS" in by_file(fetch.survey(folder)[0]).loc[KNOWN, "note"]


@pytest.mark.parametrize("key", ["contentUrl", "path", "name"])
def test_checksums_of_croissant_metadata_in_the_folder_are_checked(folder, key):
    good, bad = "results/debate_traces_first.jsonl", "results/debate_traces_second.jsonl"
    told = {
        "distribution": [
            {
                "@type": "cr:FileObject",
                key: f"https://example.org/{good}?download=true",
                "sha256": hashlib.sha256(tier()[good]).hexdigest().upper(),
            },
            {"@type": "cr:FileObject", key: bad, "sha256": "0" * 64},
            {"@type": "cr:FileObject", key: "sa_causal_gone.jsonl", "sha256": "1" * 64},
        ]
    }
    lay(folder, {"croissant.json": json.dumps(told).encode()})
    files = by_file(fetch.survey(folder)[0])
    assert files.loc[good, ["checksum", "state"]].tolist() == ["agrees", "read"]
    assert files.loc[bad, ["checksum", "state"]].tolist() == ["differs", "refused"]
    assert files.loc["sa_causal_gone.jsonl", "state"] == "missing"
    assert files.loc["croissant.json", "state"] == "metadata"


def test_released_record_counts_are_checked(folder, monkeypatch):
    name = "debate_traces_first.jsonl"
    table = (
        data.table("provenance")
        .head(1)
        .assign(file=name, n_records=4, sha256=hashlib.sha256(tier()["results/" + name]).hexdigest())
    )
    monkeypatch.setattr(fetch.data, "table", lambda _: table)
    line = by_file(fetch.survey(folder)[0]).loc["results/" + name]
    assert (line["checksum"], line["state"], line["note"]) == ("agrees", "refused", "3 records; expected 4")


def test_a_file_cut_within_a_line_is_refused_and_named(folder):
    name = "results/debate_traces_second.jsonl"
    lay(folder, {name: tier()[name][:-30]})
    files, ledgers, _ = fetch.survey(folder)
    line = by_file(files).loc[name]
    assert line["state"] == "refused" and "line 2" in line["note"] and str(folder) not in line["note"]
    assert name not in set(ledgers["file"]) and "results/debate_traces_first.jsonl" in set(ledgers["file"])


def test_half_downloaded_files_and_broken_links_are_named(folder):
    lay(folder, {".cache/huggingface/download/results/abc.incomplete": b"{"})
    (folder / "sa_causal_link.jsonl").symlink_to(folder / "nowhere")
    files = by_file(fetch.survey(folder)[0])
    assert files.loc[".cache/huggingface/download/results/abc.incomplete", "state"] == "half downloaded"
    assert files.loc["sa_causal_link.jsonl", "state"] == "refused"


def test_a_folder_without_any_file_of_the_release_is_refused(tmp_path):
    lay(tmp_path, {"notes.txt": b"x"})
    with pytest.raises(DataError, match="none of 1 files"):
        fetch.survey(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        fetch.survey(tmp_path / "gone")


# --- the command --------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(cli.app, ["fetch", *map(str, arguments)])


def test_the_command_shows_files_and_ledgers_and_ends_with_0(folder):
    done = run("--from", folder)
    assert done.exit_code == 0, done.output
    assert (
        "debate_traces_first.jsonl" in done.stdout
        and "missing" in done.stdout
        and "m-b (gpqa)" in done.stdout
    )
    told = json.loads(run("--from", folder, "--json").stdout)
    assert set(told) == {"folder", "files", "ledgers", "screens"}
    assert {line["row"]: line["collapse"] for line in told["ledgers"]}["m-a"] == 1


def test_the_command_ends_with_1_if_a_file_cannot_be_used(folder):
    lay(folder, {KNOWN: b"{}\n"})
    done = run("--from", folder, "--json")
    assert done.exit_code == 1 and KNOWN in done.stderr and json.loads(done.stdout)["ledgers"]


def test_the_command_refuses_options_that_do_not_go_together(folder):
    assert run("--from", folder, "--revision", "main").exit_code == 2


def test_add_stores_each_trace_with_its_probes_and_again_changes_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "folder", lambda: tmp_path / "rows")
    lay(folder, {KNOWN: b"{}\n"})  # refused: the others are stored all the same
    done = run("--from", folder, "--add", "--json")
    added = {line["id"]: line for line in json.loads(done.stdout)["added"]}
    assert set(added) == {
        "first",
        "second",
        "cross_benchmark_m_n2-m-b-gpqa",
        "cross_benchmark_m_n2-m-b-truthfulqa",
    }
    assert added["second"]["probes"] == "results/sa_causal_second.jsonl" and added["first"]["probes"] is None
    assert added["cross_benchmark_m_n2-m-b-gpqa"]["probes"] is None  # asked on another benchmark
    assert rows.card("second").n_flips == 1 and rows.card("second").n_probes == 4
    stored = rows.summary(["first"]).iloc[0]
    assert stored[["n", "collapse", "correction", "preserved"]].tolist() == [3, 1, 1, 1]
    files = fetch.survey(folder)[0]
    assert set(fetch.add(folder, files)["state"]) == {"there already"}


def test_add_does_not_take_another_row_for_its_own(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "folder", lambda: tmp_path / "rows")
    other = lay(tmp_path / "other", {"debate_traces_first.jsonl": lines(layout_a("x", ["A"], ["B"]))})
    fetch.add(other, fetch.survey(other)[0])
    with pytest.raises(DataError, match="already taken"):
        fetch.add(folder, fetch.survey(folder)[0])


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("models/gemini-3.1-flash-lite-preview", "Google"),
        ("gemma-4-31b-it-awq", "Google"),
        ("qwen3-32b-a7-local", "Qwen"),
        ("meta-llama/Llama-3.3-70B", "Meta"),
        ("gpt-5.4-mini", "OpenAI"),
        ("r1-distill-qwen", "Qwen"),
        ("dolphin", "dolphin"),
        ("deepseek-v4-flash + mistral-small-4", "deepseek-v4-flash + mistral-small-4"),
    ],
)
def test_families_follow_from_names(model, family):
    assert fetch._family(model) == family


# --- the hub ------------------------------------------------------------------------------------------------


def false_hub(monkeypatch, snapshot, mismatches=(), again=None):
    """Put functions in the hub's place that take what the real ones take, no more."""
    called = []

    def bound(name, real, do):
        signature = inspect.signature(real)

        def call(*arguments, **options):
            told = signature.bind(*arguments, **options).arguments
            told.pop("self", None)
            called.append((name, dict(told)))
            return do(told)

        return call

    def verify(told):
        return type("Told", (), {"mismatches": [{"path": path} for path in mismatches]})

    monkeypatch.setattr(hub, "snapshot_download", bound("snapshot", hub.snapshot_download, snapshot))
    monkeypatch.setattr(
        hub, "hf_hub_download", bound("file", hub.hf_hub_download, again or (lambda told: None))
    )
    monkeypatch.setattr(
        hub.HfApi, "verify_repo_checksums", bound("verify", hub.HfApi.verify_repo_checksums, verify)
    )
    return called


def test_download_asks_for_the_pinned_version_and_trace_files_alone(tmp_path, monkeypatch):
    called = false_hub(monkeypatch, lambda told: str(lay(tmp_path / COMMIT, tier())))
    assert fetch.download(cache=tmp_path).name == COMMIT
    (_, asked), (_, verified) = called
    assert asked["repo_id"] == fetch.DATASET and asked["repo_type"] == "dataset"
    assert asked["revision"] == fetch.REVISION and asked["cache_dir"] == tmp_path
    kept = list(
        hub.utils.filter_repo_objects(
            [*tier(), "model.bin", "croissant.json"], allow_patterns=asked["allow_patterns"]
        )
    )
    assert set(kept) == {name for name in tier() if name != "README.md"} | {"croissant.json"}
    assert verified["revision"] == COMMIT


def test_a_file_that_the_hub_has_otherwise_is_downloaded_again(tmp_path, monkeypatch):
    called = false_hub(
        monkeypatch, lambda told: str(lay(tmp_path / COMMIT, tier())), mismatches=["results/a.jsonl"]
    )
    fetch.download()
    name, told = called[-1]
    assert (
        name == "file"
        and told["filename"] == "results/a.jsonl"
        and told["force_download"]
        and told["revision"] == COMMIT
    )


def response(status):
    import httpx2

    return httpx2.Response(status, request=httpx2.Request("GET", "https://hub.example"))


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (lambda: errors.RevisionNotFoundError("no", response=response(404)), "no version 'v9'"),
        (lambda: errors.RepositoryNotFoundError("no", response=response(404)), "no such dataset"),
        (lambda: errors.HfHubHTTPError("503 busy", response=response(503)), "503 busy"),
        (lambda: errors.LocalEntryNotFoundError("offline"), "run the same command again"),
        (lambda: OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_what_the_hub_refuses_is_said(monkeypatch, raised, said):
    def fail(told):
        raise raised()

    false_hub(monkeypatch, fail)
    with pytest.raises(DataError, match=said):
        fetch.download(revision="v9")


def test_an_interruption_is_passed_on_and_the_next_call_goes_on(tmp_path, monkeypatch):
    place, whole, seen = tmp_path / COMMIT, tier(), []

    def snapshot(told):
        seen.append(sum(1 for path in place.rglob("*") if path.is_file()))
        for name in list(whole)[: 2 if len(seen) == 1 else None]:
            lay(place, {name: whole[name]})
        if len(seen) == 1:
            raise KeyboardInterrupt
        return str(place)

    false_hub(monkeypatch, snapshot)
    with pytest.raises(KeyboardInterrupt):
        fetch.download()
    assert len(fetch.survey(fetch.download())[1]) == 5 and seen == [0, 2]


# --- the real client against a server on loopback -----------------------------------------------------------


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as a download needs; lines drop after `server.cuts` bytes, one after the other."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_GET(self, body=True):
        files, path = self.server.files, self.path.split("?")[0]
        base = f"/api/datasets/{fetch.DATASET}"
        if path == f"{base}/revision/{fetch.REVISION}":
            return self.told({"id": fetch.DATASET, "sha": COMMIT, "siblings": []})
        if path.startswith(f"{base}/tree/{COMMIT}"):
            return self.told(
                [
                    {
                        "type": "file",
                        "path": name,
                        "size": len(content),
                        "oid": "0" * 40,
                        "lfs": {
                            "oid": hashlib.sha256(content).hexdigest(),
                            "size": len(content),
                            "pointerSize": 1,
                        },
                    }
                    for name, content in files.items()
                ]
            )
        name = path.partition(f"/resolve/{COMMIT}/")[2]
        if name not in files or name in self.server.refused:
            self.send_response(403 if name in files else 404)
            self.send_header("content-length", "0")
            return self.end_headers()
        content, start = files[name], 0
        if wanted := self.headers.get("range"):
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            if body:
                self.server.resumed.append((name, start))
        self.send_response(206 if wanted else 200)
        digest = hashlib.sha256(content).hexdigest()
        if wanted:
            self.send_header("content-range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        for key, value in {
            "etag": f'"{digest}"',
            "x-linked-etag": f'"{digest}"',
            "x-repo-commit": COMMIT,
            "x-linked-size": len(content),
            "content-length": len(content) - start,
            "accept-ranges": "bytes",
        }.items():
            self.send_header(key, str(value))
        self.end_headers()
        if body:
            self.server.sent.append(name)
            cut = self.server.cuts.pop() if self.server.cuts else None
            self.wfile.write(content[start:][:cut])
            self.close_connection = cut is not None

    def told(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def server():
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    served.files = {name: content for name, content in tier().items() if content}
    served.cuts, served.refused, served.sent, served.resumed = [], set(), [], []
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield served
    served.shutdown()
    served.server_close()


def shell(server, cache, offline=""):
    env = os.environ | {
        "HF_HUB_OFFLINE": offline,
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": "",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(cache / "home"),
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-m", "analysis", "fetch", "--cache", str(cache), "--json"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_real_client_downloads_once_and_works_without_a_network_after(server, tmp_path):
    done = shell(server, tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["folder"]).name == COMMIT
    assert {line["row"]: line["collapse"] for line in told["ledgers"]}["m-a"] == 1
    assert "README.md" not in server.sent and len(server.sent) == len(set(server.sent)) == 6
    # A blob that is damaged in the cache is replaced.
    path = Path(told["folder"], "results", "debate_traces_first.jsonl")
    path.resolve().write_bytes(b"damaged\n")
    again = shell(server, tmp_path)
    assert json.loads(again.stdout)["ledgers"] == told["ledgers"], again.stderr
    assert server.sent[6:] == ["results/debate_traces_first.jsonl"]
    server.shutdown()
    server.server_close()
    assert json.loads(shell(server, tmp_path, offline="1").stdout)["ledgers"] == told["ledgers"]


def test_a_line_that_drops_is_taken_up_where_it_stopped(server, tmp_path):
    big = "results/debate_traces_big.jsonl"
    server.files = {big: lines(*(layout_b(f"q{k}", "BBB", "AAA", note="." * 14000) for k in range(1000)))}
    server.cuts = [12 << 20]  # the client writes down 10 MiB at a time
    done = shell(server, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ledgers"][0]["collapse"] == 1000
    assert server.resumed == [(big, 10 << 20)]


def test_a_download_that_broke_off_goes_on_with_the_files_it_lacks(server, tmp_path):
    server.refused = {"results/sa_causal_second.jsonl"}
    done = shell(server, tmp_path)
    assert done.returncode == 1 and "run the same command again" in done.stderr, done.stderr
    came = set(server.sent)
    server.refused = set()
    done = shell(server, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["ledgers"]) == 5
    assert sorted(server.sent) == sorted(name for name in server.files if name != "README.md") and came < set(
        server.sent
    )
