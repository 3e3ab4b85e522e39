"""The collector against a client that calls the same loopback server directly: 8 debates at once, one latency a call.

    python benchmarks/bench_collect.py [debates] [seconds a call]

Both sides run one after the other, twice, in one process; the ratio is of the faster runs. A call takes a second
unless said otherwise, which is short for a model: the shorter the calls, the larger the collector's share.
"""

import asyncio
import json
import os
import platform
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.collect import pools, prompts  # noqa: E402

AT_ONCE, AGENTS, ROUNDS = 8, 3, 3


def serve(latency):
    """Answer chat completions on loopback after `latency` seconds each; return the address."""

    async def handle(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
                request = json.loads(await reader.readexactly(int(fields[b"content-length"])))
                await asyncio.sleep(latency)
                body = json.dumps(reply(request)).encode()
                start = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                writer.write(start + b"content-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    ready, port = threading.Event(), []

    async def main():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    ready.wait()
    return f"http://127.0.0.1:{port[0]}/v1"


def reply(request):
    """A completion of usual length."""
    text = "Some reasons that go on for a while, as reasons do. " * 12
    text += f"\nFinal Answer: {'ABCD'[(request.get('seed') or 0) % 4]}"
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 200, "completion_tokens": 150, "total_tokens": 350}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


async def direct(url, n):
    """The same prompts in the same order with the same client library, and nothing recorded."""
    from openai import AsyncOpenAI

    card, items, gate = prompts.load(), pools.load("mixed", n=n), asyncio.Semaphore(AT_ONCE)
    agents = range(1, AGENTS + 1)

    async def ask(prompt):
        system, user = prompt
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        done = await client.chat.completions.create(
            model="m", max_tokens=1024, temperature=0.7, seed=1, messages=messages
        )
        return done.choices[0].message.content

    async def one(item):
        async with gate:
            first = (prompts.initial_prompt(card, item, agent=agent, n_agents=AGENTS) for agent in agents)
            texts = await asyncio.gather(*map(ask, first))
            for number in range(1, ROUNDS + 1):
                later = [
                    prompts.round_prompt(card, item, "peer", agent=agent, round=number, texts=texts)
                    for agent in agents
                ]
                texts = await asyncio.gather(*map(ask, later))

    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        await one(items[0])  # connections and imports are there before the clock starts
        start = time.perf_counter()
        await asyncio.gather(*map(one, items))
        return time.perf_counter() - start


def collected(url, n):
    """Debates as `collect debate` runs them: prompts, calls, replies on disk, answers, scores, log."""
    from analysis.collect import logs
    from analysis.collect.debate import debate
    from analysis.collect.run import run

    options = {"model": "openai-api/bench/m", "base_url": url, "display": "none"}
    options |= {"max_samples": AT_ONCE, "max_connections": AT_ONCE * AGENTS}
    with tempfile.TemporaryDirectory() as folder:
        run(debate(n=1), f"{folder}/warm", **options)
        start = time.perf_counter()
        found = run(debate(n=n), f"{folder}/run", **options)
        taken = time.perf_counter() - start
        if logs.replies(found)["missing"].any():
            raise SystemExit("calls of the collector failed: the two sides did not do the same")
    return taken


def main():
    n = int((sys.argv[1:] or [64])[0])
    latency = float((sys.argv[2:] or [1.0])[0])
    os.environ["BENCH_API_KEY"] = "none"
    url = serve(latency)
    by_hand, ours = [], []
    for _ in range(2):
        by_hand.append(asyncio.run(direct(url, n)))
        ours.append(collected(url, n))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}: {n} debates, {AT_ONCE} at once, {latency} s a call")
    print("direct    " + ", ".join(f"{taken:.2f} s" for taken in by_hand))
    print("collector " + ", ".join(f"{taken:.2f} s" for taken in ours))
    print(f"ratio     {min(ours) / min(by_hand):.3f}")


if __name__ == "__main__":
    main()
