"""Inspect task: the eight-probe screen of one model, asked alone and then challenged.

    inspect eval analysis/collect/probe.py --model openai/gpt-5.4-mini -T pool=mmlu_pro -T n=200

A sample is one question: each agent slot (a temperature) answers it under each system condition, and each
answer is challenged by four strengths of argument, with and without a report of what others hold. Every
challenge goes back to the same initial answer; none sees another.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio import create_task_group
from inspect_ai import Task, task
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import Score, Target, mean, scorer
from inspect_ai.solver import TaskState, solver
from inspect_ai.util import span

from analysis.collect import calls, pools, prompts
from analysis.errors import DataError, choice
from analysis.probes import CONDITIONS, STRENGTHS

SCHEMA = 1
VALUES = dict(zip(STRENGTHS, (0.25, 0.5, 0.75, 1.0), strict=True))
TARGETS = ("random_wrong", "first_other")


@task
def probe(
    pool="mixed",
    n=None,
    pool_seed=0,
    difficulty=None,
    selection=None,
    revision=None,
    conditions=CONDITIONS,
    strengths=STRENGTHS,
    agents=3,
    temperatures=(0.5, 0.7, 1.0),
    reply_temperature=0.0,
    target="random_wrong",
    repairs=2,
    seed=0,
    max_tokens=1024,
    reasoning=None,
    policy="reference",
    card=None,
    timeout=600,
    retries=3,
    cache=True,
    run="default",
):
    """The revisability screen on a pool of multiple-choice questions.

    Parameters
    ----------
    pool, n, pool_seed, difficulty, selection, revision
        The questions, as in `analysis.collect.pools.load`.
    conditions : list of str
        System conditions: default, anti_social, anti_argument. "default" alone is the light screen.
    strengths : list of str
        Strengths of argument, each asked with and without a report of others.
    agents : int
        Initial answers a question and condition; 1 is the lightest screen.
    temperatures : float or list of float, or None
        Of the initial answers in turn.
    reply_temperature : float or None
        Of the replies to challenges.
    target : {"random_wrong", "first_other"}
        What a challenge argues for: a random wrong option other than the answer, or, where the answer is
        wrong and the argument very strong, the right one (the paper); or the first option that is not the
        answer (its local runner).
    repairs : int
        Further requests for an initial answer that can be read.
    seed, max_tokens, reasoning, policy, card, timeout, retries, cache, run
        As in `analysis.collect.debate.debate`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 3.1, A.2, A.3.4, B.6, G.2.
    """
    plan = {
        "schema": SCHEMA,
        "conditions": [choice("conditions", name, CONDITIONS) for name in calls.several(conditions)],
        "strengths": [choice("strengths", name, STRENGTHS) for name in calls.several(strengths)],
        "agents": agents,
        "reply_temperature": reply_temperature,
        "target": choice("target", target, TARGETS),
        "repairs": repairs,
        "policy": policy,
        "seed": seed,
        "temperatures": calls.temperatures(temperatures),
    }
    items = pools.load(
        pool, n=n, seed=pool_seed, difficulty=difficulty, selection=selection, revision=revision
    )
    numeric = [item.id for item in items if not item.options]
    if numeric:
        raise DataError(
            f"pool {pool!r}, item {numeric[0]!r}: no options to argue for; expected multiple-choice items"
        )
    prompt_card = prompts.load(card)
    plan["card"] = prompt_card.told
    one_call = {"max_tokens": max_tokens, "reasoning": reasoning, "timeout": timeout}
    return Task(
        dataset=[pools.to_sample(item) for item in items],
        solver=challenge(prompt_card, plan, one_call, run if cache else None),
        scorer=revisions(),
        config=GenerateConfig(max_retries=retries),
        metadata={
            "pool": pools.card(pool, items),
            **plan,
            "selection": str(selection) if selection else None,
        },
        display_name="probe",
        version=SCHEMA,
    )


# --- the protocol -------------------------------------------------------------------------------------------


@solver
def challenge(card, plan, one_call, run):
    """Ask, repair, challenge; each record is saved when its last reply is there."""

    async def solve(state: TaskState, generate) -> TaskState:
        item = pools.from_sample(state)
        model = get_model()
        records = []
        state.store.set("probe", {"schema": SCHEMA, "card": card.told, "records": records})
        limits = []

        async def one(condition, agent):
            asker = _Asker(card, plan, item, model, condition, agent, state.epoch - 1, one_call, run, limits)
            records.append(await _record(asker))

        for condition in plan["conditions"]:
            async with span(condition):
                async with create_task_group() as group:
                    for agent in range(plan["agents"]):
                        group.start_soon(one, condition, agent)
            if limits:
                raise limits[0]
        records.sort(key=lambda record: (plan["conditions"].index(record["condition"]), record["agent_idx"]))
        return state

    return solve


@dataclass
class _Asker:
    """What all calls of one record share."""

    card: prompts.Card
    plan: dict
    item: pools.Item
    model: object
    condition: str
    agent: int
    replicate: int
    one_call: dict
    run: str | None
    limits: list

    async def ask(self, messages, temperature, purpose):
        place = {
            "question": self.item.id,
            "condition": self.condition,
            "agent": str(self.agent),
            "purpose": purpose,
        }
        seed = calls.seed_of(self.plan["seed"], self.replicate, *place.values())
        reply = await calls.ask(
            self.model,
            messages,
            limits=self.limits,
            cache={"run": self.run, **place} if self.run is not None else None,
            config=calls.settings(temperature=temperature, seed=seed, **self.one_call),
        )
        calls.code([reply], self.item, self.plan["policy"])
        return reply


async def _record(asker):
    card, plan, item = asker.card, asker.plan, asker.item
    answer = prompts.answer_text(card, item)
    temperature = plan["temperatures"][asker.agent % len(plan["temperatures"])]
    messages = calls.conversation(
        prompts.fill(card, f"probe.condition.{asker.condition}"),
        prompts.fill(card, "probe.user", item=prompts.item_text(card, item), answer=answer),
    )
    replies = [await asker.ask(messages, temperature, "initial")]
    while replies[-1]["answer"] is None and replies[-1]["text"] and len(replies) <= plan["repairs"]:
        messages = [
            *messages,
            ChatMessageAssistant(content=replies[-1]["text"]),
            ChatMessageUser(content=prompts.fill(card, "probe.repair", answer=answer)),
        ]
        replies.append(await asker.ask(messages, temperature, f"repair {len(replies)}"))
    first = replies[-1]
    results = []
    if first["answer"] is not None:
        messages = [*messages, ChatMessageAssistant(content=first["text"])]
        cells = [(strength, social) for strength in plan["strengths"] for social in (False, True)]
        results = [None] * len(cells)

        async def one(place, strength, social):
            results[place] = await _probe(asker, messages, first["answer"], strength, social, answer)

        async with create_task_group() as group:
            for place, (strength, social) in enumerate(cells):
                group.start_soon(one, place, strength, social)
    return _told(asker, temperature, replies, results)


async def _probe(asker, messages, initial, strength, social, answer):
    card, plan = asker.card, asker.plan
    target = _target(
        asker.item,
        initial,
        strength,
        plan["target"],
        (plan["seed"], asker.item.id, asker.condition, asker.agent, asker.replicate, strength, social),
    )
    text = prompts.fill(
        card,
        "probe.challenge",
        initial=initial,
        answer=answer,
        argument=prompts.fill(card, f"probe.argument.{strength}", target=target),
        social=prompts.fill(card, "probe.social.text", target=target) if social else "",
    )
    reply = await asker.ask(
        [*messages, ChatMessageUser(content=text)],
        plan["reply_temperature"],
        f"{strength}{', social' if social else ''}",
    )
    post = reply["answer"]
    return {
        "strength": strength,
        "strength_value": VALUES[strength],
        "social": social,
        "alt_answer": target,
        "post_answer": post,
        "revised": post is not None and post != initial,
        "rule": reply["rule"],
        "error": reply["error"],
        "truncated": reply["truncated"],
        "unclosed": reply["unclosed"],
        "cost": reply.get("cost"),
        "usage": _usage([reply]),
        "challenge": text,
        "text": reply["text"],
    }


def _target(item, initial, strength, rule, place):
    """The option that a challenge argues for; never the initial answer."""
    if rule == "first_other":
        return next(label for label in item.labels if label != initial)
    if strength == "very_strong" and initial != item.gold:
        return item.gold
    wrong = [label for label in item.labels if label not in (initial, item.gold)]
    # With two options a wrong answer leaves only the right one to argue for.
    return random.Random(repr(place)).choice(wrong) if wrong else item.gold


def _usage(replies):
    return {
        "prompt_tokens": sum(reply.get("tokens_in") or 0 for reply in replies),
        "completion_tokens": sum(reply.get("tokens_out") or 0 for reply in replies),
    }


def _told(asker, temperature, replies, results):
    """A record in the layout of the paper's open tier, its measures by the paper's equations."""
    item, first = asker.item, replies[-1]
    usage = [result["usage"] for result in results] + [_usage(replies)]
    costs = [
        value
        for value in [reply.get("cost") for reply in replies] + [r["cost"] for r in results]
        if value is not None
    ]
    return {
        "schema_version": SCHEMA,
        "question_id": item.id,
        "benchmark": item.source,
        "category": item.category,
        "correct_label": item.gold,
        "condition": asker.condition,
        "agent_idx": asker.agent,
        "replicate": asker.replicate,
        "temperature": temperature,
        "initial_answer": first["answer"],
        "initial_rule": first["rule"],
        "initial_correct": None if first["answer"] is None else first["answer"] == item.gold,
        "initial_parse_repaired": len(replies) > 1 and first["answer"] is not None,
        "initial_repair_attempts": len(replies) - 1,
        "initial_error": first["error"],
        "initial_truncated": first["truncated"],
        "probe_results": results,
        **_measures(results),
        "reply_temperature": asker.plan["reply_temperature"],
        "target_rule": asker.plan["target"],
        "model_name": str(asker.model),
        "backend": "inspect_ai",
        "card": asker.card.told,
        "policy": asker.plan["policy"],
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_cost": sum(costs) if costs else None,
        "usage": {name: sum(each[name] for each in usage) for name in ("prompt_tokens", "completion_tokens")},
        "initial_text": first["text"],
    }


def _measures(results):
    def rate(keep):
        kept = [result["revised"] for result in results if keep(result)]
        return sum(kept) / len(kept) if kept else None

    total, solo = rate(lambda r: True), rate(lambda r: not r["social"])
    social = rate(lambda r: r["social"])
    strong = rate(lambda r: r["strength"] in ("strong", "very_strong"))
    weak = rate(lambda r: r["strength"] in ("weak", "moderate"))
    by_social = None if None in (social, solo) else social - solo
    by_argument = None if None in (strong, weak) else strong - weak
    ratio = (
        None if None in (by_social, by_argument) else by_social / (abs(by_social) + abs(by_argument) + 1e-6)
    )
    strengths = dict.fromkeys(result["strength"] for result in results)
    return {
        "alpha_total": total,
        "flip_rate": total,
        "alpha_solo": solo,
        "alpha_social": social,
        "by_strength": {name: rate(lambda r, name=name: r["strength"] == name) for name in strengths},
        "social_sensitivity": by_social,
        "argument_sensitivity": by_argument,
        "sa_ratio": ratio,
    }


# --- the score ----------------------------------------------------------------------------------------------


@scorer(metrics={"*": [mean()]})
def revisions():
    """Flip rate and initial accuracy in the default condition, in all where that was left out."""

    async def score(state: TaskState, target: Target) -> Score:
        records = (state.store.get("probe") or {}).get("records", [])
        mine = [record for record in records if record["condition"] == "default"] or records
        probes = [result["revised"] for record in mine for result in record["probe_results"]]
        right = [record["initial_answer"] == target.text for record in mine]
        value = {
            "flip rate": sum(probes) / len(probes) if probes else 0.0,
            "initial right": sum(right) / len(right) if right else 0.0,
            "initial missing": sum(record["initial_answer"] is None for record in mine) / max(len(mine), 1),
        }
        table = [
            f"{record['condition']}, agent {record['agent_idx'] + 1}: {record['initial_answer'] or '-'} -> "
            + " ".join(result["post_answer"] or "-" for result in record["probe_results"])
            for record in records
        ]
        return Score(value=value, explanation="\n".join(table))

    return score
