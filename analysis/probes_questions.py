"""Can the probe say which single question will collapse? Areas under the curve, question by question.

`analysis.probes` offers this together with reading and the other measures.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", section 4.3 and Table 5.
"""

import pandas as pd

from analysis import localize
from analysis.errors import choice
from analysis.probes_contrasts import contrasts

SCORES = {"disagreement": "initial disagreement", "alpha": "probe flip rate", "ratio": "S/A"}


def question_auc(debates, probes=None, *, among="right_starts", unparsed="no_revision"):
    """Area under the curve of each score for collapse, one line a row and score.

    Parameters
    ----------
    debates : DataFrame
        As `ledger.debates` returns them.
    probes : DataFrame, optional
        One line a probe of the same rows and questions; without it only disagreement is scored.
    among : {"right_starts", "all"}
        Debates that could collapse, or all: a wrong start then counts as a debate that did not.
    unparsed : {"no_revision", "drop"}
        As for `flip_rate`.

    Returns
    -------
    DataFrame
        `row, score` (disagreement: 1 minus the largest share of equal first answers; alpha: the question's
        flip rate; ratio: its S/A), `n` debates with the score, `n_pos` collapses among them, `auc` (missing
        where one kind is).

    References
    ----------
    Table 5.

    Examples
    --------
    >>> debates = pd.DataFrame({"row": "m", "question": list("pqr"), "correct_0": True,
    ...                         "agree_0": [1.0, 0.6, 1.0], "cell": ["preserved", "collapse", "preserved"]})
    >>> question_auc(debates)[["score", "n", "n_pos", "auc"]].values.tolist()
    [['disagreement', 3, 1, 1.0]]
    """
    choice("among", among, ("right_starts", "all"))
    fell = debates["cell"].eq("collapse").to_numpy(bool)
    lines = debates[["row", "question"]].assign(fell=fell, disagreement=1 - debates["agree_0"].astype(float))
    if among == "right_starts":
        lines = lines[(debates["correct_0"] == 1).to_numpy(bool)]
    names = ["disagreement"]
    if probes is not None and len(probes):
        asked = contrasts(probes, by=["row", "question"], unparsed=unparsed)
        lines = lines.merge(asked[["row", "question", "alpha", "ratio"]], on=["row", "question"], how="left")
        names = list(SCORES)
    out = []
    for row, part in lines.groupby("row", sort=False, observed=True):
        for name in names:
            known = part.dropna(subset=[name])
            out.append({"row": row, "score": name, "n": len(known), "n_pos": int(known["fell"].sum()),
                        "auc": localize.auc(known["fell"], known[name])})
    return pd.DataFrame(out, columns=["row", "score", "n", "n_pos", "auc"])
