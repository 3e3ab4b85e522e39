"""What every layered measure returns: one `Result` per estimate, with the gates it had to pass."""

from dataclasses import dataclass, field, fields, replace
from math import isnan, nan

import pandas as pd

from analysis.errors import choice

STATUSES = ("ok", "gated", "undefined", "withdrawn", "unmeasurable", "ceiling")
ROLES = ("primary", "robustness", "descriptive", "exploratory")
SIDES = ("two", "greater", "less")


@dataclass(frozen=True)
class Gate:
    """A condition on the data or the instrument; `passed` says whether a claim may rest on the estimate.

    Parameters
    ----------
    name : str
        Name of the gate, as in `analysis.layers.gates`.
    value : float
        What was measured; a yes/no condition is 1 or 0. NaN where it could not be measured (never passes).
    threshold : float
        What it was held against.
    passed : bool

    Examples
    --------
    >>> Gate("explicit_share", 0.95, 0.9, True)
    Gate(name='explicit_share', value=0.95, threshold=0.9, passed=True)
    """

    name: str
    value: float
    threshold: float
    passed: bool


@dataclass(frozen=True)
class Result:
    """One estimate with all that must travel with it.

    Parameters
    ----------
    name : str
        The measure; contrasts say their sign, such as ``friendly_minus_hostile``.
    estimate : float
        NaN when undefined. Rates are fractions.
    unit : str
        Unit of measure: "share", "scale points", "nats", "bits", ...
    n_units, unit_name : int, str
        Independent units and what they are ("question", "proposition", "pair", "item").
    n_rows : int
        Rows below the units.
    n_nonzero : int, optional
        Units that carry information for the sign-flip test.
    k, n : int, optional
        Count and denominator where the estimate is a plain share.
    low, high, level, interval : float, float, float, str
        Interval, its coverage and its method.
    n_boot, n_undefined : int
        Resamples, and those of them where the statistic was undefined.
    p, p_method, exact, n_draws, min_attainable, sidedness
        Raw p value, test, whether all patterns were counted, random draws if not, the smallest p this data
        could have given, and the direction.
    p_holm : float
        p after Holm's correction within `family`.
    family : str
        The tests that were corrected together.
    gates : tuple of Gate
    exclusions : dict of str to int
        Rows left out, by reason.
    flags : tuple of str
    status : {"ok", "gated", "undefined", "withdrawn", "unmeasurable", "ceiling"}
    role : {"primary", "robustness", "descriptive", "exploratory"}
    seed : int, optional

    Raises
    ------
    ValueError
        On an unknown status, role or sidedness.

    References
    ----------
    "A Layered Analysis of Disagreement and Answer Quality in Multi-Agent LLM Debate", scope decisions.

    Examples
    --------
    >>> result = Result("friendly_minus_hostile", 0.66, "share", n_units=3, unit_name="question")
    >>> result.claimable, result.with_gates(Gate("explicit_share", 0.8, 0.9, False)).status
    (True, 'gated')
    """

    name: str
    estimate: float
    unit: str
    n_units: int = 0
    unit_name: str = ""
    n_rows: int = 0
    n_nonzero: int | None = None
    k: int | None = None
    n: int | None = None
    low: float = nan
    high: float = nan
    level: float = 0.95
    interval: str = ""
    n_boot: int = 0
    n_undefined: int = 0
    p: float = nan
    p_method: str = ""
    exact: bool | None = None
    n_draws: int | None = None
    min_attainable: float = nan
    sidedness: str = "two"
    family: str = ""
    gates: tuple[Gate, ...] = ()
    exclusions: dict[str, int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    status: str = "ok"
    role: str = "primary"
    seed: int | None = None
    p_holm: float = nan

    def __post_init__(self):
        choice("status", self.status, STATUSES)
        choice("role", self.role, ROLES)
        choice("sidedness", self.sidedness, SIDES)

    @property
    def claimable(self):
        """Whether a claim may rest on this: status ok, an estimate, and every gate passed."""
        return self.status == "ok" and not isnan(self.estimate) and all(g.passed for g in self.gates)

    def with_gates(self, *gates):
        """Return a copy with `gates` added; a failed one turns "ok" into "gated", the estimate stays."""
        every = (*self.gates, *gates)
        failed = self.status == "ok" and not all(gate.passed for gate in every)
        return replace(self, gates=every, status="gated" if failed else self.status)

    def with_flags(self, *flags):
        """Return a copy with `flags` added, each once."""
        return replace(self, flags=tuple(dict.fromkeys((*self.flags, *flags))))


def to_frame(results):
    """One line per result, for tables and CSV files.

    Parameters
    ----------
    results : iterable of Result

    Returns
    -------
    DataFrame
        The fields of `Result` as columns and ``claimable``. `gates`, `exclusions` and `flags` become text:
        ``explicit_share 0.8 (0.9) failed``, ``unparsed: 3``, names, each separated by "; ".

    Examples
    --------
    >>> frame = to_frame([Result("mean_shift", 0.2, "scale points", exclusions={"unparsed": 3})])
    >>> frame[["name", "estimate", "exclusions", "claimable"]]
             name  estimate   exclusions  claimable
    0  mean_shift       0.2  unparsed: 3       True
    """
    names = [f.name for f in fields(Result)]
    rows = []
    for result in results:
        row = {name: getattr(result, name) for name in names}
        row["gates"] = "; ".join(
            f"{gate.name} {gate.value:.4g} ({gate.threshold:.4g}) {'passed' if gate.passed else 'failed'}"
            for gate in result.gates
        )
        row["exclusions"] = "; ".join(f"{reason}: {count}" for reason, count in result.exclusions.items())
        row["flags"] = "; ".join(result.flags)
        rows.append(row | {"claimable": result.claimable})
    counts = dict.fromkeys(("n_nonzero", "k", "n", "n_draws", "seed"), "Int64")
    return pd.DataFrame(rows, columns=[*names, "claimable"]).astype(counts | {"exact": "boolean"})
