"""A scripted model, a prompt card that tells it where it is, and a server on loopback."""

import json
import threading
import time
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from analysis.collect import prompts


@pytest.fixture(scope="session", autouse=True)
def inspect_home(tmp_path_factory):
    """Keep Inspect's caches and buffers out of the user's folders."""
    patch = pytest.MonkeyPatch()
    home = tmp_path_factory.mktemp("inspect")
    patch.setenv("INSPECT_CACHE_DIR", str(home / "replies"))
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    patch.setenv("INSPECT_DISPLAY", "none")
    yield home
    patch.undo()


@pytest.fixture(scope="session")
def card_path(tmp_path_factory):
    """The project's card, each text marked with what it is: <<peer 2 1>> is peer, round 2, agent 1."""
    told = tomllib.loads(prompts.DEFAULT.read_text(encoding="utf-8"))
    for arm in ("initial", *prompts.ARMS):
        told[arm]["user"] = f"<<{arm} {{round}} {{agent}}>> " + told[arm]["user"]
    for table in ("condition", "argument", "social"):
        for name, text in told["probe"][table].items():
            told["probe"][table][name] = f"<<{table} {name}>> {text}"
    told["probe"]["repair"] = "<<repair>> " + told["probe"]["repair"]
    told["name"] = "marked"
    path = tmp_path_factory.mktemp("card") / "marked.toml"
    path.write_text(toml(told), encoding="utf-8")
    return path


def toml(table, prefix=""):
    """Write a table of texts; JSON strings and lists of strings are TOML too."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += [f"[{prefix}{key}]", toml(value, f"{prefix}{key}.")]
    return "\n".join(lines)


@pytest.fixture(scope="session")
def write_pool(tmp_path_factory):
    """Function that writes a pool of questions [q1], [q2], ... with options A-D."""

    def write(golds):
        path = tmp_path_factory.mktemp("pool") / "pool.jsonl"
        path.write_text(
            "".join(
                json.dumps(
                    {
                        "id": id,
                        "question": f"[{id}] Which one?",
                        "options": ["one", "two", "three", "four"],
                        "gold": gold,
                        "licence": "MIT",
                    }
                )
                + "\n"
                for id, gold in golds.items()
            ),
            encoding="utf-8",
        )
        return str(path)

    return write


@pytest.fixture(scope="session")
def scripted():
    """Function that makes a model from one of (texts of the prompt joined, config) -> reply or exception."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def make(say):
        asked = []

        def reply(messages, tools, tool_choice, config):
            text = "\n".join(message.text for message in messages)
            asked.append(text)
            said = say(text, config)
            if isinstance(said, Exception):
                raise said
            output = (
                said if isinstance(said, ModelOutput) else ModelOutput.from_content("mockllm/model", said)
            )
            output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
            return output

        model = get_model("mockllm/model", custom_outputs=reply)
        return SimpleNamespace(model=model, asked=asked)

    return make


@pytest.fixture
def evaluate(tmp_path):
    """Function that runs a task on a scripted model and gives the path of its log."""
    from inspect_ai import eval

    def run(task, model, **options):
        log = eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", **options)[0]
        assert log.status == "success", log.error
        return log.location

    return run


# --- a server -----------------------------------------------------------------------------------------------


class Server:
    """OpenAI-compatible chat server; `behave(request) -> (status, content or body, reason)` decides."""

    def __init__(self, behave):
        self.behave, self.requests, self.answered, self.lock = behave, [], [], threading.Lock()
        handler = type("Handler", (_Handler,), {"server_of": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server_of
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append(request)
        status, content, finish = server.behave(request)
        body = (
            content
            if isinstance(content, bytes)
            else json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": int(time.time()),
                    "model": request["model"],
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": finish,
                            "message": {"role": "assistant", "content": content},
                        }
                    ],
                    "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
                }
            ).encode()
        )
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            with server.lock:
                server.answered.append(request)
        except OSError:
            pass  # the client gave up: that is what a test of time-outs wants

    def log_message(self, *_):
        pass


@pytest.fixture
def serve(monkeypatch):
    """Function that starts a server and points the model openai-api/loopback/model at it."""
    made = []

    def start(behave):
        server = Server(behave)
        made.append(server)
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.url)
        monkeypatch.setenv("LOOPBACK_API_KEY", "sk-not-a-real-key")
        return server

    yield start
    for server in made:
        server.close()
