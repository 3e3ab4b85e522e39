"""Printed numbers of the multilevel model, within what a fit of the paper's size leaves open."""

import math

from analysis import multilevel
from analysis.claims_cells import Range

# Claim id -> line and column of `multilevel.summarize`.
POSTERIOR = {
    "s5.1.mlm_alpha": ("alpha", "mean"), "s5.1.mlm_alpha_lo": ("alpha", "hdi_low"),
    "s5.1.mlm_alpha_hi": ("alpha", "hdi_high"),
    "e4.int": ("intercept", "mean"), "e4.int_lo": ("intercept", "hdi_low"),
    "e4.int_hi": ("intercept", "hdi_high"),
    "e3.sigma_m": ("sigma_model", "mean"), "e4.sm_lo": ("sigma_model", "hdi_low"),
    "e4.sm_hi": ("sigma_model", "hdi_high"),
    "e3.sigma_q": ("sigma_question", "mean"),
    "e4.icc_m": ("icc_model", "median"), "e4.icc_m_lo": ("icc_model", "low"),
    "e4.icc_m_hi": ("icc_model", "high"),
    "e4.icc_q": ("icc_question", "median"), "e4.icc_q_lo": ("icc_question", "low"),
    "e4.icc_q_hi": ("icc_question", "high"),
    "e4.ppc": ("predictive", "mean"),
}


def posterior(draws):
    """Posterior summaries that the paper prints.

    Parameters
    ----------
    draws : DataFrame
        From `multilevel.load`.

    Returns
    -------
    dict of str to Range
        Where a fit of the paper's size falls in about 95 of 100 cases: two standard errors to both sides of
        ours. The error is that of such a fit and of ours together, since neither fit is exact.

    References
    ----------
    Appendix E.4.

    Examples
    --------
    >>> found = posterior(multilevel.load("reported"))
    >>> bool(found["e4.icc_q_lo"].high < found["e4.icc_q"].low)
    True
    """
    summary = multilevel.summarize(draws)
    both = math.sqrt(1 + multilevel.PAPER_SIZE / len(draws))
    out = {}
    for claim, (line, column) in POSTERIOR.items():
        value, room = summary.loc[line, column], 2 * both * summary.loc[line, f"{column}_error"]
        out[claim] = Range(value - room, value + room)
    return out
