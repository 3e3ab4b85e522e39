"""Printed percentages against the counts they could come from."""

import math
import re
from fnmatch import fnmatchcase

import pandas as pd

from analysis.claims import SCALE, parse_printed

# Words behind a number in a claim's scope that make it the number of things the percentage is a share of.
COUNTED = re.compile(r"(?<![=\d])([\d,]+) (?:debates|questions|traces|collapses|items|dev\b)|^([\d,]+)$")
# Claims whose denominator is printed as another claim.
STATED = {"e9.phi.*": "e6.dev_n", "e9.gpt.coll": "e6.dev_n"}


def possible_counts(printed, n, *, unit="percent"):
    """Whole counts out of n that give a printed share.

    Parameters
    ----------
    printed : str
        Such as "43.90" or "-1.21", as `claims.parse_printed` reads it.
    n : int
        Denominator.
    unit : {"percent", "pp", "rate"}
        Percent and percentage points count in hundredths.

    Returns
    -------
    list of int
        Every k with k / n rounding to the printed digits; a share half way between two roundings agrees with
        both. Negative for a printed change. Empty if no count will do.

    Examples
    --------
    >>> possible_counts("43.90", 82), possible_counts("43.91", 82), possible_counts("-1.21", 6525)
    ([36], [], [-79])
    """
    told = parse_printed(printed)
    reach = told.step / 2 * (1 + 2e-6)
    low, high = ((told.value + side * reach) * n / SCALE.get(unit, 1) for side in (-1, 1))
    return list(range(math.ceil(low), math.floor(high) + 1))


def possible_denominators(printed, *, most):
    """Denominators out of which every one of several printed percentages can come.

    Parameters
    ----------
    printed : sequence of str
        Percentages of the same things.
    most : int
        Largest denominator looked at.

    Returns
    -------
    list of int

    Examples
    --------
    >>> possible_denominators(["33.3", "66.7", "16.7"], most=20)
    [6, 12, 18]
    """
    return [n for n in range(1, most + 1) if all(possible_counts(text, n) for text in printed)]


def percentages(registry):
    """Printed percentages that no public count decides, with the counts that could stand behind each.

    Parameters
    ----------
    registry : DataFrame
        From `claims.registry`.

    Returns
    -------
    DataFrame
        One line a claim whose number of debates or questions is printed too, in its scope or as another
        claim: ``id, quantity, printed, n, n_counts`` (how many counts out of n give the printed digits; 0
        where none does), ``counts`` (up to three of them, as text). Settings, thresholds and interval ends
        are no shares and left out.

    Examples
    --------
    >>> lines = pd.DataFrame({"id": ["a", "b"], "quantity": "collapse", "printed": ["7.0", "7.1"],
    ...                       "scope": "200 dev", "unit": "percent", "kind": "point", "rebuild": "gated",
    ...                       "value": [7.0, 7.1]})
    >>> percentages(lines)[["id", "n", "n_counts", "counts"]].values.tolist()
    [['a', 200, 1, '14'], ['b', 200, 0, '']]
    """
    sizes = registry.set_index("id")["value"]
    decided = registry["rebuild"].isin(["rows", "counts", "setting"])
    shares = registry[registry["unit"].eq("percent") & registry["kind"].eq("point") & ~decided]
    lines = []
    for line in shares.itertuples():
        found = {next(filter(None, match.groups())) for match in COUNTED.finditer(line.scope)}
        named = next((name for pattern, name in STATED.items() if fnmatchcase(line.id, pattern)), None)
        n = int(sizes[named]) if named else int(found.pop().replace(",", "")) if len(found) == 1 else None
        if n is not None:
            counts = possible_counts(line.printed, n)
            lines.append({"id": line.id, "quantity": line.quantity, "printed": line.printed, "n": n,
                          "n_counts": len(counts), "counts": ", ".join(map(str, counts[:3]))})
    return pd.DataFrame(lines)
