"""Signed replay: what a gate that freezes debates would have prevented and what it would have lost.

A fired freeze returns the initial majority in place of the final one. It prevents a collapse where the debate
would have ended wrong, and loses a correction where the debate would have recovered; on any other debate it
changes nothing.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3.3, 6, E.7 and E.8.
"""

import math

import numpy as np
import pandas as pd

from analysis import records as files
from analysis.errors import DataError, choice
from analysis.ledger import as_float, final_credit

POOLED = "pooled"
COLUMNS = ["n", "gated", "prevented", "lost", "net", "delta_pp", "break_even", "collapse", "correction"]
WORDS = {"freeze": True, "1": True, "true": True, "continue": False, "0": False, "false": False}


# --- gates --------------------------------------------------------------------------------------------------


def _always_freeze(debates):
    """Never debate: the initial majority stands."""
    return pd.Series(True, index=debates.index)


def _round1_majority_change(debates):
    """Round 1 ends with another majority than the initial one."""
    return debates["changed_1"].astype("boolean").fillna(False).astype(bool)


def _round1_any_flip(debates):
    """At least one agent changes its answer in Round 1."""
    return (debates["n_flipped_1"] > 0).astype(bool)


def _disagreement(debates):
    """The initial answers are not unanimous."""
    return ~debates["unanimous_0"].astype("boolean").fillna(True).astype(bool)


GATES = {
    "always_freeze": _always_freeze,
    "round1_majority_change": _round1_majority_change,
    "round1_any_flip": _round1_any_flip,
    "disagreement": _disagreement,
}


def _fired(fires, debates):
    """Boolean array, one entry a debate, from a gate's name, a function or its actions."""
    if isinstance(fires, str):
        fires = GATES[choice("gate", fires, tuple(GATES))]
    if callable(fires):
        fires = fires(debates)
    if isinstance(fires, pd.Series) and not fires.index.equals(debates.index):
        same = len(fires) == len(debates) and debates.index.isin(fires.index).all()
        if not (same and fires.index.is_unique):
            raise DataError("gate: its actions have another index than the debates; expected one for each")
        fires = fires.reindex(debates.index)
    values = fires.reset_index(drop=True) if isinstance(fires, pd.Series) else pd.Series(np.asarray(fires))
    if values.shape != (len(debates),):
        raise DataError(f"gate: {len(values)} actions for {len(debates)} debates; expected one for each")
    good = values.isin([True, False])
    if not good.all():
        at = int(np.flatnonzero(~good)[0])
        value = values.iat[at]
        raise DataError(f"gate, position {at}: {value!r}; expected True (freeze) or False (continue)")
    return values.astype(bool).to_numpy()


# --- replay -------------------------------------------------------------------------------------------------


def replay(debates, fires, w_collapse=1.0, w_correction=1.0, by=None):
    """Score a freeze gate on saved debates.

    Parameters
    ----------
    debates : DataFrame
        One line a debate, with `cell`; under expected tie credit with `correct_0` and the endpoint's
        `correct_k` as floats in [0, 1].
    fires : str, callable, or Series or array of bool, shape (debates,)
        A name in `GATES`; a function of the debates; or the actions themselves, True where the gate freezes.
        A Series is matched by index.
    w_collapse, w_correction : float
        Value of a prevented collapse and of a lost correction; equal weights are accuracy.
    by : str or list of str, optional
        Columns that name a line of the result; one line for everything unless given.

    Returns
    -------
    DataFrame
        `by`, `n` debates, `gated` debates, `prevented` collapses, `lost` corrections, `net` (weighted
        difference), `delta_pp` (100 net / n, percentage points), `break_even` (see `from_aggregate`); then
        the denominators: `collapse` and `correction` in all n debates, and `undefined`, debates without a
        cell, which stay in n but can be neither prevented nor lost.

        With tie credits c0 and c1 at the start and the end, a debate is c0 (1 - c1) of a collapse and (1 -
        c0) c1 of a correction, as in the ledger: the chance of each when both ties are broken by independent
        fair draws. Whole credits give whole counts, and the difference is c0 - c1, the change of expected
        accuracy, in any case.

    Raises
    ------
    DataError
        The actions do not fit the debates.
    ValueError
        Unknown gate.

    References
    ----------
    Section 3.3, equation 6.

    Examples
    --------
    >>> seen = pd.DataFrame({"cell": ["collapse", "correction", "preserved", "collapse"],
    ...                      "changed_1": [True, True, False, True]})
    >>> line = replay(seen, "round1_majority_change")
    >>> line[["n", "gated", "prevented", "lost", "net", "delta_pp"]].to_dict("records")
    [{'n': 4, 'gated': 3, 'prevented': 2, 'lost': 1, 'net': 1.0, 'delta_pp': 25.0}]
    """
    fired = _fired(fires, debates)
    collapse, correction, undefined = _flows(debates)
    each = pd.DataFrame({
        "n": 1, "gated": fired.astype(int), "prevented": fired * collapse, "lost": fired * correction,
        "collapse": collapse, "correction": correction, "undefined": undefined.astype(int),
    })
    if by is None:
        counts = pd.DataFrame([each.sum()], columns=each.columns).astype(each.dtypes)
        names = []
    else:
        names = [by] if isinstance(by, str) else list(by)
        keys = [debates[name].reset_index(drop=True) for name in names]
        counts = each.groupby(keys, sort=False, observed=True, dropna=False).sum().reset_index()
    return _score(counts, w_collapse, w_correction, names)


def _flows(debates):
    """Collapse and correction of each debate (fractions under tie credit), and whether it has no cell."""
    if "correct_0" in debates and debates["correct_0"].dtype.kind == "f":
        start, end = as_float(debates["correct_0"]), final_credit(debates)
        undefined = np.isnan(start) | np.isnan(end)
        collapse, correction = start * (1 - end), (1 - start) * end
        return np.where(undefined, 0.0, collapse), np.where(undefined, 0.0, correction), undefined
    if "cell" not in debates:
        raise DataError("debates: no column 'cell'; expected debates as the ledger makes them")
    cell = debates["cell"]
    return (cell == "collapse").to_numpy(int), (cell == "correction").to_numpy(int), cell.isna().to_numpy()


def _score(counts, w_collapse, w_correction, names=()):
    prevented, lost = counts["prevented"].to_numpy(float), counts["lost"].to_numpy(float)
    net = w_collapse * prevented - w_correction * lost
    with np.errstate(divide="ignore", invalid="ignore"):
        delta, break_even = 100 * net / counts["n"].to_numpy(float), lost / prevented
    scored = counts.assign(net=net, delta_pp=delta, break_even=break_even)
    return scored[[*names, *COLUMNS] + ["undefined"] * ("undefined" in scored)]


def replay_gates(debates, gates=tuple(GATES), *, w_collapse=1.0, w_correction=1.0):
    """Score several gates on the same debates.

    Parameters
    ----------
    debates : DataFrame
        As for `replay`.
    gates : iterable of str, or mapping of str to a gate
        Names in `GATES`, or any gates that `replay` takes, under names of their own.
    w_collapse, w_correction : float
        As for `replay`.

    Returns
    -------
    DataFrame
        One line a gate, as `replay` gives it, indexed by `gate`.

    References
    ----------
    Sections 6 and E.7.

    Examples
    --------
    >>> seen = pd.DataFrame({"cell": ["collapse", "correction"], "unanimous_0": [False, True]})
    >>> replay_gates(seen, ["always_freeze", "disagreement"])["net"].to_dict()
    {'always_freeze': 0.0, 'disagreement': 1.0}
    """
    chosen = gates if hasattr(gates, "items") else {name: name for name in gates}
    weights = {"w_collapse": w_collapse, "w_correction": w_correction}
    lines = {name: replay(debates, gate, **weights) for name, gate in chosen.items()}
    return pd.concat(lines, names=["gate", None]).droplevel(1)


def from_aggregate(
    n, prevented, lost, *, gated=None, collapse=None, correction=None,
    w_collapse=1.0, w_correction=1.0, index=None,
):
    """The arithmetic of `replay` for gates of which only the totals are known.

    Parameters
    ----------
    n, prevented, lost : float or array_like of float
        Debates, prevented collapses and lost corrections; one entry a gate.
    gated, collapse, correction : float or array_like, optional
        Debates gated, and collapses and corrections there were. Missing where not told.
    w_collapse, w_correction : float
        As for `replay`.
    index : sequence of str, optional
        Names of the gates.

    Returns
    -------
    DataFrame
        Columns of `replay`. `break_even` is lost / prevented, the smallest value of a collapse, in
        corrections, from which the gate does not harm: 0 if it loses nothing, infinite if it only loses, NaN
        if it does neither.

    Raises
    ------
    DataError
        Counts that cannot be: negative, more prevented than collapses, more lost than corrections, or more of
        both than gated debates.

    References
    ----------
    Section 3.3; Tables 7 and 38.

    Examples
    --------
    >>> from_aggregate(200, prevented=4, lost=6)[["net", "delta_pp", "break_even"]].to_dict("records")
    [{'net': -2.0, 'delta_pp': -1.0, 'break_even': 1.5}]
    """
    given = {"n": n, "gated": gated, "prevented": prevented, "lost": lost}
    given |= {"collapse": collapse, "correction": correction}
    size = max(np.size(value) for value in given.values() if value is not None)
    counts = pd.DataFrame(index=range(size))
    for name, value in given.items():
        counts[name] = np.broadcast_to(np.asarray(np.nan if value is None else value, dtype=float), size)
    if index is not None:
        counts.index = pd.Index(list(index), name="gate")
    for name in counts:
        required = name in ("n", "prevented", "lost")
        _refuse(counts, name, (counts[name] < 0) | (counts[name].isna() & required), "a number from 0")
    for name, most in [("prevented", "collapse"), ("lost", "correction"), ("gated", "n")]:
        _refuse(counts, name, counts[name] > counts[most], f"at most {most}")
    together = counts["prevented"] + counts["lost"]
    summed = counts.assign(**{"prevented + lost": together})
    for most in ("gated", "n"):
        _refuse(summed, "prevented + lost", together > counts[most], f"at most {most}")
    whole = [name for name in counts if (counts[name].dropna() % 1 == 0).all()]
    counts[whole] = counts[whole].astype("Int64")
    known = {name: "int64" for name in whole if counts[name].notna().all()}
    return _score(counts.astype(known), w_collapse, w_correction)


def _refuse(counts, name, bad, expected):
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        value = counts[name].iat[at]
        raise DataError(f"line {counts.index[at]!r}, field {name!r}: {value:g}; expected {expected}")


def ladder(results, ratios):
    """Utility of each gate as a collapse is worth more corrections.

    Parameters
    ----------
    results : DataFrame
        Lines of `replay`, `replay_gates` or `from_aggregate`.
    ratios : sequence of float
        Values r of a prevented collapse, in lost corrections.

    Returns
    -------
    DataFrame
        On the index of `results`: one column per ratio with 100 (r prevented - lost) / n, in percentage
        points of the n debates, and `break_even`.

    Raises
    ------
    ValueError
        A ratio is negative or not a number.

    References
    ----------
    Table 38.

    Examples
    --------
    >>> ladder(from_aggregate(200, prevented=4, lost=6), [1, 2]).to_dict("records")
    [{1: -1.0, 2: 1.0, 'break_even': 1.5}]
    """
    wrong = [r for r in ratios if not (math.isfinite(r) and r >= 0)]
    if wrong:
        raise ValueError(f"ratios: {wrong[0]!r}; expected numbers from 0")
    n, prevented, lost = (results[name] for name in ("n", "prevented", "lost"))
    out = pd.DataFrame({r: 100 * (r * prevented - lost) / n for r in ratios}, index=results.index)
    out["break_even"] = results["break_even"]
    return out


def held_out_actions(debates, gate, *, by="row"):
    """Actions of a gate that has been fitted to all rows but the one it acts on.

    Parameters
    ----------
    debates, gate, by
        As for `leave_one_model_out`.

    Returns
    -------
    Series of bool
        On the index of the debates, True where the gate freezes.

    Raises
    ------
    DataError
        A gate to be fitted has fewer than two rows.
    ValueError
        What `fit` returned cannot act.

    References
    ----------
    Sections 3.3 and E.8.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": ["a", "b"], "unanimous_0": [False, True]})
    >>> held_out_actions(seen, "disagreement").tolist()
    [True, False]
    """
    learns = hasattr(gate, "fit")
    code, names = pd.factorize(debates[by])
    if learns and len(names) < 2:
        raise DataError(f"field {by!r}: {len(names)} distinct value(s); expected 2 or more, to fit on others")
    out = np.zeros(len(debates), dtype=bool)
    for i in range(len(names)):
        held = code == i
        acts = gate.fit(debates[~held]) if learns else gate
        if not callable(acts) and not isinstance(acts, str):
            known = ", ".join(GATES)
            raise ValueError(f"gate: {type(acts).__name__}; expected a function of debates or one of {known}")
        out[held] = _fired(acts, debates[held])
    return pd.Series(out, index=debates.index, name="fires")


def leave_one_model_out(debates, gate, *, w_collapse=1.0, w_correction=1.0, by="row"):
    """Score a gate on each row after fitting it to the others.

    Parameters
    ----------
    debates : DataFrame
        As for `replay`.
    gate : str, callable, or object with a method ``fit(train) -> callable``
        A fixed gate, or one that is fitted to the debates of the other rows; what `fit` returns sees the
        held-out debates. It is on its honour not to look at their `cell`, `onset`, `gold` and `correct_k`.
    w_collapse, w_correction : float
        As for `replay`.
    by : str
        Column that is held out, one value at a time.

    Returns
    -------
    DataFrame
        Lines of `replay`, one per value of `by` and a last one named "pooled".

    Raises
    ------
    DataError, ValueError
        See `held_out_actions`.

    References
    ----------
    Sections 3.3 and E.8, Table 37.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": ["a", "b"], "cell": ["collapse", "correction"], "unanimous_0": False})
    >>> leave_one_model_out(seen, "disagreement")[["row", "prevented", "lost"]].values.tolist()
    [['a', 1, 0], ['b', 0, 1], ['pooled', 1, 1]]
    """
    fires = held_out_actions(debates, gate, by=by)
    weights = {"w_collapse": w_collapse, "w_correction": w_correction}
    each = replay(debates, fires, by=by, **weights)
    each[by] = each[by].astype(str)
    return pd.concat([each, replay(debates, fires, **weights).assign(**{by: POOLED})], ignore_index=True)


# --- a third party's gate -----------------------------------------------------------------------------------


def actions(path_or_frame, debates):
    """Read a gate given as one action for each debate.

    Parameters
    ----------
    path_or_frame : str, Path or DataFrame
        File of records (CSV, JSON-lines, Parquet, plain or gzipped) or a frame, with `row`, `question`,
        `action` (freeze or continue; also 1 or 0, true or false) and `replicate`, which may be left out where
        a row has the question once. Other columns are ignored.
    debates : DataFrame
        The debates acted on, with `row, question, replicate`.

    Returns
    -------
    Series of bool
        On the index of the debates, True where the gate freezes.

    Raises
    ------
    DataError
        A column is missing, an action is not one of the words, or a debate is unknown, acted on twice or not
        at all; the message names file, line, field, value and what is expected.

    References
    ----------
    Section 3: a third party's controller enters the protocol by its row-level actions on the same saved rows.

    Examples
    --------
    >>> seen = pd.DataFrame({"row": "m", "question": ["q1", "q2"], "replicate": 0})
    >>> said = pd.DataFrame({"row": "m", "question": ["q2", "q1"], "action": ["freeze", "continue"]})
    >>> actions(said, seen).tolist()
    [False, True]
    """
    position, several = {}, {}
    keys = (debates["row"].astype(str), debates["question"].astype(str), debates["replicate"].astype(int))
    for i, (row, question, replicate) in enumerate(zip(*keys, strict=True)):
        position[row, question, replicate] = i
        several.setdefault((row, question), []).append(replicate)
    given = np.full(len(debates), -1, dtype=np.int8)
    line_of = {}
    source = "actions frame" if isinstance(path_or_frame, pd.DataFrame) else path_or_frame
    for where, record in _action_records(path_or_frame):
        row, question = (_text(record, field, where) for field in ("row", "question"))
        at = (row, question, _replicate(record, several.get((row, question), []), where))
        if at not in position:
            raise DataError(_unknown(at, debates, where))
        i = position[at]
        if given[i] >= 0:
            debate = f"row {row!r}, question {question!r}, replicate {at[2]}"
            raise DataError(f"{where}: {debate} has an action already ({line_of[i]}); expected one")
        given[i] = _word(record, where)
        line_of[i] = where
    if (given < 0).any():
        lacking = debates.iloc[np.flatnonzero(given < 0)]
        first = "row {row!r}, question {question!r}, replicate {replicate}".format(**lacking.iloc[0])
        raise DataError(
            f"{source}: no action for {len(lacking)} of {len(debates)} debates, the first being {first}; "
            "expected one for each"
        )
    return pd.Series(given.astype(bool), index=debates.index, name="fires")


_FIELDS = ("row", "question", "action")


def _action_records(source):
    """Yield (place of the record, record)."""
    if isinstance(source, pd.DataFrame):
        name, frame = "actions frame", source
    else:
        name, (frame, damage) = source, files.records(source)
        if damage:
            raise DataError(damage[0])
    _need(frame.columns, name)
    for line, record in zip(frame.index, frame.to_dict("records"), strict=True):
        yield f"{name}, line {line}", record


def _need(columns, where):
    for name in _FIELDS:
        if name not in columns:
            there = ", ".join(map(str, columns))
            raise DataError(f"{where}: no field {name!r} among {there}; expected {', '.join(_FIELDS)}")


def _absent(value):
    return value is None or value == "" or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _text(record, field, where):
    value = record[field]
    if _absent(value) or isinstance(value, (list, dict)):
        raise DataError(f"{where}, field {field!r}: {value!r}; expected a name")
    return _plain(value)


def _plain(value):
    """Text of a cell; a whole number that a frame keeps as a float loses its point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _replicate(record, known, where):
    value = record.get("replicate")
    if _absent(value):
        if len(known) > 1:
            raise DataError(
                f"{where}, field 'replicate': not given, but question {record['question']!r} was debated "
                f"{len(known)} times; expected one of {', '.join(map(str, known))}"
            )
        return known[0] if known else 0
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not number.is_integer() or number < 0:
        raise DataError(f"{where}, field 'replicate': {value!r}; expected a whole number from 0")
    return int(number)


def _word(record, where):
    word = _plain(record["action"]).lower()
    if word not in WORDS:
        told = record["action"]
        raise DataError(f"{where}, field 'action': {told!r}; expected freeze or continue (1, 0, true, false)")
    return WORDS[word]


def _unknown(at, debates, where):
    row, question, replicate = at
    rows = debates["row"].astype(str).unique()
    if row not in rows:
        return f"{where}, field 'row': {row!r}; expected one of {', '.join(rows)}"
    if question not in set(debates.loc[debates["row"] == row, "question"].astype(str)):
        return f"{where}, field 'question': {question!r}; expected a question that row {row!r} debated"
    return f"{where}, field 'replicate': {replicate}; expected a replicate row {row!r} has of {question!r}"
