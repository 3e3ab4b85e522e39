"""The paper's tables and figures: each has one place in the book, and one state."""

import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from analysis import claims, exhibits
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def lines():
    return exhibits.table()


@pytest.fixture(scope="module")
def shown():
    """Page of every badge in the stored notebooks, and of every label in the pages of plain text."""
    found = []
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                markup = "".join(output.get("data", {}).get("text/html", ""))
                found += [(name, path.stem) for name in re.findall(r'class="ledger-exhibit" id="(paper-[a-z]+-\d+)"', markup)]
    for path in sorted(ROOT.glob("book/*.md")):
        found += [(name, path.stem) for name in re.findall(r"^\((paper-[a-z]+-\d+)\)=$", path.read_text(), re.MULTILINE)]
    return found


def test_all_tables_and_figures_of_the_paper_are_listed_in_order(lines):
    wanted = [f"Table {i + 1}" for i in range(44)] + [f"Figure {i + 1}" for i in range(3)]
    assert lines["exhibit"].tolist() == wanted


def test_every_state_is_known_and_used(lines):
    assert set(lines["state"]) == set(exhibits.STATES)


def test_each_exhibit_is_shown_once_where_it_is_said_to_be(lines, shown):
    assert [name for name, n in Counter(name for name, _ in shown).items() if n > 1] == []
    said = {exhibits.anchor(name): page for name, page in zip(lines["exhibit"], lines["page"])}
    assert dict(shown) == said


def test_badge_names_the_state_of_each_exhibit_shown():
    markup = exhibits.badge(["Table 25", "Table 26"])
    assert re.findall(r"<b>(Table \d+)</b> of the paper: ([a-z ]+)<", markup) == [
        ("Table 25", "rebuilt from counts"), ("Table 26", "rebuilt from counts"),
    ]


def test_unknown_exhibit_is_refused():
    with pytest.raises(DataError, match="'Table 45': expected one of exhibits.csv"):
        exhibits.badge("Table 45")


def test_every_computed_claim_has_its_line_on_the_page_that_the_scoreboard_leads_to():
    verdicts = claims.verdicts()
    computed = verdicts[verdicts["computed"].notna()]
    assert len(computed) > 500
    for page, part in computed.groupby("notebook"):
        lines = re.findall(r'<tr id=\\"claim-([^"\\]+)\\">', (ROOT / "notebooks" / f"{page}.ipynb").read_text())
        assert sorted(lines) == sorted(part["id"]), page
