"""Checks on reasoning from the response period: paired arms, their quality, and rows that reason."""

import numpy as np
import pandas as pd
from scipy import stats as sps

from analysis import stats
from analysis.transfer import N_AGENTS, rates, whole_counts


def paired(paired_arms):
    """Exact McNemar tests of paired arms.

    Parameters
    ----------
    paired_arms : DataFrame
        Discordant counts `only_a, only_b`.

    Returns
    -------
    DataFrame
        The table with `p` (exact, two-sided) and `p_holm` (over all its lines).

    References
    ----------
    G.4.

    Examples
    --------
    >>> paired(pd.DataFrame({"only_a": [5, 3], "only_b": [0, 3]}))["p"].tolist()
    [0.0625, 1.0]
    """
    cells = zip(paired_arms["only_a"], paired_arms["only_b"], strict=True)
    p = [stats.mcnemar(a, b).p_two_sided for a, b in cells]
    return paired_arms.assign(p=p, p_holm=stats.holm(p))


def quality(response_ledgers, limit):
    """Unclosed reasoning and unread answers of the arms compared with and without thinking.

    Parameters
    ----------
    response_ledgers : DataFrame
        Table of data/.
    limit : float
        Largest share of unclosed first replies that an arm may have.

    Returns
    -------
    DataFrame
        `row, n` (debates), `unclosed_rate` with `unclosed` of `replies` (first replies of all agents; missing
        where no count or more than one gives the released rate), `unparsed_rate`, `passes` (bool).

    References
    ----------
    G.4.

    Examples
    --------
    >>> from analysis import data
    >>> found = quality(data.table("response_ledgers"), 0.05).set_index("row").loc["q32b_thinkON_peer"]
    >>> int(found["unclosed"]), int(found["replies"]), bool(found["passes"])
    (34, 600, False)
    """
    arms = response_ledgers[response_ledgers["group"] == "thinking_rerun"]
    replies = N_AGENTS * arms["n"]
    found = [whole_counts(rate, n) for rate, n in zip(arms["unclosed_rate"], replies)]
    unclosed = pd.array([k[0] if len(k) == 1 else pd.NA for k in found], dtype="Int64")
    out = arms[["row", "n", "unclosed_rate", "unparsed_rate"]].reset_index(drop=True)
    return out.assign(unclosed=unclosed, replies=replies.to_numpy(), passes=out["unclosed_rate"] <= limit)


def unread_answers(response_ledgers):
    """Answers without a label up to the endpoint, as counts where the released rate fixes one.

    Parameters
    ----------
    response_ledgers : DataFrame
        Table of data/.

    Returns
    -------
    DataFrame
        Lines with a stated endpoint and alphabetic ties: `group, row, endpoint_round, unparsed_rate, unread,
        answers` (Round 0 to the endpoint, all agents).

    References
    ----------
    G.3 and G.4.

    Examples
    --------
    >>> from analysis import data
    >>> found = unread_answers(data.table("response_ledgers"))
    >>> panels = found.query("group == 'heterogeneous_panels' and endpoint_round == 3")
    >>> panels[["unread", "answers"]].values.tolist()
    [[45, 2400], [41, 2400], [35, 2400]]
    """
    lines = response_ledgers[response_ledgers["tie"] == "alphabetic"].dropna(subset="endpoint_round")
    answers = (N_AGENTS * lines["n"] * (lines["endpoint_round"] + 1)).astype(int)
    found = [whole_counts(rate, n) for rate, n in zip(lines["unparsed_rate"], answers)]
    unread = pd.array([k[0] if len(k) == 1 else pd.NA for k in found], dtype="Int64")
    out = lines[["group", "row", "endpoint_round", "unparsed_rate"]].reset_index(drop=True)
    return out.assign(unread=unread, answers=answers.to_numpy())


def subgroup(model_rows, held_out, response_ledgers, extension_rows):
    """Whether rows that reason collapse less: one-sided Mann-Whitney tests on conditional collapse.

    Parameters
    ----------
    model_rows, held_out, response_ledgers, extension_rows : DataFrame
        Tables of data/.

    Returns
    -------
    DataFrame
        One line a choice of rows: `rows` (in words), `n_reasoning, n_others, u, p` (asymptotic with
        continuity correction, as released) and `p_exact` (all assignments of the observed values).

    Notes
    -----
    The released tests take two rows of the cohort and four others, at Round 4, against the other twelve rows
    of the cohort. The last line takes the same five rows at Round 3, where the eleven-family extension has
    them, against all of its other rows.

    References
    ----------
    G.4; the tests are released but not printed.

    Examples
    --------
    >>> from analysis import data
    >>> names = ("holdouts", "response_ledgers", "extension_rows")
    >>> subgroup(data.model_rows(), *map(data.table, names))["p"].round(4).tolist()
    [0.0607, 0.0607, 0.0151, 0.0113]
    """
    inside = ["deepseek-v4-flash", "gpt-5.4-mini"]
    held = rates(held_out).set_index("row")["c_cond"]
    at_4 = response_ledgers.query("tie == 'alphabetic' and endpoint_round == 4")
    late = rates(at_4).set_index("row")["c_cond"]
    cohort = model_rows.set_index("row")["c_cond"]
    others = cohort.drop(inside)
    five = [*cohort[inside], *held[["gemini-3.1-pro", "grok-4.1-fast"]], late["qwq-32b"]]
    added = extension_rows.set_index("row").eval("collapse / init_correct")
    names = ["gemini-3.1-pro", "grok-4.1-fast", "qwq-32b"]
    cases = {
        "six rows, R1-Distill at its first budget": [*five, late["r1-distill-qwen-32b (first budget)"]],
        "six rows, R1-Distill at its second budget": [*five, late["r1-distill-qwen-32b mt8192"]],
        "five rows, without R1-Distill": five,
        "five rows at Round 3, against the extension's others": [*cohort[inside], *added[names]],
    }
    last = list(cases)[-1]
    lines = []
    for name, x in cases.items():
        y = [*others, *added.drop(names)] if name == last else others
        usual = sps.mannwhitneyu(x, y, alternative="less", method="asymptotic")
        every = sps.mannwhitneyu(x, y, alternative="less", method=sps.PermutationMethod(n_resamples=np.inf))
        lines.append((name, len(x), len(y), usual.statistic, usual.pvalue, every.pvalue))
    return pd.DataFrame(lines, columns=["rows", "n_reasoning", "n_others", "u", "p", "p_exact"])
