"""The tables and figures of the paper: where each stands in the book, and what it could be rebuilt from."""

import html

from analysis import data
from analysis.errors import DataError

TABLE = "exhibits"
STATES = {
    "rebuilt from rows": "computed from public lines, one a debate or probe",
    "rebuilt from counts": "computed from public counts",
    "aggregate only": "shown as printed: nothing below it is public",
    "gated": "rests on data that are not public; what is printed of it is shown",
    "definition": "holds no measured number; said in our own words",
}


def table():
    """Every table and figure of the paper, in its order of numbers.

    Returns
    -------
    DataFrame
        `exhibit` ("Table 6"), `title` (ours), `printed_in`, `state` (a key of `STATES`), `page` (stem of the page that
        shows it), `basis` (what it is computed from, or what is missing).

    Examples
    --------
    >>> table().set_index("exhibit").loc["Table 6", "state"]
    'rebuilt from rows'
    """
    return data.table(TABLE)


def anchor(exhibit):
    """HTML id of the place where an exhibit is shown.

    Examples
    --------
    >>> anchor("Table 6")
    'paper-table-6'
    """
    return "paper-" + exhibit.lower().replace(" ", "-")


def badge(exhibit):
    """Line above a caption that names the paper's tables or figures shown there, with their states.

    Parameters
    ----------
    exhibit : str, sequence of str or None
        Such as "Table 6"; none gives no line.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    DataError
        The table of exhibits has no such line.

    Examples
    --------
    >>> badge("Table 6")
    '<span class="ledger-exhibit" id="paper-table-6"><b>Table 6</b> of the paper: rebuilt from rows</span>'
    >>> badge(None)
    ''
    """
    if exhibit is None:
        return ""
    states = table().set_index("exhibit")["state"]
    out = ""
    for name in [exhibit] if isinstance(exhibit, str) else exhibit:
        if name not in states:
            raise DataError(f"exhibit {name!r}: expected one of exhibits.csv, such as {states.index[0]!r}")
        out += f'<span class="ledger-exhibit" id="{anchor(name)}"><b>{html.escape(name)}</b> of the paper: {states[name]}</span>'
    return out
