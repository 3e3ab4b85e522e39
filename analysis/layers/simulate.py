"""Committees and stance reads with known truth: what an estimator should find is set beforehand.

A `Setting` holds the set values, `truth` what each estimator has to recover, exactly. Several runs of a study
can be made at once: ids then start with the number of the run and a slash.
"""

from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
from scipy.optimize import elementwise
from scipy.special import log_softmax

from analysis.errors import DataError
from analysis.layers import stance
from analysis.layers.agreement import coefficients
from analysis.layers.distributions import expectation, softmax
from analysis.layers.judge import MOVES, payload_hash
from analysis.layers.selfreport import LEVELS, STANCES
from analysis.layers.stance_reads import N_OPTIONS

MEMBERS = ("a", "b", "c")
SHORT_OF_FULL = (0.3, 0.5, 0.2)  # severities 1, 2 and 3 of a turn that does not fully agree
SHARED_EFFECT = 0.6  # of the spread of a proposition that all kinds of argument share
TILT_RANGE = (-6.0, 6.0)


@dataclass(frozen=True)
class Setting:
    """The set values of a simulated study.

    Parameters
    ----------
    questions, iterations : int
        Questions a run, and debate rounds after the opening statements.
    agree : dict of str to float
        By stance, the mean share of turns whose text fully agrees.
    agree_spread : float
        Half width of the debates' own deviations from it.
    label_inflation : float
        Share of agreeing texts that a hostile member labels as dissent all the same.
    default_share : dict of str to float
        By stance, share of turns whose label is the default of the form ("fully_agreed"), not the member's.
    judge_bias : float
        Share of agreeing texts that the blind judge takes for dissent, whatever the stance.
    persistence, stance_dependence : float
        Share of dissent that is repeated when the instruction stays, and how much less when it is removed.
    dependence_spread : float
        Half width of the questions' deviations from both.
    propositions : int
        Propositions a run; `opponents` x two stances x three kinds make the cells of each.
    conviction : dict of str to float
        By kind of argument, the change of the own margin, nats.
    direction : dict of str to float
        By kind of argument, the heat-free shift towards the opponent, scale points at temperature 2.
    conviction_spread, direction_spread : float
        Half width of the propositions' own deviations.
    heat : float
        How much hotter every treated read is than its control.
    pole_share : float
        Share of propositions whose prior is at an end of the scale.

    Raises
    ------
    ValueError
        On values that leave a probability outside 0..1.

    Examples
    --------
    >>> Setting(agree={"friendly": 0.95, "neutral": 0.5, "hostile": 0.3})
    Traceback (most recent call last):
    ValueError: agree['friendly']=0.95 with agree_spread=0.15: expected shares that stay within 0..1
    """

    questions: int = 50
    iterations: int = 2
    agree: dict = field(default_factory=lambda: {"friendly": 0.8, "neutral": 0.55, "hostile": 0.35})
    agree_spread: float = 0.15
    label_inflation: float = 0.2
    default_share: dict = field(default_factory=lambda: dict.fromkeys(STANCES, 0.0))
    judge_bias: float = 0.1
    persistence: float = 0.8
    stance_dependence: float = 0.35
    dependence_spread: float = 0.1
    propositions: int = 16
    opponents: int = 2
    conviction: dict = field(default_factory=lambda: {"strong": -1.4, "weak": -1.0, "irrelevant": -0.4})
    direction: dict = field(default_factory=lambda: {"strong": 0.5, "weak": 0.3, "irrelevant": 0.0})
    conviction_spread: float = 0.5
    direction_spread: float = 0.25
    heat: float = 1.3
    pole_share: float = 0.0

    def __post_init__(self):
        for name, count in (("questions", self.questions), ("iterations", self.iterations),
                            ("propositions", self.propositions), ("opponents", self.opponents)):
            if count < 1:
                raise ValueError(f"{name}={count}: expected at least 1")
        for arm, share in self.agree.items():
            if not self.agree_spread <= share <= 1 - self.agree_spread:
                raise ValueError(f"agree[{arm!r}]={share} with agree_spread={self.agree_spread}: expected "
                                 "shares that stay within 0..1")
        for name in ("label_inflation", "judge_bias", "pole_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)}: expected a share within 0..1")
        low, room = self.persistence - self.stance_dependence, 2 * self.dependence_spread
        if not (room <= low and max(low, self.persistence) <= 1 - room):
            raise ValueError(f"persistence={self.persistence}, stance_dependence={self.stance_dependence} "
                             f"with dependence_spread={self.dependence_spread}: expected shares that stay "
                             "within 0..1")
        if self.heat <= 0:
            raise ValueError(f"heat={self.heat}: expected a positive number")


def truth(setting):
    """What the estimators have to recover.

    Parameters
    ----------
    setting : Setting

    Returns
    -------
    dict of str to float
        ``self_drop, blind_drop`` (friendly minus hostile full agreement, explicit labels and judge's labels),
        ``text_drop`` (of the texts themselves), ``blind_over_self``, ``self_minus_blind``, ``judge_ac1`` and
        ``judge_kappa`` (two judges, all stances; quadratic weights), ``removed_minus_retained``,
        ``draw1_minus_draw2``, ``conviction`` and ``direction`` (on-topic arguments),
        ``strong_minus_irrelevant``, ``strong_minus_weak``.

    Examples
    --------
    >>> found = truth(Setting())
    >>> round(found["self_drop"], 3), round(found["blind_drop"], 3), round(found["blind_over_self"], 3)
    (0.52, 0.405, 0.779)
    """
    friendly, hostile = setting.agree["friendly"], setting.agree["hostile"]
    text = friendly - hostile
    own = friendly - hostile * (1 - setting.label_inflation)
    blind = (1 - setting.judge_bias) * text
    judged = _judges_table(setting)
    shift, margin = setting.direction, setting.conviction
    return {
        "text_drop": text, "self_drop": own, "blind_drop": blind,
        "blind_over_self": blind / own if own else np.nan, "self_minus_blind": own - blind,
        "judge_ac1": float(coefficients(judged, "ac1")),
        "judge_kappa": float(coefficients(judged, "quadratic_kappa")),
        "removed_minus_retained": 0.0 - setting.stance_dependence, "draw1_minus_draw2": 0.0,
        "conviction": (margin["strong"] + margin["weak"]) / 2,
        "direction": (shift["strong"] + shift["weak"]) / 2,
        "strong_minus_irrelevant": shift["strong"] - shift["irrelevant"],
        "strong_minus_weak": shift["strong"] - shift["weak"],
    }


def _judges_table(setting):
    """Return the expected table of two judges' severities, as shares of the turns."""
    agreeing = np.mean([setting.agree[arm] for arm in STANCES])
    table = np.diag([0.0, *(1 - agreeing) * np.array(SHORT_OF_FULL)])
    misread = np.array([1 - setting.judge_bias, 0, setting.judge_bias, 0])
    return table + agreeing * np.outer(misread, misread)


def _names(prefix, runs, n):
    """Return ids "run/prefix" by run and number; without the run if there is one only."""
    numbers = np.char.add(prefix, np.arange(n).astype(str))
    if runs == 1:
        return numbers[None, :].astype(object)
    return np.char.add(np.char.add(np.arange(runs).astype(str), "/")[:, None],
                       numbers[None, :]).astype(object)


def _join(*parts):
    """Join arrays of names elementwise, with a dash."""
    out = np.asarray(parts[0], dtype=object)
    for part in parts[1:]:
        out = out + "-" + np.asarray(part, dtype=object)
    return out


# --- debates, labels and judgements -------------------------------------------------------------------------

def debates(setting, *, runs=1, judges=1, seed=0):
    """Debates of stance-instructed committees with self-reports, and a blind judge's reading of every reply.

    Parameters
    ----------
    setting : Setting
    runs : int
    judges : int
        Blind judges, each with the same bias and errors of its own.
    seed : int or sequence of int

    Returns
    -------
    dict of str to DataFrame
        ``debates``, ``turns`` and ``judgements`` as in the records. `turns` also holds ``question_id,
        stance`` and ``text_severity``, what the text really says.

    Notes
    -----
    A debate's share of agreeing texts is its own, so turns of one debate go together and debates of a
    question do not: that is what makes the question the unit.

    Examples
    --------
    >>> made = debates(Setting(questions=2, iterations=1))
    >>> {name: len(frame) for name, frame in made.items()}
    {'debates': 6, 'turns': 36, 'judgements': 18}
    """
    rng = np.random.default_rng(seed)
    n, per = setting.questions, len(MEMBERS)
    question = np.repeat(_names("q", runs, n).ravel(), len(STANCES))
    arm = np.tile(STANCES, runs * n).astype(object)
    debate = _join(question, arm)
    frame = pd.DataFrame({
        "debate_id": debate, "question_id": question, "composition": "simulated", "stance": arm,
        "timing": "per_turn", "max_iterations": setting.iterations, "status": "completed",
        "synthesis_text": ""})
    share = frame["stance"].map(setting.agree).to_numpy() + setting.agree_spread * rng.uniform(-1, 1,
                                                                                               len(frame))

    layers = setting.iterations + 1
    at = np.repeat(np.arange(len(frame)), layers * per)
    iteration = np.tile(np.repeat(np.arange(layers), per), len(frame))
    member = np.tile(np.arange(per), len(frame) * layers)
    names = np.array(MEMBERS, dtype=object)
    number = iteration.astype(str).astype(object)
    turn = _join(debate[at], number, names[member])
    # Everybody answers the next member's turn of the round before.
    parent = _join(debate[at], (iteration - 1).astype(str).astype(object), names[(member + 1) % per])
    reply = iteration > 0

    severity = np.where(rng.random(len(at)) < share[at], 0, rng.choice([1, 2, 3], len(at), p=SHORT_OF_FULL))
    hostile = arm[at] == "hostile"
    inflated = hostile & (severity == 0) & (rng.random(len(at)) < setting.label_inflation)
    label = np.where(inflated, 2, severity)
    default = rng.random(len(at)) < frame["stance"].map(setting.default_share).to_numpy()[at]
    label = np.where(default, 0, label)
    moved = np.where(severity == 0, rng.choice(3, len(at), p=(0.2, 0.4, 0.4)) + 2,
                     rng.choice(2, len(at), p=(0.7, 0.3)))

    turns = pd.DataFrame({
        "turn_id": turn, "debate_id": debate[at], "question_id": question[at], "stance": arm[at],
        "composition": "simulated", "timing": "per_turn", "status": "completed", "member_id": names[member],
        "parent_id": np.where(reply, parent, None), "iteration": iteration, "text": turn,
        "agreed_level": np.where(reply, np.array(LEVELS, dtype=object)[label], None),
        "agreed_level_explicit": reply & ~default,
        "opinion_shift": pd.array(np.where(reply, rng.binomial(4, 0.2 + 0.05 * severity), -1), dtype="Int64"),
        "text_severity": severity})
    turns["opinion_shift"] = turns["opinion_shift"].mask(~reply)
    judgements = []
    for judge in range(judges):
        judged = np.where((severity == 0) & (rng.random(len(at)) < setting.judge_bias), 2, severity)
        judgements.append(pd.DataFrame({
            "turn_id": turn, "judge_model": f"judge{judge}", "judge_family": f"outside{judge}",
            "severity": judged,
            "move_type": np.array(MOVES, dtype=object)[moved],
            "payload_hash": _join("payload", turn)})[reply])
    judgements = pd.concat(judgements, ignore_index=True)
    return {"debates": frame, "turns": turns, "judgements": judgements}


def requeries(turns, setting, *, seed=0):
    """Paired re-queries of the dissenting turns of a simulated study.

    Parameters
    ----------
    turns : DataFrame
        From `debates`. Targets are the explicit labels of dissent at iteration 1, hostile and neutral.
    setting : Setting
    seed : int or sequence of int

    Returns
    -------
    DataFrame
        As in the records: a hostile target is asked again with and without its instruction, a neutral one
        twice in the same words.

    Examples
    --------
    >>> setting = Setting(questions=4)
    >>> made = requeries(debates(setting)["turns"], setting)
    >>> made.groupby(["stance_arm", "leg"]).turn_id.nunique().groupby("stance_arm").nunique().tolist()
    [1, 1]
    """
    rng = np.random.default_rng(seed)
    dissents = turns["agreed_level"].isin(LEVELS[2:]) & turns["agreed_level_explicit"].astype(bool)
    target = turns[dissents & (turns["iteration"] == 1) & turns["stance"].isin(("hostile", "neutral"))]
    question, names = pd.factorize(target["question_id"])
    spread = setting.dependence_spread * rng.uniform(-1, 1, (2, len(names)))
    with_it = setting.persistence + spread[0][question]
    hostile = (target["stance"] == "hostile").to_numpy()
    without = with_it - np.where(hostile, setting.stance_dependence + spread[1][question], 0.0)
    persists = rng.random((2, len(target))) < np.array([without, with_it])
    legs = {"hostile": ("removed", "retained"), "neutral": ("draw1", "draw2")}
    out = []
    for i in range(2):
        out.append(pd.DataFrame({
            "turn_id": target["turn_id"].to_numpy(), "question_id": target["question_id"].to_numpy(),
            "stance_arm": target["stance"].to_numpy(),
            "leg": target["stance"].map({arm: leg[i] for arm, leg in legs.items()}).to_numpy(),
            "iteration": 1, "own_opinion_exact": True,
            "agreed_level": np.where(persists[i], LEVELS[2], LEVELS[1]), "agreed_level_explicit": True,
            "text": ""}))
    return pd.concat(out, ignore_index=True)


# --- stance reads -------------------------------------------------------------------------------------------

def likert(setting, *, runs=1, seed=0):
    """Seven-option reads and cells whose conviction and heat-free direction are set.

    Parameters
    ----------
    setting : Setting
    runs : int
    seed : int or sequence of int

    Returns
    -------
    reads, cells : DataFrame
        As in the records, of one receiver a run ("receiver", with several runs "receiver/0" and so on).
        `cells` also holds ``set_conviction`` and ``set_direction``, the value of every cell.

    Raises
    ------
    DataError
        Where no read has both the set margin and the set shift.

    Notes
    -----
    A treated read is its control heated, tilted towards the opponent and raised or lowered at the own option:
    the last sets the margin, and the tilt is solved so that the heat-free shift is the set one.

    Examples
    --------
    >>> reads, cells = likert(Setting(propositions=3), seed=1)
    >>> table = stance.read_cells(reads, cells)
    >>> bool(abs(table.conviction_own - table.set_conviction).max() < 1e-9)
    True
    >>> bool(abs(table.heat_free_shift - table.set_direction).max() < 1e-6)
    True
    """
    rng = np.random.default_rng(seed)
    n, options = setting.propositions, np.arange(1, N_OPTIONS + 1)
    arms = [(opponent, arm, kind) for opponent in range(setting.opponents) for arm in stance.STANCES
            for kind in stance.KINDS]
    units = runs * n
    own = np.where(rng.random(units) < setting.pole_share, rng.choice([1, 7], units),
                   rng.choice([2, 3, 5, 6], units))
    slope = rng.uniform(1.2, 2.2, units)
    prior = -slope[:, None] * np.abs(options - own[:, None]) + rng.uniform(-0.1, 0.1, (units, len(options)))
    pole = np.where(own < stance.MIDDLE, 1, -1)

    unit = np.repeat(np.arange(units), len(arms))
    kind = np.tile([stance.KINDS.index(a[2]) for a in arms], units)
    control = prior[unit] + rng.uniform(-0.1, 0.1, (len(unit), len(options)))
    wanted = {}
    for name, values, spread in (("conviction", setting.conviction, setting.conviction_spread),
                                 ("direction", setting.direction, setting.direction_spread)):
        shared = rng.uniform(-1, 1, units)[unit] * SHARED_EFFECT
        apart = rng.uniform(-1, 1, (units, len(stance.KINDS)))[unit, kind] * (1 - SHARED_EFFECT)
        mean = np.array([values[k] for k in stance.KINDS])[kind]
        wanted[name] = mean + spread * (shared + apart + 0.2 * rng.uniform(-1, 1, len(unit)))
    treat = _treated(control, own[unit] - 1, pole[unit], wanted["conviction"], wanted["direction"],
                     setting.heat)

    receiver = np.repeat("receiver", runs) if runs == 1 else np.char.add("receiver/",
                                                                         np.arange(runs).astype(str))
    receiver = receiver.astype(object)[np.arange(units) // n]
    name = _names("p", runs, n).ravel()
    cell = _join(name[unit], np.tile([f"o{o}-{s}-{k}" for o, s, k in arms], units).astype(object))
    parts = [("prior", np.arange(units), prior, _join("prior", name)),
             ("treat", unit, treat, _join("treat", cell)), ("control", unit, control, _join("control", cell))]
    reads = pd.concat([pd.DataFrame({
        "read_id": ids, "receiver_model": receiver[of], "proposition_id": name[of], "phase": phase,
        "generation_mode": "reasoning_off", "probe_mode": "reasoning_off",
        "n_prompt_tokens": 60 if phase == "prior" else 160,
    }).join(pd.DataFrame(log_softmax(read, axis=1) + np.log(rng.uniform(0.8, 0.99, len(of)))[:, None],
                         columns=[f"logprob_{k}" for k in options]))
        for phase, of, read, ids in parts], ignore_index=True)
    cells = pd.DataFrame({
        "receiver": receiver[unit], "opponent": np.tile([f"opponent{a[0]}" for a in arms], units),
        "proposition_id": name[unit], "stance": np.tile([a[1] for a in arms], units),
        "kind": np.array(stance.KINDS)[kind], "pole": pole[unit], "prior": _join("prior", name[unit]),
        "treat": _join("treat", cell), "control": _join("control", cell),
        "set_conviction": wanted["conviction"], "set_direction": wanted["direction"]})
    return reads, cells


def _treated(control, own, pole, conviction, direction, heat):
    """Return reads with these changes of the own margin and these heat-free shifts, shape of `control`."""
    at_own = np.arange(N_OPTIONS) == own[:, None]
    margin = stance.own_margin(control, own) + conviction
    slope = pole[:, None] * (np.arange(1, N_OPTIONS + 1) - stance.MIDDLE)

    def read(tilt, i):
        tilted = control[i] / heat + tilt[..., None] * slope[i]
        lift = margin[i] - stance.own_margin(tilted, own[i])
        return tilted + np.where(at_own[i], lift[..., None], 0.0)

    def off(tilt, i):
        i = i.astype(int)
        treated = read(tilt, i)
        ratio, _ = stance.heat_match(control[i], treated)
        heated = expectation(softmax(control[i],
                                     stance.READ_T * np.nan_to_num(ratio, nan=stance.HEAT_RANGE[1])))
        return pole[i] * (expectation(softmax(treated, stance.READ_T)) - heated) - direction[i]

    rows = np.arange(len(control))
    found = elementwise.find_root(off, TILT_RANGE, args=(rows.astype(float),), maxiter=100,
                                  tolerances={"xatol": 1e-9, "xrtol": 1e-9, "fatol": 1e-9, "frtol": 0})
    failed = ~found.success & ~(np.abs(found.f_x) < 1e-6)
    if failed.any():
        at = int(failed.argmax())
        raise DataError(f"setting: no read has both a change of the margin by {conviction[at]:.3g} nats and "
                        f"a shift by {direction[at]:.3g} scale points, expected smaller values")
    return read(found.x, rows)


def study(setting, *, seed=0):
    """All records of one simulated study.

    Parameters
    ----------
    setting : Setting
    seed : int or sequence of int

    Returns
    -------
    dict of str to DataFrame
        ``debates, turns, judgements, requeries, reads, cells``, as they are stored: with the digest of what
        the judge saw, and the log-probabilities of a read as a list.

    Examples
    --------
    >>> sorted(study(Setting(questions=2, propositions=2)))
    ['cells', 'debates', 'judgements', 'reads', 'requeries', 'turns']
    """
    made = debates(setting, seed=seed)
    turns = made["turns"].set_index("turn_id")
    parent = turns["parent_id"].map(turns["text"])
    seen = [payload_hash(parent[turn], turns["text"][turn]) for turn in made["judgements"]["turn_id"]]
    made["judgements"] = made["judgements"].assign(payload_hash=seen)
    reads, cells = likert(setting, seed=seed)
    letters = reads.filter(regex="^logprob_")
    reads = reads.drop(columns=letters.columns).assign(logprob=letters.to_numpy().tolist())
    return made | {"requeries": requeries(made["turns"], setting, seed=seed), "reads": reads, "cells": cells}


def describe(setting):
    """The set values of a setting on one line, those that differ from the default.

    Parameters
    ----------
    setting : Setting

    Returns
    -------
    str

    Examples
    --------
    >>> describe(Setting(judge_bias=0.3)), describe(Setting())
    ('judge_bias=0.3', 'default')
    """
    base = asdict(Setting())
    changed = [f"{name}={value}" for name, value in asdict(setting).items() if value != base[name]]
    return ", ".join(changed) or "default"
