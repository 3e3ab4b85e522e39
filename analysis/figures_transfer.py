"""Drawing of the accuracy change of rows outside the cohort."""

import numpy as np

from analysis import drawing


def net(lines):
    """Draw what debating changed in each row, in points of accuracy with 95% intervals, around zero.

    Parameters
    ----------
    lines : DataFrame
        From `analysis.transfer.net_change`: ``row, group, n, collapse, correction, change, change_low,
        change_high`` (fractions); optional ``added``. Order is kept, added lines last.

    Returns
    -------
    matplotlib.figure.Figure
        A line whose interval lies on one side of zero has the colour of corrections or of collapses, any
        other is grey; counts and interval are printed at the right.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 4.4.

    Examples
    --------
    >>> import pandas as pd
    >>> one = {"row": "a", "group": "g", "n": 10, "collapse": 1, "correction": 3}
    >>> one |= {"change": 0.2, "change_low": -0.1, "change_high": 0.5}
    >>> [text.get_text() for text in net(pd.DataFrame([one])).axes[0].get_yticklabels()]
    ['a']
    """
    columns = ["row", "group", "n", "collapse", "correction", "change", "change_low", "change_high"]
    table = drawing.added_last(drawing.checked("net", lines, columns))
    sets = [f"{group} ({drawing.count(n)})" for group, n in zip(table["group"], table["n"])]
    pairs = zip(table["correction"], table["collapse"])
    counts = [f"{drawing.count(k)} − {drawing.count(c)}" for k, c in pairs]
    point, low, high = (100 * table[name].to_numpy(float) for name in columns[5:])
    texts = [f"{p:.1f} [{a:.1f}, {b:.1f}]".replace("-", "−") for p, a, b in zip(point, low, high)]
    right = [("corrections −\ncollapses", counts), ("points and\n95% interval", texts)]
    fig, ax, y = drawing.lines(table, ("set (debates)", sets), right, per_line=0.29)
    ink, _, _, ground = drawing.inks()
    kept, rose, fell = (drawing.CELL_COLORS[name] for name in ("unrepaired", "correction", "collapse"))
    colors = np.select([low > 0, high < 0], [rose, fell], kept)
    ax.axvline(0, color=ink, linewidth=0.9)
    ax.hlines(y, low, high, colors=colors, linewidth=1.8)
    for at, x, color, added in zip(y, point, colors, table["added"]):
        ax.plot([x], [at], linestyle="none", marker="D" if added else "o", markersize=6, markeredgewidth=1.6,
                markerfacecolor=ground if added else color, markeredgecolor=color, zorder=3)
    ax.grid(axis="x")
    ax.set_xlabel("Change of accuracy by debating (points)")
    return fig
