"""Multilevel logistic model: does a right start collapse because of the model or because of the question?

One line a debate that began with a right majority; what happened in Round 1 and the model's flip rate are its
predictors, models and questions its crossed random intercepts. Sampling takes minutes to an hour, so the
posterior draws are kept under data/multilevel, one file a fit, marked with a fingerprint of the data and the
model that gave them: `load` refuses draws of other data or another model. PyMC and nutpie are imported only
where they sample.
"""

import hashlib
import json
import os
from importlib.metadata import version

import numpy as np
import pandas as pd

from analysis import data, posterior
from analysis.errors import DataError, choice

PREDICTORS = ("changed_1", "n_flipped_1", "unanimous_1", "alpha")
TERMS = ("intercept", *PREDICTORS, "sigma_model", "sigma_question")

# Scales of the priors: normal for intercept and slopes, half-normal for the spreads of the intercepts.
PRIORS = {"intercept": 2.0, "slope": 1.0, "sigma": 2.0}
MODEL_VERSION = 1  # to be raised with every change of `model` or `design`: stored draws are then refused
LATENT_VARIANCE = np.pi**2 / 3  # of the standard logistic distribution

# Fit -> least collapses a model needs to enter. The paper reports the first; the second leaves no model out.
FITS = {"reported": 2, "all-models": 0}
SIZES = ("debates", "collapses", "models", "questions", "chains", "tune", "draws", "divergences")
PAPER_SIZE = 4 * 2000  # draws behind the paper's digits


# --- the data -----------------------------------------------------------------------------------------------


def design(debates, alpha, *, least_collapses=2):
    """Debates at risk with their standardized predictors.

    Parameters
    ----------
    debates : DataFrame
        `row, question, correct_0, cell, changed_1, n_flipped_1, agree_1`, one line a debate.
    alpha : Series of float
        Flip rate of the probe (fraction), by row.
    least_collapses : int
        Rows with fewer collapses are left out.

    Returns
    -------
    DataFrame
        One line a debate whose first majority was right: ``row, question, collapse`` (bool) and the
        predictors ``changed_1`` (Round 1 changed the majority), ``n_flipped_1`` (agents that changed their
        answer in Round 1), ``unanimous_1`` (all gave one answer in Round 1), ``alpha``, each with mean 0 and
        population standard deviation 1 over these debates.

    Raises
    ------
    DataError
        A row has no flip rate, or a predictor never varies.

    References
    ----------
    Appendix E.4.

    Examples
    --------
    >>> debates = pd.DataFrame({
    ...     "row": ["a", "a", "b", "b"], "question": ["1", "2", "1", "2"], "correct_0": True,
    ...     "cell": ["collapse", "preserved", "preserved", "collapse"],
    ...     "changed_1": [True, False, False, True],
    ...     "n_flipped_1": [2, 0, 0, 2], "agree_1": [1.0, 1.0, 2 / 3, 2 / 3]})
    >>> design(debates, pd.Series({"a": 0.3, "b": 0.5}), least_collapses=1)["alpha"].round(6).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    risk = debates[debates["correct_0"].astype(bool)]
    collapse = risk["cell"].eq("collapse")
    kept = collapse.groupby(risk["row"]).transform("sum") >= least_collapses
    risk, collapse = risk[kept], collapse[kept]
    unknown = risk.loc[~risk["row"].isin(alpha.index), "row"]
    if len(unknown):
        known = ", ".join(map(str, alpha.index))
        raise DataError(f"row {unknown.iat[0]!r}: no flip rate; expected one of {known}")
    predictors = pd.DataFrame({
        "changed_1": risk["changed_1"].astype(float), "n_flipped_1": risk["n_flipped_1"].astype(float),
        "unanimous_1": (risk["agree_1"] >= 1).astype(float), "alpha": risk["row"].map(alpha).astype(float),
    })
    same = [name for name in PREDICTORS if predictors[name].nunique() < 2]
    if same:
        raise DataError(
            f"predictor {same[0]!r}: one value in all {len(risk)} debates; expected one that varies"
        )
    z = (predictors - predictors.mean()) / predictors.std(ddof=0)
    parts = [risk[["row", "question"]], collapse.rename("collapse"), z]
    return pd.concat(parts, axis=1).reset_index(drop=True)


def paper_design(name="reported"):
    """Design of one of the two fits, from the tables under data/.

    Parameters
    ----------
    name : {"reported", "all-models"}

    Returns
    -------
    DataFrame
        As `design`.

    Examples
    --------
    >>> [(len(paper_design(name)), int(paper_design(name)["collapse"].sum())) for name in FITS]
    [(3145, 251), (3458, 253)]
    """
    choice("name", name, FITS)
    rows = data.model_rows().set_index("row")
    return design(data.debates(), rows["alpha_tot_full"], least_collapses=FITS[name])


# --- the model ----------------------------------------------------------------------------------------------


def model(design):
    """The model in PyMC: crossed random intercepts, not centred.

    Parameters
    ----------
    design : DataFrame
        From `design`.

    Returns
    -------
    pymc.Model

    References
    ----------
    Appendix E.4. Non-centred: Papaspiliopoulos, Roberts, Skold (2007), A general framework for the
    parametrization of hierarchical models.

    Examples
    --------
    >>> sorted(model(paper_design()).coords)  # doctest: +SKIP
    ['model', 'predictor', 'question']
    """
    import pymc

    models, which_model = np.unique(design["row"].to_numpy(str), return_inverse=True)
    questions, which_question = np.unique(design["question"].to_numpy(str), return_inverse=True)
    coords = {"predictor": list(PREDICTORS), "model": models, "question": questions}
    with pymc.Model(coords=coords) as out:
        intercept = pymc.Normal("intercept", 0, PRIORS["intercept"])
        slopes = pymc.Normal("slopes", 0, PRIORS["slope"], dims="predictor")
        sigma_model = pymc.HalfNormal("sigma_model", PRIORS["sigma"])
        sigma_question = pymc.HalfNormal("sigma_question", PRIORS["sigma"])
        z_model = pymc.Normal("z_model", 0, 1, dims="model")
        z_question = pymc.Normal("z_question", 0, 1, dims="question")
        logit = (
            intercept + pymc.math.dot(design[list(PREDICTORS)].to_numpy(), slopes)
            + sigma_model * z_model[which_model] + sigma_question * z_question[which_question]
        )
        pymc.Bernoulli("collapse", logit_p=logit, observed=design["collapse"].to_numpy(int))
    return out


def fit(design, *, draws=5000, tune=3000, chains=4, target_accept=0.99, seed=20260424, progress=False):
    """Sample the posterior with nutpie.

    Parameters
    ----------
    design : DataFrame
        From `design`.
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and chains.
    target_accept : float
        Acceptance rate that the step size is tuned to.
    seed : int
    progress : bool
        Show how far the chains are.

    Returns
    -------
    DataFrame
        One line a draw: ``chain, draw``, each of `TERMS`, the deviation of each model's intercept under the
        row's name, and ``replicate``, the collapses in one data set simulated from that draw. Its ``attrs``
        hold the `fingerprint` of the design, counts of ``debates, collapses, models, questions`` in it, the
        settings and versions of the sampler, the number of ``divergences``, and `posterior.diagnose` of the
        terms.

    Raises
    ------
    KeyboardInterrupt
        It was stopped; what was sampled so far is dropped.

    References
    ----------
    Appendix E.4; Hoffman, Gelman (2014), The No-U-Turn sampler, through nutpie.

    Examples
    --------
    >>> fit(paper_design(), draws=200, tune=200, chains=2)  # doctest: +SKIP
    """
    import nutpie

    sampler = nutpie.sample(
        nutpie.compile_pymc_model(model(design)), draws=draws, tune=tune, chains=chains, seed=seed,
        target_accept=target_accept, save_warmup=False, progress_bar=progress, blocking=False,
        use_grad_based_mass_matrix=False,  # variances of the draws: spreads near zero mislead the gradients
    )
    try:
        trace = sampler.wait()
    except BaseException:
        sampler.cancel()
        raise
    names = ("intercept", "slopes", "sigma_model", "sigma_question", "z_model", "z_question")
    # Chains one after the other: first axis is the draw.
    sampled = {name: np.concatenate(np.asarray(trace.posterior[name])) for name in names}
    models = np.unique(design["row"].to_numpy(str))
    deviations = sampled["sigma_model"][:, None] * sampled["z_model"]
    out = pd.DataFrame({
        "chain": np.repeat(np.arange(chains, dtype="int8"), draws),
        "draw": np.tile(np.arange(draws, dtype="int32"), chains),
        "intercept": sampled["intercept"], **dict(zip(PREDICTORS, sampled["slopes"].T)),
        "sigma_model": sampled["sigma_model"], "sigma_question": sampled["sigma_question"],
        **dict(zip(models, deviations.T)),
        "replicate": _replicates(design, sampled, deviations, np.random.default_rng(seed)),
    })
    out = out.astype({name: "float32" for name in out if name not in ("chain", "draw", "replicate")})
    out.attrs = {
        "fingerprint": fingerprint(design), "debates": len(design),
        "collapses": int(design["collapse"].sum()),
        "models": len(models), "questions": design["question"].nunique(),
        "draws": draws, "tune": tune, "chains": chains, "target_accept": target_accept, "seed": seed,
        "versions": {name: version(name) for name in ("pymc", "nutpie")},
        "divergences": int(np.asarray(trace.sample_stats["diverging"]).sum()),
    }
    out.attrs["diagnostics"] = posterior.diagnose(out, TERMS).to_dict("index")
    return out


def _replicates(design, sampled, deviations, rng):
    """Collapses in one simulated data set a draw."""
    x = design[list(PREDICTORS)].to_numpy()
    which_model = np.unique(design["row"].to_numpy(str), return_inverse=True)[1]
    which_question = np.unique(design["question"].to_numpy(str), return_inverse=True)[1]
    counts = []
    # Some draws at a time: the logits of all would not fit into memory.
    for part in np.array_split(np.arange(len(deviations)), max(1, len(deviations) // 500)):
        spread = sampled["sigma_question"][part, None] * sampled["z_question"][part]
        logit = (
            sampled["intercept"][part, None] + sampled["slopes"][part] @ x.T
            + deviations[part][:, which_model] + spread[:, which_question]
        )
        counts.append((rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).sum(axis=1, dtype="int32"))
    return np.concatenate(counts)


# --- what the draws say -------------------------------------------------------------------------------------


def quantities(draws):
    """Everything a summary is wanted of, draw by draw.

    Parameters
    ----------
    draws : DataFrame
        From `fit` or `load`.

    Returns
    -------
    DataFrame
        One line a draw: `TERMS`, the models' intercepts, and

        - ``icc_model``, ``icc_question``: share of the latent variance that lies between models, or
          questions: that intercept's variance over the sum of both and pi^2 / 3;
        - ``predictive``: 1 where the simulated data hold at least as many collapses as the observed, else 0.

    References
    ----------
    Appendix E.4; pi^2 / 3 is the variance of the standard logistic distribution.

    Examples
    --------
    >>> draws = pd.DataFrame({"sigma_model": [0.0, 1.0], "sigma_question": [1.0, 1.0], "replicate": [3, 5]})
    >>> draws.attrs["collapses"] = 5
    >>> quantities(draws)[["icc_model", "icc_question", "predictive"]].round(3).values.tolist()
    [[0.0, 0.233, 0.0], [0.189, 0.189, 1.0]]
    """
    out = draws.drop(columns=["chain", "draw", "replicate"], errors="ignore")
    model, question = draws["sigma_model"].astype(float) ** 2, draws["sigma_question"].astype(float) ** 2
    total = model + question + LATENT_VARIANCE
    return out.assign(
        icc_model=model / total, icc_question=question / total,
        predictive=(draws["replicate"] >= draws.attrs["collapses"]).astype(float),
    )


def summarize(draws):
    """Posterior summaries, with their Monte Carlo error.

    Parameters
    ----------
    draws : DataFrame
        From `fit` or `load`.

    Returns
    -------
    DataFrame
        One line a column of `quantities`, indexed by its name: ``mean, sd, hdi_low, hdi_high`` (shortest 95%
        interval), ``median, low, high`` (2.5% and 97.5% quantiles), each with the standard error
        ``..._error`` that a fit of `PAPER_SIZE` draws would have (`posterior.monte_carlo`), and ``rhat,
        ess_bulk, ess_tail`` of the terms.

    Examples
    --------
    >>> summarize(load("reported")).loc["changed_1", "mean"].round(1).item()
    0.9
    """
    found = quantities(draws)
    columns = {name: found[name].to_numpy() for name in found}
    out = pd.DataFrame({name: posterior.describe(values) for name, values in columns.items()}, dtype=float).T
    errors = posterior.monte_carlo(columns, size=PAPER_SIZE, chains=draws.attrs["chains"])
    diagnostics = pd.DataFrame.from_dict(draws.attrs["diagnostics"], orient="index")
    return out.join(errors.add_suffix("_error")).join(diagnostics)


def overview(fits):
    """Size and convergence of fits.

    Parameters
    ----------
    fits : dict of str to DataFrame
        Draws from `fit` or `load`, by name.

    Returns
    -------
    DataFrame
        One line a fit: ``fit, debates, collapses, models, questions, chains, tune, draws`` (a chain),
        ``divergences``, the largest ``rhat`` of all terms, the least ``ess_bulk`` and ``ess_tail``, the
        ``term`` with the least ``ess_bulk``, and ``ess_paper_size``, that least one a `PAPER_SIZE` draws.

    Examples
    --------
    >>> overview({"reported": load("reported")})[["debates", "questions"]].values.tolist()
    [[3145, 1509]]
    """
    lines = []
    for name, draws in fits.items():
        told, terms = draws.attrs, pd.DataFrame.from_dict(draws.attrs["diagnostics"], orient="index")
        lines.append({
            "fit": name,
            **{key: told[key] for key in SIZES},
            "rhat": terms["rhat"].max(), "ess_bulk": terms["ess_bulk"].min(),
            "ess_tail": terms["ess_tail"].min(),
            "term": terms["ess_bulk"].idxmin(),
            "ess_paper_size": terms["ess_bulk"].min() * PAPER_SIZE / len(draws),
        })
    return pd.DataFrame(lines)


# --- stored draws -------------------------------------------------------------------------------------------


def fingerprint(design):
    """Mark of the data and the model that draws belong to.

    Parameters
    ----------
    design : DataFrame
        From `design`.

    Returns
    -------
    str
        Changes with any line of the design, with `PRIORS` and with `MODEL_VERSION`.

    Examples
    --------
    >>> len(fingerprint(paper_design()))
    64
    """
    # Rounded: the last bits of a mean differ between processors.
    rounded = design.round(6).astype({"collapse": int})
    lines = rounded.to_csv(index=False, lineterminator="\n", float_format="%.6f")
    constants = json.dumps([MODEL_VERSION, PRIORS], sort_keys=True)
    return hashlib.sha256((constants + "\n" + lines).encode()).hexdigest()


def path(name):
    """File of the draws of one fit.

    Examples
    --------
    >>> path("reported").name
    'reported.parquet'
    """
    return data.root() / "multilevel" / f"{choice('name', name, FITS)}.parquet"


def save(draws, name):
    """Store draws under data/multilevel in place of the earlier ones.

    Parameters
    ----------
    draws : DataFrame
        From `fit`.
    name : {"reported", "all-models"}

    Examples
    --------
    >>> save(fit(paper_design()), "reported")  # doctest: +SKIP
    """
    target = path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".parquet.part")
    try:
        draws.to_parquet(beside, index=False)  # attrs go along
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def load(name="reported"):
    """Stored draws of one fit, if they belong to the data and the model at hand.

    Parameters
    ----------
    name : {"reported", "all-models"}

    Returns
    -------
    DataFrame
        As `fit`.

    Raises
    ------
    DataError
        There are none, the file is damaged, or they were drawn from other data or another model.

    Examples
    --------
    >>> load("reported").attrs["debates"]
    3145
    """
    source = path(name)
    if not source.is_file():
        raise DataError(f"{source}: no stored draws; expected those of `make mlm`")
    try:
        draws = pd.read_parquet(source)
    except (OSError, ValueError) as problem:  # what is no Parquet file raises a ValueError
        raise DataError(f"{source}: {problem}; expected the draws of `make mlm`") from None
    found, expected = draws.attrs.get("fingerprint"), fingerprint(paper_design(name))
    if found != expected:
        raise DataError(
            f"{source}, field 'fingerprint': {found!r}; expected {expected!r}: "
            "the draws belong to other data or another model; run `make mlm` to sample again"
        )
    lacking = [name for name in ("chain", "draw", *TERMS, "replicate") if name not in draws]
    if lacking or draws.empty:
        found = f"no column {lacking[0]!r}" if lacking else "no draws"
        raise DataError(f"{source}: {found}; run `make mlm` to sample again")
    return draws
