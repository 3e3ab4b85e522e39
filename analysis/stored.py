"""Records of added rows, read back from data/rows: probes and answers."""

import pandas as pd

from analysis import probes as measures, rows, traces


def probes(chosen):
    """Probes of added rows, one line a probe.

    Parameters
    ----------
    chosen : sequence of str
        Ids under data/rows; a row without probes has no line.

    Returns
    -------
    DataFrame
        As `probes.read`; empty if there are none.

    Examples
    --------
    >>> len(probes([]))
    0
    """
    paths = [rows.folder() / id / "probes.csv" for id in chosen]
    found = [measures.read_stored(path) for path in paths if path.is_file()]
    return pd.concat(found, ignore_index=True) if found else measures.empty()


def with_starts(frame):
    """Probes of those rows that say of every probe which answer is right and which was given.

    Parameters
    ----------
    frame : DataFrame
        One line a probe.

    Returns
    -------
    DataFrame
        The same lines without those of other rows.

    Examples
    --------
    >>> frame = pd.DataFrame({"row": ["a", "b"], "gold": ["A", None], "parsed": [True, True]})
    >>> with_starts(frame)["row"].tolist()
    ['a']
    """
    known = (frame["gold"].notna() & frame["parsed"].notna()).groupby(frame["row"]).transform("all")
    return frame[known.astype(bool)]


def answers(chosen):
    """Answers of added rows in the long shape.

    Parameters
    ----------
    chosen : sequence of str
        Ids under data/rows; a row that came as a feature matrix has no answers and no line.

    Returns
    -------
    DataFrame
        `row, question, replicate, round, agent, answer, gold` and what else is stored; empty if there are
        none.

    Examples
    --------
    >>> len(answers([]))
    0
    """
    found = [traces.read(path, format="long", labels=rows.card(id).labels)
             for id in chosen if (path := rows.folder() / id / "answers.csv").is_file()]
    columns = ["row", "question", "replicate", "round", "agent", "answer", "gold"]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)


def generations(chosen):
    """Logged answers of added rows: in debates and after probes.

    Parameters
    ----------
    chosen : sequence of str
        Ids under data/rows.

    Returns
    -------
    DataFrame
        `row, n` debates, `n_states` debate answers (missing for a feature matrix), `n_probes` replies
        (missing without probes).

    Examples
    --------
    >>> generations([]).columns.tolist()
    ['row', 'n', 'n_states', 'n_probes']
    """
    told = rows.describe(chosen)
    replies = measures.records(probes(chosen), by="row").set_index("row")["n_probes"]
    return pd.DataFrame({
        "row": told["id"], "n": told["n_debates"].astype(float), "n_states": told["n_answers"].astype(float),
        "n_probes": told["id"].map(replies).astype(float),
    })
