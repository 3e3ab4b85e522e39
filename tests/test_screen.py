"""The screen on the paper's own rows, against its published tables and against computations made here."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr

from analysis import data, screen
from analysis.errors import DataError


@pytest.fixture(scope="module")
def rows():
    return data.model_rows()


@pytest.fixture(scope="module")
def reported(shared):
    return lambda name: pd.read_csv(shared / "upstream/reported" / f"{name}.csv")


@pytest.fixture(scope="module")
def groupings():
    return pd.read_csv(data.root() / "taxonomies.csv")


def close(got, said):
    """Compare two columns to 1e-9, in order."""
    assert got.to_numpy(dtype=float) == pytest.approx(said.to_numpy(dtype=float), abs=1e-9)


# --- the primary statistic ---


@pytest.mark.parametrize("how", ["mean", "median"])
def test_family_association_is_the_published_one(rows, how):
    # Sec. C.2: rho 0.8929 for mean and median, exact two-sided p 0.0123 over all 7! orders.
    got = screen.family_association(rows, how=how).iloc[0]
    assert (got["n_rows"], got["n_families"], got["n_orders"]) == (14, 7, 5040)
    assert (got["two_sided_count"], got["one_sided_count"]) == (62, 31)
    assert got["rho"] == pytest.approx(0.8928571428571429, abs=1e-12)
    assert got["p_asymptotic"] == pytest.approx(0.006807187408935392, abs=1e-12)
    assert got["note"] == ""


def test_family_association_by_hand(rows):
    """Group, rank and enumerate without the module under test."""
    sums = {}
    for line in rows.itertuples():
        sums.setdefault(line.family, []).append((line.alpha_tot, line.collapse / line.init_correct))
    alpha, c_cond = (rankdata([np.mean([v[i] for v in values]) for values in sums.values()]) for i in (0, 1))
    rho = 1 - 6 * sum((alpha - c_cond) ** 2) / (7 * 48)
    every = [1 - 6 * sum((alpha - np.array(y)) ** 2) / (7 * 48) for y in permutations(c_cond)]
    got = screen.family_association(rows).iloc[0]
    assert got["rho"] == pytest.approx(rho, abs=1e-12)
    assert got["two_sided_count"] == sum(abs(r) >= abs(rho) - 1e-12 for r in every)


def test_rounded_and_full_flip_rates_rank_alike(rows):
    assert (rankdata(rows["alpha_tot"]) == rankdata(rows["alpha_tot_full"])).all()
    assert (rankdata(rows["c_cond"]) == rankdata((100 * rows["c_cond"]).round(4))).all()
    full = screen.family_association(rows, "alpha_tot_full").iloc[0]
    assert (full["rho"], full["two_sided_count"]) == (pytest.approx(25 / 28, abs=1e-12), 62)


def test_family_means_are_simple_means_of_rows(rows, shared):
    got = screen.family_means(rows)
    qwen = rows[rows["family"] == "Qwen"]
    line = got.set_index("family").loc["Qwen"]
    assert line["n_rows"] == 6 and line["collapse"] == qwen["collapse"].sum()
    assert line["c_cond"] == pytest.approx((qwen["collapse"] / qwen["init_correct"]).mean(), abs=1e-15)
    pooled = line["collapse"] / line["init_correct"]
    assert abs(line["c_cond"] - pooled) > 0.05
    said = pd.read_csv(shared / "upstream/inputs/family_rows_g7.csv")
    assert got["family"].tolist() == said["family"].tolist()
    close(got["alpha_tot"], said["alpha_tot_mean"])
    close(got["init_acc"], said["init_acc_mean"])
    assert got["c_cond"].to_numpy() * 100 == pytest.approx(said["c_cond_pct_mean"].to_numpy(), abs=5e-5)
    middle = screen.family_means(rows, how="median")
    close(middle["alpha_tot"], said["alpha_tot_median"])


def test_model_row_association_is_the_published_one(rows, reported):
    # Table 23: rho 0.8295; its Fisher-z interval rounds the critical value to 1.96.
    got = screen.row_association(rows, z=1.96).iloc[0]
    assert got["rho"] == pytest.approx(0.8294834502328513, abs=1e-12)
    said = reported("model_row_headline_n14").set_index("quantity")["value"]
    for field, name in (("low", "fisher_z_ci_low"), ("high", "fisher_z_ci_high"),
                        ("p_asymptotic_one_sided", "p_one_sided")):
        assert got[field] == pytest.approx(float(said[name]), abs=1e-9)


def test_model_row_exact_p_is_near_the_asymptotic(rows):
    got = screen.row_association(rows, exact=True).iloc[0]
    assert got["n_orders"] == 87_178_291_200
    assert got["p_two_sided"] == got["two_sided_count"] / 87_178_291_200
    # The two zero rates tie; t is a rough guide this far out, of the same order.
    assert 1 < got["p_two_sided"] / got["p_asymptotic"] < 3


def test_effective_number_of_families(rows):
    # Sec. C.2: 4.08; by hand 14^2 / (6^2 + 2 * 2^2 + 4 * 1^2).
    assert screen.effective_families(rows)["effective_families"].item() == pytest.approx(196 / 48, abs=1e-12)


# --- leaving out and regrouping ---


def test_leave_one_family_out_on_family_means(rows, reported):
    said = reported("family_leave_out")
    got = screen.leave_one_family_out(rows)
    single = said[said["n_permutations"].isna()].reset_index(drop=True)
    assert got["dropped"].tolist() == single["dropped"].tolist()
    close(got["rho"], single["rho"])
    close(got["p_two_sided"], single["p_two_sided_exact"])
    close(got["p_one_sided"], single["p_one_sided_positive_exact"])
    counted = said.dropna(subset="n_permutations")
    for line in counted.itertuples():
        one = screen.drop_families(rows, line.dropped.split("|")).iloc[0]
        assert one["rho"] == pytest.approx(line.rho, abs=1e-9)
        assert (one["n_orders"], one["one_sided_count"], one["two_sided_count"]) == (
            line.n_permutations, line.one_sided_ge_count, line.two_sided_abs_count)


def test_leave_one_family_out_without_outside_files(rows):
    # Sec. C.2: worst case 0.8286 for four of seven, Meta out 1.000, Phi or Qwen out 0.943.
    got = screen.leave_one_family_out(rows).set_index("dropped")
    assert got["rho"].round(3).to_dict() == {
        "Anthropic": 0.829, "DeepSeek": 0.829, "Google": 0.829, "Meta": 1.0, "OpenAI": 0.829, "Phi": 0.943,
        "Qwen": 0.943}
    assert (got["n_orders"] == 720).all()
    both = screen.drop_families(rows, ["Meta", "Qwen"]).iloc[0]
    assert (both["dropped"], both["rho"]) == ("Meta + Qwen", 1.0)
    assert (both["two_sided_count"], both["n_orders"]) == (2, 120)


def test_leave_one_family_out_on_model_rows(rows, reported):
    said = reported("model_row_lofo_n14")
    got = screen.leave_one_family_out(rows, level="row")
    assert got["dropped"].tolist() == said["held_out_family"].tolist()
    close(got["rho"], said["rho"])
    close(got["n_rows"], said["n_remaining"])


@pytest.mark.parametrize("how", ["mean", "median"])
def test_leave_one_qwen_row_out(rows, reported, how):
    said = reported("leave_one_qwen_row").query("dropped_model != 'none'").reset_index(drop=True)
    got = screen.leave_one_row_out(rows, how=how)
    assert got["dropped"].tolist() == said["dropped_model"].tolist()
    for ours, theirs in {
        "row_rho": "model_row_rho",
        "row_p_asymptotic": "model_row_p_two_sided_asymptotic",
        "row_p_asymptotic_one_sided": "model_row_p_one_sided_asymptotic",
        "n_rows": "n",
        "family_rho": f"family_{how}_rho",
        "family_p_two_sided": f"family_{how}_p_two_sided_exact",
        "family_p_one_sided": f"family_{how}_p_one_sided_exact",
        "family_two_sided_count": f"family_{how}_two_sided_count",
        "family_one_sided_count": f"family_{how}_one_sided_count",
    }.items():
        close(got[ours], said[theirs])


def test_leave_one_row_out_covers_every_row_on_request(rows):
    got = screen.leave_one_row_out(rows, None)
    assert got["dropped"].tolist() == rows["row"].tolist()
    sonnet = got.set_index("dropped").loc["sonnet-4.5"]  # the only row of its family
    assert (sonnet["n_families"], sonnet["family_n_orders"]) == (6, 720)


def test_taxonomies_are_the_published_ones(rows, groupings):
    # Sec. C.2: 0.883 over 9 groups, 0.929 over 7, 0.933 over 9.
    got = screen.taxonomies(rows, groupings).set_index("taxonomy")
    assert got["rho"].round(3).to_dict() == {
        "family": 0.893, "qwen_generations": 0.883, "small_dense": 0.929, "both": 0.933}
    assert got["n_families"].tolist() == [7, 9, 7, 9]
    assert got["n_orders"].tolist() == [5040, 362880, 5040, 362880]


def test_taxonomy_table_lists_every_row_of_the_cohort(rows, groupings):
    for _, lines in groupings.groupby("taxonomy"):
        assert sorted(lines["row"]) == sorted(rows["row"])
    assert groupings["source"].str.startswith("sec. C.2").all()


def test_a_row_no_taxonomy_lists_keeps_its_family(rows, groupings):
    new = pd.DataFrame({"row": ["new"], "family": ["Other"], "alpha_tot": 0.5, "c_cond": 0.02})
    more = pd.concat([rows, new])
    assert screen.taxonomies(more, groupings)["n_families"].tolist() == [8, 10, 8, 10]
    as_dict = {"one": {"new": "Qwen"}}
    assert screen.taxonomies(more, as_dict)["n_families"].tolist() == [8, 7]


# --- comparators and partial correlations ---


def test_comparators_are_the_published_bakeoff(rows, reported):
    said = reported("predictor_bakeoff").set_index("predictor")
    names = {"alpha_tot": "alpha_tot", "init_acc": "init_acc", "final_acc": "final_acc",
             "correction_rate": "correction_pct", "collapse_rate": "raw_collapse_pct",
             "debate_revision_proxy": "debate_revision_proxy",
             "capability_pressure": "engels_capability_pressure_proxy"}
    got = screen.comparators(rows, names).set_index("predictor")
    want = said.loc[list(names.values())]
    for ours, theirs in {
        "row_rho": "model_row_rho", "row_p_asymptotic": "model_row_p_two_sided", "row_n": "model_row_n",
        "family_rho": "family_rho", "family_n": "family_n", "family_p_two_sided": "family_p_two_sided_exact",
        "family_p_one_sided": "family_p_one_sided_exact",
    }.items():
        close(got[ours], want[theirs])
    assert got["direction"].tolist() == want["family_observed_direction"].tolist()
    counted = want["family_two_sided_count"].notna().to_numpy()
    close(got.loc[counted, "family_two_sided_count"], want.loc[counted, "family_two_sided_count"])
    close(got.loc[counted, "family_one_sided_count"], want.loc[counted, "family_one_sided_count"])


@pytest.fixture(scope="module")
def known(rows, shared):
    """Rows with a column that only six of them have."""
    trace = pd.read_csv(shared / "upstream/inputs/trace_diversity_rows_n6.csv").set_index("model")
    return rows.assign(initial_disagreement_rate=rows["row"].map(trace["initial_disagreement_rate"]))


def test_a_predictor_known_for_some_rows_is_tested_on_those(known, reported):
    got = screen.comparators(known, ["initial_disagreement_rate"]).iloc[0]
    said = reported("predictor_bakeoff").set_index("predictor").loc["initial_disagreement_rate"]
    assert (got["row_n"], got["family_n"]) == (6, 3)
    assert got["row_rho"] == pytest.approx(said["model_row_rho"], abs=1e-9)
    assert got["family_rho"] == pytest.approx(said["family_rho"], abs=1e-9)
    # Two of three families tie at zero collapse: the share over 6 orders is that over the 3 distinct ones.
    assert got["family_n_orders"] == 6 and got["family_p_two_sided"] == pytest.approx(2 / 3)


def test_comparator_names_default_to_what_the_rows_hold(rows):
    got = screen.comparators(rows)
    assert got["predictor"].tolist() == list(screen.PREDICTORS)
    got = got.set_index("predictor")
    pressure, accuracy = got.loc["capability_pressure"], got.loc["init_acc"]
    assert pressure["row_rho"] == -accuracy["row_rho"]
    assert pressure["family_one_sided_count"] == accuracy["family_one_sided_count"] == 86


def test_constant_comparator_has_no_correlation_and_says_so(rows):
    got = screen.comparators(rows.assign(flat=1.0), ["flat"]).iloc[0]
    assert np.isnan(got["family_rho"]) and np.isnan(got["row_rho"]) and got["note"].startswith("all units")
    assert got["direction"] == "" and pd.isna(got["family_two_sided_count"])


def test_family_partial_is_the_published_one(rows):
    # Sec. C.3: 0.767, exact two-sided p 0.0877 (442 of 5,040; 221 one-sided); t p 0.0751 with df 4.
    got = screen.partial(rows).iloc[0]
    assert (got["n"], got["df"], got["n_orders"]) == (7, 4, 5040)
    assert (got["two_sided_count"], got["one_sided_count"]) == (442, 221)
    assert got["rho"] == pytest.approx(0.7669649888473703, abs=1e-9)
    assert got["p_t"] == pytest.approx(0.07513045462522985, abs=1e-9)
    assert got["t"] == pytest.approx(2.3904572187, abs=1e-9)


def test_model_row_partials_are_the_published_ones(known, reported):
    said = reported("partial_spearman")
    rename = {"engels_capability_pressure_proxy": "capability_pressure"}
    for line in said.itertuples():
        level = "family" if line.unit == "family" else "row"
        controls = [rename.get(name, name) for name in line.controls.split("|")]
        got = screen.partial(known, controls, level=level).iloc[0]
        assert (got["n"], got["df"]) == (line.n, line.df), line.controls
        assert got["rho"] == pytest.approx(line.rho, abs=1e-9)
        assert got["p_t"] == pytest.approx(line.p_two_sided, abs=1e-9)


def test_partial_with_too_few_units_says_so(rows):
    got = screen.partial(rows[rows["family"].isin(["Meta", "Phi", "Qwen"])]).iloc[0]
    assert np.isnan(got["rho"]) and got["note"] == "3 units and 1 controls: expected at least 4 units"


# --- rows from outside ---


def test_added_rows_are_a_sensitivity_beside_the_untouched_result(rows, shared, reported):
    held = pd.read_csv(shared / "upstream/inputs/qwen3_32b_a7_row.csv")
    added = held.assign(row=held["model"], c_cond=held["c_cond_pct"] / 100)
    added = added[["row", "family", "alpha_tot", "c_cond"]]
    got = screen.with_added(rows, added)
    assert got["rows"].tolist() == ["paper", "qwen3-32b"] and got["added"].tolist() == [False, True]
    assert got.loc[0, "two_sided_count"] == 62 and got.loc[0, "n_rows"] == 14
    said = reported("qwen3_32b_sensitivity").set_index("check")
    assert got.loc[1, "row_rho"] == pytest.approx(said.loc["model_row_n15", "rho"], abs=1e-9)
    assert got.loc[1, "rho"] == pytest.approx(said.loc["family_same_qwen_g7", "rho"], abs=1e-9)
    as_new_family = screen.with_added(rows, added.assign(family="stress")).iloc[1]
    assert as_new_family["rho"] == pytest.approx(said.loc["family_treat_as_stress_g8", "rho"], abs=1e-9)
    assert as_new_family["p_two_sided"] == pytest.approx(said.loc["family_treat_as_stress_g8", "p_two_sided"])
    assert as_new_family["n_orders"] == 40320


def test_added_rows_that_cannot_enter_say_why(rows):
    added = pd.DataFrame({"row": ["a", "b", "c"], "family": ["Qwen", "New", None], "c_cond": [0.3, None, 0.1],
                          "alpha_tot": [None, None, 0.2]}, dtype=object)
    got = screen.with_added(rows, added).set_index("rows")
    assert got["note"].to_dict() == {
        "paper": "", "a": "alpha_tot is missing: cannot enter",
        "b": "alpha_tot and c_cond are missing: cannot enter", "c": "family is missing: cannot enter",
        "all added": "no added row can enter"}
    assert got.loc[["a", "b", "c", "all added"], "rho"].isna().all()
    assert got.loc["paper", "rho"] == pytest.approx(25 / 28)
    without = screen.with_added(rows, added[["row", "family", "c_cond"]].iloc[:1])
    assert without["note"].tolist() == ["", "alpha_tot is missing: cannot enter"]


def test_all_added_together_leaves_out_what_cannot_enter(rows):
    added = pd.DataFrame({"row": list("abc"), "family": ["Qwen", "New", "New"],
                          "alpha_tot": [0.7, 0.2, np.nan], "c_cond": [0.3, 0.01, 0.2]})
    got = screen.with_added(rows, added).set_index("rows")
    together = got.loc["all added"]
    assert (together["n_added"], together["n_rows"], together["n_families"]) == (2, 16, 8)
    assert together["note"] == "without c"
    by_hand = pd.concat([rows, added.iloc[:2]])
    assert together["rho"] == screen.family_association(by_hand)["rho"].item()
    assert together["row_rho"] == pytest.approx(spearmanr(by_hand["alpha_tot"], by_hand["c_cond"]).statistic)


@pytest.mark.parametrize("nothing", [pd.DataFrame(), pd.DataFrame({"row": []})])
def test_no_added_rows_is_the_paper_alone(rows, nothing):
    got = screen.with_added(rows, nothing)
    assert got["rows"].tolist() == ["paper"] and got["two_sided_count"].tolist() == [62]


def test_added_row_with_a_taken_id_is_refused(rows):
    with pytest.raises(DataError, match="added row 'qwen3-4b': the id is already taken"):
        screen.with_added(rows, rows[rows["row"] == "qwen3-4b"])


def test_inputs_stay_as_they_were(rows):
    added = pd.DataFrame({"row": ["a"], "family": ["F"], "alpha_tot": [0.1], "c_cond": [0.2]})
    before, kept = rows.copy(), added.copy()
    screen.with_added(rows, added)
    screen.comparators(rows)
    screen.partial(rows, ["capability_pressure"])
    pd.testing.assert_frame_equal(rows, before)
    pd.testing.assert_frame_equal(added, kept)


# --- missing values, limits, errors ---


def test_rows_without_a_value_are_left_out_and_counted(rows):
    gappy = rows.copy()
    gappy.loc[gappy["row"] == "qwen3-4b", "alpha_tot"] = np.nan
    got = screen.family_association(gappy).iloc[0]
    assert (got["n_rows"], got["n_missing"], got["n_families"]) == (13, 1, 7)
    means = screen.family_means(gappy).set_index("family")
    assert np.isnan(means.loc["Qwen", "alpha_tot"]) and means.loc["Qwen", "c_cond"] > 0


def test_more_families_than_can_be_counted_keep_rho():
    many = pd.DataFrame({"row": [f"r{i}" for i in range(17)], "family": [f"f{i}" for i in range(17)],
                         "alpha_tot": np.arange(17) / 20, "c_cond": np.arange(17) / 30})
    got = screen.family_association(many).iloc[0]
    assert got["rho"] == pytest.approx(1) and np.isnan(got["p_two_sided"]) and pd.isna(got["n_orders"])
    assert got["note"] == "17 units: no exact p above 16"


def test_two_families_are_too_few(rows):
    got = screen.family_association(rows[rows["family"].isin(["Meta", "Qwen"])]).iloc[0]
    assert np.isnan(got["rho"]) and got["note"] == "2 units, expected at least 3"


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda r: screen.family_association(r, "alpha"), DataError, "no column 'alpha': expected one of row"),
    (lambda r: screen.family_association(r.assign(alpha_tot="high")), DataError, "field 'alpha_tot'"),
    (lambda r: screen.family_association(r.assign(family=None)), DataError, "row 'sonnet-4.5', field 'fam"),
    (lambda r: screen.family_association(r, how="pooled"), ValueError, "how='pooled': expected one of mean"),
    (lambda r: screen.drop_families(r, "Mistral"), DataError, "family='Mistral': expected one of"),
    (lambda r: screen.leave_one_row_out(r, "Mistral"), DataError, "family='Mistral': expected one of"),
    (lambda r: screen.leave_one_family_out(r, level="model"), ValueError, "expected one of family, row"),
    (lambda r: screen.partial(r, ["size"]), DataError, "no column 'size'"),
    (lambda r: screen.taxonomies(r, r), DataError, "no column 'taxonomy'"),
    (lambda r: screen.with_added(r, pd.DataFrame({"id": [1]})), DataError, "no column 'row'"),
])
def test_errors_name_what_is_wrong(rows, call, error, message):
    with pytest.raises(error, match=message):
        call(rows)
