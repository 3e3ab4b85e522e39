"""The paper's printed numbers and what became of each when computed again.

The registry (data/claims/paper.csv) says what is printed, where, and what it could be rebuilt from;
`analysis.recompute` and `analysis.claims_arithmetic` compute; this module compares. A claim holds only if a
computed value rounds to the printed digits: what nothing computes is open, and what is a setting, gated or
only stored as an aggregate is named so and never compared.
"""

import math
import os
import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import claims_arithmetic, data, recompute
from analysis.claims_cells import NOTEBOOKS
from analysis.errors import DataError, choice

TABLE, FROZEN = "claims/paper", "claims/verdicts"
VERDICTS = ("holds", "differs", "aggregate", "gated", "setting", "open")
COMPUTABLE = ("rows", "counts", "arithmetic")
NOT_COMPUTED = {"setting": "setting", "gated": "gated", "reported": "aggregate"}
SCALE = {"percent": 100, "pp": 100}
WORDED = ("version",)

_PRINTED = re.compile(
    r"(?P<absolute>\|\w+\|)?\s*(?P<relation><=|>=|<|>|~|\+/-)?\s*\$?\s*(?P<sign>[+-]?)"
    r"(?P<whole>\d{1,3}(?:,\d{3})+|\d*)(?:\.(?P<digits>\d+))?(?:e(?P<power>[+-]?\d+))?\s*%?"
)


# --- printed numbers ----------------------------------------------------------------------------------------


class Printed(NamedTuple):
    """A number as printed: `step` is one unit of its last digit, `absolute` that its sign does not count."""

    value: float
    step: float
    relation: str
    absolute: bool


def parse_printed(text):
    """Read a number as printed.

    Parameters
    ----------
    text : str
        Such as "6,925", "43.90", "+0.893", ".0123", "$0.3520", "1.3e-4", ">10", "<=0.05", "|z|<=0.5",
        "+/-1.5", "~1750".

    Returns
    -------
    Printed
        `relation` is one of ``= < <= > >=``. Zeros at the end count as digits, except behind "~", where
        they are taken for rounding. "+/-x" bounds the absolute value by x.

    Raises
    ------
    DataError
        The text is not a number.

    Examples
    --------
    >>> parse_printed("43.90")
    Printed(value=43.9, step=0.01, relation='=', absolute=False)
    >>> parse_printed("~1750").step, parse_printed("1.3e-4").step, parse_printed(">10").relation
    (10.0, 1e-05, '>')
    """
    found = _PRINTED.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
    if found is None or not (found["whole"] or found["digits"]):
        raise DataError(f"{text!r}; expected a printed number such as 6,925 or 0.0123 or >10")
    whole, digits = found["whole"].replace(",", ""), found["digits"] or ""
    power, relation = int(found["power"] or 0), found["relation"] or "="
    last = power - len(digits)
    if relation == "~" and not digits:
        last += len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    value = float(f"{found['sign']}{whole or 0}.{digits or 0}e{power}")
    absolute = found["absolute"] is not None or relation == "+/-"
    return Printed(value, float(f"1e{last}"), {"~": "=", "+/-": "<="}.get(relation, relation), absolute)


def agrees(computed, printed, slack=0.0):
    """Whether a computed value is what is printed.

    Parameters
    ----------
    computed : float
        In the printed unit.
    printed : Printed
    slack : float
        Half width of what is left open about `computed`, in the same unit.

    Returns
    -------
    bool
        For "=", whether some value within the slack rounds to the printed digits; a value half way between
        two roundings agrees with both. For an inequality, whether some value within the slack fulfils it.

    Examples
    --------
    >>> agrees(0.01225, parse_printed("0.0123")), agrees(0.01224, parse_printed("0.0123"))
    (True, False)
    >>> agrees(10.24, parse_printed(">10")), agrees(-0.6, parse_printed("|z|<=0.5"))
    (True, False)
    """
    computed = abs(computed) if printed.absolute else computed
    # Half a unit is not a binary fraction: the comparison forgives a millionth of the last digit's unit.
    noise = 1e-6 * printed.step
    match printed.relation:
        case "=":
            return bool(abs(computed - printed.value) <= printed.step / 2 + slack + noise)
        case "<":
            return bool(computed - slack < printed.value)
        case "<=":
            return bool(computed - slack <= printed.value + noise)
        case ">":
            return bool(computed + slack > printed.value)
        case ">=":
            return bool(computed + slack >= printed.value - noise)
    raise ValueError(f"relation={printed.relation!r}: expected one of =, <, <=, >, >=")


# --- registry -----------------------------------------------------------------------------------------------


def registry():
    """The printed numbers of the paper, checked.

    Returns
    -------
    DataFrame
        One line a claim: `id, paper_location, quantity, scope, value, unit, printed, kind, rebuild, inputs,
        method, note, cause`, as the data dictionary says. `inputs` of a claim that is rebuilt from data/
        lists "table:column,column", separated by semicolons; that of an arithmetic claim lists ids of other
        claims, or patterns of ids, by commas. `cause` says in words why the claim differs, or what about it
        stays open.

    Raises
    ------
    DataError
        An id twice; an unknown kind, unit or way of rebuilding; a value that is not what is printed; a
        threshold that is not printed as one; arithmetic on claims that are not there, or on itself. The
        message names line and field.

    Examples
    --------
    >>> registry().set_index("id").loc["abs.family_p", ["printed", "unit", "rebuild"]].to_list()
    ['0.0123', 'p', 'counts']
    """
    return _read()


def _read():
    table = data.table(TABLE)
    twice = table["id"].duplicated().to_numpy()
    if twice.any():
        _refuse(table, twice.argmax(), "id", "an id of its own")
    ids = table["id"].tolist()
    for at, line in enumerate(table.itertuples()):
        if line.unit in WORDED:
            continue
        try:
            printed = parse_printed(line.printed)
        except DataError:
            _refuse(table, at, "printed", "a number as printed")
        if not math.isclose(printed.value, line.value, rel_tol=1e-12):
            _refuse(table, at, "value", f"{printed.value:g}, as printed")
        if line.kind == "threshold" and printed.relation == "=":
            _refuse(table, at, "printed", "an inequality, for a threshold")
        if line.rebuild == "arithmetic":
            try:
                named = line.inputs if isinstance(line.inputs, str) else ""
                itself = line.id in claims_arithmetic.operands(named, ids)
            except DataError as problem:
                _refuse(table, at, "inputs", f"ids of other claims: {problem}")
            if itself:
                _refuse(table, at, "inputs", "other claims than itself")
    return table


def _refuse(table, at, field, expected):
    found = table[field].iat[at]
    raise DataError(f"paper.csv, line {at + 2}, field {field!r}: {found!r}; expected {expected}")


def printed_values(registry):
    """Printed values in natural units: percent and percentage points as fractions.

    Parameters
    ----------
    registry : DataFrame
        From `registry`.

    Returns
    -------
    Series of float
        By claim id.

    Examples
    --------
    >>> printed_values(registry())["s1.ccond.llama"].round(6).item()
    0.0846
    """
    scale = registry["unit"].map(SCALE).fillna(1)
    return pd.Series((registry["value"] / scale).to_numpy(float), index=registry["id"].to_numpy())


# --- verdicts -----------------------------------------------------------------------------------------------


def verdicts(registry=None, page=None):
    """Compare every printed number with what data/ gives.

    Parameters
    ----------
    registry : DataFrame, optional
        Claims; all of `registry` unless given.
    page : str, optional
        Stem of a page of the book: only the claims that it computes.

    Returns
    -------
    DataFrame
        One line a claim, in the registry's order: `id, location, quantity, scope, printed, value, unit,
        kind`; `computed` and its `slack` (half width of what the data leave open), `difference` (computed -
        printed value), all in the printed unit and missing where nothing was computed; `verdict`, one of

        - holds: the computed value rounds to the printed digits, or fulfils the printed inequality;
        - differs: it does not, and `cause` says why where known;
        - aggregate: only a stored total is public;
        - gated: nothing public is below it;
        - setting: a choice of the protocol, not a result;
        - open: nothing computes it yet;

        then `cause, notebook` (stem of the page that shows the computation), `cohort`, `source` (tables and
        columns), `method`, `note`.

    Raises
    ------
    DataError
        As `registry`.

    Examples
    --------
    >>> table = verdicts().set_index("id")
    >>> table.loc[["abs.collapses"], ["printed", "computed", "verdict"]].to_dict("records")
    [{'printed': '253', 'computed': 253.0, 'verdict': 'holds'}]
    >>> table.loc["abs.freeze.lost", "verdict"]
    'gated'
    """
    if page is not None:
        choice("page", page, NOTEBOOKS)
    table = _read() if registry is None else registry
    printed = printed_values(table)
    found = pd.concat([recompute.values(printed, page), claims_arithmetic.values(table, printed)])
    if page is not None:
        table = table[table["id"].isin(found.index[found["notebook"] == page])].reset_index(drop=True)
    found = found.reindex(table["id"])
    scale = table["unit"].map(SCALE).fillna(1).to_numpy()
    computable = table["rebuild"].isin(COMPUTABLE).to_numpy()
    computed = np.where(computable, found["value"].to_numpy(float) * scale, np.nan)
    slack = np.where(computable, found["slack"].to_numpy(float) * scale, np.nan)
    return pd.DataFrame({
        "id": table["id"], "location": table["paper_location"],
        "quantity": table["quantity"], "scope": table["scope"],
        "printed": table["printed"], "value": table["value"], "unit": table["unit"], "kind": table["kind"],
        "computed": computed, "slack": slack, "difference": computed - table["value"].to_numpy(float),
        "verdict": list(map(_verdict, table["rebuild"], table["printed"], computed, slack)),
        "cause": table["cause"],
        "notebook": pd.Series(found["notebook"].to_numpy()).where(computable).to_numpy(),
        "cohort": table["scope"], "source": table["inputs"], "method": table["method"], "note": table["note"],
    })


def _verdict(rebuild, printed, computed, slack):
    if rebuild in NOT_COMPUTED:
        return NOT_COMPUTED[rebuild]
    if np.isnan(computed):
        return "open"
    return "holds" if agrees(computed, parse_printed(printed), slack) else "differs"


def counts(verdicts, by=None):
    """Count claims by verdict.

    Parameters
    ----------
    verdicts : DataFrame
        From `verdicts`.
    by : str, optional
        Column that names a line; one line for everything unless given.

    Returns
    -------
    DataFrame
        A column for each verdict and `claims`, their sum.

    Examples
    --------
    >>> counts(pd.DataFrame({"verdict": ["holds", "open", "holds"]})).iloc[0].to_dict()
    {'holds': 2, 'differs': 0, 'aggregate': 0, 'gated': 0, 'setting': 0, 'open': 1, 'claims': 3}
    """
    named = pd.Series("all", index=verdicts.index, name="all") if by is None else verdicts[by]
    out = pd.crosstab(named, verdicts["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    out.columns.name = None
    return out.assign(claims=out.sum(axis=1))


# --- frozen verdicts ----------------------------------------------------------------------------------------


def changes(verdicts):
    """Claims whose verdict is not the one that was frozen.

    Parameters
    ----------
    verdicts : DataFrame
        From `verdicts`.

    Returns
    -------
    DataFrame
        `id, frozen, now`; a claim new or gone has a missing verdict on one side.

    Examples
    --------
    >>> changes(verdicts())[["id", "frozen", "now"]].empty
    True
    """
    frozen = data.table(FROZEN).rename(columns={"verdict": "frozen"})
    both = frozen.merge(verdicts[["id", "verdict"]].rename(columns={"verdict": "now"}), on="id", how="outer")
    return both[both["frozen"].fillna("") != both["now"].fillna("")].reset_index(drop=True)


def freeze(verdicts):
    """Write the verdicts to data/claims/verdicts.csv, after a change that was looked at.

    Parameters
    ----------
    verdicts : DataFrame
        From `verdicts`; ids and verdicts are written, no values.

    Examples
    --------
    >>> freeze(verdicts())  # doctest: +SKIP
    """
    path = data.root() / f"{FROZEN}.csv"
    beside = path.with_suffix(".csv.part")
    verdicts[["id", "verdict"]].to_csv(beside, index=False, lineterminator="\n")
    os.replace(beside, path)
