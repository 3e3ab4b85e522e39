"""Figures of the ladder and of the lifts: what is drawn equals the numbers given."""

import matplotlib
import pandas as pd
import pytest

from analysis import drawing, figures_replay
from analysis.errors import DataError

GATES = pd.DataFrame({
    "gate": ["a", "b", "c"], "cohort": ["x", "x", "y"], "n": [100, 100, 50], "prevented": [4, 0, 1],
    "lost": [8, 3, 20],
})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ladder_lines_and_crossings(theme):
    with matplotlib.rc_context(drawing.style(theme)):
        ax = figures_replay.ladder(GATES, most=6).axes[0]
    drawn = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_xdata()[1] == 6]
    ends = [(round(float(line.get_ydata()[0]), 9), round(float(line.get_ydata()[1]), 9)) for line in drawn]
    # 100 (r prevented - lost) / n at r = 0 and r = 6
    assert ends == [(-8, 16), (-3, -3), (-40, -28)]
    dots = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert dots == [2.0], "b prevents nothing and c breaks even beyond the plot"
    assert [text.get_text() for text in ax.texts] == ["a: 2.00", "b", "c: 20.00"]
    assert drawn[0].get_color() == drawn[1].get_color() != drawn[2].get_color()


def test_lifts_are_drawn_where_they_are():
    table = pd.DataFrame({"row": ["one", "two"], "fit": ["p", "q"], "lift": [0.1, 0.05], "low": [0.08, -0.01],
                          "high": [0.12, 0.11]})
    fig = figures_replay.lifts(table)
    ax = fig.axes[0]
    segments = [segment.tolist() for segment in ax.collections[0].get_segments()]
    assert [(a[0], b[0]) for a, b in segments] == [(0.08, 0.12), (-0.01, 0.11)]
    assert ax.collections[1].get_offsets()[:, 0].tolist() == [0.1, 0.05]
    assert ax.get_xlim()[0] <= -0.01
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["p", "q"]


def test_columns_are_asked_for():
    with pytest.raises(DataError, match="ladder: no column lost"):
        figures_replay.ladder(GATES.drop(columns="lost"))
    with pytest.raises(DataError, match="lifts: no column fit"):
        figures_replay.lifts(pd.DataFrame({"row": [], "lift": [], "low": [], "high": []}))
