"""Other scores that could stand in for the screen: fewer probes, social probes, the first answers."""

import pandas as pd

from analysis import screen

DIVERSITY = ("disagreement", "at_risk_disagreement", "init_entropy", "unanimity", "usable_disagreement",
             "r1_change", "r1_any_flip", "r1_agent_flip")


def traced_rows(rows, four_round_rows, *, agents=3):
    """Rows whose later traces are counted, with what their first answers and first round show.

    Parameters
    ----------
    rows : DataFrame
        Model rows.
    four_round_rows : DataFrame
        Counts of the six later rows, as data/four_round_rows.csv holds them.
    agents : int
        Agents a debate.

    Returns
    -------
    DataFrame
        The six rows with fractions: ``one_agent`` (flip rate of one agent's default-condition probes); of all
        debates ``disagreement, unanimity, init_entropy``; of debates right at first ``at_risk_disagreement``;
        of debates with a first and a last majority ``usable_disagreement, r1_change`` (Round 1 majority is
        another), ``r1_any_flip`` (any agent's answer is), ``r1_agent_flip`` (share of agents).

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", A.3.2 and C.5, Table 27.

    Examples
    --------
    >>> from analysis import data
    >>> six = traced_rows(data.model_rows(), data.table("four_round_rows"))
    >>> six.set_index("row").loc["qwen3.5-4b", ["disagreement", "r1_change"]].tolist()
    [0.71, 0.405]
    """
    six = rows.merge(four_round_rows.rename(columns={"n": "n_traced"}), on="row", validate="1:1")
    return six.assign(
        one_agent=six["one_agent_flips"] / six["one_agent_probes"],
        disagreement=six["init_disagree"] / six["n_traced"],
        unanimity=six["init_unanimous"] / six["n_traced"],
        at_risk_disagreement=six["at_risk_disagree"] / six["init_correct"],
        usable_disagreement=six["usable_init_disagree"] / six["usable"],
        r1_change=six["r1_majority_changed"] / six["usable"],
        r1_any_flip=six["r1_any_flip"] / six["usable"],
        r1_agent_flip=six["r1_agent_flips"] / (agents * six["usable"]),
    )


def diversity(six, scores=DIVERSITY):
    """How well first answers and Round 1 rank conditional collapse in the six traced rows.

    Parameters
    ----------
    six : DataFrame
        From `traced_rows`.
    scores : sequence of str
        Columns.

    Returns
    -------
    DataFrame
        The columns of `screen.comparators`, and ``alpha_given, alpha_given_p``: partial rank correlation over
        rows of the flip rate, the score taken out, with p of the t approximation.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", C.5, Table 27.

    Examples
    --------
    >>> from analysis import data
    >>> found = diversity(traced_rows(data.model_rows(), data.table("four_round_rows")), ["disagreement"])
    >>> found[["row_n", "row_rho", "alpha_given"]].round(3).values.tolist()
    [[6.0, 0.928, 0.196]]
    """
    found = screen.comparators(six, scores)
    given = pd.concat([screen.partial(six, name, level="row") for name in scores])
    return found.assign(alpha_given=given["rho"].to_numpy(), alpha_given_p=given["p_t"].to_numpy())


def lighter_probes(rows, six):
    """The family and row tests with fewer probes a row.

    Parameters
    ----------
    rows, six : DataFrame
        Model rows with `alpha_default_condition`; from `traced_rows`.

    Returns
    -------
    DataFrame
        The columns of `screen.comparators` after ``probes``: the default condition alone in all rows, and one
        agent's default condition in the six rows that tell it.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", A.3.2.

    Examples
    --------
    >>> from analysis import data
    >>> rows = data.model_rows()
    >>> found = lighter_probes(rows, traced_rows(rows, data.table("four_round_rows")))
    >>> found["family_rho"].round(3).tolist()
    [0.893, 0.866]
    """
    tests = [screen.comparators(rows, ["alpha_default_condition"]), screen.comparators(six, ["one_agent"])]
    tested = pd.concat(tests, ignore_index=True)
    tested.insert(0, "probes", ["default condition", "one agent, default condition"])
    return tested


def with_social(rows, social_arm):
    """Model rows with the flip rate of their social probes and its lift over the others.

    Parameters
    ----------
    rows, social_arm : DataFrame
        Model rows; `row, alpha_social, lift`.

    Returns
    -------
    DataFrame

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", C.5.

    Examples
    --------
    >>> rows = pd.DataFrame({"row": ["a"], "family": ["F"]})
    >>> with_social(rows, pd.DataFrame({"row": ["a"], "alpha_social": [0.3], "lift": [0.1]})).shape
    (1, 4)
    """
    return rows.merge(social_arm[["row", "alpha_social", "lift"]], on="row", validate="1:1")


def bakeoff(rows, four_round_rows, social_arm, predictors):
    """Every comparator of conditional collapse in one table, each over the rows that have it.

    Parameters
    ----------
    rows, four_round_rows, social_arm : DataFrame
        As for `traced_rows` and `with_social`.
    predictors : sequence of str
        Columns of rows, of the social arm, or scores of `traced_rows`.

    Returns
    -------
    DataFrame
        The columns of `screen.comparators`.

    References
    ----------
    "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sec. 4.3 and C.5, Table 4.

    Examples
    --------
    >>> from analysis import data
    >>> tables = data.model_rows(), data.table("four_round_rows"), data.table("social_arm")
    >>> bakeoff(*tables, ["alpha_social", "r1_change"])[["row_n", "row_rho"]].round(3).values.tolist()
    [[14.0, 0.873], [6.0, 0.986]]
    """
    six = traced_rows(rows, four_round_rows).set_index("row")
    both = with_social(rows, social_arm)
    scores = {name: both["row"].map(six[name]) for name in predictors if name in DIVERSITY}
    return screen.comparators(both.assign(**scores), predictors)
