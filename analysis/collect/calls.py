"""One call of a model: asked once, paid once, and whatever goes wrong comes back as a missing answer."""

import hashlib
import re

from inspect_ai.model import CachePolicy, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.util import LimitExceededError

from analysis import coder
from analysis.answers import canonical_number
from analysis.reply import own_voice

_REASONING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE)
_CONFIDENCE = re.compile(r"\bconfidence\b\W{0,6}(\d{1,3}(?:\.\d+)?)", re.IGNORECASE)
_CUT = ("max_tokens", "model_length")


def seed_of(seed, *place):
    """Seed of one call: depends on the run's seed and on the call's place in the protocol alone.

    Examples
    --------
    >>> seed_of(0, "q1", 0, 1) == seed_of(0, "q1", 0, 1), seed_of(0, "q1", 0, 1) == seed_of(0, "q1", 0, 2)
    (True, False)
    >>> seed_of(None, "q1") is None
    True
    """
    if seed is None:
        return None
    return int(hashlib.sha256(repr((seed, *place)).encode()).hexdigest()[:8], 16) & 0x7FFFFFFF


def several(values):
    """A list from a list, from one value, or from a text with commas (the command line's).

    Examples
    --------
    >>> several("peer, private"), several((0.5, 1.0)), several(0.7)
    (['peer', 'private'], [0.5, 1.0], [0.7])
    """
    if isinstance(values, str):
        return [value.strip() for value in values.split(",")]
    return list(values) if isinstance(values, (list, tuple)) else [values]


def temperatures(values):
    """Temperatures of the agents in turn; None, or the word, for models that take none.

    Examples
    --------
    >>> temperatures("0.5, 1"), temperatures("none"), temperatures(0.7)
    ([0.5, 1.0], [None], [0.7])
    """
    if values is None or str(values).strip().lower() == "none":
        return [None]
    try:
        return [float(value) for value in several(values)]
    except (TypeError, ValueError):
        raise ValueError(f"temperatures={values!r}: expected numbers, or none") from None


def conversation(system, user):
    """System text, where there is one, and user text as messages.

    Examples
    --------
    >>> [message.role for message in conversation("Be brief.", "1+1?")]
    ['system', 'user']
    """
    return [ChatMessageSystem(content=system)] * bool(system) + [ChatMessageUser(content=user)]


async def ask(model, messages, *, config, cache, limits):
    """Ask a model and tell what came back.

    Parameters
    ----------
    model : inspect_ai.model.Model
    messages : list of ChatMessage
    config : GenerateConfig
    cache : dict of str to str, or None
        What tells this call from all others of a run. Its reply is stored under it on disk and never paid
        again: a run that was killed asks only for what it lacks. None asks afresh.
    limits : list
        Gets the exception where a limit of the sample was met, so that the caller can stop once the round is
        stored.

    Returns
    -------
    dict
        `text` (without reasoning, None where there is none), `stop`, `error` (kind of failure, never its
        message: providers write keys into it), `truncated`, `unclosed` (reasoning that never ended),
        `tokens_in`, `tokens_out`, `tokens_reasoning`, `cost`, `seconds`, `model`.
    """
    policy = CachePolicy(expiry=None, scopes=cache) if cache is not None else False
    try:
        output = await model.generate(messages, config=config, cache=policy)
    except LimitExceededError as limit:
        limits.append(limit)
        return _failed(model, f"limit:{limit.type}")
    except Exception as problem:  # any provider's own kinds: a failed call is a missing answer, never a crash
        return _failed(model, _kind(problem))
    return _told(output, model)


def _failed(model, kind):
    return {
        "text": None,
        "stop": "error",
        "error": kind,
        "truncated": False,
        "unclosed": False,
        "model": str(model),
    }


def _kind(problem):
    """Name and HTTP status of the failure at the bottom of retries and wrappers."""
    attempt = getattr(problem, "last_attempt", None)
    if attempt is not None and attempt.failed:
        problem = attempt.exception()
    elif problem.__cause__ is not None and type(problem).__name__ == "ModelGenerateError":
        problem = problem.__cause__
    status = getattr(problem, "status_code", None)
    return type(problem).__name__ + (f" {status}" if isinstance(status, int) else "")


def _told(output, model):
    if output.empty:
        return _failed(model, "no choices")
    text, usage = output.completion, output.usage
    thought = any(part.type == "reasoning" for part in output.message.content if not isinstance(part, str))
    cut = output.stop_reason in _CUT
    unclosed = (own_voice(text) is None) if text.strip() else (thought and cut)
    text = "" if unclosed else _REASONING.sub("", text).strip()
    told = {
        "text": text or None,
        "stop": output.stop_reason,
        "error": None,
        "truncated": cut,
        "unclosed": unclosed,
        "model": str(model),
        "seconds": round(output.time, 3) if output.time is not None else None,
    }
    if usage is not None:
        read = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
        told |= {
            "tokens_in": usage.input_tokens + read,
            "tokens_out": usage.output_tokens,
            "tokens_reasoning": usage.reasoning_tokens,
            "cost": usage.total_cost,
        }
    return told


def code(replies, item, policy):
    """Add `answer` and `rule` to replies: what the coder reads, or the reason why there is nothing to read.

    Parameters
    ----------
    replies : list of dict
        From `ask`; changed in place.
    item : analysis.collect.pools.Item
    policy : str
        As in `analysis.coder`.

    Examples
    --------
    >>> from analysis.collect.pools import Item
    >>> replies = [{"text": "Final Answer: B"}, {"text": None, "error": "APIConnectionError"}]
    >>> code(replies, Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT"), "reference")
    >>> [(reply["answer"], reply["rule"]) for reply in replies]
    [('B', 'final_tag'), (None, 'failed')]
    """
    texts = [reply["text"] for reply in replies]
    if item.options:
        found = coder.code_answers(texts, labels=item.labels, policy=policy)
        answers = [label if isinstance(label, str) else None for label in found["label"]]
    else:
        found = coder.code_numbers(texts)
        answers = [canonical_number(value) if value == value else None for value in found["value"]]
    for reply, answer, rule in zip(replies, answers, found["rule"], strict=True):
        if reply.get("error"):
            rule = "failed"
        elif reply.get("unclosed"):
            rule = "unfinished_reasoning"
        reply["answer"], reply["rule"] = answer, rule


def confidence(text):
    """How sure the reply says it is, in percent; None where it does not say, or not from 0 to 100.

    Examples
    --------
    >>> confidence("**Confidence:** 85%\\nFinal Answer: B"), confidence("Confidence: 300")
    (85.0, None)
    """
    found = _CONFIDENCE.findall(text or "")
    value = float(found[-1]) if found else None
    return value if value is not None and value <= 100 else None


def settings(*, temperature, seed, max_tokens, reasoning, timeout):
    """Settings of one call; what is None is left to the model, or to the command line of Inspect.

    Examples
    --------
    >>> settings(temperature=0.5, seed=None, max_tokens=64, reasoning=None, timeout=None).temperature
    0.5
    """
    return GenerateConfig(
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        reasoning_effort=reasoning,
        attempt_timeout=timeout,
    )
