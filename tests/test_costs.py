"""What a row costs: arithmetic of the protocol against released counts and files."""

import numpy as np
import pandas as pd
import pytest

from analysis import costs, data
from analysis.errors import DataError


def planned(rounds):
    return costs.completions(200, agents=3, rounds=rounds, conditions=3, probes=8)


def test_sizes_by_hand():
    assert planned(3)["completions"].tolist() == [200, 1600, 1800, 14400, 2400]
    assert planned(4)["completions"].iloc[-1] == 3000


def test_the_released_card_counts_a_round_more_than_the_protocol():
    card = data.table("cost_card")
    assert costs.against_card(planned(3), card)["agrees"].tolist() == [True] * 4 + [False]
    assert costs.against_card(planned(4), card)["agrees"].all()
    with pytest.raises(DataError, match="on one side only"):
        costs.against_card(planned(3), card.iloc[1:])


def test_logged_states_are_those_of_four_rounds():
    rounds = costs.rounds_told(data.table("parser_traces"), agents=3)
    assert len(rounds) == 9 and (rounds == 4).all()


def test_probe_files_hold_what_the_protocol_says():
    files = data.table("parser_probes")
    assert (files["n_probes"] == 8 * files["n_records"]).all()
    assert files["n_records"].max() == 1800


def test_probing_costs_more_than_debating_in_four_of_five_paid_rows():
    paid = costs.dollars(data.table("holdouts"))
    assert len(paid) == 5 and (paid["probes_over_debates"] > 1).sum() == 4
    np.testing.assert_allclose(paid["probe_each"] / paid["debate_each"], paid["probes_over_debates"])


def test_provenance_agrees_with_the_parser_audit():
    audited = costs.audited(data.table("parser_traces"), data.table("parser_probes"))
    found = costs.provenance(data.table("provenance"), audited)
    assert (found["n_records"] == found["n_audited"]).all()
    span = found.set_index("lane")["seconds"]
    # Two files were stamped when written: no record is a tenth of a second after the first.
    assert span.index[span < 0.1].tolist() == ["qwen3.6-27b-fp8", "qwen3.6-35b-a3b-fp8"]
    assert span["mistral_small_4_n20"] == 272
    assert span.isna().sum() == 1


def test_bad_entries_are_named():
    good = pd.DataFrame({"lane": ["a"], "file": ["a.jsonl"], "sha256": ["0" * 64], "n_records": [1],
                         "first": ["10.0"], "last": ["2026-04-27T09:00:00"], "backends": ["x"], "model": ["m"],
                         "providers": [None]})
    assert costs.provenance(good, pd.Series(dtype=int))["n_audited"].isna().all()
    with pytest.raises(DataError, match="'a.jsonl', field 'sha256': 'short'; expected 64 hex digits"):
        costs.provenance(good.assign(sha256="short"), pd.Series(dtype=int))
    with pytest.raises(DataError, match="time 'noon'"):
        costs.provenance(good.assign(first="noon"), pd.Series(dtype=int))
