"""The prompt card: complete or refused, hashed, gated texts marked, nothing lost when it is filled."""

import hashlib
import re

import pytest

from analysis.collect import prompts
from analysis.collect.pools import Item
from analysis.errors import DataError

ITEM = Item("q", "What is in {item}? {0} \\n $x$", ("{a}", "b"), "B", "mine", "MIT")
NUMBER = Item("n", "How many?", (), "7", "mine", "MIT")


def test_the_card_is_identified_by_its_bytes():
    card = prompts.load()
    assert card.sha256 == hashlib.sha256(prompts.DEFAULT.read_bytes()).hexdigest()
    assert card.told == {"name": "debate-ledger", "version": "1.0", "sha256": card.sha256}


def test_texts_that_argue_or_report_a_majority_are_gated_and_nothing_else():
    hidden = {key for key, text in prompts.open_texts(prompts.load()).items() if text is None}
    assert hidden == {key for key in prompts.TEXTS if key.startswith(("probe.argument.", "probe.social."))}


def test_braces_of_questions_and_replies_survive():
    card = prompts.load()
    _, user = prompts.initial_prompt(card, ITEM, agent=1, n_agents=3)
    assert ITEM.question in user and "A. {a}" in user
    _, user = prompts.round_prompt(card, ITEM, "peer", agent=1, round=1, texts=["{own} {agent}", "y"])
    assert "{own} {agent}" in user


@pytest.mark.parametrize("arm", prompts.ARMS)
def test_what_each_arm_shows(arm):
    card = prompts.load()
    texts = ["first says so.\nFinal Answer: A", "second objects.\nFinal Answer: B", None]
    system, user = prompts.round_prompt(card, ITEM, arm, agent=2, round=1, texts=texts, shown=[3, 1])
    shows_others = arm not in ("private", "self_review")
    assert ("first says so." in user) == shows_others
    assert "second objects." in user
    assert user.count("Final Answer: A\n") == (arm in ("peer", "independence"))
    assert ("Expert 1" in user) == (arm in ("peer", "independence"))
    assert ITEM.question in user and "A, B" in user
    assert not re.search(r"\{\w+\}", system)


def test_numbers_are_asked_for_where_there_are_no_options():
    _, user = prompts.initial_prompt(prompts.load(), NUMBER, agent=1, n_agents=1, confidence=True)
    assert "number" in user and "Confidence:" in user and "letters" not in user


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "debate-ledger"', "", "field 'name': None"),
        ('repair = "', 'mend = "', "text 'probe.mend': not one that a card has"),
        ("{responses}", "{answers}", "lacks {responses}"),
        ("You are Expert {agent}.", "You are Expert {who}.", "unknown placeholder {who}"),
        ('gated = ["probe.argument"', 'gated = ["probe.arguments"', "'probe.arguments' names no text"),
        ("[item]", "[item", "not a TOML file"),
    ],
)
def test_a_card_that_cannot_be_used_is_refused(tmp_path, old, new, message):
    path = tmp_path / "card.toml"
    text = prompts.DEFAULT.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        prompts.load(path)
