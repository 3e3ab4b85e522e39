"""Stance read from token probabilities: validity, direction without heat, conviction, self-tests."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_softmax

from analysis.errors import DataError
from analysis.layers import stance, stance_reads

PRIOR = [-9, -8.2, -7.5, -6, -4, -1.7, -0.26]
CONTROL = [-9, -8, -7.2, -5.8, -3.9, -1.5, -0.32]
HEATED = [-7, -5.5, -4.5, -3, -2.2, -1.4, -0.8]
MOVED = [-7, -5, -3.5, -2, -1.1, -1.3, -1.9]
POLE = [0, 0, 0, 0, 0, 0, 10.0]
PEAK = [0, 1, 2, 3, 2, 1, 0.0]


def entropy_by_hand(p):
    return -sum(x * np.log2(x) for x in p if x > 0)


def tempered(logits, temperature):
    weights = np.exp((np.asarray(logits) - max(logits)) / temperature)
    return weights / weights.sum()


def mean_option(logits, temperature):
    return float(tempered(logits, temperature) @ np.arange(1, 8))


def one(control, treat, pole, temperature=2.0):
    found = stance.direction([control], [treat], [pole], temperature=temperature)
    return SimpleNamespace(**{name: value[0] for name, value in found._asdict().items()})


# --- the worked table of self-tests -------------------------------------------------------------------------

@pytest.mark.parametrize(("control", "treat", "pole", "temperature", "raw", "heat_free"), [
    (POLE, np.divide(POLE, 3), -1, 1, 0.616120, 0),
    (POLE, np.divide(POLE, 3), -1, 2, 1.723315, 0),
    (POLE, np.divide(POLE, 3), -1, 8, 0.580930, 0),
    (CONTROL, np.divide(CONTROL, 1.7), -1, 2, 0.616807, 0),
    (PEAK, [0, 0, 1, 2, 3, 2, 1], 1, 2, 0.539949, 0.539949),
    (PEAK, [0, 0.5, 1, 1.5, 1, 0.5, 0], 1, 2, 0, 0),
])
def test_worked_self_tests(control, treat, pole, temperature, raw, heat_free):
    found = one(control, treat, pole, temperature)
    assert found.raw == pytest.approx(raw, abs=5e-7)
    assert found.heat_free == pytest.approx(heat_free, abs=5e-7 if heat_free else 1e-9)


@pytest.mark.parametrize(("temperature", "raw", "heat_free"), [
    (1, 0.3542, 1.8412), (2, -0.3263, 0.5172), (8, -0.2996, -0.3024)])
def test_sign_depends_on_the_read_temperature(temperature, raw, heat_free):
    control, treat = [4.4, -5.4, -2.6, 1.9, 3.5, -0.4, 2.4], [-1.8, -1.8, 3.8, 0.1, -2.3, -3.1, -3.1]
    found = one(control, treat, 1, temperature)
    assert (round(found.raw, 4), round(found.heat_free, 4)) == (raw, heat_free)
    assert stance.temperature_signs([control], [treat], [1]).unstable.tolist() == [True]
    # What cannot depend on it: the margin is read at temperature 1, the leading option is the same at all.
    for t in (1, 2, 4, 8):
        assert tempered(treat, t).argmax() == 2 and tempered(control, t).argmax() == 0


def test_tied_maxima_cannot_be_cooled_below_their_entropy():
    found = one([5, 5, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0], 1)
    assert entropy_by_hand(tempered([9, 0, 0, 0, 0, 0, 0], 2)) == pytest.approx(0.498778, abs=5e-7)
    assert not found.matched and np.isnan(found.heat_free) and np.isfinite(found.raw)


def test_the_real_self_test_passes():
    table = stance.self_test()
    assert table.passed.all() and set(table.test) == {"heated pole", "shift", "flattening", "unmatched"}
    assert stance.self_test_gate().passed


def broken(change):
    def measure(control, treat, pole, *, temperature):
        return change(stance.direction(control, treat, pole, temperature=temperature))
    return measure


@pytest.mark.parametrize(("change", "caught_by"), [
    (lambda d: d._replace(raw=0 * d.raw, heat_free=0 * d.raw), "shift"),
    # would pass the heated pole's second half
    (lambda d: d._replace(heat_free=0 * d.raw), "shift"),
    (lambda d: d._replace(heat_free=d.raw), "heated pole"),
    (lambda d: d._replace(raw=-d.raw, heat_free=-d.heat_free), "shift"),
    (lambda d: d._replace(raw=abs(d.raw), heat_free=d.raw * 0.9), "shift"),
    (lambda d: d._replace(heat_free=np.nan_to_num(d.heat_free)), "unmatched"),
])
def test_self_test_catches_broken_measures(change, caught_by):
    table = stance.self_test(broken(change))
    assert not table[table.test == caught_by].passed.all()


# --- the worked cells ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("treat", "mass", "E", "H", "h", "raw", "null", "heat_free", "own", "peak"), [
    (HEATED, 0.872624, 5.567367, 2.320188, 1.783013, 0.679089, 0.674946, 0.004143, -0.58, -0.58),
    (MOVED, 0.928154, 5.099574, 2.450591, 2.136203, 1.146882, 0.888928, 0.257954, -1.98, -0.98),
])
def test_worked_direction_and_conviction(treat, mass, E, H, h, raw, null, heat_free, own, peak):
    assert np.exp(treat).sum() == pytest.approx(mass, abs=5e-7)
    assert mean_option(treat, 2) == pytest.approx(E, abs=5e-7)
    assert entropy_by_hand(tempered(treat, 2)) == pytest.approx(H, abs=5e-7)
    found = one(CONTROL, treat, -1)
    for name, value in {"heat": h, "raw": raw, "null": null, "heat_free": heat_free}.items():
        assert getattr(found, name) == pytest.approx(value, abs=5e-7)
    assert stance.conviction(PRIOR, CONTROL, treat) == pytest.approx(own)
    assert stance.conviction(PRIOR, CONTROL, treat, anchor="peak") == pytest.approx(peak)


def test_worked_prior_and_control():
    assert np.exp(PRIOR).sum() == pytest.approx(0.975481, abs=5e-7)
    assert np.exp(CONTROL).sum() == pytest.approx(0.973754, abs=5e-7)
    assert mean_option(PRIOR, 1) == pytest.approx(6.763115, abs=5e-7)
    assert mean_option(PRIOR, 2) == pytest.approx(6.292378, abs=5e-7)
    assert mean_option(CONTROL, 2) == pytest.approx(6.246456, abs=5e-7)
    assert entropy_by_hand(tempered(CONTROL, 2)) == pytest.approx(1.708933, abs=5e-7)
    assert stance.own_margin([PRIOR, CONTROL], [6, 6]) == pytest.approx([1.44, 1.18])
    assert stance.opponent_pole(PRIOR) == -1


# --- properties ---------------------------------------------------------------------------------------------

READ = st.lists(st.floats(-8, 8).map(lambda x: round(x, 3)), min_size=7, max_size=7)


@settings(max_examples=80, deadline=None)
@given(READ, READ, st.sampled_from([-1, 1]), st.sampled_from([1.0, 2.0, 8.0]))
def test_identities_of_direction(control, treat, pole, temperature):
    found = one(control, treat, pole, temperature)
    p, q = tempered(control, temperature), tempered(treat, temperature)
    change = q - p
    odd = (change - change[::-1]) / 2
    assert found.raw == pytest.approx(pole * float((np.arange(1, 8) - 4) @ odd), abs=1e-12)
    assert found.raw == pytest.approx(pole * (mean_option(treat, temperature) - mean_option(control,
                                                                                            temperature)),
                                      abs=1e-12)
    assert -6 <= found.raw <= 6
    if found.matched and not np.isclose(np.ptp(control), 0):
        heated = np.divide(control, found.heat)
        assert entropy_by_hand(tempered(heated, temperature)) == pytest.approx(entropy_by_hand(q), abs=2e-9)
        assert found.heat_free == pytest.approx(pole * (mean_option(treat, temperature)
                                                        - mean_option(heated, temperature)), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(READ.filter(lambda x: np.ptp(x) > 0.1), st.floats(0.3, 5), st.sampled_from([1.0, 2.0, 4.0]))
def test_heating_any_read_moves_nothing(control, heat, temperature):
    found = one(control, np.divide(control, heat), 1, temperature)
    assert found.matched and abs(found.heat_free) < 1e-6
    spread = entropy_by_hand(tempered(np.divide(control, heat), temperature))
    # Elsewhere many temperatures give nearly the same spread.
    if stance.peak_margin(control) > 0.5 and spread > 0.01:
        assert found.heat == pytest.approx(heat, rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(READ, READ, READ, st.floats(-50, 50), st.floats(-50, 50))
def test_margins_ignore_constants_and_anchors_agree_without_reversal(prior, control, treat, a, b):
    own = stance.conviction(prior, control, treat)
    shifted = stance.conviction(prior, np.add(control, a), np.add(treat, b))
    assert shifted == pytest.approx(own, abs=1e-9)
    if np.argmax(prior) == np.argmax(control) == np.argmax(treat):
        assert stance.conviction(prior, control, treat, anchor="peak") == pytest.approx(own)
    as_log_probabilities = stance.conviction(*(log_softmax(x) for x in (prior, control, treat)))
    assert as_log_probabilities == pytest.approx(own, abs=1e-9)


def test_heat_agrees_with_brents_method():
    rng = np.random.default_rng(4)
    control, treat = rng.normal(0, 3, (2, 40, 7))
    heat, matched = stance.heat_match(control, treat)
    assert matched.all()
    for c, t, h in zip(control, treat, heat, strict=True):
        target = entropy_by_hand(tempered(t, 2))
        root = brentq(lambda x, c=c, target=target: entropy_by_hand(tempered(c, 2 * np.exp(x))) - target,
                      np.log(1e-3), np.log(1e3), xtol=1e-14)
        assert h == pytest.approx(np.exp(root), rel=1e-8)


def test_edges_of_the_heat_match():
    flat = [1.0] * 7
    found = one(flat, MOVED, -1)  # every temperature leaves a uniform read uniform
    assert found.matched and found.null == 0 and found.heat_free == found.raw
    assert one(MOVED, MOVED, 1).heat == 1 and one(MOVED, MOVED[::-1], 1).heat == pytest.approx(1)
    assert not one(MOVED, flat, 1).matched
    frozen = [0, 0, 0, 0, 0, 0, 4000.0]  # entropy 0 to the last bit: the control cooled to its leading option
    assert one([3, 2, 1, 0, 0, 0, 0], frozen, 1).heat_free == pytest.approx(6)
    assert one([5, 5, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0, 0], -1).matched


def test_heat_match_is_one_call_for_many_cells():
    rng = np.random.default_rng(0)
    control, treat = rng.normal(0, 3, (2, 500, 7))
    together = stance.direction(control, treat, np.ones(500))
    apart = [one(c, t, 1).heat_free for c, t in zip(control[:20], treat[:20], strict=True)]
    assert together.heat_free[:20] == pytest.approx(apart, abs=1e-9)


# --- reads from lists of alternatives -----------------------------------------------------------------------

def test_variants_of_a_letter_are_added():
    tokens = {c: float(v) for c, v in zip("ABCDEFG", PRIOR, strict=True)} | {" G": -2.0, "Ġ" + "A": -9.0}
    read = stance_reads.option_logprobs(tokens, "ABCDEFG")
    assert read.reason == "" and read.censored == ()
    assert np.exp(read.logprob[[0, 6]]) == pytest.approx([2 * np.exp(-9), np.exp(-0.26) + np.exp(-2)])
    assert read.logprob[1:6] == pytest.approx(PRIOR[1:6])


@pytest.mark.parametrize(("tokens", "reason"), [
    ({"A": -0.2, "B": -2.0, "x": -6.0}, "censored"),
    ({"A": -0.2, "B": -2.0, "x": -2.5}, "censored_top_two"),  # C as "C" and " C" may hold twice exp(-2.5)
    ({"A": -0.2, "B": -2.0, "x": -2.7}, "censored"),
    ({"A": -0.2, "x": -3.0}, "censored_top_two"),
    ({"x": -0.1}, "censored_top_two"),
])
def test_a_list_too_short_is_refused_never_filled(tokens, reason):
    read = stance_reads.option_logprobs(tokens, "ABCDEFG")
    assert read.reason == reason
    assert np.isnan(read.logprob[["ABCDEFG".index(c) for c in read.censored]]).all()
    reads = frame_of({"p": read.logprob})
    assert stance_reads.check_reads(reads).reason.tolist() == ["censored"]


def test_bad_alternatives_name_what_is_wrong():
    with pytest.raises(DataError, match="alternatives: none"):
        stance_reads.option_logprobs({}, "ABCDEFG")
    with pytest.raises(DataError, match="token 'A': 0.3, expected a log-probability"):
        stance_reads.option_logprobs({"A": 0.3}, "ABCDEFG")
    with pytest.raises(DataError, match="token 'A': nan"):
        stance_reads.option_logprobs({"A": float("nan")}, "ABCDEFG")
    with pytest.raises(ValueError, match="expected 7 different letters"):
        stance_reads.option_logprobs({"A": -1}, "AABCDEF")


# --- validity -----------------------------------------------------------------------------------------------

def frame_of(logprobs, **columns):
    frame = pd.DataFrame({"read_id": list(logprobs), "logprob": [list(x) for x in logprobs.values()]})
    defaults = {"receiver_model": "m", "proposition_id": "x", "phase": "prior",
                "generation_mode": "reasoning_off", "probe_mode": "reasoning_off"}
    return frame.assign(**(defaults | columns))


@pytest.mark.parametrize(("read", "reason"), [
    (PRIOR, ""),
    (list(np.log(np.full(7, 0.501 / 7) * [1.2, 1, 1, 1, 1, 1, 0.8])), ""),
    (list(np.log(np.full(7, 0.49 / 7) * [1.2, 1, 1, 1, 1, 1, 0.8])), "letter_mass"),
    ([*PRIOR[:6], np.nan], "censored"),
    ([*PRIOR[:6], -np.inf], "not_finite"),
    ([-9999.0, *PRIOR[1:]], "sentinel"),
    ([-9990.0, *PRIOR[1:]], "sentinel"),
    ([-2.0] * 7, "all_equal"),
    ([3.0, 1, 0, 0, 0, 0, 0], "not_log_probabilities"),  # logits would pass any floor on the mass
])
def test_validity_of_a_read(read, reason):
    checked = stance_reads.check_reads(frame_of({"r": read}))
    assert checked.reason.tolist() == [reason] and checked.valid.tolist() == [reason == ""]


def test_mass_is_judged_at_temperature_one():
    # The mass must not be renormalised first, as it is before shares are read at another temperature.
    thin = frame_of({"r": np.subtract(PRIOR, 1.0)})
    assert stance_reads.check_reads(thin).reason.tolist() == ["letter_mass"]


def test_modes():
    on = frame_of({"r": PRIOR}, generation_mode="reasoning_on")
    assert stance_reads.check_reads(on).reason.tolist() == ["generation_mode"]
    assert stance_reads.check_reads(on, generation="reasoning_on").valid.all()
    probe = frame_of({"r": PRIOR}, probe_mode="reasoning_on")
    assert stance_reads.check_reads(probe).reason.tolist() == ["probe_mode"]
    with pytest.raises(DataError,
                       match="row 0, field 'probe_mode': 'thinking', expected one of reasoning_off"):
        stance_reads.check_reads(frame_of({"r": PRIOR}, probe_mode="thinking"))
    with pytest.raises(ValueError, match="generation='on': expected one of"):
        stance_reads.check_reads(on, generation="on")


def test_malformed_reads():
    with pytest.raises(DataError, match="read 'r', field 'logprob'.*expected 7 numbers"):
        stance_reads.check_reads(frame_of({"r": PRIOR[:6]}))
    with pytest.raises(DataError, match="read_id='r': 2 rows, expected one"):
        stance_reads.check_reads(pd.concat([frame_of({"r": PRIOR})] * 2))
    with pytest.raises(DataError, match="no field 'probe_mode'"):
        stance_reads.check_reads(frame_of({"r": PRIOR}).drop(columns="probe_mode"))
    wide = frame_of({"r": PRIOR}).drop(columns="logprob")
    wide[[f"logprob_{k}" for k in range(1, 8)]] = [PRIOR]
    assert stance_reads.check_reads(wide).mass.tolist() == pytest.approx([0.975481], abs=5e-7)


# --- cells --------------------------------------------------------------------------------------------------

def study(prior=PRIOR, treat=MOVED, control=CONTROL, pole=-1, tokens=None, cell=None):
    reads = frame_of({"p": prior, "t": treat, "c": control}).assign(phase=["prior", "treat", "control"])
    if tokens:
        reads["n_prompt_tokens"] = tokens
    cells = pd.DataFrame([{"receiver": "m", "opponent": "o", "proposition_id": "x", "stance": "hostile",
                           "kind": "strong", "pole": pole, "prior": "p", "treat": "t",
                           "control": "c"} | (cell or {})])
    return reads, cells


def test_one_cell_has_all_its_numbers():
    row = stance.read_cells(*study()).iloc[0]
    assert row.valid and row.reason == "" and row.bucket == "pole" and not row.saturated
    assert row.conviction_own == pytest.approx(-1.98) and row.conviction_peak == pytest.approx(-0.98)
    assert row.anchors_differ and row.heat_matched and not row.T_unstable
    assert row.heat_free_shift == pytest.approx(0.257954, abs=5e-7)
    assert row.raw_shift - row.heat_shift == pytest.approx(row.heat_free_shift)
    assert row.argmax_flip and row.argmax_shift == 2 and row.prior_margin == pytest.approx(1.44)
    assert (row.E_prior, row.E_control) == pytest.approx((6.292378, 6.246456), abs=5e-7)
    assert pd.isna(row.length_matched)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"treat": np.subtract(MOVED, 2)}, "treat_letter_mass"),
    ({"control": [-2.0] * 7}, "control_all_equal"),
    ({"prior": [*PRIOR[:6], np.nan]}, "prior_censored"),
    ({"prior": [-2.1, -2, -2, -1.6, -2, -2, -2.1]}, "no_lean"),
    ({"pole": 1}, "pole_with_lean"),
    ({"tokens": [100, 200, 215]}, "control_length"),
])
def test_a_cell_with_a_fault_is_left_out_and_counted(changes, reason):
    cells = stance.read_cells(*study(**changes))
    assert cells.reason.tolist() == [reason] and not cells.valid.any()
    assert cells[["conviction_own", "heat_free_shift", "raw_shift"]].isna().all(axis=None)
    assert stance.exclusions(cells).to_dict("records") == [
        {"receiver": "m", "reason": reason, "kind": "strong", "stance": "hostile", "n": 1, "of": 1}]


def test_length_of_filler():
    assert stance.read_cells(*study(tokens=[100, 200, 210])).length_matched.tolist() == [True]
    assert stance.read_cells(*study(tokens=[100, 200, 190])).valid.all()
    unknown = stance.read_cells(*study(tokens=[100, None, 300]))
    assert unknown.valid.all() and unknown.length_matched.isna().all()


def test_bucket_needs_one_leading_option():
    tied = stance.read_cells(*study(prior=[-9, -8, -7, -6, -4, -0.9, -0.9], pole=-1))
    assert tied.bucket.tolist() == ["mid"]
    low = stance.read_cells(*study(prior=PRIOR[::-1], control=CONTROL[::-1], treat=MOVED[::-1], pole=1))
    assert low.bucket.tolist() == ["pole"]
    assert low.heat_free_shift[0] == pytest.approx(0.257954, abs=5e-7)  # the mirror image moves as far


@pytest.mark.parametrize(("cell", "message"), [
    ({"opponent": "m"}, "field 'opponent': 'm' is the receiver"),
    ({"kind": "forceful"}, "field 'kind': 'forceful', expected one of strong, weak, irrelevant"),
    ({"stance": None}, "field 'stance': missing, expected a value"),
    ({"pole": 0}, "field 'pole': .*0.*, expected one of -1, 1"),
    ({"treat": "z"}, "field 'treat': no read 'z'"),
    ({"treat": "c"}, "read 'c' has phase 'control', expected 'treat'"),
    ({"proposition_id": "y"}, "read 'p' has proposition_id 'x', expected 'y'"),
    ({"receiver": "n"}, "read 'p' has receiver_model 'm', expected 'n'"),
])
def test_bad_cells(cell, message):
    reads, cells = study(cell=cell)
    with pytest.raises(DataError, match=message):
        stance.read_cells(reads, cells)


def test_two_cells_share_a_prior_and_keep_their_index():
    reads, cells = study()
    cells = pd.concat([cells, cells.assign(kind="irrelevant", treat="c2")], ignore_index=True).set_index(
        pd.Index([7, 3]))
    more = frame_of({"c2": CONTROL}).assign(phase="treat")
    found = stance.read_cells(pd.concat([reads, more]), cells)
    assert found.index.tolist() == [7, 3]
    assert found.heat_free_shift.tolist() == pytest.approx([0.257954, 0], abs=5e-7)
    assert stance.read_cells(reads, cells.iloc[:0]).empty


def test_pinned_receiver_fails_its_gates():
    pinned = pd.DataFrame({"prior_margin": [26.0, 24], "largest": [0.9999, 1.0]})
    assert [g.passed for g in stance.saturation(pinned)] == [False, False]
    one_free = pd.DataFrame({"prior_margin": [26.0, 3], "largest": [0.9999, 0.95]})
    assert [g.passed for g in stance.saturation(one_free)] == [True, True]
