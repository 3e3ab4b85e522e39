"""What a reuse card says of one row, computed from data/: a row of the paper's or an added one.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section A.3.2 and Table 12.
"""

import hashlib

import pandas as pd

from analysis import claims, data, ledger, probes, replay, rows, schemas, stats

BENCHMARK = "MMLU-Pro"  # of all rows of the realised cohort
TWO_ARMS = "default_condition_two_arm_mean_valid_only"
SOLO = "default condition, without social pressure"

POOL_RULE = (
    "Probe questions: the model's own, those with the highest flip rate under solo counterarguments in a"
    " separate pass. Debate questions: as released; no rule is stated."
)
POOLED_RATIO = (
    "contrasts over all probes of the default condition, and the ratio of these; the paper describes a mean"
    " of ratios over questions"
)
NOT_RELEASED = "not in the released tables that this book holds"
NOT_TOLD = "not told when the row was added"
NO_PROBES = "the row was added without probe records"

# Names that the card asks of a record and that none of this kind holds, under this or another name.
_LACKS = {
    "layout A": ("usage", "backend"),
    "added debates": ("usage", "backend"),
    "added probes": ("usage", "backend", "temperature"),
}


# --- the parts ----------------------------------------------------------------------------------------------


def _rate(k, n, of, interval):
    found = stats.proportion([k], [n], interval=interval).iloc[0]
    limits = [None if pd.isna(found[name]) else float(found[name]) for name in ("rate", "low", "high")]
    return schemas.Rate(rate=limits[0], k=_count(k), n=_count(n), low=limits[1], high=limits[2], of=of)


def _count(value):
    """Whole where it is whole: only credit of tied votes is not."""
    value = float(value)
    return int(value) if value.is_integer() else value


def _outcome(line, onsets, interval):
    wrong = line["init_wrong"]
    return schemas.Outcome(
        n_debates=int(line["n"]),
        initial_majority_accuracy=_rate(line["init_correct"], line["n"], "debates", interval),
        final_majority_accuracy=_rate(line["final_correct"], line["n"], "debates", interval),
        conditional_collapse_rate=_rate(
            line["collapse"], line["init_correct"], "debates right at first", interval
        ),
        conditional_correction_rate=_rate(line["correction"], wrong, "debates wrong at first", interval),
        collapse_onset_distribution=onsets,
    )


def _onsets(debates):
    found = ledger.onset(debates, by=None).iloc[0].drop("collapse")
    return {name.removeprefix("round_"): int(k) for name, k in found.items()}


def _gates(debates, cohort, weights):
    found = replay.replay_gates(
        debates, w_collapse=weights["w_coll"], w_correction=weights["w_corr"]
    ).reset_index()
    return [
        _gate(line["gate"], cohort, line["prevented"], line["lost"], line["n"], weights)
        for _, line in found.iterrows()
    ]


def _gate(name, cohort, prevented, lost, n, weights):
    prevented, lost = _count(prevented), _count(lost)
    return schemas.Gate(
        gate_name=name,
        validation_cohort_id=cohort,
        collapses_prevented=prevented,
        corrections_lost=lost,
        **weights,
        net_utility=weights["w_coll"] * prevented - weights["w_corr"] * lost,
        accuracy_delta=(prevented - lost) / int(n),
    )


def _contrast(social, argument):
    social, argument = float(social), float(argument)
    return schemas.Contrast(
        ratio=float(probes.normalised(social, argument)),
        social=social,
        argument=argument,
        definition=POOLED_RATIO,
    )


def _pool_id(questions):
    return "sha256:" + hashlib.sha256("\n".join(sorted(set(questions))).encode()).hexdigest()[:16]


def _minimum(kind, lacks=None):
    """Tier of each listed name; without a record of the kind, all are omitted."""
    fields = schemas.MINIMUM[kind].model_fields
    if lacks is None:
        return dict.fromkeys(fields, "omitted")
    return {
        name: "omitted" if name in lacks else field.json_schema_extra["tier"]
        for name, field in fields.items()
    }


def _finish(row_id, groups, absent, **told):
    """Put a card together; what is null must have its reason by now, and is omitted."""
    model_card = schemas.ModelCard(**groups)
    nulls = schemas.nulls(model_card)
    return schemas.ReuseCard(
        schema_version="reuse_card.v1",
        row_id=row_id,
        model_card=model_card,
        absent={path: reason for path, reason in absent.items() if path in nulls or path == "signed_utility"},
        tiers={path: "omitted" if path in nulls else "open" for path in schemas.fields_of_card()},
        **told,
    )


# --- a row of the paper -------------------------------------------------------------------------------------


def paper(row_id, *, tie, interval, weights):
    """Card of a row of the realised cohort.

    Parameters
    ----------
    row_id : str
        A row of data/model_rows.csv.
    tie : str
        Followed by rows whose debates are public, as far as a matrix without answers can.
    interval : {"wilson", "jeffreys"}
    weights : dict
        `w_coll` and `w_corr` of the gates.

    Returns
    -------
    schemas.ReuseCard

    Examples
    --------
    >>> weights = {"w_coll": 1.0, "w_corr": 1.0}
    >>> made = paper("phi-4-mini", tie="alphabetic", interval="wilson", weights=weights)
    >>> made.model_card.debate_outcome_accounting.collapse_onset_distribution
    {'1': 67, '2': 17, '3': 28}
    """
    line = data.model_rows(interval=interval).set_index("row").loc[row_id]
    traced = pd.notna(line["trace_source"])
    choices = {
        "tie": "alphabetic",
        "missing": "initially_wrong",
        "interval": interval,
        "endpoint_round": int(line["endpoint_round"]),
    }
    counts, debates, onsets = line, None, None
    if traced:  # a matrix can follow one other tie rule
        choices["tie"] = "undecided" if tie == "undecided" else "alphabetic"
        debates = data.debates(tie=choices["tie"])
        debates = debates[debates["row"] == row_id]
        counts, onsets, gates = (
            ledger.summarize(debates, by=None).iloc[0],
            _onsets(debates),
            _gates(debates, row_id, weights),
        )
    else:
        choices["note"] = (
            "Counts as released: their last majority is the stored one, which need not follow the tie rule."
        )
        gates = [_gate("always_freeze", row_id, line["collapse"], line["correction"], line["n"], weights)]
    provenance = data.table("provenance").set_index("lane")
    entry = provenance.loc[row_id] if row_id in provenance.index else None
    fingerprint, absent = _paper_fingerprint(row_id, line, interval)
    traces = data.table("parser_traces").set_index("lane")
    layout = _LACKS["layout A"] if traced else () if row_id in traces.index else None
    groups = {
        "identity": _paper_identity(row_id, line, entry, debates, traces),
        "question_pool": schemas.QuestionPool(
            benchmark=BENCHMARK,
            question_pool_id=_pool_id(debates["question"]) if traced else None,
            pool_selection_rule=POOL_RULE,
            n_questions=debates["question"].nunique() if traced else None,
            outcome_blind_selection=True,
        ),
        "selection_time_fingerprint": fingerprint,
        "debate_outcome_accounting": _outcome(counts, onsets, interval),
        "signed_utility": gates,
        "release": schemas.Release(
            aggregate_fields_open=True,
            probe_templates_open_or_gated="gated",
            full_transcripts_open_or_gated="gated",
            r1_feature_matrix_open_or_gated="open" if traced else "omitted",
            metadata_file=schemas.METADATA,
            known_missing_artifacts=[
                "transcripts",
                "wording of the probes",
                "probe records",
                "answers of single agents" if traced else "single debates",
            ],
        ),
    }
    absent |= {
        "identity.backend": (
            "blank in the released provenance entry"
            if entry is not None
            else "no released file name or entry tells it"
        ),
        "identity.model_version_or_snapshot": "no version or snapshot is named in the released tables",
        "question_pool.question_pool_id": "question ids of this row are " + NOT_RELEASED,
        "question_pool.n_questions": (
            "question ids of this row are " + NOT_RELEASED + "; n_debates counts debates"
        ),
        "debate_outcome_accounting.collapse_onset_distribution": (
            "only counts of this row's debates are public"
        ),
    }
    if not traced:
        absent["signed_utility"] = (
            "other gates look at single debates, and only counts of this row's debates are public"
        )
    return _finish(
        row_id,
        groups,
        absent,
        kind="paper",
        synthetic=False,
        choices=schemas.Choices(**choices),
        sources=_paper_sources(traced, entry),
        probe_jsonl_minimum=_minimum("probe_jsonl_minimum", ()),
        debate_jsonl_minimum=_minimum("debate_jsonl_minimum", layout),
        r1_feature_jsonl_minimum=_minimum("r1_feature_jsonl_minimum", () if traced else None),
    )


def _paper_identity(row_id, line, entry, debates, traces):
    backend = version = None
    if entry is not None:
        backend, version = (None if pd.isna(entry[name]) else entry[name] for name in ("backends", "model"))
    elif debates is not None:
        backend = line["trace_source"].partition("/")[0]
    served = {"n_rounds": int(line["endpoint_round"])}
    if debates is not None:
        served["n_agents"] = int(debates["n_agents"].max())
    elif row_id in traces.index:
        states, n = traces.loc[row_id, ["n_states", "n"]]
        served["n_agents"] = int(states / n / (line["endpoint_round"] + 1))
    printed = claims.printed_values(claims.registry())
    served["temperatures_as_printed"] = sorted(printed[printed.index.str.startswith("a34.temp_")].tolist())
    return schemas.Identity(
        model_name=row_id,
        model_family=line["family"],
        backend=backend,
        model_version_or_snapshot=version,
        serving_parameters=served,
    )


def _paper_fingerprint(row_id, line, interval):
    two_arms = line["alpha_definition"] == TWO_ARMS
    found, absent = (_sealed_fingerprint if two_arms else _later_fingerprint)(row_id, line, interval)
    return schemas.Fingerprint(**dict.fromkeys(schemas.Fingerprint.model_fields) | found), {
        f"selection_time_fingerprint.{name}": reason for name, reason in absent.items()
    }


def _sealed_fingerprint(row_id, line, interval):
    """The earlier rows: counts by arm of the default condition, readable replies only."""

    def named(models):
        return models.str.lower().str.replace(" ", "-") == row_id

    cells = data.table("probe_cells")
    arms = cells[named(cells["model"]) & (cells["condition"] == "default")].set_index("social")
    contrasts = data.table("channel_contrasts")
    contrast = contrasts[named(contrasts["row"])].iloc[0]
    solo = arms.loc[False]
    found = {
        "alpha_tot": schemas.FlipRate(
            rate=float(line["alpha_tot_full"]),
            definition="default condition, mean of the solo and the social arm, readable replies only",
            arms=[
                _rate(
                    arms.loc[social, "n_flip"],
                    arms.loc[social, "n_probes"],
                    f"readable {word} probes of the default condition",
                    interval,
                )
                for social, word in [(False, "solo"), (True, "social")]
            ],
        ),
        "alpha_adv": _rate(
            solo["n_adv"],
            solo["n_init_right_probes"],
            f"probes that start right; {SOLO}, readable replies",
            interval,
        ),
        "alpha_cor": _rate(
            solo["n_cor"],
            solo["n_init_wrong_probes"],
            f"probes that start wrong; {SOLO}, readable replies",
            interval,
        ),
        "social_argument_ratio": _contrast(contrast["social"], contrast["argument"]),
    }
    unread = "probes with a readable reply are counted, those without are " + NOT_RELEASED
    return found, {"n_probe_rows": NOT_RELEASED, "n_probe_completions": unread, "parser_none_rate": unread}


def _later_fingerprint(row_id, line, interval):
    """The later rows: all three conditions, unreadable replies kept; counts from the records of that time."""
    cost = data.table("cost_card").set_index("quantity")["value"]
    lanes = data.table("partial_lanes").set_index("row")
    later = data.table("four_round_rows").set_index("row").loc[row_id]
    each = cost["probe_completions"].max() // cost["initial_answer_rows"]  # probes a record
    records = int(lanes.loc[row_id, "realised"]) if row_id in lanes.index else int(later["n_probes"] // each)
    n = int(records * each)
    flips = round(float(line["alpha_tot_full"]) * n)
    found = {
        "alpha_tot": schemas.FlipRate(
            rate=float(line["alpha_tot_full"]),
            definition="all three conditions, an unreadable reply counts as no change",
            arms=[_rate(flips, n, "probes of all three conditions", interval)],
        ),
        "n_probe_rows": records,
        "n_probe_completions": n,
        "parser_none_rate": _rate(
            later["n_unparsed"], later["n_probes"], "probes of the later, complete file", interval
        ),
    }
    only = "only total flips of this row are in the released tables that this book holds"
    return found, {"alpha_adv": only, "alpha_cor": only, "social_argument_ratio": only}


def _paper_sources(traced, entry):
    found = [] if entry is None else [schemas.Source(name=entry["file"], sha256=entry["sha256"])]
    for name in ["debates.csv"] * bool(traced) + ["model_rows.csv"]:
        found.append(
            schemas.Source(name=name, sha256=hashlib.sha256((data.root() / name).read_bytes()).hexdigest())
        )
    return found


# --- an added row -------------------------------------------------------------------------------------------


def added(row_id, *, tie, missing, interval, weights, metadata_file=None):
    """Card of a row under data/rows.

    Parameters
    ----------
    row_id : str
        One of `rows.ids`.
    tie, missing : str
        As in `analysis.ledger.debates`; a row that came as a matrix follows as far as it can.
    interval : {"wilson", "jeffreys"}
    weights : dict
        `w_coll` and `w_corr` of the gates.
    metadata_file : str, optional
        File that describes the row's files, where they are given out.

    Returns
    -------
    schemas.ReuseCard

    Examples
    --------
    >>> choices = dict(tie="alphabetic", missing="initially_wrong", interval="wilson")
    >>> added("smollm2-135m", weights={"w_coll": 1.0, "w_corr": 1.0}, **choices).quality_control
    'fails'
    """
    told = rows.card(row_id)
    answers = told.n_answers is not None
    debates = rows.debates([row_id], tie=tie, missing=missing)
    line = ledger.summarize(debates, by=None, interval=interval).iloc[0]
    choices = {"tie": tie, "missing": missing, "interval": interval, "endpoint_round": told.n_rounds}
    if not answers:  # a matrix has no answers to vote again
        choices |= {
            "tie": "undecided" if tie == "undecided" and told.n_agents == 3 else "alphabetic",
            "missing": "initially_wrong",
        }
    fingerprint, absent = _added_fingerprint(row_id, interval)
    extra = told.model_extra
    logged = "gated" if told.arm else "omitted"  # a log keeps all texts; nothing else that a row comes from does
    served = {"n_agents": told.n_agents, "n_rounds": told.n_rounds, "arm": told.arm}
    served |= {name: extra.get(name) for name in ("temperatures", "prompts")}
    groups = {
        "identity": schemas.Identity(
            model_name=told.model,
            model_family=told.family,
            backend=extra.get("backend"),
            model_version_or_snapshot=extra.get("model_version_or_snapshot"),
            serving_parameters={name: value for name, value in served.items() if value is not None},
        ),
        "question_pool": schemas.QuestionPool(
            benchmark=extra.get("benchmark"),
            question_pool_id=_pool_id(debates["question"]),
            pool_selection_rule=extra.get("pool_selection_rule"),
            n_questions=debates["question"].nunique(),
            outcome_blind_selection=extra.get("outcome_blind_selection"),
        ),
        "selection_time_fingerprint": fingerprint,
        "debate_outcome_accounting": _outcome(line, _onsets(debates), interval),
        "signed_utility": _gates(debates, row_id, weights),
        "release": schemas.Release(
            aggregate_fields_open=True,
            probe_templates_open_or_gated=logged if told.n_probes else "omitted",
            full_transcripts_open_or_gated=logged,
            r1_feature_matrix_open_or_gated="open",
            metadata_file=metadata_file,
            known_missing_artifacts=[
                "transcripts",
                *(["wording of the probes"] if told.n_probes else ["probe records"]),
                *([] if answers else ["answers of single agents"]),
            ],
        ),
    }
    absent |= dict.fromkeys(
        [
            "identity.backend",
            "identity.model_version_or_snapshot",
            "question_pool.benchmark",
            "question_pool.pool_selection_rule",
            "question_pool.outcome_blind_selection",
        ],
        NOT_TOLD,
    )
    absent["release.metadata_file"] = "the metadata describe the paper's tables, not added rows"
    return _finish(
        row_id,
        groups,
        absent,
        kind="added",
        synthetic=told.synthetic,
        quality_control=told.quality_control or "not told",
        choices=schemas.Choices(**choices),
        sources=[schemas.Source(name=one.name, sha256=one.sha256) for one in told.sources],
        probe_jsonl_minimum=_minimum(
            "probe_jsonl_minimum", _LACKS["added probes"] if told.n_probes else None
        ),
        debate_jsonl_minimum=_minimum("debate_jsonl_minimum", _LACKS["added debates"] if answers else None),
        r1_feature_jsonl_minimum=_minimum("r1_feature_jsonl_minimum", ()),
    )


def _added_fingerprint(row_id, interval):
    path, fields = rows.folder() / row_id / "probes.csv", list(schemas.Fingerprint.model_fields)
    if not path.is_file():
        return schemas.Fingerprint(**dict.fromkeys(fields)), {
            f"selection_time_fingerprint.{name}": NO_PROBES for name in fields
        }
    asked = probes.read_stored(path)
    plain = asked[asked["condition"] == "default"]
    flips = probes.flip_rate(asked, by=None, interval=interval).iloc[0]
    unread = probes.flip_rate(asked, by=None, conditions="all").iloc[0]
    found = dict.fromkeys(fields) | {
        "alpha_tot": schemas.FlipRate(
            rate=float(flips["rate"]),
            definition="default condition, an unreadable reply counts as no change",
            arms=[_rate(flips["k"], flips["n"], "probes of the default condition", interval)],
        ),
        "n_probe_rows": len(asked[["question", "replicate", "condition", "agent"]].drop_duplicates()),
        "n_probe_completions": len(asked),
        "parser_none_rate": _rate(unread["n_unparsed"], unread["n"], "probes of all conditions", interval),
    }
    solo = plain[(plain["social"] == False).fillna(False)]  # noqa: E712 - a nullable column
    if len(solo) and solo["gold"].notna().all() and solo["parsed"].notna().all():
        channels = probes.decompose(solo, by=None).set_index("channel")
        found["alpha_adv"] = _rate(
            *channels.loc["adv", ["k", "n"]], f"probes that start right; {SOLO}", interval
        )
        found["alpha_cor"] = _rate(
            *channels.loc["cor", ["k", "n"]], f"probes that start wrong; {SOLO}", interval
        )
    contrast = probes.contrasts(asked, by="row").iloc[0]
    if pd.notna(contrast["ratio"]):
        found["social_argument_ratio"] = _contrast(contrast["social"], contrast["argument"])
    reason = (
        "the probe records do not tell: solo probes need a right answer and a reply, S/A needs both arms and"
        " weak and strong arguments"
    )
    return schemas.Fingerprint(**found), {f"selection_time_fingerprint.{name}": reason for name in fields}
