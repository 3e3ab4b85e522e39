"""The paper's numbers, computed again from the tables under data/, page by page of the book.

Each topic (`analysis.claims_debates`, `analysis.claims_screen` and so on) has functions from frames to a dict
of claim id to value. A value is in its natural unit: a fraction where the paper prints percent or percentage
points, else what the paper prints. Nothing here reads a claim's own printed value; claims that follow from
other printed numbers are in `analysis.claims_arithmetic`.
"""

from functools import cache

import pandas as pd

from analysis import (
    claims_debates,
    claims_multilevel,
    claims_parser,
    claims_pilot,
    claims_probe,
    claims_robustness,
    claims_screen,
    claims_traces,
    claims_transfer,
    data,
    multilevel,
    probes_released,
    sealed,
    specifications,
)
from analysis.claims_cells import NOTEBOOKS, as_frame


def values(printed, page=None):
    """Every value that data/ determines.

    Parameters
    ----------
    printed : Series of float
        Printed values in natural units by id; used for protocol sizes of other claims only.
    page : str, optional
        Stem of one page of the book, to compute its values only.

    Returns
    -------
    DataFrame
        Indexed by claim id: `value` (natural unit), `slack` (half width of what the data leave open, 0 for
        an exact value), `notebook` (stem of the page that shows it).

    Examples
    --------
    >>> from analysis import claims
    >>> values(claims.printed_values(claims.registry()), "transitions").loc["abs.n_debates"].to_dict()
    {'value': 6925.0, 'slack': 0.0, 'notebook': 'transitions'}
    """
    stamp, sizes = _stamp(), tuple(printed.items())
    pages = [name for name in NOTEBOOKS if name in COMPUTED] if page is None else [page] if page in COMPUTED else []
    found = [as_frame(name, _page(name, stamp, sizes)) for name in pages]
    return pd.concat(found) if found else as_frame("claims", {})


def _stamp():
    """What tells one state of data/ from another."""
    files = sorted([*data.root().glob("*.csv"), *data.root().glob("multilevel/*.parquet")])
    return tuple((str(path), path.stat().st_mtime_ns) for path in files)


@cache
def _page(name, stamp, sizes):
    return COMPUTED[name](pd.Series(dict(sizes), dtype=float))


def _transitions(printed):
    debates = data.debates()
    return claims_debates.transitions(debates) | claims_debates.flips(debates)


def _screen(printed):
    rows = data.model_rows()
    return claims_screen.association(rows, data.table("taxonomies"))


def _robustness(printed):
    rows, older, table = data.model_rows(), data.sealed_rows(), data.table
    nine = sealed.nine_rows(older, table("sealed_vectors"))
    ratios = probes_released.social_to_argument(table("channel_contrasts"))
    return (
        claims_robustness.pairs(rows) | claims_robustness.held_out_families(rows) | claims_robustness.noise(rows, nine)
        | claims_robustness.sealed_cohort(older, nine)
        | claims_robustness.curve(specifications.predictors(nine, table("strongest_probe"), ratios))
        | claims_robustness.other_scores(rows, table("four_round_rows"), table("social_arm"))
        | claims_robustness.eleven_families(rows, table("extension_rows"))
    )


def _probe(printed):
    table = data.table
    return (
        claims_probe.strongest_dropped(data.sealed_rows(), table("strongest_probe"))
        | claims_probe.log_ratio(table("channel_contrasts")) | claims_probe.repeated_panel(table("repeat_panel"))
        | claims_probe.reply_temperature(table("reply_temperature"))
        | claims_probe.flip_rates(table("probe_cells")) | claims_probe.channels(table("probe_cells"), printed)
    )


def _localisation(printed):
    return claims_debates.localisation(data.debates()) | claims_traces.replication(data.table("four_round_ledger"))


def _multilevel(printed):
    return claims_multilevel.posterior(multilevel.load("reported"))


def _replay(printed):
    return claims_traces.replay_cohort(data.table("replay_sources"), data.table("four_round_ledger"))


def _transfer(printed):
    rows, table = data.model_rows(), data.table
    return (
        claims_transfer.benchmarks(table("cross_benchmark"), table("cross_benchmark_runs"))
        | claims_transfer.holdouts(table("holdouts")) | claims_transfer.with_held_out_row(rows, table("holdouts"))
        | claims_transfer.responses(table("response_ledgers"), table("paired_arms"))
        | claims_transfer.local_rows(rows, table("four_round_ledger"))
    )


def _parser(printed):
    return (
        claims_parser.audit(data.table("parser_audit"))
        | claims_parser.unreadable_as_flip(data.model_rows(), data.table("four_round_rows"))
    )


def _costs(printed):
    return claims_parser.calls(data.table("parser_traces"))


def _pilot(printed):
    return claims_pilot.ladder(data.table("pilot_refusals"), data.table("pilot_pairs"), least_floor=printed["f1.f3_min"])


# Page that shows the values -> what computes them.
COMPUTED = {
    "transitions": _transitions,
    "screen": _screen,
    "robustness": _robustness,
    "probe": _probe,
    "localisation": _localisation,
    "multilevel": _multilevel,
    "replay": _replay,
    "transfer": _transfer,
    "parser": _parser,
    "costs": _costs,
    "pilot": _pilot,
}
