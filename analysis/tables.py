"""Tables as a reader sees them: words for headings, rates with interval, numerator and denominator, fixed decimals.

Each function takes a frame of `ledger`, `localize`, `replay` or `screen` and returns one of the same lines for display.
"""

import re

import pandas as pd

from analysis import stats
from analysis.book import Link, count, number, p_value, percent, rate


def _name(line):
    return f"{line.row} (added)" if getattr(line, "added", False) else line.row


def transitions(summary):
    """Four cells and both conditional rates, one line a row.

    Parameters
    ----------
    summary : DataFrame
        `ledger.summarize`, optionally with `added` (bool).

    Returns
    -------
    DataFrame
        Strings.

    Examples
    --------
    >>> from analysis import data, ledger
    >>> transitions(ledger.summarize(data.debates()))["Collapses / right at first"].iloc[2]
    '8.5% [6.9, 10.3] (86/1,016)'
    """
    lines = [
        {
            "Row": _name(s),
            "Debates": count(s.n),
            "Collapses / right at first": rate(s.collapse, s.init_correct, s.c_cond_low, s.c_cond_high),
            "Corrections / wrong at first": rate(s.correction, s.init_wrong, s.correction_rate_low, s.correction_rate_high),
            "Accuracy": f"{percent(s.init_acc)} to {percent(s.final_acc)}",
            "Preserved": count(s.preserved),
            "Unrepaired": count(s.unrepaired),
        }
        for s in summary.itertuples()
    ]
    if (summary["undefined"] > 0).any():
        for line, s in zip(lines, summary.itertuples()):
            line["Undefined"] = count(s.undefined)
    return pd.DataFrame(lines)


def utility(utilities):
    """What debating earned against stopping at Round 0, one line a row.

    Parameters
    ----------
    utilities : DataFrame
        `ledger.utility`, optionally with `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> utility(pd.DataFrame({"row": ["m"], "n": [10], "collapse": [1], "correction": [3], "net": [2.0], "delta_pp": [20.0], "break_even": [3.0]})).iloc[0, 3]
    '2'
    """
    return pd.DataFrame({
        "Row": [_name(u) for u in utilities.itertuples()],
        "Corrections": utilities["correction"].map(count),
        "Collapses": utilities["collapse"].map(count),
        "Net": [number(v, 0) if v == round(v) else number(v, 1) for v in utilities["net"]],
        "Accuracy change, points": [f"{number(d, 1)} (of {count(n)} debates)" for d, n in zip(utilities["delta_pp"], utilities["n"])],
        "Break-even: corrections per collapse": [number(v, 1) for v in utilities["break_even"]],
    })


def cohort(rows):
    """The paper's model rows: family, flip rate, both conditional rates.

    Parameters
    ----------
    rows : DataFrame
        `data.model_rows`, optionally with added rows appended (`added`).

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> cohort(data.model_rows()).shape
    (14, 9)
    """
    return pd.DataFrame({
        "Row": [_name(r) for r in rows.itertuples()],
        "Family": rows["family"],
        "Debates": rows["n"].map(count),
        "Collapses / right at first": [rate(r.collapse, r.init_correct, r.c_cond_low, r.c_cond_high, 2) for r in rows.itertuples()],
        "Corrections / wrong at first": [f"{percent(r.correction_rate)} ({count(r.correction)}/{count(r.init_wrong)})" for r in rows.itertuples()],
        "Right at first": [f"{percent(r.init_acc)} ({count(r.init_correct)}/{count(r.n)})" for r in rows.itertuples()],
        "Last round": rows["endpoint_round"].map(count),
        "Flip rate": rows["alpha_tot"].map(lambda v: number(v, 4)),
        "Flip rate over": rows["alpha_definition"].map(lambda name: ALPHA_DEFINITIONS.get(name, "own probes")),
    })


ALPHA_DEFINITIONS = {
    "default_condition_two_arm_mean_valid_only": "default condition, readable replies",
    "all_three_conditions_row_mean_of_8": "all three conditions, all replies",
}


def families(means):
    """Family means of the screen and of conditional collapse.

    Parameters
    ----------
    means : DataFrame
        `association.family_means`.

    Returns
    -------
    DataFrame
        Sorted by flip rate.

    Examples
    --------
    >>> from analysis import association, data
    >>> families(association.family_means(data.model_rows()))["Family"].iloc[0]
    'DeepSeek'
    """
    means = means.sort_values("alpha_tot")
    return pd.DataFrame({
        "Family": means["family"],
        "Rows": means["n_rows"].map(count),
        "Mean flip rate": means["alpha_tot"].map(lambda v: number(v, 4)),
        "Mean conditional collapse": means["c_cond"].map(lambda v: percent(v, 2)),
        "Mean initial accuracy": means["init_acc"].map(percent),
    })


GROUPINGS = {
    "family": "the paper's families",
    "qwen_generations": "Qwen split by generation",
    "small_dense": "small dense models together",
    "both": "both of these",
    "paper": "the paper's rows",
}


def _orders(k, n):
    return "–" if pd.isna(n) else f"{count(k)}/{count(n)}"


def association(tests, first, heading):
    """Exact rank tests, one line a test.

    Parameters
    ----------
    tests : DataFrame
        Lines with `rho, p_two_sided, two_sided_count, n_orders, n_families, n_rows`, as `analysis.screen` returns them.
    first : str
        Column that names the line.
    heading : str
        Its heading.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, screen
    >>> association(screen.leave_one_family_out(data.model_rows()), "dropped", "Family left out")["Orders as extreme"].iloc[3]
    '2/720'
    """
    out = pd.DataFrame({
        heading: tests[first].map(lambda name: GROUPINGS.get(name, name)),
        "Families": tests["n_families"].map(count),
        "Rows": tests["n_rows"].map(count),
        "Spearman ρ": tests["rho"].map(lambda v: number(v, 4)),
        "Exact p (two-sided)": tests["p_two_sided"].map(p_value),
        "Orders as extreme": [_orders(k, n) for k, n in zip(tests["two_sided_count"], tests["n_orders"])],
    })
    if "row_rho" in tests:
        out["ρ over rows"] = tests["row_rho"].map(lambda v: number(v, 4))
    if "note" in tests and tests["note"].fillna("").ne("").any():
        out["Note"] = tests["note"].fillna("")
    return out


def leave_one_row_out(tests):
    """Leave-one-row-out checks at row and family level.

    Examples
    --------
    >>> from analysis import data, screen
    >>> leave_one_row_out(screen.leave_one_row_out(data.model_rows())).shape
    (6, 4)
    """
    return pd.DataFrame({
        "Row left out": tests["dropped"],
        "ρ over rows": tests["row_rho"].map(lambda v: number(v, 4)),
        "ρ over families": tests["family_rho"].map(lambda v: number(v, 4)),
        "Exact p over families": tests["family_p_two_sided"].map(p_value),
    })


PREDICTORS = {
    "alpha_tot": "flip rate",
    "alpha_default_condition": "flip rate, default condition in every row",
    "init_acc": "initial accuracy",
    "capability_pressure": "1 − initial accuracy",
    "final_acc": "final accuracy (after the debate)",
    "correction_rate": "correction rate (after the debate)",
    "collapse_rate": "collapses over all debates (after the debate)",
    "debate_revision_proxy": "released debate revision proxy",
}


def comparators(tests):
    """Each predictor's rank correlation with conditional collapse, over rows and over families.

    Examples
    --------
    >>> from analysis import data, screen
    >>> comparators(screen.comparators(data.model_rows()))["Predictor"].iloc[0]
    'flip rate'
    """
    return pd.DataFrame({
        "Predictor": tests["predictor"].map(lambda name: PREDICTORS.get(name, name)),
        "ρ over rows": [f"{number(v)} (n = {count(n)})" for v, n in zip(tests["row_rho"], tests["row_n"])],
        "p (t approximation)": tests["row_p_asymptotic"].map(p_value),
        "ρ over families": [f"{number(v)} (G = {count(n)})" for v, n in zip(tests["family_rho"], tests["family_n"])],
        "Exact p": tests["family_p_two_sided"].map(p_value),
        "Orders as extreme": [_orders(k, n) for k, n in zip(tests["family_two_sided_count"], tests["family_n_orders"])],
    })


def partials(tests):
    """Rank correlations of flip rate and conditional collapse with a control taken out.

    Examples
    --------
    >>> from analysis import data, screen
    >>> partials(screen.partial(data.model_rows()))["Orders as extreme"].item()
    '442/5,040'
    """
    return pd.DataFrame({
        "Unit": tests["level"],
        "Control": tests["controls"].map(lambda names: ", ".join(PREDICTORS.get(name, name) for name in str(names).split(" + "))),
        "n": tests["n"].map(count),
        "Partial ρ": tests["rho"].map(number),
        "Exact p (two-sided)": tests["p_two_sided"].map(p_value),
        "Orders as extreme": [_orders(k, n) for k, n in zip(tests["two_sided_count"], tests["n_orders"])],
        "p (t approximation)": tests["p_t"].map(p_value),
    })


def onset(table):
    """Round in which collapses begin, with shares of the row's collapses.

    Parameters
    ----------
    table : DataFrame
        `localize.onset_table`, optionally with `added`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, localize
    >>> onset(localize.onset_table(data.debates()))["Round 1"].iloc[-1]
    '58.9% (149/253)'
    """
    rounds = [c for c in table if c.startswith("round_") and c.removeprefix("round_").isdigit()]
    return pd.DataFrame({
        "Row": ["all six" if t.row == POOLED else _name(t) for t in table.itertuples()],
        "Debates": table["n"].map(count),
        "Collapses": table["collapse"].map(count),
        **{
            f"Round {c.removeprefix('round_')}": [
                f"{percent(k / n)} ({count(k)}/{count(n)})" if n else "–" for k, n in zip(table[c], table["collapse"])
            ]
            for c in rounds
        },
    })


POOLED = "pooled"
VIEWS = {"baseline": "Round 0 only", "r1": "with Round 1", "full": "with Rounds 1 to 3"}


def aucs(table):
    """Out-of-fold areas under the curve, one line a row and view.

    Parameters
    ----------
    table : DataFrame
        `localize.auc_table`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, localize
    >>> aucs(localize.auc_table(data.debates(), by=None))["AUC, all folds together"].tolist()
    ['0.6691', '0.7685', '0.8459']
    """
    return pd.DataFrame({
        "Row": table["row"].replace(POOLED, "all six"),
        "Features": table["view"].map(lambda view: VIEWS.get(view, view)),
        "Debates (collapses)": [f"{count(n)} ({count(k)})" for n, k in zip(table["n"], table["n_pos"])],
        "AUC, all folds together": table["auc"].map(lambda v: number(v, 4)),
        "Mean over folds": table["fold_mean"].map(lambda v: number(v, 4)),
        "SD over folds": table["fold_sd"].map(lambda v: number(v, 4)),
        "Folds with both outcomes": table["n_folds"].map(count),
    })


def fits(found):
    """Areas under the curve of both fits, over all debates and over right starts.

    Parameters
    ----------
    found : DataFrame
        `sensitivity.fits`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sensitivity
    >>> fits(sensitivity.fits(data.debates()))["All debates"].iloc[-1]
    '0.760'
    """
    wide = found.pivot(index=["fit", "view"], columns="over", values="auc").reindex(found.set_index(["fit", "view"]).index.unique()).reset_index()
    names = {"published": "published: 300 gradient steps", "converged": "the same model, to convergence", "none": "no fit"}
    return pd.DataFrame({
        "Fit": wide["fit"].map(names),
        "Features": wide["view"].map(lambda view: VIEWS.get(view, view)),
        "All debates": wide["all debates"].map(number),
        "Right starts only": wide["right starts"].map(number),
    })


GATES = {
    "always_freeze": "always freeze",
    "round1_majority_change": "Round 1 majority changed",
    "round1_any_flip": "any Round 1 flip",
    "disagreement": "Round 0 not unanimous",
}


def replay(results, first="gate", heading="Gate"):
    """Signed replay, one line a gate (or row).

    Parameters
    ----------
    results : DataFrame
        `replay.replay` and its relatives.
    first, heading : str
        Column that names the line, and its heading.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, replay as signed
    >>> replay(signed.replay_gates(data.debates()).reset_index())["Prevented"].iloc[0]
    '253/253'
    """
    return pd.DataFrame({
        heading: results[first].map(lambda name: GATES.get(name, name)) if first == "gate" else [_name(r) for r in results.itertuples()],
        "Debates": results["n"].map(count),
        "Frozen": results["gated"].map(count),
        "Prevented": [_of(k, n) for k, n in zip(results["prevented"], results["collapse"])],
        "Lost": [_of(k, n) for k, n in zip(results["lost"], results["correction"])],
        "Net": results["net"].map(lambda v: number(v, 0)),
        "Accuracy change, points": results["delta_pp"].map(lambda v: number(v, 2)),
        "Break-even ratio": results["break_even"].map(lambda v: number(v, 2)),
    })


def _of(k, n):
    return count(k) if pd.isna(n) else f"{count(k)}/{count(n)}"


def ladder(table):
    """Accuracy-equivalent points as the collapse-to-correction value ratio grows.

    Parameters
    ----------
    table : DataFrame
        `replay.ladder`, indexed by gate.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import replay as signed
    >>> ladder(signed.ladder(signed.from_aggregate(100, 1, 3, index=["g"]), [1, 3]))["r = 3"].item()
    '0.00'
    """
    ratios = [c for c in table if c != "break_even"]
    return pd.DataFrame({
        "Gate": [GATES.get(name, name) for name in table.index],
        **{f"r = {ratio:g}": [number(v, 2) for v in table[ratio]] for ratio in ratios},
        "Break-even ratio": [number(v, 2) for v in table["break_even"]],
    })


def replay_grid(results):
    """Prevented, lost and net of each gate in each row: one line a row, one column a gate.

    Parameters
    ----------
    results : DataFrame
        `sensitivity.gates`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data, sensitivity
    >>> replay_grid(sensitivity.gates(data.debates(), data.debates().iloc[:0]))["always freeze"].iloc[2]
    '86 − 98 = −12'
    """
    named = results.assign(
        Row=[_name(r) for r in results.itertuples()],
        gate=results["gate"].map(GATES),
        cell=[f"{count(p)} − {count(k)} = {number(p - k, 0)}" for p, k in zip(results["prevented"], results["lost"])],
    )
    return named.pivot(index="Row", columns="gate", values="cell").loc[named["Row"].unique(), list(GATES.values())].reset_index().rename_axis(columns=None)


def replay_points(on_local, printed):
    """Gates of all cohorts for the figure of prevented against lost.

    Parameters
    ----------
    on_local, printed : DataFrame
        Results indexed by gate: fixed gates on the open-weight rows, and the printed aggregates.

    Returns
    -------
    DataFrame
        `gate, cohort, n, prevented, lost`.

    Examples
    --------
    >>> from analysis import data, replay as signed
    >>> found = signed.replay_gates(data.debates())
    >>> replay_points(found, found)["cohort"].nunique()
    2
    """
    cohorts = [("four open-weight rows", on_local), ("printed in the paper", printed)]
    parts = [frame.reset_index().assign(cohort=cohort)[["gate", "cohort", "n", "prevented", "lost"]] for cohort, frame in cohorts]
    out = pd.concat(parts, ignore_index=True)
    return out.assign(gate=out["gate"].map(lambda name: GATES.get(name, name)))


HEADLINE = {
    "abs.collapses": "collapses in the public debates",
    "s1.onset.r1": "of these, beginning in Round 1",
    "s1.fr.llama": "debate flip rate of Llama-3.1-8B",
    "abs.family_rho": "flip rate and conditional collapse over families, ρ",
    "abs.family_p": "its exact two-sided p",
    "abs.initacc_rho": "the same for 1 − initial accuracy, ρ",
    "abs.partial_rho": "flip rate given initial accuracy, partial ρ",
    "s1.auc.r1": "area under the curve with Round 1 features (published fit)",
    "abs.freeze.prevented": "collapses a probe-gated freeze prevents",
    "abs.freeze.lost": "corrections it loses",
}


def headline(verdicts):
    """The abstract's numbers with their verdicts, in words.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims as audit
    >>> headline(audit.verdicts())["Verdict"].iloc[0]
    'holds'
    """
    chosen = verdicts.set_index("id").loc[list(HEADLINE)].reset_index()
    out = claims(chosen)[["Printed", "Computed", "Verdict", "Computed on"]]
    out.insert(0, "The paper prints", chosen["id"].map(HEADLINE))
    return out


PAGES = {
    "transitions": "Collapses and corrections by model",
    "screen": "Can a probe tell beforehand?",
    "localisation": "When do collapses begin?",
    "replay": "Would stopping early have helped?",
    "probe": "How steady is the probe?",
    "transfer": "Beyond the cohort",
    "parser": "What the answer parser decides",
    "pilot": "A registered pilot",
    "claims": "Scoreboard",
}
WORDS = {
    "alpha_tot": "flip rate", "alpha_adv": "flips away from right answers", "alpha_cor": "flips to right answers", "C_cond": "conditional collapse",
    "LOMO": "leave-one-model-out", "OSS": "open-weight", "init-acc": "initial accuracy", "FR": "flip rate",
}


def _worded(text):
    return re.sub("|".join(rf"\b{name}\b" for name in WORDS), lambda found: WORDS[found[0]], text) if isinstance(text, str) else ""


def _computed(claim):
    """Computed value at two digits beyond the printed ones, or the range that public counts leave."""
    if pd.isna(claim.computed):
        return "–"
    printed = re.search(r"\.(\d+)", claim.printed)
    digits = 0 if printed is None and claim.computed == round(claim.computed) else (len(printed[1]) if printed else 0) + 2
    if claim.slack > 0:
        return f"{number(claim.computed - claim.slack, digits)} to {number(claim.computed + claim.slack, digits)}"
    return f"{claim.computed:,.{digits}f}".replace("-", "−")


def claims(verdicts):
    """Printed and computed values with their verdicts.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims as audit
    >>> claims(audit.verdicts()).columns.tolist()
    ['Quantity', 'Of', 'Printed', 'Computed', 'Verdict', 'Computed on', 'Printed in', 'Id']
    """
    return pd.DataFrame({
        "Quantity": verdicts["quantity"].map(_worded),
        "Of": verdicts["scope"].map(_worded),
        "Printed": verdicts["printed"].str.replace("-", "−").str.replace("<=", "≤ ").str.replace(">=", "≥ "),
        "Computed": [_computed(claim) for claim in verdicts.itertuples()],
        "Verdict": verdicts["verdict"],
        "Computed on": [Link(PAGES.get(stem, stem), f"{stem}.html") if isinstance(stem, str) and stem else "" for stem in verdicts["notebook"]],
        "Printed in": verdicts["location"],
        "Id": verdicts["id"],
    })


def differing(verdicts):
    """Claims that differ, each with the size and the cause of the difference.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims as audit
    >>> differing(audit.verdicts()).columns.tolist()
    ['Quantity', 'Printed', 'Computed', 'Difference', 'Cause', 'Of', 'Printed in']
    """
    chosen = verdicts[verdicts["verdict"] == "differs"].sort_values("cause", kind="stable")
    shown = claims(chosen)
    return pd.DataFrame({
        "Quantity": shown["Quantity"],
        "Printed": shown["Printed"],
        "Computed": shown["Computed"],
        "Difference": [f"{d:+.3g}".replace("-", "−") for d in chosen["difference"]],
        "Cause": chosen["cause"].fillna("").map(_worded),
        "Of": shown["Of"],
        "Printed in": shown["Printed in"],
    })


def tally(verdicts):
    """Claims by verdict, arithmetic from other printed numbers told apart from what data decide.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.

    Returns
    -------
    dict of str to int
        One count a verdict, and `computed`, `from_data`, `by_arithmetic` (both of `holds`).

    Examples
    --------
    >>> from analysis import claims as audit
    >>> found = tally(audit.verdicts())
    >>> found["from_data"] + found["by_arithmetic"] == found["holds"]
    True
    """
    from analysis import claims as audit

    counts = {name: int((verdicts["verdict"] == name).sum()) for name in audit.VERDICTS}
    arithmetic = audit.registry().set_index("id")["rebuild"].reindex(verdicts["id"]).eq("arithmetic").to_numpy()
    by_arithmetic = int((arithmetic & verdicts["verdict"].eq("holds").to_numpy()).sum())
    return counts | {
        "printed": len(verdicts),
        "computed": counts["holds"] + counts["differs"],
        "by_arithmetic": by_arithmetic,
        "from_data": counts["holds"] - by_arithmetic,
    }


def computed_here(verdicts, page):
    """Claims whose numbers are computed for one page.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.
    page : str
        Stem of the page.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims as audit
    >>> "Computed on" in computed_here(audit.verdicts(), "pilot")
    False
    """
    return claims(verdicts[verdicts["notebook"] == page]).drop(columns=["Computed on"])


def counted(ledgers, names):
    """Transition ledgers of which only counts are public, with Wilson intervals.

    Parameters
    ----------
    ledgers : DataFrame
        `n, init_correct, collapse, correction`, optionally `init_wrong` (all others unless given).
    names : dict of str to str
        Columns that name a line, and their headings.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> counted(data.table("holdouts"), {"row": "Row"})["Collapses / right at first"].iloc[0]
    '0.6% [0.1, 3.3] (1/166)'
    """
    wrong = ledgers["init_wrong"] if "init_wrong" in ledgers else ledgers["n"] - ledgers["init_correct"]
    fell, rose = stats.proportion(ledgers["collapse"], ledgers["init_correct"]), stats.proportion(ledgers["correction"], wrong)
    return pd.DataFrame({
        **{heading: ledgers[name].astype(str).str.replace("_", " ") for name, heading in names.items()},
        "Debates": ledgers["n"].map(count),
        "Collapses / right at first": [rate(*line) for line in fell[["k", "n", "low", "high"]].itertuples(index=False)],
        "Corrections / wrong at first": [rate(*line) for line in rose[["k", "n", "low", "high"]].itertuples(index=False)],
        "Net": [number(c - d, 0) for c, d in zip(ledgers["correction"], ledgers["collapse"])],
    })


def pilot(lines):
    """The pilot's trend and floor, one line a model.

    Parameters
    ----------
    lines : DataFrame
        `claims_pilot.ladder`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims_pilot, data
    >>> pilot(claims_pilot.ladder(data.table("pilot_refusals"), data.table("pilot_pairs"))).shape
    (3, 5)
    """
    return pd.DataFrame({
        "Model": lines["row"],
        "Rung and refusal rate, ρ": lines["rho"].map(number),
        "Exact p (one-sided)": lines["p_exact"].map(p_value),
        "Last minus first rung, points": lines["floor"].map(lambda v: number(100 * v, 0)),
        "Exact McNemar p (refused at one end only)": [f"{p_value(p)} ({top} to {bottom})" for p, top, bottom in zip(lines["p_mcnemar"], lines["only_top"], lines["only_bottom"])],
    })


def parser_audit(counts):
    """How many debates a stricter parser labels and how many cells it moves.

    Parameters
    ----------
    counts : DataFrame
        The table parser_audit.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> parser_audit(data.table("parser_audit")).shape[1]
    5
    """
    return pd.DataFrame({
        "Traces": counts["lane"],
        "Parser": counts["parser"].map({"no_fallback": "no last-letter step", "final_tag_only": "final tag only"}),
        "Debates labelled": [_share(k, n) for k, n in zip(counts["strict_labelled"], counts["n"])],
        "Cells moved": [_share(k, n) for k, n in zip(counts["cell_changed"], counts["strict_labelled"])],
        "Votes decided by the tie rule": [_share(k, n) for k, n in zip(counts["tied_reductions"], counts["reductions"])],
    })


def _share(k, n):
    return f"{percent(k / n)} ({count(k)}/{count(n)})" if n else "–"


def strongest(probes):
    """Flip rates with and without the strongest probe.

    Parameters
    ----------
    probes : DataFrame
        The table strongest_probe.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> strongest(data.table("strongest_probe")).columns.tolist()
    ['Model', 'Probes', 'Flip rate', 'Right answers given up', 'Wrong answers changed']
    """
    return pd.DataFrame({
        "Model": probes["row"],
        "Probes": probes["probe_set"].map({"all": "all", "no_strongest": "without the strongest"}),
        "Flip rate": [_share(k, n) for k, n in zip(probes["n_flip"], probes["n_probes"])],
        "Right answers given up": [_share(k, n) for k, n in zip(probes["n_flip_right"], probes["n_init_right_probes"])],
        "Wrong answers changed": [_share(k, n) for k, n in zip(probes["n_flip_wrong"], probes["n_init_wrong_probes"])],
    })


def dictionary(lines):
    """Columns of one table of data/, in words.

    Parameters
    ----------
    lines : DataFrame
        Lines of `data.dictionary`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import data
    >>> dictionary(data.dictionary().query("table == 'probe_cells'"))["Column"].iloc[0]
    'model'
    """
    limits = [f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}" if high else "" for low, high in zip(lines["min"], lines["max"])]
    return pd.DataFrame({
        "Column": lines["column"],
        "Meaning": lines["meaning"],
        "Unit": lines["unit"],
        "Values": [allowed.replace("|", ", ") or limit for allowed, limit in zip(lines["allowed"], limits)],
        "Type": lines["dtype"] + lines["nullable"].map({"yes": ", may be missing", "no": ""}),
    })


LAYOUTS = {"long": "long table", "layout_a": "open tier, layout A", "layout_b": "open tier, layout B", "features": "feature matrix", "chat": "chat"}


def rows(told):
    """Added rows: what they are and how they were read.

    Parameters
    ----------
    told : DataFrame
        `rows.describe`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import rows as added
    >>> rows(added.describe([])).columns.tolist()[:2]
    ['Row', 'Model']
    """
    return pd.DataFrame({
        "Row": told["id"],
        "Model": told["model"],
        "Family": told["family"],
        "Kind": told["synthetic"].map({True: "made up", False: "real"}),
        "Debates": told["n_debates"].map(count),
        "Agents": told["n_agents"].map(count),
        "Rounds": told["n_rounds"].map(count),
        "Missing answers": [f"{percent(k / n)} ({count(k)}/{count(n)})" if n else "–" for k, n in zip(told["n_missing"].fillna(0), told["n_answers"].fillna(0))],
        "Flip rate": [f"{number(a, 4)} ({count(k)}/{count(n)})" if n else "no probes" for a, k, n in zip(told["alpha_tot"].fillna(0), told["n_flips"].fillna(0), told["n_probes"].fillna(0))],
        "Read as": told["layout"].map(lambda names: ", ".join(LAYOUTS.get(name, name) for name in names.split(", "))),
        "Coder": told["policy"],
    })


def coding(counts):
    """How a row's answers were read, by round.

    Parameters
    ----------
    counts : DataFrame
        `rows.coding`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> coding(pd.DataFrame({"round": [0], "rule": ["given"], "n": [6], "of": [6]}))["Answers"].item()
    '100.0% (6/6)'
    """
    return pd.DataFrame({
        "Round": counts["round"].map(count),
        "Read by": counts["rule"],
        "Answers": [f"{percent(k / n)} ({count(k)}/{count(n)})" for k, n in zip(counts["n"], counts["of"])],
    })


def in_words(lines, rate="c_cond"):
    """What a figure shows, for its text alternative: each line's rate in words.

    Parameters
    ----------
    lines : DataFrame
        With `row` and the rate (a fraction).
    rate : str
        Column to tell.

    Returns
    -------
    str

    Examples
    --------
    >>> in_words(pd.DataFrame({"row": ["m"], "c_cond": [0.0846]}))
    'conditional collapse m 8.5%'
    """
    names = {"c_cond": "conditional collapse", "correction_rate": "correction rate", "alpha_tot": "flip rate", "share_1": "share beginning in Round 1"}
    return f"{names[rate]} " + ", ".join(f"{_name(line)} {percent(value)}" for line, value in zip(lines.itertuples(), lines[rate]))
