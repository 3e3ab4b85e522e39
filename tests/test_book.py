"""The book's build in a copy of the project: what runs again, what stops it, how an added row comes and goes.

The tests stand in the order in which they change the copy; each brings about what it needs.
"""

import base64
import hashlib
import html
import io
import os
import re
import sys
from html.parser import HTMLParser

import nbformat
import pandas as pd
import pytest

from analysis import association, book as showing, data, ledger, tables, traces

ADDED = "tried-in-a-test"
SHIPPED = "smollm2-135m"


class Text(HTMLParser):
    """Words of the article of a page, without scripts."""

    def __init__(self, markup):
        super().__init__()
        self.words, self.depth = [], 0
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.depth += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.depth -= tag in ("script", "style")

    def handle_data(self, text):
        if not self.depth:
            self.words.append(text)


def markup(project, page):
    text = (project / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")
    return text[text.index("<article"):text.index("</article>")]


def words(project, page):
    return " ".join("".join(Text(markup(project, page)).words).split())


def download(project, page, name):
    """Table that a page offers for download, at full precision."""
    link = re.search(rf'download="{name}\.csv" href="data:text/csv;base64,([^"]+)"', markup(project, page))
    return pd.read_csv(io.BytesIO(base64.b64decode(link[1])))


def table(project, page, name):
    """Table as the page shows it, in strings."""
    page = markup(project, page)
    start = page.index("<table", page.index(f'id="table-{name}"'))
    lines = re.findall(r"<tr>(.*?)</tr>", page[start:page.index("</table>", start)], re.DOTALL)
    head, *body = [[html.unescape(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", line, re.DOTALL)] for line in lines]
    return pd.DataFrame(body, columns=head)


def executed(done):
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("executed ")}


def pages(site):
    """Pages without the checksums that the second build in a folder puts behind the names of its assets."""
    return {path.relative_to(site): re.sub(rb'\?v=[0-9a-f]+"', b'"', path.read_bytes()) for path in site.rglob("*.html")}


def digest(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def project(built):
    return built[0]


@pytest.fixture(scope="module")
def before(built):
    """Digest of the data as shipped."""
    return digest(built[0] / "data")


# --- built -----------------------------------------------------------------------------------------------------------


def test_build_executes_every_notebook_and_says_where_to_open_it(built):
    project, out, site = built
    names = {path.stem for path in project.glob("notebooks/*.ipynb")} - {"row"}
    lines = [line.split()[1] for line in out.splitlines() if line.startswith("executed ")]
    assert sorted(lines) == sorted([*[f"book/{name}.ipynb" for name in names], f"book/rows/{SHIPPED}.ipynb"])
    assert out.splitlines()[-1].endswith(f"{project}/_build/html/index.html")
    assert (site / "index.html").is_file()
    assert {path.stem for path in site.glob("*.html")} >= names | {path.stem for path in project.glob("book/*.md")}


def test_pages_tell_nothing_of_the_machine(built):
    project, _, site = built
    for path in [*site.rglob("*.html"), *site.glob("_sources/**/*"), site / "searchindex.js"]:
        if path.is_file():
            assert str(project).encode() not in path.read_bytes(), path
            assert sys.prefix.encode() not in path.read_bytes(), path


def test_only_the_added_row_is_marked_as_added(project):
    shown = table(project, "transitions", "transitions")
    assert [row.startswith(SHIPPED) for row in shown.iloc[:, 0] if "(added)" in row] == [True]
    assert len(shown) == 7


def test_headline_numbers_are_on_the_page(project):
    """Reference numbers of the released debates, read off the page."""
    said = words(project, "transitions")
    for number in ("6,925", "253", "816", "6,525", "251", "804", "3,145", "1,509"):
        assert re.search(rf"(?<![\d,.]){number}(?![\d,])", said), number
    assert re.search(r"253 .*\b149\b.*Round 1.*\b47\b.*Round 2.*\b57\b.*Round 3", words(project, "localisation"))
    said = words(project, "screen")
    for number in ("0.8929", "62", "5,040", "0.767", "442"):
        assert re.search(rf"(?<![\d,.]){number}(?![\d,])", said), number


def test_nothing_changed_nothing_done(project, run):
    stamps = {path: path.stat().st_mtime_ns for path in (project / "_build").rglob("*") if path.is_file()}
    done = run(project, "make", "book")
    assert done.returncode == 0, done.stderr
    assert executed(done) == set()
    assert "_build/html/index.html" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (project / "_build").rglob("*") if path.is_file()} == stamps


# --- stopped ---------------------------------------------------------------------------------------------------------


def test_a_failing_cell_fails_the_build_and_leaves_the_site_unbuilt(project, run):
    source, page, stamp = project / "notebooks" / "rows.ipynb", project / "book" / "rows.ipynb", project / "_build" / "html" / ".built"
    stored, executed_before, built_at = source.read_text(), page.read_bytes(), stamp.stat().st_mtime_ns
    notebook = nbformat.reads(stored, as_version=4)
    notebook.cells[-1].source = "raise RuntimeError('broken on purpose')"
    nbformat.write(notebook, source)
    try:
        done = run(project, "make", "book")
    finally:
        source.write_text(stored)
    assert done.returncode != 0
    assert "notebooks/rows.ipynb" in done.stderr and "broken on purpose" in done.stderr
    assert "The book is built" not in done.stdout
    assert executed(done) == set()
    assert page.read_bytes() == executed_before
    assert stamp.stat().st_mtime_ns == built_at
    assert "broken on purpose" in (project / "book" / "rows.failed.ipynb").read_text()


def test_a_touched_notebook_alone_runs_again(project, run):
    os.utime(project / "notebooks" / "rows.ipynb")
    done = run(project, "make", "book")
    assert done.returncode == 0, done.stderr
    assert executed(done) == {"book/rows.ipynb"}
    assert list(project.glob("book/**/*.failed.ipynb")) == []


def test_a_warning_fails_the_build_again_and_again(project, run):
    """Sphinx tells of a page's fault once, when it reads the page: a second try must not pass for want of reading."""
    page = project / "book" / "glossary.md"
    stored = page.read_text()
    page.write_text(stored + "\n{doc}`no-such-page`\n")
    try:
        tries = [run(project, "make", "book") for _ in range(2)]
    finally:
        page.write_text(stored)
    for done in tries:
        assert done.returncode != 0
        assert "no-such-page" in done.stdout + done.stderr
        assert executed(done) == set()
        assert "The book is built" not in done.stdout
    assert not (project / "_build" / "html" / "index.html").exists()


@pytest.mark.parametrize("word, allowed", [
    ("TIE=foo", ["alphabetic", "undecided", "expected"]), ("MISSING=foo", ["initially_wrong", "drop", "undecided"]), ("INTERVAL=foo", ["wilson", "jeffreys"]),
])
def test_an_unknown_choice_is_refused_with_the_known_ones(project, run, word, allowed):
    stored = digest(project / "book")
    done = run(project, "make", "book", word)
    assert done.returncode != 0
    assert "foo" in done.stderr and all(name in done.stderr for name in allowed)
    assert "Traceback" not in done.stderr
    assert executed(done) == set()
    assert "The book is built" not in done.stdout
    assert digest(project / "book") == stored


# --- a row and other choices -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_row(project, before, run):
    """The shipped example debates added as a row, and the book built with other choices, in one command."""
    done = run(
        project, "make", "row", "PATH=data/examples/synthetic_debates.jsonl", "PROBES=data/examples/synthetic_probes.jsonl", f"ID={ADDED}",
        "MODEL=Made & up <7B>", "FAMILY=Tried", "TIE=undecided", "MISSING=drop",
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def expected(project):
    """Debates of the added row under these choices, straight from the example file."""
    answers = traces.read(project / "data" / "examples" / "synthetic_debates.jsonl").assign(row=ADDED)
    return ledger.debates(answers, tie="undecided", missing="drop")


def test_an_added_row_re_executes_what_depends_on_rows(project, with_row):
    with_rows = {path.stem for path in (project / "notebooks").glob("*.ipynb") if "added_rows = []" in path.read_text()}
    assert {"intro", "transitions", "screen", "robustness", "localisation", "replay", "cards", "transfer", "probe", "parser", "rows"} <= with_rows
    assert executed(with_row) == {f"book/{name}.ipynb" for name in with_rows} | {
        f"book/rows/{SHIPPED}.ipynb", f"book/rows/{ADDED}.ipynb",
    }
    assert with_row.stdout.splitlines()[-1].endswith("_build/html/index.html")


def test_an_added_row_has_a_page_of_its_own(project, with_row, expected):
    said = words(project, f"rows/{ADDED}")
    assert ADDED in said and "Made & up <7B>" in said and SHIPPED not in said
    line = download(project, f"rows/{ADDED}", "transitions").set_index("row").loc[ADDED]
    summary = ledger.summarize(expected).iloc[0]
    for column in ("n", "preserved", "collapse", "correction", "unrepaired", "init_correct", "init_wrong"):
        assert line[column] == summary[column], column


@pytest.mark.parametrize("page", ["intro", "protocol", "claims", "bibliography"])
def test_every_page_lists_the_added_row_at_its_side(project, with_row, page):
    """Pages whose own text did not change are written again too."""
    assert f'href="rows/{ADDED}.html"' in (project / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page, name", [("transitions", "transitions"), ("transitions", "utility"), ("transitions", "cohort"), ("localisation", "onset"),
                                        ("replay", "replay-by-row"), ("replay", "replay-gates-by-row")])
def test_an_added_row_is_marked_in_the_tables(project, with_row, page, name):
    shown = table(project, page, name).iloc[:, 0]
    first, second = [row for row in shown if "(added)" in row]
    assert first.startswith(SHIPPED) and second == f"{ADDED} (added)"
    assert set(data.debates()["row"]) <= set(shown)


def test_an_added_row_enters_the_screen_as_a_sensitivity_only(project, with_row):
    shown = table(project, "screen", "with-added-rows")
    assert shown.iloc[0, 0] == tables.GROUPINGS["paper"]
    assert all(shown.iloc[:, 0].str.contains(row).any() for row in (ADDED, SHIPPED))
    primary = association.family_association(data.model_rows()).iloc[0]
    assert showing.number(primary["rho"], 4) in shown.iloc[0].tolist()
    first, _, rest = words(project, "screen").partition(showing.number(primary["rho"], 4))
    assert len(first) < len(rest), "the paper's statistic stands at the top of the page"
    families = table(project, "screen", "families").iloc[:, 0]
    assert set(families) == set(data.model_rows()["family"])


def test_an_added_row_is_named_in_the_figures_alternative_texts(project, with_row):
    for page, figure in [("transitions", "cells"), ("transitions", "forest"), ("intro", "cells")]:
        shown = markup(project, page)
        alt = re.search(r'alt="([^"]+)"', shown[shown.index(f'id="figure-{figure}"'):])[1]
        assert f"{ADDED} (added)" in alt


def test_numbers_follow_the_tie_rule(project, with_row):
    summary = ledger.summarize(data.debates(tie="undecided"), by=None).iloc[0]
    assert summary["collapse"] == 170
    said = words(project, "transitions")
    assert re.search(r"(?<![\d,])170(?![\d,])", said)
    assert showing.count(summary["correction"]) in said and showing.count(summary["init_correct"]) in said
    shown = download(project, "transitions", "transitions")
    assert shown.loc[~shown["added"], "collapse"].sum() == 170
    assert download(project, "replay", "replay-all").set_index("gate").loc["always_freeze", "prevented"] == 170


def test_the_row_follows_both_choices(project, with_row, expected):
    shown = download(project, "transitions", "transitions").set_index("row").loc[ADDED]
    summary = ledger.summarize(expected).iloc[0]
    usual = ledger.summarize(ledger.debates(traces.read(project / "data" / "examples" / "synthetic_debates.jsonl"))).iloc[0]
    cells = ["n", "preserved", "collapse", "correction", "unrepaired"]
    assert shown[cells].astype(int).tolist() == summary[cells].astype(int).tolist() != usual[cells].astype(int).tolist()


@pytest.mark.parametrize("page", ["intro", "transitions", "screen", "localisation", "replay", "rows", f"rows/{SHIPPED}", f"rows/{ADDED}"])
def test_each_page_says_what_was_chosen_and_what_could_not_follow(project, with_row, page):
    note = showing.choices_note(tie="undecided", missing="drop", interval="wilson")
    followed = showing.choices_note(tie="undecided", missing="initially_wrong", interval="wilson")
    chosen, _, kept = note.partition(". ")
    assert "paper" in kept and ". " not in followed and chosen != followed.rstrip(".")
    assert note in words(project, page)


def test_only_the_rows_own_files_were_added(project, with_row, before):
    now = digest(project / "data")
    assert {path: now[path] for path in before} == before
    assert {str(path) for path in set(now) - set(before)} == {f"rows/{ADDED}/{name}" for name in ("row.json", "answers.csv", "probes.csv")}


# --- the row taken away ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_row(project, with_row, run):
    gone = run(project, project / ".venv" / "bin" / "python", "-m", "analysis", "row", "remove", ADDED)
    assert gone.returncode == 0, gone.stderr
    done = run(project, "make", "book")
    assert done.returncode == 0, done.stderr
    return done


def test_a_removed_row_leaves_no_page_and_no_trace(project, without_row, before):
    assert digest(project / "data") == before
    left = [path for folder in ("book", "_build/html") for path in (project / folder).rglob("*") if path.is_file() and ADDED.encode() in path.name.encode()]
    assert left == []
    for path in [*(project / "_build" / "html").rglob("*.html"), project / "_build" / "html" / "searchindex.js"]:
        assert ADDED not in path.read_text(encoding="utf-8"), path


def test_the_book_is_again_what_it_was(built, without_row):
    project, _, site = built
    first, again = pages(site), pages(project / "_build" / "html")
    assert set(first) == set(again)
    assert [str(path) for path in first if first[path] != again[path]] == []
