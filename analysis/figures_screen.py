"""Figures of the screen's robustness: the specification curve, and each family predicted from the others."""

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from . import drawing
from .drawing import ACCENTS

ADJUSTED = {
    "none": "nothing taken out", "initial accuracy": "initial accuracy taken out",
    "noise": "noise in both measures, median",
}
PREDICTORS = {
    "alpha_tot": "total flip rate", "alpha_no_strongest": "without the strongest probe",
    "alpha_adv": "flips away from right", "log_ratio": "log-ratio social / argument",
}
OUTCOMES = {
    "c_cond": "conditional collapse", "c_cond_low": "its lower Wilson limit",
    "collapse_rate": "collapse over all debates",
}
CHOICES = {"predictor": PREDICTORS, "outcome": OUTCOMES, "adjusted": ADJUSTED}


def specifications(curve):
    """Draw the cells of a specification curve in order of size, over the choices that make each cell.

    Parameters
    ----------
    curve : DataFrame
        One line a cell: ``predictor, outcome, adjusted`` (str) and ``rho``.

    Returns
    -------
    matplotlib.figure.Figure
        Above, correlations from small to large with the median as a line; below, a dot for the predictor, the
        outcome and the adjustment of each.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, app. C.7.

    Examples
    --------
    >>> import pandas as pd
    >>> two = pd.DataFrame({"predictor": ["a", "b"], "outcome": "c", "adjusted": "none", "rho": [0.5, -0.2]})
    >>> [len(ax.collections[-1].get_offsets()) for ax in specifications(two).axes]
    [2, 2]
    """
    table = drawing.checked("specifications", curve, ["predictor", "outcome", "adjusted", "rho"])
    table = table.sort_values("rho", kind="stable", ignore_index=True)
    _, soft, grid, _ = drawing.inks()
    rows = [(column, name) for column, names in CHOICES.items()
            for name in dict.fromkeys([*(n for n in names if n in set(table[column])), *table[column]])]
    words = PREDICTORS | OUTCOMES | ADJUSTED
    texts = [drawing.wrap(words.get(name, name), 34) for _, name in rows]
    colors = dict(zip(dict.fromkeys([*ADJUSTED, *table["adjusted"]]), drawing.cycle(ACCENTS, 20)))
    shown = table["adjusted"].map(colors)
    below = 0.2 * len(rows)
    fig = drawing.figure(drawing.WIDTH, 2.4 + below + 0.5)
    width, height = fig.get_size_inches()
    left = max(drawing.extent(fig, text, 8.5)[0] for text in texts) / fig.dpi + 0.25
    span = (width - left - 0.15) / width
    top = fig.add_axes((left / width, (below + 0.5) / height, span, 2.3 / height))
    low = fig.add_axes((left / width, 0.35 / height, span, below / height), sharex=top)
    x = np.arange(len(table))
    top.vlines(x, 0, table["rho"], color=grid, linewidth=1.0, zorder=1)
    top.scatter(x, table["rho"], c=list(shown), s=26, zorder=3)
    middle = table["rho"].median()
    top.axhline(middle, color=soft, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    top.annotate(f"median {middle:.2f}", (0, middle), (2, 3), textcoords="offset points", size=8.5,
                 color=soft)
    top.axhline(0, color=soft, linewidth=0.8)
    lowest = min(0, 1.15 * table["rho"].min())
    top.set(xlim=(-0.7, len(table) - 0.3), ylim=(lowest, max(1.0, table["rho"].max())))
    top.set_ylabel("Rank correlation ρ")
    top.tick_params(axis="x", bottom=False, labelbottom=False)
    places = {row: at for at, row in enumerate(rows)}
    for column in CHOICES:
        low.scatter(x, [places[column, name] for name in table[column]], c=list(shown), s=15, zorder=2)
    low.set(ylim=(len(rows) - 0.5, -0.5), xticks=[])
    low.set_yticks(range(len(rows)), texts, size=8.5)
    low.tick_params(axis="y", length=0)
    for (one, _), (other, _), at in zip(rows, rows[1:], range(len(rows))):
        if one != other:
            low.axhline(at + 0.5, color=grid, linewidth=0.8)
    low.set_xlabel("specifications, smallest to largest")
    low.spines[:].set_visible(False)
    return fig


def held_out(predictions):
    """Draw each family's observed outcome beside the interval predicted from the other families.

    Parameters
    ----------
    predictions : DataFrame
        One line a family (or outside row): ``row`` (its name), ``observed, predicted, low_80, high_80,
        low_95, high_95`` (fractions); optional ``added``.

    Returns
    -------
    matplotlib.figure.Figure
        Thick lines are 80% intervals, thin ones 95%; a tick is the prediction, a disc the observed value
        (hollow for added rows). Observed values outside the 80% interval are coloured.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, app. C.4, Table 25.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"row": ["F"], "observed": [0.1], "predicted": [0.1], "low_80": [0.0],
    ...                     "high_80": [0.2], "low_95": [-0.1], "high_95": [0.3]})
    >>> [text.get_text() for text in held_out(one).axes[0].get_yticklabels()]
    ['F']
    """
    ends = ["low_80", "high_80", "low_95", "high_95"]
    table = drawing.checked("held_out", predictions, ["row", "observed", "predicted", *ends])
    table = drawing.added_last(table)

    def share(value):
        return f"{100 * value:.1f}%".replace("-", "−")

    columns = [(name, [share(value) for value in table[name]]) for name in ("observed", "predicted")]
    fig, ax, y = drawing.lines(table, None, columns, per_line=0.34, legend=0.3)
    ink, soft, _, ground = drawing.inks()
    for low, high, thick in (("low_95", "high_95", 1.4), ("low_80", "high_80", 4.5)):
        ax.hlines(y, table[low], table[high], color=soft, linewidth=thick, alpha=0.75)
    ax.vlines(table["predicted"], y - 0.22, y + 0.22, color=ink, linewidth=1.6)
    outside = ~table["observed"].between(table["low_80"], table["high_80"])
    for at, value, out, added in zip(y, table["observed"], outside, table["added"]):
        color = ACCENTS[1] if out else ACCENTS[0]
        ax.plot(value, at, marker="D" if added else "o", markersize=7, markeredgecolor=color,
                markerfacecolor=ground if added else color, markeredgewidth=1.6, zorder=3)
    ax.axvline(0, color=soft, linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%".replace("-", "−")))
    ax.grid(axis="x")
    ax.set_xlabel("Conditional collapse (% of debates right at first)")
    handles = [Line2D([], [], color=soft, linewidth=4.5, alpha=0.75, label="80%"),
               Line2D([], [], color=soft, linewidth=1.4, alpha=0.75, label="95%"),
               Line2D([], [], linestyle="none", marker="o", color=ACCENTS[0], label="observed, inside 80%"),
               Line2D([], [], linestyle="none", marker="o", color=ACCENTS[1], label="observed, outside")]
    fig.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=4, columnspacing=1.4,
               borderaxespad=0.2)
    return fig
