"""Cohorts of which only counts are public: bounds against brute force, sums against what was released."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import data, replay, replay_cohorts
from analysis.errors import DataError


@pytest.fixture(scope="module")
def primary():
    return replay_cohorts.sources(data.table("replay_sources"), data.table("four_round_ledger"))


@pytest.fixture(scope="module")
def policies():
    return data.table("replay_policies")


@pytest.fixture(scope="module")
def compared(policies):
    paper = data.debates()
    return replay_cohorts.compare(paper, paper[paper["row"].isin(data.LOCAL_ROWS)], policies)


members = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(members, st.integers(0, 20))
def test_bounds_of_a_part_against_all_fillings(group, total):
    least = pd.Series([low for low, _, _ in group])
    most = least + [more for _, more, _ in group]
    chosen = pd.Series([inside for _, _, inside in group])
    sums = [sum(v for v, inside in zip(filling, chosen, strict=True) if inside)
            for filling in itertools.product(*(range(a, b + 1) for a, b in zip(least, most, strict=True)))
            if sum(filling) == total]
    if sums:
        assert replay_cohorts.part_of_total(total, least, most, chosen) == (min(sums), max(sums))
    else:
        with pytest.raises(DataError, match=f"total {total}: expected"):
            replay_cohorts.part_of_total(total, least, most, chosen)


def test_printed_gates():
    found = replay_cohorts.printed()
    assert found["net"].tolist() == [-79, -13, -29, -30, -41]
    assert found.loc["probe_gated", ["n", "collapse", "correction"]].tolist() == [6525, 251, 804]
    assert found.loc["disagreement", "delta_pp"] == pytest.approx(-100 * 41 / 1255)


def test_printed_cohort_of_the_probe_gate_is_public(compared):
    lines = compared[compared["cohort"] == "four open-weight rows"]
    assert set(lines["basis"]) == {"printed counts", "public debates"} and (lines["n"] == 6525).all()
    assert lines["collapse"].nunique() == lines["correction"].nunique() == 1


def test_selectivity_by_hand_and_against_scipy(compared):
    line = compared[(compared["gate"] == "probe_gated")].iloc[0]
    assert line["share_prevented"] == 29 / 251 and line["share_lost"] == 108 / 804
    assert line["p_equal"] == pytest.approx(sps.fisher_exact([[29, 222], [108, 696]]).pvalue)
    credits = pd.DataFrame({"prevented": [0.5], "collapse": [2], "lost": [1], "correction": [2]})
    fractions = replay_cohorts.selectivity(credits)
    assert np.isnan(fractions["p_equal"].item()) and fractions["share_prevented"].item() == 0.25


def test_public_lines_are_replays(compared):
    line = compared[(compared["cohort"] == "six rows") & (compared["gate"] == "disagreement")].iloc[0]
    again = replay.replay(data.debates(), "disagreement").iloc[0]
    assert line[replay.COLUMNS].tolist() == again[replay.COLUMNS].tolist()


def test_released_totals_agree_with_the_sources(primary, policies):
    always = policies[policies["policy"] == "always_freeze"].set_index("cohort")
    groups = {"primary": primary, **dict(list(primary.groupby("served")))}
    for cohort, part in groups.items():
        sums = [len(part), part["usable"].sum(), part["collapse"].sum(), part["correction"].sum()]
        assert always.loc[cohort, ["sources", "n", "prevented", "lost"]].tolist() == sums
    fixed = policies[policies["policy"].isin(["round1_majority_change", "round1_any_flip", "always_freeze"])]
    wide = fixed.pivot(index="policy", columns="cohort", values="prevented")
    assert (wide[["local", "openrouter", "gemini"]].sum(axis=1) == wide["primary"]).all()


def test_released_counts_are_the_released_ones(policies, shared):
    theirs = pd.read_csv(shared / "upstream/reported/policy_replay_policies.csv")
    theirs = theirs[theirs["cohort"] == "eligible_all_primary"].set_index("policy")
    names = {
        "naive_r1_majority_changed": "round1_majority_change", "naive_any_r1_flip": "round1_any_flip",
        "learned_r1_percentile_stump": "round1_stump",
        "learned_r1_probe_percentile_stump": "round1_probe_stump",
    }
    ours = policies[policies["cohort"] == "primary"].set_index("policy")
    for name, own in names.items():
        line = theirs.loc[name, ["n", "gate_count", "collapses_prevented", "corrections_lost"]]
        assert ours.loc[own, ["n", "gated", "prevented", "lost"]].tolist() == line.tolist()
    audit = pd.read_csv(shared / "upstream/reported/lomo_audit_disagreement_gate.csv")
    audit = audit.set_index("quantity")["value"]
    line = ours.loc["disagreement"]
    found = replay.from_aggregate(*line[["n", "prevented", "lost"]], gated=line["gated"])
    assert found["net"].item() == float(audit["net"])
    assert found["delta_pp"].item() == pytest.approx(100 * float(audit["acc_delta"]), abs=1e-12)
    assert found["gated"].item() / found["n"].item() == pytest.approx(float(audit["gate_rate"]))


def test_the_seven_sources(primary):
    always = replay_cohorts.always_frozen(primary)
    assert always.loc["replicated", ["sources", "n", "prevented", "lost"]].tolist() == [7, 1258, 94, 124]
    assert always.loc["replicated", "n"] - replay_cohorts.printed(["always_freeze"])["n"].item() == 3
    assert set(primary["served"]) == {"local", "openrouter", "gemini"}


def test_printed_rule_lies_within_the_bounds(primary, policies):
    six = data.table("four_round_rows").merge(data.table("four_round_ledger")[["row", "trace_source"]])
    found = replay_cohorts.replicated_bounds(policies, primary, six)
    printed = replay_cohorts.printed(["round1_majority_change"]).iloc[0]
    for name in ("prevented", "lost"):
        assert found.loc[name, "low"] <= printed[name] <= found.loc[name, "high"]
    # 285 debates of the five local sources and 2 of DeepSeek flash are known; DeepSeek Pro adds 0 to 36 - 2.
    assert found.loc["gated"].tolist() == [287, 321]
