"""What the figures share: colours, the two themes, text beside plots, labels that do not cover each other.

Nothing here knows of debates; `analysis.figures` holds the drawings themselves.
"""

import base64
import html
import io
import re
from dataclasses import dataclass

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from . import exhibits
from .errors import DataError, choice

# Luminances between 0.12 and 0.30 keep at least 3:1 against white and against #121212; cells that touch in a
# bar stay far apart under simulated protanopia, deuteranopia and tritanopia.
CELL_COLORS = {
    "preserved": "#1BA37A", "collapse": "#D55E00", "correction": "#2166AC", "unrepaired": "#6F6F78",
}
# Hues that none of the four cells uses, for what is not a cell.
ACCENTS = ("#8A63C7", "#B07D00", "#C2527F", "#0E8A9A", "#7A8B2A", "#A0705A")
WIDTH = 7.4  # inches

_BASE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.solid_capstyle": "butt",
    "path.simplify": True,
    # Text as outlines looks the same on every machine; a fixed salt and no date give the same bytes again.
    "svg.fonttype": "path",
    "svg.hashsalt": "debate-ledger",
}
_THEMES = {
    "light": {"ink": "#1B1B1B", "soft": "#5A5A5A", "grid": "#D5D5D5", "ground": "#FFFFFF"},
    "dark": {"ink": "#DCDCDC", "soft": "#A8A8A8", "grid": "#444444", "ground": "#121212"},
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_FIGURE_SPACE = "\u2007"  # as wide as a digit: keeps right-aligned columns in step
# Notebook viewers know no class "only-dark" and would show both pictures: the rule travels with the figure.
_ONE_THEME = (
    "<style>.ledger-figure img.only-dark{display:none}"
    'html[data-theme="dark"] .ledger-figure img.only-dark,'
    '[data-jp-theme-light="false"] .ledger-figure img.only-dark{display:inline-block}'
    '[data-jp-theme-light="false"] .ledger-figure img.only-light{display:none}</style>'
)


def style(theme="light"):
    """Matplotlib settings of one theme of the book.

    Parameters
    ----------
    theme : {"light", "dark"}
        Near-black ink for a white page or light-grey ink for a near-black one.

    Returns
    -------
    dict
        Settings for ``matplotlib.rc_context``.

    Raises
    ------
    ValueError
        If `theme` is unknown.

    Examples
    --------
    >>> style("dark")["text.color"]
    '#DCDCDC'
    """
    colors = _THEMES[choice("theme", theme, tuple(_THEMES))]
    return _BASE | {
        "text.color": colors["ink"],
        "axes.labelcolor": colors["ink"],
        "axes.edgecolor": colors["soft"],
        "axes.facecolor": colors["ground"],
        "figure.facecolor": colors["ground"],
        "xtick.color": colors["soft"],
        "ytick.color": colors["soft"],
        "xtick.labelcolor": colors["ink"],
        "ytick.labelcolor": colors["ink"],
        "grid.color": colors["grid"],
        "grid.linewidth": 0.7,
    }


def inks():
    """Colours of text, secondary text, grid and page under the settings in force."""
    keys = ("text.color", "xtick.color", "grid.color", "figure.facecolor")
    return tuple(matplotlib.rcParams[key] for key in keys)


@dataclass(frozen=True, repr=False)
class ThemedFigure:
    """One figure as two SVG pictures, one a theme, with alt text and caption.

    Notebooks show its HTML form; its plain-text form is the alt text. There is no PNG form, so that a page
    never holds a third picture.

    Attributes
    ----------
    alt, caption, name : str
        As given to `themed`.
    svg : dict of str to bytes
        The pictures, by theme.
    """

    alt: str
    caption: str
    name: str
    svg: dict
    exhibit: str | tuple | None = None

    def _repr_html_(self):
        alt = html.escape(self.alt, quote=True)
        images = []
        for theme, data in self.svg.items():
            box = re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', data).groups()
            width, height = (round(float(points) * 96 / 72) for points in box)
            images.append(
                f'<img class="only-{theme}" alt="{alt}" width="{width}" height="{height}" '
                f'style="max-width:100%;height:auto;min-width:min(34rem,{width}px)" '
                f'src="data:image/svg+xml;base64,{base64.b64encode(data).decode("ascii")}">'
            )
        return (
            f'<figure class="ledger-figure" id="figure-{self.name}">{_ONE_THEME}'
            '<div class="ledger-figure-scroll" style="overflow-x:auto" tabindex="0" role="group" '
            f'aria-label="Figure: {self.name.replace("-", " ")}">{"".join(images)}</div>'
            f"<figcaption>{exhibits.badge(self.exhibit)}{html.escape(self.caption, quote=False)}</figcaption></figure>"
        )

    def __repr__(self):
        return self.alt


def themed(draw, *args, alt, caption, name, exhibit=None, **options):
    """Draw one figure for the light and the dark theme.

    Parameters
    ----------
    draw : callable
        Function that returns a matplotlib ``Figure``; called once a theme as ``draw(*args, **options)``.
    *args, **options
        Passed to `draw`.
    alt : str
        What the picture shows, for readers who do not see it. Put on both pictures.
    caption : str
        Text under the figure; states unit and denominator. Plain text: it is escaped.
    name : str
        Short name in lower-case letters, digits and hyphens; the HTML id is ``figure-<name>``.
    exhibit : str or sequence of str, optional
        Tables or figures of the paper that this one stands for, as in `book.show`.

    Returns
    -------
    ThemedFigure
        Its HTML form is ``<figure class="ledger-figure">`` with two transparent SVG pictures.

    Raises
    ------
    ValueError
        If alt text or caption is blank, or `name` has other characters.

    Examples
    --------
    >>> shown = themed(Figure, figsize=(1, 1), alt="Nothing.", caption="Unit: none.", name="empty-page")
    >>> shown
    Nothing.
    >>> sorted(shown.svg)
    ['dark', 'light']
    """
    for field, text in (("alt", alt), ("caption", caption)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{field}={text!r}: expected a text that is not blank")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name={name!r}: expected lower-case letters, digits and single hyphens")
    svg = {}
    for theme in _THEMES:
        with matplotlib.rc_context(style(theme)):
            buffer = io.BytesIO()
            draw(*args, **options).savefig(buffer, format="svg", transparent=True, metadata=_NO_METADATA)
            svg[theme] = re.sub(rb">\s+<", b"><", buffer.getvalue())
    return ThemedFigure(alt=alt, caption=caption, name=name, svg=svg, exhibit=exhibit)


def checked(name, data, columns):
    """Copy of the frame with a boolean column `added`, after the checks that every figure makes."""
    if not isinstance(data, pd.DataFrame):
        raise TypeError(f"{name}: got {type(data).__name__}; expected a DataFrame")
    data = data.reset_index(drop=data.index.name not in set(columns) - set(data.columns))
    missing = [column for column in columns if column not in data]
    if missing:
        raise DataError(f"{name}: no column {', '.join(missing)}; expected {', '.join(columns)}")
    if data.empty:
        raise DataError(f"{name}: the frame has no lines; expected at least one")
    return data.assign(added=data["added"].eq(True).fillna(False).astype(bool) if "added" in data else False)


def added_last(table):
    """The same lines, those marked as added at the end."""
    return table.sort_values("added", kind="stable", ignore_index=True)


def count(value):
    """Count with thousands separator; expected-credit counts keep one decimal, a missing one is a dash.

    Examples
    --------
    >>> count(2003), count(12.5), count(float("nan"))
    ('2,003', '12.5', '–')
    """
    if pd.isna(value):
        return "–"
    value = round(float(value), 1)
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def k_of_n(k, n):
    """`k/n` and its percentage, set so that a right-aligned column keeps step."""
    percent = f"{100 * k / n:.1f}%" if n > 0 else "–"
    return f"{count(k)}/{count(n)} {percent.rjust(6, _FIGURE_SPACE)}"


def k_and_share(k, n):
    """Count and percentage where the denominator stands elsewhere on the line."""
    percent = f"({100 * k / n:.1f}%)" if n > 0 and pd.notna(k) else "–"
    return f"{count(k)} {percent.rjust(8, _FIGURE_SPACE)}"


def wrap(text, width, lines=2):
    """Break a name over at most `lines` lines of `width` characters; a longer one loses its middle.

    Names of models differ most at their ends, and a mark such as "(added)" stands there.

    Examples
    --------
    >>> wrap("provider/some-model-9b", 16)
    'provider/some-\\nmodel-9b'
    >>> wrap("provider/some-much-longer-model-9b", 16, 1)
    'provide…model-9b'
    """
    text = " ".join(str(text).split())
    for kept in range(len(text), 0, -1):
        cut = kept < len(text)
        short = f"{text[: kept // 2].rstrip()}…{text[len(text) - (kept - kept // 2) :]}" if cut else text
        rows = [""]
        # Long model names have few blanks: they may break after a hyphen, slash, colon or underscore as well.
        for token in re.findall(r"[^\s/_:-]+[\s/_:-]?|[\s/_:-]", short):
            if rows[-1] and len((rows[-1] + token).rstrip()) > width:
                rows.append("")
            rows[-1] += token
        rows = [row.strip() for row in rows]
        if len(rows) <= lines and max(map(len, rows)) <= width:
            return "\n".join(rows)
    return text[:width]


def on(color):
    """Black or white, whichever reads better on `color`."""
    return "#000000" if luminance(color) > 0.179 else "#FFFFFF"  # where both contrasts are equal


def luminance(color):
    """Relative luminance of a colour, 0 to 1 (WCAG 2)."""
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def shades(color, number):
    """`number` steps from `color` towards white, the first being `color` itself."""
    return [to_hex(np.array(to_rgb(color)) * (1 - t) + t) for t in np.linspace(0, 0.75, number)]


def cycle(values, number):
    """The first `number` of the values, repeated as needed."""
    return [values[k % len(values)] for k in range(number)]


def figure(width, height):
    """Figure outside pyplot's list, with a canvas that can tell text sizes before anything is saved."""
    fig = Figure(figsize=(width, height))
    FigureCanvasAgg(fig)
    return fig


def extent(fig, text, size, weight="normal"):
    """Width and height of a text in pixels."""
    probe = fig.text(0, 0, text, size=size, weight=weight)
    box = probe.get_window_extent(fig.canvas.get_renderer())
    probe.remove()
    return np.array([box.width, box.height])


def lines(table, first, columns, *, per_line, legend=0.0, rule_after=None, split=True):
    """Axes with one line a row, first on top; names and counts at the left, columns of text at the right.

    Margins follow the measured texts; the figure grows wider before the plot gets narrower than 2.4 inches.

    Parameters
    ----------
    table : DataFrame
        Columns `row` and `added`.
    first : pair (heading, texts) or None
        Column between the names and the plot.
    columns : list of pairs (heading, texts)
        Columns right of the plot.
    per_line, legend : float
        Height in inches of a line and of the room kept free on top.
    rule_after : int, optional
        Line under which a rule is drawn.
    split : bool
        Draw a rule between the paper's rows and the added ones, which must come last.

    Returns
    -------
    tuple
        Figure, axes, and the lines' vertical positions, ndarray of shape (n,).
    """
    fig = figure(WIDTH, 4)
    names = table["row"].astype(str).mask(table["added"], "▸ " + table["row"].astype(str) + " (added)")
    names = [wrap(name, 27) for name in names]

    def inches(texts, size):
        return max(extent(fig, text, size)[0] for text in texts) / fig.dpi

    def room(column):
        return max(inches(column[1], 8.5), inches([column[0]], 8)) + 0.18

    before = room(first) - 0.06 if first else 0.0
    left = inches(names, 9) + before + 0.18
    rooms = [room(column) for column in columns]
    width = max(WIDTH, left + 2.4 + sum(rooms) + 0.12)
    y = np.arange(len(names), dtype=float)
    rules = {rule_after} - {None}
    if split and table["added"].nunique() == 2:
        rules.add(int((~table["added"]).sum()) - 1)
    rules = [rule for rule in sorted(rules) if rule < len(names) - 1]
    for rule in rules:
        y[rule + 1 :] += 0.35
    every = [first, *columns] if first else columns
    top = 0.08 + legend + 0.15 * (1 + max(heading.count("\n") for heading, _ in every))
    body = per_line * (y[-1] + 1)
    height = top + body + 0.55
    fig.set_size_inches(width, height)
    span = (width - left - sum(rooms) - 0.1) / width
    ax = fig.add_axes((left / width, 0.55 / height, span, body / height))
    ax.set_ylim(y[-1] + 0.5, -0.5)
    ax.set_yticks(y, names)
    ax.tick_params(axis="y", length=0, labelsize=9, pad=(before + 0.1) * 72)
    ax.spines["left"].set_visible(False)

    _, soft, _, _ = inks()
    place = blended_transform_factory(fig.transFigure, ax.transData)
    ends = [left - 0.1] if first else []
    ends += [width - 0.03 - sum(rooms[k + 1 :]) for k in range(len(rooms))]
    for (heading, texts), end in zip(every, ends):
        for at, text in zip(y, texts):
            fig.text(end / width, at, text, transform=place, ha="right", va="center_baseline", size=8.5)
        fig.text(end / width, 1 - (top - 0.04) / height, heading, ha="right", va="bottom", size=8,
                 color=soft, linespacing=1.1)
    for rule in rules:
        middle = (y[rule] + y[rule + 1]) / 2
        fig.add_artist(Line2D([0.01, 0.99], [middle, middle], transform=place, linewidth=0.8,
                              linestyle=(0, (2, 3)), color=soft))
    return fig, ax, y


def spread(values, gap):
    """Positions as close to `values` as their order and a least distance allow.

    Examples
    --------
    >>> spread([3.0, 0.0, 3.0], 1.0).tolist()
    [2.5, 0.0, 3.5]
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    # Neighbours that would touch are pooled into runs, each centred on the mean its members asked for.
    runs = []
    for value in values[order]:
        runs.append((value, 1))
        while len(runs) > 1 and runs[-1][0] - runs[-2][0] < gap * (runs[-1][1] + runs[-2][1]) / 2:
            (high, m), (low, n) = runs.pop(), runs.pop()
            runs.append(((low * n + high * m) / (n + m), n + m))
    result = np.empty_like(values)
    if runs:
        result[order] = np.concatenate([at + gap * (np.arange(size) - (size - 1) / 2) for at, size in runs])
    return result


def place(ax, points, texts, *, sizes=None, bold=None, others=(), soft=(), taken=(), pad=6, colors=None):
    """Label points where the text hides nothing.

    Each label takes the cheapest of many places around its point: other labels and points must not be
    covered, guide lines should not be, near is better than far. Two more rounds let early labels give way to
    later ones. A thin line ties a label that had to move away.

    Parameters
    ----------
    ax : Axes
        With its final limits and scales.
    points : list of array_like, shape (2,) or (k, 2)
        Data coordinates of the point of each label, or of k points to choose from.
    texts : list of str
        The labels.
    sizes, bold : list, optional
        Font size in points and weight of each label.
    others, soft : array_like, shape (m, 2)
        Points that labels must not and should not cover.
    taken : list of Bbox
        Pixels that are in use.
    pad : float
        Distance in points kept from other points.
    colors : list of str, optional
        Colour of each tie, which is then drawn at any distance and ends in a dot.
    """
    fig = ax.figure
    scale = fig.dpi / 72
    frame = np.array([ax.get_window_extent().extents])
    to_pixels = ax.transData.transform
    anchors = [to_pixels(np.atleast_2d(np.asarray(point, dtype=float))) for point in points]
    hard = [to_pixels(np.asarray(others, dtype=float).reshape(-1, 2)), *(a for a in anchors if len(a) == 1)]
    hard = np.unique(np.concatenate(hard).round(1), axis=0)
    faint = to_pixels(np.asarray(soft, dtype=float).reshape(-1, 2))
    angles = np.deg2rad([0, 180, 45, -45, 135, -135, 90, -90, 20, -20, 160, -160, 65, -65, 115, -115])
    radii = np.array([9, 13, 18, 24, 31, 39, 48, 60, 75, 95, 120, 150, 190])[2 if colors else 0 :] * scale
    moves = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sizes = sizes or [9] * len(texts)
    weights = ["bold" if bold and bold[k] else "normal" for k in range(len(texts))]
    halves = [extent(fig, text, size, weight) / 2 for text, size, weight in zip(texts, sizes, weights)]
    placed = [None] * len(texts)
    for _ in range(3):
        for k, half in enumerate(halves):
            shape = (len(anchors[k]), len(radii), len(moves))
            pick, far, way = (index.ravel() for index in np.indices(shape))
            anchor, radius, move = anchors[k][pick], radii[far], moves[way]
            centre = anchor + move * (radius[:, None] + half)
            box = np.hstack([centre - half - 2 * scale, centre + half + 2 * scale])
            rivals = [other[2] for j, other in enumerate(placed) if other is not None and j != k]
            rivals = np.array([*(used.extents for used in taken), *rivals]).reshape(-1, 4)
            own = (np.abs(hard - anchor[0]) < 0.2).all(axis=1) & (len(anchors[k]) == 1)
            strangers = hard[~own]
            covered = _overlap(box, rivals)
            cost = radius + 4000 * (1 - _overlap(box, frame)[:, 0])
            cost += np.where(covered > 0, 600 + 3000 * covered, 0).sum(axis=1)
            cost += 400 * _within(box, strangers, (pad - 2) * scale)
            cost += 4 * np.minimum(_within(box, faint, 0), 12)
            if len(anchors[k]) == 1:  # a label beside a foreign point would seem to name it
                cost += 25 * np.minimum(_within(box, strangers, (pad + 8) * scale), 4)
            # What the tie crosses is costly to find out, so only for places that are good otherwise.
            short = np.argsort(cost.round(6), kind="stable")[:120]
            along = np.linspace(0.2, 1, 12)[:, None]
            tie = anchor[short, None] + (centre - move * half - anchor)[short, None] * along
            near = np.abs(tie[:, :, None] - strangers).max(axis=3) < 2.5 * scale
            inside = ((tie[:, :, None] > rivals[:, :2]) & (tie[:, :, None] < rivals[:, 2:])).all(axis=3)
            crossed = 30 * near.any(axis=2).sum(axis=1) + 80 * inside.any(axis=2).sum(axis=1)
            best = short[np.argmin((cost[short] + crossed * (radius[short] > 15 * scale)).round(6))]
            placed[k] = (anchor[best], centre[best], box[best], radius[best])
    for k, (anchor, centre, _, radius) in enumerate(placed):
        x, y = ax.transData.inverted().transform(anchor)
        color = colors[k] if colors else inks()[1]
        tie = {"arrowstyle": "-", "linewidth": 1.2 if colors else 0.7, "color": color, "shrinkA": 1}
        tie["shrinkB"] = 0 if colors else 4
        ax.annotate(texts[k], (x, y), (centre - anchor) / scale, textcoords="offset points", ha="center",
                    va="center", size=sizes[k], weight=weights[k], zorder=5, annotation_clip=False,
                    arrowprops=tie if colors or radius > 15 * scale else None)
        if colors:
            ax.plot(x, y, marker="o", markersize=5, color=color, zorder=4)


def _overlap(boxes, others):
    """Share of each of n boxes (lines) that each of m others (columns) covers."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return np.prod(np.clip(high - low, 0, None), axis=2) / area[:, None]


def _within(boxes, points, margin):
    """Number of points in each box or within `margin` of it."""
    low, high = boxes[:, None, :2] - margin, boxes[:, None, 2:] + margin
    return ((points[None] > low) & (points[None] < high)).all(axis=2).sum(axis=1)


def even(x, y, number):
    """`number` points at equal distances along a line, ndarray of shape (number, 2)."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    along = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    at = np.linspace(0, along[-1], number)
    return np.column_stack([np.interp(at, along, x), np.interp(at, along, y)])
