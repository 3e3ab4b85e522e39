"""Printed numbers about the probe: which library result stands for which claim.

Values are in natural units, as in `analysis.recompute`; the statistics are in `analysis.probes` and
`analysis.probes_released`.
"""

import pandas as pd

from analysis import data, probes, probes_released, stats
from analysis.claims_cells import PROBED, TRACED, Range, cells

CONDITION_IDS = {"d": "default", "as": "anti_social", "aa": "anti_argument"}
REPEATS = (1, 2, 3)


def flip_rates(probe_cells):
    """Probe flip rates of the default condition, unreadable replies left out.

    Parameters
    ----------
    probe_cells : DataFrame
        Counts by model, condition and arm.

    Returns
    -------
    dict of str to float

    References
    ----------
    Section 4.2; Tables 16 and 19; B.4.

    Examples
    --------
    >>> round(float(flip_rates(data.table("probe_cells"))["t16.llama31_8b.alpha"]), 3)
    0.772
    """
    counts = probe_cells[probe_cells["condition"] == "default"].set_index(["model", "social"])
    rate = (counts["n_flip"] / counts["n_probes"]).unstack("social")
    tabled = {name: PROBED[name] for name in (*TRACED, "sonnet45", "gpt4omini")}
    mini = counts.loc[("GPT-4o-mini", False)]
    return {
        **cells("t16", rate, tabled, {"alpha": False}),
        "s4.2.alpha.llama": rate.loc["Llama-3.1-8B"].mean(),
        "s4.2.alpha.qwen3_4b": rate.loc["Qwen3-4B"].mean(),
        "b4.gpt_adv_sa": mini["n_adv"] / mini["n_init_right_probes"],
    }


def kept_records(printed):
    """Records that each released model kept, as printed.

    Parameters
    ----------
    printed : Series of float
        Printed values in natural units, by id.

    Returns
    -------
    Series of float
        By the model's name in the released counts.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> kept_records(pd.Series(1800.0, index=[f"t20.{name}.n" for name in PROBED]))["Llama-3.1-8B"].item()
    1800.0
    """
    return pd.Series({model: printed[f"t20.{name}.n"] for name, model in PROBED.items()})


def released_rates(probe_cells, printed):
    """Flip rates of the three conditions over all records, an unreadable reply being no flip.

    Parameters
    ----------
    probe_cells : DataFrame
        Counts by model, condition and arm.
    printed : Series of float
        Printed claims: the protocol's sizes and the records of each model.

    Returns
    -------
    DataFrame
        As `probes_released.rates_by_condition`.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> from analysis import claims
    >>> released_rates(data.table("probe_cells"), claims.printed_values(claims.registry()))["model"].nunique()
    15
    """
    return probes_released.rates_by_condition(
        probe_cells, kept_records(printed), nominal=int(printed["b8.nominal"]),
        conditions=int(printed["a2.system_msgs"]), each=int(printed["abs.n_probes"]),
    )


def channels(probe_cells, printed):
    """The same by claim.

    Parameters
    ----------
    probe_cells, printed
        As for `released_rates`.

    Returns
    -------
    dict of str to Range
        The released counts tell readable replies, not records. Where a model lost records only their total
        is printed, so that each condition may have lost none or all of them.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> sizes = {"b8.nominal": 1800, "a2.system_msgs": 3, "abs.n_probes": 8}
    >>> sizes |= {f"t20.{name}.n": 1800 for name in PROBED}
    >>> round(float(channels(data.table("probe_cells"), pd.Series(sizes))["t20.llama31_8b.fr_d"].low), 3)
    0.726
    """
    rates = released_rates(probe_cells, printed).set_index(["model", "condition"])
    ends = rates[["rate_low", "rate_high"]]
    return {f"t20.{name}.fr_{part}": Range(*ends.loc[(model, condition)])
            for name, model in PROBED.items() for part, condition in CONDITION_IDS.items()}


def strongest_dropped(sealed_rows, strongest_probe):
    """The sealed association with and without the strongest argument.

    Parameters
    ----------
    sealed_rows, strongest_probe : DataFrame
        From `analysis.data`. The probes are the non-social ones of the default condition: four, then three.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.6 (R2).

    Examples
    --------
    >>> found = strongest_dropped(data.sealed_rows(), data.table("strongest_probe"))
    >>> round(float(found["c6.r2_base_rho"]), 3), round(float(found["c6.r2_rank"]), 2)
    (0.683, 0.95)
    """
    change = probes.strongest_change(strongest_probe)
    tests = probes.strongest_association(change, outcome(sealed_rows)).set_index("probe_set")
    base, dropped = tests.loc["all"], tests.loc["no_strongest"]
    apart = pd.concat([change["change"], change["adverse_change"]])
    return {
        "c6.r2_base_rho": base["rho"], "c6.r2_base_p": base["p"], "c6.r2_drop_rho": dropped["rho"],
        "c6.r2_drop_p": dropped["p"], "c6.r2_drop_lo": dropped["low"], "c6.r2_drop_hi": dropped["high"],
        "c6.r2_dalpha_lo": apart.min(), "c6.r2_dalpha_hi": apart.max(),
        "c6.r2_rank": change["rank"].corr(change["rank_dropped"]),
    }


def solo_only(strongest_probe, probe_cells):
    """Which probes the released check without the strongest argument counts.

    Parameters
    ----------
    strongest_probe, probe_cells : DataFrame
        Tables of those names.

    Returns
    -------
    DataFrame
        One line a model: `row`, `flips` (all strengths), `solo_flips` and `all_flips` of the default
        condition, `solo` (whether `flips` are the solo ones alone), `kept` (share of its probes that are left
        without the strongest).

    References
    ----------
    C.6 (R2).

    Examples
    --------
    >>> found = solo_only(data.table("strongest_probe"), data.table("probe_cells"))
    >>> found["solo"].all(), found["kept"].unique().tolist()
    (np.True_, [0.75])
    """
    sets = strongest_probe.pivot(index="row", columns="probe_set", values=["n_flip", "n_probes"])
    sets = sets.loc[strongest_probe["row"].unique()]
    default = probe_cells[probe_cells["condition"] == "default"]
    arms = default.pivot(index="model", columns="social", values="n_flip").loc[sets.index]
    out = pd.DataFrame({"flips": sets["n_flip", "all"], "solo_flips": arms[False],
                        "all_flips": arms[False] + arms[True]})
    kept = sets["n_probes", "no_strongest"] / sets["n_probes", "all"]
    return out.assign(solo=out["flips"] == out["solo_flips"], kept=kept).rename_axis("row").reset_index()


def outcome(sealed_rows):
    """Conditional collapse of the sealed rows, by the names that the probe tables use.

    Parameters
    ----------
    sealed_rows : DataFrame
        From `analysis.data.sealed_rows`.

    Returns
    -------
    Series of float

    Examples
    --------
    >>> outcome(data.sealed_rows()).loc["Sonnet 4.5"].round(4)
    np.float64(0.0215)
    """
    return sealed_rows.assign(row=sealed_rows["row"].str.removeprefix("Claude ")).set_index("row")["c_cond"]


def log_ratio(channel_contrasts):
    """Whether ratio and log-ratio order the sealed rows alike, with the released script's constant.

    Parameters
    ----------
    channel_contrasts : DataFrame
        `row, social, argument`.

    Returns
    -------
    dict of str to float

    References
    ----------
    C.6 (R3).

    Examples
    --------
    >>> round(float(log_ratio(data.table("channel_contrasts"))["c6.r3_rho"]), 3)
    0.983
    """
    found = probes_released.log_ratio_orders(channel_contrasts, constants=[probes.LOG_CONSTANT])
    return {"c6.r3_rho": found["rho"].item()}


def panel(repeat_panel, *, probes_each=8):
    """The released panel as one line a day, question and repeat.

    Parameters
    ----------
    repeat_panel : DataFrame
        One line a day and question: flip rates and first answers of three repeats, and their unparsed replies
        together.
    probes_each : int
        Probes a repeat.

    Returns
    -------
    DataFrame
        As `probes.repeats`; the unparsed replies stand at the first repeat, as they are released for all
        three.

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> panel(data.table("repeat_panel"))[["n_probes", "n_unparsed"]].sum().tolist()
    [1440, 63]
    """
    parts = [
        pd.DataFrame({
            "day": repeat_panel["day"], "question": repeat_panel["question"], "repeat": k,
            "alpha": repeat_panel[f"alpha_{k}"], "answer": repeat_panel[f"answer_{k}"],
            "n_probes": probes_each, "n_unparsed": repeat_panel["n_unparsed"] if k == REPEATS[0] else 0,
        })
        for k in REPEATS
    ]
    return pd.concat(parts, ignore_index=True)


def repeated_panel(repeat_panel):
    """Agreement of repeated probes within a day and between days.

    Parameters
    ----------
    repeat_panel : DataFrame
        As for `panel`.

    Returns
    -------
    dict of str to float
        Of the days, or pairs of days, the least favourable value.

    References
    ----------
    C.6 (R5).

    Examples
    --------
    >>> found = repeated_panel(data.table("repeat_panel"))
    >>> int(found["c6.r5_instab"]), float(found["c6.r5_none"])
    (0, 0.04375)
    """
    lines = panel(repeat_panel)
    days, pairs = probes.sessions(lines), probes.session_pairs(lines)
    return {
        "c6.r5_instab": days["unstable"].max(), "c6.r5_range_mean": days["range_mean"].max(),
        "c6.r5_range_max": days["range_max"].max(),
        "c6.r5_none": (days["n_unparsed"] / days["n_probes"]).max(),
        "c6.r5_rho": pairs["rho"].min(), "c6.r5_mad": pairs["mean_difference"].max(),
        "c6.r5_maxd": pairs["max_difference"].max(), "c6.r5_majchg": pairs["answer_changes"].max(),
    }


def reply_temperature(table):
    """Rows and unreadable replies of the sweep over how replies to probes were sampled.

    Parameters
    ----------
    table : DataFrame
        One line a row and arm.

    Returns
    -------
    dict of str to float

    References
    ----------
    G.2.

    Examples
    --------
    >>> reply_temperature(data.table("reply_temperature"))["g2.rows"]
    7
    """
    return {"g2.rows": table["row"].nunique(), "g2.none": table["unparsed_rate"].max()}


# --- what is printed beside what is computed ----------------------------------------------------------------


def manipulated(rates, registry):
    """The printed channel results beside the flip rates that the released counts give.

    Parameters
    ----------
    rates : DataFrame
        `probes_released.rates_by_condition`.
    registry : DataFrame
        `claims.registry`.

    Returns
    -------
    DataFrame
        One line a printed model: `row, source` (counts, or printed where none are released), `n_records` (as
        printed), `default, anti_social, anti_argument` and their upper ends where records were lost
        (`_high`), `order`; `d`, `p` as printed with `p_holm` over all printed p.

    Examples
    --------
    >>> from analysis import claims
    >>> registry = claims.registry()
    >>> rates = released_rates(data.table("probe_cells"), claims.printed_values(registry))
    >>> found = manipulated(rates, registry)
    >>> len(found), (found["source"] == "counts").sum()
    (16, np.int64(15))
    """
    printed = pd.Series(registry["value"].to_numpy(), index=registry["id"].to_numpy())
    ends = rates.set_index(["model", "condition"])[["rate_low", "rate_high"]]
    lines = []
    for name in [id.split(".")[1] for id in printed.index if id.startswith("t20.") and id.endswith(".p")]:
        model = PROBED.get(name)
        line = {"row": model or _scope(registry, f"t20.{name}.n"), "source": "counts" if model else "printed"}
        for part, condition in CONDITION_IDS.items():
            given = ends.loc[(model, condition)] if model else [printed[f"t20.{name}.fr_{part}"]] * 2
            line |= dict(zip((condition, f"{condition}_high"), given, strict=True))
        cells = {"n_records": "n", "d": "d", "p": "p"}
        lines.append(line | {key: printed[f"t20.{name}.{part}"] for key, part in cells.items()})
    out = pd.DataFrame(lines)
    order = [probes.ordering(*rates) for rates in out[list(probes.CONDITIONS)].itertuples(index=False)]
    return out.assign(order=order, p_holm=stats.holm(out["p"]))


def _scope(registry, id):
    """Name of the model at the end of a claim's quantity."""
    return registry.set_index("id").loc[id, "quantity"].rsplit(", ", 1)[1]


def sealed_ratios(contrasts, registry):
    """Released contrasts with both ratios, and the ratio that is printed for the same model.

    Parameters
    ----------
    contrasts : DataFrame
        `probes_released.social_to_argument`.
    registry : DataFrame
        `claims.registry`.

    Returns
    -------
    DataFrame
        The same with `printed` (missing for a model without one).

    Examples
    --------
    >>> from analysis import claims
    >>> contrasts = pd.DataFrame({"row": ["Sonnet 4.5"], "social": [0.05], "argument": [0.3]})
    >>> sealed_ratios(contrasts, claims.registry())["printed"].tolist()
    [0.15]
    """
    printed = registry.set_index("id")["value"]
    known = {model: printed.get(f"t16.{name}.sa") for name, model in PROBED.items()}
    return contrasts.assign(printed=contrasts["row"].map(known).astype(float))


def printed_reliability(registry):
    """Reliability as printed: neither models nor halves nor the form of the intraclass correlation are told.

    Parameters
    ----------
    registry : DataFrame
        `claims.registry`.

    Returns
    -------
    DataFrame
        One line, with the columns of `probes.reliability`; the intraclass correlation is a range.

    References
    ----------
    Table 2; section 4.1.

    Examples
    --------
    >>> from analysis import claims
    >>> printed_reliability(claims.registry())["split_half"].tolist()
    [0.873]
    """
    value = registry.set_index("id")["value"]
    return pd.DataFrame({
        "row": ["as printed"], "n_questions": [None], "split_half": value["t2.split_half"], "icc": [None],
        "icc_low": value["t2.icc_lo"], "icc_high": value["t2.icc_hi"], "retest": value["t2.test_retest"],
    }).astype({"n_questions": float, "icc": float})


def effects(registry):
    """Printed effect sizes and p of the channel comparison, with half a unit of their last digits.

    Parameters
    ----------
    registry : DataFrame
        `claims.registry`.

    Returns
    -------
    DataFrame
        One line a printed model: `row` (part of the claim ids), `n` (pairs of records), `d, d_step, p,
        p_step`.

    References
    ----------
    Table 20.

    Examples
    --------
    >>> from analysis import claims
    >>> found = effects(claims.registry())
    >>> len(found), float(found["n"].max())
    (16, 600.0)
    """
    from analysis.claims import parse_printed  # here: it computes with this module

    lines = registry.set_index("id")
    out = []
    for name in [id.split(".")[1] for id in lines.index if id.startswith("t20.") and id.endswith(".p")]:
        line = {"row": name, "n": lines.loc[f"t20.{name}.n", "value"] / len(CONDITION_IDS)}
        for key in ("d", "p"):
            number = parse_printed(lines.loc[f"t20.{name}.{key}", "printed"])
            line |= {key: number.value, f"{key}_step": number.step / 2}
        out.append(line)
    return pd.DataFrame(out)
