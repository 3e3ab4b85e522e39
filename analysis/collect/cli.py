"""`python -m analysis collect`: run debates and probes, or say what they would take."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

# Inspect takes seconds to import: only what runs something does.

app = typer.Typer(
    no_args_is_help=True, help="Run debates and probes against any model that Inspect can reach."
)

Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="Model as Inspect names it: openai/..., anthropic/..., vllm/..., openai-api/SERVICE/MODEL.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", help="Folder of the run: its log and its replies. The same command goes on with it."
    ),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Address of the model's server.")]
Pool = Annotated[
    str,
    typer.Option(
        "--pool",
        help="mmlu_pro, gpqa, arc_challenge, truthfulqa, gsm8k, supergpqa; arithmetic, logic, mixed "
        "(made here); or a CSV or JSON-lines file.",
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "-n", "--n", min=1, help="Questions; all of a benchmark, 50 of a pool made here unless given."
    ),
]
PoolSeed = Annotated[int, typer.Option("--pool-seed", help="Seed of the draw of questions.")]
Difficulty = Annotated[
    int | None,
    typer.Option(
        "--difficulty", min=1, max=3, help="Of questions made here; all three in turn unless given."
    ),
]
Selection = Annotated[
    Path | None, typer.Option("--selection", help="Questions selected by `collect select`.")
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Replicates of each question.")]
Agents = Annotated[int, typer.Option("--agents", min=1)]
Temperatures = Annotated[
    str, typer.Option("--temperatures", help="Of the agents in turn; 'none' for models that take none.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all calls.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="Longest reply, reasoning included.")]
Reasoning = Annotated[
    str | None, typer.Option("--reasoning", help="Reasoning effort: none, minimal, low, medium, high.")
]
Policy = Annotated[
    Literal["reference", "strict", "anchored"], typer.Option("--policy", help="Coder of replies.")
]
Card = Annotated[Path | None, typer.Option("--card", help="Prompt card (TOML) in place of the project's.")]
Timeout = Annotated[int, typer.Option("--timeout", min=1, help="Seconds for one attempt at a call.")]
Retries = Annotated[
    int, typer.Option("--retries", min=0, help="Further attempts at a call that failed in passing.")
]
Connections = Annotated[
    int | None, typer.Option("--max-connections", min=1, help="Calls at once; Inspect's choice unless given.")
]
Samples = Annotated[int | None, typer.Option("--max-samples", min=1, help="Questions at once.")]
Display = Annotated[
    Literal["full", "rich", "plain", "none"] | None, typer.Option("--display", help="Inspect's live display.")
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Ask again for what failed in questions that an earlier run in --out ended."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and stop.")]
PriceIn = Annotated[float | None, typer.Option("--price-in", min=0, help="Price of a million tokens sent.")]
PriceOut = Annotated[
    float | None, typer.Option("--price-out", min=0, help="Price of a million tokens received.")
]
Reply = Annotated[int, typer.Option("--reply", min=1, help="Tokens of a usual reply, for the estimate.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("debate")
def debate_command(
    model: Model,
    out: Out,
    pool: Pool = "mixed",
    n: Number = None,
    pool_seed: PoolSeed = 0,
    difficulty: Difficulty = None,
    selection: Selection = None,
    arms: Annotated[
        str,
        typer.Option(
            "--arms", help="peer, private, self_review, independence, shielded; several with commas."
        ),
    ] = "peer",
    agents: Agents = 3,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds after Round 0.")] = 3,
    temperatures: Temperatures = "0.5,0.7,1.0",
    seed: Seed = 0,
    epochs: Epochs = 1,
    max_tokens: MaxTokens = 1024,
    reasoning: Reasoning = None,
    confidence: Annotated[bool, typer.Option("--confidence", help="Agents tell how sure they are.")] = False,
    gate: Annotated[
        str | None,
        typer.Option("--gate", help="Live gate on the peer arm; `replay PATH --gate list` names them."),
    ] = None,
    gate_action: Annotated[
        Literal["record", "keep", "stop"],
        typer.Option("--gate-action", help="Where it fires: go on, keep the initial answers, or stop."),
    ] = "record",
    policy: Policy = "reference",
    card: Card = None,
    round0: Annotated[
        Path | None, typer.Option("--round0", help="Log of earlier debates whose Round 0 is taken over.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="Model of one agent: agent_1=openai/... (repeatable).")
    ] = None,
    base_url: BaseUrl = None,
    timeout: Timeout = 600,
    retries: Retries = 3,
    max_connections: Connections = None,
    max_samples: Samples = None,
    display: Display = None,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    reply: Reply = 300,
    as_json: Json = False,
):
    """Debate the questions of a pool, from one Round 0 in as many arms as wanted."""
    from analysis.collect import estimate

    _both_prices(price_in, price_out)
    chosen = [arm.strip() for arm in arms.split(",")]
    items, prompt_card = _questions(pool, n, pool_seed, difficulty, selection, card)
    steps = _usable(
        estimate.debates,
        items,
        arms=chosen,
        agents=agents,
        rounds=rounds,
        replicates=epochs,
        card=prompt_card,
        confidence=confidence,
        reply=reply,
        max_tokens=max_tokens,
    )
    if dry_run:
        _emit(estimate.money(steps, price_in=price_in, price_out=price_out), as_json)
        return
    from analysis.collect.debate import debate

    task = _usable(
        debate,
        pool=_place(pool),
        n=n,
        pool_seed=pool_seed,
        difficulty=difficulty,
        selection=_text(selection),
        arms=chosen,
        agents=agents,
        rounds=rounds,
        temperatures=temperatures,
        seed=seed,
        max_tokens=max_tokens,
        reasoning=reasoning,
        confidence=confidence,
        gate=gate,
        gate_action=gate_action,
        policy=policy,
        card=_text(card),
        round0=_text(round0),
        timeout=timeout,
        retries=retries,
    )
    options = {"epochs": epochs, "roles": _roles(role, agents), "again": retry_failed}
    logs = _run(task, out, model, base_url, max_connections, max_samples, display, **options)
    _tell_debates(logs, as_json)


@app.command("probe")
def probe_command(
    model: Model,
    out: Out,
    pool: Pool = "mixed",
    n: Number = None,
    pool_seed: PoolSeed = 0,
    difficulty: Difficulty = None,
    selection: Selection = None,
    conditions: Annotated[
        str, typer.Option("--conditions", help="default alone is the light screen.")
    ] = "default,anti_social,anti_argument",
    agents: Agents = 3,
    temperatures: Temperatures = "0.5,0.7,1.0",
    reply_temperature: Annotated[
        float, typer.Option("--reply-temperature", min=0, help="Of replies to challenges.")
    ] = 0.0,
    target: Annotated[
        Literal["random_wrong", "first_other"],
        typer.Option(
            "--target", help="What a challenge argues for: as the paper says, or as its local runner did."
        ),
    ] = "random_wrong",
    repairs: Annotated[
        int, typer.Option("--repairs", min=0, help="Further requests for an answer that can be read.")
    ] = 2,
    seed: Seed = 0,
    max_tokens: MaxTokens = 1024,
    reasoning: Reasoning = None,
    policy: Policy = "reference",
    card: Card = None,
    base_url: BaseUrl = None,
    timeout: Timeout = 600,
    retries: Retries = 3,
    max_connections: Connections = None,
    max_samples: Samples = None,
    display: Display = None,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    reply: Reply = 300,
    as_json: Json = False,
):
    """Probe the revisability of one model on the questions of a pool."""
    from analysis.collect import estimate

    _both_prices(price_in, price_out)
    chosen = [name.strip() for name in conditions.split(",")]
    items, prompt_card = _questions(pool, n, pool_seed, difficulty, selection, card)
    steps = _usable(
        estimate.probes,
        items,
        conditions=chosen,
        agents=agents,
        card=prompt_card,
        reply=reply,
        max_tokens=max_tokens,
        repairs=repairs,
    )
    if dry_run:
        _emit(estimate.money(steps, price_in=price_in, price_out=price_out), as_json)
        return
    from analysis.collect.probe import probe

    task = _usable(
        probe,
        pool=_place(pool),
        n=n,
        pool_seed=pool_seed,
        difficulty=difficulty,
        selection=_text(selection),
        conditions=chosen,
        agents=agents,
        temperatures=temperatures,
        reply_temperature=reply_temperature,
        target=target,
        repairs=repairs,
        seed=seed,
        max_tokens=max_tokens,
        reasoning=reasoning,
        policy=policy,
        card=_text(card),
        timeout=timeout,
        retries=retries,
    )
    logs = _run(task, out, model, base_url, max_connections, max_samples, display, again=retry_failed)
    _tell_probes(logs, as_json)


@app.command("estimate")
def estimate_command(
    pool: Pool = "mixed",
    n: Number = None,
    arms: Annotated[str, typer.Option("--arms")] = "peer",
    conditions: Annotated[str, typer.Option("--conditions")] = "default,anti_social,anti_argument",
    agents: Agents = 3,
    rounds: Annotated[int, typer.Option("--rounds", min=1)] = 3,
    epochs: Epochs = 1,
    max_tokens: MaxTokens = 1024,
    card: Card = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    reply: Reply = 300,
    as_json: Json = False,
):
    """Say what the screen and the debates of a pool would take together: calls, tokens, money."""
    import pandas as pd

    from analysis.collect import estimate

    _both_prices(price_in, price_out)
    items, prompt_card = _questions(pool, n, 0, None, None, card)
    screen = _usable(
        estimate.probes,
        items,
        conditions=conditions.split(","),
        agents=agents,
        card=prompt_card,
        reply=reply,
        max_tokens=max_tokens,
    )
    talk = _usable(
        estimate.debates,
        items,
        arms=arms.split(","),
        agents=agents,
        rounds=rounds,
        replicates=epochs,
        card=prompt_card,
        reply=reply,
        max_tokens=max_tokens,
    )
    named = pd.concat(
        [screen.assign(step="probe, " + screen["step"]), talk.assign(step="debate, " + talk["step"])]
    )
    _emit(estimate.money(named, price_in=price_in, price_out=price_out), as_json)


@app.command("select")
def select_command(
    probes: Annotated[
        Path, typer.Argument(help="Probe records (JSON-lines), or the folder or log of a probe run.")
    ],
    out: Annotated[Path, typer.Option("--out", help="File for the selection (JSON).")],
    pool: Pool = "mixed",
    n: Annotated[int, typer.Option("-n", "--n", min=1, help="Questions to keep.")] = 200,
    as_json: Json = False,
):
    """Select the questions on which the model revises most, by the non-social probes alone."""
    from analysis import probes as probe_records
    from analysis.collect import logs, pools

    is_log = probes.is_dir() or logs.is_log(probes)
    frame = logs.probes(_logs_of(probes)) if is_log else probe_records.read(probes)
    ranked = pools.select_high_flip(frame, n)
    told = pools.write_selection(ranked, out, pool=pool, probes_file=None if is_log else probes)
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        print(
            f"{told['n']} of {told['n_pool']} questions selected, "
            f"with flip rates from {told['threshold']:.3f}: {out}"
        )


def _logs_of(path):
    return path / "logs" if (path / "logs").is_dir() else path


def _questions(pool, n, seed, difficulty, selection, card):
    from analysis.collect import pools, prompts

    return _usable(
        pools.load, pool, n=n, seed=seed, difficulty=difficulty, selection=selection
    ), prompts.load(card)


def _usable(function, *arguments, **options):
    """Call a function; what it says about its options is a usage error."""
    from analysis.errors import DataError

    try:
        return function(*arguments, **options)
    except DataError:
        raise
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None


def _both_prices(price_in, price_out):
    if (price_in is None) != (price_out is None):
        raise typer.BadParameter("--price-in, --price-out: one of them is missing; expected both, or none")


def _roles(given, agents):
    roles = dict(each.partition("=")[::2] for each in given or [])
    for name, model in roles.items():
        if not name.startswith("agent_") or name[6:] not in map(str, range(1, agents + 1)) or not model:
            raise typer.BadParameter(f"--role {name}={model}: expected agent_K=MODEL, K from 1 to {agents}")
    return roles or None


def _text(path):
    """An absolute path: a run that goes on must name the same file, wherever it is started."""
    return None if path is None else str(Path(path).resolve())


def _place(pool):
    return _text(pool) if Path(pool).is_file() else pool


def _run(task, out, model, base_url, max_connections, max_samples, display, **options):
    from analysis.collect.run import run

    options |= {"max_connections": max_connections, "max_samples": max_samples, "display": display}
    return run(
        task,
        out,
        model=model,
        base_url=base_url,
        **{name: value for name, value in options.items() if value is not None},
    )


def _tell_debates(paths, as_json):
    from analysis import ledger
    from analysis.collect import logs

    summary = ledger.summarize(ledger.debates(logs.answers(paths, arm="all")))
    shown = summary[
        [
            "row",
            "n",
            "preserved",
            "collapse",
            "correction",
            "unrepaired",
            "init_correct",
            "final_correct",
            "c_cond",
        ]
    ]
    _tell(shown, _quality(logs.replies(paths)), paths, as_json)


def _quality(replies):
    from analysis.collect import quality

    said = [quality.verdict(quality.checks(replies)), quality.failures(replies)]
    if said[1]:
        said.append("Run again with --retry-failed to ask for them once more.")
    return " ".join(filter(None, said))


def _tell_probes(paths, as_json):
    from analysis import probes as probe_records
    from analysis.collect import logs

    plan = logs.probe_plan(paths)
    rates = probe_records.flip_rate(logs.probes(paths), by="condition", conditions="all")
    lost = int((plan["n"] - plan["valid"]).sum())
    note = (
        f"{lost} of {int(plan['n'].sum())} records have no initial answer and hold no probes." if lost else ""
    )
    note = " ".join(filter(None, [_quality(logs.probe_replies(paths)), note]))
    _tell(
        plan.merge(rates[["condition", "k", "rate", "low", "high"]], on="condition", how="left"),
        note,
        paths,
        as_json,
    )


def _tell(frame, note, paths, as_json):
    if as_json:
        records = json.loads(frame.to_json(orient="records"))
        print(
            json.dumps(
                {"lines": records, "note": note, "logs": [str(path) for path in paths]},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    _emit(frame, False)
    print(*filter(None, [note, f"Log: {', '.join(map(str, paths))}"]), sep="\n")


def _emit(frame, as_json):
    if as_json:
        print(json.dumps(json.loads(frame.to_json(orient="records")), indent=2, ensure_ascii=False))
    else:
        print(frame.to_string(index=False, na_rep="-", float_format=lambda value: f"{value:.4f}"))
