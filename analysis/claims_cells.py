"""What the recomputing modules share: names of models in claim ids, and how cells of tables become claims."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import choice

NOTEBOOKS = (
    "transitions", "screen", "robustness", "probe", "localisation", "multilevel", "replay", "interventions", "transfer",
    "follow-up", "parser", "costs", "pilot", "claims",
)

# How claim ids name the models: id part -> row of the debates, of sealed_rows, of probe_cells.
TRACED = {
    "gemini3f": "gemini-3-flash", "gpt54mini": "gpt-5.4-mini", "llama31_8b": "llama-3.1-8b",
    "phi4mini": "phi-4-mini", "qwen3_4b": "qwen3-4b", "qwen3_8b": "qwen3-8b",
}
SEALED = {
    "sonnet45": "Claude Sonnet 4.5", "haiku45": "Claude Haiku 4.5", "gpt4omini": "GPT-4o-mini",
    "gemini25f": "Gemini 2.5 Flash",
}
PROBED = {
    "sonnet45": "Sonnet 4.5", "sonnet46": "Sonnet 4.6", "opus45": "Opus 4.5", "opus46": "Opus 4.6",
    "gpt4omini": "GPT-4o-mini", "gpt54mini": "GPT-5.4-mini", "gpt54nano": "GPT-5.4-nano", "gpt54": "GPT-5.4",
    "gemini3f": "Gemini 3-flash", "gemini31fl": "Gemini 3.1-flash-lite", "gemini31pro": "Gemini 3.1-pro",
    "phi4mini": "Phi-4-mini", "qwen3_4b": "Qwen3-4B", "llama31_8b": "Llama-3.1-8B", "qwen3_8b": "Qwen3-8B",
}
RATES = {
    "n": "n", "init_acc": "init_acc", "raw": "collapse_rate", "ccond": "c_cond", "ccond_lo": "c_cond_low",
    "ccond_hi": "c_cond_high",
}


class Range(NamedTuple):
    """A value that the public data bound but do not fix."""

    low: float
    high: float


def cells(stem, table, names, columns):
    """Hand the cells of a table out to a regular family of claim ids.

    Parameters
    ----------
    stem : str
        First part of the ids.
    table : DataFrame
        Indexed by the lines' names in the data.
    names : dict of str to str
        Second part of the ids to line.
    columns : dict of str to str
        Last part of the ids to column.

    Returns
    -------
    dict of str to float
        "stem.name.column" to value.

    Examples
    --------
    >>> cells("t1", pd.DataFrame({"c_cond": [0.2]}, index=["model-a"]), {"a": "model-a"}, {"ccond": "c_cond"})
    {'t1.a.ccond': np.float64(0.2)}
    """
    return {f"{stem}.{name}.{part}": table.loc[line, column]
            for name, line in names.items() for part, column in columns.items()}


def as_frame(notebook, found):
    """Values of one notebook as lines.

    Parameters
    ----------
    notebook : str
        Stem of the page that shows them.
    found : dict of str to float or Range
        By claim id.

    Returns
    -------
    DataFrame
        As `values`.

    Examples
    --------
    >>> as_frame("screen", {"a": Range(0.25, 0.5)}).loc["a"].to_dict()
    {'value': 0.375, 'slack': 0.125, 'notebook': 'screen'}
    """
    choice("notebook", notebook, NOTEBOOKS)
    ends = [value if isinstance(value, Range) else (value, value) for value in found.values()]
    ends = np.array(ends, dtype=float).reshape(-1, 2)
    lines = {"value": ends.mean(axis=1), "slack": np.ptp(ends, axis=1) / 2, "notebook": notebook}
    return pd.DataFrame(lines, index=pd.Index(list(found), name="id", dtype="str"))
