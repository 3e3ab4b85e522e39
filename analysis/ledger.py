"""The transition ledger: answers to debates (one line each) to rows (one line a model-scaffold row).

A debate ends in one of four cells by the correctness of its first and its last majority: preserved, collapse, correction, unrepaired.
The module sees answers and gold labels only; it knows no models, families or files.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3 and 3.3.
"""

import numpy as np
import pandas as pd

from analysis import stats
from analysis.errors import DataError, choice
from analysis.records import exact_ids

TIES = ("alphabetic", "undecided", "expected")
MISSING = ("initially_wrong", "drop", "undecided")
CELLS = ("preserved", "collapse", "correction", "unrepaired")
KEY = ["row", "question", "replicate"]
NO_LABEL = -1
TIED = -2


# --- votes -----------------------------------------------------------------------------------------------------------


def _codes(column):
    """Integer codes in label order (missing is NO_LABEL) and the sorted labels."""
    labels = pd.Categorical(column)
    if not labels.categories.is_monotonic_increasing:
        labels = labels.reorder_categories(sorted(labels.categories))
    return labels.codes.astype(np.int32), np.asarray(labels.categories, dtype=object)


def _grid(part):
    """One row's answers as an array (debates, rounds, agents) of label codes, with what names its axes.

    Debates keep the order in which they first appear; rounds and agents are sorted. A cell that has no line is a missing answer.
    """
    answer, labels = _codes(part["answer"])
    agent, agents = _codes(part["agent"])
    rounds, round_at = _steps(part["round"].to_numpy(np.int64))
    question, questions = pd.factorize(part["question"])
    replicate = part["replicate"].to_numpy(np.int64)
    span = replicate.max() + 1
    debate, keys = (question, np.arange(len(questions))) if span == 1 else pd.factorize(question * span + replicate)
    shape = len(keys), len(rounds), len(agents)
    cell = (debate * shape[1] + round_at) * shape[2] + agent
    grid = np.full(shape, NO_LABEL, dtype=np.int32)
    seen = np.zeros(grid.size, dtype=bool)
    seen[cell] = True
    if seen.sum() != len(cell):
        at = part.iloc[np.flatnonzero(pd.Series(cell).duplicated().to_numpy())[0]]
        raise DataError(
            f"row {at['row']!r}, question {at['question']!r}, replicate {at['replicate']}, round {at['round']}: "
            f"agent {at['agent']!r} answers twice; expected one answer per agent and round"
        )
    grid.reshape(-1)[cell] = answer
    first = np.full(len(keys), -1, dtype=np.int64)
    first[debate[::-1]] = np.arange(len(debate))[::-1]
    lines = pd.DataFrame({
        "row": part["row"].iloc[0],
        "question": pd.Series(questions.take(keys // span), dtype="str"),
        "replicate": keys % span,
    })
    return grid, labels, rounds, lines, (debate, first)


def _checked(answers, labels):
    """Answers with every column that counting needs; labels as text, a blank one being none."""
    if answers.empty:
        raise DataError("no answers: expected at least one debate")
    lacking = [name for name in ("question", "round", "agent", *labels) if name not in answers]
    if lacking:
        raise DataError(f"columns missing: {', '.join(lacking)}; found {', '.join(map(str, answers.columns))}")
    out = answers.assign(**{name: 0 if name == "replicate" else "row" for name in ("row", "replicate") if name not in answers})
    for name in ("row", "question", "agent", "round", "replicate"):
        if out[name].isna().any():
            at = int(np.flatnonzero(out[name].isna())[0])
            raise DataError(f"line {at + 1} of the answers, field {name!r}: missing; expected a value on every line")
    for name in labels:
        kinds = out[name].cat.categories if isinstance(out[name].dtype, pd.CategoricalDtype) else out[name]
        if not pd.api.types.is_string_dtype(kinds) or kinds.dtype == object:
            out[name] = exact_ids(out[name])
        blank = out[name].isin(["", " "])
        if blank.any():
            out[name] = out[name].where(~blank)
    return out


def _steps(rounds):
    """Round numbers that occur, ascending, and each line's place among them (np.unique would sort every line)."""
    code, found = pd.factorize(rounds)
    order = np.argsort(found)
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    return found[order], place[code]


def _vote(grid):
    """Count a grid's votes: top count, smallest leading label, number of tied labels, valid answers, leaders' mask."""
    valid = grid != NO_LABEL
    count = np.zeros(grid.shape, dtype=np.int16)
    for agent in range(grid.shape[-1]):
        count[..., agent] = (grid == grid[..., agent : agent + 1]).sum(-1)
    count[~valid] = 0
    top = count.max(-1)
    leads = (count == top[..., None]) & valid
    leader = np.where(leads, grid, np.iinfo(grid.dtype).max).min(-1)
    leader[top == 0] = NO_LABEL
    n_tied = leads.sum(-1) // np.maximum(top, 1)
    return top, leader, n_tied, valid.sum(-1), leads


def _decide(top, leader, n_tied, n_valid, n_agents, *, tie, rule, denominator):
    """Leading label where the rule elects one, NO_LABEL elsewhere."""
    elected = leader.copy()
    if tie != "alphabetic":
        elected[n_tied > 1] = NO_LABEL
    if rule == "strict":
        cast = n_valid if denominator == "valid" else n_agents
        elected[2 * top <= cast] = NO_LABEL
    return elected


def _take(labels, codes):
    """Labels for codes; NO_LABEL gives a missing value."""
    return pd.Series(np.append(labels, np.nan)[codes], dtype="str")


def majority(answers, tie="alphabetic", rule="plurality", denominator="valid"):
    """Elect one label per debate and round.

    Parameters
    ----------
    answers : DataFrame
        Long answers: `row, question, replicate, round, agent, answer`; a missing answer is no vote.
    tie : {"alphabetic", "undecided", "expected"}
        Label of a tied vote: the alphabetically first (the paper), or none (the other two).
    rule : {"plurality", "strict"}
        Most votes, or more than half of the denominator.
    denominator : {"valid", "all"}
        What `rule="strict"` halves: votes cast or agents.

    Returns
    -------
    DataFrame
        `row, question, replicate, round, majority` (missing where none is elected), `votes` for the leading label, `n_tied` leading
        labels, `n_valid` votes, `n_agents`. Debates in order of first appearance, rounds ascending.

    Raises
    ------
    DataError
        An agent answers twice in a round.
    ValueError
        An option is not one of those listed.

    References
    ----------
    Section 3.1, operational coding rules.

    Examples
    --------
    >>> votes = pd.DataFrame({"row": "m", "question": "q1", "replicate": 0, "round": 0, "agent": ["1", "2"], "answer": ["C", "B"]})
    >>> majority(votes)["majority"].tolist(), majority(votes, tie="undecided")["majority"].tolist()
    (['B'], [nan])
    """
    choice("tie", tie, TIES)
    choice("rule", rule, ("plurality", "strict"))
    choice("denominator", denominator, ("valid", "all"))
    parts = []
    for _, part in _checked(answers, ("answer",)).groupby("row", sort=False, observed=True):
        grid, labels, rounds, lines, _ = _grid(part)
        top, leader, n_tied, n_valid, _ = _vote(grid)
        elected = _decide(top, leader, n_tied, n_valid, grid.shape[2], tie=tie, rule=rule, denominator=denominator)
        out = lines.loc[lines.index.repeat(len(rounds))].reset_index(drop=True)
        out["round"] = np.tile(rounds, len(lines))
        out["majority"] = _take(labels, elected.reshape(-1))
        out["votes"] = top.reshape(-1).astype(int)
        out["n_tied"] = np.where(top > 0, n_tied, 0).reshape(-1)
        out["n_valid"] = n_valid.reshape(-1)
        out["n_agents"] = grid.shape[2]
        parts.append(out)
    return _concat(parts)


# --- debates ---------------------------------------------------------------------------------------------------------


def debates(answers, tie="alphabetic", missing="initially_wrong", endpoint=None):
    """Reduce answers to one line a debate.

    Parameters
    ----------
    answers : DataFrame
        Long answers with `gold`; or a frame already in debate shape (a released feature matrix), which is recoded as far as its
        columns allow.
    tie : {"alphabetic", "undecided", "expected"}
        A tied vote goes to the alphabetically first label (the paper), counts as wrong, or earns 1/k credit if one of its k labels is
        right.
    missing : {"initially_wrong", "drop", "undecided"}
        A vote without any answer is wrong; or the debate is dropped if its first or last vote has none; or the vote is neither right
        nor wrong: such a first vote is in neither denominator, such a last vote is neither collapse nor correction.
    endpoint : int, optional
        Round that counts as the last; each row's last round unless given.

    Returns
    -------
    DataFrame
        `row, question, replicate, gold, n_agents, endpoint`; for each round k `majority_k` (label), `correct_k` (bool; nullable under
        ``missing="undecided"``; credit in [0, 1] under ``tie="expected"``), `agree_k` (largest group of equal answers over all agents,
        no answer counting as an answer), `n_valid_k`; `unanimous_0`; for k >= 1 `changed_k` (majority differs from the round before),
        `n_flipped_k` (agents whose two latest answers are both there and differ); `cell` and `onset` (first round with a wrong
        majority; collapses only). Under ``tie="expected"`` a debate with a fractional credit at either end has no single cell.
        ``attrs["dropped"]`` counts the debates dropped.

    Raises
    ------
    DataError
        An agent answers twice, a debate has two gold labels or none, Round 0 or the endpoint is not there.
    ValueError
        An option is not one of those listed, or a feature matrix cannot answer it.

    References
    ----------
    Section 3.1; expected tie scoring: section G.5; codings of a missing majority: appendix D and E.

    Examples
    --------
    >>> said = pd.DataFrame({"row": "m", "question": "q1", "replicate": 0, "round": [0, 0, 0, 1, 1, 1], "agent": list("123123"),
    ...                      "answer": list("AABABB"), "gold": "A"})
    >>> debates(said)[["majority_0", "majority_1", "cell", "onset"]].to_dict("records")
    [{'majority_0': 'A', 'majority_1': 'B', 'cell': 'collapse', 'onset': 1}]
    """
    choice("tie", tie, TIES)
    choice("missing", missing, MISSING)
    if "answer" not in answers:
        return _recode(answers, tie, missing, endpoint)
    answers = _checked(answers, ("answer", "gold"))
    done = [_debates_of_row(part, tie, missing, endpoint) for _, part in answers.groupby("row", sort=False, observed=True)]
    out = _concat(done)
    out["cell"] = pd.Categorical(out["cell"], categories=CELLS)
    out.attrs["dropped"] = int(sum(part.attrs["dropped"] for part in done))
    return out


def _debates_of_row(part, tie, missing, endpoint):
    grid, labels, rounds, lines, places = _grid(part)
    last = _endpoint(lines["row"].iat[0], rounds, endpoint)
    lines["gold"] = _gold(part, lines, *places)
    gold = pd.Index(labels).get_indexer(lines["gold"])
    top, leader, n_tied, n_valid, leads = _vote(grid)
    elected = _decide(top, leader, n_tied, n_valid, grid.shape[2], tie=tie, rule="plurality", denominator="valid")
    correct = (elected == gold[:, None]) & (elected != NO_LABEL)
    if tie == "expected":
        credit = (leads & (grid == gold[:, None, None])).any(-1) / np.maximum(n_tied, 1)
        correct = np.where(elected == NO_LABEL, credit, correct)
    # A vote that ends in a tie and one without any answer elect nothing, and are still different outcomes.
    outcome = np.where((elected == NO_LABEL) & (n_valid > 0), TIED, elected)
    agree = np.maximum(top, grid.shape[2] - n_valid) / grid.shape[2]
    columns = {"n_agents": grid.shape[2], "endpoint": last}
    for k, r in enumerate(rounds):
        columns[f"majority_{r}"] = _take(labels, elected[:, k])
        columns[f"correct_{r}"] = _undefined(correct[:, k], n_valid[:, k], missing)
        columns[f"agree_{r}"] = agree[:, k]
        columns[f"n_valid_{r}"] = n_valid[:, k]
        if k == 0:
            lowest = np.where(grid[:, 0] == NO_LABEL, np.iinfo(np.int32).max, grid[:, 0]).min(-1)
            columns["unanimous_0"] = (n_valid[:, 0] == 0) | (grid[:, 0].max(-1) == lowest)
        else:
            both = (grid[:, k] != NO_LABEL) & (grid[:, k - 1] != NO_LABEL)
            columns[f"changed_{r}"] = outcome[:, k] != outcome[:, k - 1]
            columns[f"n_flipped_{r}"] = (both & (grid[:, k] != grid[:, k - 1])).sum(-1)
    out = lines.assign(**columns)
    n_all = len(out)
    if missing == "drop":
        at = np.searchsorted(rounds, last)
        out = out[(n_valid[:, 0] > 0) & (n_valid[:, at] > 0)].reset_index(drop=True)
    out = _settle(out)
    out.attrs["dropped"] = n_all - len(out)
    return out


def _endpoint(name, rounds, endpoint):
    if rounds[0] != 0:
        raise DataError(f"row {name!r}: first round is {rounds[0]}; expected Round 0, the independent answers")
    if len(rounds) < 2:
        raise DataError(f"row {name!r}: only Round 0; expected at least one round of debate")
    last = int(rounds[-1]) if endpoint is None else endpoint
    if last not in rounds or last == 0:
        raise DataError(f"row {name!r}: endpoint={endpoint}: expected one of rounds {', '.join(map(str, rounds[1:]))}")
    return last


def _gold(part, lines, debate, first):
    """One gold label a debate, checked."""
    code, labels = _codes(part["gold"])
    gold = code[first]
    bad = np.flatnonzero(code != gold[debate])
    if len(bad):
        at = lines.iloc[debate[bad[0]]]
        found = f"{labels[gold[debate[bad[0]]]]!r} and {part['gold'].iloc[bad[0]]!r}"
        raise DataError(f"row {at['row']!r}, question {at['question']!r}, field 'gold': {found}; expected one label a debate")
    if (gold == NO_LABEL).any():
        at = lines.iloc[int(np.flatnonzero(gold == NO_LABEL)[0])]
        raise DataError(f"row {at['row']!r}, question {at['question']!r}, field 'gold': missing; expected a label")
    return _take(labels, gold)


def _undefined(correct, n_valid, missing):
    if missing != "undecided":
        return correct
    out = pd.array(correct, dtype="Float64" if correct.dtype == float else "boolean")
    out[n_valid == 0] = pd.NA
    return out


def _recode(matrix, tie, missing, endpoint):
    """A feature matrix under other rules: what its columns determine, and a refusal for what they do not."""
    if missing != "initially_wrong":
        raise ValueError(
            f"missing={missing!r}: a feature matrix holds no answers, so a missing majority cannot be told from a wrong one; "
            "expected initially_wrong"
        )
    if tie == "expected":
        raise ValueError("tie='expected': a feature matrix does not say which labels were tied; expected alphabetic or undecided")
    out = matrix.copy()
    if endpoint is None:
        endpoint = max(int(c.removeprefix("correct_")) for c in out if c.startswith("correct_"))
    if f"correct_{endpoint}" not in out or endpoint == 0:
        raise DataError(f"endpoint={endpoint}: the matrix has no column 'correct_{endpoint}'")
    out["endpoint"] = endpoint
    if tie == "undecided":
        if not (out["n_agents"] == 3).all():
            raise ValueError("tie='undecided': in a feature matrix a tie can be recognised for three agents only")
        # Three agents are tied exactly when no two of them share a state: A, B, C or A, B and no answer.
        rounds = range(endpoint + 1)
        tied = {r: out[f"agree_{r}"] < 0.5 for r in rounds}
        for r in rounds:
            out[f"correct_{r}"] &= ~tied[r]
            if r:
                out[f"changed_{r}"] = (tied[r] != tied[r - 1]) | (~tied[r] & out[f"changed_{r}"])
    out = _settle(out)
    out.attrs["dropped"] = 0
    return out


def _settle(out):
    """Add `cell` and `onset` from the correctness of the rounds up to each debate's endpoint."""
    rounds = sorted(int(c.removeprefix("correct_")) for c in out if c.startswith("correct_"))
    right = np.column_stack([as_float(out[f"correct_{r}"]) for r in rounds])
    end = right[np.arange(len(out)), np.searchsorted(rounds, out["endpoint"].to_numpy(int))]
    start = right[:, 0]
    cell = np.select(
        [(start == 1) & (end == 1), (start == 1) & (end == 0), (start == 0) & (end == 1), (start == 0) & (end == 0)],
        CELLS,
        default="",
    )
    out["cell"] = pd.Categorical(np.where(cell == "", None, cell), categories=CELLS)
    within = np.array(rounds)[None, :] <= out["endpoint"].to_numpy(int)[:, None]
    wrong = (right == 0) & within
    first_wrong = np.array(rounds)[wrong.argmax(1)]
    out["onset"] = pd.array(first_wrong, dtype="Int64")
    out.loc[(cell != "collapse"), "onset"] = pd.NA
    return out


def as_float(column):
    """Column of booleans, counts or credits as floats; missing is NaN.

    Examples
    --------
    >>> as_float(pd.Series([True, None], dtype="boolean"))
    array([ 1., nan])
    """
    return column.astype("Float64").to_numpy(dtype=float, na_value=np.nan)


def final_credit(debates):
    """Correctness of each debate at its endpoint (its last told round, if the frame names none) as floats.

    Examples
    --------
    >>> final_credit(pd.DataFrame({"correct_0": [True, True], "correct_1": [False, True], "endpoint": [1, 0]}))
    array([0., 1.])
    """
    rounds = [int(c.removeprefix("correct_")) for c in debates if c.startswith("correct_")]
    end = debates["endpoint"].to_numpy(int) if "endpoint" in debates else np.full(len(debates), max(rounds))
    out = np.full(len(debates), np.nan)
    for k in np.unique(end):
        out = np.where(end == k, as_float(debates[f"correct_{k}"]), out)
    return out


# --- rows ------------------------------------------------------------------------------------------------------------


def summarize(debates, by="row", interval="wilson"):
    """Count the four cells and give each rate with its denominator and interval.

    Parameters
    ----------
    debates : DataFrame
        As `debates` returns them.
    by : str or list of str, optional
        Columns that name a line of the result; None pools everything.
    interval : {"wilson", "jeffreys"}
        95% interval of each rate.

    Returns
    -------
    DataFrame
        `n`, the four cells, `undefined` (debates without a cell), `init_correct`, `init_wrong`, `final_correct`, and the rates
        `init_acc`, `final_acc` (over n), `c_cond` (collapses over initially correct) and `correction_rate` (corrections over initially
        wrong), each with `_low` and `_high`. Counts are whole numbers except under expected tie credit, where a debate
        spreads over the cells as if each tie were broken by an independent fair draw.

    Raises
    ------
    DataError
        All majorities of a line are defined and its accuracy change is not corrections minus collapses.

    References
    ----------
    Equation 7 and section 3.3.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "correct_0": [True, True, False], "correct_1": [True, False, True], "endpoint": 1,
    ...                      "cell": ["preserved", "collapse", "correction"]})
    >>> summarize(seen)[["n", "collapse", "init_correct", "c_cond"]].to_dict("records")
    [{'n': 3, 'collapse': 1, 'init_correct': 2, 'c_cond': 0.5}]
    """
    choice("interval", interval, stats.INTERVALS)
    start, end = as_float(debates["correct_0"]), final_credit(debates)
    fractional = debates["correct_0"].dtype.kind == "f"
    if fractional:
        cells = {"preserved": start * end, "collapse": start * (1 - end), "correction": (1 - start) * end, "unrepaired": (1 - start) * (1 - end)}
    else:
        cells = {cell: (debates["cell"] == cell).to_numpy(float) for cell in CELLS}
    per_debate = pd.DataFrame({
        "n": 1.0,
        **cells,
        "undefined": (np.isnan(start) | np.isnan(end)).astype(float),
        "init_correct": np.nan_to_num(start),
        "init_wrong": np.nan_to_num(1 - start),
        "final_correct": np.nan_to_num(end),
    })
    if by is None:
        out = per_debate.sum().to_frame().T
    else:
        names = [by] if isinstance(by, str) else list(by)
        keys = [debates[name].reset_index(drop=True) for name in names]
        out = per_debate.groupby(keys, sort=False, observed=True).sum().reset_index()
    counts = list(per_debate)
    if not fractional:
        out[counts] = out[counts].astype(int)
    gain, told = out["final_correct"] - out["init_correct"], out["correction"] - out["collapse"]
    broken = (out["undefined"] == 0) & ((gain - told).abs() > 1e-6)
    if broken.any():
        raise DataError(f"accuracy change {gain[broken].iat[0]} is not corrections minus collapses {told[broken].iat[0]}: cells and correctness disagree")
    for rate, k, n in [("init_acc", "init_correct", "n"), ("final_acc", "final_correct", "n"), ("c_cond", "collapse", "init_correct"), ("correction_rate", "correction", "init_wrong")]:
        found = stats.proportion(out[k], out[n], interval=interval)
        out[rate] = found["rate"].to_numpy()
        out[f"{rate}_low"] = found["low"].to_numpy()
        out[f"{rate}_high"] = found["high"].to_numpy()
    return out


def utility(summary, w_collapse=1.0, w_correction=1.0):
    """Score the debate itself against stopping at Round 0.

    Parameters
    ----------
    summary : DataFrame
        As `summarize` returns it.
    w_collapse, w_correction : float
        Value of one collapse avoided and of one correction kept; equal weights are accuracy.

    Returns
    -------
    DataFrame
        The summary's naming columns with `n, collapse, correction, net` (weighted corrections minus weighted collapses), `delta_pp`
        (100 net / n) and `break_even`, the collapse-to-correction value ratio at which debating earns nothing (no collapse: infinite).

    References
    ----------
    Section 3.3, equation 6 with the sign of the debate rather than of a gate.

    Examples
    --------
    >>> utility(pd.DataFrame({"row": ["m"], "n": [10], "collapse": [1], "correction": [3]}))[["net", "delta_pp", "break_even"]].to_dict("records")
    [{'net': 2.0, 'delta_pp': 20.0, 'break_even': 3.0}]
    """
    names = [c for c in summary if c not in _SUMMARY_COLUMNS]
    out = summary[[*names, "n", "collapse", "correction"]].copy()
    out["net"] = w_correction * out["correction"] - w_collapse * out["collapse"]
    out["delta_pp"] = 100 * out["net"] / out["n"]
    with np.errstate(divide="ignore", invalid="ignore"):
        out["break_even"] = out["correction"].to_numpy(float) / out["collapse"].to_numpy(float)
    return out


_RATES = ("init_acc", "final_acc", "c_cond", "correction_rate")
_SUMMARY_COLUMNS = {
    "n", *CELLS, "undefined", "init_correct", "init_wrong", "final_correct",
    *(rate + end for rate in _RATES for end in ("", "_low", "_high")),
}


def onset(debates, by="row"):
    """Count collapses by the round in which the majority first goes wrong.

    Parameters
    ----------
    debates : DataFrame
        As `debates` returns them.
    by : str or list of str, optional
        Columns that name a line; None pools everything.

    Returns
    -------
    DataFrame
        `collapse` (the denominator) and `round_1` to `round_R`, one line per value of `by`.

    References
    ----------
    Section 5.1.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": ["m", "m", "m"], "endpoint": 2, "cell": ["collapse", "collapse", "preserved"], "onset": pd.array([1, 2, None], "Int64")})
    >>> onset(seen).to_dict("records")
    [{'row': 'm', 'collapse': 2, 'round_1': 1, 'round_2': 1}]
    """
    last = int(debates["endpoint"].max()) if len(debates) else 0
    fell = (debates["cell"] == "collapse").to_numpy()
    when = debates["onset"].to_numpy(dtype=float, na_value=np.nan)
    counts = pd.DataFrame({"collapse": fell.astype(int), **{f"round_{r}": (fell & (when == r)).astype(int) for r in range(1, last + 1)}})
    if by is None:
        return counts.sum().to_frame().T
    names = [by] if isinstance(by, str) else list(by)
    keys = [debates[name].reset_index(drop=True) for name in names]
    return counts.groupby(keys, sort=False, observed=True).sum().reset_index()


def _concat(parts):
    out = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    if len(parts) > 1:
        # Rows of different length leave columns unfilled: keep booleans nullable rather than objects.
        for column in out.columns[out.dtypes == object]:
            out[column] = out[column].astype("boolean")
    return out
