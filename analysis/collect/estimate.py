"""What a run would take before it is run: calls, tokens, money."""

import pandas as pd

from analysis.collect import prompts
from analysis.errors import choice
from analysis.probes import CONDITIONS, STRENGTHS

CHARACTERS = 4  # a token, in English prose; other text takes more tokens


def debates(
    items,
    *,
    arms=("peer",),
    agents=3,
    rounds=3,
    replicates=1,
    card=None,
    confidence=False,
    reply=300,
    max_tokens=1024,
    gate_stops=0.0,
):
    """Calls and tokens of debates.

    Parameters
    ----------
    items : list of analysis.collect.pools.Item
    arms, agents, rounds, card, confidence, max_tokens
        As in `analysis.collect.debate.debate`.
    replicates : int
        Epochs.
    reply : int
        Tokens of a usual reply.
    gate_stops : float
        Share of peer debates that a live gate would end right after Round 0.

    Returns
    -------
    DataFrame
        One line a step ("Round 0" and each arm): `step, calls, tokens_in, tokens_out` as expected, and at
        most (`tokens_in_most, tokens_out_most`, every reply as long as it may be). Repeated attempts are not
        counted.

    Examples
    --------
    >>> from analysis.collect import pools
    >>> debates(pools.load("arithmetic", n=10))[["step", "calls"]].values.tolist()
    [['Round 0', 30], ['peer', 90]]
    """
    card = card or prompts.load()
    for arm in arms:
        choice("arms", arm, prompts.ARMS)
    most = max_tokens or reply
    lines = [
        _line(
            "Round 0",
            agents * replicates,
            reply,
            most,
            [
                sum(
                    map(
                        len,
                        prompts.initial_prompt(card, item, agent=1, n_agents=agents, confidence=confidence),
                    )
                )
                for item in items
            ],
            0,
        )
    ]
    for arm in arms:
        shown = {"private": 1, "self_review": 1}.get(arm, agents)
        calls = agents * rounds * replicates * (1 - gate_stops if arm == "peer" else 1)
        frame = [
            sum(
                map(
                    len,
                    prompts.round_prompt(
                        card, item, arm, agent=1, round=1, texts=["."] * agents, confidence=confidence
                    ),
                )
            )
            for item in items
        ]
        lines.append(_line(arm, calls, reply, most, frame, shown))
    return pd.DataFrame(lines)


def _line(step, calls, reply, most, characters, shown):
    """`calls` a question; a prompt is its own characters and `shown` earlier replies."""
    n, own = calls * len(characters), calls * sum(characters) / CHARACTERS
    return {
        "step": step,
        "calls": round(n),
        "tokens_in": round(own + n * shown * reply),
        "tokens_out": round(n * reply),
        "tokens_in_most": round(own + n * shown * most),
        "tokens_out_most": round(n * most),
    }


def probes(
    items,
    *,
    conditions=CONDITIONS,
    strengths=STRENGTHS,
    agents=3,
    replicates=1,
    card=None,
    reply=300,
    max_tokens=1024,
    repairs=2,
):
    """Calls and tokens of the screen.

    Parameters
    ----------
    items : list of analysis.collect.pools.Item
    conditions, strengths, agents, card, max_tokens, repairs
        As in `analysis.collect.probe.probe`; repairs count only in what a run takes at most.
    replicates, reply
        As in `debates`.

    Returns
    -------
    DataFrame
        As `debates`, with steps "initial" and "challenges".

    Examples
    --------
    >>> from analysis.collect import pools
    >>> probes(pools.load("logic", n=10))[["step", "calls"]].values.tolist()
    [['initial', 90], ['challenges', 720]]
    """
    card = card or prompts.load()
    most = max_tokens or reply
    answers = len(conditions) * agents * replicates
    asked = [
        len(
            prompts.fill(
                card, "probe.user", item=prompts.item_text(card, item), answer=prompts.answer_text(card, item)
            )
        )
        for item in items
    ]
    argued = [
        length
        + len(
            prompts.fill(
                card,
                "probe.challenge",
                initial="A",
                social="",
                argument="",
                answer=prompts.answer_text(card, item),
            )
        )
        + 200
        for length, item in zip(asked, items, strict=True)
    ]
    first = _line("initial", answers, reply, most, asked, 0)
    for name in ("tokens_in_most", "tokens_out_most"):
        first[name] *= 1 + repairs
    return pd.DataFrame([first, _line("challenges", answers * len(strengths) * 2, reply, most, argued, 1)])


def money(steps, *, price_in=None, price_out=None):
    """Add a total, and what it costs where prices are known.

    Parameters
    ----------
    steps : DataFrame
        From `debates`, `probes`, or both one under the other.
    price_in, price_out : float, optional
        Price of a million tokens in and out, in any currency.

    Returns
    -------
    DataFrame
        With a line "total", and `cost` and `cost_most` where both prices are given.

    Examples
    --------
    >>> steps = pd.DataFrame([{"step": "peer", "calls": 2, "tokens_in": 1_000_000, "tokens_out": 500_000,
    ...                        "tokens_in_most": 2_000_000, "tokens_out_most": 1_000_000}])
    >>> money(steps, price_in=1.0, price_out=4.0)["cost"].tolist()
    [3.0, 3.0]
    """
    out = pd.concat(
        [steps, steps.drop(columns="step").sum().to_frame().T.assign(step="total")], ignore_index=True
    )
    out = out.astype({name: "int64" for name in out if name != "step"})
    if price_in is not None and price_out is not None:
        for kind in ("", "_most"):
            out[f"cost{kind}"] = (
                out[f"tokens_in{kind}"] * price_in + out[f"tokens_out{kind}"] * price_out
            ) / 1e6
    return out
