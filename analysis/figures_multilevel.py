"""Figure of the multilevel model's terms."""

import pandas as pd

from analysis import drawing
from analysis.tables_multilevel import FITS, TERMS

COLORS = {"reported": drawing.ACCENTS[0], "all-models": drawing.ACCENTS[1]}
SHOWN = [term for term in TERMS if term != "intercept"]  # far from all others


def terms(summaries):
    """Draw slopes and spreads of one or more fits as point and interval.

    Parameters
    ----------
    summaries : dict of str to DataFrame
        `multilevel.summarize`, by fit; the first is drawn with filled markers and written out at the right.

    Returns
    -------
    matplotlib.figure.Figure
        Posterior means and 95% highest-density intervals on the logit scale.

    References
    ----------
    Table 32.

    Examples
    --------
    >>> lines = pd.DataFrame({"mean": 0.1, "hdi_low": -0.2, "hdi_high": 0.3}, index=list(TERMS))
    >>> [text.get_text() for text in terms({"reported": lines}).axes[0].get_yticklabels()][-1]
    'Spread between questions\\n(sd)'
    """
    first = next(iter(summaries.values())).loc[SHOWN]
    table = pd.DataFrame({"row": [TERMS[term] for term in SHOWN], "added": False})
    ends = zip(first["mean"], first["hdi_low"], first["hdi_high"])
    written = [f"{mean:.2f} [{low:.2f}, {high:.2f}]".replace("-", "−") for mean, low, high in ends]
    columns = [("mean and 95% HDI", written)]
    fig, ax, y = drawing.lines(
        table, None, columns, per_line=0.42, legend=0.28, rule_after=SHOWN.index("alpha"),
    )
    ink, soft, _, ground = drawing.inks()
    ax.axvline(0, color=soft, linewidth=0.9, zorder=1)
    shift = 0.16 if len(summaries) > 1 else 0.0
    for i, (name, summary) in enumerate(summaries.items()):
        lines, color = summary.loc[SHOWN], COLORS[name]
        at = y + (2 * i - 1) * shift
        ax.hlines(at, lines["hdi_low"], lines["hdi_high"], color=color, linewidth=1.8)
        ax.plot(lines["mean"], at, linestyle="none", marker="D" if i else "o", markersize=5.5,
                markeredgewidth=1.5, markerfacecolor=ground if i else color,
                markeredgecolor=color, label=FITS[name], zorder=3)
    ax.grid(axis="x")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}".replace("-", "−"))
    ax.set_xlabel("Log-odds of a collapse for one standard deviation more; spreads: sd of intercepts")
    fig.legend(*ax.get_legend_handles_labels(), loc="upper left", ncols=2, frameon=False, fontsize=8.5,
               labelcolor=ink, borderaxespad=0.2)
    return fig
