"""Inspect task: debates of a panel of agents, several arms of revision from one saved Round 0.

    inspect eval analysis/collect/debate.py --model openai/gpt-5.4-mini -T pool=mmlu_pro -T n=200
    inspect eval analysis/collect/debate.py --model ollama/llama3.1 -T arms=peer,private --epochs 2

A sample is one question and everything that follows from its Round 0: one debate with a single arm. An epoch
is a replicate. Panels of different models: `--model-role agent_1=... --model-role agent_2=...`; an agent
without a role is the model of `--model`.
"""

import random

import pandas as pd
from anyio import create_task_group, to_thread
from inspect_ai import Task, task
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Target, mean, scorer
from inspect_ai.solver import TaskState, solver
from inspect_ai.util import span

from analysis import ledger, replay
from analysis.collect import calls, pools, prompts, saved
from analysis.errors import choice

SCHEMA = 1
GATE_ACTIONS = ("record", "keep", "stop")


@task
def debate(
    pool="mixed",
    n=None,
    pool_seed=0,
    difficulty=None,
    selection=None,
    revision=None,
    arms="peer",
    agents=3,
    rounds=3,
    temperatures=(0.5, 0.7, 1.0),
    seed=0,
    max_tokens=1024,
    reasoning=None,
    confidence=False,
    gate=None,
    gate_action="record",
    policy="reference",
    card=None,
    round0=None,
    timeout=600,
    retries=3,
    cache=True,
    run="default",
):
    """Debates on a pool of questions.

    Parameters
    ----------
    pool, n, pool_seed, difficulty, selection, revision
        The questions, as in `analysis.collect.pools.load`.
    arms : str or list of str
        What happens after Round 0, each from the same initial answers: ``peer`` (every agent sees all latest
        replies), ``private`` (the same prompt with the agent's own reply only), ``self_review`` (a neutral
        second look at the own reply), ``independence`` (peer, told to trust its own judgement), ``shielded``
        (peer, with stated answers and names taken out of what agents see).
    agents, rounds : int
        Size of the panel; rounds after Round 0.
    temperatures : float or list of float, or None
        Of the agents in turn; None where the model takes none.
    seed : int or None
        Of all calls; a call's own seed follows from it and its place. None sends no seed.
    max_tokens : int or None
        Longest reply, reasoning included.
    reasoning : str, optional
        Inspect's reasoning effort: none, minimal, low, medium, high, ...
    confidence : bool
        Whether agents tell how sure they are.
    gate : str, optional
        A gate of `analysis.replay.GATES` as a live policy on the peer arm, asked after each round until it
        can decide.
    gate_action : {"record", "keep", "stop"}
        Where it fires: go on and only record it, end the debate and keep the initial answers, or end it and
        keep the latest ones.
    policy : str
        Coder of replies, as in `analysis.coder`.
    card : str, optional
        Path of a prompt card.
    round0 : str, optional
        Inspect log of earlier debates on these questions: their Round 0 is taken over in place of new calls.
    timeout : int or None
        Seconds for one attempt at a call.
    retries : int
        Further attempts at a call that failed in passing.
    cache : bool
        Store replies on disk, so that a run that was interrupted pays for nothing twice.
    run : str
        Name of this realisation: replies stored under another name are not taken.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3.1, A.2, E.5, G.5. The paper
    does not say what its shielded arm hides; here it hides who holds which answer.
    """
    arms = [choice("arms", arm, prompts.ARMS) for arm in dict.fromkeys(calls.several(arms))]
    temperatures = calls.temperatures(temperatures)
    for name, value, least in (("agents", agents, 1), ("rounds", rounds, 1), ("retries", retries, 0)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name}={value!r}: expected a whole number from {least}")
    choice("gate", gate, (None, *replay.GATES))
    choice("gate_action", gate_action, GATE_ACTIONS)
    items = pools.load(
        pool, n=n, seed=pool_seed, difficulty=difficulty, selection=selection, revision=revision
    )
    prompt_card = prompts.load(card)
    plan = {
        "schema": SCHEMA,
        "card": prompt_card.told,
        "arms": arms,
        "agents": agents,
        "rounds": rounds,
        "policy": policy,
        "seed": seed,
        "confidence": confidence,
    }
    if gate:
        plan["gate"] = {"name": gate, "action": gate_action}
    samples = [pools.to_sample(item) for item in items]
    if round0:
        _take_over(samples, round0, agents)
    one_call = {"max_tokens": max_tokens, "reasoning": reasoning, "timeout": timeout}
    return Task(
        dataset=samples,
        solver=discuss(prompt_card, plan, temperatures, one_call, run if cache else None),
        scorer=ledger_cell(),
        config=GenerateConfig(max_retries=retries),
        metadata={
            "pool": pools.card(pool, items),
            **plan,
            "temperatures": temperatures,
            "selection": str(selection) if selection else None,
        },
        display_name="debate",
        version=SCHEMA,
    )


def _take_over(samples, path, agents):
    from analysis.collect import logs

    found = logs.initial_replies(path)
    for sample in samples:
        told = found.get(sample.id, {})
        if any(len(replies) != agents for replies in told.values()) or not told:
            raise ValueError(f"round0={path}: {sample.id!r} has no Round 0 of {agents} agents there")
        sample.metadata["round0"] = {str(replicate): replies for replicate, replies in told.items()}


# --- the protocol -------------------------------------------------------------------------------------------


@solver
def discuss(card, plan, temperatures, one_call, run):
    """Run Round 0 and every arm from it, and save each round as soon as it is there."""

    async def solve(state: TaskState, generate) -> TaskState:
        item = pools.from_sample(state)
        replicate = state.epoch - 1
        models = [get_model(role=f"agent_{agent}") for agent in _numbers(plan)]
        record = plan | {"models": [str(model) for model in models], "labels": item.labels, "replies": []}
        state.store.set("debate", record)

        async def one_round(arm, number, texts):
            replies, limits = await _round(
                card, plan, item, models, arm, number, texts, replicate, temperatures, one_call, run
            )
            record["replies"].extend(replies)
            if limits:
                raise limits[0]
            return replies

        given = state.metadata.get("round0", {}).get(str(replicate))
        if given is None and "round0" in state.metadata:
            raise ValueError(
                f"round0: no replicate {replicate} of {item.id!r} there; expected as many epochs"
            )
        if given:
            record["replies"].extend(given)
            record["round0_taken_over"] = True
        else:
            given = await one_round(saved.INITIAL, 0, None)
        for arm in plan["arms"]:
            replies = given
            gated = plan.get("gate") if arm == "peer" else None
            if gated and _decide(record, item, 0, gated):
                continue
            for number in range(1, plan["rounds"] + 1):
                replies = await one_round(arm, number, [reply["text"] for reply in replies])
                if gated and _decide(record, item, number, gated):
                    break
        return state

    return solve


def _numbers(plan):
    return range(1, plan["agents"] + 1)


async def _round(card, plan, item, models, arm, number, texts, replicate, temperatures, one_call, run):
    """Ask all agents at once."""
    replies, limits = [None] * plan["agents"], []
    sure = plan["confidence"]

    async def one(agent):
        if number == 0:
            system, user = prompts.initial_prompt(
                card, item, agent=agent, n_agents=plan["agents"], confidence=sure
            )
        else:
            shown = [other for other in _numbers(plan) if other != agent]
            random.Random(f"{item.id}/{replicate}/{number}/{agent}").shuffle(shown)
            system, user = prompts.round_prompt(
                card, item, arm, agent=agent, round=number, texts=texts, shown=shown, confidence=sure
            )
        temperature = temperatures[(agent - 1) % len(temperatures)]
        seed = calls.seed_of(plan["seed"], item.id, replicate, number, agent)
        place = {"arm": arm, "round": number, "agent": agent}
        cache = (
            {"run": run, "question": item.id, **{k: str(v) for k, v in place.items()}}
            if run is not None
            else None
        )
        told = await calls.ask(
            models[agent - 1],
            calls.conversation(system, user),
            cache=cache,
            limits=limits,
            config=calls.settings(temperature=temperature, seed=seed, **one_call),
        )
        if sure:
            told["confidence"] = calls.confidence(told["text"])
        replies[agent - 1] = place | told | {"temperature": temperature, "seed": seed}

    async with span(f"{arm}, round {number}"):
        async with create_task_group() as group:
            for agent in _numbers(plan):
                group.start_soon(one, agent)
    calls.code(replies, item, plan["policy"])
    return replies, limits


def _decide(record, item, number, gate):
    """Ask the gate, unless it has spoken; True where it ends the debate here."""
    told = record.setdefault("gate_said", {})
    if "fired" in told:
        return False
    seen = _so_far(record, item, number)
    try:
        fired = bool(replay.GATES[gate["name"]](seen).iloc[0])
    except KeyError:  # a column of a round that is still to come
        return False
    told |= {"fired": fired, "round": number, "action": "freeze" if fired else "continue"}
    if not fired or gate["action"] == "record":
        return False
    if gate["action"] == "keep":  # where only the last round tells, its answers give way to the initial ones
        record["stopped"] = {"peer": {"after": min(number, record["rounds"] - 1), "keep": "initial"}}
    else:
        record["stopped"] = {"peer": {"after": number, "keep": "latest"}}
    return True


def _so_far(record, item, number):
    """The debate as the ledger sees it after this round: nothing later, nothing of what is right."""
    debates = _ledger(record | {"rounds": max(number, 1)}, item, ["peer"])
    if number == 0:
        debates = debates[[name for name in debates if not name.endswith("_1")]]
    hidden = ["gold", "cell", "onset", "endpoint", *(name for name in debates if name.startswith("correct_"))]
    return debates.drop(columns=hidden)


def _ledger(record, item, arms):
    """One line an arm, named by its row."""
    lines = [
        {"row": arm, "round": line["round"], "agent": str(line["agent"]), "answer": line["answer"]}
        for arm in arms
        for line in saved.answers(record, arm)
    ]
    return ledger.debates(pd.DataFrame(lines).assign(question=item.id, replicate=0, gold=item.gold))


# --- the score ----------------------------------------------------------------------------------------------


@scorer(metrics={"*": [mean()]})
def ledger_cell():
    """Cell of the transition ledger of each arm, under the paper's rules for ties and missing majorities."""

    async def score(state: TaskState, target: Target) -> Score:
        item = pools.from_sample(state)
        record = state.store.get("debate")
        value, cells, marks, table = {}, {}, {}, []
        # In a thread of its own: frames take milliseconds, in which other debates could not go on.
        lines = await to_thread.run_sync(_ledger, record, item, record["arms"])
        for line in lines.to_dict("records"):
            arm, last = line["row"], record["rounds"]
            cells[arm] = str(line["cell"])
            value |= {
                f"{arm} initial": int(line["correct_0"]),
                f"{arm} final": int(line[f"correct_{last}"]),
                f"{arm} collapse": int(cells[arm] == "collapse"),
                f"{arm} correction": int(cells[arm] == "correction"),
            }
            marks[arm] = saved.marked(record, arm)
            table += _in_words(line, saved.answers(record, arm), item.gold)
        final = table[record["rounds"]].rsplit(" -> ", 1)[1]
        return Score(
            value=value,
            answer=final,
            explanation="\n".join(table),
            metadata={"cells": cells, "marked": {arm: why for arm, why in marks.items() if why}},
        )

    return score


def _in_words(line, told, gold):
    """What was answered, a text a round."""
    out = []
    for number in sorted({answer["round"] for answer in told}):
        votes = " ".join(answer["answer"] or "-" for answer in told if answer["round"] == number)
        winner = line[f"majority_{number}"]
        winner = winner if isinstance(winner, str) else "none"
        out.append(
            f"{line['row']}, round {number}: {votes} ({'right' if winner == gold else 'wrong'}) -> {winner}"
        )
    return out
