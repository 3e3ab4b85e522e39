"""The coder: the paper's chain to the letter, its strict variant, and our reading of replies."""

import json
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import anchored, coder, numerals
from analysis.coder import code_answers, code_numbers, is_revision

ALL = "ABCDEFGHIJ"

# ---------------------------------------------------------------- the chain, written down a second time

FINAL = re.compile(r"Final\s+Answer\s*:\s*([A-J])\b", re.I)
CUES = [re.compile(p, re.I) for p in (
    r"(?:the\s+)?answer\s+is\s*:?\s*([A-J])\b",
    r"(?:I\s+)?(?:choose|select|pick)\s+(?:option\s+)?([A-J])\b",
    r"(?:correct\s+)?answer\s*:\s*([A-J])\b")]
LINE = re.compile(r"^[\(\*]*([A-J])[\)\.\*]*$", re.I)
STRICT_LINE = re.compile(r"^[\(\*]*\s*([A-J])\s*[\)\.\*]*$", re.I)
LETTER = re.compile(r"\b([A-J])\b")


def chain(text, labels=ALL, strict=False):
    """(label, step) of one text, step by step with Python's own engine."""
    text = (text or "").strip()
    if not text:
        return None, "empty"
    tags = FINAL.findall(text)
    if strict:
        tags = [t for t in tags if t.upper() in labels][-1:]
    if tags and tags[0].upper() in labels:
        return tags[0].upper(), "final_tag"
    for name, cue in zip(("answer_is", "choose", "answer_colon"), CUES, strict=True):
        match = cue.search(text)
        if match and match[1].upper() in labels:
            return match[1].upper(), name
    for line in text.split("\n")[::-1]:
        line = line.strip()
        match = (STRICT_LINE if strict else LINE).match(line)
        for letter in ([line] if len(line) == 1 else []) + ([match[1]] if match else []):
            if letter.upper() in set(labels):
                return letter.upper(), "letter_line"
    letters = [] if strict else [m for m in LETTER.findall(text) if m in labels]
    return (letters[-1], "last_letter") if letters else (None, "none")


def assert_chain(texts, labels=ALL):
    for policy in ("reference", "strict"):
        coded = code_answers(texts, labels, policy)
        for text, label, rule in zip(texts, coded.label, coded.rule, strict=True):
            expected = chain(text, labels, policy == "strict")
            assert (None if pd.isna(label) else label, rule) == expected, (policy, labels, text)


PIECES = st.sampled_from([
    "Final", "final answer: ", "Answer", "ANSWER IS ", "answer", "the ", "is", ":", "Choose", "select",
    "pick", "option", "I ", "correct ", " ", "  ", "      ", "\n", "\r\n", "\t", "\v", "\f", "\x1c",
    "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2028", "\u2029", "\u200b", "\u3000", "\u180e", "\ufeff",
    "A", "B", "J", "b", "c", "j", "i", "I", "K", "k", "z", "(", ")", "*", ".", "_", "-", "0", "9", "\0",
    "\x01", "@", "[", "`", "{", "é", "ß", "中", "한", "\u0301", "\u20dd", "İ", "ı", "ſ", "\u212a", "٣",
    "²", "½", "Ａ", "ａ", "𝐃", "😀", "А", "\ud800"])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=14).map("".join), min_size=1, max_size=40),
       st.sampled_from([ALL, "ABCD", "BJIS", "CK", "I"]))
def test_chain_is_pythons_on_texts_built_to_break_it(texts, labels):
    assert_chain(texts, labels)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=20))
def test_chain_is_pythons_on_any_unicode(texts):
    assert_chain(texts)


@pytest.mark.parametrize("text, reference, strict", [
    ("Final Answer: B\nFinal Answer: D", "B", "D"),  # a first tag wins over a correction; strict: the last
    ("Final Answer: E\nFinal Answer: B\nFinal Answer: E", "B", "B"),  # strict: the last valid one
    ("Final Answer: E\nanswer: C", "C", None),  # the first match is no label: both steps are spent
    ("answer is E, answer is A\nanswer: D", "D", "D"),  # no second try within a step
    ("The answer is (C).", "C", None),  # parentheses pass steps 1 and 2 by
    ("the answer is a surprise. (B)", "A", "A"),  # case ignored: the article counts
    ("( A )", "A", "A"),  # reference: by its last letter; strict: blanks inside the decoration
    ("I cannot say", None, None),
    ("d", "D", "D"),
    ("**(c).**", "C", "C"),
    ("Final\u00a0Answer\u2003:\u3000b", "B", "B"),
    ("Final Answer: B\u00e9", None, None),  # an accented letter goes on with the word
    ("中B中 B", "B", None),
    ("answer\u0131s: A", "A", None),
    ("p\u0131ck \u0131", None, None),  # dotless i is an i when case is ignored, and no label of ABCD
])
def test_known_consequences(text, reference, strict):
    for policy, label in (("reference", reference), ("strict", strict)):
        got = code_answers([text], "ABCD", policy).label[0]
        assert (None if pd.isna(got) else got) == label
    assert_chain([text], "ABCD")


def test_chain_across_chunks_and_lengths(monkeypatch):
    """A text's label does not depend on its neighbours or on where a chunk ends."""
    pieces = ["Final Answer: C", "", "answer is", " B", None, "é" * 50, "A\n" * 20,
              "pick" + " " * 30 + "D", "x" * 300, "(b)"]
    texts = [pieces[i * 7 % 10] for i in range(200)]
    whole = code_answers(texts)
    monkeypatch.setattr(coder, "_CHUNK", 64)
    pd.testing.assert_frame_equal(code_answers(texts), whole)
    assert_chain(texts)


def test_reference_on_mmlu_pro_outputs(shared):
    replies = mmlu_pro(shared)
    texts = [row["generated_text"] for row in replies]
    assert len(texts) == 12032
    assert_chain(texts)


# ---------------------------------------------------------------- input and output


def test_result_keeps_index_and_tells_empty_from_none():
    texts = pd.Series(["Answer: B", None, " \n\u3000", "no letter"], index=[7, 3, 3, 1])
    coded = code_answers(texts)
    assert coded.index.tolist() == [7, 3, 3, 1]
    assert coded.rule.tolist() == ["answer_colon", "empty", "empty", "none"]
    assert coded.label.isna().tolist() == [False, True, True, True]
    assert str(coded.label.dtype) == "str" and str(coded.rule.dtype) == "str"


@pytest.mark.parametrize("make", [
    list, tuple, pd.Series, pa.array,
    lambda t: pd.Series(t, dtype=object), lambda t: np.array(t, dtype=object),
    lambda t: pa.chunked_array([t[:2], t[2:]]), lambda t: pa.array(t).dictionary_encode(),
    lambda t: pa.array(["x", *t, "x"]).slice(1, len(t)), lambda t: pd.Series(t).astype("category")])
@pytest.mark.parametrize("policy", coder.POLICIES)
def test_every_kind_of_sequence(make, policy):
    texts = ["Final Answer: C", None, "Antwort: Ä", "Final Answer: é A"]
    expected = code_answers(texts, policy=policy)
    pd.testing.assert_frame_equal(code_answers(make(texts), policy=policy).reset_index(drop=True), expected)
    assert len(code_answers(make(texts)[:0], policy=policy)) == 0


def test_labels_for_each_text():
    coded = code_answers(["Final Answer: E"] * 3, ["ABCDE", "ABCD", "abcdef"])
    assert coded.label.fillna("-").tolist() == ["E", "-", "E"]


def test_a_list_of_single_letters_is_one_set_however_many_texts_there_are():
    texts = ["Final Answer: B", "Final Answer: A", "Final Answer: D", "Final Answer: E"]
    for policy in coder.POLICIES:
        for labels in (list("ABCD"), tuple("DCBA"), set("abcd")):
            assert code_answers(texts, labels, policy).equals(code_answers(texts, "ABCD", policy))
    for each in (pd.Series(list("ABCE")), np.array(list("ABCE"))):
        assert code_answers(texts, each).label.fillna("-").tolist() == ["-", "-", "-", "E"]


@pytest.mark.parametrize("call, error, message", [
    (lambda: code_answers(["A"], policy="strikt"), ValueError, "expected one of reference, strict, anchored"),
    (lambda: code_answers("A"), TypeError, "single string"),
    (lambda: code_answers([1.5]), TypeError, "expected strings"),
    (lambda: code_answers(pd.Series([1, 2])), TypeError, "expected strings"),
    (lambda: code_answers(["A"], labels=""), ValueError, "letters of the options"),
    (lambda: code_answers(["A"], labels="1234"), ValueError, "'1234'"),
    (lambda: code_answers(["A", "B"], labels=["AB"]), ValueError, r"one string per text \(2\), got 1"),
    (lambda: is_revision(["A"], ["A", "B"]), ValueError, "same length"),
])
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_is_revision():
    before = pd.Series(["A", "A", None, "B", None], index=list("vwxyz"))
    revised = is_revision(before, ["B", "A", "C", None, None])
    assert revised.tolist() == [True, False, False, False, False]
    assert revised.index.tolist() == list("vwxyz") and revised.dtype == bool
    assert is_revision(["A", "", " "], ["", "B", "B"]).tolist() == [False, False, False]
    pairs = [("A", "B"), ("A", "A"), ("A", ""), (None, "B"), (" ", "B"), ("A", pd.NA), (np.nan, None)]
    assert [is_revision(*pair) for pair in pairs] == [True] + [False] * 6
    with pytest.raises(ValueError, match="same length, got 1 and 2"):
        is_revision("A", ["A", "B"])


@pytest.mark.parametrize("text, label", [
    ("The answer is B... no, D.", "D"),
    ("The answer is (B) \u2014 wait, no, (D).", "D"),
    ("I choose A. Sorry, C.", "C"),
    ("The answer is B. No other option fits.", "B"),
    ("The answer is B. No, A is wrong.", "B"),
    ("Options: A. No, B. Yes. The statement is false, so the answer is A.", "A"),
    ("The answer is A. Options: A. No, B. Yes, C. Never", "A"),
    ("The correct answer is not A but D.", "D"),
    ("The best choice is not (A), but (C), because it is larger.", "C"),
    ("The answer is C. The set is not A but B.", "C"),
    ("My updated answer: (B)\nAgent 1's answer: (A)", "B"),
    ("My updated answer: (B)\n\nAgent 1's answer: (A)\nAgent 2's final answer: (C)", "B"),
    ("I initially said A. I agree with Agent 2's answer: (B)", "B"),
])
def test_taken_back_denied_and_restated_answers(text, label):
    assert code_answers([text], "ABCD", "anchored").label[0] == label


# ---------------------------------------------------------------- anchored: our own cases, one test each

OWN = pd.read_csv(Path(__file__).parent / "cases" / "coder_cases.csv", dtype=str, keep_default_na=False)


@pytest.mark.parametrize("case", list(OWN.itertuples()), ids=OWN.case_id)
def test_own_case(case):
    assert read(case) == expected(case), case.why


def read(case):
    if case.kind == "mcq":
        label = code_answers([case.text], case.valid_labels, "anchored").label[0]
        return "NONE" if pd.isna(label) else label
    value = code_numbers([case.text]).value[0]
    return "NONE" if np.isnan(value) else pytest.approx(value, rel=1e-12)


def expected(case):
    return case.expected if case.kind == "mcq" or case.expected == "NONE" else float(case.expected)


# Outside cases that we read otherwise than their authors; every one is named here.
KNOWN_TO_DIFFER = ()


@pytest.fixture(scope="session")
def outside(shared):
    cases = pd.read_csv(shared / "cases" / "answer_cases.csv", dtype=str, keep_default_na=False)
    return cases[cases.kind.isin(["mcq", "numeric"])]


@pytest.mark.parametrize("kind", ["mcq", "numeric"])
def test_agreement_with_outside_cases(outside, kind):
    cases = outside[outside.kind == kind]
    wrong = {case.case_id for case in cases.itertuples() if read(case) != expected(case)}
    assert wrong == {case_id for case_id in KNOWN_TO_DIFFER if case_id in set(cases.case_id)}
    assert 1 - len(wrong) / len(cases) >= 0.95


def test_reference_rule_of_outside_cases(outside):
    cases = outside[outside.kind == "mcq"]
    coded = code_answers(cases.text, cases.valid_labels.tolist())
    assert coded.label.fillna("NONE").tolist() == cases.reference_rule.tolist()


def mmlu_pro(shared):
    path = next((shared / "real" / "mmlu_pro_outputs").glob("*.zip"))
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def test_anchored_on_mmlu_pro_outputs(shared):
    """The kernels for plain endings say what the careful reading says, close to another coder's reading."""
    replies = mmlu_pro(shared)
    texts = pa.array([row["generated_text"] for row in replies], pa.large_string())
    masks = np.full(len(texts), (1 << 10) - 1)
    plain = anchored._settle_plain(texts, masks)
    settled = np.flatnonzero(plain >= 0)
    assert len(settled) > 0.7 * len(texts)  # most need no careful reading
    for i in settled[::5]:
        assert anchored._code(texts[int(i)].as_py(), frozenset(ALL)) == (chr(65 + plain[i]), "answer")
    label = code_answers(texts, policy="anchored").label
    theirs = pd.Series([row["pred"] for row in replies], dtype="str")
    both = label.notna() & theirs.notna()
    assert (label[both] == theirs[both]).mean() > 0.999
    assert (theirs.notna() & label.isna()).sum() < 50  # "The answer is (A) and (F)."


@pytest.mark.parametrize("policy", coder.POLICIES)
def test_anything_can_be_coded(policy):
    pieced = st.lists(PIECES, max_size=12).map("".join)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.none() | st.text(max_size=80) | pieced, max_size=8))
    def check(texts):
        coded = code_answers(texts, "ABCD", policy)
        assert len(coded) == len(texts) and set(coded.label.dropna()) <= set("ABCD")
        assert coded.rule.notna().all()
        numbers = code_numbers(texts)
        assert numbers.value.dtype == np.float64 and not np.isinf(numbers.value).any()
    check()


# ---------------------------------------------------------------- linear time

UNITS = [
    "A, ", "answer is ", "answer: ", "(A) ", "so ", "I choose ", "is the ", "\n", " ", "<think>",
    "</think>", "\\boxed{", "((", "A. B. C. ", "\nA) x\nB) y", "选", "答案是", "agent says ", "1,234", "1,",
    "1.111", "9", "1/", "#### ", "- ", "one ", "\u0301", "~~", "$", "**", "it's ", "a.", "Question: ",
    "\nQ", "B or ", "`", "{", "between 5 ", "=1 ", "if ", "(option ", "A: ", "is (A) ", "hundred ",
    "A - ", "B\n", "İ", "answer" + " " * 20]


@pytest.mark.parametrize("reader", [
    lambda t: code_answers([t]), lambda t: code_answers([t], policy="anchored"), lambda t: code_numbers([t])],
    ids=["reference", "anchored", "numbers"])
def test_work_is_linear(reader):
    """Ten times the text is about ten times the work; a quadratic step would make it a hundred."""
    for unit in UNITS:
        small, large = (unit * (size // len(unit)) for size in (2_000, 20_000))
        before = min(work(reader, small) for _ in range(2))
        assert work(reader, large) < 40 * before + 0.1, unit


def work(function, argument):
    """Processor time of one call: only its growth is judged, so the speed of the machine cancels out."""
    start = time.process_time()
    function(argument)
    return time.process_time() - start


ENDINGS = st.sampled_from([
    "#### {}", "\\boxed{{{}}}", "\\boxed{{{}}}.\n", "The answer is {}.", "Answer: ${}",
    "The final answer is {}\n\n",
    "#### {} apples", "<think>#### {}</think>", "\nQuestion: 5\n#### {}", "4 and \\boxed{{{}}}"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(
    st.sampled_from(["", "3 + 4 = 7.\n", "If so, ", "Wait. ", "\\boxed{3} red and ", "#### 5\n",
                     "The answer is 9. "]),
    ENDINGS,
    st.sampled_from(["7", "-12", "1,234", "1,234.50", "0.5", "1.840", "047", "12,34", "3.14159"])),
    max_size=8))
def test_kernels_for_plain_numbers_say_what_the_careful_reading_says(parts):
    texts = [before + ending.format(digits) for before, ending, digits in parts]
    coded = code_numbers(texts)
    careful = [numerals.number(text) for text in texts]
    np.testing.assert_array_equal(coded.value, [value for value, _ in careful])
    assert coded.rule.tolist() == [rule for _, rule in careful]


def test_numbers_beyond_a_float_are_none():
    assert np.isnan(numerals.number("The answer is 1e999.")[0])
    assert np.isnan(numerals.number("The answer is " + "9" * 5000)[0])
