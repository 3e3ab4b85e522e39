"""Tables of the pages "Beyond the cohort" and "Private revision and reasoning modes", as a reader sees them.

Each function takes a frame of `transfer`, `transfer_choices`, `reasoning` or `followup` and returns one of
strings for display.
"""

import pandas as pd

from analysis.book import choices_note, count, number, p_value, percent, rate

RATES = {
    "Collapses / right at first": ("collapse", "init_correct", "c_cond"),
    "Corrections / wrong at first": ("correction", "init_wrong", "correction_rate"),
}
FLIP_RATES = {
    "alpha_tot": "Flip rate, all conditions", "alpha_default": "default", "alpha_anti_social": "anti-social",
    "alpha_anti_argument": "anti-argument",
}
NAMES = {"group": "Set", "row": "Row", "endpoint_round": "Last round"}
SCORED = {"binary": "ties wrong", "expected": "ties at expected value"}
QUANTITIES = {
    "accuracy": "accuracy",
    "correction": "corrections",
    "collapse": "collapses",
    "to_wrong": "of these, to a wrong answer",
    "to_undecided": "of these, to no decision",
}
ANALYSES = {
    "peer_vs_self_paired": "peer and private revision",
    "sensitivity_drop_truncated": "without truncated replies",
    "thinking_paired": "thinking on and off", "sensitivity_complete_case": "complete cases",
}
OUTCOMES = {"final_correct": "right at last", "correction": "corrected", "collapse": "collapsed"}


def choices(*, tie, missing, interval):
    """Sentence on what the choices of the build do on a page of counts.

    Examples
    --------
    >>> choices(tie="alphabetic", missing="initially_wrong", interval="wilson")[:41]
    "Counts of the paper's rows are as release"
    """
    told = choices_note(tie=tie, missing=missing, interval=interval)
    ours = "Counts of the paper's rows are as released, whatever the choices; added rows follow these"
    return f"{ours}: {told[0].lower()}{told[1:]}"


def _named(lines):
    added = lines["added"] if "added" in lines else False
    return lines["row"].where(~pd.Series(added, index=lines.index).astype(bool), lines["row"] + " (added)")


def _rates(lines):
    def told(k, n, name):
        return list(map(rate, lines[k], lines[n], lines[f"{name}_low"], lines[f"{name}_high"]))

    return {heading: told(*names) for heading, names in RATES.items()}


def _accuracy(lines):
    return [f"{percent(a)} to {percent(b)}" for a, b in zip(lines["init_acc"], lines["final_acc"])]


def _of(k, n):
    return [f"{count(a)}/{count(b)}" for a, b in zip(k, n)]


def _pairs(first, second):
    return [f"{number(a, 0)} / {number(b, 0)}" for a, b in zip(first, second)]


def _whole(values):
    return [number(value, 0 if value == round(value) else 1) for value in values]


def ledgers(lines, names):
    """Transition ledgers of which only counts are public.

    Parameters
    ----------
    lines : DataFrame
        From `transfer.rates`.
    names : dict of str to str
        Columns that name a line, and their headings.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, transfer
    >>> shown = ledgers(transfer.holdouts(data.table("holdouts")), {"row": "Row"})
    >>> shown["Collapses / right at first"].iloc[0]
    '0.6% [0.1, 3.3] (1/166)'
    """
    def worded(name):
        return [value if isinstance(value, str) else count(value) for value in lines[name]]

    words = {heading: worded(name) for name, heading in names.items()} | {"Debates": worded("n")}
    return pd.DataFrame(words | _rates(lines) | {"Accuracy": _accuracy(lines), "Net": _whole(lines["net"])})


def everything(lines):
    """All ledgers outside the cohort, and the added rows, with what debating changed.

    Examples
    --------
    >>> from analysis import data, transfer
    >>> names = ("cross_benchmark", "cross_benchmark_runs", "holdouts", "response_ledgers")
    >>> lines = transfer.net_change(transfer.everything(*map(data.table, names)))
    >>> everything(lines)["Change, points"].iloc[0]
    '0.5 [−5.9, 6.9]'
    """
    spans = (100 * lines[["change", "change_low", "change_high"]]).map(lambda v: number(v, 1))
    changes = [f"{c} [{a}, {b}]" for c, a, b in spans.itertuples(index=False)]
    return ledgers(lines.assign(row=_named(lines)), NAMES).assign(**{"Change, points": changes})


def _range(low, high):
    return number(low, 0) if low == high else f"{number(low, 0)} to {number(high, 0)}"


def codings(table):
    """Nets with starts that have no majority counted as wrong and left out.

    Examples
    --------
    >>> from analysis import data, transfer, transfer_choices
    >>> lines = transfer.benchmarks(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))
    >>> codings(transfer_choices.codings(lines))["Net, left out"].iloc[1]
    '−3 to 37'
    """
    return pd.DataFrame({
        "Row": table["row"],
        "Set": table["group"],
        "Debates": table["n"].map(count),
        "Source codes them": table["coded"],
        "Starts without a majority": table["missing"].map(count),
        "Of these right at last": list(map(_range, table["ended_right_low"], table["ended_right_high"])),
        "Net, counted as wrong": table["net_wrong"].map(lambda v: number(v, 0)),
        "Net, left out": list(map(_range, table["net_out_low"], table["net_out_high"])),
    })


def associations(table, lines):
    """Correlation of flip rate and transition over questions.

    Parameters
    ----------
    table : DataFrame
        From `transfer.associations`.
    lines : DataFrame
        From `transfer.benchmarks`, for the models' names.

    Returns
    -------
    DataFrame
        Runs where one of the correlations is defined.

    Examples
    --------
    >>> from analysis import data, transfer
    >>> lines = transfer.benchmarks(data.table("cross_benchmark"), data.table("cross_benchmark_runs"))
    >>> associations(transfer.associations(data.table("cross_benchmark_associations")), lines).iloc[0, 2]
    '0.236 (p = 0.0096, n = 120)'
    """
    asked = table[table["starts"] != "all"]
    p = asked["p"].map(lambda value: "" if pd.isna(value) else f"p = {p_value(value)}, ")
    told = [f"{number(rho)} ({tested}n = {count(n)})" for rho, tested, n in zip(asked["rho"], p, asked["n"])]
    wide = asked.assign(told=told).pivot(index=["run", "benchmark"], columns="outcome", values="told")
    known = asked.dropna(subset="rho").set_index(["run", "benchmark"]).index.unique()
    names = lines.set_index(["run", "benchmark"])
    wide = wide.loc[[key for key in names.index if key in known]]
    return pd.DataFrame({
        "Row": names.loc[wide.index, "row"].to_numpy(), "Set": names.loc[wide.index, "group"].to_numpy(),
        "Flip rate and collapse, right starts": wide["collapse"].to_numpy(),
        "Flip rate and correction, wrong starts": wide["correction"].to_numpy(),
    })


def held_out(lines):
    """Held-out models with both endpoints side by side.

    Parameters
    ----------
    lines : DataFrame
        From `transfer.holdouts`, the matched panel.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, transfer
    >>> lines = transfer.holdouts(data.table("holdouts")).query("panel == 'matched'")
    >>> held_out(lines)["Collapses, Round 3"].tolist()
    ['1/166', '0/164', '0/145', '4/140', '0/167']
    """
    three, four = (lines[lines["endpoint_round"] == k].reset_index(drop=True) for k in (3, 4))
    told, accuracies = _rates(four), zip(four["init_acc"], three["final_acc"], four["final_acc"])
    return pd.DataFrame({
        "Row": four["row"],
        "Family": four["family"],
        "Flip rate": four["alpha_tot"].map(lambda v: number(v, 4)),
        "Debates": four["n"].map(count),
        "Without a first majority": four["init_undefined"].map(count),
        "Collapses, Round 4": told["Collapses / right at first"],
        "Corrections, Round 4": told["Corrections / wrong at first"],
        "Collapses, Round 3": _of(three["collapse"], three["init_correct"]),
        "Corrections, Round 3": _of(three["correction"], three["init_wrong"]),
        "Accuracy, Rounds 0, 3, 4": [" / ".join(map(percent, cells)) for cells in accuracies],
        "Unread answers": four["debate_unparsed_rate"].map(lambda v: percent(v, 2)),
    })


def local(lines):
    """The locally served row: flip rates of the conditions and its ledger.

    Examples
    --------
    >>> from analysis import data, transfer
    >>> local(transfer.holdouts(data.table("holdouts")).query("panel == 'local'")).iloc[0].tolist()[:3]
    ['qwen3-32b', '0.6767', '0.6546']
    """
    rates = {heading: lines[name].map(lambda v: number(v, 4)) for name, heading in FLIP_RATES.items()}
    return pd.DataFrame({
        "Row": lines["row"],
        **rates,
        "Probe records": lines["alpha_records"].map(count),
        "Debates": lines["n"].map(count),
        **_rates(lines), "Accuracy": _accuracy(lines), "Net": _whole(lines["net"]),
    })


def endpoints(table):
    """The same rows ended after Round 3 and after Round 4.

    Examples
    --------
    >>> from analysis import data, transfer_choices
    >>> found = transfer_choices.endpoints(data.table("holdouts"), data.table("response_ledgers"))
    >>> endpoints(found).columns.tolist()[2:4]
    ['Collapses, Round 3', 'Collapses, Round 4']
    """
    transitions = {"Collapses": ("collapse", "init_correct"), "Corrections": ("correction", "init_wrong")}
    cells = {
        f"{heading}, Round {k}": _of(table[f"{name}_{k}"], table[f"{of}_{k}"])
        for heading, (name, of) in transitions.items() for k in (3, 4)
    }
    nets = {f"Net, Round {k}": table[f"net_{k}"].map(lambda v: number(v, 0)) for k in (3, 4)}
    return pd.DataFrame({"Row": table["row"], "Set": table["group"], **cells, **nets})


def rounds(table):
    """What happens in each round of fully released rows.

    Examples
    --------
    >>> from analysis import data, transfer
    >>> rounds(transfer.rounds(data.debates())).columns.tolist()[:3]
    ['Row', 'Round', 'Majority changed']
    """
    return pd.DataFrame({
        "Row": _named(table), "Round": table["round"].map(count),
        "Majority changed": _shares(table["changed"], table["n"]),
        "Unanimous": _shares(table["unanimous"], table["n"]),
        "Collapses that begin here": _shares(table["collapse"], table["collapses"]),
        "Corrections first right here": _shares(table["correction"], table["corrections"]),
    })


def _shares(k, n, digits=1):
    return [f"{percent(a / b, digits)} ({count(a)}/{count(b)})" if b else "–" for a, b in zip(k, n)]


def feasibility(lines, panels):
    """Later rows at Round 3: mixed panels, numbers as answers, a model without reasoning.

    Parameters
    ----------
    lines : DataFrame
        From `transfer.everything`, these rows.
    panels : DataFrame
        From `transfer_choices.mixed_panels`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, transfer, transfer_choices
    >>> names = ("cross_benchmark", "cross_benchmark_runs", "holdouts", "response_ledgers")
    >>> lines = transfer.everything(*map(data.table, names)).query("group == 'mixed panel'")
    >>> feasibility(lines, transfer_choices.mixed_panels(data.table("response_ledgers")))["Ties"].tolist()
    ['26', '20', '28']
    """
    undecided = lines["row"].map(panels.set_index("row")["net_undecided"])
    out = ledgers(lines, NAMES)
    out["Ties"] = list(map(count, lines["init_tied"]))
    out["Net, ties undecided"] = [number(value, 0) for value in undecided]
    return out


def panels(table):
    """Mixed panels under both tie rules: where the nets come from.

    Examples
    --------
    >>> from analysis import data, transfer_choices
    >>> panels(transfer_choices.mixed_panels(data.table("response_ledgers"))).iloc[0, -1]
    '14 / 22'
    """
    def both(name):
        return _pairs(table[f"{name}_alphabetic"], table[f"{name}_undecided"])

    return pd.DataFrame({
        "Panel": table["row"],
        "Tied starts": _shares(table["init_tied"], table["n"]),
        "Right at first": both("init_correct"),
        "Collapses": both("collapse"),
        "Corrections": both("correction"), "Right at last": both("final_correct"), "Net": both("net"),
    })


def agents(table, same):
    """How often each seat of a mixed panel changed its answer.

    Parameters
    ----------
    table : DataFrame
        data/mixed_panel_agents.csv.
    same : dict of str to str
        Panel names to those of the other tables.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, transfer_choices
    >>> agents(data.table("mixed_panel_agents"), transfer_choices.SAME)["Changed its answer"].iloc[1]
    '29.0%'
    """
    return pd.DataFrame({
        "Panel": table["panel"].replace(same), "Agent": table["agent"],
        "Changed its answer": table["flip_rate"].map(percent),
    })


def quality(table):
    """Quality control of the arms compared with and without thinking.

    Examples
    --------
    >>> from analysis import data, reasoning
    >>> quality(reasoning.quality(data.table("response_ledgers"), 0.05))["Unclosed reasoning"].iloc[0]
    '13.0% (78/600)'
    """
    unclosed = _of(table["unclosed"], table["replies"])
    return pd.DataFrame({
        "Arm": table["row"].str.replace("_", " "), "Debates": table["n"].map(count),
        "Unclosed reasoning": [f"{percent(r)} ({k})" for r, k in zip(table["unclosed_rate"], unclosed)],
        "Unread answers": table["unparsed_rate"].map(lambda v: percent(v, 2)),
        "Within the limit": table["passes"].map({True: "yes", False: "no"}),
    })


def paired(table):
    """Exact tests of paired arms.

    Examples
    --------
    >>> from analysis import data, reasoning
    >>> paired(reasoning.paired(data.table("paired_arms")))["Exact p"].iloc[1]
    '1.0000'
    """
    return pd.DataFrame({
        "Compared": table["analysis"].map(ANALYSES), "Outcome": table["outcome"].map(OUTCOMES),
        "First arm": table["arm_a"].str.replace("_", " "), "Second arm": table["arm_b"].str.replace("_", " "),
        "Questions compared": _of(table["n_compared"], table["n_shared"]),
        "First only": table["only_a"].map(count), "Second only": table["only_b"].map(count),
        "Exact p": table["p"].map(p_value), "Holm": table["p_holm"].map(p_value),
    })


def subgroup(table):
    """Whether rows that reason collapse less.

    Examples
    --------
    >>> one = {"rows": "a", "n_reasoning": 5, "n_others": 12, "u": 9.0, "p": 0.0151, "p_exact": 0.0131}
    >>> subgroup(pd.DataFrame([one])).iloc[0, -1]
    '0.0131'
    """
    return pd.DataFrame({
        "Rows that reason": table["rows"],
        "Rows": table["n_reasoning"].map(count),
        "Other rows": table["n_others"].map(count),
        "U": table["u"].map(lambda v: number(v, 1)),
        "One-sided p (normal)": table["p"].map(p_value),
        "One-sided p (exact)": table["p_exact"].map(p_value),
    })


def rounded(table):
    """Interval ends that depend on how the normal quantile is rounded.

    Examples
    --------
    >>> from analysis import data, transfer, transfer_choices
    >>> found = transfer_choices.rounded_bounds(transfer.rates(data.table("response_ledgers")))
    >>> rounded(found)["Quantile rounded to 1.96"].iloc[0]
    '56.57%'
    """
    return pd.DataFrame({
        "Row": table["row"].str.replace("_", " "),
        "Rate": table["rate"].map({"c_cond": "conditional collapse", "correction_rate": "correction rate"}),
        "k/n": _of(table["k"], table["n"]),
        "End": table["end"].map({"low": "lower", "high": "upper"}),
        "Quantile exact": table["exact"].map(lambda v: percent(v, 2)),
        "Quantile rounded to 1.96": table["rounded"].map(lambda v: percent(v, 2)),
    })


def net_words(lines):
    """Accuracy changes in words, for a figure's text alternative.

    Examples
    --------
    >>> net_words(pd.DataFrame({"group": ["GPQA"], "row": ["m"], "change": [0.035]}))
    'GPQA m 3.5'
    """
    told = zip(lines["group"], _named(lines), lines["change"])
    return ", ".join(f"{group} {row} {number(100 * change, 1)}" for group, row, change in told)


# --- follow-up ----------------------------------------------------------------------------------------------


def printed(verdicts, ids):
    """What the paper prints, where nothing public is below it.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.
    ids : sequence of str
        Claims to show.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"id": "a", "quantity": "q", "scope": "s", "printed": "-1.5", "unit": "pp", "location": "6"}
    >>> printed(pd.DataFrame([one | {"verdict": "gated"}]), ["a"])["As printed"].item()
    '−1.5 points'
    """
    chosen = verdicts.set_index("id").loc[ids]
    units = chosen["unit"].map({"percent": "%", "pp": " points"}).fillna("")
    return pd.DataFrame({
        "Quantity": chosen["quantity"].to_numpy(), "Of": chosen["scope"].to_numpy(),
        "As printed": (chosen["printed"].str.replace("-", "−") + units).to_numpy(),
        "Printed in": chosen["location"].to_numpy(),
        "Verdict": chosen["verdict"].to_numpy(),
    })


def _credit(value):
    return number(value, 0 if value == round(value) else 2)


def panels_of(table):
    """Both arms question by question with both credits.

    Parameters
    ----------
    table : DataFrame
        From `followup.side_by_side`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import followup
    >>> panels_of(followup.side_by_side(*followup.example()))["Private: ties at expected value"].iloc[1]
    '0.33'
    """
    credits = {
        f"{arm.capitalize()}: {words}": table[f"{arm}_{scoring}"].map(_credit)
        for scoring, words in SCORED.items() for arm in ("peer", "private")
    }
    return pd.DataFrame({
        "Question": table["question"],
        "Right answer": table["gold"],
        "Round 0": table["start"],
        "After peer debate": table["peer"],
        "After private revision": table["private"], **credits,
    })


def differences(table):
    """Private revision minus peer debate under both scorings.

    Parameters
    ----------
    table : DataFrame
        From `followup.compare`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import followup
    >>> differences(followup.compare(*followup.example(), draws=100))["Private − peer, points"].iloc[0]
    '−12.50'
    """
    return pd.DataFrame({
        "Scoring": table["scoring"].map(SCORED), "Quantity": table["quantity"].map(QUANTITIES),
        "Peer debate": table["peer"].map(lambda v: number(v, 2)),
        "Private revision": table["private"].map(lambda v: number(v, 2)),
        "Private − peer, points": table["difference"].map(lambda v: number(v, 2)),
        "95% interval": [f"[{number(a, 2)}, {number(b, 2)}]" for a, b in zip(table["low"], table["high"])],
        "In answers": table["answers"].map(_credit),
        "Questions": table["n_questions"].map(count),
    })


def controlled(table):
    """Quality control of arms.

    Examples
    --------
    >>> from analysis import followup
    >>> controlled(followup.quality(followup.example()[1]))["Missing answers"].item()
    '2.1% (1/48)'
    """
    def share(name):
        known = zip(table[name], _shares(table[name].fillna(0), table["n"]))
        return ["not recorded" if pd.isna(k) else told for k, told in known]

    return pd.DataFrame({
        "Arm": table["row"],
        "Answers": table["n"].map(count),
        "Missing answers": share("missing"),
        "Of these abstentions": [count(k) if pd.notna(k) else "not recorded" for k in table["abstained"]],
        "Truncated": share("truncated"), "Unclosed reasoning": share("unclosed"),
        "Strict": table["strict"].map({True: "passes", False: "fails"}),
        "Amended": table["amended"].map({True: "passes", False: "fails"}),
    })


def pools(table):
    """Which pool sizes can give a printed accuracy.

    Examples
    --------
    >>> from analysis import followup
    >>> pools(followup.pools({"medium": 0.7455}, [1000, 2000])).iloc[0].tolist()
    ['medium', '74.55%', 'none', '1,491']
    """
    told = table.assign(cell=["none" if pd.isna(k) else count(k) for k in table["correct"]])
    wide = told.pivot(index=["share", "printed"], columns="size", values="cell")
    wide.columns = [f"Right answers of {count(n)}" for n in wide.columns]
    out = wide.reset_index().rename(columns={"share": "Accuracy of", "printed": "As printed"})
    return out.assign(**{"As printed": [percent(value, 2) for value in out["As printed"]]})
