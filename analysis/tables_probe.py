"""Tables about the probe as a reader sees them: results of `analysis.probes` and its kin, worded."""

import pandas as pd

from analysis import probes, stats
from analysis.book import count, number, p_value, percent, rate

ORDERS = {"strict": "AA > D > AS", "partial": "AA > AS", "none": "other", "": "–"}
SOURCES = {"counts": "released counts", "printed": "as printed", "records": "probe records"}
BELOW = {"gated": "nothing public", "reported": "a stored total", "setting": "a choice of the protocol",
         "arithmetic": "other printed numbers", "counts": "released counts", "rows": "released rows"}
RATIOS = ["row", "social", "argument", "pooled", "ratio", "low", "high", "printed", "log_ratio"]


def _name(line):
    return f"{line.row} (added)" if getattr(line, "added", False) else line.row


def _share(k, n, digits=1):
    return f"{percent(k / n, digits)} ({count(k)}/{count(n)})" if n else "–"


def _shares(k, n, digits=1):
    return [_share(*pair, digits) for pair in zip(k, n, strict=True)]


def _of(k, n):
    return [f"{count(a)}/{count(b)}" for a, b in zip(k, n, strict=True)]


def _with(first, second):
    """Number with another in brackets."""
    return [f"{number(a)} ({number(b)})" for a, b in zip(first, second, strict=True)]


def _interval(lines, value):
    """Number with its interval, in the columns `value`_low and `value`_high or low and high."""
    ends = (f"{value}_low", f"{value}_high") if f"{value}_low" in lines else ("low", "high")
    told = zip(lines[value], *(lines[end] for end in ends), strict=True)
    return ["–" if pd.isna(v) else f"{number(v)} [{number(a)}, {number(b)}]" for v, a, b in told]


def printed_at(registry, places):
    """Lines of the registry that are printed in one of some places, be it first or again.

    Examples
    --------
    >>> from analysis import claims
    >>> printed_at(claims.registry(), ["Table 5"])["id"].tolist()
    ['t5.sa_dauc']
    """
    told = registry["paper_location"].str.split("; ")
    return registry[[not set(places).isdisjoint(where) for where in told]].reset_index(drop=True)


def as_printed(lines):
    """Printed numbers and what is public below them.

    Parameters
    ----------
    lines : DataFrame
        Of the registry.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims
    >>> as_printed(printed_at(claims.registry(), ["Table 5"])).iloc[0].tolist()[2:]
    ['0.004', 'nothing public', 'Table 5']
    """
    return pd.DataFrame({
        "Quantity": lines["quantity"], "Of": lines["scope"],
        "As printed": lines["printed"].str.replace("-", "−"),
        "Below it": lines["rebuild"].map(BELOW), "Printed in": lines["paper_location"],
    })


# --- three conditions ---------------------------------------------------------------------------------------


def manipulated_here(frame, *, unparsed="no_revision"):
    """The same for probe records.

    Parameters
    ----------
    frame : DataFrame
        One line a probe.
    unparsed : {"no_revision", "drop"}
        As for `probes.flip_rate`.

    Returns
    -------
    DataFrame
        As `manipulated`, effect sizes computed; `p_holm` over the rows given.

    Examples
    --------
    >>> manipulated_here(probes.empty()).shape[0]
    0
    """
    found = probes.manipulation(frame, unparsed=unparsed)
    kept = probes.records(frame, by="row").set_index("row")["n_records"]
    ends = {f"{name}_high": found[name] for name in probes.CONDITIONS}
    return found.assign(source="records", n_records=found["row"].map(kept), **ends)


def conditions(lines, *, level=0.05):
    """Flip rates under three system prompts, their order, and the paired comparison.

    Parameters
    ----------
    lines : DataFrame
        `manipulated`, and `manipulated_here` below it, with `added`.
    level : float
        Of Holm's rule.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"row": "m", "source": "records", "n_records": 9, "order": "strict", "d": 0.5, "p": 0.01}
    >>> line["p_holm"] = 0.01
    >>> line |= {f"{c}{end}": r for c, r in zip(probes.CONDITIONS, (0.3, 0.1, 0.5)) for end in ("", "_high")}
    >>> conditions(pd.DataFrame([line])).iloc[0].tolist()[2:6]
    ['30.0%', '10.0%', '50.0%', 'AA > D > AS']
    """
    return pd.DataFrame({
        "Model": [_name(line) for line in lines.itertuples()],
        "Records": lines["n_records"].map(count),
        **{heading: [_ends(low, high) for low, high in zip(lines[name], lines[f"{name}_high"])]
           for heading, name in (("Default (D)", "default"), ("Anti-social (AS)", "anti_social"),
                                 ("Anti-argument (AA)", "anti_argument"))},
        "Order": lines["order"].map(ORDERS),
        "d (AA − AS)": lines["d"].map(number),
        "p": [_small(p) for p in lines["p"]],
        "Holm": ["–" if pd.isna(p) else "yes" if p <= level else "no" for p in lines["p_holm"]],
        "Rates from": lines["source"].map(SOURCES),
    })


def _ends(low, high):
    first, last = percent(low), percent(high)
    return first if first == last else f"{first.removesuffix('%')} to {last}"


def _small(p):
    return "–" if pd.isna(p) else p_value(p) if p >= 1e-4 else f"{p:.1e}".replace("-", "−")


def in_words(lines):
    """What the figure of conditions shows, for its text alternative.

    Examples
    --------
    >>> in_words(pd.DataFrame({"row": ["m"], "default": [0.3], "anti_social": [0.1], "anti_argument": [0.5]}))
    'm 10.0%, 30.0%, 50.0%'
    """
    names = ("anti_social", "default", "anti_argument")
    return "; ".join(f"{_name(line)} " + ", ".join(percent(getattr(line, name)) for name in names)
                     for line in lines.itertuples())


# --- right and wrong starts ---------------------------------------------------------------------------------


def starts(counts, *, interval="wilson"):
    """Flips by whether the agent started right, without and with social pressure.

    Parameters
    ----------
    counts : DataFrame
        `row, social, n_probes, n_init_right_probes, n_init_wrong_probes, n_adv, n_cor, n_neutral, n_flip` of
        one condition, optionally `added`.
    interval : {"wilson", "jeffreys"}
        95% interval of the flip rates.

    Returns
    -------
    DataFrame
        One line a row.

    Examples
    --------
    >>> one = {"row": "m", "n_probes": 10, "n_init_right_probes": 6, "n_init_wrong_probes": 4, "n_adv": 3,
    ...        "n_cor": 1, "n_neutral": 1, "n_flip": 5}
    >>> starts(pd.DataFrame([one | {"social": False}, one | {"social": True}])).iloc[0].tolist()[2:4]
    ['50.0% (3/6)', '25.0% (1/4)']
    """
    ends = stats.proportion(counts["n_flip"], counts["n_probes"], interval=interval)
    counts = counts.assign(low=ends["low"].to_numpy(), high=ends["high"].to_numpy())
    out = []
    for _, part in counts.groupby("row", sort=False):
        line = {"Model": _name(next(part.itertuples()))}
        for social, name in ((False, "solo"), (True, "social")):
            for arm in part[part["social"].eq(social).fillna(False)].itertuples():
                right, wrong = arm.n_init_right_probes, arm.n_init_wrong_probes
                line |= {f"Flips, {name}": rate(arm.n_flip, arm.n_probes, arm.low, arm.high),
                         f"Right given up, {name}": _share(arm.n_adv, right),
                         f"Wrong to right, {name}": _share(arm.n_cor, wrong)}
                if not social:
                    line |= {"Wrong to another wrong, solo": _share(arm.n_neutral, wrong)}
        out.append(line)
    return pd.DataFrame(out).fillna("–")


# --- social and argument ------------------------------------------------------------------------------------


def ratios(lines):
    """Contrasts of the flip rate and S/A.

    Parameters
    ----------
    lines : DataFrame
        `row, social, argument`, the ratio of these as `pooled`, `log_ratio`; where known `ratio, low, high`
        (mean over questions with its interval), `n_units`, `printed`, `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> line = {"row": "m", "social": 0.05, "argument": 0.3, "pooled": 0.143, "log_ratio": -1.8}
    >>> ratios(pd.DataFrame([line | {"printed": 0.15}])).iloc[0].tolist()
    ['m', '5.0', '30.0', '0.143', '–', '0.15', '−1.80']
    """
    lines = lines.reindex(columns=list(dict.fromkeys([*lines.columns, *RATIOS])))
    return pd.DataFrame({
        "Model": [_name(line) for line in lines.itertuples()],
        "Social contrast, points": [number(100 * v, 1) for v in lines["social"]],
        "Argument contrast, points": [number(100 * v, 1) for v in lines["argument"]],
        "S/A of these": lines["pooled"].map(number),
        "S/A, mean over questions": _interval(lines, "ratio"),
        "S/A as printed": [number(v, 2) for v in lines["printed"]],
        "Log-ratio": [number(v, 2) for v in lines["log_ratio"]],
    })


def constants(orders):
    """How the constant under the logarithm changes the order of the rows.

    Parameters
    ----------
    orders : DataFrame
        `probes_released.log_ratio_orders`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> constants(pd.DataFrame({"constant": [1e-6], "n": [9], "rho": [1.0], "n_moved": [0]})).iloc[0].tolist()
    ['0.000001', '1.000', '0/9']
    """
    return pd.DataFrame({
        "Constant under the logarithm": [f"{value:.6f}".rstrip("0") for value in orders["constant"]],
        "ρ of S/A and log-ratio": orders["rho"].map(number),
        "Models that change places": _of(orders["n_moved"], orders["n"]),
    })


def readings(found):
    """Whether the released argument contrasts can be differences of halves or of quarters.

    Parameters
    ----------
    found : DataFrame
        `probes_released.argument_readings`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "asked": 10, "social_flips": 1.0, "argument_flips": 3.0, "halves": True}
    >>> readings(pd.DataFrame([one | {"extremes": False}])).iloc[0].tolist()
    ['m', '10', '1', '3', 'possible', 'impossible']
    """
    words = {True: "possible", False: "impossible"}
    return pd.DataFrame({
        "Model": found["row"],
        "Probes of one arm": found["asked"].map(count),
        "Social contrast, flips": found["social_flips"].map(count),
        "Argument contrast, flips": found["argument_flips"].map(count),
        "Strong two minus weak two": found["halves"].map(words),
        "Very strong minus weak": found["extremes"].map(words),
    })


# --- without the strongest, asked again ---------------------------------------------------------------------


def strongest(counts, change):
    """Flip rates with and without the strongest argument, and places among the rows.

    Parameters
    ----------
    counts : DataFrame
        Two lines a row: the table strongest_probe, or `probes.without_strongest`.
    change : DataFrame
        `probes.strongest_change`, optionally with `added`; added rows have no place among the others.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> counts = data.table("strongest_probe")
    >>> strongest(counts, probes.strongest_change(counts)).iloc[0].tolist()[1:4]
    ['42.0% (1,008/2,400)', '34.7% (625/1,800)', '−7.3']
    """
    lines = counts.set_index(["row", "probe_set"])
    cells = {name: [_share(*lines.loc[(row, name), ["n_flip", "n_probes"]]) for row in change["row"]]
             for name in ("all", "no_strongest")}
    place = ["–" if getattr(line, "added", False) else f"{count(line.rank)} to {count(line.rank_dropped)}"
             for line in change.itertuples()]
    return pd.DataFrame({
        "Model": [_name(line) for line in change.itertuples()],
        "Flips, all arguments": cells["all"],
        "Flips, without the strongest": cells["no_strongest"],
        "Change, points": [number(100 * v, 1) for v in change["change"]],
        "Change among right starts, points": [number(100 * v, 1) for v in change["adverse_change"]],
        "Place by flip rate": place,
    })


def strongest_association(tests):
    """Rank correlation with conditional collapse, with and without the strongest argument.

    Parameters
    ----------
    tests : DataFrame
        `probes.strongest_association`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"probe_set": "all", "n": 9, "rho": 0.683, "p": 0.042, "low": 0.035, "high": 0.927}
    >>> strongest_association(pd.DataFrame([one])).iloc[0].tolist()
    ['all four', '0.683 [0.035, 0.927]', '0.0420', '9']
    """
    return pd.DataFrame({
        "Arguments": tests["probe_set"].map({"all": "all four", "no_strongest": "without the strongest"}),
        "ρ with conditional collapse": _interval(tests, "rho"),
        "p (t approximation)": tests["p"].map(p_value),
        "Models": tests["n"].map(count),
    })


def days(sessions):
    """Steadiness within each day.

    Parameters
    ----------
    sessions : DataFrame
        `probes.sessions`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"day": "2026-04-27", "n_questions": 20, "n_repeats": 60, "unstable": 0, "range_mean": 0.0,
    ...        "range_max": 0.0, "n_unparsed": 21, "n_probes": 480}
    >>> days(pd.DataFrame([one])).iloc[0].tolist()[1:4]
    ['20', '0/20', '0.000 (0.000)']
    """
    return pd.DataFrame({
        "Day": sessions["day"],
        "Questions": sessions["n_questions"].map(count),
        "First answer not the same": _of(sessions["unstable"], sessions["n_questions"]),
        "Range of flip rates, mean (largest)": _with(sessions["range_mean"], sessions["range_max"]),
        "Replies not read": _shares(sessions["n_unparsed"], sessions["n_probes"], 2),
    })


def day_pairs(pairs):
    """Agreement between days.

    Parameters
    ----------
    pairs : DataFrame
        `probes.session_pairs`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"first": "a", "second": "b", "n_questions": 20, "same": 20, "rho": 1.0, "mean_difference": 0.0,
    ...        "max_difference": 0.0, "answer_changes": 0}
    >>> day_pairs(pd.DataFrame([one])).iloc[0].tolist()
    ['a and b', '20/20', '1.000', '0.000 (0.000)', '0/20']
    """
    n = pairs["n_questions"]
    return pd.DataFrame({
        "Days": [f"{a} and {b}" for a, b in zip(pairs["first"], pairs["second"])],
        "Questions identical in every repeat": _of(pairs["same"], n),
        "ρ of flip rates": pairs["rho"].map(number),
        "Difference, mean (largest)": _with(pairs["mean_difference"], pairs["max_difference"]),
        "Usual first answer changes": _of(pairs["answer_changes"], n),
    })


def reliability(lines):
    """Reliability of added rows' flip rates.

    Parameters
    ----------
    lines : DataFrame
        `probes.reliability`, optionally with `added`. Where only the ends of a range are known, it is shown
        as such.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "n_questions": 20, "split_half": 0.8, "icc": 0.6, "icc_low": 0.4, "icc_high": 0.8}
    >>> reliability(pd.DataFrame([one | {"retest": None}])).iloc[0].tolist()
    ['m', '20', '0.800', '0.600 [0.400, 0.800]', '–']
    """
    return pd.DataFrame({
        "Model": [_name(line) for line in lines.itertuples()],
        "Questions": lines["n_questions"].map(count),
        "Split-half (stepped up)": lines["split_half"].map(number),
        "Between agents (intraclass)": [
            told if told != "–" or pd.isna(low) else f"{number(low)} to {number(high)}"
            for told, low, high in zip(_interval(lines, "icc"), lines["icc_low"], lines["icc_high"])
        ],
        "Between repeats": lines["retest"].map(number),
    })


# --- questions, later lanes, sampling -----------------------------------------------------------------------


def question_auc(found):
    """Areas under the curve of scores of single questions.

    Parameters
    ----------
    found : DataFrame
        `probes.question_auc`, optionally with `added`.

    Returns
    -------
    DataFrame
        One line a row, one column a score: the area, and collapses of the debates that have the score.

    Examples
    --------
    >>> one = {"row": "m", "score": "disagreement", "n": 10, "n_pos": 2, "auc": 0.75}
    >>> question_auc(pd.DataFrame([one])).iloc[0].tolist()
    ['m', '0.750 (2/10)', '–', '–']
    """
    scores = {"disagreement": "Initial disagreement", "alpha": "Probe flip rate", "ratio": "S/A"}
    out = []
    for _, part in found.groupby("row", sort=False):
        line = {"Row": _name(next(part.itertuples()))} | dict.fromkeys(scores.values(), "–")
        told = _of(part["n_pos"], part["n"])
        out.append(line | {scores[score]: f"{number(area)} ({k})" for score, area, k in
                           zip(part["score"], part["auc"], told, strict=True)})
    return pd.DataFrame(out)


def lanes(found, nominal):
    """Later probe runs: records, unread replies, flip rates where released.

    Parameters
    ----------
    found : DataFrame
        `probes_released.later_lanes`.
    nominal : int
        Records of a run that was not stopped.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"lane": "m", "n_records": 18, "near_complete": False, "n_probes": 144, "n_unparsed": 2,
    ...        "default": None, "anti_social": None, "anti_argument": None, "order": ""}
    >>> lanes(pd.DataFrame([one]), 1800).iloc[0].tolist()[1:4]
    ['1.0% (18/1,800)', 'no', '1.4% (2/144)']
    """
    return pd.DataFrame({
        "Lane": found["lane"],
        "Records kept": [_share(k, nominal) for k in found["n_records"]],
        "Near complete": found["near_complete"].map({True: "yes", False: "no"}),
        "Replies not read": _shares(found["n_unparsed"], found["n_probes"]),
        **{heading: [percent(v) for v in found[name]] for heading, name in
           (("D", "default"), ("AS", "anti_social"), ("AA", "anti_argument"))},
        "Order": found["order"].map(ORDERS),
    })


def temperatures(found):
    """Flip rates of replies sampled greedily and at the temperature of the debate.

    Parameters
    ----------
    found : DataFrame
        `probes_released.two_arms`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> one = {"row": "m", "greedy": 0.5, "matched_temperature": 0.45, "difference": -0.05}
    >>> temperatures(pd.DataFrame([one | {"unparsed_rate": 0.01}])).iloc[0].tolist()
    ['m', '0.5000', '0.4500', '−5.0', '1.0%']
    """
    return pd.DataFrame({
        "Row": found["row"],
        "Greedy": [number(v, 4) for v in found["greedy"]],
        "At the debate's temperature": [number(v, 4) for v in found["matched_temperature"]],
        "Difference, points": [number(100 * v, 1) for v in found["difference"]],
        "Replies not read, at most": found["unparsed_rate"].map(percent),
    })
