"""What a row takes from the logs of its runs: answers of one arm, probes, quality control, tokens, settings.

`analysis.collect.logs` reads the logs; it is imported only where there is one.
"""

from pathlib import Path

import pandas as pd

from analysis import probes as probe_records
from analysis.errors import DataError

ALWAYS = "made here"  # source of a pool that the project generates
STEPS = {"initial": "Round 0", "debate": "debate", "probe": "probes"}


def split(paths):
    """Part places into plain files, logs of debates and logs of probes.

    Parameters
    ----------
    paths : list of Path
        Files, or folders of logs or of runs.

    Returns
    -------
    (list of Path, list of Path, list of Path)

    Raises
    ------
    DataError
        A folder without logs, a log of something else, or a zip file that is no log.

    Examples
    --------
    >>> split([Path("debates.csv")])[1:]
    ([], [])
    """
    from analysis import traces

    plain, there, found = [], [], {"debate": [], "probe": []}
    for path in paths:
        logs = traces.logs_at(path)
        if not logs:
            if path.is_dir():
                raise DataError(f"{path}: is a directory without logs (.eval); expected logs, or one file")
            plain.append(path)
        there += logs
    if there:
        from analysis.collect.logs import current, kind

        for log in current(there):
            found[kind(log)].append(log)
    return plain, found["debate"], found["probe"]


def debates(paths, *, arm=None):
    """Answers of one arm, and what the run tells of itself.

    Parameters
    ----------
    paths : list of Path
        Logs of debates.
    arm : str, optional
        As in `analysis.collect.logs.answers`; "all" is no row.

    Returns
    -------
    (DataFrame, dict)
        Answers; fields of `analysis.rows.Row`.

    Raises
    ------
    DataError
        The logs cannot be used, or are of several models.

    Examples
    --------
    >>> debates([Path("debate.eval")])  # doctest: +SKIP
    """
    from analysis.collect import logs, quality

    if arm == "all":
        raise ValueError("arm='all': expected one arm, a row has one")
    frame = logs.answers(paths, arm=arm)
    names = frame["row"].unique()
    if len(names) > 1:
        raise DataError(f"{', '.join(path.name for path in paths)}: debates of {' and of '.join(names)}; expected one panel a row")
    asked = logs.replies_of(frame)
    checked = quality.checks(asked)
    mine = checked[checked["arm"] == frame.attrs["arm"]]
    usage = [_usage(name, asked[(asked["round"] == 0) == (name == "initial")]) for name in ("initial", "debate")]
    told = {name: frame.attrs[name] for name in ("arm", "policy")} | _settings(frame)
    return frame, told | {
        "quality_control": "passes" if mine["passes"].all() else "fails",
        "quality": mine[["check", "k", "n", "limit"]].to_dict("records"),
        "usage": usage,
    }


def _usage(step, asked):
    known = {name: asked[name].sum(min_count=1) for name in ("tokens_in", "tokens_out", "tokens_reasoning", "cost")}
    whole = {name: None if pd.isna(value) else int(value) for name, value in known.items() if name != "cost"}
    called = asked[asked["rule"] != "not_asked"]
    return {
        "step": step,
        "calls": len(called),
        "told": int(called["tokens_out"].notna().sum()),
        **whole,
        "cost": None if pd.isna(known["cost"]) else float(known["cost"]),
    }


def _settings(frame):
    """Fields that the reuse card asks for; None where runs differ or do not tell."""
    runs, card = frame.attrs["runs"], frame.attrs["card"]
    pools = [run["pool"] or {} for run in runs]
    models = list(dict.fromkeys(model for run in runs for model in run["models"]))
    names = list(dict.fromkeys(pool["pool"] for pool in pools if pool))
    rules = list(dict.fromkeys(_rule(run, pool) for run, pool in zip(runs, pools, strict=True)))
    heats = [run["temperatures"] for run in runs]
    return {
        "backend": f"Inspect, {', '.join(dict.fromkeys(model.partition('/')[0] for model in models))}",
        "model_version_or_snapshot": ", ".join(model.partition("/")[2] for model in models),
        "benchmark": ", ".join(names) or None,
        "pool_selection_rule": "; ".join(rules) if None not in rules else None,
        "outcome_blind_selection": True if None not in rules else None,
        "temperatures": heats[0] if all(heat == heats[0] for heat in heats) else None,
        "prompts": f"{card['name']} {card['version']}, sha256 {card['sha256']}",
    }


def _rule(run, pool):
    """How the questions were chosen; nobody knows how those of somebody's own file were."""
    if run["selection"]:
        return "those that the model revised most under solo counterarguments"
    if pool.get("source") == [ALWAYS]:
        return f"generated, seed {run['seed']}"
    if run["n"] is not None:
        return f"drawn at random, seed {run['seed']}"
    return None


def probes(paths, id):
    """Probes and what asking them took.

    Parameters
    ----------
    paths : list of Path
        Logs of probes.
    id : str
        Name of the row.

    Returns
    -------
    (DataFrame, list of dict)
        As `analysis.probes.read`; one line of usage.

    Examples
    --------
    >>> probes([Path("probe.eval")], "mine")  # doctest: +SKIP
    """
    from analysis.collect import logs

    frame = logs.probes(paths, row=id)
    spent = logs.probe_usage(paths)
    return frame, [{"step": "probe", "told": spent["calls"], **spent}]


def passed(records):
    """Quality control that exported records tell of the row they were.

    Parameters
    ----------
    records : list of DataFrame
        Answers of one row as read from plain files.

    Returns
    -------
    str or None
        "passes" or "fails"; None where a record tells nothing, or something else.

    Examples
    --------
    >>> passed([pd.DataFrame({"quality_control": ["fails", "fails"]})]), passed([pd.DataFrame({"answer": ["A"]})])
    ('fails', None)
    """
    told = {value for frame in records for value in (frame["quality_control"].unique() if "quality_control" in frame else [None])}
    if "fails" in told:
        return "fails"
    return "passes" if told == {"passes"} else None
