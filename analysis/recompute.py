"""The paper's numbers, computed again from the tables under data/.

Each topic (`analysis.claims_debates`, `analysis.claims_screen`) has functions from frames to a dict of
claim id to value. A value is in its natural unit: a fraction where the paper prints percent or percentage
points, else what the paper prints. Nothing here reads a claim's own printed value; claims that follow from
other printed numbers are in `analysis.claims_arithmetic`.
"""

import os
from functools import cache

import pandas as pd

from analysis import claims_debates, claims_screen, data
from analysis.claims_cells import as_frame

TABLES = ("debates", "model_rows", "taxonomies", "sealed_rows", "sealed_vectors")


def values(printed):
    """Every value that data/ determines.

    Parameters
    ----------
    printed : Series of float
        Printed values in natural units by id; used for protocol sizes of other claims only.

    Returns
    -------
    DataFrame
        Indexed by claim id: `value` (natural unit), `slack` (half width of what the data leave open, 0 for
        an exact value), `notebook` (stem of the page that shows it).

    Examples
    --------
    >>> from analysis import claims
    >>> values(claims.printed_values(claims.registry())).loc["abs.n_debates"].to_dict()
    {'value': 6925.0, 'slack': 0.0, 'notebook': 'transitions'}
    """
    counted = data.table("probe_cells")
    return pd.concat([
        *(as_frame(notebook, found) for notebook, found in _from_rows(_stamp()).items()),
        as_frame("screen", claims_screen.probes(counted)),
        as_frame("claims", claims_screen.channels(counted, printed)),
    ])


def _stamp():
    """What tells one state of data/ from another."""
    return (str(data.root()), *(os.stat(data.root() / f"{name}.csv").st_mtime_ns for name in TABLES))


@cache
def _from_rows(stamp):
    debates, rows = data.debates(), data.model_rows()
    return {
        "transitions": claims_debates.transitions(debates) | claims_debates.flips(debates),
        "localisation": claims_debates.localisation(debates),
        "screen": claims_screen.association(rows, data.table("taxonomies")) | claims_screen.pairs(rows)
        | claims_screen.measurement_error(rows) | claims_screen.held_out_families(rows)
        | claims_screen.sealed(data.sealed_rows(), data.table("sealed_vectors")),
    }
