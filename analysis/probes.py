"""Probe records and what they say about revisability: one agent, asked again under a counter-argument.

A record is one question asked of one agent under one condition; it holds several probes. `read` gives one
line a probe, the measures count over those lines. This module offers the names of those it is made of:
`probes_read`, `probes_count`, `probes_contrasts`, `probes_channels`, `probes_repeats`, `probes_questions`.

Reference: "Measuring Collapse and Correction in Homogeneous-Panel LLM Debate", sections 3.1 and 3.2.
"""

from analysis.probes_channels import by_condition, manipulation, ordering, shared_pool, shared_questions
from analysis.probes_contrasts import (
    EPSILON,
    LOG_CONSTANT,
    contrasts,
    log_ratio,
    normalised,
    sa_ratio,
    strongest_association,
    strongest_change,
    without_strongest,
)
from analysis.probes_count import UNPARSED, decompose, flip_rate, records, tally
from analysis.probes_questions import question_auc
from analysis.probes_read import CONDITIONS, DUPLICATES, RECORD, STRENGTHS, empty, read, read_stored
from analysis.probes_repeats import reliability, repeats, session_pairs, sessions

__all__ = [
    "CONDITIONS", "DUPLICATES", "EPSILON", "LOG_CONSTANT", "RECORD", "STRENGTHS", "UNPARSED",
    "by_condition", "contrasts", "decompose", "empty", "flip_rate", "log_ratio", "manipulation", "normalised",
    "ordering", "question_auc", "read", "read_stored", "records", "reliability", "repeats", "sa_ratio",
    "session_pairs", "sessions", "shared_pool", "shared_questions", "strongest_association",
    "strongest_change",
    "tally", "without_strongest",
]
