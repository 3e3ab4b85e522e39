"""The prompt card: where every word sent to a model comes from, with a version and a digest."""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import DataError

DEFAULT = Path(__file__).with_name("card.toml")
ARMS = ("peer", "private", "self_review", "independence", "shielded")

# Text of a card -> placeholders that it must have, and further ones that it may have.
_ROUND = ({"item", "answer"}, {"responses", "own", "agent", "n_agents", "round"})
TEXTS = {
    "item.choice": ({"question", "options"}, set()),
    "item.number": ({"question"}, set()),
    "item.option": ({"label", "text"}, set()),
    "answer.choice": ({"labels"}, set()),
    "answer.number": (set(), set()),
    "answer.confidence": (set(), set()),
    "initial.system": (set(), {"agent", "n_agents", "round"}),
    "initial.user": ({"item", "answer"}, {"agent", "n_agents", "round"}),
    "reply.said": ({"text"}, {"agent"}),
    "reply.own": ({"text"}, set()),
    "reply.missing": (set(), set()),
    **{f"{arm}.system": (set(), {"agent", "n_agents", "round"}) for arm in ARMS},
    **{f"{arm}.user": _ROUND for arm in ARMS},
    "shielded.said": ({"text"}, set()),
    "probe.user": ({"item", "answer"}, set()),
    "probe.repair": ({"answer"}, set()),
    "probe.challenge": ({"argument", "social", "answer"}, {"initial"}),
    **{f"probe.condition.{name}": (set(), set()) for name in ("default", "anti_social", "anti_argument")},
    **{
        f"probe.argument.{name}": ({"target"}, set())
        for name in ("weak", "moderate", "strong", "very_strong")
    },
    "probe.social.text": ({"target"}, set()),
}
_NEEDS = {
    "peer": "responses",
    "independence": "responses",
    "shielded": "responses",
    "private": "own",
    "self_review": "own",
}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# A line that says which option its writer chose: what shielded agents do not get to see.
_STATES_ANSWER = re.compile(
    r"(?i)\banswer\b\W*(?:is\b|:)|\bfinal answer\b|\b(?:choose|select|pick)\b|^\W*[A-J]\W*$|"
    r"\bconfidence\b\W*\d"
)


@dataclass(frozen=True)
class Card:
    """Texts by their dotted names, the names of those that are gated, and what identifies the card."""

    name: str
    version: str
    sha256: str
    texts: dict
    gated: tuple

    @property
    def told(self):
        """What a record says about its card."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


def load(path=None):
    """Read a prompt card and check that it is complete.

    Parameters
    ----------
    path : str or Path, optional
        TOML file; the card that ships with the project if left out.

    Returns
    -------
    Card

    Raises
    ------
    DataError
        No TOML, a text is missing or unknown, or a placeholder is missing or unknown.

    Examples
    --------
    >>> load().name
    'debate-ledger'
    """
    path = Path(path or DEFAULT)
    data = path.read_bytes()
    try:
        told = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path}: not a TOML file: {problem}") from None
    name, version, gated = told.pop("name", None), told.pop("version", None), told.pop("gated", [])
    for field, value in (("name", name), ("version", version)):
        if not isinstance(value, str) or not value:
            raise DataError(f"{path}, field {field!r}: {value!r}; expected a text")
    texts = dict(_flat(told))
    for text in sorted(texts.keys() ^ TEXTS.keys()):
        raise DataError(
            f"{path}, text {text!r}: {'not there' if text in TEXTS else 'not one that a card has'}; "
            f"expected exactly {', '.join(TEXTS)}"
        )
    for key, text in texts.items():
        _check(text, key, path)
    unknown = [g for g in gated if not any(_under(key, g) for key in texts)]
    if unknown:
        raise DataError(f"{path}, field 'gated': {unknown[0]!r} names no text")
    return Card(name, version, hashlib.sha256(data).hexdigest(), texts, tuple(gated))


def _flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _check(text, key, path):
    if not isinstance(text, str):
        raise DataError(f"{path}, text {key!r}: {text!r}; expected a text")
    needed, allowed = TEXTS[key]
    arm, _, part = key.partition(".")
    if part == "user" and arm in _NEEDS:
        needed = needed | {_NEEDS[arm]}
    found = set(_PLACEHOLDER.findall(text))
    wrong = (needed - found) or (found - needed - allowed)
    if wrong:
        word = "lacks" if needed - found else "has the unknown placeholder"
        raise DataError(
            f"{path}, text {key!r}: {word} {{{sorted(wrong)[0]}}}; "
            f"expected {', '.join(sorted(needed | allowed)) or 'none'}"
        )


def _under(key, prefix):
    return key == prefix or key.startswith(prefix + ".")


def open_texts(card):
    """Texts of a card that may be shown to anybody; a gated one is None.

    Examples
    --------
    >>> open_texts(load())["probe.argument.weak"] is None, open_texts(load())["initial.system"]
    (True, 'You are a careful expert.')
    """
    return {
        key: None if any(_under(key, g) for g in card.gated) else text for key, text in card.texts.items()
    }


def fill(card, key, **values):
    """Fill the placeholders of one text in a single pass: braces in what is filled in stay as they are.

    Examples
    --------
    >>> fill(load(), "item.option", label="A", text="the set {x, {label}}")
    'A. the set {x, {label}}'
    """
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), card.texts[key])


def item_text(card, item):
    """Show an item as the card says: its question and its options.

    Examples
    --------
    >>> from analysis.collect.pools import Item
    >>> print(item_text(load(), Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT")))
    1+1?
    <BLANKLINE>
    A. 1
    B. 2
    """
    if not item.options:
        return fill(card, "item.number", question=item.question)
    options = "\n".join(
        fill(card, "item.option", label=label, text=text)
        for label, text in zip(item.labels, item.options, strict=True)
    )
    return fill(card, "item.choice", question=item.question, options=options)


def answer_text(card, item, confidence=False):
    """Say how to close a reply.

    Examples
    --------
    >>> from analysis.collect.pools import Item
    >>> "A, B" in answer_text(load(), Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT"))
    True
    """
    if item.options:
        text = fill(card, "answer.choice", labels=", ".join(item.labels))
    else:
        text = fill(card, "answer.number")
    return f"{text} {fill(card, 'answer.confidence')}" if confidence else text


def initial_prompt(card, item, *, agent, n_agents, confidence=False):
    """System and user text of Round 0.

    Examples
    --------
    >>> from analysis.collect.pools import Item
    >>> item = Item("q", "1+1?", ("1", "2"), "B", "m", "MIT")
    >>> system, user = initial_prompt(load(), item, agent=1, n_agents=3)
    >>> "1+1?" in user
    True
    """
    common = {"agent": agent, "n_agents": n_agents, "round": 0}
    return (
        fill(card, "initial.system", **common),
        fill(
            card,
            "initial.user",
            item=item_text(card, item),
            answer=answer_text(card, item, confidence),
            **common,
        ),
    )


def round_prompt(card, item, arm, *, agent, round, texts, shown=None, confidence=False):
    """System and user text of one agent in one round of revision.

    Parameters
    ----------
    card : Card
    item : analysis.collect.pools.Item
    arm : str
        One of `ARMS`.
    agent : int
        The agent asked, counted from 1.
    round : int
        From 1.
    texts : list of str or None
        Replies of the round before, agent by agent; None where one is missing.
    shown : list of int, optional
        Agents whose replies a shielded agent sees, in this order; the others in their order if left out.
    confidence : bool
        Whether agents tell how sure they are.

    Returns
    -------
    (str, str)

    Examples
    --------
    >>> from analysis.collect.pools import Item
    >>> item = Item("q", "1+1?", ("1", "2"), "B", "mine", "MIT")
    >>> _, user = round_prompt(load(), item, "peer", agent=2, round=1, texts=["It is B.", None])
    >>> "Expert 1:\\nIt is B." in user, "(no answer was given)" in user
    (True, True)
    """
    missing = fill(card, "reply.missing")
    own = texts[agent - 1]
    if arm == "shielded":
        order = [other for other in range(1, len(texts) + 1) if other != agent] if shown is None else shown
        notes = [shield(texts[other - 1] or "") for other in order]
        said = [fill(card, "shielded.said", text=note) for note in notes if note]
        responses = "\n\n".join(said) or missing
    else:
        responses = "\n\n".join(
            fill(card, "reply.said", agent=number, text=text or missing)
            for number, text in enumerate(texts, 1)
        )
    common = {"agent": agent, "n_agents": len(texts), "round": round}
    return (
        fill(card, f"{arm}.system", **common),
        fill(
            card,
            f"{arm}.user",
            item=item_text(card, item),
            answer=answer_text(card, item, confidence),
            responses=responses,
            own=fill(card, "reply.own", text=own or missing),
            **common,
        ),
    )


def shield(text):
    """A reply without the lines that state an answer.

    Examples
    --------
    >>> shield("Water boils at 100 C at sea level.\\nSo the answer is B.\\nFinal Answer: B")
    'Water boils at 100 C at sea level.'
    """
    return "\n".join(line for line in text.split("\n") if not _STATES_ANSWER.search(line)).strip()
