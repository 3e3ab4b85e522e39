"""Replays of which only counts are public: the paper's printed gates and the released trace sources.

No debate of these cohorts can be replayed here. What can be done is their arithmetic, always-freezing (which
needs no actions), and the bounds that totals over groups of sources set for a part of them.
"""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import claims, replay, stumps
from analysis.errors import DataError

# Claims that print n, prevented, lost, and the collapses and corrections there were.
_PROBED = ("t2.freeze.n", "{0}.prevented", "{0}.lost", "s5.1.oss_collapses", "s6.freeze.corrections")
_TRACED = ("t2.r1.n", "{0}.prevented", "{0}.lost", "e7.always.prevented", "e7.always.lost")
PRINTED = {
    "probe_gated": ("abs.freeze", _PROBED),
    "round1_majority_change": ("t2.r1rule", _TRACED),
    "round1_stump": ("t2.stump", _TRACED),
    "always_freeze": ("e7.always", _TRACED),
    "disagreement": ("e9.dg", _TRACED),
}
TABLE_7 = ("probe_gated", "round1_majority_change", "round1_stump")
COHORTS = ("six rows", "four open-weight rows", "seven sources", "thirteen sources")
# How a trace file's name begins, by released cohort.
SERVED = {"local": "vllm", "openrouter": "openrouter", "gemini": "gemini"}


def printed(gates=tuple(PRINTED)):
    """Arithmetic of the paper's freeze gates, from its printed counts.

    Parameters
    ----------
    gates : sequence of str
        Keys of `PRINTED`; `TABLE_7` are those of the paper's table.

    Returns
    -------
    DataFrame
        `replay.from_aggregate`, indexed by gate.

    References
    ----------
    Table 7; E.7 and E.9.

    Examples
    --------
    >>> printed(TABLE_7)["net"].tolist()
    [-79.0, -13.0, -29.0]
    """
    values = claims.printed_values(claims.registry())
    ids = [[name.format(stem) for name in names] for stem, names in (PRINTED[gate] for gate in gates)]
    n, prevented, lost, collapse, correction = values.loc[sum(ids, [])].to_numpy(int).reshape(-1, 5).T
    return replay.from_aggregate(n, prevented, lost, collapse=collapse, correction=correction, index=gates)


def compare(debates, local, replay_policies):
    """Every gate on every cohort that anything is known of, at equal weights.

    Parameters
    ----------
    debates, local : DataFrame
        The paper's public debates, and those of the open-weight rows.
    replay_policies : DataFrame
        Released counts by cohort and policy.

    Returns
    -------
    DataFrame
        `gate`, `cohort` (one of `COHORTS`), `basis` ("public debates", "printed counts" or "released
        counts"), the columns of `replay.from_aggregate`, and those that `selectivity` adds. The stump on
        public debates is that of `stumps.folds`.

    References
    ----------
    Table 7; E.7 and E.9.

    Examples
    --------
    >>> from analysis import data
    >>> paper = data.debates()
    >>> found = compare(paper, paper[paper["row"].isin(data.LOCAL_ROWS)], data.table("replay_policies"))
    >>> found.groupby("basis", sort=False).size().to_dict()
    {'public debates': 10, 'printed counts': 5, 'released counts': 6}
    """
    parts = []
    for name, cohort in zip(COHORTS[:2], (debates, local), strict=True):
        learned = stumps.folds(cohort).iloc[[-1]].assign(gate="round1_stump").set_index("gate")
        found = pd.concat([replay.replay_gates(cohort)[replay.COLUMNS], learned[replay.COLUMNS]])
        parts.append(found.assign(cohort=name, basis="public debates"))
    theirs = printed()
    cohort = theirs["n"].eq(len(local)).map({True: COHORTS[1], False: COHORTS[2]})
    parts.append(theirs.assign(cohort=cohort, basis="printed counts"))
    released = replay_policies[replay_policies["cohort"] == "primary"].set_index("policy")
    every = released.loc["always_freeze"]
    found = replay.from_aggregate(
        released["n"], released["prevented"], released["lost"], gated=released["gated"],
        collapse=every["prevented"], correction=every["lost"], index=released.index,
    )
    parts.append(found.assign(cohort=COHORTS[3], basis="released counts"))
    out = pd.concat([part.rename_axis("gate").reset_index() for part in parts], ignore_index=True)
    return selectivity(out[["gate", "cohort", "basis", *replay.COLUMNS]])


def selectivity(results):
    """Whether a gate catches a larger share of the collapses than of the corrections.

    Parameters
    ----------
    results : DataFrame
        Lines of `replay.replay` and its relatives.

    Returns
    -------
    DataFrame
        The same with `share_prevented` (prevented / collapses), `share_lost` (lost / corrections) and
        `p_equal` (Fisher's exact test that both are equal, two-sided; missing without whole counts). A gate
        that freezes at random has equal shares, whatever the weights.

    Examples
    --------
    >>> line = pd.DataFrame({"prevented": [3], "lost": [0], "collapse": [3], "correction": [3]})
    >>> selectivity(line)[["share_prevented", "share_lost", "p_equal"]].round(3).values.tolist()
    [[1.0, 0.0, 0.1]]
    """
    cells = results[["prevented", "collapse", "lost", "correction"]].astype(float)
    p = [
        sps.fisher_exact([[a, m - a], [b, k - b]])[1] if (np.array([a, m, b, k]) % 1 == 0).all() else np.nan
        for a, m, b, k in cells.itertuples(index=False)
    ]
    out = results.assign(share_prevented=cells["prevented"] / cells["collapse"], p_equal=p)
    return out.assign(share_lost=cells["lost"] / cells["correction"])


def sources(replay_sources, four_round_ledger):
    """Primary sources of the released replay, with the group that each is in.

    Parameters
    ----------
    replay_sources, four_round_ledger : DataFrame
        Counts by trace file.

    Returns
    -------
    DataFrame
        The primary lines of `replay_sources` with `served` (a key of `SERVED`) and `replicated`, whether the
        four-round replication reads the same file: these are the sources whose collapses and corrections add
        up to the printed ones.

    References
    ----------
    E.2.1 and E.7.

    Examples
    --------
    >>> from analysis import data
    >>> found = sources(data.table("replay_sources"), data.table("four_round_ledger"))
    >>> found.groupby("replicated")[["usable", "collapse"]].sum().to_dict("index")
    {False: {'usable': 1180, 'collapse': 17.0}, True: {'usable': 1258, 'collapse': 94.0}}
    """
    out = replay_sources[replay_sources["primary"]].reset_index(drop=True)
    out["served"] = ""
    for name, start in SERVED.items():
        out.loc[out["trace_source"].str.startswith(start), "served"] = name
    return out.assign(replicated=out["trace_source"].isin(four_round_ledger["trace_source"]))


def always_frozen(primary):
    """Always freezing the released sources: all of them, those replicated, and the others.

    Parameters
    ----------
    primary : DataFrame
        From `sources`.

    Returns
    -------
    DataFrame
        `replay.from_aggregate`, indexed by cohort, with `sources`.

    Examples
    --------
    >>> from analysis import data
    >>> found = always_frozen(sources(data.table("replay_sources"), data.table("four_round_ledger")))
    >>> found[["sources", "n", "prevented", "lost"]].values.tolist()
    [[13, 2438, 111, 194], [7, 1258, 94, 124], [6, 1180, 17, 70]]
    """
    chosen = primary["replicated"]
    cohorts = {"all primary sources": chosen | ~chosen, "replicated": chosen, "others": ~chosen}
    sums = pd.DataFrame({name: primary.loc[part, ["usable", "collapse", "correction"]].sum()
                         for name, part in cohorts.items()}).T
    out = replay.from_aggregate(
        sums["usable"], sums["collapse"], sums["correction"], gated=sums["usable"], collapse=sums["collapse"],
        correction=sums["correction"], index=list(cohorts),
    )
    out.insert(0, "sources", [int(part.sum()) for part in cohorts.values()])
    return out


def part_of_total(total, least, most, chosen):
    """Bounds of a sum over some members of a group whose total is known.

    Parameters
    ----------
    total : float
        Sum over all members.
    least, most : Series of float
        Bounds of each member.
    chosen : Series of bool
        Members of the sum.

    Returns
    -------
    low, high : float
        Over all values within the bounds that have the total.

    Raises
    ------
    DataError
        No values within the bounds have this total.

    Examples
    --------
    >>> part_of_total(10, pd.Series([0, 0, 0]), pd.Series([6, 3, 4]), pd.Series([True, False, False]))
    (3.0, 6.0)
    """
    if not least.sum() <= total <= most.sum():
        raise DataError(f"total {total}: expected {least.sum()} to {most.sum()}, as the bounds allow")
    low = max(least[chosen].sum(), total - most[~chosen].sum())
    return float(low), float(min(most[chosen].sum(), total - least[~chosen].sum()))


def replicated_bounds(replay_policies, primary, four_round_rows, *, policy="round1_majority_change"):
    """What a released gate can have done on the replicated sources, given its totals over groups of sources.

    Parameters
    ----------
    replay_policies : DataFrame
        Released counts by cohort and policy.
    primary : DataFrame
        From `sources`.
    four_round_rows : DataFrame
        With `trace_source`, `r1_majority_changed`; six of the replicated sources.
    policy : str
        A fixed policy.

    Returns
    -------
    DataFrame
        Indexed by `gated`, `prevented`, `lost`: `low`, `high` over the replicated sources.

    Notes
    -----
    A source prevents at most its collapses and loses at most its corrections; it freezes at most its usable
    debates, and exactly those whose Round 1 majority changed where that count is released.

    Examples
    --------
    >>> from analysis import data
    >>> primary = sources(data.table("replay_sources"), data.table("four_round_ledger"))
    >>> known = data.table("four_round_rows").merge(data.table("four_round_ledger")[["row", "trace_source"]])
    >>> found = replicated_bounds(data.table("replay_policies"), primary, known)
    >>> found.loc["prevented"].tolist(), found.loc["lost"].tolist()
    ([54.0, 63.0], [53.0, 96.0])
    """
    totals = replay_policies[replay_policies["policy"] == policy].set_index("cohort")
    known = primary["trace_source"].map(four_round_rows.set_index("trace_source")["r1_majority_changed"])
    nothing = primary["usable"] * 0
    limits = {
        "gated": (known.fillna(0), known.fillna(primary["usable"])),
        "prevented": (nothing, primary["collapse"]), "lost": (nothing, primary["correction"]),
    }
    out = {}
    for name, (least, most) in limits.items():
        ends = [part_of_total(totals.loc[served, name], least[at], most[at], primary["replicated"][at])
                for served, at in primary.groupby("served").groups.items()]
        out[name] = [sum(end) for end in zip(*ends, strict=True)]
    return pd.DataFrame.from_dict(out, orient="index", columns=["low", "high"])
