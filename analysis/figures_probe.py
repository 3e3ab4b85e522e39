"""Figure of the probe's two channels."""

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from analysis import drawing
from analysis.book import number

# Order of drawing: the prompt that should lower the flip rate, none, and the one that should raise it.
PROMPTS = {
    "anti_social": ("anti-social", "s", drawing.ACCENTS[3]), "default": ("default", "o", drawing.ACCENTS[4]),
    "anti_argument": ("anti-argument", "^", drawing.ACCENTS[0]),
}
MARKS = {"strict": "AA > D > AS", "partial": "AA > AS", "none": "other", "": "–"}


def conditions(lines):
    """Draw each model's flip rates under the three system prompts on one line.

    Parameters
    ----------
    lines : DataFrame
        One line a model: `row`, `default`, `anti_social`, `anti_argument` (fractions), `order` (as
        `probes.ordering`), `d` (effect size); optional `source` ("printed" has hollow markers) and `added`.

    Returns
    -------
    matplotlib.figure.Figure
        Markers joined from the lowest to the highest; order and effect size stand at the right.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Figure 3.

    Examples
    --------
    >>> one = {"row": "m", "default": 0.3, "anti_social": 0.1, "anti_argument": 0.5, "order": "strict"}
    >>> drawn = conditions(pd.DataFrame([one | {"d": 0.4}]))
    >>> [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    ['m']
    """
    table = drawing.checked("conditions", lines, ["row", *PROMPTS, "order", "d"])
    table = drawing.added_last(table)
    columns = [("order", [MARKS[name] for name in table["order"]]),
               ("d", [number(value, 2) for value in table["d"]])]
    fig, ax, y = drawing.lines(table, None, columns, per_line=0.29, legend=0.28)
    _, soft, _, ground = drawing.inks()
    rates = table[list(PROMPTS)].astype(float)
    ax.hlines(y, rates.min(axis=1), rates.max(axis=1), color=soft, linewidth=1.1, zorder=1)
    printed = table.get("source", pd.Series("", index=table.index)).eq("printed").to_numpy()
    for name, (_, marker, color) in PROMPTS.items():
        for chosen, face in ((~printed, color), (printed, ground)):
            ax.plot(rates[name].to_numpy()[chosen], y[chosen], linestyle="none", marker=marker, zorder=3,
                    markersize=6.5, markeredgewidth=1.4, markerfacecolor=face, markeredgecolor=color,
                    clip_on=False)
    ax.set_xlim(0, 1)
    ax.grid(axis="x")
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_xlabel("Flip rate (% of probes)")
    handles = [Line2D([], [], linestyle="none", marker=marker, markersize=6.5, color=color, label=label)
               for label, marker, color in PROMPTS.values()]
    fig.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2,
               handletextpad=0.3)
    return fig
