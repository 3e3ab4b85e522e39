"""Estimators against simulated truth: a small study run here, and the stored one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis.layers import coverage, persistence, simulate, stance
from analysis.layers import stance_contrasts as contrasts

RUNS = 60
SHARP = ["recovers", "no effect", "few units"]


@pytest.fixture(scope="module")
def small():
    return coverage.study(runs=RUNS, draws=300, seed=7)


@pytest.fixture(scope="module")
def stored():
    return coverage.load()


def slack(rate, runs, sigmas=4):
    """Monte Carlo error of a rate, from the rate that is expected."""
    return sigmas * np.sqrt(rate * (1 - rate) / runs) + 0.5 / runs


# --- a small study ------------------------------------------------------------------------------------------

def test_small_study_recovers_what_was_set(small):
    for row in small[small.role.isin(SHARP)].dropna(subset=["mean"]).itertuples():
        assert abs(row.bias) < 4.5 * row.bias_se + 1e-9, (row.measure, row.setting)


def test_small_study_covers(small):
    for row in small[small.role.isin(SHARP)].dropna(subset=["covered"]).itertuples():
        assert row.covered > row.expected - slack(row.expected, row.runs), (row.measure, row.setting)


def test_small_study_holds_its_level_and_has_power(small):
    for row in small[(small.role == "no effect") & small.rejected.notna()].itertuples():
        assert row.rejected < 0.05 + slack(0.05, row.runs), (row.measure, row.setting)
    found = small[(small.role == "recovers") & small.rejected.notna()]
    assert (found.rejected > 0.5).all()


def test_short_cuts_fail_as_they_should(small):
    warnings = small[(small.role == "warning") & small["mean"].notna()]
    assert set(warnings.measure) == {"self_drop_with_defaults", "direction, raw", "conviction, peak anchor"}
    assert (warnings.bias.abs() > 10 * warnings.bias_se).all() and (warnings.covered < 0.5).all()


# --- the stored study ---------------------------------------------------------------------------------------

def test_stored_study_is_the_one_of_the_module(stored, small):
    assert list(stored.columns) == coverage.COLUMNS == list(small.columns)
    keys = ["layer", "measure", "role", "setting", "values", "interval", "test"]
    assert stored[keys].to_numpy().tolist() == small[keys].fillna("").to_numpy().tolist()
    assert stored.set_value.tolist() == pytest.approx(small.set_value.tolist(), rel=1e-5)
    assert (stored.seed == coverage.SEED).all()
    assert stored.runs.isin([coverage.RUNS, coverage.RUNS // 2]).all()


def test_stored_bias_is_noise(stored):
    rows = stored[stored.role.isin(SHARP)].dropna(subset=["mean"])
    z = rows.bias / rows.bias_se
    assert z.abs().max() < 4
    assert sps.chi2.sf((z**2).sum(),
                       len(z)) > 1e-4  # together they are no larger than chance makes them either


def test_stored_intervals_cover(stored):
    rows = stored[stored.role.isin(SHARP)].dropna(subset=["covered"])
    # What so few units allow, and close to nominal with the number of questions of a full study.
    assert (rows.covered > rows.expected - 4 * rows.covered_se).all()
    assert (rows.covered < 0.975).all()
    full = rows[(rows.n_units >= 44) | (rows.interval == "Student t")]
    assert len(full) >= 15 and (full.covered > 0.95 - 0.008 - 4 * full.covered_se).all()
    assert (rows.undefined == 0).all()


def test_stored_tests_hold_their_level(stored):
    rows = stored[(stored.role == "no effect") & stored.rejected.notna()]
    assert len(rows) >= 10
    for row in rows.itertuples():
        assert row.rejected <= 0.05 + slack(0.05, row.runs), row.measure
    assert rows.rejected.mean() == pytest.approx(0.05, abs=0.012)  # and do not hold it by never rejecting


def test_relabelling_chains_rejects_too_often(stored):
    rates = stored[stored.test.str.contains("relabelling")].set_index("test").rejected
    assert rates["record-level relabelling"] <= 0.05 + slack(0.05, coverage.RUNS // 2)
    assert rates["chain-level relabelling"] > 0.08


# --- its parts ----------------------------------------------------------------------------------------------

def test_expected_coverage_by_simulation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, 8))
    half = sps.norm.ppf(0.975) * x.std(axis=1) / np.sqrt(8)
    assert (np.abs(x.mean(axis=1)) <= half).mean() == pytest.approx(coverage.expected_coverage(8), abs=0.003)
    assert coverage.expected_coverage(10_000) == pytest.approx(0.95, abs=1e-3)


def test_a_biased_estimator_is_caught():
    rng = np.random.default_rng(1)
    units = list(rng.normal(0.5, 1, (150, 30)))
    row = coverage.assess(coverage.Case("D", "off by a half", "no effect", "", "", "nats", 0.0, units),
                          draws=300)
    assert row["bias"] > 10 * row["bias_se"] and row["covered"] < 0.4 and row["rejected"] > 0.5
    good = coverage.assess(coverage.Case("D", "right", "recovers", "", "", "nats", 0.5, units), draws=300)
    assert abs(good["bias"]) < 4 * good["bias_se"] and good["covered"] > 0.85


def test_cases_hold_the_values_that_the_estimators_average():
    """One run of a block has the estimate that the public functions give on that run alone."""
    setting = simulate.Setting(questions=10, propositions=6)
    cases = {c.measure: c for c in coverage.committee_cases(setting, runs=3, seed=5)}
    made = simulate.debates(setting, runs=3, judges=2, seed=[5, 0])
    requeries = simulate.requeries(made["turns"], setting, seed=[5, 0, 1])
    alone = requeries[requeries.question_id.str.startswith("1/")]
    asked = cases["removed_minus_retained"].units[1]
    assert asked.mean() == pytest.approx(persistence.reversion(alone).estimate)
    both = persistence.difference_in_differences(alone)
    assert cases["hostile_minus_neutral"].units[1].mean() == pytest.approx(both.estimate)
    turns = made["turns"].query("question_id.str.startswith('1/') and iteration > 0 and stance != 'neutral'")
    full = (turns.agreed_level == "fully_agreed").groupby([turns.question_id, turns.stance]).mean().unstack()
    assert cases["self_drop"].units[1].mean() == pytest.approx((full.friendly - full.hostile).mean())

    by_measure = {c.measure: c for c in coverage.stance_cases(setting, runs=3, seed=5)}
    cells = stance.read_cells(*simulate.likert(setting, runs=3, seed=[5, 0]), signs=False)
    one = cells[cells.receiver == "receiver/2"]
    for measure, estimator in {"conviction": contrasts.conviction, "direction": contrasts.direction,
                               "strong_minus_irrelevant": contrasts.content_gap}.items():
        assert by_measure[measure].units[2].mean() == pytest.approx(estimator(one).estimate)


def test_writing_is_reproducible_and_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "new" / "coverage.csv"
    table = coverage.write(path, runs=2, draws=20, seed=3)
    again = coverage.write(tmp_path / "b.csv", runs=2, draws=20, seed=3)
    pd.testing.assert_frame_equal(table, again)
    assert [p.name for p in path.parent.iterdir()] == ["coverage.csv"]
    assert len(coverage.load(path)) == len(table)
