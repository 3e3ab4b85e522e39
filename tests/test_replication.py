"""The later four-round traces: rates against the released ones, and three accountings of the same files."""

import pandas as pd
import pytest

from analysis import data, replication

RELEASED = {
    "qwen3.5-4b": "Qwen/Qwen3.5-4B", "qwen3.5-9b": "Qwen/Qwen3.5-9B",
    "qwen3.6-27b-fp8": "Qwen/Qwen3.6-27B-FP8", "qwen3.6-35b-a3b-fp8": "Qwen/Qwen3.6-35B-A3B-FP8",
    "deepseek-v4-flash": "deepseek-v4-flash", "gemma-4-31b-it-awq": "google/gemma-4-31b-it",
    replication.WHOLE: "post_a6_200row", replication.POOL: "pooled",
}


@pytest.fixture(scope="module")
def found():
    return replication.by_row(data.table("four_round_ledger")).set_index("row")


def test_rates_are_the_released_ones(found, shared):
    theirs = pd.read_csv(shared / "upstream/reported/post_a6_r1_rates.csv").set_index("name")
    names = {"c_cond": "conditional_collapse_pct", "correction_rate": "correction_pct_of_initial_wrong",
             "final_acc": "final_accuracy_pct", "share_1": "onset_r1_pct"}
    compared = 0
    for row, name in RELEASED.items():
        for ours, column in names.items():
            if pd.notna(theirs.loc[name, column]):
                assert 100 * found.loc[row, ours] == pytest.approx(theirs.loc[name, column], abs=1e-12)
                compared += 1
    assert compared == 29


def test_onsets_add_up(found):
    assert (found[[*replication.ROUNDS, "unlocalized"]].sum(axis=1) == found["collapse"]).all()
    six = found.drop(index=[replication.WHOLE, replication.POOL])
    assert six["collapse"].sum() == found.loc[replication.WHOLE, "collapse"] == 75
    assert ((found["c_cond_low"] <= found["c_cond"]) & (found["c_cond"] <= found["c_cond_high"])).all()


def test_interval_can_be_chosen(found):
    other = replication.by_row(data.table("four_round_ledger"), interval="jeffreys").set_index("row")
    assert other["c_cond"].tolist() == found["c_cond"].tolist()
    assert other.loc[replication.WHOLE, "c_cond_low"] != found.loc[replication.WHOLE, "c_cond_low"]


def test_accountings():
    found = replication.accountings(*map(data.table, ("four_round_ledger", "model_rows", "replay_sources")))
    assert len(found) == 21
    wide = found.pivot(index="row", columns="accounting", values=["n", "collapse", "final_correct"])
    sums = wide["collapse"].loc[replication.WHOLE].to_dict()
    assert sums == {"cohort": 93, "ties undefined": 75, "usable only": 93}
    # In every accounting right at last = right at first - collapses + corrections.
    kept = found["init_correct"] - found["collapse"] + found["correction"]
    assert (kept == found["final_correct"]).all()
    same = wide["n"]["usable only"] == wide["n"]["cohort"]
    assert (wide["final_correct"]["usable only"] == wide["final_correct"]["cohort"])[same].all()
    assert (wide["final_correct"]["ties undefined"] == wide["final_correct"]["cohort"]).all()
