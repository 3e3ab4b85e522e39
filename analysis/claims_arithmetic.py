"""Claims that follow from other printed numbers.

Which numbers a claim takes is said in data/claims/paper.csv, column `inputs`; here is what is done with
them. Values are in natural units, as in `analysis.recompute`.
"""

from fnmatch import fnmatchcase
from functools import cache

import numpy as np
import pandas as pd

from analysis import replay, screen, stats
from analysis.claims_cells import as_frame
from analysis.errors import DataError


def _delta(prevented, lost, n):
    return replay.from_aggregate(n, prevented, lost)["delta_pp"].item() / 100


def _weighted(prevented, lost, n, weight):
    return replay.ladder(replay.from_aggregate(n, prevented, lost), [weight])[weight].item() / 100


def _break_even(prevented, lost):
    return lost / prevented


def _difference(a, b):
    return a - b


def _share(k, n):
    return k / n


def _same(value):
    return value


def _mean(*values):
    return float(np.mean(values))


def _number(*values):
    return len(values)


def _negative(*values):
    return sum(value < 0 for value in values)


def _ordered(default, anti_social, anti_argument):
    return float(anti_argument > default > anti_social)


def _larger(*values):
    """Of two equally long lists given one after the other, entries of the first above those of the second."""
    half = len(values) // 2
    return sum(a > b for a, b in zip(values[:half], values[half:], strict=True))


@cache
def _holm(p):
    return stats.holm(p)


def _rejected(level, *p):
    return int((_holm(p) <= level).sum())


def _is_rejected(own, level, *p):
    return float(_holm(p)[p.index(own)] <= level)


def _families_needed(rho, level, power):
    if not (abs(rho) <= 1 and 0 < level < 1 and 0 < power < 1):
        return float("nan")
    return screen.plan_families(rho, level=level, power=power)["n_families"].astype(float).item()


# Notebook -> pattern of ids -> function of the printed values named in the claim's `inputs`, in that order.
FORMULAS = {
    "replay": {
        "s1.freeze.net": _difference, "t2.r1rule.net": _difference, "t2.stump.net": _difference,
        "s6.n_gates": _negative, "s1.breakeven": _break_even,
        "s6.freeze.r2": _weighted, "s6.r1rule.r2": _weighted,
        "e7.always.delta": _delta, "e7.r1rule.delta": _delta,
        "e7.stump.delta": _share, "e8.pooled": _share,
    },
    "interventions": {
        "e5.reduction": lambda before, after: 1 - after / before, "e9.dg.net": _difference, "e9.dg.delta": _share,
    },
    "screen": {
        "s4.3.delta_rho": _difference, "c2.loqwen_n": lambda rows: rows - 1,
    },
    "robustness": {
        "g1.reordered_pct": _share, "g1.power_*": _families_needed,
    },
    "transitions": {
        "s1.ccond.ratio": _share,
    },
    "transfer": {
        "s4.4.mistral_net_valid": _difference, "g3.mistral.correct_valid": _difference,
    },
    "probe": {
        "s5.2.n_order": _larger, "s5.2.n_models": _number, "s5.2.grand_d": _mean, "s5.2.holm_n": _rejected,
        "t20.*.n": _number, "t20.*.mean_d": _mean, "t20.*.strict": _ordered, "t20.*.holm": _is_rejected,
        "b3.n_negative": _difference, "b7.*": _same,
    },
    "costs": {
        "c6.r5_calls": lambda questions, repeats, each: questions * repeats * (1 + each),
    },
}


def operands(inputs, ids):
    """Claim ids that a comma-separated list of ids and patterns names, in order.

    Parameters
    ----------
    inputs : str
        Such as "t20.haiku45.p,t20.*.p".
    ids : iterable of str
        All claim ids.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        An entry names no claim.

    Examples
    --------
    >>> operands("b,a.*", ["a.1", "a.2", "b"])
    ['b', 'a.1', 'a.2']
    """
    out = []
    for pattern in map(str.strip, inputs.split(",")):
        named = [name for name in ids if fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        if not named or not set(named) <= set(ids):
            raise DataError(f"{pattern!r}; expected an id or a pattern of ids of paper.csv")
        out += named
    return out


def values(registry, printed):
    """Claims that follow from other printed numbers.

    Parameters
    ----------
    registry : DataFrame
        Claims with `id, rebuild, inputs`; those with `rebuild` arithmetic are computed.
    printed : Series of float
        Printed values in natural units, by id.

    Returns
    -------
    DataFrame
        As `analysis.recompute.values`. A claim without a formula is left out.

    Raises
    ------
    DataError
        A claim takes its own value, or one that is not there.

    Examples
    --------
    >>> lines = pd.DataFrame({"id": ["s1.freeze.net", "a", "b"], "rebuild": ["arithmetic", "rows", "rows"],
    ...                       "inputs": ["a,b", "", ""]})
    >>> values(lines, pd.Series({"s1.freeze.net": 0.0, "a": 5.0, "b": 7.0}))["value"].to_dict()
    {'s1.freeze.net': -2.0}
    """
    ids = registry["id"].tolist()
    found = {notebook: {} for notebook in FORMULAS}
    for line in registry[registry["rebuild"] == "arithmetic"].itertuples():
        for notebook, formulas in FORMULAS.items():
            formula = next((f for pattern, f in formulas.items() if fnmatchcase(line.id, pattern)), None)
            if formula is None:
                continue
            names = operands(line.inputs, ids)
            if line.id in names:
                raise DataError(
                    f"claim {line.id!r}, field 'inputs': {line.inputs!r}; expected other claims than itself"
                )
            found[notebook][line.id] = formula(*(printed[name] for name in names))
            break
    return pd.concat([as_frame(notebook, part) for notebook, part in found.items()])
