"""Checks that the layered measures make of their input frames before they count anything."""

import pandas as pd

from analysis.errors import DataError


def need(frame, what, filled, *, nullable=(), allowed=None):
    """Raise unless a frame has its columns, filled and with known values.

    Parameters
    ----------
    frame : DataFrame
    what : str
        What the frame holds, for the message ("votes").
    filled : sequence of str
        Columns that must be there without missing values.
    nullable : sequence of str
        Columns that must be there.
    allowed : mapping of str to sequence, optional
        Legal values by column; missing values pass where the column may have them.

    Raises
    ------
    DataError
        Naming the row, column and value, and what is expected.

    Examples
    --------
    >>> votes = pd.DataFrame({"pair_id": ["p1"], "order": ["BB"]}, index=[7])
    >>> need(votes, "votes", ["pair_id", "order"], allowed={"order": ["AB", "BA"]})
    Traceback (most recent call last):
    analysis.errors.DataError: votes, row 7, field 'order': 'BB', expected one of AB, BA
    """
    for column in (*filled, *nullable):
        if column not in frame:
            raise DataError(f"{what}: no field {column!r}, expected {', '.join((*filled, *nullable))}")
    for column in filled:
        gap = frame.index[frame[column].isna()].tolist()
        if len(gap):
            raise DataError(f"{what}, row {gap[0]!r}, field {column!r}: missing, expected a value")
    for column, values in (allowed or {}).items():
        wrong = frame[column][frame[column].notna() & ~frame[column].isin(values)]
        if len(wrong):
            raise DataError(f"{what}, row {wrong.index.tolist()[0]!r}, field {column!r}: "
                            f"{wrong.tolist()[0]!r}, expected one of {', '.join(map(str, values))}")


def once(frame, what, keys):
    """Raise if a key occurs twice.

    Parameters
    ----------
    frame : DataFrame
    what : str
    keys : list of str
        Columns that together name a row.

    Raises
    ------
    DataError

    Examples
    --------
    >>> once(pd.DataFrame({"pair_id": ["p1", "p1"], "order": "AB"}), "votes", ["pair_id", "order"])
    Traceback (most recent call last):
    analysis.errors.DataError: votes, pair_id='p1', order='AB': 2 rows, expected one
    """
    twice = frame[frame.duplicated(keys, keep=False)]
    if len(twice):
        first = twice.iloc[0]
        same = (twice[keys] == first[keys]).all(axis=1).sum()
        named = ", ".join(f"{key}={first[key]!r}" for key in keys)
        raise DataError(f"{what}, {named}: {same} rows, expected one")


def single(frame, what, column, why):
    """Raise if a column that must not vary does; a frame without the column passes.

    Parameters
    ----------
    frame : DataFrame
    what, column : str
    why : str
        Ends the message.

    Raises
    ------
    DataError

    Examples
    --------
    >>> single(pd.DataFrame({"timing": ["after", "per_turn"]}), "turns", "timing", "never pooled")
    Traceback (most recent call last):
    analysis.errors.DataError: turns, field 'timing': after, per_turn, expected one value: never pooled
    """
    if column in frame and frame[column].nunique() > 1:
        values = ", ".join(sorted(map(str, frame[column].dropna().unique())))
        raise DataError(f"{what}, field {column!r}: {values}, expected one value: {why}")


def constant_within(frame, what, key, columns):
    """Raise if columns that belong to a key take two values for it.

    Parameters
    ----------
    frame : DataFrame
    what, key : str
    columns : list of str

    Raises
    ------
    DataError

    Examples
    --------
    >>> rows = pd.DataFrame({"pair_id": ["p1", "p1"], "question_id": ["q1", "q2"]})
    >>> constant_within(rows, "votes", "pair_id", ["question_id"])
    Traceback (most recent call last):
    analysis.errors.DataError: votes, pair_id 'p1', field 'question_id': 'q1' and 'q2', expected one value
    """
    for column in columns:
        varied = frame.groupby(key, sort=False)[column].nunique(dropna=False).gt(1)
        if varied.any():
            at = varied.index[varied].tolist()[0]
            first, second = frame.loc[frame[key] == at, column].drop_duplicates().tolist()[:2]
            raise DataError(f"{what}, {key} {at!r}, field {column!r}: {first!r} and {second!r}, "
                            "expected one value")


def tally(reasons):
    """Count rows left out by reason, without the rows that were kept.

    Parameters
    ----------
    reasons : Series of str
        Empty for a row that counts.

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> tally(pd.Series(["", "leg_missing", "", "leg_missing"]))
    {'leg_missing': 2}
    """
    return {reason: int(count) for reason, count in reasons[reasons != ""].value_counts(sort=False).items()}
