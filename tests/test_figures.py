"""Figures: what is drawn equals the columns given, in both themes, the same bytes every time."""

import base64
import re
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.text import Text

from analysis import drawing, figures
from analysis.errors import DataError

CELLS = ["preserved", "collapse", "correction", "unrepaired"]
NBSP = "\u2007"


@pytest.fixture
def summary():
    """Three rows with counts chosen so that shares and rates are easy to work out by hand."""
    return pd.DataFrame({
        "row": ["small", "new one", "large"],
        "n": [20, 10, 2000],
        "preserved": [10, 4, 900],
        "collapse": [2, 1, 100],
        "correction": [0, 2, 250],
        "unrepaired": [8, 3, 750],
        "init_correct": [12, 5, 1000],
        "init_wrong": [8, 5, 1000],
        "c_cond": [2 / 12, 1 / 5, 0.1],
        "c_cond_low": [0.05, 0.04, 0.08],
        "c_cond_high": [0.45, 0.62, 0.12],
        "added": [False, True, False],
    })


@pytest.fixture
def models():
    return pd.DataFrame({
        "row": ["a1", "a2", "b1", "c1", "new"],
        "family": ["A", "A", "B", "C", "A"],
        "alpha_tot": [0.2, 0.4, 0.5, 0.8, 0.6],
        "c_cond": [0.0, 0.02, 0.30, 0.10, 0.20],
        "added": [False, False, False, False, True],
    })


@pytest.fixture
def families():
    return pd.DataFrame({
        "family": ["A", "B", "C"], "alpha_tot": [0.3, 0.5, 0.8], "c_cond": [0.01, 0.30, 0.10],
    })


@pytest.fixture
def onsets():
    return pd.DataFrame({
        "row": ["m", "zero", "pooled"], "collapse": [8, 0, 8], "round_1": [4, 0, 4], "round_2": [2, 0, 2],
        "round_3": [1, 0, 1], "unlocalized": [1, 0, 1],
    })


@pytest.fixture
def gates():
    return pd.DataFrame({
        "gate": ["freeze", "rule", "stump"], "cohort": ["one", "two", "two"], "n": [500, 90, 90],
        "prevented": [29, 56, 2], "lost": [108, 69, 31],
    })


@pytest.fixture
def curves():
    low = pd.DataFrame({"view": "low", "fpr": [0, 0.5, 1], "tpr": [0, 0.6, 1], "auc": 0.55})
    high = pd.DataFrame({"view": "high", "fpr": [0, 0.2, 1], "tpr": [0, 0.8, 1], "auc": 0.8})
    return pd.concat([low, high])


def texts(ax):
    return [text.get_text() for text in ax.texts]


def written(fig):
    return [text.get_text() for text in fig.texts]


def line_ends(ax):
    """Horizontal segments (low, high, y) of the line collections."""
    return [(s[0, 0], s[1, 0], s[0, 1]) for c in ax.collections for s in c.get_segments()]


def markers(ax, face):
    """Points drawn with markers of one face colour."""
    found = []
    for line in ax.lines:
        marked = line.get_marker() not in ("None", "", None)
        if marked and same_color(line.get_markerfacecolor(), face):
            found += list(zip(line.get_xdata(), line.get_ydata()))
    return found


def boxes(fig, labels):
    fig.canvas.draw()
    renderer = fig.canvas.get_renderer()
    return [Text.get_window_extent(label, renderer) for label in labels]  # of an annotation, without its line


# --- cells --------------------------------------------------------------------------------------------------


def test_segments_are_the_shares_in_the_shared_colours_with_added_rows_last(summary):
    ax = figures.cells(summary).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["small", "large", "▸ new one (added)"]
    by_hand = {
        "preserved": [0.5, 0.45, 0.4], "collapse": [0.1, 0.05, 0.1],
        "correction": [0.0, 0.125, 0.2], "unrepaired": [0.4, 0.375, 0.3],
    }
    assert [bars.get_label() for bars in ax.containers] == CELLS
    start = np.zeros(3)
    for bars in ax.containers:
        assert [bar.get_width() for bar in bars] == pytest.approx(by_hand[bars.get_label()])
        assert [bar.get_x() for bar in bars] == pytest.approx(start)
        start += by_hand[bars.get_label()]
        color = figures.CELL_COLORS[bars.get_label()]
        assert all(same_color(bar.get_facecolor(), color) for bar in bars)
    assert start == pytest.approx([1, 1, 1])


def test_cells_print_counts_and_denominators(summary):
    fig = figures.cells(summary)
    # Not among them: 0 of 20, which has no segment, and 100 of 2,000, whose segment is narrower than "100".
    assert sorted(texts(fig.axes[0])) == sorted("10 900 4 2 1 250 2 8 750 3".split())
    shown = written(fig)
    assert {"20", "2,000", "10"} <= set(shown)
    assert f"100/1,000 {NBSP}10.0%" in shown
    assert f"250/1,000 {NBSP}25.0%" in shown
    assert f"0/8 {NBSP * 2}0.0%" in shown
    legend = [t.get_text().split()[0] for t in fig.legends[0].get_texts()]
    assert legend == CELLS


def test_counts_stay_inside_their_segments(summary):
    summary.loc[0, ["preserved", "collapse", "correction", "unrepaired"]] = [989, 1, 5, 5]
    summary.loc[0, "n"] = 1000
    fig = figures.cells(summary)
    ax = fig.axes[0]
    segments = [bar.get_window_extent() for bars in ax.containers for bar in bars if bar.get_width() > 0]
    assert "989" in texts(ax)
    assert "5" not in texts(ax)  # half a percent of the width
    for box in boxes(fig, ax.texts):
        middle = (box.y0 + box.y1) / 2
        assert any(s.x0 <= box.x0 and box.x1 <= s.x1 and s.y0 < middle < s.y1 for s in segments)


def test_debates_without_a_cell_fill_the_bar_as_an_outline(summary):
    summary["undefined"] = [0, 0, 200]
    summary["n"] = [20, 10, 2200]
    bars = figures.cells(summary).axes[0].containers
    assert bars[-1].get_label() == "undefined"
    assert [bar.get_width() for bar in bars[-1]] == pytest.approx([0, 1 / 11, 0])
    assert bars[-1][1].get_facecolor()[3] == 0
    assert bars[-1][1].get_x() == pytest.approx(10 / 11)


def test_extreme_rows_are_drawn_whole():
    rows = pd.DataFrame({
        "row": ["all gone", "nothing", "$x_{1}$ <b>"], "n": [1, 0, 3], "preserved": [0, 0, 3],
        "collapse": [1, 0, 0], "correction": 0, "unrepaired": 0, "init_correct": [1, 0, 3], "init_wrong": 0,
    })
    fig = figures.cells(rows)
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in fig.axes[0].containers}
    assert widths["collapse"] == [1, 0, 0]
    assert widths["preserved"] == [0, 0, 1]
    assert "1/1 100.0%" in written(fig)
    assert f"0/0 {NBSP * 5}–" in written(fig)
    with matplotlib.rc_context(figures.style()):
        name = figures.cells(rows).axes[0].get_yticklabels()[-1]
    assert name.get_text() == "$x_{1}$ <b>"
    assert not name.get_parse_math()  # a name is never read as a formula


# --- forest -------------------------------------------------------------------------------------------------


def test_forest_draws_the_given_interval_ends_sorted(summary):
    fig = figures.forest(summary)
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["small", "large", "▸ new one (added)"]
    below = ax.get_yticks()[2]
    assert below > 2  # a gap, and a rule in it, sets the added row apart
    ends = [(0.05, 0.45, 0), (0.08, 0.12, 1), (0.04, 0.62, below)]
    assert np.array(line_ends(ax)) == pytest.approx(np.array(ends))
    filled = markers(ax, figures.CELL_COLORS["collapse"])
    assert np.array(filled) == pytest.approx(np.array([(2 / 12, 0), (0.1, 1)]))
    hollow = markers(ax, matplotlib.rcParams["figure.facecolor"])
    assert np.array(hollow) == pytest.approx(np.array([(0.2, below)]))
    assert {f"1/5 {NBSP}20.0%", "[4.0, 62.0]", f"100/1,000 {NBSP}10.0%", "[8.0, 12.0]"} <= set(written(fig))
    assert ax.get_xlim()[1] > 0.62


def test_forest_puts_a_rate_without_denominator_last_and_draws_no_marker(summary):
    summary.loc[0, ["collapse", "init_correct"]] = 0
    summary.loc[0, ["c_cond", "c_cond_low", "c_cond_high"]] = np.nan
    fig = figures.forest(summary)
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["large", "small", "▸ new one (added)"]
    assert sorted(y for *_, y in line_ends(ax)) == [0, ax.get_yticks()[2]]
    assert f"0/0 {NBSP * 5}–" in written(fig)


def test_forest_of_corrections_uses_their_columns_and_colour(summary):
    ends = [[0, 0, 0.3], [0.4, 0.1, 0.7], [0.25, 0.2, 0.3]]
    summary[["correction_rate", "correction_rate_low", "correction_rate_high"]] = ends
    fig = figures.forest(summary, rate="correction_rate")
    assert len(markers(fig.axes[0], figures.CELL_COLORS["correction"])) == 2
    assert f"250/1,000 {NBSP}25.0%" in written(fig)
    with pytest.raises(ValueError, match="expected one of c_cond, correction_rate"):
        figures.forest(summary, rate="collapse")


# --- association --------------------------------------------------------------------------------------------


def test_association_shows_rows_means_and_ranks(models, families):
    plot, ranks = figures.association(models, families).axes
    assert {"A", "B", "C", "▸ new (added)"} == set(texts(plot))
    drawn = {tuple(np.round(p, 6)) for line in plot.lines for p in zip(line.get_xdata(), line.get_ydata())}
    for frame in (models, families):
        assert set(zip(frame["alpha_tot"], frame["c_cond"])) <= drawn
    # Four spokes: the added row is in no mean and so tied to none.
    assert sum(line.get_marker() == "None" for line in plot.lines) == 4
    heights = [tuple(line.get_ydata()) for line in ranks.lines]
    assert heights == [(1, 1), (2, 3), (3, 2)]
    crossing = [same_color(line.get_color(), drawing.ACCENTS[0]) for line in ranks.lines]
    assert crossing == [False, True, True]


def test_association_labels_do_not_cover_each_other_or_a_foreign_mean(models):
    rng = np.random.default_rng(3)
    crowd = pd.DataFrame({
        "family": [f"Family {k}" for k in range(9)],
        "alpha_tot": 0.5 + 0.06 * rng.standard_normal(9),
        "c_cond": 0.1 + 0.02 * rng.standard_normal(9),
    })
    fig = figures.association(models, crowd)
    ax = fig.axes[0]
    found = boxes(fig, ax.texts)
    points = ax.transData.transform(crowd[["alpha_tot", "c_cond"]].to_numpy())
    for k, one in enumerate(found):
        assert not any(one.overlaps(other) for other in found[k + 1 :])
        assert not any(one.contains(*point) for point in points)


def test_association_says_what_it_cannot_draw(models, families):
    models.loc[4, "alpha_tot"] = np.nan
    fig = figures.association(models, families)
    assert "1 row without both numbers not drawn" in written(fig)
    families.loc[1, "c_cond"] = np.nan
    with pytest.raises(DataError, match="family 'B': alpha_tot=0.5, c_cond=nan"):
        figures.association(models, families)


# --- onset --------------------------------------------------------------------------------------------------


def test_onset_segments_are_shares_of_collapses_with_the_pooled_line_first(onsets):
    fig = figures.onset(onsets, pooled="pooled")
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["pooled", "m", "zero"]
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in ax.containers}
    assert widths == {
        "round_1": [0.5, 0.5, 0], "round_2": [0.25, 0.25, 0], "round_3": [0.125, 0.125, 0],
        "unlocalized": [0.125, 0.125, 0],
    }
    assert f"4 {NBSP}(50.0%)" in written(fig)
    assert texts(ax) == ["no collapse"]
    with pytest.raises(DataError, match="no row 'all'; expected one of m, zero, pooled"):
        figures.onset(onsets, pooled="all")


def test_onset_takes_rounds_in_number_order_and_rows_without_a_round():
    wide = pd.DataFrame({"row": ["long", "short"], "collapse": [11, 2]})
    for k in (10, 2, 11):
        wide[f"round_{k}"] = [1, np.nan]
    wide["round_1"] = [8, 2]
    ax = figures.onset(wide).axes[0]
    assert [bars.get_label() for bars in ax.containers] == ["round_1", "round_2", "round_10", "round_11"]
    assert [bars[1].get_width() for bars in ax.containers] == [1, 0, 0, 0]


# --- prevented against lost ---------------------------------------------------------------------------------


def test_points_rays_and_labels_of_the_gates(gates):
    fig = figures.prevented_lost(gates, ratios=(1, 3))
    ax = fig.axes[0]
    marked = [line for line in ax.lines if line.get_linestyle() == "None"]
    points = {point for line in marked for point in zip(line.get_xdata(), line.get_ydata())}
    assert points == {(29, 108), (56, 69), (2, 31)}
    slopes = [line.get_ydata() / line.get_xdata() for line in ax.lines if line not in marked]
    assert [s.min() for s in slopes] == pytest.approx([1, 3])
    assert [s.max() for s in slopes] == pytest.approx([1, 3])
    assert {"r = 1", "r = 3", "freeze: 29 / 108", "rule: 56 / 69", "stump: 2 / 31"} <= set(texts(ax))
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["one (n = 500)", "two (n = 90)"]
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_a_count_of_zero_has_a_place_on_both_axes(gates):
    gates.loc[2, ["prevented", "lost"]] = 0
    ax = figures.prevented_lost(gates).axes[0]
    assert ax.get_xscale() == "symlog"
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0, 0)
    assert "stump: 0 / 0" in texts(ax)


def test_one_label_for_a_gate_whose_cohorts_coincide():
    table = pd.DataFrame({
        "gate": ["freeze", "freeze", "other", "freeze"], "cohort": ["a", "b", "b", "c"],
        "prevented": [253, 251, 252, 20], "lost": [816, 804, 810, 30],
    })
    shown = set(texts(figures.prevented_lost(table).axes[0]))
    assert {"freeze: 253 / 816, 251 / 804", "other: 252 / 810", "freeze: 20 / 30"} <= shown


def test_gate_labels_do_not_overlap_where_gates_crowd():
    rng = np.random.default_rng(8)
    table = pd.DataFrame({
        "gate": [f"gate number {k}" for k in range(8)],
        "prevented": rng.integers(140, 260, 8),
        "lost": rng.integers(500, 820, 8),
    })
    fig = figures.prevented_lost(table)
    found = boxes(fig, fig.axes[0].texts)
    for k, one in enumerate(found):
        assert not any(one.overlaps(other) for other in found[k + 1 :])


def test_a_ratio_must_be_positive(gates):
    with pytest.raises(ValueError, match="expected positive numbers"):
        figures.prevented_lost(gates, ratios=(1, 0))


# --- curves -------------------------------------------------------------------------------------------------


def test_roc_draws_the_points_and_prints_the_areas_given(curves):
    ax = figures.roc(curves).axes[0]
    lines = [line.get_xydata().tolist() for line in ax.lines if len(line.get_xdata()) == 3]
    assert lines == [[[0, 0], [0.5, 0.6], [1, 1]], [[0, 0], [0.2, 0.8], [1, 1]]]
    assert texts(ax) == ["low\nAUC 0.550", "high\nAUC 0.800"]
    curves.loc[1, "auc"] = 0.7
    with pytest.raises(DataError, match="view 'low': 2 values of auc"):
        figures.roc(curves)


def test_each_area_label_is_tied_to_its_own_curve(curves):
    ax = figures.roc(curves).axes[0]
    for label, (fpr, tpr) in zip(ax.texts, (([0, 0.5, 1], [0, 0.6, 1]), ([0, 0.2, 1], [0, 0.8, 1]))):
        x, y = label.xy
        assert np.interp(x, fpr, tpr) == pytest.approx(y, abs=1e-6)


# --- what all share -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw, fixture, column", [
    (figures.cells, "summary", "init_wrong"),
    (figures.forest, "summary", "c_cond_low"),
    (figures.onset, "onsets", "collapse"),
    (figures.prevented_lost, "gates", "lost"),
    (figures.roc, "curves", "auc"),
])
def test_empty_and_incomplete_frames_are_refused(request, draw, fixture, column):
    frame = request.getfixturevalue(fixture)
    with pytest.raises(ValueError, match=f"{draw.__name__}: the frame has no lines; expected at least one"):
        draw(frame.iloc[:0])
    with pytest.raises(DataError, match=f"{draw.__name__}: no column {column}"):
        draw(frame.drop(columns=column))
    with pytest.raises(TypeError, match="expected a DataFrame"):
        draw([1, 2])


def test_empty_families_are_refused(models, families):
    with pytest.raises(ValueError, match="the frame has no lines"):
        figures.association(models, families.iloc[:0])
    with pytest.raises(ValueError, match="the frame has no lines"):
        figures.association(models.iloc[:0], families)


def test_frames_are_left_as_they_were(summary, onsets, gates):
    for draw, frame in ((figures.cells, summary), (figures.onset, onsets), (figures.prevented_lost, gates)):
        before = frame.copy()
        draw(frame)
        pd.testing.assert_frame_equal(frame, before)


def test_a_name_may_stand_in_the_index(gates):
    ax = figures.prevented_lost(gates.set_index("gate")).axes[0]
    assert "stump: 2 / 31" in texts(ax)


def long_rows():
    rng = np.random.default_rng(5)
    correct, wrong = rng.integers(1, 9000, 30), rng.integers(1, 9000, 30)
    collapse, correction = rng.integers(0, correct + 1), rng.integers(0, wrong + 1)
    names = [f"a-provider-with-a-long-name/some-very-long-model-name-{k}b-instruct-fp8" for k in range(30)]
    rate = collapse / correct
    return pd.DataFrame({
        "row": names, "n": correct + wrong, "preserved": correct - collapse, "collapse": collapse,
        "correction": correction, "unrepaired": wrong - correction, "init_correct": correct,
        "init_wrong": wrong, "c_cond": rate, "c_cond_low": rate / 2, "c_cond_high": np.minimum(1, 1.2 * rate),
        "added": np.arange(30) > 24,
    })


@pytest.mark.parametrize("draw", [figures.cells, figures.forest])
def test_thirty_long_names_stay_on_the_page_and_apart(draw):
    fig = draw(long_rows())
    page = fig.bbox
    ax = fig.axes[0]
    names = boxes(fig, ax.get_yticklabels())
    for box in [*names, *boxes(fig, fig.texts)]:
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
    for one, other in zip(names, names[1:]):
        assert not one.overlaps(other)
    plot = ax.get_window_extent()
    assert all(box.x1 < plot.x0 for box in names)
    # Names differ at their ends, and what was added stays marked.
    shown = [t.get_text() for t in ax.get_yticklabels()]
    assert len(set(shown)) == 30
    assert sum(text.startswith("▸") and text.endswith("(added)") for text in shown) == 5


@pytest.mark.parametrize("theme, ground", [("light", "#FFFFFF"), ("dark", "#121212")])
def test_colours_contrast_with_the_page(theme, ground):
    def contrast(one, other):
        light, dark = sorted((drawing.luminance(one), drawing.luminance(other)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    for color in [*figures.CELL_COLORS.values(), *drawing.ACCENTS]:
        assert contrast(color, ground) >= 3
    for color in figures.CELL_COLORS.values():
        assert contrast(color, drawing.on(color)) >= 4.5
    settings = figures.style(theme)
    for key in ("text.color", "axes.labelcolor", "xtick.labelcolor", "xtick.color"):
        assert contrast(settings[key], ground) >= 4.5
    assert settings["figure.facecolor"] == ground


def test_unknown_theme_lists_the_known_ones():
    with pytest.raises(ValueError, match="theme='sepia': expected one of light, dark"):
        figures.style("sepia")


def render(draw, *args, **options):
    words = {"alt": 'Bars "a" & <b>', "caption": "Unit: debate; n < 5 & more.", "name": "the-bars"}
    return figures.themed(draw, *args, **words, **options)


def test_themed_output_is_one_figure_with_two_escaped_pictures(summary):
    shown = render(figures.cells, summary)
    page = shown._repr_html_()
    assert page.startswith('<figure class="ledger-figure" id="figure-the-bars">')
    assert page.endswith("</figcaption></figure>")
    assert re.findall(r'<img class="(\S+)" alt="(.*?)" width', page) == [
        ("only-light", "Bars &quot;a&quot; &amp; &lt;b&gt;"),
        ("only-dark", "Bars &quot;a&quot; &amp; &lt;b&gt;"),
    ]
    assert "<figcaption>Unit: debate; n &lt; 5 &amp; more.</figcaption>" in page
    assert repr(shown) == 'Bars "a" & <b>'
    coded = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    pictures = [base64.b64decode(data) for data in coded]
    assert pictures == list(shown.svg.values())
    for picture in pictures:
        assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
        assert len(picture) < 150_000
    assert not hasattr(shown, "_repr_png_")


def test_themes_differ_in_ink_only_and_have_no_ground(summary):
    svg = render(figures.cells, summary).svg
    light, dark = (svg[theme].decode().lower() for theme in ("light", "dark"))
    assert light != dark
    for color in figures.CELL_COLORS.values():
        assert color.lower() in light and color.lower() in dark
    assert "#1b1b1b" in light and "#dcdcdc" not in light
    assert "#dcdcdc" in dark and "#1b1b1b" not in dark
    first = re.search(r'<g id="patch_1"><path d="[^"]+" style="([^"]+)"', dark).group(1)
    assert "fill: none" in first or "opacity: 0" in first


def test_a_second_rendering_gives_the_same_bytes(summary, models, families, onsets, gates, curves):
    for draw, *args in (
        (figures.cells, summary), (figures.forest, summary), (figures.association, models, families),
        (figures.onset, onsets), (figures.prevented_lost, gates), (figures.roc, curves),
    ):
        first, second = render(draw, *args), render(draw, *args)
        assert first.svg == second.svg
        assert b"<dc:date>" not in first.svg["light"] and b"Matplotlib v" not in first.svg["light"]


def test_settings_are_as_before_after_drawing(summary):
    before = dict(matplotlib.rcParams)
    render(figures.cells, summary)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("field, value", [
    ("alt", " "), ("caption", ""), ("caption", None), ("name", "a b"), ("name", '"x'),
])
def test_words_of_a_figure_are_checked(field, value, summary):
    words = {"alt": "Bars.", "caption": "Unit: debate.", "name": "bars"} | {field: value}
    with pytest.raises(ValueError, match=f"{field}="):
        figures.themed(figures.cells, summary, **words)


def test_spread_keeps_order_and_distance():
    values = np.array([5.0, 1.0, 1.1, 1.2, 9.0])
    moved = drawing.spread(values, 1.0)
    assert moved == pytest.approx([5, 0.1, 1.1, 2.1, 9])


@pytest.mark.parametrize("text, width, lines, expected", [
    ("short", 10, 2, "short"),
    ("two words here", 9, 2, "two words\nhere"),
    ("abcdefghijklmnop", 8, 1, "abc…mnop"),
    ("", 5, 2, ""),
])
def test_wrap(text, width, lines, expected):
    assert drawing.wrap(text, width, lines) == expected
