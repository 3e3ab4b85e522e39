"""The number a careful reader would call a reply's final answer.

The order of trust: GSM8K's ``####`` ending or the last LaTeX box, a tagged or JSON reply, the last sentence
that says "the answer is", and else the last sentence that holds a number. Inside a sentence the value
stands after the last equals sign, or else after the verb ("the share is 35%"). Two alternatives or a range
are no answer.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.reply import NOT_PLAIN, next_turn, own_voice

_DIGITS = (r"(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?(?!\d|,\d)|\d{1,3}(?:\.\d{3})++,\d++|"
           r"\d{1,3}(?:\.\d{3}){2,}+(?!\d)|\d++,\d++(?!,\d)|"
           r"\d++(?:\.\d++)?|\.\d++)")
_NUMBER = re.compile(
    rf"(?<![\w^.,])(?<!\d[-:])(?P<sign>(?<![\w)])-\s?)?(?P<currency>\\?[$€£¥₹]\s?-?)?"
    rf"(?:(?P<whole>\d+\s?)?\\[dt]?frac\s?\{{(?P<top>-?\d+)\}}\s?\{{(?P<bottom>\d+)\}}"
    rf"|(?P<mixed>\d+) (?P<num>\d+)/(?P<den>\d+)(?![\d/])"
    rf"|(?P<digits>{_DIGITS})(?:[eE](?P<e>[+-]?\d+)(?!\w)|\s?/\s?(?P<under>\d+(?:\.\d+)?)(?![\d/]))?)"
    rf"(?!st\b|nd\b|rd\b|th\b|:\d)"
    rf"(?:\s?(?:×|x|\\times|\\cdot|\*)\s?10\s?\^\s?\{{?(?P<power>[+-]?\d+)\}}?)?"
    rf"(?:[\s-](?P<scale>thousand|million|billion|trillion|Millionen|millones|Milliarden)\b)?")
_SCALE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
          "Millionen": 1e6, "millones": 1e6, "Milliarden": 1e9}
_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
         "sixteen seventeen eighteen nineteen").split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: value for value, word in enumerate(_ONES)} | {word: 10 * k for k, word in enumerate(_TENS, 2)}
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6}
_ANY_WORD = "|".join(sorted([*_WORDS, *_MULTIPLES], key=len, reverse=True))
_WORD_NUMBER = re.compile(rf"\b(?:{_ANY_WORD})(?:(?:[ -]| and )(?:{_ANY_WORD}))*\b", re.I)

_CONTINENTAL = re.compile(r"\b(?:ist|sind|der|die|das|und|insgesamt|beträgt|antwort|kostet|respuesta|son|"
                          r"cuesta|est|sont|"
                          r"réponse|risposta|resposta|sono|het|antwoord)\b", re.I)
_ENGLISH = re.compile(r"\b(?:the|is|are|so|of|was|answer|total)\b", re.I)
_GROUPED_BY_POINT = re.compile(r"(?<![\d.,])(\d{1,3})\.(\d{3})(?!\d|\.\d)")

_HASHES = re.compile(r"####\s?([^\n]{0,200})")
_BOX = re.compile(r"\\f?box(?:ed)?\s?\{")
_TAGGED = re.compile(r"<(?:final_?)?answer>([^<]{0,200})|"
                     r"[\"'](?:final[_ ]?)?answer[\"']\s?:\s?[\"']?([^\"'\n}]{0,200})", re.I)
_CUE = re.compile(r"(?:(?<![A-Za-z])(?:answer|result|ans|antwort|respuesta|réponse|resposta|risposta|"
                  r"ergebnis|résultat|"
                  r"resultado)|答案|答え|正解|정답)(?![a-z])[^.!?\n:=]{0,40}?(?:\b(?:is|was|are|be|equals?|ist|"
                  r"lautet|es|est|é)\b|[:=]|是|为|は)", re.I)
_SENTENCE = re.compile(r"(?:[!?](?=\s|$)|(?<!\bEq)(?<!\bno)\.(?=\s|$|\*)|[\n。！？])")
_VERB = re.compile(r"(?<!there )(?:\b(?:is|are|was|were|be|equals?|gives?|comes to|makes|leaves|totals?|"
                   r"ends at|becomes|ist|sind|"
                   r"beträgt|est|sont|es|son)\b|[:≈]|是|为|共)", re.I)
_NOT_BETWEEN = r"(?:\w{1,12}\s?=\s?)?"
_EITHER = re.compile(rf"\d[^\s\d]{{0,2}}\s(?:or|oder|ou|o)\s{_NOT_BETWEEN}[$€£-]{{0,2}}\d|"
                     rf"\bbetween\s\S{{0,3}}\d[\d.,]*\S{{0,3}}\s(?:\w+\s)?and\s\S{{0,3}}\d|"
                     r"\d\s?[–—]\s?\d|(?<![\d-])\d+-\d+(?![\d-])")
_UNDONE = re.compile(r"\d[^\d=]{0,30}(?:[*+×÷]|\\times|\\cdot|\\div) ?(?!10 ?\^)\d")
_JOINED = re.compile(r"^[^.!?\n]{0,80}\b(?:and|or) [^.!?\n]{0,20}$")
_CUT_OFF = re.compile(r"(?:\b(?:is|are|was|equals?|of|the|to|be|than|and|at)|[=+*/×:])\s?$", re.I)
_ABSTAINED = re.compile(r"not enough|insufficient|cannot|can't|can not|unable|impossible to|don't know|"
                        r"do not know", re.I)
_REVISED = re.compile(r"\b(?:wait|actually|correction|hmm|oops|mistake|scratch that|let me re|recheck)", re.I)


def _value(match):
    """Number matched by `_NUMBER` as a float."""
    part = match.groupdict()
    if part["top"]:
        value = float(part["whole"] or 0) + float(part["top"]) / (float(part["bottom"]) or float("nan"))
    elif part["mixed"]:
        value = float(part["mixed"]) + float(part["num"]) / (float(part["den"]) or float("nan"))
    else:
        digits = part["digits"]
        if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
            digits = digits.replace(",", "")
        elif "," in digits or digits.count(".") > 1:
            digits = digits.replace(".", "").replace(",", ".")
        value = float(digits + ("e" + part["e"] if part["e"] else ""))
        if part["under"]:
            value /= float(part["under"]) or float("nan")
    if part["power"]:
        # through the decimal text, so that 4.8 x 10^-19 is the float 4.8e-19
        value = float(f"{value!r}e{part['power']}")
    value *= _SCALE.get(part["scale"], 1)
    if value in (float("inf"), 0.0) and set(part["digits"] or "") - set("0.,"):
        return float("nan")  # beyond what a float holds
    return -value if part["sign"] or (part["currency"] or "").endswith("-") else value


def _in_words(text):
    """Value of the last number written in words, or None."""
    found = None
    for match in _WORD_NUMBER.finditer(text):
        total = group = 0
        for word in re.split(r"[\s-]+", match[0].lower()):
            if word in _WORDS:
                group += _WORDS[word]
            elif word in _MULTIPLES:
                group = (group or 1) * _MULTIPLES[word]
                if word != "hundred":
                    total, group = total + group, 0
        found = total + group if total + group < 10**15 else None
    return found


def _in_span(span, first=False):
    """Value a short span gives: a float, None for nothing, NaN for a range or two alternatives."""
    anchor = span.rfind("=") + 1
    if _EITHER.search(span) and not (anchor and not re.search(rf"\bor\s{_NOT_BETWEEN}\S{{0,3}}\d", span)):
        return float("nan")
    numbers = list(_NUMBER.finditer(span))
    if not numbers:
        words = _in_words(span)
        return None if words is None else float(words)
    after = [m for m in numbers if m.start() >= anchor] if anchor else []
    if after:
        return _value(after[0])
    if first and span.strip()[:1] in "$-0123456789":
        return _value(numbers[0])
    aside = [m for m in numbers if span.rfind("(", 0, m.start()) <= span.rfind(")", 0, m.start())]
    numbers = aside or numbers  # what stands in parentheses is a remark
    priced = [m for m in numbers if m["currency"]]
    for verb in reversed(list(_VERB.finditer(span))):
        after = [m for m in numbers if m.start() >= verb.end()]
        if after:
            return _value(after[0])
    return _value(priced[0] if len(priced) == 1 else numbers[0 if first else -1])


def _boxes(text):
    """(position, content) of every closed LaTeX box, in one pass."""
    stack, openings = [], {m.end() - 1: m.start() for m in _BOX.finditer(text)}
    if not openings:
        return
    for brace in re.finditer(r"[{}]", text):
        at = brace.start()
        if brace[0] == "{":
            stack.append(at)
        elif stack:
            begin = stack.pop()
            if begin in openings and at - begin < 500:
                yield openings[begin], text[begin + 1:at]


def _plain(text):
    text = re.sub(r"\{,\}|(?<=\d)[\u202f\u2009\u00a0](?=\d{3}\b)|(?<=\d)\\,(?=\d{3})", "", text)
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\s?\{([^{}]{0,100})\}", r" \1", text)
    text = re.sub(r"\*\*|__|`|\\[()\[\],;! ]|~~[^~\n]{0,100}~~", " ", text)
    text = re.sub(r"\\%", "%", text)
    text = re.sub(r"[^\S\n]+", " ", text)
    if _CONTINENTAL.search(text) and not _ENGLISH.search(text):
        text = _GROUPED_BY_POINT.sub(r"\1\2", text)
    return text.strip()


def number(text):
    """(value or NaN, rule) of one reply.

    Parameters
    ----------
    text : str
        A reply as the model wrote it.

    Returns
    -------
    tuple of (float, str)
        The value, NaN where there is none, and the rule that decided.

    Examples
    --------
    >>> number("Of 150 votes the share is 35%")
    (35.0, 'last_number')
    >>> number("x = 4 or x = -4")
    (nan, 'several')
    """
    nothing = float("nan")
    if not text.strip():
        return nothing, "empty"
    # grouping blanks go before they turn into plain ones
    grouped = re.sub(r"(?<=\d)[\u202f\u2009\u00a0](?=\d{3}(?:\D|$))", "", text)
    text = own_voice(grouped)
    if text is None:
        return nothing, "unfinished_reasoning"
    text = _plain(text)
    following = next_turn(text)
    if following:
        value, rule = _conclude(text[:following].strip())
        if value == value:
            return value, rule
    return _conclude(text)


def _conclude(text):
    nothing = float("nan")
    marked = [(m.start(), m[1], "hashes") for m in _HASHES.finditer(text)]
    marked += [(at, content, "boxed") for at, content in _boxes(text)]
    marked += [(m.start(), m[1] or m[2] or "", "tag") for m in _TAGGED.finditer(text)]
    marked.sort(reverse=True)
    for k, (at, content, rule) in enumerate(marked):
        if rule == "boxed" and "=" not in content and _UNDONE.search(content):
            continue  # a sum left undone
        value = _in_span(content, first=True)
        if value is not None:
            if rule == "boxed" and k + 1 < len(marked):  # "4 blue and 6 red": neither is the answer
                before_at, before, _ = marked[k + 1]
                between = text[before_at:at]
                joined = len(between) < 150 and _JOINED.search(between[len(before):])
                if joined and _in_span(before, first=True) not in (None, value):
                    value = nothing
            return (value, rule) if value == value else (nothing, "several")
    ends = [m.end() for m in _SENTENCE.finditer(text)]
    edges = [0, *ends] + ([len(text)] if not ends or ends[-1] < len(text) else [])
    cue = None
    for cue in _CUE.finditer(text):
        pass
    if _CUT_OFF.search(text[-20:]) and not (cue and _in_span(_sentence(text, cue.end(), edges)) is not None):
        return nothing, "cut_off"
    last, tail = None, ""
    for begin, end in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        tail = text[begin:end]
        last = _in_span(tail) if len(tail) <= 2000 else _in_span(tail[-2000:])
        if last is not None:
            break
        if _ABSTAINED.search(tail):
            return nothing, "abstained"
    if cue and _ABSTAINED.search(cue[0]):
        return nothing, "abstained"
    if cue:
        value = _in_span(_sentence(text, cue.end(), edges), first=True)
        if value is not None and not (_REVISED.search(text, cue.end()) and last is not None):
            return (value, "answer") if value == value else (nothing, "several")
    if last is None or _ABSTAINED.search(tail):
        return nothing, "none" if last is None else "abstained"
    return (last, "last_number") if last == last else (nothing, "several")


def _sentence(text, at, edges):
    """From `at` to the end of its sentence."""
    end = next((edge for edge in edges if edge > at), len(text))
    return text[at:min(end, at + 2000)]


# ---------------------------------------------------------------- many replies

# An ending that is nothing but the number. Three decimals could be a grouping: left to the careful reading.
_PLAIN_ENDING = (
    r"(?P<mark>####|\\boxed\{|"
    r"(?:^|[.!?\n])\s*(?:[Tt]he (?:final |correct )?answer is:? |(?:Final )?Answer: ?))"
    r"\s*\$?(?P<digits>-?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,2})?)\}?\$?\.?\s*$")
_MARK = r"####|boxed|(?i)answer>|answer[\"'] ?:"


def numbers(array):
    """Code many replies.

    Parameters
    ----------
    array : pyarrow.LargeStringArray
        One reply each, null where missing.

    Returns
    -------
    values : ndarray of float64
        NaN where there is no number.
    rules : pyarrow.LargeStringArray
        The rule that decided each.

    Examples
    --------
    >>> texts = pa.array(["6 * 7 = 42\\n#### 42", "It takes 2 1/2 hours."], pa.large_string())
    >>> values, rules = numbers(texts)
    >>> values.tolist(), rules.to_pylist()
    ([42.0, 2.5], ['hashes', 'last_number'])
    """
    found = pc.extract_regex(pc.utf8_slice_codeunits(array, start=-120), _PLAIN_ENDING)
    mark, digits = pc.struct_field(found, "mark"), pc.struct_field(found, "digits")
    unmarked = pc.if_else(pc.match_substring(mark, "boxed"), "boxed", "answer")
    rule = pc.if_else(pc.match_substring(mark, "#"), "hashes", unmarked)
    expected = pc.if_else(pc.equal(rule, "answer"), 0, 1)
    plain = pc.and_(pc.equal(pc.count_substring_regex(array, _MARK), expected),
                    pc.invert(pc.match_substring_regex(array, NOT_PLAIN)))
    value = pc.cast(pc.replace_substring(pc.if_else(plain, digits, None), ",", ""), pa.float64())
    values = value.to_numpy(zero_copy_only=False).copy()
    rules = np.array(rule.to_pylist(), dtype=object)
    for i in np.flatnonzero(np.isnan(values)):
        values[i], rules[i] = number(array[int(i)].as_py() or "")
    return values, pa.array(rules, pa.large_string())
