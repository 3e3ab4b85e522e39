"""The audit: printed numbers, the verdict rule, and that nothing is compared with itself."""

import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import claims, claims_arithmetic, claims_cells, data, recompute, sealed
from analysis.errors import DataError


@pytest.fixture(scope="module")
def registry():
    return claims.registry()


@pytest.fixture(scope="module")
def printed(registry):
    return claims.printed_values(registry)


@pytest.fixture(scope="module")
def computed(registry, printed):
    return pd.concat([recompute.values(printed), claims_arithmetic.values(registry, printed)])


@pytest.fixture(scope="module")
def verdicts(registry):
    return claims.verdicts(registry).set_index("id", drop=False)


# --- printed numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "value", "step", "relation", "absolute"), [
    ("6,925", 6925, 1, "=", False),
    ("1,234,567.5", 1234567.5, 0.1, "=", False),
    ("43.90", 43.9, 0.01, "=", False),
    ("+0.893", 0.893, 0.001, "=", False),
    ("-79", -79, 1, "=", False),
    ("\N{MINUS SIGN}0.05", -0.05, 0.01, "=", False),
    (".0123", 0.0123, 0.0001, "=", False),
    ("1.000", 1, 0.001, "=", False),
    ("-0.0", 0, 0.1, "=", False),
    ("1e-6", 1e-6, 1e-6, "=", False),
    ("1.3e-4", 1.3e-4, 1e-5, "=", False),
    ("3.7e-155", 3.7e-155, 1e-156, "=", False),
    ("$0.3520", 0.352, 0.0001, "=", False),
    ("58.9%", 58.9, 0.1, "=", False),
    (">10", 10, 1, ">", False),
    ("<=0.05", 0.05, 0.01, "<=", False),
    ("<0.02", 0.02, 0.01, "<", False),
    (">=2", 2, 1, ">=", False),
    ("|z|<=0.5", 0.5, 0.1, "<=", True),
    ("+/-1.5", 1.5, 0.1, "<=", True),
    ("~289", 289, 1, "=", False),
    ("~1750", 1750, 10, "=", False),
    ("~2,000", 2000, 1000, "=", False),
    ("~0.50", 0.5, 0.01, "=", False),
])
def test_printed_number_is_read(text, value, step, relation, absolute):
    found = claims.parse_printed(text)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.step == pytest.approx(step, rel=1e-12)
    assert (found.relation, found.absolute) == (relation, absolute)


@pytest.mark.parametrize("text", [
    "", "-", ".", "n/a", "5.28.4", "1,00", "12,3456", "1..5", "0x10", "1 2", "<>3", "nan", "e5",
])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(DataError, match="expected a printed number"):
        claims.parse_printed(text)


@pytest.mark.parametrize(("computed", "text", "expected"), [
    (62 / 5040, "0.0123", True),
    (0.01225, "0.0123", True),        # half way: rounds to 0.0122 or 0.0123
    (0.01225, "0.0122", True),
    (0.012249, "0.0123", False),
    (0.8295, "0.829", True),
    (0.82951, "0.829", False),
    (43.8, "43.90", False),
    (43.904, "43.90", True),
    (43.94, "43.9", True),
    (43.94, "43.90", False),          # a printed zero is a digit
    (-0.0004, "0.000", True),
    (0.0004, "-0.000", True),
    (-0.77, "0.77", False),
    (1.34e-4, "1.3e-4", True),
    (1.36e-4, "1.3e-4", False),
    (10.24, ">10", True),
    (10.0, ">10", False),
    (0.02, "<0.02", False),
    (0.05, "<=0.05", True),
    (1.99, ">=2", False),
    (-0.6, "|z|<=0.5", False),
    (-0.4, "|z|<=0.5", True),
    (1755, "~1750", True),
    (1756, "~1750", False),
    (290, "~289", False),
    (6925.4, "6,925", True),
    (6926, "6,925", False),
    (float("nan"), "0", False),
    (float("nan"), ">0", False),
])
def test_rounding_decides(computed, text, expected):
    assert claims.agrees(computed, claims.parse_printed(text)) is expected


def test_slack_widens_both_ways_and_no_further():
    number = claims.parse_printed("0.50")
    assert claims.agrees(0.515, number, slack=0.01) and claims.agrees(0.485, number, slack=0.01)
    assert not claims.agrees(0.516, number, slack=0.01)
    assert claims.agrees(0.52, claims.parse_printed("<0.51"), slack=0.02)
    assert not claims.agrees(0.52, claims.parse_printed("<0.51"), slack=0.01)


@given(st.floats(-1e5, 1e5), st.integers(0, 6))
def test_a_value_agrees_with_its_own_rounding_and_not_with_the_neighbours(value, digits):
    text = f"{value:,.{digits}f}"
    number = claims.parse_printed(text)
    assert claims.agrees(value, number)
    assert not claims.agrees(number.value + 0.51 * number.step, number)
    assert not claims.agrees(number.value - 0.51 * number.step, number)


# --- registry -----------------------------------------------------------------------------------------------


def test_registry_is_whole(registry):
    assert len(registry) == 870
    assert registry["id"].is_unique
    kinds = registry["rebuild"].value_counts()
    assert kinds[["setting", "gated", "reported"]].tolist() == [104, 181, 24]
    assert set(claims.SCALE) <= set(registry["unit"])


def test_what_is_printed_was_not_touched(registry, shared):
    given = pd.read_csv(shared / "claims" / "paper.csv", dtype=str, keep_default_na=False)
    ours = pd.read_csv(data.root() / "claims" / "paper.csv", dtype=str, keep_default_na=False)
    kept = ["id", "paper_location", "quantity", "scope", "value", "unit", "printed", "kind"]
    pd.testing.assert_frame_equal(ours[kept], given[kept])


def test_inputs_of_what_is_computed_are_there(registry, computed):
    known = data.dictionary().groupby("table")["column"].agg(set)
    of_data = registry[registry["id"].isin(computed.index) & (registry["rebuild"] != "arithmetic")]
    for line in of_data.itertuples():
        for part in line.inputs.split(";"):
            table, _, columns = part.partition(":")
            assert set(columns.split(",")) <= known[table], line.id


def _with(tmp_path, monkeypatch, edit):
    """A copy of data/ whose registry was edited."""
    shutil.copytree(data.root() / "claims", tmp_path / "claims")
    shutil.copy(data.root() / "dictionary.csv", tmp_path)
    path = tmp_path / "claims" / "paper.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    edit(table)
    table.to_csv(path, index=False)
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(tmp_path))


def _line(table, name):
    return table.index[table["id"] == name][0]


@pytest.mark.parametrize(("name", "field", "value", "says"), [
    ("abs.G", "id", "abs.n_debates", "an id of its own"),
    ("abs.G", "unit", "furlong", "furlong"),
    ("abs.G", "kind", "guess", "guess"),
    ("abs.G", "rebuild", "magic", "magic"),
    ("abs.G", "value", "8", "7, as printed"),
    ("abs.G", "printed", "seven", "a number as printed"),
    ("s1.susceptible_share", "printed", "10", "an inequality"),
    ("s1.freeze.net", "inputs", "abs.freeze.prevented,abs.freeze.gone", "abs.freeze.gone"),
    ("s1.freeze.net", "inputs", "abs.freeze.prevented,s1.*", "other claims than itself"),
])
def test_wrong_registry_is_refused_by_line_and_field(tmp_path, monkeypatch, name, field, value, says):
    at = {}

    def edit(table):
        at["line"] = _line(table, name)
        table.loc[at["line"], field] = value

    _with(tmp_path, monkeypatch, edit)
    with pytest.raises(DataError, match=says) as refused:
        claims.registry()
    assert f"line {at['line'] + 2}" in str(refused.value)
    assert repr(field) in str(refused.value)


def test_missing_column_is_refused(tmp_path, monkeypatch):
    _with(tmp_path, monkeypatch, lambda table: table.pop("cause"))
    with pytest.raises(DataError, match="cause"):
        claims.registry()


# --- verdicts -----------------------------------------------------------------------------------------------


def test_every_computed_claim_is_in_the_registry_and_computable(registry, computed):
    kinds = registry.set_index("id")["rebuild"]
    assert computed.index.is_unique
    assert set(computed.index) <= set(kinds.index)
    assert set(kinds[computed.index]) == set(claims.COMPUTABLE)
    assert computed["value"].notna().all()
    assert set(computed["notebook"]) <= set(claims_cells.NOTEBOOKS)


def test_arithmetic_claims_are_all_computed(verdicts, registry):
    arithmetic = registry.loc[registry["rebuild"] == "arithmetic", "id"]
    assert len(arithmetic) == 74
    assert verdicts.loc[arithmetic, "computed"].notna().all()


def test_every_claim_that_public_data_could_decide_is_computed(verdicts, registry):
    could = registry["rebuild"].isin(claims.COMPUTABLE).to_numpy()
    assert verdicts.loc[could, "computed"].notna().all()
    assert (verdicts["verdict"] != "open").all()


def test_verdict_follows_from_the_way_of_rebuilding(verdicts, registry):
    for rebuild, verdict in claims.NOT_COMPUTED.items():
        of_kind = verdicts[(registry["rebuild"] == rebuild).to_numpy()]
        assert (of_kind["verdict"] == verdict).all()
        assert of_kind["computed"].isna().all() and of_kind["notebook"].isna().all()
    decided = verdicts[verdicts["verdict"].isin(["holds", "differs"])]
    assert decided[["computed", "difference", "notebook"]].notna().all(axis=None)
    assert verdicts.loc[verdicts["verdict"] == "open", "computed"].isna().all()
    assert (verdicts["cohort"].fillna("") == verdicts["scope"].fillna("")).all()


def test_counts_by_verdict(verdicts):
    found = claims.counts(verdicts).iloc[0].to_dict()
    assert found == {
        "holds": 535, "differs": 26, "aggregate": 24, "gated": 181, "setting": 104, "open": 0,
        "claims": 870,
    }
    by = claims.counts(verdicts, by="unit")
    assert by.sum().to_dict() == found and by.loc["flag", "holds"] == 32


def test_no_verdict_changed_unnoticed(verdicts):
    changed = claims.changes(verdicts.reset_index(drop=True))
    assert changed.empty, f"look at these, then claims.freeze(claims.verdicts()):\n{changed.to_string()}"


def test_freezing_writes_ids_and_verdicts_only(tmp_path, monkeypatch, verdicts):
    _with(tmp_path, monkeypatch, lambda table: None)
    ours = verdicts.reset_index(drop=True)
    claims.freeze(ours.assign(verdict="open"))
    assert list(data.table(claims.FROZEN)) == ["id", "verdict"]
    assert len(claims.changes(ours)) == (ours["verdict"] != "open").sum()
    assert claims.changes(ours.iloc[1:])["id"].tolist().count(ours["id"][0]) == 1
    assert [path.name for path in (tmp_path / "claims").iterdir() if "part" in path.name] == []


def test_each_difference_has_a_cause_and_no_cause_is_idle(verdicts):
    caused = verdicts["cause"].notna()
    assert caused[verdicts["verdict"] == "differs"].all()
    others = verdicts[caused & (verdicts["verdict"] != "differs")]
    assert (others["slack"] > 0).all()
    # ... and those hold only because of what the data leave open.
    for line in others.itertuples():
        assert not claims.agrees(line.computed - line.slack, claims.parse_printed(line.printed)), line.id


# --- nothing is compared with itself ------------------------------------------------------------------------


def _reprinted(registry, ids, by=1000):
    """The registry with other numbers printed for some claims."""
    changed = registry.copy()
    at = changed["id"].isin(ids)
    changed.loc[at, "value"] += by
    changed.loc[at, "printed"] = changed.loc[at, "value"].map(lambda value: f"{value:.6f}")
    return changed


@pytest.mark.filterwarnings("ignore:invalid value")  # arithmetic on the changed numbers
def test_claims_from_data_do_not_depend_on_what_is_printed_for_them(registry, verdicts):
    done = verdicts["computed"].notna().to_numpy()
    own = registry[registry["rebuild"].isin(["rows", "counts"]) & done]
    assert len(own) == 487
    again = claims.verdicts(_reprinted(registry, own["id"])).set_index("id")
    np.testing.assert_array_equal(again.loc[own["id"], "computed"], verdicts.loc[own["id"], "computed"])
    assert (again.loc[own["id"], "verdict"] == "differs").all()


def test_data_values_read_protocol_sizes_only(printed, computed):
    named = ("b8.nominal", "a2.system_msgs", "abs.n_probes", "f1.f3_min")
    sizes = [name for name in printed.index
             if name in named or (name.startswith("t20.") and name.endswith(".n"))]
    bare = recompute.values(printed.where(printed.index.isin(sizes)))
    pd.testing.assert_frame_equal(bare, computed.loc[bare.index])


def test_arithmetic_does_not_depend_on_its_own_print(registry, computed):
    arithmetic = registry[registry["rebuild"] == "arithmetic"]
    taken = {name for line in arithmetic.itertuples()
             for name in claims_arithmetic.operands(line.inputs, registry["id"].tolist())}
    last = arithmetic.loc[~arithmetic["id"].isin(taken), "id"]
    groups = [last, *([name] for name in arithmetic.loc[arithmetic["id"].isin(taken), "id"])]
    assert len(groups) > 5
    for ids in groups:
        changed = _reprinted(registry, ids, by=3)
        again = claims_arithmetic.values(changed, claims.printed_values(changed))
        pd.testing.assert_series_equal(again.loc[ids, "value"], computed.loc[ids, "value"])


def test_arithmetic_does_depend_on_its_operands(registry):
    changed = _reprinted(registry, ["abs.freeze.lost"], by=7)
    again = claims.verdicts(changed).set_index("id")
    assert again.loc["s1.freeze.net", ["computed", "verdict"]].tolist() == [29 - 115, "differs"]
    assert again.loc["abs.freeze.lost", "verdict"] == "gated"


# --- hand-checked values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [
    ("abs.n_debates", 6925), ("abs.collapses", 253), ("t2.freeze.n", 6525), ("s5.1.oss_collapses", 251),
    ("s6.freeze.corrections", 804), ("e4.n", 3145), ("e4.questions", 1509),
    ("s1.onset.r1", 149), ("s5.1.onset.r2", 47), ("s5.1.onset.r3", 57), ("t2.onset.r1_pct", 100 * 149 / 253),
    ("e2.late_share", 10 * 104 / 253),
    ("s1.ccond.llama", 100 * 86 / 1016), ("t16.qwen3_4b.ccond", 100 * 50 / 979),
    ("s4.2.qwen_max", 100 * 36 / 82),
    ("d1.delta", 100 * 9 / 200), ("d1.ratio", 10),
    ("abs.family_p", 62 / 5040), ("abs.partial_p", 442 / 5040), ("c2.eff_n", 196 / 48),
    ("abs.family_rho", 1 - 6 * 6 / 336), ("s4.2.pairs", 91), ("c4.cov80", 5),
    ("t16.llama31_8b.alpha", 1706 / 2209), ("b4.gpt_adv_sa", 289 / 1088),
    ("s4.2.alpha.llama", (1706 / 2209 + 1779 / 2295) / 2),
    ("t20.llama31_8b.fr_d", 3485 / 4800), ("t20.gemini3f.fr_as", (1269 / 4800 + 1269 / 4792) / 2),
    ("s1.freeze.net", -79), ("s6.freeze.r2", 100 * (2 * 29 - 108) / 6525),
    ("e7.r1rule.delta", 100 * -13 / 1255),
    ("s1.breakeven", 69 / 56), ("g1.reordered_pct", 100 * 26 / 91), ("g1.power_12", 12), ("g1.power_21", 21),
    ("s5.2.holm_n", 12), ("t20.qwen3_4b.holm", 0), ("c6.r5_calls", 540),
    ("e5.reduction", 100 * (1 - 0.305 / 0.535)),
])
def test_value_by_hand(verdicts, name, expected):
    assert verdicts.loc[name, "computed"] == pytest.approx(expected, rel=1e-9)


def test_wilson_interval_by_hand(verdicts):
    k, n, z = 86, 1016, 1.959963984540054
    middle, half = k / n + z**2 / (2 * n), z * np.sqrt(k / n * (1 - k / n) / n + z**2 / (4 * n**2))
    ends = verdicts.loc[["t16.llama31_8b.ccond_lo", "t16.llama31_8b.ccond_hi"], "computed"]
    assert ends.tolist() == pytest.approx([100 * (middle + sign * half) / (1 + z**2 / n) for sign in (-1, 1)])


def test_published_fit_gives_the_published_areas(verdicts):
    names = ["s1.auc.base", "s1.auc.r1", "t2.auc.full"]
    assert verdicts.loc[names, "computed"].round(4).tolist() == [0.6691, 0.7685, 0.8459]
    ends = ["s5.1.dr1_lo", "s5.1.dr1_hi", "s5.1.dfull_lo", "s5.1.dfull_hi"]
    assert verdicts.loc[ends, "computed"].round(3).tolist() == [0.080, 0.118, 0.064, 0.092]


def test_seeded_draws_are_the_released_ones(shared, verdicts):
    told = pd.read_csv(shared / "upstream" / "reported" / "eiv_summary.csv").set_index("cohort").loc["n14"]
    ours = verdicts.loc[["s4.3.eiv_median", "c6.eiv14_lo", "c6.eiv14_hi", "c6.eiv14_pr"], "computed"]
    expected = told[["median", "ci_lo", "ci_hi", "p_gt_0"]].astype(float).tolist()
    assert ours.tolist() == pytest.approx(expected, rel=1e-12)


def test_held_out_families_are_the_released_ones(shared, verdicts):
    told = pd.read_csv(shared / "upstream" / "reported" / "lofo_summary.csv")
    told = told.set_index("analysis").loc["plain_lofo"]
    ours = verdicts["computed"]
    inside = [f"{ours[name]:.0f}/7" for name in ("c4.cov80", "c4.cov95")]
    assert inside == told[["coverage_80", "coverage_95"]].tolist()
    named = {"c4.mare": "mean_absolute_rank_error", "c4.rho": "predicted_vs_observed_rho",
             "c4.p": "predicted_vs_observed_p_two_sided"}
    expected = [float(told[column]) for column in named.values()]
    assert ours[list(named)].tolist() == pytest.approx(expected, rel=1e-9)


# --- the causes given ---------------------------------------------------------------------------------------


def test_rates_printed_for_debates_are_probe_rates(registry, printed):
    probes = data.table("probe_cells").query("condition == 'default'").groupby("model")["n_flip"].sum()
    asked = printed["b8.nominal"] / printed["a2.system_msgs"] * printed["abs.n_probes"]
    table = registry.set_index("id")
    for name in claims_cells.TRACED:
        number = claims.parse_printed(table.loc[f"t16.{name}.fr", "printed"])
        assert claims.agrees(probes[claims_cells.PROBED[name]] / asked, number)


def test_left_out_r2_comes_near_only_under_other_readings(verdicts):
    rows = sealed.nine_rows(data.sealed_rows(), data.table("sealed_vectors"))
    cells = data.table("probe_cells").query("condition == 'default' and not social").set_index("model")
    asked = {model: 7200 if model == "Qwen3-32B" else 2400 for model in cells.index}
    alone = rows["row"].map(cells["n_flip"] / pd.Series(asked))
    assert sealed.left_out_r2(alone, rows["c_cond"]) == pytest.approx(0.25, abs=0.005)
    for name in ("c8.r2_tot", "c8.r2_adv"):
        assert abs(verdicts.loc[name, "difference"]) > 0.03


def test_printed_rate_below_every_possible_one(verdicts):
    too_low = verdicts[verdicts["id"].str.startswith("t20.") & (verdicts["verdict"] == "differs")]
    assert len(too_low) == 4
    assert (too_low["computed"] - too_low["slack"] > too_low["value"]).all()
