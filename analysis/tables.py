"""Tables as a reader sees them: words for headings, rates with interval, numerator and denominator, fixed decimals.

Each function takes a frame of `ledger`, `localize`, `replay` or `screen` and returns one of the same lines for display.
"""

import re

import pandas as pd

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
                f"{percent(k / n)} ({count(k)}/{count(n)})" if n and pd.notna(k) else "–" for k, n in zip(table[c], table["collapse"])
            ]
            for c in rounds
        },
    })


POOLED = "pooled"
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
    "robustness": "Does the ranking stand?",
    "probe": "What does the probe measure?",
    "localisation": "When do collapses begin?",
    "multilevel": "Model or question?",
    "replay": "Would stopping early have helped?",
    "interventions": "Prompts and policies tried",
    "transfer": "Beyond the cohort",
    "follow-up": "Private revision and reasoning modes",
    "parser": "What the answer parser decides",
    "costs": "What a row costs",
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
        "Computed on": [
            Link(PAGES.get(stem, stem), f"{stem}.html#claim-{name}") if isinstance(stem, str) and stem else ""
            for stem, name in zip(verdicts["notebook"], verdicts["id"])
        ],
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


def by_section(verdicts):
    """Claims by the section that prints them first, counted by verdict.

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
    >>> by_section(audit.verdicts())["Printed in"].iloc[[0, 1, -1]].tolist()
    ['Abstract', 'Section 1', 'all']
    """
    from analysis import claims as audit

    names = verdicts["location"].map(_section)
    found = audit.counts(verdicts.assign(section=names), "section")
    order = sorted(found.index, key=lambda name: (name != "Abstract", name.startswith("Appendix"), name))
    found = found.loc[order]
    found.loc["all"] = found.sum()
    return found.map(count).rename_axis("Printed in").reset_index().rename(columns=str.capitalize)


def _section(location):
    """Main part of the paper that prints a claim first, from a location such as "4.4; D.3" or "Table 2 (Table 5)"."""
    from analysis import exhibits

    first = re.match(r"Abstract|[A-G](?=[.])|\d|(?:Table|Fig) \d+", location)[0]
    if first.startswith(("Table", "Fig")):
        places = exhibits.table().set_index("exhibit")["printed_in"]
        first = places[first.replace("Fig ", "Figure ")][0]
    return first if first == "Abstract" else f"{'Section' if first.isdigit() else 'Appendix'} {first}"


def located(verdicts, exhibit):
    """Claims that are registered under a table or figure of the paper.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts`.
    exhibit : str
        Such as "Table 2".

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> located(pd.DataFrame({"location": ["4.1; Table 2", "Table 22", "B.7; Fig 2"]}), "Table 2").index.tolist()
    [0]
    """
    return verdicts[verdicts["location"].str.replace("Fig ", "Figure ").str.contains(rf"{exhibit}(?!\d)")]


def exhibits(verdicts):
    """The paper's tables and figures with their states, places in the book, and the verdicts of their numbers.

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
    >>> exhibits(audit.verdicts()).iloc[5, :3].map(str).tolist()
    ['Table 6', 'Round in which collapses begin', 'rebuilt from rows']
    """
    from analysis import exhibits as places

    lines = places.table()
    told = [located(verdicts, name)["verdict"].value_counts() for name in lines["exhibit"]]
    return pd.DataFrame({
        "In the paper": lines["exhibit"],
        "What it shows": [
            Link(title, f"{page}.html#{places.anchor(name)}") for title, page, name in zip(lines["title"], lines["page"], lines["exhibit"])
        ],
        "State": lines["state"],
        "Computed from, or what is missing": lines["basis"],
        "Verdicts of its registered numbers": [", ".join(f"{n} {verdict}" for verdict, n in found.items()) or "–" for found in told],
    })


def recodings(found):
    """The headline association under other codings.

    Parameters
    ----------
    found : DataFrame
        `recodings.table`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import recodings as other
    >>> recodings(other.table().head(1))["Exact p"].item()
    '0.0123 (62/5,040)'
    """
    return pd.DataFrame({
        "Coding": found["coding"],
        "Rows (families)": [f"{count(n)} ({count(g)})" for n, g in zip(found["n_rows"], found["n_families"])],
        "ρ over families": found["rho"].map(number),
        "Exact p": [f"{p_value(p)} ({count(k)}/{count(n)})" if n < 1e6 else p_value(p) for p, k, n in zip(found["p_two_sided"], found["two_sided_count"], found["n_orders"])],
        "ρ over rows": found["row_rho"].map(number),
        "Partial ρ given initial accuracy": found["partial_rho"].map(number),
        "Its exact p": found["partial_p"].map(p_value),
    })


def computed_here(verdicts):
    """Claims whose numbers are computed for one page.

    Parameters
    ----------
    verdicts : DataFrame
        `claims.verdicts` of the page.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import claims as audit
    >>> computed_here(audit.verdicts(page="pilot")).columns.tolist()[:4]
    ['Quantity', 'Of', 'Printed', 'Computed']
    """
    return claims(verdicts).drop(columns=["Computed on"])


def claim_ids(verdicts):
    """Ids of a page's lines, to which the scoreboard leads.

    Examples
    --------
    >>> claim_ids(pd.DataFrame({"id": ["abs.family_rho"]}))
    ['claim-abs.family_rho']
    """
    return [f"claim-{name}" for name in verdicts["id"]]


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


LAYOUTS = {"long": "long table", "layout_a": "open tier, layout A", "layout_b": "open tier, layout B", "features": "feature matrix", "chat": "chat", "inspect": "Inspect log"}


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
        "Read as": [_read_as(*pair) for pair in zip(told["layout"], told["arm"])],
        "Coder": told["policy"],
        "Quality control": [quality(*pair) for pair in zip(told["quality_control"], told["quality"])],
    })


def _read_as(layouts, arm):
    return ", ".join(LAYOUTS.get(name, name) for name in layouts.split(", ")) + ("" if pd.isna(arm) else f", arm {arm}")


def quality(verdict, checks):
    """Quality control of an added row in words.

    Parameters
    ----------
    verdict, checks : str or missing
        `quality_control` and `quality` of `rows.describe`.

    Returns
    -------
    str

    Examples
    --------
    >>> quality("fails", "missing 3/10 (at most 2% allowed)"), quality(None, None)
    ('fails: missing 3/10 (at most 2% allowed)', 'not told')
    """
    if pd.isna(verdict):
        return "not told"
    return verdict if pd.isna(checks) else f"{verdict}: {checks}"


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
