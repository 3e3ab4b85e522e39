"""Reuse cards: what the schemas ask, and what the card of every row says."""

import base64
import html
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import nbformat
import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint
from typer.testing import CliRunner

import analysis
from analysis import book, cards, cards_rows, cli, data, ledger, rows, schemas, tables_cards
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
PAPER = data.table("model_rows").set_index("row")
TRACED = PAPER.index[PAPER["trace_source"].notna()].tolist()
LATER = PAPER.index[PAPER["endpoint_round"] == 4].tolist()
every_row = pytest.mark.parametrize("name", PAPER.index)


@pytest.fixture(scope="module")
def made():
    """The cards of the paper's rows and of the example."""
    return {name: cards.card(name) for name in cards.ids(["smollm2-135m"])}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The data of the project without any added row."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns("rows", "multilevel"))
    (folder / "rows").mkdir()
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(folder))
    return folder


def plain(one):
    """A card as a file would give it."""
    return json.loads(cards.to_json(one))


def checker(name):
    return jsonschema.Draft202012Validator(schemas.schema(name))


# --- schemas ------------------------------------------------------------------------------------------------


def released(layout):
    lines = data.table("released_layouts")
    return lines[lines["layout"] == layout]


def test_the_card_has_the_names_of_the_released_list_in_its_groups():
    listed = released("debate_eval_reuse_card")
    wanted = {
        section.removeprefix("model_card."): part["field"].tolist()
        for section, part in listed.groupby("section", sort=False)
    }
    assert tables_cards.asked_for() == wanted
    assert (len(wanted), sum(map(len, wanted.values()))) == (9, 82)


def test_the_feature_line_is_the_released_schema():
    properties, required = (
        schemas.schema("feature_line")["properties"],
        schemas.schema("feature_line")["required"],
    )
    listed = released("per_debate_r1_features").set_index("field")
    assert list(properties) == listed.index.tolist()
    assert required == listed.index[listed["required"] == "true"].tolist()
    for field, told in properties.items():
        branches = told.get("anyOf", [told])
        kinds = {branch["type"] for branch in branches}
        assert kinds == set(listed.loc[field, "type"].split("|")), field
        limits = listed.loc[field, "constraint"]
        if isinstance(limits, str) and limits.startswith("minimum"):
            bounded = next(branch for branch in branches if branch["type"] != "null")
            wanted = {word.split()[0]: float(word.split()[1]) for word in limits.split("; ")}
            assert {
                name: bounded[name] for name in ("minimum", "maximum") if name in bounded
            } == wanted, field
    assert listed.loc["schema_version", "constraint"] == f"const {properties['schema_version']['const']}"
    assert listed.loc["release_tier", "constraint"] == "enum " + "; ".join(properties["release_tier"]["enum"])


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_schemas_are_of_the_stated_draft_and_say_everything_of_each_field(name):
    found = schemas.schema(name)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(found)
    parts = [found, *found.get("$defs", {}).values()]
    for part in parts:
        assert part["additionalProperties"] is (name != "feature_line")
        for field, told in part["properties"].items():
            assert (
                told["description"] and told["tier"] in schemas.TIERS and isinstance(told["unit"], str)
            ), field


def test_fields_that_no_released_line_holds_are_those_not_among_its_columns():
    """The released matrix has other names for some fields; what it holds under no name is omitted."""
    columns = pd.read_csv(DATA / "debates.csv", nrows=0).columns
    renamed = {
        "model_id": "model",
        "source": "model",
        "initial_majority_correct": "init_majority_correct",
        "final_majority_correct": "final_correct",
        "collapse_onset_round": "cascade_round",
        "r1_n_flipped_from_initial": "r1_n_flipped_from_init",
        "r1_n_flipped": "r1_n_flipped_from_init",
    }
    for model in (schemas.FeatureLine, schemas.FeatureMinimum):
        told = {
            name for name, field in model.model_fields.items() if field.json_schema_extra["tier"] == "omitted"
        }
        assert told == {name for name in model.model_fields if renamed.get(name, name) not in columns}


def test_only_models_text_is_gated():
    found = tables_cards.all_fields()
    assert found.loc[found["tier"] == "gated", ["part", "field"]].values.tolist() == [["State", "reasoning"]]


# --- cards of the paper's rows ------------------------------------------------------------------------------


def test_every_row_has_a_card_that_both_checks_accept(made):
    assert list(made) == [*PAPER.index, "smollm2-135m"]
    whole = checker("reuse_card")
    for name, one in made.items():
        assert list(whole.iter_errors(plain(one))) == [], name
        assert cards.validate(plain(one)).empty, name


def shares(value):
    """Every rate inside a card."""
    if isinstance(value, dict):
        if {"rate", "k", "n"} <= value.keys():
            yield value
        for item in value.values():
            yield from shares(item)
    elif isinstance(value, list):
        for item in value:
            yield from shares(item)


def test_every_rate_has_its_denominator_and_the_wilson_interval_of_another_library(made):
    seen = 0
    for one in made.values():
        for share in shares(plain(one)):
            assert share["of"] and share["rate"] == pytest.approx(share["k"] / share["n"], abs=1e-12)
            assert (share["low"], share["high"]) == pytest.approx(
                proportion_confint(share["k"], share["n"], method="wilson"), abs=1e-9
            )
            seen += 1
    assert seen > 80


@pytest.mark.parametrize("name", TRACED)
def test_traced_rows_are_counted_from_the_lines_of_the_matrix(made, name):
    source = PAPER.loc[name, "trace_source"]
    lines = pd.read_csv(DATA / "debates.csv", dtype={"question_id": str}).query("model == @source")
    ended = made[name].model_card.debate_outcome_accounting
    first, last = lines["init_majority_correct"] == 1, lines["final_correct"] == 1
    assert ended.n_debates == len(lines)
    assert (ended.initial_majority_accuracy.k, ended.final_majority_accuracy.k) == (first.sum(), last.sum())
    assert (ended.conditional_collapse_rate.k, ended.conditional_collapse_rate.n) == (
        (first & ~last).sum(),
        first.sum(),
    )
    assert (ended.conditional_correction_rate.k, ended.conditional_correction_rate.n) == (
        (~first & last).sum(),
        (~first).sum(),
    )
    assert ended.collapse_onset_distribution == {
        str(k): (lines["cascade_round"] == k).sum() for k in (1, 2, 3)
    }
    gates = {gate.gate_name: gate for gate in made[name].model_card.signed_utility}
    moved = lines["r1_majority_changed"] == 1
    gate = gates["round1_majority_change"]
    assert (gate.collapses_prevented, gate.corrections_lost) == (
        (moved & first & ~last).sum(),
        (moved & ~first & last).sum(),
    )
    assert gate.accuracy_delta == pytest.approx((last.where(~moved, first).sum() - last.sum()) / len(lines))
    assert made[name].model_card.question_pool.n_questions == lines["question_id"].nunique()


def test_rows_that_share_their_questions_share_a_pool_id(made):
    pools = pd.Series({name: made[name].model_card.question_pool.question_pool_id for name in TRACED})
    questions = data.debates().groupby("row")["question"].agg(frozenset)
    assert [[a == b for b in pools] for a in pools] == [
        [a == b for b in questions[TRACED]] for a in questions[TRACED]
    ]
    assert pools.nunique() == 3


@every_row
def test_counts_and_flip_rates_are_those_of_the_cohort(made, name):
    one, line = made[name].model_card, PAPER.loc[name]
    ended, alpha = one.debate_outcome_accounting, one.selection_time_fingerprint.alpha_tot
    assert (ended.n_debates, ended.initial_majority_accuracy.k, ended.final_majority_accuracy.k) == tuple(
        line[["n", "init_correct", "final_correct"]]
    )
    assert (ended.conditional_collapse_rate.k, ended.conditional_correction_rate.k) == (
        line["collapse"],
        line["correction"],
    )
    assert alpha.rate == line["alpha_tot_full"]
    assert np.mean([arm.k / arm.n for arm in alpha.arms]) == pytest.approx(line["alpha_tot_full"], abs=1e-12)
    assert one.signed_utility[0].net_utility == line["collapse"] - line["correction"]
    assert (
        made[name].choices.endpoint_round
        == one.identity.serving_parameters["n_rounds"]
        == line["endpoint_round"]
    )


@pytest.mark.parametrize("name", LATER)
def test_counts_turned_back_from_the_later_rates_are_whole(made, name):
    """Their released rates determine k out of the records that were there, to the last digit."""
    arm = made[name].model_card.selection_time_fingerprint.alpha_tot.arms[0]
    assert arm.n == 8 * made[name].model_card.selection_time_fingerprint.n_probe_rows
    assert PAPER.loc[name, "alpha_tot_full"] * arm.n == pytest.approx(arm.k, abs=1e-8)


def test_null_fields_say_why_and_are_omitted(made):
    for name, one in made.items():
        nulls = schemas.nulls(one.model_card)
        assert set(one.absent) - {"signed_utility"} == set(nulls)
        assert all(one.tiers[path] == "omitted" for path in nulls) and all(
            map(str.strip, one.absent.values())
        )
        assert {path for path, tier in one.tiers.items() if tier == "open"} == set(
            schemas.fields_of_card()
        ) - set(nulls)
        assert ("signed_utility" in one.absent) == (name in set(PAPER.index) - set(TRACED))


def test_only_traced_rows_have_an_open_feature_matrix(made):
    tiers = {name: made[name].model_card.release.r1_feature_matrix_open_or_gated for name in PAPER.index}
    assert {name for name, tier in tiers.items() if tier == "open"} == set(TRACED)
    # The paper's transcripts and the shipped row's logs are kept by whoever ran them.
    assert {one.model_card.release.full_transcripts_open_or_gated for one in made.values()} == {"gated"}


def test_cards_agree_with_the_released_results(shared, made):
    reported = shared / "upstream" / "reported"
    intervals = pd.read_csv(reported / "c_cond_intervals_n14.csv").set_index("model")
    assert set(intervals.index) == set(PAPER.index)
    jeffreys = {
        name: cards.card(name, interval="jeffreys").model_card.debate_outcome_accounting
        for name in ("llama-3.1-8b", "gemma-4-31b-it-awq")
    }
    for name, line in intervals.iterrows():
        fell = made[name].model_card.debate_outcome_accounting.conditional_collapse_rate
        assert (fell.k, fell.n) == (line["k_collapses"], line["n_init_correct"])
        assert [fell.rate, fell.low, fell.high] == pytest.approx(
            line[["c_cond", "wilson_lo", "wilson_hi"]].tolist(), abs=1e-9
        )
        if name in jeffreys:
            found = jeffreys[name].conditional_collapse_rate
            assert [found.low, found.high] == pytest.approx(
                line[["jeffreys_lo", "jeffreys_hi"]].tolist(), abs=1e-9
            )
    split = pd.read_csv(reported / "alpha_split_per_model.csv").set_index("model")
    split.index = split.index.str.lower().str.replace(" ", "-")
    for name in set(PAPER.index) - set(LATER):
        told, line = made[name].model_card.selection_time_fingerprint, split.loc[name]
        assert [arm.rate for arm in told.alpha_tot.arms] == pytest.approx(
            line[["alpha_total_nonsocial", "alpha_total_social"]].tolist(), abs=1e-12
        )
        assert (told.alpha_adv.rate, told.alpha_cor.rate) == pytest.approx(
            (line["alpha_adv_nonsocial"], line["alpha_cor_nonsocial"]), abs=1e-12
        )
    onsets = pd.read_csv(shared / "upstream" / "inputs" / "cascade_onset_rounds.csv").set_index("model")
    for name in TRACED:
        line = onsets.loc[PAPER.loc[name, "trace_source"].replace("/", "_")]
        found = made[name].model_card.debate_outcome_accounting.collapse_onset_distribution
        assert list(found.values()) == line[["round_1", "round_2", "round_3"]].tolist()


def test_ratio_of_the_channels_is_equation_4(made):
    found = made["qwen3-8b"].model_card.selection_time_fingerprint.social_argument_ratio
    line = data.table("channel_contrasts").set_index("row").loc["Qwen3-8B"]
    assert found.ratio == pytest.approx(
        line["social"] / (abs(line["social"]) + abs(line["argument"]) + 1e-6), abs=1e-12
    )


# --- choices ------------------------------------------------------------------------------------------------


def test_a_traced_row_follows_the_undecided_rule_and_a_counted_one_says_that_it_does_not():
    one = cards.card("qwen3-4b", tie="undecided", missing="drop")
    wanted = ledger.summarize(data.debates(tie="undecided").query("row == 'qwen3-4b'")).iloc[0]
    assert (one.choices.tie, one.choices.missing) == ("undecided", "initially_wrong")
    assert (
        one.model_card.debate_outcome_accounting.conditional_collapse_rate.k
        == wanted["collapse"]
        != PAPER.loc["qwen3-4b", "collapse"]
    )
    counted = cards.card("sonnet-4.5", tie="undecided")
    assert counted.choices.tie == "alphabetic" and "as released" in counted.choices.note


@pytest.mark.parametrize("tie", ledger.TIES)
@pytest.mark.parametrize("missing", ledger.MISSING)
def test_an_added_row_follows_every_choice(tie, missing):
    one = cards.card("smollm2-135m", tie=tie, missing=missing, interval="jeffreys")
    wanted = ledger.summarize(
        rows.debates(["smollm2-135m"], tie=tie, missing=missing), interval="jeffreys"
    ).iloc[0]
    fell = one.model_card.debate_outcome_accounting.conditional_collapse_rate
    assert (one.choices.tie, one.choices.missing, one.choices.interval) == (tie, missing, "jeffreys")
    assert (fell.k, fell.n, fell.low) == pytest.approx(
        (wanted["collapse"], wanted["init_correct"], wanted["c_cond_low"])
    )
    assert cards.validate(plain(one)).empty


def test_weights_move_the_net_and_not_the_accuracy():
    one, weighted = cards.card("phi-4-mini"), cards.card("phi-4-mini", w_collapse=3, w_correction=0.5)
    for a, b in zip(one.model_card.signed_utility, weighted.model_card.signed_utility):
        assert b.net_utility == 3 * a.collapses_prevented - 0.5 * a.corrections_lost
        assert b.accuracy_delta == a.accuracy_delta


@pytest.mark.parametrize(
    "options",
    [
        {"tie": "no"},
        {"missing": "no"},
        {"interval": "no"},
        {"w_collapse": -1},
        {"w_correction": math.inf},
        {"w_collapse": math.nan},
    ],
)
def test_unknown_choices_are_refused(options):
    with pytest.raises(ValueError):
        cards.card("sonnet-4.5", **options)


@pytest.mark.parametrize("name", ["", "nope", "../model_rows", "Llama-3.1-8B", "x" * 10_000, None, 3])
def test_unknown_rows_are_refused_with_the_known_ones(name):
    with pytest.raises(DataError, match="no such row; expected one of sonnet-4.5, ") as problem:
        cards.card(name)
    assert len(str(problem.value)) < 600


# --- cards of added rows ------------------------------------------------------------------------------------


def composed(root, model="Mine", probes=True):
    """Three debates of three agents and two rounds, and four probes of one agent, counted by hand below."""
    said = {"q1": ["AAB", "BBA", "BBB"], "q2": ["BBA", "ABA", "AAA"], "q3": ["AAA", "AAA", "ABB"]}
    lines = [
        (question, number, agent, answer, "A")
        for question, rounds in said.items()
        for number, answers in enumerate(rounds)
        for agent, answer in enumerate(answers)
    ]
    path = root.parent / "debates.csv"
    pd.DataFrame(lines, columns=["question", "round", "agent", "answer", "gold"]).to_csv(path, index=False)
    arms = [("weak", False, "A"), ("strong", False, "B"), ("weak", True, "B"), ("strong", True, None)]
    record = {
        "question_id": "q1",
        "correct_label": "A",
        "condition": "default",
        "agent_idx": 0,
        "initial_answer": "A",
        "probe_results": [
            {"strength": strength, "social": social, "post_answer": post} for strength, social, post in arms
        ],
    }
    other = record | {
        "agent_idx": 1,
        "initial_answer": "B",
        "probe_results": [{"strength": "weak", "social": False, "post_answer": "A"}],
    }
    asked = root.parent / "probes.jsonl"
    asked.write_text(json.dumps(record) + "\n" + json.dumps(other) + "\n")
    rows.add(path, id="mine", model=model, family="Mine", labels="AB", probes=asked if probes else None)
    return cards.card("mine")


def test_an_added_row_by_hand(root):
    one = composed(root)
    told, ended = one.model_card.selection_time_fingerprint, one.model_card.debate_outcome_accounting
    # q1 collapses in Round 1, q2 is corrected, q3 collapses in Round 2
    assert (ended.n_debates, ended.initial_majority_accuracy.k, ended.final_majority_accuracy.k) == (3, 2, 1)
    assert (ended.conditional_collapse_rate.k, ended.conditional_collapse_rate.n) == (2, 2)
    assert (ended.conditional_correction_rate.k, ended.conditional_correction_rate.n) == (1, 1)
    assert ended.collapse_onset_distribution == {"1": 1, "2": 1}
    gates = {
        gate.gate_name: (gate.collapses_prevented, gate.corrections_lost)
        for gate in one.model_card.signed_utility
    }
    # Round 0 is unanimous in q3 alone; Round 1 changes the majority of q1 and q2; in q3 it moves no agent
    assert gates == {
        "always_freeze": (2, 1),
        "round1_majority_change": (1, 1),
        "round1_any_flip": (1, 1),
        "disagreement": (1, 1),
    }
    # five probes: A-A, A-B, A-B, A-none, B-A
    assert (told.alpha_tot.arms[0].k, told.alpha_tot.arms[0].n) == (3, 5)
    assert (told.alpha_adv.k, told.alpha_adv.n, told.alpha_cor.k, told.alpha_cor.n) == (1, 2, 1, 1)
    assert (
        told.n_probe_rows,
        told.n_probe_completions,
        told.parser_none_rate.k,
        told.parser_none_rate.n,
    ) == (2, 5, 1, 5)
    # social 1/2, solo 2/3; strong 1/2, weak 2/3
    assert (
        told.social_argument_ratio.social
        == pytest.approx(1 / 2 - 2 / 3)
        == told.social_argument_ratio.argument
    )
    assert told.social_argument_ratio.ratio == pytest.approx(-1 / 2, abs=1e-5)
    assert (one.kind, one.synthetic, one.model_card.identity.serving_parameters) == (
        "added",
        False,
        {"n_agents": 3, "n_rounds": 2},
    )
    assert [source.name for source in one.sources] == ["debates.csv", "probes.jsonl"]
    assert one.probe_jsonl_minimum["probe_results"] == one.debate_jsonl_minimum["round_traces"] == "open"
    assert cards.validate(plain(one)).empty


def test_a_row_without_probes_has_no_fingerprint_and_says_so(root):
    one = composed(root, probes=False)
    told = one.model_card.selection_time_fingerprint
    assert all(getattr(told, name) is None for name in schemas.Fingerprint.model_fields)
    assert {
        one.absent[f"selection_time_fingerprint.{name}"] for name in schemas.Fingerprint.model_fields
    } == {cards_rows.NO_PROBES}
    assert set(one.probe_jsonl_minimum.values()) == {"omitted"}


def test_a_matrix_row_has_no_answers_of_agents(root):
    lines = pd.read_csv(DATA / "debates.csv").query("model == 'vllm/qwen3-8b'").assign(model="m")
    path = root.parent / "matrix.csv"
    lines.to_csv(path, index=False)
    rows.add(path, id="again", model="Again", family="Mine")
    one, paper = cards.card("again", tie="expected", missing="drop"), cards.card("qwen3-8b")
    assert (one.choices.tie, one.choices.missing) == ("alphabetic", "initially_wrong")
    for name in ("conditional_collapse_rate", "conditional_correction_rate", "collapse_onset_distribution"):
        assert getattr(one.model_card.debate_outcome_accounting, name) == getattr(
            paper.model_card.debate_outcome_accounting, name
        )
    assert one.model_card.question_pool.question_pool_id == paper.model_card.question_pool.question_pool_id
    assert (
        set(one.debate_jsonl_minimum.values()) == {"omitted"}
        and one.r1_feature_jsonl_minimum["r1_majority_changed"] == "open"
    )
    assert "answers of single agents" in one.model_card.release.known_missing_artifacts


def test_what_a_row_was_added_with_is_taken_up(root):
    composed(root)
    path = root / "rows" / "mine" / "row.json"
    told = json.loads(path.read_text()) | {"benchmark": "My benchmark", "backend": "vllm"}
    path.write_text(json.dumps(told))
    one = cards.card("mine")
    assert (one.model_card.question_pool.benchmark, one.model_card.identity.backend) == (
        "My benchmark",
        "vllm",
    )
    assert "question_pool.benchmark" not in one.absent and one.tiers["question_pool.benchmark"] == "open"


MARKUP = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def test_markup_in_a_models_name_stays_text(root):
    one = composed(root, model=MARKUP)
    shown = book.column(
        book.show(tables_cards.card(one), name="card", caption="Card."),
        book.show(tables_cards.overview(cards.summary([one])), name="cards", caption="Cards."),
        tables_cards.download(cards.to_json(one), f'{MARKUP}".json', MARKUP),
        tables_cards.downloads([one]),
    )._repr_html_()
    visible = re.sub(r"base64,[A-Za-z0-9+/=]+", "", shown)
    assert "<script" not in visible and "<img" not in visible and html.escape(MARKUP) in visible
    assert not re.search(r'download="[^"]*<', visible)
    packed = re.findall(r"data:application/json;base64,([A-Za-z0-9+/=]+)", shown)
    assert [json.loads(base64.b64decode(text)) for text in packed] == [plain(one), [plain(one)], plain(one)]


# --- words --------------------------------------------------------------------------------------------------


def test_a_card_in_words_names_every_field_and_reason(made):
    for one in made.values():
        shown = tables_cards.card(one)
        gates = len(one.model_card.signed_utility) + ("signed_utility" in one.absent)
        assert len(shown) == len(schemas.fields_of_card()) - len(schemas.Gate.model_fields) + gates
        for path, reason in one.absent.items():
            assert f"– {reason}" in set(shown["Value"]), path
        assert set(shown["Tier"]) <= set(schemas.TIERS)
    shown = tables_cards.card(made["qwen3-8b"]).set_index("Field")["Value"]
    assert shown["conditional collapse rate"] == "5.4% [1.8, 14.6] (3/56 debates right at first)"
    assert shown["collapse onset distribution"] == "Round 1: 3; Round 2: 0; Round 3: 0"
    assert (
        shown["always_freeze"]
        == "prevented 3, lost 71, net −68, accuracy −34.00 points; judged on qwen3-8b"
    )


def test_an_unknown_field_of_a_card_is_shown(made):
    told = plain(made["qwen3-8b"])
    told["model_card"]["identity"]["quantisation"] = "awq"
    shown = tables_cards.card(schemas.ReuseCard.model_validate(told)).set_index("Field")
    assert shown.loc["quantisation", ["Value", "Tier"]].tolist() == ["awq", "not stated"]


def test_a_rate_over_nothing_is_a_dash():
    empty = schemas.Rate(rate=None, k=0, n=0, low=None, high=None, of="debates right at first")
    assert tables_cards._share(empty) == "– (0/0 debates right at first)"


def test_every_field_is_counted_in_one_tier():
    found = tables_cards.all_fields()
    assert tables_cards.tiers(found)["Fields of the schemas"].astype(int).sum() == len(found)
    assert set(found["schema"]) == set(schemas.SCHEMAS)


# --- files of cards -----------------------------------------------------------------------------------------


def test_a_card_is_written_whole_or_not_at_all(tmp_path, made, monkeypatch):
    one, path = made["qwen3-8b"], tmp_path / "card.json"
    cards.write(one, path)
    assert json.loads(path.read_text(encoding="utf-8")) == plain(one) and path.stat().st_mode & 0o777 == 0o644
    before = path.read_bytes()
    monkeypatch.setattr(cards.os, "replace", lambda *names: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        cards.write(made["phi-4-mini"], path)
    assert path.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["card.json"]


@pytest.mark.parametrize(
    "place, message",
    [(".", "is a folder; expected the name of a file"), ("none/card.json", "there is no folder")],
)
def test_a_card_is_not_written_where_it_cannot_be(tmp_path, made, place, message):
    with pytest.raises(DataError, match=message):
        cards.write(made["qwen3-8b"], tmp_path / place)
    assert list(tmp_path.iterdir()) == []


# --- command line -------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(cli.app, ["card", *map(str, arguments)])


def test_a_card_for_people_names_groups_tiers_and_reasons():
    done = run("llama-3.1-8b")
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if not line.startswith(" ")] == [
        name.replace("_", " ") for name in schemas.GROUPS
    ]
    assert re.search(
        r"conditional collapse rate +open +8\.5% \[6\.9, 10\.3\] \(86/1,016 debates right at first\)",
        done.stdout,
    )
    assert re.search(r"model version or snapshot +omitted +– no version", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 140


def test_a_card_for_machines_is_the_written_one(tmp_path):
    path = tmp_path / "card.json"
    printed, written = run("phi-4-mini", "--json"), run("phi-4-mini", "--out", path)
    assert printed.exit_code == written.exit_code == 0
    assert printed.stdout == path.read_text() == cards.to_json(cards.card("phi-4-mini"))
    assert written.stdout == f"Card of phi-4-mini written to {path}.\n"
    checked = run("--validate", path)
    assert (checked.exit_code, checked.stdout) == (0, f"{path}: as expected.\n")


def test_the_list_names_every_row():
    done = run("--list", "--json")
    assert done.exit_code == 0 and [line["row"] for line in json.loads(done.stdout)] == cards.ids()


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_a_schema_is_printed_as_stored(name):
    done = run("--schema", name)
    assert done.exit_code == 0 and json.loads(done.stdout) == json.loads(
        (DATA / "schemas" / f"{name}.schema.json").read_text()
    )


def test_problems_are_printed_and_end_with_status_1(tmp_path):
    path = tmp_path / "card.json"
    path.write_text(json.dumps(plain(cards.card("qwen3-8b")) | {"synthetic": 0}))
    done, machine = run("--validate", path), run("--validate", path, "--json")
    assert done.exit_code == machine.exit_code == 1
    assert re.search(r"synthetic +0 +a valid boolean +1$", done.stdout, re.MULTILINE)
    assert json.loads(machine.stdout) == [
        {
            "file": str(path),
            "line": 1,
            "field": "synthetic",
            "value": "0",
            "expected": "a valid boolean",
            "lines": 1,
        }
    ]
    against = run("--validate", path, "--schema", "probe_record")
    assert against.exit_code == 1 and "probe_results" in against.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["phi-4-mini", "--list"],
        ["--list", "--schema", "list"],
        ["--out", "x.json"],
        ["--list", "--out", "x.json"],
        ["--schema", "nope"],
        ["--validate", "x", "--schema", "list"],
        ["phi-4-mini", "--validate", "x"],
        ["--no-such"],
    ],
)
def test_wrong_use_ends_with_status_2(arguments):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nope"], "row 'nope': no such row; expected one of sonnet-4.5"),
        (["phi-4-mini", "--out", "."], ".: is a folder"),
        (["--validate", "."], ".: is a directory"),
        (["--validate", "nope.json"], "nope.json: there is no such file"),
    ],
)
def test_data_problems_are_those_that_end_with_status_1(arguments, message):
    done = run(*arguments)
    assert isinstance(done.exception, (DataError, OSError)) and str(done.exception).startswith(message)


def test_a_data_problem_in_a_process_is_one_line_and_status_1():
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "card", "--validate", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "error: .: is a directory; expected one file\n",
    )


# --- the pages ----------------------------------------------------------------------------------------------

SPANS = re.compile(r"`([a-z_]+)\.([A-Za-z_0-9]+)`")


@pytest.mark.parametrize("page", ["glossary", "protocol", "datasheet"])
def test_functions_and_columns_that_a_page_names_are_there(page):
    text = (ROOT / "book" / f"{page}.md").read_text()
    columns = set(map(tuple, data.dictionary()[["table", "column"]].values.tolist()))
    tables = {table for table, _ in columns}
    for first, second in SPANS.findall(text):
        if first in tables:
            assert (first, second) in columns, f"{page}: {first}.{second}"
        elif (ROOT / "analysis" / f"{first}.py").is_file():
            module = __import__(f"analysis.{first}", fromlist=["x"])
            assert hasattr(module, second), f"{page}: {first}.{second}"
        else:
            assert (first, second) == ("croissant", "json"), f"{page}: {first}.{second}"
    assert page != "glossary" or len(SPANS.findall(text)) > 50


def test_the_page_offers_every_card_as_a_file_that_is_as_expected():
    cells = nbformat.read(ROOT / "notebooks" / "cards.ipynb", as_version=4).cells
    markup = "".join(
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in cells
        for output in cell.get("outputs", [])
    )
    files = {
        html.unescape(name): json.loads(base64.b64decode(text))
        for name, text in re.findall(
            r'download="([^"]+)" href="data:application/json;base64,([A-Za-z0-9+/=]+)"', markup
        )
    }
    assert set(files) == {"reuse-cards.json", *[f"{name}.card.json" for name in PAPER.index]}
    assert [one["row_id"] for one in files["reuse-cards.json"]] == PAPER.index.tolist()
    for one in files["reuse-cards.json"]:
        assert files[f"{one['row_id']}.card.json"] == one and cards.validate(one).empty


def test_the_package_is_the_projects():
    assert Path(analysis.__file__).parent == ROOT / "analysis"
