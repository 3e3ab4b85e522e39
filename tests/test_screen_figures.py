"""Figures and tables of the robustness page: what is drawn and worded is what was computed."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from analysis import data, figures_screen, heldout, screen, tables_robustness, tables_screen
from analysis.drawing import ACCENTS
from analysis.errors import DataError


@pytest.fixture(scope="module")
def curve():
    lines = [("alpha_tot", "c_cond", "none", 0.7), ("alpha_adv", "c_cond", "noise", -0.1), ("alpha_tot", "collapse_rate", "initial accuracy", 0.2)]
    return pd.DataFrame(lines, columns=["predictor", "outcome", "adjusted", "rho"])


def test_specifications_stand_in_order_over_their_choices(curve):
    top, low = figures_screen.specifications(curve).axes
    drawn = top.collections[-1].get_offsets()
    assert drawn[:, 1].tolist() == [-0.1, 0.2, 0.7] and top.get_ylim()[0] < -0.1
    names = [text.get_text() for text in low.get_yticklabels()]
    marked = [[names[round(y)] for y in part.get_offsets()[:, 1]] for part in low.collections if len(part.get_offsets()) == 3]
    assert marked == [
        ["flips away from right", "total flip rate", "total flip rate"],
        ["conditional collapse", "collapse over all debates", "conditional collapse"],
        ["noise in both measures, median", "initial accuracy taken out", "nothing taken out"],
    ]


def test_an_unknown_choice_keeps_its_name(curve):
    _, low = figures_screen.specifications(curve.assign(predictor="another")).axes
    assert low.get_yticklabels()[0].get_text() == "another"
    with pytest.raises(DataError, match="specifications: no column rho"):
        figures_screen.specifications(curve.drop(columns="rho"))


def test_held_out_intervals_and_misses():
    found = heldout.predict_families(data.model_rows()).rename(columns={"family": "row"})
    added = found.iloc[[0]].assign(row="mine", added=True, observed=0.9)
    ax = figures_screen.held_out(pd.concat([added, found])).axes[0]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[:-1] == found["row"].tolist() and names[-1] == "▸ mine (added)"
    wide, narrow = ([segment[:, 0] for segment in part.get_segments()] for part in ax.collections[:2])
    np.testing.assert_allclose(wide[:7], found[["low_95", "high_95"]])
    np.testing.assert_allclose(narrow[:7], found[["low_80", "high_80"]])
    points = [line for line in ax.lines if line.get_marker() in ("o", "D")]
    colors = {name: to_hex(point.get_markeredgecolor()) for name, point in zip(names, points, strict=True)}
    assert {name for name, color in colors.items() if color == to_hex(ACCENTS[1])} == {"Meta", "Qwen", "▸ mine (added)"}
    assert points[-1].get_marker() == "D" and points[-1].get_markerfacecolor() != points[-1].get_markeredgecolor()


def test_worded_tables_hold_texts_only():
    rows = data.model_rows()
    plain = heldout.predict_families(rows)
    shown = [
        tables_screen.checks(screen.checks(rows)), tables_screen.partials(screen.partial(rows, level="row")),
        tables_robustness.predictions(plain, heldout.predict_rows(rows, rows.iloc[:1])), tables_robustness.pairs(screen.pairwise_audit(rows)),
    ]
    for table in shown:
        assert table.map(lambda cell: isinstance(cell, str) and cell not in ("", "nan", "<NA>")).all(axis=None)


def test_an_outside_row_stands_last_in_the_prediction_table():
    rows = data.model_rows()
    outside = rows[rows["row"] == "phi-4-mini"].assign(row="mine")
    table = tables_robustness.predictions(heldout.predict_families(rows), heldout.predict_rows(rows, outside))
    assert table["Family"].iloc[-1] == "mine (added)" and len(table) == 8
    assert table.set_index("Family").loc[["Meta", "Qwen", "Phi"], "Inside"].tolist() == ["95% only", "neither", "both"]
