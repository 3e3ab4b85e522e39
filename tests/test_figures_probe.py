"""The figure of the probe's channels draws the numbers it is given."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from analysis import drawing, figures_probe
from analysis.errors import DataError


@pytest.fixture
def lines():
    return pd.DataFrame({
        "row": ["counted", "told", "mine"], "source": ["counts", "printed", "records"], "added": [False, False, True],
        "anti_social": [0.1, 0.2, np.nan], "default": [0.3, 0.2, 0.4], "anti_argument": [0.5, 0.6, np.nan],
        "order": ["strict", "partial", ""], "d": [1.25, 0.05, np.nan],
    })


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_markers_stand_at_the_rates(lines, theme):
    with matplotlib.rc_context(drawing.style(theme)):
        fig = figures_probe.conditions(lines)
        ground = drawing.inks()[3]
    ax = fig.axes[0]
    drawn = {}
    for line in ax.get_lines():
        hollow = same_color(line.get_markerfacecolor(), ground)
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
            drawn[line.get_marker(), round(float(y), 2)] = (float(x), hollow)
    rows = [float(tick) for tick in ax.get_yticks()]
    for marker, name in (("s", "anti_social"), ("o", "default"), ("^", "anti_argument")):
        for i, at in enumerate(rows):
            x, hollow = drawn[marker, round(at, 2)]
            assert x == pytest.approx(lines[name].iloc[i], nan_ok=True)
            assert hollow == (i == 1)


def test_order_and_effect_are_written(lines):
    with matplotlib.rc_context(drawing.style()):
        texts = [text.get_text() for text in figures_probe.conditions(lines).texts]
    for expected in ("AA > D > AS", "AA > AS", "1.25", "0.05", "order", "d"):
        assert expected in texts


def test_a_missing_column_is_named(lines):
    with pytest.raises(DataError, match="conditions: no column default"):
        figures_probe.conditions(lines.drop(columns="default"))
