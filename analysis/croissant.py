"""Description of data/ for machines: Croissant metadata with the responsible-AI fields, and the JSON Schemas.

Both are made from what says it already: the data dictionary, SOURCES.md, the models in `analysis.schemas`,
and the files themselves. `python -m analysis book metadata` writes them; a test fails while the stored files
are not what these functions give.

References: Croissant format 1.0 and its RAI extension, mlcommons.org/croissant.
"""

import hashlib
import json
import re
from datetime import UTC, datetime

import pandas as pd

from analysis import cards, data, schemas
from analysis.errors import DataError

TYPES = {
    "str": "sc:Text",
    "int64": "sc:Integer",
    "Int64": "sc:Integer",
    "float64": "sc:Float",
    "bool": "sc:Boolean",
    "boolean": "sc:Boolean",
}
BESIDE = ("dictionary.csv", "SOURCES.md")  # described as files only

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_ABOUT = {
    "name": "debate-ledger-tables",
    "description": (
        "Tables behind an audit of 'Measuring Collapse and Correction in Homogeneous-Panel LLM Debate':"
        " debates of language models on multiple-choice questions as a matrix of labels and agreement, counts"
        " of model rows, probes, held-out models and pilots, and the paper's printed numbers. No question"
        " text, no model text and no wording of a probe is included."
    ),
    "url": "https://github.com/LiXin97/DebateLedger",
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "citeAs": (
        "Liu, Mengbing and Yuen, Chau and others: Measuring Collapse and Correction in Homogeneous-Panel LLM"
        " Debate. arXiv:2609.35279, 2026."
    ),
    "creator": [{"@type": "Person", "name": "Mengbing Liu"}, {"@type": "Person", "name": "Chau Yuen"}],
    "datePublished": "2026",
    "version": "1.0.0",  # of the upstream release, alpha-tot-v1.0
    "isAccessibleForFree": True,
    "isLiveDataset": False,
    "inLanguage": "en",
    "keywords": ["multi-agent debate", "large language models", "evaluation", "MMLU-Pro", "sycophancy"],
}

_RAI = {
    "rai:dataCollection": (
        "Panels of copies of one model answered benchmark questions, first independently and then in rounds"
        " in which every agent saw all answers. Before that, single agents were asked again under eight"
        " counterarguments. The paper's authors ran all of it; this data set takes their released derived"
        " files and adds no run of its own."
    ),
    "rai:dataCollectionType": ["Experiments", "Secondary Data Analysis"],
    "rai:dataCollectionRawData": (
        "Replies of language models to questions of MMLU-Pro and other public benchmarks. The replies are not"
        " part of this data set: in the upstream release full transcripts and the wording of convincing wrong"
        " arguments are given out on request only."
    ),
    "rai:dataCollectionMissingData": (
        "Single debates are there for the model rows that have a trace_source; for the others there are"
        " counts. Answers that no parser could read are missing answers and counted as such where the release"
        " tells them."
    ),
    "rai:dataPreprocessingProtocol": [
        "Labels were read out of replies by fixed rules, without a model as judge.",
        "The majority of a round is the most frequent answer; a tie goes to the alphabetically first.",
        (
            "Files were selected, joined and renamed as SOURCES.md says for each table; rates with a known"
            " denominator were turned back into counts."
        ),
    ],
    "rai:dataImputationProtocol": (
        "Nothing is imputed here. One table, partial_lanes, holds values that the paper's authors imputed,"
        " beside the realised ones."
    ),
    "rai:dataAnnotationProtocol": (
        "No human annotation. Right answers are those of the benchmarks; cells and onsets follow from labels"
        " by rule."
    ),
    "rai:machineAnnotationTools": ["rule-based answer parser (see the page 'The protocol')"],
    "rai:dataUseCases": [
        "Recomputing the paper's numbers.",
        "Replaying a rule that stops debates, on debates that were run.",
        "Setting a new model-scaffold row beside the paper's under the same denominators.",
    ],
    "rai:dataLimitations": [
        (
            "Homogeneous panels of three agents on multiple-choice questions; not for judge-debater systems,"
            " tools or free text."
        ),
        "Few rows in few families, several rows in one of them: rank tests over families are small.",
        "Closed models change behind their names; a row describes the service at the time of its run.",
        "Rows with three and with four rounds stand in one table; endpoint_round says which.",
    ],
    "rai:dataBiases": [
        "Questions are English and of one benchmark for the main rows.",
        "Probe questions were chosen for each model among those on which it changes its answers most.",
        "Three open-weight rows have most of the debates and dominate pooled counts.",
    ],
    "rai:dataSocialImpact": (
        "Flip rates say which models give up right answers under pressure and could be read as a guide to"
        " misleading them. They are to be read beside the rate of corrections: a model that is hard to flip"
        " may only be rigid."
    ),
    "rai:personalSensitiveInformation": [
        "None: public benchmark questions, named by id, and labels given by models."
    ],
    "rai:dataReleaseMaintenancePlan": (
        "Tables change when a mistake is found or the upstream authors release more; SOURCES.md names the"
        " upstream commit, this file holds checksums. Rows that others add stay in their own copies."
    ),
}


def files():
    """All generated descriptions, by their place under data/.

    Returns
    -------
    dict of str to str
        Path to text: croissant.json and schemas/*.schema.json.

    Examples
    --------
    >>> sorted(files())[0]
    'croissant.json'
    """
    made = {f"schemas/{name}.schema.json": _json(schemas.schema(name)) for name in schemas.SCHEMAS}
    return made | {schemas.METADATA: _json(metadata())}


def write():
    """Write the generated descriptions into data/.

    Returns
    -------
    list of str
        Those that changed.

    Examples
    --------
    >>> write()  # doctest: +SKIP
    ['croissant.json']
    """
    changed = []
    for name, text in files().items():
        path = data.root() / name
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            cards.put(text, path)
            changed.append(name)
    return changed


def metadata():
    """Croissant description of the tables.

    Returns
    -------
    dict
        JSON-LD with a file object (checksum, where it comes from) and a record set (columns) for each table.

    Raises
    ------
    DataError
        SOURCES.md says nothing of a table, or a column has a type that Croissant has no name for.

    Examples
    --------
    >>> found = metadata()
    >>> found["conformsTo"], len(found["recordSet"]) == data.dictionary()["table"].nunique()
    (['http://mlcommons.org/croissant/1.0', 'http://mlcommons.org/croissant/RAI/1.0'], True)
    """
    lines, origin = data.dictionary(), _origins()
    tables = list(dict.fromkeys(lines["table"]))
    unknown = [name for name in tables if name not in origin]
    if unknown:
        raise DataError(
            f"SOURCES.md: no line of its table for {', '.join(f'{name}.csv' for name in unknown)}; expected"
            " where each comes from"
        )
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        **_ABOUT,
        "rai:dataCollectionTimeframe": _timeframe(),
        **_RAI,
        "distribution": (
            [_file(f"{name}.csv", origin[name]) for name in tables]
            + [_file(name, BESIDE_TOLD[name]) for name in BESIDE]
        ),
        "recordSet": [_records(name, part) for name, part in lines.groupby("table", sort=False)],
    }


BESIDE_TOLD = {
    "dictionary.csv": "Data dictionary: type, range, unit and meaning of every column.",
    "SOURCES.md": "Where each table comes from and under which licence.",
}


def _json(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _origins():
    """Second and third cell of each line of the table in SOURCES.md, by table."""
    text = (data.root() / "SOURCES.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `([\w/-]+)\.csv` \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {name: f"From {source.replace('`', '')}: {done.replace('`', '')}." for name, source, done in found}


def _file(name, described):
    path = data.root() / name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "description": described,
        "contentUrl": name,
        "encodingFormat": "text/csv" if name.endswith(".csv") else "text/markdown",
        "contentSize": f"{path.stat().st_size} B",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _records(name, columns):
    fields = []
    for line in columns.itertuples():
        if line.dtype not in TYPES:
            raise DataError(
                f"dictionary.csv, table {name!r}, column {line.column!r}, field 'dtype': {line.dtype!r};"
                f" expected one of {', '.join(TYPES)}"
            )
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{name}/{line.column}",
                "name": line.column,
                "dataType": TYPES[line.dtype],
                "description": line.meaning + (f"; unit: {line.unit}" if line.unit else ""),
                "source": {"fileObject": {"@id": f"{name}.csv"}, "extract": {"column": line.column}},
            }
        )
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _timeframe():
    """First and last day that the released provenance entries tell."""
    told = pd.concat([data.table("provenance")[end] for end in ("first", "last")]).dropna()
    days = [
        datetime.fromtimestamp(float(t), UTC) if re.fullmatch(r"[\d.]+", t) else datetime.fromisoformat(t)
        for t in told
    ]
    days = sorted(day.date().isoformat() for day in days)
    return [days[0], days[-1]]
