"""Figures of the book: tables in, pictures out.

Each drawing function takes a frame whose numbers are already computed (counts, rates, interval ends) and
returns a matplotlib ``Figure``; it opens no window and changes no global state. `themed` draws one figure
twice, for the light and the dark theme of the book, and wraps both pictures as one HTML figure with alt text
and caption.

Lines of a frame whose boolean column ``added`` is true are marked as added; without that column no line is.
"""

import re

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, PercentFormatter

from . import drawing
from .drawing import ACCENTS, CELL_COLORS, ThemedFigure, style, themed
from .errors import DataError, choice

__all__ = [
    "CELL_COLORS", "ThemedFigure", "association", "cells", "forest", "onset", "prevented_lost", "roc",
    "style", "themed",
]

CELL_SIGNS = {
    "preserved": "✓ → ✓", "collapse": "✓ → ✗", "correction": "✗ → ✓", "unrepaired": "✗ → ✗",
}
RATES = {
    "c_cond": ("collapse", "init_correct", "Conditional collapse (% of debates right at first)"),
    "correction_rate": ("correction", "init_wrong", "Correction (% of debates wrong at first)"),
}
_BAR = 0.66  # share of a line's height


def cells(summary):
    """Draw the four transition cells of each row as horizontal 100% stacked bars.

    Parameters
    ----------
    summary : DataFrame
        One line a row: ``row`` (str), ``n``, ``preserved``, ``collapse``, ``correction``, ``unrepaired``,
        ``init_correct``, ``init_wrong`` (counts of debates); optional ``undefined`` (count) and ``added``
        (bool). Order is kept, added lines last.

    Returns
    -------
    matplotlib.figure.Figure
        Bars in shares of ``n``; counts stand in the segments that are wide enough, collapse and correction
        with their own denominators at the right.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 3.

    Examples
    --------
    >>> one = pd.DataFrame({"row": ["a"], "n": [10], "preserved": [5], "collapse": [1], "correction": [2],
    ...                     "unrepaired": [2], "init_correct": [6], "init_wrong": [4]})
    >>> [round(float(bar.get_width()), 2) for bar in cells(one).axes[0].patches]
    [0.5, 0.1, 0.2, 0.2]
    """
    table = drawing.checked("cells", summary, ["row", "n", *CELL_COLORS, "init_correct", "init_wrong"])
    table = drawing.added_last(table)
    columns = [
        (f"{cell} of\n{side} at first", [drawing.k_of_n(k, n) for k, n in zip(table[cell], table[of])])
        for cell, of, side in (("collapse", "init_correct", "right"), ("correction", "init_wrong", "wrong"))
    ]
    first = ("debates", [drawing.count(n) for n in table["n"]])
    fig, ax, y = drawing.lines(table, first, columns, per_line=0.34, legend=0.3)
    colors = dict(CELL_COLORS)
    if "undefined" in table and table["undefined"].gt(0).any():
        colors["undefined"] = "none"
    _stack(ax, y, table, "n", colors)
    ax.set_xlabel("Share of the row's debates")
    _legend(fig, {f"{cell} {CELL_SIGNS.get(cell, '')}".strip(): color for cell, color in colors.items()})
    return fig


def forest(summary, *, rate="c_cond"):
    """Draw one rate of every row as point and interval, largest first.

    Parameters
    ----------
    summary : DataFrame
        One line a row: ``row``, the rate's numerator and denominator (``collapse`` and ``init_correct``, or
        ``correction`` and ``init_wrong``), the rate with its interval (``c_cond``, ``c_cond_low``,
        ``c_cond_high``; fractions); optional ``added``.
    rate : {"c_cond", "correction_rate"}
        The rate to draw.

    Returns
    -------
    matplotlib.figure.Figure
        Filled markers for the paper's rows, hollow ones for added rows; k/n, rate and interval are printed at
        the right. A rate without denominator has no marker and stands last.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.
    ValueError
        If `rate` is unknown.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 4.2, eq. 7.

    Examples
    --------
    >>> two = pd.DataFrame({"row": ["a", "b"], "collapse": [1, 3], "init_correct": [10, 10],
    ...                     "c_cond": [0.1, 0.3], "c_cond_low": [0.02, 0.11], "c_cond_high": [0.40, 0.60]})
    >>> [text.get_text() for text in forest(two).axes[0].get_yticklabels()]
    ['b', 'a']
    """
    cell, of, title = RATES[choice("rate", rate, tuple(RATES))]
    table = drawing.checked("forest", summary, ["row", cell, of, rate, f"{rate}_low", f"{rate}_high"])
    table = table.sort_values(["added", rate], ascending=[True, False], kind="stable", na_position="last", ignore_index=True)
    point, low, high = (table[name].to_numpy(float) for name in (rate, f"{rate}_low", f"{rate}_high"))
    known = np.isfinite(low) & np.isfinite(high)
    intervals = [f"[{100 * a:.1f}, {100 * b:.1f}]" if ok else "–" for a, b, ok in zip(low, high, known)]
    columns = [
        ("k/n and rate", [drawing.k_of_n(k, n) for k, n in zip(table[cell], table[of])]),
        ("interval (%)", intervals),
    ]
    long = table["row"].str.len().max() > 27 - 10 * table["added"].any()
    fig, ax, y = drawing.lines(table, None, columns, per_line=0.34 if long else 0.29)
    color, ground = CELL_COLORS[cell], drawing.inks()[3]
    ax.hlines(y[known], low[known], high[known], color=color, linewidth=1.8)
    for added in (False, True):
        chosen = (table["added"] == added).to_numpy()
        ax.plot(point[chosen], y[chosen], linestyle="none", marker="D" if added else "o", markersize=6,
                markeredgewidth=1.6, markerfacecolor=ground if added else color, markeredgecolor=color,
                clip_on=False, zorder=3)
    top = np.nanmax([*high, *point, 0.01])
    ax.set_xlim(0, min(1.0, 1.04 * top))
    ax.grid(axis="x")
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    ax.set_xlabel(title)
    return fig


def association(rows, families):
    """Draw flip rate against conditional collapse, by row and by family, beside the families' two rankings.

    Parameters
    ----------
    rows : DataFrame
        One line a model row: ``row``, ``family``, ``alpha_tot``, ``c_cond`` (fractions); optional ``added``.
        A row without both numbers is not drawn, and the figure says so.
    families : DataFrame
        One line a family: ``family``, ``alpha_tot``, ``c_cond`` (the family's means, fractions).

    Returns
    -------
    matplotlib.figure.Figure
        Left, small points for rows, tied by thin lines to their family's large point; the vertical axis has a
        square-root scale, which keeps small rates apart and can show zero. Right, one line a family between
        its ranks on the two measures: lines that cross are families which the two measures order
        differently; they are coloured. Added rows are hollow and tied to no family, as they are in no mean.

    Raises
    ------
    DataError
        If a frame is empty, a column is missing, or a family's mean is missing.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 4.2 and app. C.2.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a", "b"], "family": ["A", "B"], "alpha_tot": [0.2, 0.4],
    ...                      "c_cond": [0.0, 0.1]})
    >>> len(association(rows, rows).axes)
    2
    """
    rows = drawing.checked("association (rows)", rows, ["row", "family", "alpha_tot", "c_cond"])
    means = drawing.checked("association (families)", families, ["family", "alpha_tot", "c_cond"])
    for line in means[means[["alpha_tot", "c_cond"]].isna().any(axis=1)].itertuples():
        raise DataError(
            f"association (families), family {line.family!r}: alpha_tot={line.alpha_tot}, "
            f"c_cond={line.c_cond}; expected two numbers"
        )
    drawn = rows.dropna(subset=["alpha_tot", "c_cond"])
    names = [drawing.wrap(name, 16) for name in means["family"]]
    per_line = 0.34 if any("\n" in name for name in names) else 0.26
    fig = drawing.figure(drawing.WIDTH, max(4.3, per_line * len(means) + 1))
    heads = ("rank by α", "by collapse")
    margin = max(max(drawing.extent(fig, name, 8.5)[0] for name in names) / fig.dpi + 0.14,
                 drawing.extent(fig, heads[1], 8.5)[0] / fig.dpi)
    _scatter(fig, 2 * margin + 0.95, drawn, means, names, len(rows) - len(drawn))
    _ranks(fig, margin, means, names, heads)
    return fig


def onset(table, *, pooled=None):
    """Draw the round in which collapses begin, as one 100% bar a row.

    Parameters
    ----------
    table : DataFrame
        One line a row: ``row``, ``collapse`` (count, the denominator), ``round_1`` ... ``round_R`` (counts of
        collapses that begin there; missing where a row has no such round); optional ``unlocalized`` (count)
        and ``added``. As `localize.onset_table` or `ledger.onset` return it.
    pooled : str, optional
        Name in ``row`` of the line that sums others; it is drawn first and set apart.

    Returns
    -------
    matplotlib.figure.Figure
        Shares of the row's collapses. Up to four rounds, counts and shares stand at the right; with more, the
        first round's do and the counts stand in the segments that are wide enough.

    Raises
    ------
    DataError
        If the frame is empty, a column is missing, or no row is called `pooled`.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 5.1.

    Examples
    --------
    >>> one = pd.DataFrame({"row": ["a"], "collapse": [4], "round_1": [3], "round_2": [1]})
    >>> [float(bar.get_width()) for bar in onset(one).axes[0].patches]
    [0.75, 0.25]
    """
    table = drawing.checked("onset", table, ["row", "collapse", "round_1"])
    rounds = sorted((c for c in table if re.fullmatch(r"round_\d+", str(c))), key=lambda c: int(c[6:]))
    table = drawing.added_last(table)
    if pooled is not None:
        first = table["row"] == pooled
        if not first.any():
            raise DataError(f"onset: no row {pooled!r}; expected one of {', '.join(map(str, table['row']))}")
        table = pd.concat([table[first], table[~first]], ignore_index=True)
    few = len(rounds) <= 4
    columns = [
        (f"Round {name[6:]}", [drawing.k_and_share(k, n) for k, n in zip(table[name], table["collapse"])])
        for name in (rounds if few else rounds[:1])
    ]
    counts = ("collapses", [drawing.count(n) for n in table["collapse"]])
    fig, ax, y = drawing.lines(table, counts, columns, per_line=0.34, legend=0.3,
                               rule_after=None if pooled is None else 0)
    ink, soft, _, _ = drawing.inks()
    colors = dict(zip(rounds, drawing.shades(CELL_COLORS["collapse"], len(rounds))))
    if "unlocalized" in table and table["unlocalized"].gt(0).any():
        colors["unlocalized"] = "none"
    _stack(ax, y, table, "collapse", colors, edge=ink, numbers=not few)
    for at in y[~table["collapse"].gt(0).to_numpy()]:
        ax.text(0.01, at, "no collapse", ha="left", va="center_baseline", size=8, color=soft)
    ax.set_xlabel("Share of the row's collapses")
    labels = [name.replace("round_", "" if len(rounds) > 5 else "Round ") for name in colors]
    title = "Round:" if len(rounds) > 5 else "Begins in:"
    _legend(fig, dict(zip(labels, colors.values())), edge=ink, title=title)
    return fig


def prevented_lost(results, *, ratios=(1, 2, 3.7, 5)):
    """Draw collapses prevented against corrections lost, with the rays on which a gate breaks even.

    Parameters
    ----------
    results : DataFrame
        One line a gate and cohort: ``gate`` (str), ``prevented``, ``lost`` (counts of debates); optional
        ``cohort`` (str, sets the marker), ``n`` (debates in the cohort, put in the legend) and ``added``.
    ratios : sequence of float
        Collapse-to-correction value ratios whose break-even rays (lost = ratio x prevented) are drawn.

    Returns
    -------
    matplotlib.figure.Figure
        Logarithmic axes, on which all rays are parallel and counts from 2 to thousands stay readable; linear
        below 1 when a count is zero. A gate gains at every ratio whose ray passes above it. One label names a
        gate whose results in two cohorts all but coincide.

    Raises
    ------
    DataError
        If the frame is empty or a column is missing.
    ValueError
        If a ratio is not positive.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 3.3, eq. 6, and sec. 6.

    Examples
    --------
    >>> two = pd.DataFrame({"gate": ["all", "half"], "prevented": [8, 4], "lost": [20, 3]})
    >>> [text.get_text() for text in prevented_lost(two, ratios=(1, 2)).axes[0].texts][-2:]
    ['all: 8 / 20', 'half: 4 / 3']
    """
    table = drawing.checked("prevented_lost", results, ["gate", "prevented", "lost"])
    if not all(ratio > 0 for ratio in ratios):
        raise ValueError(f"ratios={tuple(ratios)!r}: expected positive numbers")
    table["cohort"] = table["cohort"].astype(str) if "cohort" in table else ""
    cohorts = list(dict.fromkeys(table["cohort"]))
    _, soft, _, ground = drawing.inks()
    legend = 0.2 * -(-len(cohorts) // 2) if cohorts != [""] else 0.0
    fig = drawing.figure(drawing.WIDTH, 5.0 + legend)
    width, height = fig.get_size_inches()
    ax = fig.add_axes((0.75 / width, 0.55 / height, 1 - 1.35 / width, 1 - (1.0 + legend) / height))
    zero = table[["prevented", "lost"]].le(0).any(axis=None)
    scale = {"value": "symlog", "linthresh": 1, "linscale": 0.4} if zero else {"value": "log"}
    ax.set_xscale(**scale)
    ax.set_yscale(**scale)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator([0, *(m * 10**k for k in range(7) for m in (1, 2, 5))]))
        axis.set_minor_locator(FixedLocator([]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    values = table[["prevented", "lost"]].to_numpy(float)
    low = 0 * values.min(axis=0) if zero else 0.5 * values.min(axis=0)
    high = np.maximum(10.0, 2.2 * values.max(axis=0))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_xlabel("Collapses prevented (debates)")
    ax.set_ylabel("Corrections lost (debates)")
    ax.grid(True, alpha=0.5)
    note = _rays(fig, ax, sorted(ratios), zero)

    handles = []
    markers, colors = drawing.cycle("osD^vPX", len(cohorts)), drawing.cycle(ACCENTS, len(cohorts))
    for k, (cohort, marker, color) in enumerate(zip(cohorts, markers, colors)):
        part = table[table["cohort"] == cohort]
        # Cohorts that share debates all but coincide: later ones are drawn smaller, on top.
        look = {"linestyle": "none", "marker": marker, "markeredgecolor": color, "markeredgewidth": 1.2}
        for added in (False, True):
            some = part[part["added"] == added]
            ax.plot(some["prevented"], some["lost"], **look, markersize=max(4.5, 9 - 1.6 * k),
                    markerfacecolor=ground if added else color, clip_on=False, zorder=3)
        label = drawing.wrap(cohort, 40, 1)
        if "n" in part and part["n"].nunique() == 1:
            label += f" (n = {drawing.count(part['n'].iloc[0])})"
        fill = ground if part["added"].all() else color
        handles.append(Line2D([], [], **look, markersize=6.5, markerfacecolor=fill, label=label))
    if cohorts != [""]:
        fig.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=min(2, len(handles)),
                   handletextpad=0.3, columnspacing=1.8, borderaxespad=0.2)
    points, labels = _joined(ax, table)
    sample = np.geomspace(max(low[0], 0.3), high[0], 120)
    guides = [(x, r * x) for r in ratios for x in sample if low[1] <= r * x <= high[1]]
    drawing.place(ax, points, labels, sizes=[8] * len(points), others=values, soft=guides, taken=[note])
    return fig


def roc(curves):
    """Draw receiver operating characteristic curves with their areas in direct labels.

    Parameters
    ----------
    curves : DataFrame
        Long: ``view`` (str), ``fpr``, ``tpr`` (fractions, points in drawing order) and ``auc`` (the view's
        area, the same on each of its lines).

    Returns
    -------
    matplotlib.figure.Figure
        One line a view, in the order of the frame, each tied to its name and area.

    Raises
    ------
    DataError
        If the frame is empty, a column is missing, or a view has more than one area.

    References
    ----------
    Measuring Collapse and Correction in Homogeneous-Panel LLM Debate, sec. 5.1 and app. E.1.

    Examples
    --------
    >>> table = pd.DataFrame({"view": "coin", "fpr": [0.0, 1.0], "tpr": [0.0, 1.0], "auc": 0.5})
    >>> [text.get_text() for text in roc(table).axes[0].texts]
    ['coin\\nAUC 0.500']
    """
    table = drawing.checked("roc", curves, ["view", "fpr", "tpr", "auc"])
    several = table.groupby("view", sort=False)["auc"].nunique(dropna=False)
    if (several > 1).any():
        raise DataError(f"roc, view {several.idxmax()!r}: {several.max()} values of auc; expected one a view")
    _, soft, _, _ = drawing.inks()
    fig = drawing.figure(6.2, 5.2)
    width, height = fig.get_size_inches()
    ax = fig.add_axes((0.7 / width, 0.55 / height, 1 - 0.95 / width, 1 - 0.75 / height))
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="False positive rate (share of other debates flagged)",
           ylabel="True positive rate (share of collapses flagged)")
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.grid(True)
    ax.plot([0, 1], [0, 1], color=soft, linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    colors = drawing.cycle(ACCENTS, len(several))
    dashes = drawing.cycle([(0, (6, 2)), (0, (3, 1.4)), "-", (0, (7, 2, 1.5, 2))], len(several))
    traces, labels = [], []
    for view, color, dash in zip(several.index, colors, dashes):
        part = table[table["view"] == view]
        ax.plot(part["fpr"], part["tpr"], color=color, linewidth=2.0, linestyle=dash, clip_on=False, zorder=2)
        traces.append(drawing.even(part["fpr"], part["tpr"], 80))
        labels.append(f"{drawing.wrap(view, 26)}\nAUC {part['auc'].iloc[0]:.3f}")
    chance = drawing.even([0, 1], [0, 1], 80)
    drawing.place(ax, [trace[20:64:4] for trace in traces], labels, others=np.concatenate([chance, *traces]),
                  pad=4, colors=colors)
    return fig


def _stack(ax, y, table, of, colors, *, edge=None, numbers=True):
    """Stacked bars of the columns named in `colors`, in shares of the column `of`."""
    ink, _, _, ground = drawing.inks()
    pixels = ax.get_window_extent().width
    left = before = np.zeros(len(table))
    for part, color in colors.items():
        share = (table[part] / table[of].where(table[of] > 0)).fillna(0).to_numpy(float)
        outline = ink if color == "none" else edge
        ax.barh(y, share, left=left, height=_BAR, color=color, edgecolor=outline,
                linewidth=0.6 if outline else 0, label=part, clip_on=False)
        if edge is None:  # a gap between neighbours, but never at the cost of a segment a few pixels wide
            wide = (np.minimum(share, before) * pixels > 6) & (left > 0)
            ax.vlines(left[wide], y[wide] - _BAR / 2, y[wide] + _BAR / 2, color=ground, linewidth=1.0)
        for at, start, size, number in zip(y, left, share, table[part]):
            text = drawing.count(number)
            if numbers and size * pixels > drawing.extent(ax.figure, text, 8)[0] + 6:
                ax.text(start + size / 2, at, text, ha="center", va="center_baseline", size=8,
                        color=ink if color == "none" else drawing.on(color))
        left, before = left + share, share
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _legend(fig, entries, *, edge=None, title=None):
    """Legend of coloured patches in one line above the plot."""
    ink = drawing.inks()[0]
    handles = [
        Patch(facecolor=color, edgecolor=ink if color == "none" else edge or color, lw=0.6, label=label)
        for label, color in entries.items()
    ]
    if title:
        handles.insert(0, Patch(facecolor="none", edgecolor="none", label=title))
    legend = fig.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=len(handles),
                        handlelength=1.1, columnspacing=1.5 if len(handles) < 8 else 0.9, borderaxespad=0.2)
    if title:
        legend.legend_handles[0].set_visible(False)


def _scatter(fig, right, rows, means, names, dropped):
    """Left part of `association`; `right` inches are kept for the rankings."""
    width, height = fig.get_size_inches()
    _, soft, _, ground = drawing.inks()
    ax = fig.add_axes((0.72 / width, 0.55 / height, (width - right - 1.05) / width, 1 - 0.9 / height))
    x, y = (np.concatenate([rows[c], means[c]]).astype(float) for c in ("alpha_tot", "c_cond"))
    pad = max(0.06, 0.1 * np.ptp(x))
    top = max(1.18 * y.max(), 0.03)
    ax.set_yscale("function", functions=(lambda v: np.sqrt(np.clip(v, 0, None)), np.square))
    ax.set(xlim=(max(0, x.min() - pad), x.max() + pad), ylim=(0, top))
    ticks = np.array([0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0])
    ax.yaxis.set_major_locator(FixedLocator(ticks[ticks <= top]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    ax.grid(axis="y")
    ax.set_xlabel("Total flip rate α (share of probes that change the answer)")
    ax.set_ylabel("Conditional collapse (square-root scale)")
    spokes = []
    centres = means.set_index("family")[["alpha_tot", "c_cond"]].astype(float)
    for row in rows[~rows["added"] & rows["family"].isin(centres.index)].itertuples():
        mean = centres.loc[row.family]
        ax.plot([row.alpha_tot, mean["alpha_tot"]], [row.c_cond, mean["c_cond"]], color=soft, linewidth=0.7,
                zorder=1)
        heights = np.linspace(np.sqrt(row.c_cond), np.sqrt(mean["c_cond"]), 20) ** 2  # straight on this scale
        spokes.extend(zip(np.linspace(row.alpha_tot, mean["alpha_tot"], 20), heights))
    for added in (False, True):
        part = rows[rows["added"] == added]
        ax.plot(part["alpha_tot"], part["c_cond"], linestyle="none", marker="D" if added else "o",
                markersize=5.5 if added else 3.6, markerfacecolor=ground if added else soft,
                markeredgecolor=soft, markeredgewidth=1.3 if added else 0, clip_on=False, zorder=2)
    ax.plot(means["alpha_tot"], means["c_cond"], linestyle="none", marker="o", markersize=9, color=ACCENTS[0],
            alpha=0.85, clip_on=False, zorder=3)
    if dropped:
        note = f"{dropped} row{'s' if dropped > 1 else ''} without both numbers not drawn"
        fig.text(0.01, 1 - 0.06 / height, note, va="top", size=8, color=soft)
    extra = rows[rows["added"]]
    values = ["alpha_tot", "c_cond"]
    drawing.place(
        ax,
        np.concatenate([means[values], extra[values]]).astype(float),
        [*names, *(drawing.wrap(f"▸ {row} (added)", 27) for row in extra["row"])],
        sizes=[9.5 if len(means) <= 9 else 8] * len(means) + [8] * len(extra),
        bold=[len(means) <= 9] * len(means) + [False] * len(extra),
        others=rows[values].to_numpy(float),
        soft=spokes,
    )


def _ranks(fig, margin, means, names, heads):
    """Right part of `association`: one line a family from its rank on one measure to that on the other."""
    width, height = fig.get_size_inches()
    _, soft, grid, _ = drawing.inks()
    ax = fig.add_axes(((width - margin - 0.95) / width, 0.55 / height, 0.95 / width, 1 - 0.9 / height))
    by_alpha, by_collapse = (means[c].rank().to_numpy() for c in ("alpha_tot", "c_cond"))
    for a, c in zip(by_alpha, by_collapse):
        crosses = ((by_alpha - a) * (by_collapse - c) < 0).any()
        ax.plot([0, 1], [a, c], color=ACCENTS[0] if crosses else soft, zorder=3 if crosses else 2, marker="o",
                markersize=4.5, linewidth=1.6 if crosses else 1.1, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0.5, len(means) + 0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.vlines([0, 1], 0.8, len(means) + 0.2, color=grid, linewidth=0.8, zorder=0)
    beside = {"textcoords": "offset points", "size": 8.5}
    for side, values, align, shift in ((0, by_alpha, "right", -7), (1, by_collapse, "left", 7)):
        for name, at in zip(names, drawing.spread(values, 0.8)):
            ax.annotate(name, (side, at), (shift, 0), ha=align, va="center", **beside)
        ax.annotate(heads[side], (side, 1), (-shift / 2, 2), xycoords="axes fraction", ha=align, va="bottom",
                    **beside)
    ax.annotate("lines that cross:\norder differs", (0.5, 0), (0, -6), xycoords="axes fraction",
                textcoords="offset points", ha="center", va="top", size=8, color=soft)


def _rays(fig, ax, ratios, zero):
    """Break-even rays, labelled where they leave the plot, and the region of gain; returns the note's box."""
    ink, soft, grid, _ = drawing.inks()
    (low_x, right), (low_y, top) = ax.get_xlim(), ax.get_ylim()
    x = np.geomspace(max(low_x, 1e-3), right, 400)
    x = np.concatenate([[0.0], x]) if zero else x
    box = ax.get_window_extent()
    for ratio in ratios:
        ax.plot(x, ratio * x, color=soft, zorder=1, linewidth=1.4 if ratio == 1 else 0.9,
                linestyle="-" if ratio == 1 else (0, (5, 3)))
    for over in (False, True):
        names = [ratio for ratio in ratios if (ratio * right > top) == over and ratio * right > low_y]
        ends = [(top / r, top) if over else (right, r * right) for r in names]
        ends = ax.transData.transform(np.reshape(ends, (-1, 2)).astype(float)) - [box.x0, box.y0]
        ends = ends[:, 0] if over else ends[:, 1]
        gap = max((drawing.extent(fig, f"r = {r:g}", 8.5)[0] + 6 for r in names), default=0) if over else 14
        for ratio, at in zip(names, drawing.spread(ends, gap)):
            where, shift = ((at / box.width, 1), (0, 4)) if over else ((1, at / box.height), (4, 0))
            ax.annotate(f"r = {ratio:g}", where, shift, xycoords="axes fraction", textcoords="offset points",
                        ha="center" if over else "left", va="bottom" if over else "center", size=8.5,
                        color=ink)
    ax.fill_between(x, low_y, np.maximum(x, low_y), color=grid, alpha=0.35, linewidth=0, zorder=0)
    note = ax.annotate("gain at equal weights", (1, 0), (-6, 6), xycoords="axes fraction",
                       textcoords="offset points", ha="right", va="bottom", size=8.5, color=soft,
                       style="italic")
    return note.get_window_extent(fig.canvas.get_renderer())


def _joined(ax, table):
    """Points and labels of the gates; points of one gate that the eye cannot part share one label."""
    pixels = ax.transData.transform(table[["prevented", "lost"]].to_numpy(float))
    points, labels, at = [], [], []
    for line, pixel in zip(table.itertuples(), pixels):
        name = drawing.wrap(f"▸ {line.gate} (added)" if line.added else line.gate, 34, 1)
        numbers = f"{drawing.count(line.prevented)} / {drawing.count(line.lost)}"
        near = [k for k, label in enumerate(labels) if label[0] == name and np.abs(at[k] - pixel).max() < 8]
        if near:
            labels[near[0]][1].append(numbers)
        else:
            points.append((line.prevented, line.lost))
            labels.append((name, [numbers]))
            at.append(pixel)
    return points, [f"{name}: {', '.join(numbers)}" for name, numbers in labels]
