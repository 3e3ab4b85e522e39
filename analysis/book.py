"""From tables to pages: show a table, put a number into prose.

Notebooks call this module for everything a reader sees, so that pages look alike and every table can be downloaded.
"""

import base64
import html
import re
from typing import NamedTuple

import pandas as pd

from analysis import data, exhibits, ledger, rows
from analysis.errors import choice

# --- what a notebook shows -------------------------------------------------------------------------------------------


def percent(value, digits=1):
    """Fraction as a percentage for display; missing gives a dash.

    Examples
    --------
    >>> percent(0.0846), percent(float("nan"))
    ('8.5%', '–')
    """
    return "–" if pd.isna(value) else f"{100 * value:.{digits}f}%"


def rate(k, n, low, high, digits=1):
    """Rate with its interval, numerator and denominator, for display.

    Examples
    --------
    >>> rate(86, 1016, 0.0691, 0.1034)
    '8.5% [6.9, 10.3] (86/1,016)'
    """
    if not n:
        return f"– ({count(k)}/0)"
    return f"{percent(k / n, digits)} [{100 * low:.{digits}f}, {100 * high:.{digits}f}] ({count(k)}/{count(n)})"


def count(value):
    """Whole number with thousands separators; credit of tied votes keeps one decimal; missing gives a dash.

    Examples
    --------
    >>> count(6925), count(12.5), count(float("nan"))
    ('6,925', '12.5', '–')
    """
    if pd.isna(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def number(value, digits=3):
    """Number at fixed decimals with a true minus sign; missing gives a dash, infinity its sign.

    Examples
    --------
    >>> number(-0.12345), number(-0.0001), number(float("inf")), number(float("nan"))
    ('−0.123', '0.000', '∞', '–')
    """
    if pd.isna(value):
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def p_value(value):
    """p-value at four decimals, never zero; missing gives a dash.

    Examples
    --------
    >>> p_value(0.0123), p_value(2e-7)
    ('0.0123', '< 0.0001')
    """
    if pd.isna(value):
        return "–"
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


TALL = 15  # lines beyond which a table with named lines scrolls
WORD = re.compile(r"[A-Za-z]{4,}")
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])")


class Link(NamedTuple):
    """Text of a cell that leads to another page of the book."""

    text: str
    page: str

    def __str__(self):
        return self.text


class Shown:
    """A table or figure as one piece of HTML, with a plain text for where HTML is not shown."""

    def __init__(self, markup, text):
        self.markup, self.text = markup, text

    def _repr_html_(self):
        return self.markup

    def __repr__(self):
        return self.text


def show(table, *, name, caption, source=None, exhibit=None, ids=None):
    """Show a table with its caption and a link to the same numbers at full precision as CSV.

    Parameters
    ----------
    table : DataFrame
        What the reader sees, already worded and rounded: column names are the headings.
    name : str
        File name of the download, without ending.
    caption : str
        One sentence that says what is shown, of which unit and denominator.
    source : DataFrame, optional
        What the download holds; the shown table unless given.
    exhibit : str or sequence of str, optional
        Tables or figures of the paper that this one stands for, such as "Table 6": named before the caption, with
        their states.
    ids : sequence of str, optional
        HTML ids of the lines, for links to them; a long table with ids scrolls inside its frame.

    Returns
    -------
    Shown

    Examples
    --------
    >>> "data:text/csv" in show(pd.DataFrame({"n": ["1"]}), name="t", caption="Debates.")._repr_html_()
    True
    """
    link, _ = _download(table if source is None else source, name)
    kinds = [_kind(table[column]) for column in table]
    head = "".join(f'<th scope="col"{kind}>{html.escape(str(column))}</th>' for column, kind in zip(table, kinds))
    lines = []
    names = [f' id="{html.escape(name)}"' for name in ids] if ids is not None else [""] * len(table)
    for line_id, (first, *rest) in zip(names, table.itertuples(index=False, name=None), strict=True):
        cells = "".join(f"<td{kind}>{_cell(value)}</td>" for value, kind in zip(rest, kinds[1:]))
        lines.append(f'<tr{line_id}><th scope="row"{kinds[0]}>{_cell(first)}</th>{cells}</tr>')
    tall = " ledger-tall" if ids is not None and len(table) > TALL else ""
    markup = (
        f'<figure class="ledger-table" id="table-{html.escape(name)}"><figcaption>{exhibits.badge(exhibit)}{html.escape(caption)}</figcaption>\n'
        f'<div class="ledger-scroll{tall}" tabindex="0" role="region" aria-label="{html.escape(caption)}">\n'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + f"\n</tbody></table></div>\n{link}</figure>"
    )
    return Shown(markup, f"{caption}\n{table.to_string(index=False)}")


def _cell(value):
    text = html.escape(str(value))
    return f'<a href="{html.escape(value.page)}">{text}</a>' if isinstance(value, Link) else text


def _kind(values):
    """Class of a column: numbers stand right and never wrap, words stand left, and long words get room."""
    texts = [str(value) for value in values]
    numbers = all(not text or text[0] in "0123456789-−+<>≤≥~–∞|" and len(WORD.findall(text)) < 2 for text in texts)
    if numbers:
        return ""
    longest = max(map(len, texts))
    return ' class="ledger-words"' if longest <= 26 else ' class="ledger-text"' if longest <= 80 else ' class="ledger-long"'


def _download(table, name):
    """Link that holds the table as CSV (so that it works from any server and from none), and its length."""
    # A cell that begins like a formula would be run by a spreadsheet.
    safe = table.map(lambda value: f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value)
    csv = safe.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    link = base64.b64encode(csv.encode()).decode()
    return (
        f'<p class="ledger-download"><a download="{html.escape(name)}.csv" href="data:text/csv;base64,{link}">'
        f"Download the numbers (CSV, {len(table):,} {'line' if len(table) == 1 else 'lines'})</a></p>"
    ), len(table)


def search(table, *, name, caption, source=None):
    """Show a long table that readers can search, sort and filter; works offline.

    Parameters
    ----------
    table, name, caption, source
        As in `show`.

    Returns
    -------
    Shown

    Examples
    --------
    >>> import pandas as pd
    >>> 'id="search-t"' in search(pd.DataFrame({"n": [1]}), name="t", caption="Debates.")._repr_html_()
    True
    """
    from itables import options, to_html_datatable
    from itables.javascript import generate_init_offline_itables_html

    bundle = generate_init_offline_itables_html(options.dt_bundle)
    # Cells are escaped here and not by the widget, which would show links as their markup.
    widget = to_html_datatable(
        table.map(_cell), table_id=f"search-{name}", connected=False, display_logo_when_loading=False, classes="display compact ledger-search",
        column_filters="footer", columnDefs=[{"targets": i, "ariaTitle": str(column)} for i, column in enumerate(table)],
        lengthMenu=[25, 100, -1], showIndex=False, maxBytes=0, allow_html=True,
    )
    link, whole = _download(table if source is None else source, name)
    return Shown(f'{bundle}<figure class="ledger-table"><figcaption>{html.escape(caption)}</figcaption><div class="ledger-scroll" tabindex="0" role="region" aria-label="{html.escape(caption)}">{widget}</div>\n{link}</figure>', f"{caption}\n{whole:,} rows")


def say(**numbers):
    """Keep numbers under names, for prose to take them up with the glue role.

    Parameters
    ----------
    **numbers
        Name and displayed value, already worded.

    Examples
    --------
    >>> say(n="6,925")  # doctest: +SKIP
    """
    from myst_nb import glue  # imports Sphinx: only where a notebook has prose numbers

    for name, value in numbers.items():
        glue(name, value if isinstance(value, str) else count(value), display=False)


def column(*pieces):
    """Show several tables or figures under each other.

    Examples
    --------
    >>> column(note("one"), note("two"))._repr_html_().count("<p")
    2
    """
    return Shown("\n".join(piece._repr_html_() for piece in pieces), "\n".join(map(repr, pieces)))


def note(text):
    """Show a remark in small print.

    Examples
    --------
    >>> note("Ties alphabetic.")._repr_html_()
    '<p class="ledger-note">Ties alphabetic.</p>'
    """
    return Shown(f'<p class="ledger-note">{html.escape(text)}</p>', text)


def choices_note(*, tie, missing, interval):
    """Sentence that says which choices a page was made with, and what the released debates could not follow.

    Examples
    --------
    >>> choices_note(tie="alphabetic", missing="initially_wrong", interval="wilson")
    "A tie goes to the alphabetically first answer; a round without any answer counts as wrong; 95% Wilson intervals (the paper's own choices)."
    """
    from analysis import stats

    choice("tie", tie, ledger.TIES)
    choice("missing", missing, ledger.MISSING)
    choice("interval", interval, stats.INTERVALS)
    ties = {
        "alphabetic": "A tie goes to the alphabetically first answer",
        "undecided": "A tie elects no answer and counts as wrong",
        "expected": "A tie earns each of its k answers 1/k credit",
    }
    silent = {
        "initially_wrong": "a round without any answer counts as wrong",
        "drop": "a debate whose first or last round has no answer is left out",
        "undecided": "a round without any answer is neither right nor wrong",
    }
    words = f"{ties[tie]}; {silent[missing]}; 95% {interval.capitalize()} intervals"
    if (tie, missing, interval) == ("alphabetic", "initially_wrong", "wilson"):
        return words + " (the paper's own choices)."
    kept = []
    if tie == "expected":
        kept.append("the alphabetic rule, since their release does not say which answers were tied")
    if missing != "initially_wrong":
        kept.append("rounds without any answer as wrong, since their release does not tell them apart")
    return words + "." + (f" The paper's debates keep {' and '.join(kept)}." if kept else "")


def debates(*, tie, missing, added_rows=()):
    """The paper's debates and those of the added rows, under one set of choices as far as the data allow.

    Parameters
    ----------
    tie, missing : str
        As in `analysis.ledger.debates`.
    added_rows : sequence of str
        Ids under data/rows.

    Returns
    -------
    (DataFrame, DataFrame)
        The paper's debates and the added ones (empty without added rows).

    Examples
    --------
    >>> paper, added = debates(tie="expected", missing="drop")
    >>> len(paper), len(added)
    (6925, 0)
    """
    paper = data.debates(tie="undecided" if tie == "undecided" else "alphabetic")
    return paper, rows.debates(added_rows, tie=tie, missing=missing)
