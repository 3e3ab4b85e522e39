"""The paper's numbers, computed again from the tables under data/.

Each topic (`analysis.claims_debates`, `analysis.claims_screen` and so on) has functions from frames to a dict
of claim id to value. A value is in its natural unit: a fraction where the paper prints percent or percentage
points, else what the paper prints. Nothing here reads a claim's own printed value; claims that follow from
other printed numbers are in `analysis.claims_arithmetic`.
"""

from functools import cache

import pandas as pd

from analysis import (
    claims_debates,
    claims_parser,
    claims_pilot,
    claims_robustness,
    claims_screen,
    claims_traces,
    claims_transfer,
    data,
)
from analysis.claims_cells import as_frame


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
    stamp = _stamp()
    by_page = [*_from_rows(stamp), *_from_tables(stamp), *_with_sizes(printed)]
    return pd.concat([as_frame(notebook, found) for notebook, found in by_page])


def _stamp():
    """What tells one state of data/ from another."""
    files = sorted(path for path in data.root().glob("*.csv"))
    return tuple((str(path), path.stat().st_mtime_ns) for path in files)


@cache
def _from_rows(stamp):
    """Claims about the debates and the model rows."""
    debates, rows, sealed = data.debates(), data.model_rows(), data.sealed_rows()
    names = ("sealed_vectors", "strongest_probe", "channel_contrasts")
    vectors, strongest, contrasts = map(data.table, names)
    nine = claims_robustness.nine_rows(sealed, vectors, strongest, contrasts)
    return [
        ("transitions", claims_debates.transitions(debates) | claims_debates.flips(debates)),
        ("localisation", claims_debates.localisation(debates)),
        ("screen", claims_screen.association(rows, data.table("taxonomies")) | claims_screen.pairs(rows)
         | claims_screen.held_out_families(rows) | claims_screen.sealed(sealed, vectors)
         | claims_screen.probes(data.table("probe_cells"))),
        ("screen", claims_robustness.measurement_error(rows) | claims_robustness.predictions(rows)
         | claims_robustness.sealed_noise(nine) | claims_robustness.specifications(nine)),
        ("probe", claims_robustness.strongest_dropped(sealed, vectors, strongest)
         | claims_robustness.log_ratio(contrasts)),
    ]


@cache
def _from_tables(stamp):
    """Claims about the later and smaller tables, some of them beside the model rows."""
    rows, table = data.model_rows(), data.table
    later, ledger, held_out = map(table, ("four_round_rows", "four_round_ledger", "holdouts"))
    return [
        ("parser", claims_parser.audit(table("parser_audit"), table("parser_traces"))
         | claims_parser.unreadable_as_flip(rows, later)),
        ("localisation", claims_traces.replication(ledger)),
        ("replay", claims_traces.replay_cohort(table("replay_sources"), ledger)),
        ("claims", claims_traces.served_locally(rows, ledger)),
        ("screen", claims_traces.rivals(rows, later, table("social_arm"))
         | claims_transfer.extension(rows, table("extension_rows"))),
        ("transfer", claims_transfer.benchmarks(table("cross_benchmark"), table("cross_benchmark_runs"))
         | claims_transfer.holdouts(held_out) | claims_transfer.with_held_out_row(rows, held_out)
         | claims_transfer.responses(table("response_ledgers"), table("paired_arms"))),
        ("probe", claims_robustness.repeated_panel(table("repeat_panel"))
         | claims_robustness.reply_temperature(table("reply_temperature"))),
    ]


def _with_sizes(printed):
    """Claims that need a size or threshold of the protocol, which is printed only."""
    return [
        ("claims", claims_screen.channels(data.table("probe_cells"), printed)),
        ("pilot", claims_pilot.pilot(data.table("pilot_refusals"), data.table("pilot_pairs"),
                                     least_floor=printed["f1.f3_min"])),
    ]
