"""The sealed cohort, its specification curve, and what the cohort's columns mix."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as sps

from analysis import claims, cohort, data, probes_released, sealed, specifications, stats
from analysis.errors import DataError


@pytest.fixture(scope="module")
def older():
    return data.sealed_rows()


@pytest.fixture(scope="module")
def nine(older):
    return sealed.nine_rows(older, data.table("sealed_vectors"))


@pytest.fixture(scope="module")
def reported(shared):
    return lambda name: pd.read_csv(shared / "upstream/reported" / f"{name}.csv")


def close(ours, theirs, atol=1e-9):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=atol)


# --- nine and eleven rows ---


def test_nine_row_tests_are_the_released_ones(nine, reported):
    told = reported("sealed_n9_spearman")
    ours = sealed.rank_tests(nine, sealed.CHANNELS)
    close(ours[["rho", "low", "high", "p_asymptotic"]], told[["rho", "ci_lo", "ci_hi", "p"]])
    # The paper's permutation p are shuffled; all 9! orders give 0.0172 and 0.0857.
    assert ours["p_two_sided"].round(4).tolist()[:2] == [0.0172, 0.0857] and (ours["n_orders"] == 362880).all()


def test_eleven_row_tests_are_the_released_ones(older, reported):
    told = reported("sealed_n11_rank_tests")
    ours = sealed.released_tests(older)
    close(ours[["n_rows", "statistic", "p"]], told[["n", "statistic", "pvalue"]])
    words = {"debate_flip_rate": "FR", "sa_ratio": "SA", "init_acc": "init_acc", "collapse_rate": "raw", "c_cond": "cond",
             "correction_rate": "recover"}
    assert [f"{m.lower()}_{words[x]}_{words[y]}" for m, x, y in zip(ours["method"], ours["predictor"], ours["outcome"])] == told["test"].tolist()


def test_partials_by_hand(nine):
    got = sealed.partials(nine).set_index("predictor")
    for name in sealed.CHANNELS:
        x, y, z = (sps.rankdata(nine[column]) for column in (name, "c_cond", "init_acc"))
        r = np.corrcoef([x, y, z])
        rho = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
        t = rho * np.sqrt(6 / (1 - rho**2))
        close(got.loc[name, ["rho", "p_t"]], [rho, 2 * sps.t.sf(abs(t), 6)])
    close(got["p_holm"], stats.holm(got["p_t"]))
    assert (got["p_holm"] > 0.05).all()


def test_left_out_r2_by_hand(nine):
    x, y = (nine[name].rank().to_numpy() for name in ("alpha_tot", "c_cond"))
    guesses = []
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        slope, base = np.polyfit(x[rest], y[rest], 1)
        guesses.append(base + slope * x[i])
    assert sealed.left_out_r2(nine["alpha_tot"], nine["c_cond"]) == pytest.approx(1 - ((y - guesses) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def test_clustered_logit_is_a_logistic_fit_with_sandwich_errors(nine):
    """Coefficients of an ordinary logit on the counts; errors from scores summed over families."""
    x = np.column_stack([np.ones(9), nine["alpha_adv"], nine["init_acc"]])
    k, n, beta = nine["collapse"].to_numpy(float), nine["init_correct"].to_numpy(float), np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        bread = np.linalg.inv((x * (n * p * (1 - p))[:, None]).T @ x)
        beta = beta + bread @ (x.T @ (k - n * p))
    scores = pd.DataFrame(x * (k - n * p)[:, None]).groupby(nine["family"]).sum().to_numpy()
    errors = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    got = sealed.clustered_logit(nine)
    close(got["coefficient"], beta[1:], 1e-6)
    close(got["z"], (beta / errors)[1:], 1e-4)


def test_a_vector_without_a_row_is_refused(older):
    with pytest.raises(DataError, match="field 'row': 'Nobody'; expected a row of sealed_rows.csv"):
        sealed.nine_rows(older, pd.DataFrame({"row": ["Nobody"], "alpha_tot": [0.1]}))


# --- debate and probe flip rates ---


def test_released_debate_flip_rates_are_probe_flip_rates(older):
    asked = sealed.default_probes_asked(data.table("strongest_probe"))
    got = sealed.flip_rates(older, data.debates(), data.table("probe_cells"), asked).set_index("row")
    assert got["is_probe_rate"].sum() == 6 and got["is_probe_rate"].isna().sum() == 2
    assert got.index[got["is_probe_rate"].fillna(False)].tolist() == [
        "GPT-5.4-mini", "Gemini 3-flash", "Phi-4-mini", "Qwen3-4B", "Llama-3.1-8B", "Qwen3-8B"]
    llama = got.loc["Llama-3.1-8B"]
    assert (llama["probe_flips"], llama["probe_asked"], llama["any_flip"], llama["n"]) == (3485, 4800, 641, 2003)
    debates = data.debates().query("row == 'llama-3.1-8b'")
    assert llama["any_flip"] == (debates["n_flipped_1"] > 0).sum() and llama["majority_change"] == debates["changed_1"].sum()


def test_probes_asked_fit_the_records():
    asked = sealed.default_probes_asked(data.table("strongest_probe"))
    readable = data.table("probe_cells").query("condition == 'default'").groupby("model")["n_probes"].sum()
    assert (readable[asked.index] <= asked).all() and asked.drop("Qwen3-32B").eq(4800).all()


# --- specification curve ---


@pytest.fixture(scope="module")
def curve_rows(nine):
    ratios = probes_released.social_to_argument(data.table("channel_contrasts"))
    return specifications.predictors(nine, data.table("strongest_probe"), ratios)


def test_specifications_with_hard_coded_cells_of_the_script(curve_rows):
    curve = specifications.specification_curve(curve_rows)
    assert not curve.duplicated(["predictor", "outcome", "adjusted"]).any()
    assert (curve["rho"] > 0).all() and curve["rho"].median() == pytest.approx(37 / 60)
    other = curve_rows.assign(init_acc=curve_rows["init_acc"].mask(curve_rows["row"] == "Qwen3-32B", 0.5),
                              collapse_rate=curve_rows["collapse_rate"].mask(curve_rows["row"] == "Qwen3-32B", 0.04))
    assert specifications.specification_curve(other)["rho"].median() == pytest.approx(37 / 60)


def test_specification_cells_by_hand(curve_rows):
    curve = specifications.specification_curve(curve_rows, draws=10).set_index(["predictor", "outcome", "adjusted"])["rho"]
    assert curve["alpha_tot", "c_cond", "none"] == pytest.approx(1 - 6 * 26 / 720)
    x, y, z = (sps.rankdata(curve_rows[name]) for name in ("alpha_adv", "c_cond", "init_acc"))
    left = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert curve["alpha_adv", "c_cond", "initial accuracy"] == pytest.approx(sps.spearmanr(*left).statistic)
    table = specifications.by_adjustment(curve.reset_index()).set_index("adjusted")
    assert table["cells"].to_dict() == {"none": 12, "initial accuracy": 12, "noise": 3, "all": 27}


def test_stated_axes_partial_is_the_rank_partial(nine):
    got = specifications.stated_axes(nine).set_index(["method", "predictor"])["rho"]
    partial = sealed.partials(nine).set_index("predictor").loc["alpha_tot", "rho"]
    assert got["Spearman", "alpha_tot | init_acc"] == pytest.approx(partial)
    assert (got > 0).all() and got["Kendall", "alpha_tot"] == pytest.approx(sps.kendalltau(nine["alpha_tot"], nine["c_cond"]).statistic)


# --- columns of the cohort ---


@pytest.fixture(scope="module")
def defined():
    asked = sealed.default_probes_asked(data.table("strongest_probe"))
    return cohort.alpha_definitions(data.model_rows(), data.table("probe_cells"), asked)


def test_one_definition_for_all_rows_keeps_the_family_test(defined):
    got = cohort.definition_tests(defined).set_index("definition")
    assert got["two_sided_count"].tolist() == [62, 62, 62, 62]
    assert got["row_rho"].round(4).to_dict() == {
        "released": 0.8295, "default_condition": 0.8515, "all_conditions": 0.8515, "all_replies": 0.8867}
    # The partial moves more than the association: under all three conditions it falls below the usual level.
    assert got.loc["all_conditions", "partial_p"] < 0.05 < got.loc["default_condition", "partial_p"]


def test_partial_p_under_all_conditions_by_enumeration(defined):
    means = defined.groupby("family")[["all_conditions", "c_cond", "init_acc"]].mean().rank().to_numpy()
    x, y, z = means.T
    left = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    rho = np.corrcoef(*left)[0, 1]
    reach = 0
    for order in permutations(y):
        rest = np.array(order) - np.polyval(np.polyfit(z, order, 1), z)
        if np.linalg.norm(rest) > 1e-6:
            reach += abs(np.corrcoef(left[0], rest)[0, 1]) >= abs(rho) - 1e-12
    got = cohort.definition_tests(defined).set_index("definition").loc["all_conditions"]
    assert (got["partial_rho"], got["partial_p"]) == (pytest.approx(rho), pytest.approx(reach / 5040))


def test_default_condition_is_the_released_column_for_older_rows(defined):
    older = defined["alpha_definition"].str.startswith("default")
    cells = data.table("probe_cells").query("condition == 'default'")
    means = cells.assign(row=cells["model"].map(sealed.slug), rate=cells["n_flip"] / cells["n_probes"]).groupby("row")["rate"].mean()
    close(defined.loc[older, "default_condition"], means[defined.loc[older, "row"]])
    assert older.sum() == 8 and (defined.loc[~older, "released"] - defined.loc[~older, "all_conditions"]).abs().max() < 5e-5


def test_a_row_without_counts_is_refused(defined):
    rows = data.model_rows().assign(alpha_definition="default_x")
    with pytest.raises(DataError, match="row 'deepseek-v4-flash': no line in probe_cells"):
        cohort.alpha_definitions(rows, data.table("probe_cells"), pd.Series(dtype=float))


def test_unreadable_replies_by_hand():
    asked = sealed.default_probes_asked(data.table("strongest_probe"))
    got = cohort.unreadable_replies(data.model_rows(), data.table("probe_cells"), asked).set_index("row")
    assert len(got) == 8
    llama = got.loc["llama-3.1-8b"]
    assert (llama["unreadable"], llama["flips"]) == (4800 - 2209 - 2295, 1706 + 1779)
    assert llama["readable_only"] == pytest.approx((1706 / 2209 + 1779 / 2295) / 2)
    assert (got["difference"] < 0).all() and got["difference"].idxmin() == "llama-3.1-8b"


def test_half_widths_are_walds_in_the_six_later_rows(reported):
    got = cohort.half_widths(data.model_rows(), data.table("released_half_widths")).set_index("row")
    wald_only = got.index[got["is_wald"] & ~got["is_wilson"]]
    assert wald_only.tolist() == data.model_rows().query("endpoint_round == 4")["row"].tolist()
    assert (got["is_wilson"] | got["is_wald"]).all()
    said = reported("d5_2_gate_table").set_index("model")["wilson_hw"]
    close(got["released"], said[got.index])
    ends = reported("c_cond_intervals_n14").set_index("model")
    close(got["wilson"], (ends["wilson_hi"] - ends["wilson_lo"])[got.index] / 2)


def test_endpoints_mix_two_rounds():
    got = cohort.endpoints(data.model_rows(), data.table("four_round_ledger")).set_index("endpoint_round")
    assert got["n_rows"].to_dict() == {3: 8, 4: 6}
    assert got.loc[4, ["collapse", "ledger_collapse", "begin_at_4"]].tolist() == [93, 75, 14]
    assert pd.isna(got.loc[3, "begin_at_4"])


def test_haiku_with_its_printed_flip_rate():
    printed = claims.printed_values(claims.registry())
    line = data.sealed_rows().query("row == 'Claude Haiku 4.5'")[["row", "family", "c_cond", "init_acc"]]
    got = cohort.with_left_out_row(data.model_rows(), line, {"Table 16": printed["t16.haiku45.alpha"]}).set_index("case")
    assert got.loc["without it", "two_sided_count"] == 62
    with_it = got.loc["Table 16"]
    assert (round(with_it["rho"], 3), round(with_it["p_two_sided"], 3), round(with_it["row_rho"], 3)) == (0.821, 0.034, 0.790)
    assert with_it["comparator_rho"] == pytest.approx(with_it["rho"])
