"""Command line: `python -m analysis COMMAND`, also installed as `debate-ledger`.

Exit status: 0 done, 1 the data are not usable (the message says where and why), 2 the command was used wrongly.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.collect.cli import app as collect_app

# Other modules of the package are imported where they are used: `--help` answers at once and `book execute` starts without statistics.

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=(
    "Transition ledger, signed replay and pre-debate screen for multi-agent debate. "
    "Every command takes --json for machines. Exit status: 0 done, 1 data problem, 2 usage."
))
row_app = typer.Typer(no_args_is_help=True, help="Add, check, list and remove rows under data/rows.")
book_app = typer.Typer(no_args_is_help=True, help="Steps of the book's build (called by make).")
app.add_typer(row_app, name="row")
app.add_typer(collect_app, name="collect")
app.add_typer(book_app, name="book")


# Spelled out so that --help needs no imports; a test holds them to the modules' own tuples.
Ties = Literal["alphabetic", "undecided", "expected"]
MissingRules = Literal["initially_wrong", "drop", "undecided"]
Intervals = Literal["wilson", "jeffreys"]
Policies = Literal["reference", "strict", "anchored"]
MultilevelFits = Literal["reported", "all-models"]


def _distinct(labels):
    if not (labels.isascii() and labels.isalnum() and len(set(labels)) == len(labels)):
        raise typer.BadParameter(f"{labels!r}: expected distinct letters or digits, such as ABCD")
    return labels


def _finite(weight):
    if weight - weight != 0:
        raise typer.BadParameter(f"{weight}: expected a finite number")
    return weight


Paths = Annotated[list[Path], typer.Argument(help="Files of debates: long CSV/JSONL/Parquet, open-tier JSON-lines, feature matrix or chat JSON, also .gz; or Inspect logs.")]
Arm = Annotated[str | None, typer.Option("--arm", help="Arm to read from Inspect logs; peer, else the only one, unless given.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tie = Annotated[Ties, typer.Option("--tie", help="What a tied vote counts as.")]
Missing = Annotated[MissingRules, typer.Option("--missing", help="What a vote without any answer counts as.")]
Interval = Annotated[Intervals, typer.Option("--interval", help="95% interval of rates.")]
Policy = Annotated[Policies, typer.Option("--policy", help="Coder for replies that are stored as text only.")]
Labels = Annotated[str, typer.Option("--labels", help="Valid answer labels.", callback=_distinct)]


def main():
    """Run the command line and turn data problems into exit status 1."""
    from analysis.errors import DataError

    try:
        app()
    except (DataError, OSError, UnicodeDecodeError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)


@contextlib.contextmanager
def _options():
    """Turn an option that the data cannot follow, such as expected ties of a feature matrix, into a usage error."""
    from analysis.errors import DataError

    try:
        yield
    except (DataError, UnicodeDecodeError):
        raise
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None


def _emit(frame, as_json):
    """Print a table for people or a list of objects for machines (missing is null)."""
    if not as_json:
        print(frame.to_string(index=False, na_rep="-", float_format=lambda v: f"{v:.4f}"))
        return
    print(json.dumps([_plain(record) for record in frame.to_dict("records")], indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value or type(value).__name__ == "NAType":
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def _read_debates(paths, policy, labels, tie, missing, endpoint=None, arm=None):
    from analysis import ledger, rows, traces
    from analysis.errors import DataError

    parts, owner = [], {}
    for path in paths:
        with _options():
            frame = traces.read(path, policy=policy, labels=labels, arm=arm)
        if "answer" in frame:
            frame = traces.validate(frame, labels=labels)
        for row in frame["row"].unique():
            if owner.setdefault(row, path) is not path:
                raise DataError(f"{path}: row {row!r} was read from {owner[row]} already; expected each row in one file")
        with _options():
            parts.append(ledger.debates(frame, tie=tie, missing=missing, endpoint=endpoint))
    return rows.together(parts)


@app.command("code")
def code_command(
    path: Annotated[str, typer.Argument(help="CSV or JSON-lines file with a column 'text', or - for one reply on standard input.")],
    policy: Policy = "reference",
    labels: Labels = "ABCDEFGHIJ",
    numbers: Annotated[bool, typer.Option("--numbers", help="Read numbers instead of labels.")] = False,
    as_json: Json = False,
):
    """Read the final answer out of replies: label (or value) and the rule that fired."""
    from analysis import coder, traces
    from analysis.errors import DataError

    if path == "-":
        texts = [sys.stdin.read()]
    else:
        frame = traces.table(path)
        if "text" not in frame:
            raise DataError(f"{path}: no column 'text'; its columns are {', '.join(map(str, frame.columns))}")
        texts = frame["text"]
    with _options():
        found = coder.code_numbers(texts) if numbers else coder.code_answers(texts, labels=labels, policy=policy)
    _emit(found, as_json)


@app.command("ledger")
def ledger_command(
    paths: Paths,
    policy: Policy = "reference",
    labels: Labels = "ABCDEFGHIJ",
    arm: Arm = None,
    tie: Tie = "alphabetic",
    missing: Missing = "initially_wrong",
    interval: Interval = "wilson",
    endpoint: Annotated[int | None, typer.Option("--endpoint", min=1, help="Round that counts as the last one; each row's last unless given.")] = None,
    as_json: Json = False,
):
    """Count preserved, collapsed, corrected and unrepaired debates, one line a row."""
    from analysis import ledger

    debates = _read_debates(paths, policy, labels, tie, missing, endpoint, arm)
    summary = ledger.summarize(debates, interval=interval)
    onset = ledger.onset(debates).set_index("row").drop(columns="collapse")
    shown = summary[[
        "row", "n", "preserved", "collapse", "correction", "unrepaired", "undefined", "init_correct", "init_wrong", "final_correct",
        "c_cond", "c_cond_low", "c_cond_high", "correction_rate", "correction_rate_low", "correction_rate_high",
    ]].copy()
    if as_json:
        shown["onset"] = [{name.removeprefix("round_"): int(k) for name, k in onset.loc[row].items()} for row in shown["row"]]
    else:
        shown["onset"] = ["/".join(str(int(k)) for k in onset.loc[row]) for row in shown["row"]]
    _emit(shown, as_json)


@app.command("replay")
def replay_command(
    path: Annotated[Path, typer.Argument(help="File of debates, any layout.")],
    gate: Annotated[str | None, typer.Option("--gate", help="Name of a fixed gate; 'list' names them.")] = None,
    actions: Annotated[Path | None, typer.Option("--actions", help="Your own gate: a file with row, question, [replicate,] action (freeze or continue).")] = None,
    w_collapse: Annotated[float, typer.Option("--w-collapse", min=0, callback=_finite, help="Value of a collapse prevented.")] = 1.0,
    w_correction: Annotated[float, typer.Option("--w-correction", min=0, callback=_finite, help="Cost of a correction lost.")] = 1.0,
    policy: Policy = "reference",
    labels: Labels = "ABCDEFGHIJ",
    arm: Arm = None,
    tie: Tie = "alphabetic",
    missing: Missing = "initially_wrong",
    as_json: Json = False,
):
    """Replay a freeze gate on saved debates: collapses prevented, corrections lost, net, break-even ratio."""
    import pandas as pd

    from analysis import replay

    if gate == "list":
        _emit(pd.DataFrame({"gate": list(replay.GATES)}), as_json)
        return
    if (gate is None) == (actions is None):
        raise typer.BadParameter("expected one of --gate NAME and --actions FILE")
    if gate is not None and gate not in replay.GATES:
        raise typer.BadParameter(f"--gate {gate}: expected one of {', '.join(replay.GATES)}")
    debates = _read_debates([path], policy, labels, tie, missing, arm=arm)
    fires = gate if gate is not None else replay.actions(actions, debates)
    options = dict(w_collapse=w_collapse, w_correction=w_correction)
    result = replay.replay(debates, fires, by="row", **options)
    if len(result) > 1:
        pooled = replay.replay(debates, fires, **options)
        pooled.insert(0, "row", "(all)")
        result = pd.concat([result, pooled], ignore_index=True)
    _emit(result, as_json)


@app.command("screen")
def screen_command(
    added: Annotated[list[str] | None, typer.Option("--added", help="Id of an added row to enter as a sensitivity (repeatable).")] = None,
    as_json: Json = False,
):
    """Correlate the probe flip rate with conditional collapse over the paper's rows; added rows only as a sensitivity."""
    from analysis import data, rows, screen

    _emit(screen.with_added(data.model_rows(), rows.summary(added or [])), as_json)


@app.command("claims")
def claims_command(
    verdict: Annotated[Literal["holds", "differs", "aggregate", "gated", "setting", "open"] | None, typer.Option(help="Only claims with this verdict.")] = None,
    page: Annotated[str | None, typer.Option(help="Only claims computed on this page of the book, such as screen.")] = None,
    as_json: Json = False,
):
    """List every printed number of the paper with its recomputed value and verdict."""
    from analysis import claims
    from analysis.errors import choice

    if page is not None:
        with _options():
            choice("page", page, claims.NOTEBOOKS)
    table = claims.verdicts(page=page)
    table = table[table["verdict"] == verdict] if verdict is not None else table
    if as_json:
        _emit(table, True)
        return
    _emit(table[["id", "printed", "computed", "verdict", "notebook"]], False)
    print("\n" + ", ".join(f"{n} {verdict}" for verdict, n in table["verdict"].value_counts().items()))


@app.command("mlm")
def mlm_command(
    only: Annotated[MultilevelFits | None, typer.Option("--fit", help="Fit to sample; both unless given.")] = None,
    draws: Annotated[int, typer.Option("--draws", min=100, help="Kept draws a chain.")] = 5000,
    tune: Annotated[int, typer.Option("--tune", min=100, help="Warm-up draws a chain.")] = 3000,
    chains: Annotated[int, typer.Option("--chains", min=2)] = 4,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1)] = 20260424,
    as_json: Json = False,
):
    """Sample the multilevel model again and store the draws under data/multilevel; takes minutes."""
    from analysis import multilevel

    found = {}
    for name in [only] if only else multilevel.FITS:
        design = multilevel.paper_design(name)
        print(f"{name}: {len(design):,} debates, {chains} chains of {tune:,} + {draws:,} draws", file=sys.stderr)
        found[name] = multilevel.fit(design, draws=draws, tune=tune, chains=chains, seed=seed, progress=True)
        multilevel.save(found[name], name)
    _emit(multilevel.overview(found), as_json)


@app.command("fetch")
def fetch_command(
    revision: Annotated[str | None, typer.Option("--revision", help="Version of the dataset; the paper's unless given.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder to download to; the hub's own cache unless given.")] = None,
    source: Annotated[Path | None, typer.Option("--from", help="Folder of files that are here already: no network.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Store every trace of debates under data/rows.")] = False,
    as_json: Json = False,
):
    """Download the paper's open tier, check it, and count the ledger of every trace."""
    from analysis import fetch

    if source is not None and (revision, cache) != (None, None):
        raise typer.BadParameter("--from: expected without --revision and --cache, which are for downloads")
    if source is None:
        source = fetch.download(revision=revision or fetch.REVISION, cache=cache)
    told = dict(zip(("files", "ledgers", "screens"), fetch.survey(source), strict=True))
    files = told["files"]
    if add:
        told["added"] = fetch.add(source, files)
    if as_json:
        print(json.dumps({"folder": str(source)} | {name: _plain(frame.to_dict("records")) for name, frame in told.items()},
                         indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(f"Folder: {source}")
        for frame in told.values():
            if len(frame):
                print()
                _emit(frame.astype(object).where(frame.notna(), "-"), False)
    faults = files.loc[files["state"].isin(fetch.FAULTS), "file"]
    if len(faults):
        print(f"error: {len(faults)} of {len(files)} files cannot be used: {', '.join(faults)}", file=sys.stderr)
        raise typer.Exit(1)


@app.command("card")
def card_command(
    row: Annotated[str | None, typer.Argument(help="A row of the paper's, or one that you added; --list names them.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write the card to, as JSON.")] = None,
    names: Annotated[bool, typer.Option("--list", help="Name the rows that have a card.")] = False,
    check: Annotated[Path | None, typer.Option("--validate", help="Check a card, or a file of debates, probes or feature lines, field by field.")] = None,
    schema: Annotated[str | None, typer.Option("--schema", help="Print the JSON Schema of this name ('list' names them); with --validate: check against it.")] = None,
    as_json: Json = False,
):
    """Fill in the reuse card of a row, or check one.

    Example: python -m analysis card llama-3.1-8b --out llama.card.json;
    python -m analysis card --validate llama.card.json
    """
    import pandas as pd

    from analysis import schemas

    if sum([row is not None, names, check is not None or schema is not None]) != 1:
        raise typer.BadParameter("expected one of ROW, --list, --validate FILE and --schema NAME")
    if out is not None and row is None:
        raise typer.BadParameter("--out: expected a ROW to write")
    if schema is not None and schema not in ("list", *schemas.SCHEMAS) or check is not None and schema == "list":
        raise typer.BadParameter(f"--schema {schema}: expected one of {', '.join(schemas.SCHEMAS)}")
    if check is not None:
        from analysis import validation

        found = validation.validate(check, schema=schema)
        if as_json or len(found):
            _emit(found, as_json)
        else:
            print(f"{check}: as expected.")
        if len(found):
            raise typer.Exit(1)
    elif schema == "list":
        _emit(pd.DataFrame({"schema": list(schemas.SCHEMAS)}), as_json)
    elif schema is not None:
        print(json.dumps(schemas.schema(schema), indent=1))
    else:
        from analysis import cards

        if names:
            _emit(pd.DataFrame({"row": cards.ids()}), as_json)
        else:
            _show_card(cards.card(row), out, as_json)


def _show_card(one, out, as_json):
    import textwrap

    from analysis import cards, tables_cards

    if out is not None:
        cards.write(one, out)
    if as_json:
        print(cards.to_json(one), end="")
    elif out is not None:
        print(f"Card of {one.row_id} written to {out}.")
    else:
        for group, lines in tables_cards.card(one).groupby("Group", sort=False):
            print(group)
            for field, value, tier in lines[["Field", "Value", "Tier"]].itertuples(index=False):
                first, *more = textwrap.wrap(value, 90) or [""]
                print(f"  {field:32} {tier:8} {first}")
                for line in more:
                    print(f"{'':44}{line}")


RowPaths = Annotated[list[Path], typer.Argument(help="Files of the row's debates, any layout; or logs (.eval) of its debates and probes, or folders of them.")]
Id = Annotated[str, typer.Option("--id", help="Name of the row: letters, digits, '.', '-', '_'.")]
Model = Annotated[str, typer.Option("--model", help="Model as readers know it.")]
Family = Annotated[str, typer.Option("--family", help="Model family; the paper's are Anthropic, DeepSeek, Google, Meta, OpenAI, Phi, Qwen.")]
Probes = Annotated[Path | None, typer.Option("--probes", help="Probe records of the same model (JSON-lines), or the log of its probes.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Mark the row as made up.")]


@row_app.command("add")
def row_add(paths: RowPaths, id: Id, model: Model, family: Family, policy: Policy = "reference", labels: Labels = "ABCDEFGHIJ", probes: Probes = None, arm: Arm = None, synthetic: Synthetic = False, as_json: Json = False):
    """Check debates and store them as a row; `make book` then shows it."""
    from analysis import rows

    with _options():
        row = rows.add(paths, id=id, model=model, family=family, policy=policy, labels=labels, probes=probes, synthetic=synthetic, arm=arm)
    _tell(row, None, as_json, f"Row {row.id} added. Run `make book` to see it.")


@row_app.command("check")
def row_check(paths: RowPaths, id: Id = "checked", model: Model = "unnamed", family: Family = "unnamed", policy: Policy = "reference", labels: Labels = "ABCDEFGHIJ", probes: Probes = None, arm: Arm = None, synthetic: Synthetic = False, as_json: Json = False):
    """Do all that `row add` does except storing (a dry run), and show the ledger of the row."""
    from analysis import ledger, rows

    with _options():
        row, frame, _ = rows.check(paths, id=id, model=model, family=family, policy=policy, labels=labels, probes=probes, synthetic=synthetic, arm=arm)
    _tell(row, ledger.summarize(ledger.debates(frame)), as_json, "Nothing was stored: this was a check.")


def _tell(row, summary, as_json, last):
    from analysis import rows, tables

    told = row.model_dump(exclude={"sources"} if as_json else {"sources", "quality", "usage"})
    if summary is not None:
        told |= {name: summary[name].iat[0] for name in ("preserved", "collapse", "correction", "unrepaired", "init_correct", "c_cond")}
    if as_json:
        print(json.dumps(_plain(told), indent=2, ensure_ascii=False, allow_nan=False))
        return
    told["quality_control"] = tables.quality(row.quality_control, rows.checks(row))
    for name, value in told.items():
        print(f"{name:15} {'-' if value is None else value}")
    if row.quality_control == "fails":
        print("This row fails strict quality control; its name says so in every table.")
    print(last)


@row_app.command("export")
def row_export(
    id: Annotated[str, typer.Argument(help="Id of the row, as `row list` shows it.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to, new or empty.")],
    tier: Annotated[Literal["open"], typer.Option("--tier", help="What is given out: labels and counts, no text.")] = "open",
    license: Annotated[str | None, typer.Option("--license", help="Address of the licence, for the metadata.")] = None,
    creator: Annotated[str | None, typer.Option("--creator", help="Who ran the debates, for the metadata.")] = None,
    as_json: Json = False,
):
    """Write an added row as open-tier files: debates, probes, reuse card, cost card, metadata."""
    from analysis import export

    _emit(export.write(id, out, tier=tier, license=license, creator=creator), as_json)
    if not as_json:
        print(f"Row {id} written to {out}.")
        if license is None:
            print("The metadata name no licence: give its address with --license before you publish the folder.")


@row_app.command("list")
def row_list(as_json: Json = False):
    """List the added rows."""
    from analysis import rows

    table = rows.describe()
    if table.empty and not as_json:
        print("There are no added rows.")
        return
    _emit(table, as_json)


@row_app.command("remove")
def row_remove(id: Annotated[str, typer.Argument(help="Id of the row, as `row list` shows it.")], as_json: Json = False):
    """Remove an added row; `make book` then drops its page."""
    from analysis import rows

    rows.remove(id)
    print(json.dumps({"removed": id}) if as_json else f"Row {id} removed.")


@book_app.command("execute")
def book_execute(
    source: Path,
    target: Path,
    tie: Annotated[Ties | None, typer.Option("--tie")] = None,
    missing: Annotated[MissingRules | None, typer.Option("--missing")] = None,
    interval: Annotated[Intervals | None, typer.Option("--interval")] = None,
    added_rows: Annotated[str | None, typer.Option("--added-rows", help="Ids of the added rows to enter, separated by blanks.")] = None,
    row: Annotated[str | None, typer.Option("--row", help="The one row that a row page shows.")] = None,
):
    """Execute a notebook with the book's choices as its parameters."""
    from analysis.execute import execute

    parameters = {name: value for name, value in [("tie", tie), ("missing", missing), ("interval", interval)] if value}
    if added_rows is not None:
        parameters["added_rows"] = added_rows.split()
    if row:
        parameters["row_id"] = row
    try:
        execute(source, target, parameters)
    except Exception as problem:
        if type(problem).__name__ not in ("PapermillExecutionError", "ValueError"):
            raise
        print(f"error: {source}: {problem}", file=sys.stderr)
        raise SystemExit(1) from None
    print(f"executed {target}")


@book_app.command("refresh")
def book_refresh(notebooks: list[Path]):
    """Execute notebooks in place with their default parameters (the outputs that nbval compares)."""
    from analysis.execute import execute

    for path in notebooks:
        execute(path, path)
        print(f"refreshed {path}")


@book_app.command("prune")
def book_prune(keep: Annotated[str, typer.Option("--keep", help="Ids of the rows that there are, separated by blanks.")] = ""):
    """Remove pages of rows that are gone."""
    from analysis.execute import prune

    prune(keep.split())


@book_app.command("metadata")
def book_metadata():
    """Write data/croissant.json and data/schemas anew (after a change to data or to a schema)."""
    from analysis import croissant

    changed = croissant.write()
    print("\n".join(f"wrote data/{name}" for name in changed) or "Nothing changed.")
