"""What a run saves about a debate, and its answers as a table: the one place that knows the layout of a saved
debate.

A saved debate is a dictionary: `arms`, `agents`, `rounds`, `replies` (one per call: `arm`, `round`, `agent`
from 1, `answer`, `rule`, ...; Round 0 has arm "initial" and belongs to all arms), and for a debate that a
gate ended `stopped`.
"""

INITIAL = "initial"


def answers(debate, arm):
    """Answers of one arm, a line for every cell of the plan, whether it was reached or not.

    Parameters
    ----------
    debate : dict
        A saved debate.
    arm : str

    Returns
    -------
    list of dict
        `round, agent, answer, rule` and the reply's own fields; a cell without a reply has no answer and rule
        "not_asked". In a debate ended by a gate, rounds after the end hold the answers that the gate kept,
        rule "carried".

    Examples
    --------
    >>> replies = [{"arm": "initial", "round": 0, "agent": 1, "answer": "A", "rule": "final_tag"}]
    >>> lines = answers({"agents": 1, "rounds": 1, "replies": replies}, "peer")
    >>> [(line["round"], line["answer"], line["rule"]) for line in lines]
    [(0, 'A', 'final_tag'), (1, None, 'not_asked')]
    """
    found = {
        (reply["round"], reply["agent"]): reply
        for reply in debate["replies"]
        if reply["arm"] in (INITIAL, arm)
    }
    stopped = (debate.get("stopped") or {}).get(arm)
    lines = []
    for round in range(debate["rounds"] + 1):
        for agent in range(1, debate["agents"] + 1):
            place = {"round": round, "agent": agent}
            if stopped and round > stopped["after"]:
                kept = found.get((0 if stopped["keep"] == "initial" else stopped["after"], agent), {})
                lines.append(place | {"answer": kept.get("answer"), "rule": "carried"})
            else:
                reply = found.get((round, agent), {"rule": "not_asked"})
                lines.append({"answer": None} | reply | place)
    return lines


def marked(debate, arm):
    """Why a debate is not whole: the distinct failures among its cells; empty for a whole one.

    Examples
    --------
    >>> marked({"agents": 1, "rounds": 0, "replies": []}, "peer")
    ['not asked']
    """
    lines = answers(debate, arm)
    failures = {line["error"] for line in lines if line.get("error")}
    return sorted(failures | ({"not asked"} if any(line["rule"] == "not_asked" for line in lines) else set()))


def failed(store):
    """Tell whether a call failed in what a sample stored: a debate, or probe records.

    Examples
    --------
    >>> failed({"debate": {"replies": [{"error": None}, {"error": "APITimeoutError"}]}})
    True
    >>> failed({"probe": {"records": [{"initial_error": None, "probe_results": [{"error": None}]}]}})
    False
    """
    told = [reply.get("error") for reply in (store.get("debate") or {}).get("replies", [])]
    for record in (store.get("probe") or {}).get("records", []):
        told += [record.get("initial_error"), *(probe.get("error") for probe in record["probe_results"])]
    return any(told)
