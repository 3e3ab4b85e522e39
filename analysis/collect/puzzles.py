"""A pool made here: arithmetic and logic items whose wrong options are plausible slips."""

import random
from itertools import count, pairwise

from analysis.collect.pools import LETTERS, MADE_HERE, Item
from analysis.errors import choice

NAMES = ("Ana", "Ben", "Chloe", "Dario", "Elif", "Femi", "Goran", "Hana", "Ivo", "Jun")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DIFFICULTIES = (1, 2, 3)


def make(n, *, kind="mixed", seed=0, difficulty=None):
    """Make items.

    Parameters
    ----------
    n : int
        How many; the first k of n items are the same whatever n.
    kind : {"arithmetic", "logic", "mixed"}
        Mixed items take turns.
    seed : int
        Items depend on it and on their place alone.
    difficulty : {1, 2, 3}, optional
        The three take turns if left out.

    Returns
    -------
    list of Item
        4 to 10 options each, the right one at any place.

    Raises
    ------
    ValueError
        Unknown kind or difficulty, or n below 1.

    Examples
    --------
    >>> item = make(1, kind="arithmetic", seed=1, difficulty=1)[0]
    >>> item.question
    'What is 65 + 29 - 20?'
    >>> dict(zip(item.labels, item.options))[item.gold]
    '74'
    """
    choice("kind", kind, MADE_HERE)
    choice("difficulty", difficulty, (None, *DIFFICULTIES))
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1")
    return [_item(place, kind, seed, difficulty) for place in range(n)]


def _item(place, kind, seed, difficulty):
    if kind == "mixed":
        kind = ("arithmetic", "logic")[place % 2]
        turn = place // 2
    else:
        turn = place
    difficulty = difficulty or DIFFICULTIES[turn % 3]
    dice = random.Random(f"{kind}/{difficulty}/{seed}/{place}")
    question, right, slips = MAKERS[kind, difficulty](dice)
    n_options = dice.randint(4, len(LETTERS)) if isinstance(right, int) else 1 + len(slips)
    wrong = _wrong(right, slips, n_options - 1, dice) if isinstance(right, int) else slips
    options = [right, *wrong]
    dice.shuffle(options)
    return Item(
        id=f"{kind}-{difficulty}-{seed}-{place}",
        question=question,
        options=tuple(map(str, options)),
        gold=LETTERS[options.index(right)],
        source="made here",
        licence="MIT",
        category=f"{kind}, difficulty {difficulty}",
    )


def _wrong(right, slips, n, dice):
    """The slips first, then numbers near the right one; all distinct, none negative."""
    wrong = []
    near = (right + sign * step for step in count(1) for sign in dice.sample((1, -1), 2))
    for value in slips:
        if value != right and value >= 0 and value not in wrong:
            wrong.append(value)
    wrong = wrong[:n]
    while len(wrong) < n:
        value = next(near)
        if value >= 0 and value not in wrong:
            wrong.append(value)
    return wrong


# --- arithmetic: question, right answer, slips --------------------------------------------------------------


def _sum(dice):
    a, b = dice.randint(12, 89), dice.randint(12, 89)
    c = dice.randint(11, a + b - 1 if a + b < 60 else 59)
    right = a + b - c
    # a carry forgotten or made twice, a sign misread, the last term forgotten
    return f"What is {a} + {b} - {c}?", right, [right - 10, right + 10, a + b + c, a - b + c, a + b]


def _boxes(dice):
    boxes, each, loose = dice.randint(6, 19), dice.randint(6, 19), dice.randint(5, 40)
    right = boxes * each + loose
    question = (
        f"A shop has {boxes} boxes with {each} pens in each box, and {loose} pens that are in no box. "
        "How many pens does the shop have?"
    )
    # loose pens forgotten, taken away, or boxed; all numbers added; one box too many or too few
    slips = [
        boxes * each,
        boxes * each - loose,
        boxes * (each + loose),
        boxes + each + loose,
        right + each,
        right - each,
        right + 10,
        right - 10,
    ]
    return question, right, slips


def _brackets(dice):
    a, b, c = dice.randint(12, 49), dice.randint(12, 49), dice.randint(6, 19)
    e = dice.randint(3, 9)
    d = e * dice.randint(4, 19)
    right = (a + b) * c - d // e
    left_to_right = ((a + b) * c - d) // e
    # brackets ignored, worked from left to right, the quotient added, a product off by one factor or by a
    # carry
    slips = [
        a + b * c - d // e,
        left_to_right,
        (a + b) * c + d // e,
        (a + b) * (c + 1) - d // e,
        (a + b) * (c - 1) - d // e,
        right + 100,
        right - 100,
        right + 10,
        right - 10,
    ]
    return f"What is ({a} + {b}) * {c} - {d} / {e}?", right, slips


# --- logic --------------------------------------------------------------------------------------------------


def _race(dice):
    n = dice.randint(4, len(NAMES))
    order = dice.sample(NAMES, n)
    clues = [f"{first} finished directly before {second}." for first, second in pairwise(order)]
    dice.shuffle(clues)
    place = dice.randint(1, n)
    question = (
        f"{_listed(sorted(order))} ran a race, and no two finished together. {' '.join(clues)} "
        f"Who finished in place {place}?"
    )
    return question, order[place - 1], [name for name in order if name != order[place - 1]]


def _listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _overlap(dice):
    both, only_tea, only_coffee, neither = (dice.randint(3, 24) for _ in range(4))
    tea, coffee, people = both + only_tea, both + only_coffee, both + only_tea + only_coffee + neither
    question = (
        f"Of {people} people, {tea} drink tea, {coffee} drink coffee and {both} drink both. "
        "How many drink neither tea nor coffee?"
    )
    # both counted twice or not at all, one drink forgotten, the drinkers counted in place of the others
    slips = [
        people - tea - coffee,
        people - tea - coffee - both,
        people - only_tea - only_coffee,
        people - tea,
        people - coffee,
        people - both,
        tea + coffee - both,
        only_tea + only_coffee,
    ]
    return question, neither, slips


def _weekday(dice):
    today, days, back = dice.randrange(7), dice.randint(30, 200), dice.randint(2, 6)
    right = DAYS[(today - back + days) % 7]
    question = (
        f"Today is {DAYS[today]}. Which day of the week is it {days} days after the day that was "
        f"{back} days before today?"
    )
    others = [day for day in DAYS if day != right]
    dice.shuffle(others)
    return question, right, others


MAKERS = {
    ("arithmetic", 1): _sum,
    ("arithmetic", 2): _boxes,
    ("arithmetic", 3): _brackets,
    ("logic", 1): _race,
    ("logic", 2): _overlap,
    ("logic", 3): _weekday,
}
