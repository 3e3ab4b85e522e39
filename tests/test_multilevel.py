"""The multilevel model: its design and density by hand, its draws against a refit, the released summaries and
damage."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nutpie
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import same_color
from scipy import stats as sps
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from analysis import claims_multilevel, cli, data, figures_multilevel, multilevel, posterior, tables_multilevel
from analysis.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
SLOPES = list(multilevel.PREDICTORS)


@pytest.fixture(scope="module")
def design():
    return multilevel.paper_design("reported")


@pytest.fixture(scope="module")
def stored():
    return {name: multilevel.load(name) for name in multilevel.FITS}


@pytest.fixture(scope="module")
def summaries(stored):
    return {name: multilevel.summarize(draws) for name, draws in stored.items()}


@pytest.fixture(scope="module")
def short(design):
    """A fit of seconds: two short chains."""
    return multilevel.fit(design, draws=300, tune=500, chains=2, target_accept=0.9, seed=7)


@pytest.fixture
def small():
    """Five debates at risk of two rows, one debate wrong from the start, one row without a second
    collapse."""
    return pd.DataFrame({
        "row": ["a", "a", "a", "b", "b", "b", "c"], "question": ["1", "2", "3", "1", "2", "3", "1"],
        "correct_0": [True, True, True, True, True, False, True],
        "cell": ["collapse", "collapse", "preserved", "collapse", "collapse", "correction", "collapse"],
        "changed_1": [True, False, False, False, False, True, True], "n_flipped_1": [2, 0, 0, 3, 0, 1, 3],
        "agree_1": [1.0, 2 / 3, 1.0, 1 / 3, 1.0, 1.0, 1.0],
    })


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of data/ that may be damaged."""
    copy = tmp_path / "data"
    shutil.copytree(data.root(), copy, ignore=shutil.ignore_patterns("rows", "examples", "claims"))
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    return copy


# --- design -------------------------------------------------------------------------------------------------


def test_design_by_hand(small):
    found = multilevel.design(small, pd.Series({"a": 0.2, "b": 0.7, "c": 0.5}))
    assert found[["row", "question", "collapse"]].values.tolist() == [
        ["a", "1", True], ["a", "2", True], ["a", "3", False], ["b", "1", True], ["b", "2", True]]
    assert found["changed_1"].tolist() == pytest.approx([2, -0.5, -0.5, -0.5, -0.5])  # mean 1/5, sd sqrt(4/25)
    assert found["n_flipped_1"].tolist() == pytest.approx(np.array([1, -1, -1, 2, -1]) / np.sqrt(8 / 5))
    assert found["unanimous_1"].tolist() == pytest.approx(np.array([2, -3, 2, -3, 2]) / np.sqrt(6))
    assert found["alpha"].tolist() == pytest.approx(np.array([-2, -2, -2, 3, 3]) / np.sqrt(6))


def test_least_collapses_decides_which_rows_enter(small):
    alpha = pd.Series({"a": 0.2, "b": 0.7, "c": 0.5})
    rows = [multilevel.design(small, alpha, least_collapses=n)["row"].nunique() for n in (0, 1, 2)]
    assert rows == [3, 3, 2]
    with pytest.raises(DataError, match="row 'b': no flip rate; expected one of a"):
        multilevel.design(small, alpha[["a"]])
    with pytest.raises(DataError, match="predictor 'alpha': one value in all 5 debates"):
        multilevel.design(small, alpha * 0)


@pytest.mark.parametrize(("name", "n_models", "n_questions"), [("reported", 4, 1509), ("all-models", 6, 1569)])
def test_paper_design_from_the_released_matrix(name, n_models, n_questions):
    """Apart from the package: from the file's own columns, standardized by scikit-learn."""
    raw = pd.read_csv(data.root() / "debates.csv")
    raw = raw[raw["init_correct"] == 1]
    if name == "reported":
        raw = raw[raw["model"].map(raw.groupby("model")["collapsed"].sum()) > 1]
    names = {"gemini/3-flash": "Gemini 3-flash", "openai/gpt-5.4-mini": "GPT-5.4-mini", "vllm/phi-4-mini": "Phi-4-mini",
             "vllm/qwen3-4b": "Qwen3-4B", "vllm/llama-3.1-8b": "Llama-3.1-8B", "vllm/qwen3-8b": "Qwen3-8B"}
    sealed = data.table("sealed_vectors").set_index("row")["alpha_tot"]
    x = np.column_stack([raw["r1_majority_changed"], raw["r1_n_flipped_from_init"], raw["r1_agree_frac"] >= 1,
                         raw["model"].map(names).map(sealed)])
    found = multilevel.paper_design(name)
    assert found["collapse"].tolist() == raw["collapsed"].eq(1).tolist()
    assert found["question"].tolist() == raw["question_id"].tolist()
    np.testing.assert_allclose(found[SLOPES], StandardScaler().fit_transform(x.astype(float)), atol=1e-12)
    assert (found["row"].nunique(), found["question"].nunique()) == (n_models, n_questions)


# --- model --------------------------------------------------------------------------------------------------


def test_density_by_hand(small):
    """The joint density at some points, from scipy's distributions."""
    design = multilevel.design(small, pd.Series({"a": 0.2, "b": 0.7, "c": 0.5}))
    model = multilevel.model(design)
    density = model.compile_logp(mode="FAST_COMPILE")  # needs no compiler
    rng = np.random.default_rng(3)
    for _ in range(3):
        point = {
            "intercept": rng.normal(), "slopes": rng.normal(size=4), "sigma_model": rng.gamma(2),
            "sigma_question": rng.gamma(2),
            "z_model": rng.normal(size=2), "z_question": rng.normal(size=3),
        }
        given_model = {"a": 0, "b": 1}
        logit = np.array([
            point["intercept"] + line[SLOPES].to_numpy(float) @ point["slopes"]
            + point["sigma_model"] * point["z_model"][given_model[line["row"]]]
            + point["sigma_question"] * point["z_question"][int(line["question"]) - 1]
            for _, line in design.iterrows()
        ])
        expected = sps.bernoulli.logpmf(design["collapse"], 1 / (1 + np.exp(-logit))).sum()
        expected += sps.norm.logpdf(point["intercept"], 0, 2) + sps.norm.logpdf(point["slopes"], 0, 1).sum()
        expected += sum(sps.norm.logpdf(point[name]).sum() for name in ("z_model", "z_question"))
        for name in ("sigma_model", "sigma_question"):  # the sampler moves on the log scale
            expected += sps.halfnorm.logpdf(point[name], scale=2) + np.log(point[name])
            point[f"{name}_log__"] = np.log(point.pop(name))
        assert density(point) == pytest.approx(expected)


def test_replicates_follow_the_draws(small):
    design = multilevel.design(small, pd.Series({"a": 0.2, "b": 0.7, "c": 0.5}))
    certain = {"intercept": np.array([-40.0, 40.0, 0.0, 0.0]), "slopes": np.zeros((4, 4)), "sigma_question": np.ones(4),
               "z_question": np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [-90, 90, 90.0]])}
    deviations = np.array([[0, 0], [0, 0], [40, -40.0], [0, 0]])  # row a collapses and b does not; question 1 never collapses
    counts = multilevel._replicates(design, certain, deviations, np.random.default_rng(0))
    assert counts.tolist() == [0, 5, 3, 3]


def test_sampler_and_its_libraries_are_imported_only_to_sample():
    said = subprocess.run(
        [sys.executable, "-c", "import sys, analysis.multilevel, analysis.recompute\n"
                               "analysis.multilevel.load('reported')\n"
                               "print({'pymc', 'nutpie', 'arviz', 'numba'} & set(sys.modules))"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )
    assert said.stdout.strip() == "set()"


# --- summaries ----------------------------------------------------------------------------------------------


def test_shares_of_variance_by_hand():
    draws = pd.DataFrame({"chain": 0, "draw": 0, "sigma_model": [2.0], "sigma_question": [3.0], "replicate": [4]})
    draws.attrs["collapses"] = 5
    found = multilevel.quantities(draws).iloc[0]
    assert found["icc_model"] == pytest.approx(4 / (4 + 9 + 3.289868133696453))
    assert found["icc_question"] == pytest.approx(9 / (4 + 9 + 3.289868133696453))
    assert found["predictive"] == 0


@given(st.lists(st.floats(-100, 100, width=32), min_size=20, max_size=80), st.sampled_from([0.5, 0.8, 0.95]))
def test_shortest_interval_is_the_shortest(values, level):
    low, high = posterior.hdi(np.array(values), level)
    inside = sum(low <= value <= high for value in values)
    assert inside >= level * len(values)
    # All intervals between two draws that hold as many draws, counted out.
    steps = int(level * len(values))
    ordered = sorted(values)
    assert high - low == min(ordered[i + steps] - ordered[i] for i in range(len(values) - steps))


def test_summaries_agree_with_arviz(stored, summaries):
    import arviz

    level = {"hdi_prob" if arviz.__version__ < "1" else "prob": 0.95}
    draws, summary = stored["reported"], summaries["reported"]
    for term in multilevel.TERMS:
        values = draws[term].to_numpy(float)
        assert summary.loc[term, ["hdi_low", "hdi_high"]].tolist() == pytest.approx(arviz.hdi(values, **level).tolist(), abs=1e-6)
        assert summary.loc[term, "mean"] == pytest.approx(values.mean(), abs=1e-6)
        assert summary.loc[term, ["low", "median", "high"]].tolist() == pytest.approx(np.quantile(values, [0.025, 0.5, 0.975]), abs=1e-5)
        by_chain = values.reshape(draws.attrs["chains"], -1)
        # The error of a mean has a formula; effective draws of all draws, taken to the paper's size.
        formula = values.std() / np.sqrt(arviz.ess(by_chain, method="mean") * multilevel.PAPER_SIZE / len(draws))
        assert summary.loc[term, "mean_error"] == pytest.approx(formula, rel=0.35)


def test_stored_convergence_is_that_of_the_stored_draws(stored):
    for draws in stored.values():
        found = posterior.diagnose(draws, multilevel.TERMS)
        for column in found:
            told = {term: line[column] for term, line in draws.attrs["diagnostics"].items()}
            assert found[column].to_dict() == pytest.approx(told, rel=1e-3)
        assert found["rhat"].max() < 1.01 and found["ess_bulk"].min() > 400
        assert len(draws) == draws.attrs["chains"] * draws.attrs["draws"] and draws.attrs["divergences"] < len(draws) / 1000


def test_monte_carlo_error_of_a_mean():
    rng = np.random.default_rng(5)
    noise = rng.normal(size=40_000)
    slow = np.zeros(40_000)
    for i in range(1, len(slow)):  # each draw keeps 0.8 of the one before: errors are larger by sqrt(1.8 / 0.2)
        slow[i] = 0.8 * slow[i - 1] + 0.6 * noise[i]
    found = posterior.monte_carlo({"noise": noise, "slow": slow}, chains=4, size=8000)
    assert found.loc["noise", "mean"] == pytest.approx(8000**-0.5, rel=0.15)
    assert found.loc["slow", "mean"] == pytest.approx(3 * 8000**-0.5, rel=0.2)
    # Asymptotic error of a quantile: sqrt(p (1 - p) / n) over the density there.
    quantile = np.sqrt(0.025 * 0.975 / 8000) / sps.norm.pdf(sps.norm.ppf(0.975))
    assert found.loc["noise", "high"] == pytest.approx(quantile, rel=0.25)


# --- agreement ----------------------------------------------------------------------------------------------


def test_a_short_fit_agrees_with_the_stored_draws(short, stored, summaries):
    summary = summaries["reported"]
    for term in multilevel.TERMS:
        values, ess = short[term].to_numpy(float), short.attrs["diagnostics"][term]["ess_bulk"]
        error = np.hypot(values.std() / np.sqrt(ess), summary.loc[term, "mean_error"])
        assert abs(values.mean() - summary.loc[term, "mean"]) < 4 * error, term
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):  # of the short fit's draws below the stored quantile
            below = (values <= stored["reported"][term].quantile(share)).mean()
            assert below == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / ess)), (term, share)
    assert list(short) == list(stored["reported"])
    assert short.attrs["fingerprint"] == stored["reported"].attrs["fingerprint"]


RELEASED = {
    "intercept": "intercept", "b_R1_majchange": "changed_1", "b_R1_flips": "n_flipped_1",
    "b_R1_unanimous": "unanimous_1",
    "b_alpha": "alpha", "sigma_model": "sigma_model", "sigma_question": "sigma_question",
}
RELEASED_ROWS = {
    "Llama-3.1-8B": "llama-3.1-8b", "Phi-4-mini": "phi-4-mini", "Qwen3-4B": "qwen3-4b",
    "Qwen3-8B": "qwen3-8b",
    "GPT-5.4-mini": "gpt-5.4-mini", "Gemini 3-flash": "gemini-3-flash",
}


def released(shared, name, fit):
    table = pd.read_csv(shared / "upstream" / "reported" / f"{name}.csv", index_col=0)
    return table[table["source"].str.contains("predrop") == (fit == "all-models")]


def both_errors(line, column, of):
    """Standard error of the difference between a fit of the paper's size and ours."""
    return line[f"{column}_error"] * np.sqrt(1 + multilevel.PAPER_SIZE / of)


@pytest.mark.parametrize("fit", multilevel.FITS)
def test_released_coefficients(shared, stored, summaries, fit):
    found, n = summaries[fit], len(stored[fit])
    apart = set()
    for term, told in released(shared, "bayes_mlm_coefficients", fit).iterrows():
        line = found.loc[RELEASED[term]]
        for column, theirs in [("mean", "mean"), ("hdi_low", "hdi_2_5"), ("hdi_high", "hdi_97_5")]:
            if abs(line[column] - told[theirs]) >= 3.5 * both_errors(line, column, n) + 0.0005:
                apart.add(RELEASED[term])
    # The released fit of all models has a steeper slope of flips (0.465) than the released matrix gives; nothing printed rests on it.
    assert apart == ({"n_flipped_1"} if fit == "all-models" else set())


@pytest.mark.parametrize("fit", multilevel.FITS)
def test_released_intercepts_and_shares(shared, stored, summaries, fit):
    found, n = summaries[fit], len(stored[fit])
    models = released(shared, "bayes_mlm_random_intercepts", fit)
    assert {RELEASED_ROWS[name] for name in models.index} == set(stored[fit]) & set(RELEASED_ROWS.values())
    for model, told in models.iterrows():
        line = found.loc[RELEASED_ROWS[model]]
        assert abs(line["mean"] - told["posterior_mean_logit"]) < 3.5 * both_errors(line, "mean", n), model
    table = released(shared, "bayes_mlm_summary", fit)
    for part in ("icc_model", "icc_question"):
        for column, theirs in [("median", "value"), ("low", "hdi_2_5"), ("high", "hdi_97_5")]:
            line = found.loc[part]
            assert abs(line[column] - table.loc[f"{part}_median", theirs]) < 3.5 * both_errors(line, column, n), (part, column)
    line = found.loc["predictive"]
    assert abs(line["mean"] - table.loc["ppc_ppc_p_one_sided", "value"]) < 3.5 * both_errors(line, "mean", n)
    counts = {name: stored[fit].attrs[name] for name in ("debates", "collapses", "models", "questions")}
    assert list(counts.values()) == table.loc[["n_debates", "n_collapsed", "n_models", "n_questions"], "value"].tolist()
    rates = stored[fit]["replicate"] / counts["debates"]
    assert rates.mean() == pytest.approx(table.loc["ppc_replicate_mean", "value"], abs=0.0005)
    assert np.quantile(rates, [0.025, 0.975]) == pytest.approx(table.loc[["ppc_replicate_q025", "ppc_replicate_q975"], "value"], abs=0.001)


def test_claims_hold_two_errors_to_both_sides(stored, summaries):
    found = claims_multilevel.posterior(stored["reported"])
    line = summaries["reported"].loc["alpha"]
    wide = 2 * line["mean_error"] * np.sqrt(1 + 8000 / len(stored["reported"]))
    assert found["s5.1.mlm_alpha"] == pytest.approx((line["mean"] - wide, line["mean"] + wide))
    assert len(found) == 17 and all(low < high for low, high in found.values())


# --- stored draws -------------------------------------------------------------------------------------------


def test_fingerprint_follows_data_and_model(design, monkeypatch):
    marks = {multilevel.fingerprint(design)}
    for column, value in [("collapse", not design["collapse"][0]), ("question", "another"), ("row", "other"), ("alpha", 0.5)]:
        changed = design.copy()
        changed.loc[0, column] = value
        marks.add(multilevel.fingerprint(changed))
    marks.add(multilevel.fingerprint(design.iloc[1:]))
    monkeypatch.setitem(multilevel.PRIORS, "sigma", 1.0)
    marks.add(multilevel.fingerprint(design))
    monkeypatch.undo()
    monkeypatch.setattr(multilevel, "MODEL_VERSION", multilevel.MODEL_VERSION + 1)
    marks.add(multilevel.fingerprint(design))
    assert len(marks) == 8
    monkeypatch.undo()
    # What a processor may do to the last bits of a mean does not count.
    noise = design.assign(alpha=design["alpha"] * (1 + 1e-15))
    assert multilevel.fingerprint(noise) == multilevel.fingerprint(design)


def test_draws_of_other_data_are_refused(elsewhere):
    path = elsewhere / "debates.csv"
    raw = pd.read_csv(path, dtype=str, keep_default_na=False)
    risk = raw.index[(raw["model"] == "vllm/phi-4-mini") & (raw["init_correct"] == "1")]
    raw.drop(index=raw.index[raw["init_correct"] == "0"][0]).to_csv(path, index=False)
    assert len(multilevel.load("reported"))  # a debate that began wrong is not in the model
    raw.drop(index=risk[0]).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"reported.parquet, field 'fingerprint'.*other data or another model; run `make mlm`"):
        multilevel.load("reported")
    multilevel.path("reported").unlink()
    with pytest.raises(DataError, match="no stored draws; expected those of `make mlm`"):
        multilevel.load("reported")
    with pytest.raises(ValueError, match="name='other': expected one of reported, all-models"):
        multilevel.load("other")


@pytest.mark.parametrize("damage, said", [
    (lambda path: path.write_bytes(path.read_bytes()[:5000]), "Parquet"), (lambda path: path.write_bytes(b""), "Parquet"),
    (lambda path: _rewritten(path, lambda draws: draws.drop(columns="sigma_model")), "no column 'sigma_model'"),
    (lambda path: _rewritten(path, lambda draws: draws.iloc[:0]), "no draws"),
])
def test_damaged_draws_are_a_data_problem(elsewhere, damage, said):
    damage(multilevel.path("reported"))
    with pytest.raises(DataError, match=f"reported.parquet.*{said}.*`make mlm`"):
        multilevel.load("reported")


def _rewritten(path, change):
    draws = pd.read_parquet(path)
    changed = change(draws)
    changed.attrs = draws.attrs
    changed.to_parquet(path, index=False)


def test_damaged_draws_are_no_wrong_usage_of_the_command(tmp_path, monkeypatch):
    copy = tmp_path / "data"
    shutil.copytree(data.root(), copy, ignore=shutil.ignore_patterns("rows", "examples"))
    (copy / "multilevel" / "reported.parquet").write_bytes(b"no draws")
    monkeypatch.setenv("DEBATE_LEDGER_DATA", str(copy))
    found = CliRunner().invoke(cli.app, ["claims", "--page", "multilevel"])
    assert isinstance(found.exception, DataError)  # `main` turns it into exit status 1


def test_draws_are_stored_whole_or_not_at_all(elsewhere, stored, monkeypatch):
    path = multilevel.path("reported")
    before = path.read_bytes()

    def torn(frame, target, **_):
        Path(target).write_bytes(b"PAR1")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", torn)
        with pytest.raises(KeyboardInterrupt):
            multilevel.save(stored["all-models"], "reported")
    assert path.read_bytes() == before and os.listdir(path.parent).count("reported.parquet.part") == 0
    multilevel.save(stored["reported"].iloc[:10], "reported")
    again = multilevel.load("reported")
    pd.testing.assert_frame_equal(again, stored["reported"].iloc[:10])
    assert again.attrs == stored["reported"].attrs


class Stopped:
    """A sampler that is stopped by hand."""

    cancelled = False

    def wait(self):
        raise KeyboardInterrupt

    def cancel(self):
        self.cancelled = True


def test_a_stopped_run_keeps_the_old_draws(elsewhere, monkeypatch):
    before = multilevel.path("reported").read_bytes()
    sampler = Stopped()
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model: model)
    monkeypatch.setattr(nutpie, "sample", lambda model, **_: sampler)
    found = CliRunner().invoke(cli.app, ["mlm", "--fit", "reported"])
    assert found.exit_code == 130 and sampler.cancelled
    assert multilevel.path("reported").read_bytes() == before


def test_command_samples_and_stores(elsewhere, stored, monkeypatch):
    asked = []

    def sampled(design, **options):
        asked.append((len(design), options))
        return stored["reported"].iloc[:40]

    monkeypatch.setattr(multilevel, "fit", sampled)
    found = CliRunner().invoke(cli.app, ["mlm", "--fit", "reported", "--draws", "200", "--seed", "3", "--json"])
    assert found.exit_code == 0
    assert asked == [(3145, {"draws": 200, "tune": 3000, "chains": 4, "seed": 3, "progress": True})]
    line, = json.loads(found.stdout)
    assert (line["fit"], line["debates"], line["draws"]) == ("reported", 3145, 5000)
    assert len(multilevel.load("reported")) == 40
    assert CliRunner().invoke(cli.app, ["mlm", "--fit", "other"]).exit_code == 2
    assert CliRunner().invoke(cli.app, ["mlm", "--seed", str(2**64)]).exit_code == 2  # more than the sampler takes
    assert CliRunner().invoke(cli.app, ["mlm", "--chains", "1"]).exit_code == 2


# --- page ---------------------------------------------------------------------------------------------------


def test_tables_show_what_was_summarized(summaries, stored, design):
    summary = summaries["reported"].copy()
    summary.loc["alpha", ["mean", "hdi_low", "hdi_high", "rhat", "ess_bulk", "mean_error"]] = [-0.0651, -0.966, 0.806, 1.0004, 3674.4, 0.0071]
    line = tables_multilevel.coefficients(summary).set_index("Term").loc["Flip rate of the model"]
    assert line[["Mean", "95% HDI", "R-hat", "Bulk ESS", "Error of the mean"]].tolist() == ["−0.07", "[−0.97, 0.81]", "1.000", "3,674", "0.007"]
    models = tables_multilevel.intercepts(summary, design).set_index("Row")["Collapses / right at first"]
    assert [text.split(" (")[1] for text in models] == ["86/1,016)", "112/1,094)", "50/979)", "3/56)"]
    shares = tables_multilevel.shares(summaries)
    assert shares[["Between", "Fit"]].values.tolist() == [
        ["models", "as reported"], ["questions", "as reported"], ["models", "no model left out"], ["questions", "no model left out"]]
    fits = tables_multilevel.fits(multilevel.overview(stored))
    assert fits[["Debates", "Collapses", "Models", "Questions"]].values.tolist() == [["3,145", "251", "4", "1,509"], ["3,458", "253", "6", "1,569"]]


def test_what_the_page_says_in_words(summaries):
    for summary in summaries.values():
        away = summary["hdi_low"] * summary["hdi_high"] > 0
        assert away[["changed_1", "n_flipped_1", "unanimous_1"]].all() and not away["alpha"]
        assert summary.loc["changed_1", "mean"] > 0 and summary.loc["n_flipped_1", "mean"] > 0 > summary.loc["unanimous_1", "mean"]
        assert not away[[row for row in RELEASED_ROWS.values() if row in summary.index]].any()
    assert summaries["reported"].loc["alpha", "mean"] < 0 < summaries["all-models"].loc["alpha", "mean"]


def test_figure_draws_means_and_intervals(summaries):
    ax = figures_multilevel.terms(summaries).axes[0]
    assert len(ax.get_yticklabels()) == 6
    drawn = [(segment[0, 0], segment[1, 0]) for lines in ax.collections for segment in lines.get_segments()]
    wanted = [(line["hdi_low"], line["hdi_high"]) for summary in summaries.values()
              for _, line in summary.loc[figures_multilevel.SHOWN].iterrows()]
    assert np.array(drawn) == pytest.approx(np.array(wanted))
    first, second = (line for line in ax.lines if line.get_linestyle() == "None")
    assert first.get_xdata() == pytest.approx(summaries["reported"].loc[figures_multilevel.SHOWN, "mean"])
    assert not same_color(first.get_markeredgecolor(), second.get_markeredgecolor())
