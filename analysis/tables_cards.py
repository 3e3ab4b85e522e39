"""Reader-facing tables of reuse cards, their fields and their tiers; and cards as files to download."""

import base64
import html
import json

import pandas as pd

from analysis import schemas, stats
from analysis.book import Shown, count, number, percent, rate

RECORDS = {
    "probe_jsonl_minimum": "Probe record",
    "debate_jsonl_minimum": "Debate record",
    "r1_feature_jsonl_minimum": "Feature line",
}
_TIERS = {
    "open": (
        (
            "counts, rates and labels; features of single debates; schemas and code; the wording of solo"
            " probes up to the strong ones"
        ),
        "data CC BY 4.0; code of this book MIT",
        "yes",
    ),
    "gated": (
        "transcripts, and the wording of probes that argue convincingly for a wrong answer",
        (
            "on request to the paper's authors, for research: who asks, what for, no passing on, no"
            " fine-tuning; questions under their benchmark's licence"
        ),
        "no",
    ),
    "omitted": (
        "what was not recorded, or is in none of the released tables that this book holds",
        "none",
        "no",
    ),
}


def words(name):
    """Field name as words.

    Examples
    --------
    >>> words("conditional_collapse_rate")
    'conditional collapse rate'
    """
    return name.replace("_", " ")


# --- a card -------------------------------------------------------------------------------------------------


def card(one):
    """A card in words, one line a field and one a gate.

    Parameters
    ----------
    one : schemas.ReuseCard

    Returns
    -------
    DataFrame
        `Group, Field, Value, Tier`; what is null says why.

    Examples
    --------
    >>> from analysis import cards
    >>> shown = card(cards.card("llama-3.1-8b")).set_index("Field")["Value"]
    >>> shown["conditional collapse rate"]
    '8.5% [6.9, 10.3] (86/1,016 debates right at first)'
    """
    lines = []
    for group, model in schemas.GROUPS.items():
        held = getattr(one.model_card, group)
        if group == "signed_utility":
            lines += [
                (words(group), gate.gate_name, _gate(gate), one.tiers["signed_utility.net_utility"])
                for gate in held
            ]
            if group in one.absent:
                lines.append((words(group), "other gates", f"– {one.absent[group]}", "omitted"))
            continue
        for name in [*model.model_fields, *(held.model_extra or {})]:
            value, path = getattr(held, name), f"{group}.{name}"
            text = f"– {one.absent[path]}" if value is None and path in one.absent else _value(value)
            lines.append((words(group), words(name), text, one.tiers.get(path, "not stated")))
    return pd.DataFrame(lines, columns=["Group", "Field", "Value", "Tier"])


def _value(value):
    if isinstance(value, schemas.FlipRate):
        arms = " and ".join(_share(arm) for arm in value.arms)
        return (
            f"{arms}; {value.definition}"
            if len(value.arms) == 1
            else f"{percent(value.rate)}, mean of {arms}; {value.definition}"
        )
    if isinstance(value, schemas.Rate):
        return _share(value)
    if isinstance(value, schemas.Contrast):
        return (
            f"{number(value.ratio)} (social {number(value.social)}, argument {number(value.argument)});"
            f" {value.definition}"
        )
    if isinstance(value, dict):
        named = {f"Round {name}" if name.isdigit() else words(name): item for name, item in value.items()}
        return "; ".join(f"{name}: {_value(item)}" for name, item in named.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    return "–" if value is None else str(value)


def _share(value):
    if None in (value.rate, value.low, value.high):
        return f"– ({count(value.k)}/{count(value.n)} {value.of})"
    return f"{rate(value.k, value.n, value.low, value.high)[:-1]} {value.of})"


def _gate(gate):
    weights = "" if gate.w_coll == gate.w_corr == 1 else f"; weights {gate.w_coll:g} to {gate.w_corr:g}"
    return (
        f"prevented {count(gate.collapses_prevented)}, lost {count(gate.corrections_lost)}, net"
        f" {number(gate.net_utility, 0 if gate.net_utility.is_integer() else 2)}, accuracy"
        f" {f'{100 * gate.accuracy_delta:+.2f}'.replace('-', '−')} points{weights}; judged on"
        f" {gate.validation_cohort_id}"
    )


def _rates(k, n, interval):
    found = stats.proportion(k, n, interval=interval)
    return [rate(*line) for line in found[["k", "n", "low", "high"]].itertuples(index=False)]


def overview(told, *, interval="wilson"):
    """Cards side by side.

    Parameters
    ----------
    told : DataFrame
        `cards.summary`.
    interval : {"wilson", "jeffreys"}
        95% interval of the rates.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import cards
    >>> overview(cards.summary([cards.card("sonnet-4.5")]))["Filled in"].item()
    '29 of 37'
    """
    return pd.DataFrame(
        {
            "Row": [
                f"{row}{', made up' if made_up else ''}{', fails quality control' if checked == 'fails' else ''}"
                f"{' (added)' if kind == 'added' else ''}"
                for row, kind, made_up, checked in zip(
                    told["row"], told["kind"], told["synthetic"], told["quality_control"]
                )
            ],
            "Debates": told["n"].map(count),
            "Flip rate": told["alpha_tot"].astype(float).map(number),
            "Collapses / right at first": _rates(told["collapse"], told["init_correct"], interval),
            "Corrections / wrong at first": _rates(told["correction"], told["init_wrong"], interval),
            "Onset in Round 1, 2, …": told["onsets"].fillna("–"),
            "Filled in": [f"{n - null} of {n}" for n, null in zip(told["n_fields"], told["n_null"])],
        }
    )


# --- fields and tiers ---------------------------------------------------------------------------------------


def surface():
    """The parts of an audited row: what each says, its fields, and how many of them each tier has.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> surface().iloc[0, :2].tolist()
    ['card: identity', '5 open']
    """
    parts = [(f"card: {words(group)}", model) for group, model in schemas.GROUPS.items()]
    parts += [(RECORDS[kind].lower(), model) for kind, model in schemas.MINIMUM.items()]
    lines = []
    for name, model in parts:
        tiers = pd.Series(
            [field.json_schema_extra["tier"] for field in model.model_fields.values()]
        ).value_counts()
        lines.append(
            {
                "Group": name,
                "Tier": ", ".join(f"{tiers[tier]} {tier}" for tier in schemas.TIERS if tier in tiers),
                "What it says": model.__doc__.strip().splitlines()[0],
                "Fields": ", ".join(words(field) for field in model.model_fields),
            }
        )
    return pd.DataFrame(lines)


def all_fields():
    """Every field of every schema, parts within parts included.

    Returns
    -------
    DataFrame
        `schema, part, field, meaning, type, unit, tier, required`.

    Examples
    --------
    >>> found = all_fields().query("schema == 'feature_line'")
    >>> len(found), (found["required"] == "yes").sum()
    (23, np.int64(13))
    """
    lines = []
    for name in schemas.SCHEMAS:
        whole = schemas.schema(name)
        for part, described in [("", whole), *whole.get("$defs", {}).items()]:
            for field, told in described.get("properties", {}).items():
                lines.append(
                    (
                        name,
                        part,
                        field,
                        told.get("description", ""),
                        _type(told),
                        told.get("unit", ""),
                        told.get("tier", ""),
                        "yes" if field in described.get("required", ()) else "no",
                    )
                )
    return pd.DataFrame(
        lines, columns=["schema", "part", "field", "meaning", "type", "unit", "tier", "required"]
    )


def _type(told):
    """Type of a property in a few words."""
    if "anyOf" in told:
        return " or ".join(dict.fromkeys(_type(branch) for branch in told["anyOf"]))
    if "$ref" in told:
        return told["$ref"].rpartition("/")[2]
    if "const" in told:
        return f"'{told['const']}'"
    if "enum" in told:
        return ", ".join(f"'{value}'" for value in told["enum"])
    if told.get("type") == "array":
        return f"list of {_type(told.get('items', {}))}"
    return {"string": "text", "integer": "whole number", "boolean": "true or false", None: "anything"}.get(
        told.get("type"), told.get("type")
    )


def fields(found):
    """`all_fields` in words.

    Parameters
    ----------
    found : DataFrame

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> fields(all_fields()).columns.tolist()
    ['Schema', 'Part', 'Field', 'Meaning', 'Type', 'Unit', 'Tier', 'Required']
    """
    shown = found.rename(columns=str.capitalize)
    return shown.assign(Schema=shown["Schema"].map(words))


def tiers(found):
    """The release tiers: what is in each, on which terms, and how many fields of the schemas.

    Parameters
    ----------
    found : DataFrame
        `all_fields`.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> tiers(all_fields())["Tier"].tolist()
    ['open', 'gated', 'omitted']
    """
    counts = found["tier"].value_counts()
    return pd.DataFrame(
        {
            "Tier": list(_TIERS),
            "Fields of the schemas": [count(counts.get(tier, 0)) for tier in _TIERS],
            "What is in it": [what for what, _, _ in _TIERS.values()],
            "Licence or access": [terms for _, terms, _ in _TIERS.values()],
            "In this book": [here for _, _, here in _TIERS.values()],
        }
    )


def asked_for():
    """Names that the paper's list of names asks for, by group of the card and by record.

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> sum(map(len, asked_for().values()))
    82
    """
    return {name: list(model.model_fields) for name, model in (schemas.GROUPS | schemas.MINIMUM).items()}


def lacking():
    """What the card asks of records and no released record has.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> lacking()["Lacking"].iloc[0]
    'schema_version, parser_flags, release_tier'
    """
    lines = []
    for kind, model in schemas.MINIMUM.items():
        gone = [
            name for name, field in model.model_fields.items() if field.json_schema_extra["tier"] == "omitted"
        ]
        lines.append((RECORDS[kind], count(len(model.model_fields)), count(len(gone)), ", ".join(gone)))
    return pd.DataFrame(lines, columns=["Record", "Fields asked for", "In no released record", "Lacking"])


def problems(found):
    """What `cards.validate` found, in words.

    Parameters
    ----------
    found : DataFrame

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from analysis import cards
    >>> problems(cards.validate({"probe_results": [], "initial_answer": "A"}))["Field"].tolist()
    ['question_id', 'probe_results']
    """
    return pd.DataFrame(
        {
            "Field": found["field"],
            "Found": found["value"],
            "Expected": found["expected"],
            "First line": found["line"].map(count),
            "Lines": found["lines"].map(count),
        }
    )


# --- downloads ----------------------------------------------------------------------------------------------


def download(text, name, label):
    """Link that holds a JSON text, so that it works from any server and from none.

    Parameters
    ----------
    text : str
    name : str
        File name of the download.
    label : str
        Words of the link.

    Returns
    -------
    analysis.book.Shown

    Examples
    --------
    >>> print(download("{}", "card.json", "<Card>")._repr_html_().replace(" href", "\\n href"))
    <p class="ledger-download"><a download="card.json"
     href="data:application/json;base64,e30=">&lt;Card&gt;</a></p>
    """
    return _links([(text, name, label)])


def downloads(made):
    """Links to the cards, one each and one with all of them as a list.

    Parameters
    ----------
    made : list of schemas.ReuseCard

    Returns
    -------
    analysis.book.Shown

    Examples
    --------
    >>> downloads([])
    No cards.
    """
    if not made:
        return Shown('<p class="ledger-note">No cards.</p>', "No cards.")
    each = [(one.model_dump_json(indent=2) + "\n", f"{one.row_id}.card.json", one.row_id) for one in made]
    whole = (
        json.dumps(
            [one.model_dump(mode="json") for one in made],
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )
    return _links([(whole, "reuse-cards.json", "All cards in one file (JSON)"), *each])


def _links(files):
    links = [
        f'<a download="{html.escape(name)}"'
        f' href="data:application/json;base64,{base64.b64encode(text.encode()).decode()}">'
        f"{html.escape(label)}</a>"
        for text, name, label in files
    ]
    return Shown(
        f'<p class="ledger-download">{" · ".join(links)}</p>', ", ".join(name for _, name, _ in files)
    )
