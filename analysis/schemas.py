"""What a reuse card, a debate record, a probe record and a line of the feature matrix may hold.

Each field says what it means, its unit and its release tier; the JSON Schemas under data/schemas/ are made
from these models. The names are the paper's. Its own schema of the card is a list of names, so the types are
ours; a rate carries its numerator, its denominator and an interval, and what is not known is null with a
reason. Unknown fields are kept, except in a feature line: the released schema closes it, so that no text can
travel in it.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections A.3.2 and G.6.
"""

from typing import Annotated, Any, Literal

import pydantic

from analysis.errors import choice

Tier = Literal["open", "gated", "omitted"]
TIERS = {
    "open": "free to read and use under the licence of the data",
    "gated": "given out on request, for research",
    "omitted": "not recorded, or in none of the released tables that this book holds",
}
METADATA = "croissant.json"  # under data/
EXACT = 2**53 - 1  # beyond it other languages' numbers lose digits
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Count = Annotated[int, pydantic.Field(ge=0, le=EXACT)]
Credit = Count | Annotated[float, pydantic.Field(ge=0, le=EXACT)]  # tied votes may count in part
Fraction = Annotated[float, pydantic.Field(ge=0, le=1)]
Name = Annotated[str, pydantic.Field(min_length=1)]
Id = str | int
Label = str | None


class Part(pydantic.BaseModel):
    """JSON as it stands: 1 is not true, "1" is not 1, and neither NaN nor infinity is a number."""

    model_config = pydantic.ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


def told(meaning, *, unit="", tier="open", default=..., **limits):
    """A field with its meaning, unit and release tier."""
    return pydantic.Field(
        default, description=meaning, json_schema_extra={"unit": unit, "tier": tier}, **limits
    )


# --- the card -----------------------------------------------------------------------------------------------


class Rate(Part):
    """A share with its counts and its 95% interval."""

    rate: Fraction | None = told("k over n; null when n is zero", unit="fraction")
    k: Credit = told("numerator", unit="as `of` says")
    n: Credit = told("denominator", unit="as `of` says")
    low: Fraction | None = told("lower limit of the 95% interval", unit="fraction")
    high: Fraction | None = told("upper limit of the 95% interval", unit="fraction")
    of: str = told("what the denominator counts")

    @pydantic.model_validator(mode="after")
    def _consistent(self):
        if self.k > self.n:
            raise ValueError(f"k at most n, {self.n}")
        if self.n and (self.rate is None or abs(self.rate - self.k / self.n) > 1e-9):
            raise ValueError(f"rate {self.k / self.n}, which is k over n")
        # A Jeffreys interval of no event begins above zero: the rate need not lie inside.
        if None not in (self.low, self.high) and self.low > self.high:
            raise ValueError(f"low at most high, {self.high}")
        return self


class FlipRate(Part):
    """A flip rate: the mean of one or several arms, with the counts of each."""

    rate: Fraction = told("mean of the arms' rates", unit="fraction of probes")
    arms: list[Rate] = told("the pools of probes that are averaged", min_length=1)
    definition: str = told("which probes count, and what an unreadable reply counts as")

    @pydantic.model_validator(mode="after")
    def _consistent(self):
        rates = [arm.rate for arm in self.arms]
        if None in rates or abs(self.rate - sum(rates) / len(rates)) > 1e-6:
            raise ValueError("the mean of the arms' rates")
        return self


class Contrast(Part):
    """The social and the argument contrast of a probe, and their ratio."""

    ratio: Annotated[float, pydantic.Field(ge=-1, le=1)] = told(
        "social over the sum of both sizes (equation 4)"
    )
    social: Annotated[float, pydantic.Field(ge=-1, le=1)] = told(
        "flip rate of social minus solo probes", unit="fraction of probes"
    )
    argument: Annotated[float, pydantic.Field(ge=-1, le=1)] = told(
        "flip rate of strong and very strong minus weak and moderate probes", unit="fraction of probes"
    )
    definition: str = told("which probes count, and over what the ratio is taken")


class Identity(Part):
    """Which model, and how it was run."""

    model_name: Name = told("model as readers know it")
    model_family: Name = told("model family; rows of one family are averaged in the rank test")
    backend: str | None = told("route to the model: an API or a local server")
    model_version_or_snapshot: str | None = told("version or snapshot that was served")
    serving_parameters: dict[str, Any] | None = told(
        "agents, rounds, sampling temperatures and what else fixes the scaffold"
    )


class QuestionPool(Part):
    """Which questions."""

    benchmark: str | None = told("name of the benchmark")
    question_pool_id: str | None = told(
        "digest of the sorted question ids: equal for rows that answered the same questions"
    )
    pool_selection_rule: str | None = told("how the questions were chosen")
    n_questions: Count | None = told("different questions that were debated", unit="questions")
    outcome_blind_selection: bool | None = told("whether no outcome of a debate was used to choose them")


class Fingerprint(Part):
    """What the probe says before any debate."""

    alpha_tot: FlipRate | None = told("total flip rate", unit="fraction of probes")
    alpha_adv: Rate | None = told(
        "right answers given up, of probes that start right", unit="fraction of probes"
    )
    alpha_cor: Rate | None = told(
        "wrong answers turned right, of probes that start wrong", unit="fraction of probes"
    )
    social_argument_ratio: Contrast | None = told("S/A: weight of the social against the argument channel")
    n_probe_rows: Count | None = told("probe records: question by agent by condition", unit="records")
    n_probe_completions: Count | None = told("counterarguments that were put", unit="probes")
    parser_none_rate: Rate | None = told("replies without a readable answer", unit="fraction of probes")


class Outcome(Part):
    """The transition ledger."""

    n_debates: Count = told("debates", unit="debates")
    initial_majority_accuracy: Rate = told("first majority right", unit="fraction of debates")
    final_majority_accuracy: Rate = told("last majority right", unit="fraction of debates")
    conditional_collapse_rate: Rate = told(
        "collapses over debates right at first", unit="fraction of debates"
    )
    conditional_correction_rate: Rate = told(
        "corrections over debates wrong at first", unit="fraction of debates"
    )
    collapse_onset_distribution: dict[str, Credit] | None = told(
        "collapses by the round in which the majority first goes wrong", unit="debates"
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self):
        onsets = self.collapse_onset_distribution
        if onsets is not None and sum(onsets.values()) > self.conditional_collapse_rate.k + 1e-6:
            raise ValueError("at most as many onsets as collapses")
        return self


class Gate(Part):
    """One gate, replayed on saved debates."""

    w_coll: Annotated[float, pydantic.Field(ge=0)] = told("value of a prevented collapse")
    w_corr: Annotated[float, pydantic.Field(ge=0)] = told("cost of a lost correction")
    gate_name: Name = told("rule that freezes")
    validation_cohort_id: Name = told("debates on which the gate was judged")
    collapses_prevented: Credit = told("collapses among frozen debates", unit="debates")
    corrections_lost: Credit = told("corrections among frozen debates", unit="debates")
    net_utility: float = told("weighted prevented minus weighted lost", unit="weighted debates")
    accuracy_delta: Annotated[float, pydantic.Field(ge=-1, le=1)] = told(
        "prevented minus lost over all debates: the change of accuracy", unit="fraction of debates"
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self):
        net = self.w_coll * self.collapses_prevented - self.w_corr * self.corrections_lost
        if abs(self.net_utility - net) > 1e-6 * max(1, abs(net)):
            raise ValueError(f"net_utility {net}: w_coll x prevented minus w_corr x lost")
        return self


class Release(Part):
    """What of the row is open."""

    aggregate_fields_open: bool = told("whether counts and rates are open")
    probe_templates_open_or_gated: Tier = told("tier of the wording of the counterarguments")
    full_transcripts_open_or_gated: Tier = told("tier of the models' texts")
    r1_feature_matrix_open_or_gated: Tier = told("tier of the Round 1 features of single debates")
    known_missing_artifacts: list[str] = told("what this copy does not hold of the row")
    metadata_file: str | None = told("file that describes the tables")


class ModelCard(Part):
    """The six groups of the card."""

    identity: Identity = told("which model")
    question_pool: QuestionPool = told("which questions")
    selection_time_fingerprint: Fingerprint = told("what the probe says")
    debate_outcome_accounting: Outcome = told("how debates ended")
    signed_utility: list[Gate] = told("what each gate would have prevented and lost")
    release: Release = told("what is open")


GROUPS = {
    name: field.annotation if name != "signed_utility" else Gate
    for name, field in ModelCard.model_fields.items()
}


class Choices(Part):
    """Under which choices the debates were counted."""

    tie: Literal["alphabetic", "undecided", "expected"] = told("what a tied vote counts as")
    missing: Literal["initially_wrong", "drop", "undecided"] = told(
        "what a vote without any answer counts as"
    )
    interval: Literal["wilson", "jeffreys"] = told("kind of the 95% intervals")
    endpoint_round: Annotated[int, pydantic.Field(ge=1, le=EXACT)] = told(
        "round whose majority is the final one", unit="round"
    )
    note: str = told("what the choices do not say", default="")


class Source(Part):
    """A file that the card was made from."""

    name: Name = told("name of the file")
    sha256: Annotated[str, pydantic.Field(pattern="^[0-9a-f]{64}$")] = told("its checksum")


class ReuseCard(Part):
    """One model-scaffold row, as others can read, check and reuse it."""

    model_config = pydantic.ConfigDict(title="Reuse card")

    schema_version: Literal["reuse_card.v1"] = told("version of this layout")
    row_id: Name = told("name of the row")
    kind: Literal["paper", "added"] = told("a row of the paper, or one added to this copy")
    synthetic: bool = told("whether the debates are made up")
    quality_control: Literal["passes", "fails", "not told"] = told(
        "strict quality control of the run: missing, truncated and unclosed replies within the limit",
        default="not told",
    )
    choices: Choices = told("choices under which the debates were counted")
    model_card: ModelCard = told("the row")
    probe_jsonl_minimum: dict[str, Tier] = told("tier of each field that a probe record should hold")
    debate_jsonl_minimum: dict[str, Tier] = told("tier of each field that a debate record should hold")
    r1_feature_jsonl_minimum: dict[str, Tier] = told(
        "tier of each field that a Round 1 feature line should hold"
    )
    sources: list[Source] = told("files behind the numbers")
    absent: dict[str, str] = told("why a field is null or a list incomplete, by group.field")
    tiers: dict[str, Tier] = told("tier of each field of the row, by group.field")

    @pydantic.model_validator(mode="after")
    def _consistent(self):
        silent = [path for path in nulls(self.model_card) if not self.absent.get(path)]
        if silent:
            raise ValueError(f"a value, or a reason under absent, for {', '.join(silent)}")
        lacking = [path for path in fields_of_card() if path not in self.tiers]
        lacking += [
            f"{kind}.{name}"
            for kind, model in MINIMUM.items()
            for name in model.model_fields
            if name not in getattr(self, kind)
        ]
        if lacking:
            raise ValueError(f"a tier for each field; none for {', '.join(lacking)}")
        return self


def nulls(model_card):
    """Fields of a card that hold nothing, as group.field.

    Parameters
    ----------
    model_card : ModelCard

    Returns
    -------
    list of str

    Examples
    --------
    >>> nulls(ModelCard.model_construct(**{group: None for group in GROUPS}))
    []
    """
    groups = {group: getattr(model_card, group) for group in GROUPS}
    return [
        f"{group}.{name}"
        for group, held in groups.items()
        if isinstance(held, Part)
        for name in GROUPS[group].model_fields
        if getattr(held, name) is None
    ]


def fields_of_card():
    """Names of the card's fields, by group.

    Examples
    --------
    >>> len(fields_of_card()), fields_of_card()[0]
    (37, 'identity.model_name')
    """
    return [f"{group}.{name}" for group, model in GROUPS.items() for name in model.model_fields]


# --- debate records -----------------------------------------------------------------------------------------


class DebateMinimum(Part):
    """What the card asks of every debate record; the released layouts lack some of it."""

    schema_version: str | None = told("version of the layout", tier="omitted", default=None)
    question_id: Id = told("question")
    benchmark: str | None = told("benchmark of the question", tier="omitted", default=None)
    correct_label: Label = told("right answer")
    temperatures: list[float] | None = told(
        "sampling temperature of each agent", tier="omitted", default=None
    )
    initial_answers: list[Label] | None = told(
        "answer of each agent in Round 0; null where none could be read", default=None
    )
    final_answers: list[Label] | None = told("answer of each agent in the last round", default=None)
    round_traces: list[Any] | None = told("the rounds of debate, in order", default=None)
    initial_majority_correct: bool | None = told("first majority right", default=None)
    final_majority_correct: bool | None = told("last majority right", default=None)
    collapsed: bool | None = told("right at first and wrong at last", default=None)
    corrected: bool | None = told("wrong at first and right at last", default=None)
    usage: dict[str, Any] | None = told("tokens that were used", unit="tokens", default=None)
    backend: str | None = told("route to the model", default=None)
    model_name: str | None = told("model", default=None)
    release_tier: str | None = told("tier of the record", tier="omitted", default=None)


class Round(Part):
    """One round of layout A."""

    round: Annotated[int, pydantic.Field(ge=1, le=EXACT)] = told("number of the round, from 1", unit="round")
    answers: list[Label] = told("answer of each agent")
    majority: Label = told("majority as stored", default=None)


class State(Part):
    """One agent in one round of layout B."""

    agent_id: Id = told("agent; states may come in any order")
    answer: Label = told("its answer; null where none could be read")
    reasoning: str | None = told("its reply; null in the open tier", tier="gated", default=None)
    round_num: Count | None = told("round, 0 for the independent answer", unit="round", default=None)
    cost: float | None = told("price of the call", unit="US dollars", default=None)


class DebateA(DebateMinimum):
    """A debate of the six sources that the paper traces: answers only, no text was saved."""

    model_config = pydantic.ConfigDict(title="Debate record, layout A")

    model: str | None = told("model", default=None)
    initial_answers: list[Label] = told(
        "answer of each agent in Round 0; null where none could be read", min_length=1
    )
    initial_majority: Label = told("first majority as stored", default=None)
    initial_correct: bool | None = told("first majority right, as stored", default=None)
    round_traces: list[Round] = told("the rounds of debate, in order")
    majority_answer: Label = told("last majority as stored", default=None)
    final_correct: bool | None = told("last majority right, as stored", default=None)


class DebateB(DebateMinimum):
    """A debate of the later sources: one state per agent and round."""

    model_config = pydantic.ConfigDict(title="Debate record, layout B")

    model: str | None = told("model", default=None)
    initial_states: list[State] = told("Round 0, one state per agent", min_length=1)
    round_traces: list[list[State]] | None = told(
        "the rounds of debate, in order, one state per agent", default=None
    )
    round_states: list[list[State]] | None = told("the same under another name", default=None)
    final_states: list[State] | None = told("the last round once more", default=None)
    majority_answer: Label = told("last majority as stored; may be empty", default=None)
    total_cost: float | None = told("price of the debate", unit="US dollars", default=None)
    timestamp: Any = told("when the debate was run", default=None)


# --- probe records ------------------------------------------------------------------------------------------


class ProbeResult(Part):
    """One counterargument and what became of the answer."""

    strength: Literal["weak", "moderate", "strong", "very_strong"] | None = told(
        "strength of the argument", default=None
    )
    strength_value: Fraction | None = told("the same as a number", default=None)
    social: bool | None = told("whether the argument is said to come from other agents", default=None)
    alt_answer: Label = told("answer that is argued for", default=None)
    post_answer: Label = told("answer afterwards; null where none could be read", default=None)
    revised: bool | None = told(
        "whether the answer changed; false where the reply could not be read", default=None
    )
    cost: float | None = told("price of the call", unit="US dollars", default=None)
    usage: dict[str, Any] | None = told("tokens that were used", unit="tokens", default=None)


class ProbeMinimum(Part):
    """What the card asks of every probe record."""

    schema_version: str | None = told("version of the layout", tier="omitted", default=None)
    question_id: Id = told("question")
    benchmark: str | None = told("benchmark of the question", default=None)
    condition: Literal["default", "anti_social", "anti_argument"] | None = told("system prompt", default=None)
    agent_idx: Id | None = told("agent", default=None)
    temperature: Annotated[float, pydantic.Field(ge=0)] | None = told(
        "sampling temperature of the first answer", default=None
    )
    initial_answer: Label = told("answer before any counterargument; null where none could be read")
    initial_correct: bool | None = told("whether it is right", default=None)
    probe_results: list[ProbeResult] = told("the probes", min_length=1)
    alpha_total: Fraction | None = told(
        "share of the probes that changed the answer", unit="fraction of probes", default=None
    )
    alpha_solo: Fraction | None = told("the same over solo probes", unit="fraction of probes", default=None)
    alpha_social: Fraction | None = told(
        "the same over social probes", unit="fraction of probes", default=None
    )
    parser_flags: list[str] | None = told(
        "what was odd about reading the replies", tier="omitted", default=None
    )
    usage: dict[str, Any] | None = told("tokens that were used", unit="tokens", default=None)
    backend: str | None = told("route to the model", default=None)
    model_name: str | None = told("model", default=None)
    release_tier: str | None = told("tier of the record", tier="omitted", default=None)


class Probe(ProbeMinimum):
    """One question put to one agent under one system prompt, and eight counterarguments."""

    model_config = pydantic.ConfigDict(title="Probe record")

    category: str | None = told("subject of the question", default=None)
    correct_label: Label = told("right answer", default=None)
    by_strength: dict[str, Any] | None = told(
        "flip rates by strength", unit="fraction of probes", default=None
    )
    flip_rate: Fraction | None = told("the same as alpha_total", unit="fraction of probes", default=None)
    social_sensitivity: float | None = told(
        "stored social contrast; the paper's is computed from the probes", default=None
    )
    argument_sensitivity: float | None = told(
        "stored argument contrast, very strong minus weak; the paper's takes the two stronger minus the two"
        " weaker",
        default=None,
    )
    sa_ratio: float | None = told("stored plain ratio of the two; the paper's is normalised", default=None)
    total_cost: float | None = told("price of the record", unit="US dollars", default=None)
    reply_temperature: Annotated[float, pydantic.Field(ge=0)] | None = told(
        "sampling temperature of the replies", default=None
    )
    timestamp: Any = told("when the probe was run", default=None)
    initial_parse_repaired: bool | None = told("whether the first answer was asked for again", default=None)
    initial_repair_attempts: Count | None = told("how often", unit="calls", default=None)


# --- feature lines ------------------------------------------------------------------------------------------


class FeatureMinimum(Part):
    """What the card asks of every feature line; the released schema has other names for some of it."""

    schema_version: str = told("version of the layout", tier="omitted")
    question_id: Id = told("question")
    source: str = told("trace file or row")
    initial_majority_correct: bool = told("first majority right")
    final_majority_correct: bool = told("last majority right")
    collapsed: bool = told("right at first and wrong at last")
    corrected: bool = told("wrong at first and right at last")
    init_unanimous: bool | None = told("all readable first answers equal")
    r1_majority_changed: bool = told("Round 1 ends with another majority")
    r1_n_flipped: Count = told("agents whose answer in Round 1 is not their first one", unit="agents")
    r1_flip_frac: Fraction = told("the same over the agents", tier="omitted", unit="fraction of agents")
    release_tier: str = told("tier of the line", tier="omitted")


class FeatureLine(Part):
    """One debate of the feature matrix, as its released schema has it; no further field is allowed."""

    model_config = pydantic.ConfigDict(title="Feature line", extra="forbid")

    schema_version: Literal["per_debate_r1_features.v1"] = told("version of the layout", tier="omitted")
    row_id: str = told("anonymous id of the debate", tier="omitted")
    model_id: str = told("model, safe to release")
    benchmark: str = told("benchmark of the question", tier="omitted")
    question_id: str = told("question, or its digest")
    split_id: str | None = told("fold or split, where one was used", tier="omitted", default=None)
    initial_majority_correct: bool = told("first majority right")
    final_majority_correct: bool = told("last majority right")
    collapsed: bool = told("right at first and wrong at last")
    corrected: bool = told("wrong at first and right at last")
    collapse_onset_round: Annotated[int, pydantic.Field(ge=1)] | None = told(
        "round in which a collapse begins", unit="round", default=None
    )
    init_unanimous: bool | None = told("all readable first answers equal", default=None)
    init_agree_frac: Fraction | None = told(
        "largest group of equal first answers", unit="fraction of agents", default=None
    )
    r1_majority_changed: bool = told("Round 1 ends with another majority")
    r1_n_flipped_from_initial: Annotated[int, pydantic.Field(ge=0)] = told(
        "agents whose answer in Round 1 is not their first one", unit="agents"
    )
    r1_agree_frac: Fraction = told("largest group of equal answers in Round 1", unit="fraction of agents")
    r2_majority_changed: bool | None = told("Round 2 ends with another majority", default=None)
    r2_agree_frac: Fraction | None = told(
        "largest group of equal answers in Round 2", unit="fraction of agents", default=None
    )
    r3_majority_changed: bool | None = told("Round 3 ends with another majority", default=None)
    r3_agree_frac: Fraction | None = told(
        "largest group of equal answers in Round 3", unit="fraction of agents", default=None
    )
    parser_flags: list[str] = told("what was odd about reading the replies", tier="omitted", default=[])
    release_tier: Literal["open_derived", "gated_trace_derived"] = told("tier of the line", tier="omitted")
    provenance: dict[str, str | float | bool | None] = told(
        "where the line comes from", tier="omitted", default={}
    )


MINIMUM = {
    "probe_jsonl_minimum": ProbeMinimum,
    "debate_jsonl_minimum": DebateMinimum,
    "r1_feature_jsonl_minimum": FeatureMinimum,
}
SCHEMAS = {
    "reuse_card": ReuseCard,
    "debate_layout_a": DebateA,
    "debate_layout_b": DebateB,
    "probe_record": Probe,
    "feature_line": FeatureLine,
    "feature_minimum": FeatureMinimum,
}


def schema(name):
    """JSON Schema (draft 2020-12) of one layout.

    Parameters
    ----------
    name : str
        One of `SCHEMAS`.

    Returns
    -------
    dict

    Examples
    --------
    >>> schema("feature_line")["additionalProperties"]
    False
    """
    return {"$schema": DRAFT, **SCHEMAS[choice("schema", name, tuple(SCHEMAS))].model_json_schema()}
