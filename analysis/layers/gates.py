"""Thresholds that decide whether a layered estimate may carry a claim, in one place.

Each `Threshold` says what it compares and where it comes from: "paper" where the paper states it,
"chosen" where the paper is silent and we set it, "arithmetic" where it follows from the numbers themselves.
"""

from dataclasses import asdict, dataclass
from math import isnan, nan

import pandas as pd

from analysis.layers.results import Gate


@dataclass(frozen=True)
class Threshold:
    """A named limit.

    Parameters
    ----------
    name : str
    limit : float or tuple of float
        A bound, or the two ends of a range; 1 for a condition that must hold.
    rule : {"at least", "at most", "below", "inside", "must hold"}
        Only "below" fails at the limit itself.
    source : {"paper", "chosen", "arithmetic"}
    blocks : str
        What may not be claimed when the gate fails.
    reason : str
        Why this limit, where the paper does not set it.
    """

    name: str
    limit: float | tuple[float, float]
    rule: str
    source: str
    blocks: str
    reason: str = ""


# --- records --------------------------------------------------------------------------------------
EXPLICIT_LABEL = Threshold(
    "explicit_label", 1, "must hold", "paper", "the row, in self-report and persistence",
    "a label filled in by default says nothing about the member",
)
EXPLICIT_SHARE = Threshold(
    "explicit_share", 0.90, "at least", "chosen", "every self-report claim (bounds are given instead)",
    "below this the dropped turns could carry the contrast",
)
DIFFERENTIAL_EXCLUSION = Threshold(
    "differential_exclusion", 0.05, "at most", "chosen", "nothing; the result is flagged",
    "arms that lose different shares of rows are no longer comparable",
)
# --- blind judge ----------------------------------------------------------------------------------
BLINDNESS = Threshold("blindness", 1, "must hold", "paper", "the judged row")
JUDGE_SAMPLE = Threshold(
    "judge_sample", 40, "at least", "chosen", "every judge claim",
    "turns that both judges read, as in the paper's check",
)
JUDGE_AC1 = Threshold(
    "judge_ac1", 0.60, "at least", "chosen", "every judge claim",
    "'substantial' agreement (Landis and Koch 1977)",
)
JUDGE_AC1_LOW = Threshold(
    "judge_ac1_low", 0.40, "at least", "chosen", "every judge claim",
    "the interval must stay above 'fair' agreement",
)
TOP_LABEL_SHARE = Threshold(
    "top_label_share", 0.95, "at most", "chosen", "every judge claim",
    "a judge that gives one label agrees with anyone who does the same",
)
PARSE_RATE = Threshold(
    "parse_rate", 0.95, "at least", "chosen", "every judge claim", "unread replies are not random",
)
JUDGE_BATTERY = Threshold(
    "judge_battery", 0.80, "at least", "chosen", "every judge claim",
    "items written with a known stance and move",
)
RATIO_RANGE = Threshold(
    "ratio_range", (0.80, 1.25), "inside", "chosen", "the wording 'the text reproduces the label'",
    "the limits of bioequivalence, symmetric on the log scale",
)
# --- persistence ----------------------------------------------------------------------------------
BOTH_LEGS = Threshold("both_legs", 1, "must hold", "paper", "the pair of re-queries")
EXACT_RECONSTRUCTION = Threshold(
    "exact_reconstruction", 1, "must hold", "paper", "the headline of persistence",
)
INFORMATIVE_UNITS = Threshold(
    "informative_units", 6, "at least", "arithmetic", "any claim of p < 0.05",
    "the smallest sign-flip p of m nonzero units is 2 / 2**m",
)
# --- stance read from token probabilities ---------------------------------------------------------
LETTER_MASS = Threshold("letter_mass", 0.5, "at least", "paper", "the read, always at temperature 1")
MODE_MATCH = Threshold("mode_match", 1, "must hold", "paper", "the read")
DEGENERATE_READ = Threshold("degenerate_read", 1, "must hold", "paper", "the read (1: it is not degenerate)")
SELF_TEST = Threshold(
    "self_test", 1, "must hold", "paper", "every direction claim",
    "a heated pole must read as no movement, and a real shift must survive",
)
HEAT_MATCHED = Threshold(
    "heat_matched", 1, "must hold", "chosen", "the direction of the cell",
    "no temperature gives the control the entropy of the treated read",
)
SATURATED_MARGIN = Threshold(
    "saturated_margin", 20.0, "at most", "chosen", "the receiver: unmeasurable, not null",
    "nats; a margin this wide has no room to show movement",
)
SATURATED_SHARE = Threshold(
    "saturated_share", 0.999, "at most", "chosen", "the receiver: unmeasurable, not null",
    "largest option probability at temperature 1 in all reads",
)
# --- jury, options, outcomes, tokens --------------------------------------------------------------
SWAP_CONSISTENCY = Threshold("swap_consistency", 0.80, "at least", "paper", "every verdict of the jury")
SENSITIVITY_TIER = Threshold(
    "sensitivity_tier", 0.5, "at least", "chosen", "a null result about differences of that tier",
    "lower limit of the detection rate: better found than missed",
)
OPTION_SUPPORT = Threshold("option_support", 1, "must hold", "paper", "the option row")
CEILING = Threshold(
    "ceiling", 0.90, "below", "chosen", "the comparison of accuracies",
    "lowest accuracy of the arms: when all are above, the items cannot tell them apart",
)
FROZEN_MARGIN = Threshold("frozen_margin", 1, "must hold", "paper", "equivalence")
TOKEN_MATCH = Threshold(
    "token_match", (1 / 1.10, 1.10), "inside", "chosen", "claims about compositions or the best model",
    "ratio of tokens per item, the whole 90 % interval",
)


def check(threshold, *values):
    """Hold measured values against a threshold.

    Parameters
    ----------
    threshold : Threshold
    *values : float or bool
        One value, or the two ends of an interval, which then has to keep to the limits as a whole.

    Returns
    -------
    Gate
        `value` is the value that decides (of an interval the end nearest to failing); a missing value fails.
        Of a range, `threshold` is the end that it is nearest to passing or failing.

    Raises
    ------
    ValueError
        On no values.

    Examples
    --------
    >>> check(EXPLICIT_SHARE, 0.9).passed, check(CEILING, 0.9).passed, check(BLINDNESS, False).passed
    (True, False, False)
    >>> check(RATIO_RANGE, 0.807692, 1.15)
    Gate(name='ratio_range', value=0.807692, threshold=0.8, passed=True)
    """
    if not values:
        raise ValueError(f"{threshold.name}: no value to check")
    values = [float(value) for value in values]
    limit = threshold.limit
    if any(isnan(value) for value in values):
        return Gate(threshold.name, nan, limit[0] if isinstance(limit, tuple) else limit, False)
    if threshold.rule == "inside":
        low, high = limit
        # The end that is nearest to its limit, or furthest past it, decides.
        gap, value, end = min((min(values) - low, min(values), low), (high - max(values), max(values), high))
        return Gate(threshold.name, value, end, gap >= 0)
    value = max(values) if threshold.rule in ("at most", "below") else min(values)
    passed = {"at most": value <= limit, "below": value < limit}.get(threshold.rule, value >= limit)
    return Gate(threshold.name, value, limit, passed)


def table():
    """All thresholds, for the book.

    Returns
    -------
    DataFrame
        ``name, limit, rule, source, blocks, reason``, in the order of the layers.

    Examples
    --------
    >>> table().set_index("name").loc["swap_consistency", ["limit", "source"]].tolist()
    [0.8, 'paper']
    """
    return pd.DataFrame([asdict(value) for value in globals().values() if isinstance(value, Threshold)])
