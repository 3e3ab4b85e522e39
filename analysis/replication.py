"""The later traces of four rounds, public as counts by file: their ledger, and three accountings of it."""

import pandas as pd

from analysis import stats

PARTS = ("n", "init_correct", "init_wrong", "collapse", "correction", "final_correct")
ROUNDS = tuple(f"round_{k}" for k in (1, 2, 3, 4))
WHOLE, POOL = "all six", "with earlier and partial files"


def by_row(four_round_ledger, *, interval="wilson"):
    """Ledger and onset of each four-round trace file, of the six together, and with the earlier files.

    Parameters
    ----------
    four_round_ledger : DataFrame
        Counts by trace file, a tied majority being undefined.
    interval : {"wilson", "jeffreys"}
        95% interval of the rates.

    Returns
    -------
    DataFrame
        One line a file of the six, then `WHOLE` and `POOL`: `row`, `n`, `init_correct`, `init_wrong` (not
        right at first, which takes in ties), `collapse`, `correction`, `final_correct`, `round_1` to
        `round_4` and `unlocalized` collapses, and with `_low` and `_high` the rates `c_cond`,
        `correction_rate`, `final_acc` and `share_1` (of the collapses).

    References
    ----------
    E.2.1.

    Examples
    --------
    >>> from analysis import data
    >>> found = by_row(data.table("four_round_ledger")).set_index("row")
    >>> found.loc[["all six", "with earlier and partial files"], ["collapse", "round_1"]].values.tolist()
    [[75, 40], [77, 40]]
    """
    names = {f"onset_{k}": name for k, name in enumerate(ROUNDS, start=1)} | {"onset_unknown": "unlocalized"}
    files = four_round_ledger.rename(columns=names)
    files["init_wrong"] = files["n"] - files["init_correct"]
    counts = [*PARTS, *ROUNDS, "unlocalized"]
    six = files[files["stage"] == "four_round"]
    sums = pd.DataFrame([six[counts].sum(), files[counts].sum()]).assign(row=[WHOLE, POOL])
    out = pd.concat([six[["row", *counts]], sums], ignore_index=True)
    rates = {"c_cond": ("collapse", "init_correct"), "correction_rate": ("correction", "init_wrong"),
             "final_acc": ("final_correct", "n"), "share_1": ("round_1", "collapse")}
    for name, (k, n) in rates.items():
        found = stats.proportion(out[k], out[n], interval=interval)
        out = out.assign(**{name: found["rate"], f"{name}_low": found["low"], f"{name}_high": found["high"]})
    return out


def accountings(four_round_ledger, model_rows, replay_sources):
    """The same six trace files as three released files count them.

    Parameters
    ----------
    four_round_ledger, model_rows, replay_sources : DataFrame
        Counts with a tied majority undefined; the realised cohort; debates with a first and a last majority.

    Returns
    -------
    DataFrame
        Lines `row`, `accounting` ("ties undefined", "cohort", "usable only") with `n, init_correct, collapse,
        correction, final_correct`; the last three sum the six rows.

    References
    ----------
    Table 22, E.2.1 and E.7; the paper calls the first accounting the same as that of the main table.

    Examples
    --------
    >>> from analysis import data
    >>> found = accountings(*map(data.table, ("four_round_ledger", "model_rows", "replay_sources")))
    >>> found.tail(3)[["accounting", "init_correct", "collapse", "correction"]].values.tolist()
    [['ties undefined', 662, 75, 144], ['cohort', 697, 93, 127], ['usable only', 697, 93, 121]]
    """
    six = four_round_ledger.loc[four_round_ledger["stage"] == "four_round", ["trace_source", "row"]]
    usable = replay_sources.rename(columns={"usable": "n"})
    # Both majorities are there, so right at first = right at last + collapses - corrections.
    usable["init_correct"] = usable["final_correct"] + usable["collapse"] - usable["correction"]
    counts = ["n", "init_correct", "collapse", "correction", "final_correct"]
    parts = {
        "ties undefined": six.merge(four_round_ledger[["trace_source", *counts]]),
        "cohort": six.merge(model_rows[["row", *counts]]),
        "usable only": six.merge(usable[["trace_source", *counts]]),
    }
    each = pd.concat([part.assign(accounting=name) for name, part in parts.items()], ignore_index=True)
    each = each[["row", "accounting", *counts]].astype(dict.fromkeys(counts, int))
    sums = each.groupby("accounting", sort=False)[counts].sum().reset_index().assign(row=WHOLE)
    order = each["row"].map({row: i for i, row in enumerate(six["row"])})
    return pd.concat([each.iloc[order.argsort(kind="stable")], sums], ignore_index=True)[list(each)]
