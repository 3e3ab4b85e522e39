"""Figures of the replay and localisation pages: utility along the weight ladder, lifts by unit of resampling."""

import numpy as np
from matplotlib.lines import Line2D

from analysis import drawing
from analysis.drawing import ACCENTS


def ladder(results, *, most=6.0):
    """Draw each gate's utility against the value of a collapse; it crosses zero at the break-even ratio.

    Parameters
    ----------
    results : DataFrame
        One line a gate and cohort: ``gate`` (str), ``n``, ``prevented``, ``lost`` (counts of debates),
        optional ``cohort`` (str, sets the colour).
    most : float
        Largest value of a prevented collapse, in lost corrections.

    Returns
    -------
    matplotlib.figure.Figure
        Straight lines 100 (r prevented - lost) / n, in points; a dot where a gate breaks even, and the ratio
        behind its name.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 3.3 and Table 38.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"gate": ["g"], "n": [100], "prevented": [2], "lost": [6]})
    >>> [dot.get_xdata()[0].item() for dot in ladder(one).axes[0].lines if dot.get_marker() == "o"]
    [3.0]
    """
    table = drawing.checked("ladder", results, ["gate", "n", "prevented", "lost"])
    table["cohort"] = table["cohort"].astype(str) if "cohort" in table else ""
    cohorts = dict(zip(dict.fromkeys(table["cohort"]), drawing.cycle(ACCENTS, table["cohort"].nunique())))
    ratio = table["lost"] / table["prevented"].where(table["prevented"] > 0)
    names = [gate if np.isnan(r) else f"{gate}: {r:.2f}" for gate, r in zip(table["gate"], ratio, strict=True)]
    fig = drawing.figure(drawing.WIDTH, 4.8)
    width, height = fig.get_size_inches()
    right = max(drawing.extent(fig, name, 8.5)[0] for name in names) / fig.dpi + 0.25
    legend = 0.3 if list(cohorts) != [""] else 0.0
    ax = fig.add_axes((0.7 / width, 0.55 / height, 1 - (0.7 + right) / width, 1 - (0.7 + legend) / height))
    ends = [100 * (r * table["prevented"] - table["lost"]) / table["n"] for r in (0, most)]
    low, high = min(-0.1, *ends[0], *ends[1]), max(0.1, *ends[0], *ends[1])
    ax.set(xlim=(0, most), ylim=(low - 0.03 * (high - low), high + 0.03 * (high - low)))
    ax.set_xlabel("Value of a prevented collapse r (in lost corrections)")
    ax.set_ylabel("Utility (points of the cohort's debates)")
    ax.grid(True, alpha=0.5)
    ax.axhline(0, color=drawing.inks()[1], linewidth=1.2, zorder=1)
    gap = 15 * (high - low) * 1.06 / (ax.get_window_extent().height / fig.dpi * 72)
    heights = drawing.spread(ends[1], gap)
    for k, cohort in enumerate(table["cohort"]):
        ax.plot([0, most], [ends[0][k], ends[1][k]], color=cohorts[cohort], linewidth=1.7, zorder=2)
        if ratio[k] <= most:
            ax.plot([ratio[k]], [0], marker="o", markersize=5.5, color=cohorts[cohort], zorder=3)
        ax.annotate(names[k], (most, ends[1][k]), (1.02 * most, heights[k]), va="center", size=8.5,
                    annotation_clip=False, arrowprops={"arrowstyle": "-", "linewidth": 0.7, "shrinkB": 0,
                                                       "color": cohorts[cohort]})
    if legend:
        _legend(fig, cohorts)
    return fig


def _legend(fig, cohorts):
    handles = [Line2D([], [], color=color, linewidth=2, label=name) for name, color in cohorts.items()]
    fig.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=len(handles), borderaxespad=0.2)


def lifts(found):
    """Draw lifts of the area under the curve with their intervals, one line a fit, view and unit.

    Parameters
    ----------
    found : DataFrame
        ``row`` (str, what the line is), ``lift``, ``low``, ``high`` (differences of areas), ``fit`` (str, sets
        the colour); order is kept.

    Returns
    -------
    matplotlib.figure.Figure
        Points with intervals; the numbers stand at the right.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, app. E.1.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"row": ["debates"], "fit": ["f"], "lift": [0.1], "low": [0.08], "high": [0.12]})
    >>> [text.get_text() for text in lifts(one).axes[0].get_yticklabels()]
    ['debates']
    """
    table = drawing.checked("lifts", found, ["row", "fit", "lift", "low", "high"])
    texts = [f"{line.lift:.3f} [{line.low:.3f}, {line.high:.3f}]" for line in table.itertuples()]
    fig, ax, y = drawing.lines(table, None, [("lift [95% interval]", texts)], per_line=0.29, legend=0.3)
    fits = dict(zip(dict.fromkeys(table["fit"]), drawing.cycle(ACCENTS, table["fit"].nunique())))
    colors = [fits[name] for name in table["fit"]]
    ax.hlines(y, table["low"], table["high"], color=colors, linewidth=1.8)
    ax.scatter(table["lift"], y, color=colors, s=34, zorder=3)
    ax.set_xlim(min(0, table["low"].min()), 1.05 * table["high"].max())
    ax.grid(axis="x")
    ax.set_xlabel("Lift of the area under the curve")
    _legend(fig, fits)
    return fig
