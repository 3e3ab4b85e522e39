"""The headline under other codings: each recoding by hand, and the tests on them independently."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import data, recodings
from analysis.errors import DataError


@pytest.fixture(scope="module")
def found():
    return recodings.table().set_index("coding")


def family_rho(rows):
    means = rows.groupby("family")[["alpha_tot", "c_cond"]].mean()
    return sps.spearmanr(means["alpha_tot"], means["c_cond"]).statistic


def test_recounting_replaces_the_rows_named_and_no_others():
    rows = pd.DataFrame({"row": ["a", "b", "c"], "family": "F", "n": [10, 20, 30], "init_correct": [5, 10, 20], "collapse": [1, 2, 3], "alpha_tot": 0.1})
    new = pd.DataFrame({"row": ["c", "a"], "n": [40, 10], "init_correct": [16, 4], "collapse": [4, 1], "other": 0})
    out = recodings.recounted(rows, new)
    assert out["row"].tolist() == ["a", "b", "c"]
    assert out["c_cond"].tolist() == [0.25, 0.2, 0.25]
    assert out["init_acc"].tolist() == [0.4, 0.5, 0.4]


def test_a_row_that_is_not_in_the_cohort_is_not_taken_in():
    rows = pd.DataFrame({"row": ["a"], "n": [10], "init_correct": [5], "collapse": [1]})
    with pytest.raises(DataError, match="field 'row': 'z'; expected one of a"):
        recodings.recounted(rows, pd.DataFrame({"row": ["z"], "n": [1], "init_correct": [1], "collapse": [1]}))


def test_pooling_adds_counts_and_averages_flip_rates():
    rows = data.model_rows()
    out = recodings.pooled(rows).set_index("family")
    qwen = rows[rows["family"] == "Qwen"]
    assert out.loc["Qwen", "c_cond"] == qwen["collapse"].sum() / qwen["init_correct"].sum()
    assert out.loc["Qwen", "alpha_tot"] == pytest.approx(qwen["alpha_tot"].mean())
    assert out["n"].sum() == rows["n"].sum()


def test_the_first_line_is_the_papers(found):
    assert found.index[0] == "as in the paper"
    assert found["rho"].iloc[0] == pytest.approx(family_rho(data.model_rows()), abs=1e-12)
    assert (found["two_sided_count"].iloc[0], found["n_orders"].iloc[0]) == (62, 5040)


def test_shared_questions_against_a_count_by_hand(found):
    debates, rows = data.debates(), data.model_rows()
    sets = [set(part["question"]) for _, part in debates.groupby("row")]
    shared = set.intersection(*sets)
    part = debates[debates["question"].isin(shared)]
    counts = part[part["correct_0"] == 1].groupby("row")["correct_3"].agg(lambda last: 1 - last.mean())
    rows["c_cond"] = rows["row"].map(counts).fillna(rows["c_cond"])
    line = found.loc["only the questions that all six traced rows share"]
    assert len(shared) == 200
    assert line["rho"] == pytest.approx(family_rho(rows), abs=1e-12)


def test_all_rows_with_three_rounds_leave_one_family_less(found):
    line = found.loc["only rows with three rounds"]
    rows = data.model_rows()
    assert (line["n_rows"], line["n_families"]) == ((rows["endpoint_round"] == 3).sum(), 6)


def test_exact_p_is_the_share_of_orders(found):
    small = found[found["n_orders"] < 1e6]
    assert np.allclose(small["p_two_sided"].astype(float), (small["two_sided_count"] / small["n_orders"]).astype(float))
