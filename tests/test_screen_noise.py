"""Noise carried through the screen: seeded draws, held-out families, families drawn again."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis import data, family_draws, heldout, latent, screen, sealed
from analysis.errors import DataError


@pytest.fixture(scope="module")
def rows():
    return data.model_rows()


@pytest.fixture(scope="module")
def reported(shared):
    return lambda name: pd.read_csv(shared / "upstream/reported" / f"{name}.csv")


def close(ours, theirs, atol=1e-9):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=atol)


# --- draws ---


def test_betas_are_those_of_the_generator(rows):
    a, b = (rows["collapse"] + 0.5).to_numpy(), (rows["init_correct"] - rows["collapse"] + 0.5).to_numpy()
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(20):
        drawn = latent.betas([ours.standard_gamma(latent.shapes(rows))])[0]
        np.testing.assert_array_equal(drawn, theirs.beta(a, b))
        assert ours.standard_t(4) == theirs.standard_t(4)


def test_draws_follow_the_described_order(rows):
    """Call by call, with the generator's own normal and beta and scipy's correlation."""
    rng = np.random.default_rng(11)
    k, n = rows["collapse"].to_numpy(), rows["init_correct"].to_numpy()
    expected = []
    for _ in range(25):
        alpha = np.clip(rows["alpha_tot"] + rng.normal(0, rows["sd_alpha"]), 0, 1)
        expected.append(sps.spearmanr(alpha, rng.beta(k + 0.5, n - k + 0.5)).statistic)
    close(latent.correlations(rows, draws=25, seed=11)["alpha_tot"], expected)


@pytest.mark.parametrize("cohort", ["n14", "n9_sealed"])
def test_both_vintages_are_the_published_ones(rows, reported, cohort):
    told = reported("eiv_summary").set_index("cohort").loc[cohort]
    nine = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    ours = (screen.errors_in_variables(rows) if cohort == "n14" else screen.errors_in_variables(nine, **latent.SEALED)).iloc[0]
    close(ours[["median", "mean", "low", "high", "share_positive"]], told[["median", "mean", "ci_lo", "ci_hi", "p_gt_0"]], 1e-12)
    assert (ours["draws"], ours["seed"], ours["n_rows"]) == (told["n_draws"], told["seed"], told["n_models"])
    if cohort == "n14":
        close(ours["rho"], told["point_spearman"], 1e-12)


def test_clipping_matters_only_near_the_ends():
    rows = pd.DataFrame({"alpha_tot": [0.0, 0.001, 0.002, 0.9], "sd_alpha": 0.1, "collapse": [1, 5, 9, 40], "init_correct": 50})
    free, kept = (screen.errors_in_variables(rows, clip=clip, draws=400).iloc[0] for clip in (False, True))
    assert free["median"] != kept["median"]
    inner = rows.assign(alpha_tot=[0.3, 0.4, 0.5, 0.6], sd_alpha=0.01)
    free, kept = (screen.errors_in_variables(inner, clip=clip, draws=100).iloc[0] for clip in (False, True))
    assert free.equals(kept)


def test_noise_needs_its_columns(rows):
    with pytest.raises(DataError, match="no column 'sd_alpha': expected alpha_tot, collapse"):
        screen.errors_in_variables(rows.drop(columns="sd_alpha"))
    with pytest.raises(DataError, match="field 'alpha_tot': missing in 1 rows"):
        screen.errors_in_variables(rows.assign(alpha_tot=rows["alpha_tot"].where(rows["row"] != "qwen3-4b")))


# --- held-out families ---


def test_plain_predictions_are_the_published_ones(rows, reported):
    told = reported("lofo_prediction_g7")
    ours = heldout.predict_families(rows)
    assert ours["family"].tolist() == told["heldout_family"].tolist()
    # The released family means come from rates of four decimals.
    for name, field in {"observed": "observed_c_cond_pct", "predicted": "predicted_c_cond_pct", "error": "prediction_se", "low_80": "pi80_lo",
                        "high_80": "pi80_hi", "low_95": "pi95_lo", "high_95": "pi95_hi"}.items():
        close(100 * ours[name], told[field], 5e-4)
    rounded = rows.assign(c_cond=(100 * rows["c_cond"]).round(4))
    rounded.loc[rows["endpoint_round"] == 4, "c_cond"] = 100 * rows["c_cond"]
    close(heldout.predict_families(rounded)[["predicted", "error", "low_80", "high_95"]],
          told[["predicted_c_cond_pct", "prediction_se", "pi80_lo", "pi95_hi"]], 5e-5)
    assert ours["inside_80"].tolist() == told["covered_80"].tolist() and ours["inside_95"].tolist() == told["covered_95"].tolist()
    close(ours[["rank_observed", "rank_predicted", "df"]], told[["observed_rank", "predicted_rank", "train_df"]])
    summary = heldout.prediction_summary(ours).iloc[0]
    told = reported("lofo_summary").iloc[0]
    close(summary[["rho", "p", "mean_rank_error"]], told[["predicted_vs_observed_rho", "predicted_vs_observed_p_two_sided",
                                                          "mean_absolute_rank_error"]].astype(float))
    assert (f"{summary['inside_80']}/7", f"{summary['inside_95']}/7") == (told["coverage_80"], told["coverage_95"])
    assert summary["missed_80"] == "Meta, Qwen"


def test_plain_predictions_are_those_of_statsmodels(rows):
    import statsmodels.api as sm

    means = screen.family_means(rows, columns=["alpha_tot", "c_cond"])
    design = sm.add_constant(means["alpha_tot"])
    ours = heldout.predict_families(rows)
    for i in means.index:
        fit = sm.OLS(means["c_cond"].drop(i), design.drop(i)).fit().get_prediction(design.loc[[i]])
        close(ours.loc[i, ["predicted", "low_95", "high_95"]], [fit.predicted_mean[0], *fit.conf_int(obs=True, alpha=0.05)[0]], 1e-12)
        close(ours.loc[i, ["low_80", "high_80"]], fit.conf_int(obs=True, alpha=0.2)[0], 1e-12)


def test_rows_without_a_value_are_not_predicted(rows):
    more = pd.concat([rows, pd.DataFrame({"row": ["x"], "family": ["New"], "c_cond": [0.5]})])
    pd.testing.assert_frame_equal(heldout.predict_families(more), heldout.predict_families(rows))


def test_outside_row_on_the_line_of_all_families(rows):
    means = screen.family_means(rows, columns=["alpha_tot", "c_cond"])
    line = sps.linregress(means["alpha_tot"], means["c_cond"])
    added = pd.DataFrame({"row": ["x", "y"], "family": ["New", "Qwen"], "alpha_tot": [0.5, None], "c_cond": [0.9, 0.1]})
    found = heldout.predict_rows(rows, added)
    assert found["row"].tolist() == ["x"] and not found["inside_95"].item()
    assert found["predicted"].item() == pytest.approx(line.intercept + 0.5 * line.slope)
    assert heldout.predict_rows(rows, pd.DataFrame({"row": ["z"]})).empty
    assert heldout.predict_rows(rows, added.iloc[:1].assign(c_cond=np.nan)).empty  # nothing to hold the prediction against


def test_a_line_needs_its_families(rows):
    few = rows[rows["family"].isin(["Qwen", "Phi", "Meta"])]
    for predict in (heldout.predict_families, heldout.propagate_families):
        with pytest.raises(DataError, match="field 'family': 3 with alpha_tot and c_cond; expected 4 or more"):
            predict(few)
    with pytest.raises(DataError, match="2 with alpha_tot and c_cond; expected 3 or more"):
        heldout.predict_rows(few[few["family"] != "Meta"], few)


def test_impossible_counts_have_no_latent_rate():
    two = pd.DataFrame({"alpha_tot": [0.1, 0.2], "sd_alpha": 0.01, "collapse": [1, 4], "init_correct": 3})
    with pytest.raises(DataError, match="field 'collapse': 4: expected a count from 0 to 3"):
        latent.errors_in_variables(two)
    with pytest.raises(DataError, match="rows: 1: expected 2 or more, to rank"):
        latent.errors_in_variables(two.iloc[:1])


def test_propagated_predictions_are_the_published_ones(rows, reported):
    told = reported("eiv_lofo_prediction_g7")
    ours = heldout.propagate_families(rows)
    assert ours["family"].tolist() == told["heldout_family"].tolist()
    close(100 * ours[heldout.ENDS], told[["pi80_lo", "pi80_hi", "pi95_lo", "pi95_hi"]])
    assert ours["inside_80"].tolist() == told["covered_80_clipped"].tolist()
    assert ours["inside_95"].tolist() == told["covered_95_clipped"].tolist()


def test_prediction_without_noise_in_the_rates_is_the_plain_interval(rows):
    # With a million debates a row the posterior is a point: the interval is that of the line alone.
    large = rows.assign(init_correct=rows["init_correct"] * 10_000, collapse=rows["collapse"] * 10_000)
    for released_order in (True, False):
        found = heldout.propagate_families(large, draws=4000, released_order=released_order).set_index("family")
        plain = heldout.predict_families(rows).set_index("family")
        close(found.loc["Meta", ["low_80", "high_80"]], plain.loc["Meta", ["low_80", "high_80"]], 0.006)


def test_last_family_is_inside_by_the_seed_alone(rows):
    """The published seed covers all seven families, by less than a hundredth of a point; others, and more draws, do not."""
    found = heldout.propagate_families(rows).set_index("family")
    assert found["inside_95"].all() and 0 < found.loc["Qwen", "high_95"] - found.loc["Qwen", "observed"] < 1e-4
    other = heldout.coverage_by_seed(rows, range(1, 4))
    assert other["inside_95"].tolist() == [6] * 3 and set(other["outside_95"]) == {"Qwen"}
    many = heldout.coverage_by_seed(rows, [7], draws=80_000).iloc[0]
    assert many["closest"] == "Qwen" and many["high_95"] < many["observed"] - 0.001


# --- families drawn again ---


def test_cluster_bootstraps_are_the_published_ones(rows, reported):
    ours = family_draws.bootstraps(rows, data.table("subgroups"))
    whole = reported("model_row_headline_n14").set_index("quantity")["value"]
    first = ours.iloc[0]
    close(first[["rho", "low", "high", "n_valid", "seed"]], whole[["headline_rho", "family_cluster_bootstrap_ci_low",
          "family_cluster_bootstrap_ci_high", "family_cluster_bootstrap_n_valid", "bootstrap_seed"]].astype(float))
    told = reported("model_row_lofo_n14")
    left = ours[ours["kind"] == "family left out"]
    assert left["name"].tolist() == told["held_out_family"].tolist()
    close(left[["n_rows", "rho", "low", "high", "n_valid"]], told[["n_remaining", "rho", "fcb_ci_low", "fcb_ci_high", "fcb_n_valid"]])
    told = reported("model_row_subgroups_n14").dropna(subset="fcb_ci_low")
    some = ours[ours["kind"] == "subgroup"]
    assert len(told) == 3
    close(some[["n_rows", "rho", "low", "high", "n_valid"]], told[["n", "rho", "fcb_ci_low", "fcb_ci_high", "fcb_n_valid"]])
    # The same subgroups by Fisher's z, with the critical value rounded as released.
    tests = [screen.row_association(rows[~rows["row"].isin(group)], z=1.96).iloc[0]
             for _, group in data.table("subgroups").groupby("subgroup", sort=False)["row"]]
    close([[t["low"], t["high"], t["p_asymptotic_one_sided"]] for t in tests], told[["fisher_z_ci_low", "fisher_z_ci_high", "p_one_sided"]])


def test_bootstrap_is_that_of_repeated_rows(rows):
    """Concatenate the drawn families and correlate them with scipy, resample by resample."""
    families = sorted(rows["family"].unique())
    rng, rho = np.random.default_rng(3), []
    for _ in range(60):
        drawn = rng.integers(0, len(families), len(families))
        lines = pd.concat([rows[rows["family"] == families[i]] for i in drawn])
        rho.append(sps.spearmanr(lines["alpha_tot"], lines["c_cond"]).statistic)
    found = family_draws.family_bootstrap(rows, resamples=60, seed=3).iloc[0]
    close(found[["low", "high"]], np.percentile(rho, [2.5, 97.5]), 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=7))
def test_weights_are_repetitions(points):
    x, y, times = (np.array(values) for values in zip(*points, strict=True))
    long_x, long_y = np.repeat(x, times), np.repeat(y, times)
    if len(long_x) < 2 or np.ptp(long_x) == 0 or np.ptp(long_y) == 0:
        return
    found = family_draws.weighted_spearman(x.astype(float), y.astype(float), times[None])
    close(found, sps.spearmanr(long_x, long_y).statistic, 1e-12)


def test_bootstrap_refuses_what_it_cannot_draw(rows):
    with pytest.raises(DataError, match="a value is missing"):
        family_draws.family_bootstrap(rows.assign(alpha_tot=np.nan))
    with pytest.raises(DataError, match="subgroups, field 'row': 'x': expected one of sonnet-4.5"):
        family_draws.bootstraps(rows, pd.DataFrame({"subgroup": ["a"], "row": ["x"]}))
