"""The ``anchored`` policy: the option a careful reader would call a reply's final answer.

A reply is first reduced to what it says in its own voice (`analysis.reply`: no reasoning block, no invented
next question, plain letters instead of look-alikes, no markup). Then every place that commits to a letter
is collected: a *cue* (`CUES`) followed by a letter, a letter followed by a verdict (`VERDICT`), or a letter
set apart. Places that are negated, hypothetical, quoted, asked or reported of others do not count. The last
firm commitment wins; a softer one ("so B.") counts if there is no firm one, or if it comes after a firm one
that was taken back.

Most replies end in one plain sentence; those are settled by Arrow's RE2 kernels (`_settle_plain`) and the
rest one by one. Patterns hold no nested or unbounded repetition over text, so time is linear in the length
of a reply.
"""

import re
from collections import deque

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.reply import NOT_PLAIN, next_turn, own_voice, plain

# ---------------------------------------------------------------- places that commit to a letter

_LINK_WORDS = (
    r"(?:(?:is|was|remains?|stays?|becomes?|would|must|should|will|has|have|can|could|may|might|appears|"
    r"seems|to|"
    r"only|be|still|now|then|thus|therefore|hence|so|also|clearly|definitely|most|likely|probably|indeed|"
    r"actually|"
    r"again|surely|certainly|simply|just|obviously|in|fact|given|as|of|the|option|choice|letter|answer|"
    r"correct|"
    r"best)(?:[ :]\s?|\n)){1,8}")
_LINK = (
    rf"(?: ?\([^()\n]{{0,20}}\))?"
    rf"(?: ?[:=\u2192\u2013\u2014>-]+\s?[)}}\]\"']?\s?(?:{_LINK_WORDS})?| {_LINK_WORDS}"
    rf"|,[^.,;:\n]{{1,60}}, {_LINK_WORDS}| from \W?[A-Z]\W? to )")
_NOUN = (
    r"(?:answer|choice|option|pick|verdict|selection|decision|guess|response|conclusion|solution|one|match|"
    r"vote|"
    r"diagnosis|statement|letter|ans\.?)")
_VERB = (
    r"(?:choose|chose|select|selected|pick|picked|keep|prefer|go with|going with|stick with|sticking with|"
    r"stay with|"
    r"settle on|settled on|opt for|vote for|lean towards?|leaning towards?|stand by|maintain|mark|choosing|"
    r"selecting|"
    r"picking|recommend|propose|I(?:'d| would)? say|wähle|nehme|choisis|elijo|escojo|escolho|scelgo)"
    r"(?: la| el| l')?(?: réponse| opción| antwort| risposta)?:?")
_SO = (
    r"(?:so|hence|thus|therefore|consequently|accordingly|leaves|leaving|i\.e\.,?|namely|match(?:es|ing)?|"
    r"corresponds? to|(?:it|which|that|this|answer|answered) (?:is|must be|has to be|should be|would be|"
    r"can only be)|"
    r"it's|that's|must be|closest to|aligns? (?:best |most closely )?with|has to be|can only be|only|"
    r"supports?|indicates?|points? to)")

# name, firm (1) or soft (2), what stands before the letter, what it is
CUES = (
    ("tag", 1, r"<(?:final[_ ]?)?answer>\s?",
     "a tagged reply"),
    ("json", 1, r"[\"'](?:final[_ ]?)?(?:answer|choice|label)[\"'] ?: ?",
     "a JSON reply"),
    ("boxed", 1, r"\\f?box(?:ed)? ?\{",
     "a LaTeX box"),
    ("hashes", 1, r"####? ?(?=\(?[A-Z]\)?\s?$)",
     "GSM8K's final marker"),
    ("placeholder", 1, r"(?:^|(?<=[\s.]))\(?(?:X\):? ?(?=\(?[A-Z]\b)|\d{1,2}\) (?=[A-Z]\)))",
     "the prompt's own '(X)' copied before the letter"),
    ("final_line", 1, r"\bfinal answer\n(?=\W{0,3}[A-Za-z]\W{0,3}(?:\n|$))",
     "heading and letter on separate lines"),
    ("answer", 1, rf"(?<![A-Za-z])(?<!agent )(?<!agents )(?<!peer ){_NOUN}{_LINK}",
     "'the correct answer is', 'my pick:', 'verdict ='"),
    ("answer", 1, rf"(?<![A-Za-z]){_NOUN}{_LINK}not (?:option |choice )?\(?[A-Z]\)?,? but (?:rather )?"
     r"(?=(?:option |choice )?\(?[A-Z]\)?(?:[.,;!\n]|$))",
     "'the answer is not A but B'"),
    ("taken_back", 1,
     r"(?:(?<=\W[A-Z])|(?<=\W[A-Z]\)))(?: ?(?:\.{2,3}|\u2026)|[.,;]| ?[\u2013\u2014-]{1,2}) ?"
     r"(?:(?:no|wait|sorry|oops|I mean)(?:[,:.!]| ?\.{3}| ?\u2026)? ){1,3}(?=\(?[A-Z]\)?[.!]?(?:\n|$))",
     "'the answer is B... no, D.'"),
    ("choose", 1, rf"(?<![A-Za-z]){_VERB}\s",
     "'I choose', 'I lean towards', 'ich wähle'"),
    ("german", 1, r"\b(?:antwort|lösung)(?: (?:ist|lautet|wäre|bleibt))?(?: also| somit| daher)? ?:? ?",
     "'die richtige Antwort ist'"),
    ("romance", 1,
     r"\b(?:réponse|respuesta|resposta|risposta)(?: (?:correcte|finale|correcta|final|correta|corretta))?"
     r"(?: (?:est|es|é|è))?(?: donc)?(?: (?:la|el|a|l'))?(?: ?(?:option|opción|opção|opzione))? ?:? ?",
     "'la bonne réponse est', 'la respuesta es'"),
    ("romance", 1,
     r"\b(?:est|es|é|è) (?:donc )?(?:la |el |a |l')(?:option|opción|opcion|opção|alternativa|choix) ",
     "'es la opción'"),
    ("slavic", 1, r"\b(?:ответ|відповідь|odpowiedź)(?: (?:это|to))? ?[:\u2013\u2014-]? ?",
     "Russian, Ukrainian, Polish"),
    ("cjk", 1, r"(?:答案|正解|答え|解答|回答|정답|답)(?:应该|應該|应|是|为|為|选|選|は|은|는|:|： )* ?(?:选项|選項)? ?",
     "'the answer is' in Chinese, Japanese, Korean"),
    ("cjk", 1, r"(?<![不没別别])[选選](?:择|擇|项|項)? ?(?=\W?[A-Z])",
     "'choose' in Chinese"),
    ("therefore", 2,
     rf"\b{_SO},? (?:we (?:have|get) )?(?:(?:the |most |probably |likely |clearly |simply |final |correct )"
     r"{0,2}(?:option|choice|answer|letter)s?(?: is)? )?",
     "'so B', 'hence option B', 'leaves A'"),
    ("is_letter", 2,
     r"\b(?:is|are|was|be|gets?|gives?|yields?|obtain) (?:option |choice |answer )?"
     r"(?=\(?[A-Z]\)|(?:option|choice|answer) [A-Z]\b)|\banswer (?=[A-Z]\W?$)|"
     r"\b(?:statement|option|choice|answer|one|claim)s? (?:that|which) [^.,;:\n]{1,60}? (?:is|"
     r"are) (?=[A-Z]\b)",
     "'the most likely cause is (C)'"),
)
_CASED = ("placeholder", "hashes")
_CUES = tuple((name, tier, re.compile(pattern, 0 if name in _CASED else re.I))
              for name, tier, pattern, _ in CUES)

# a letter, then what makes it the answer: "B fits", "(C) is the best choice", "D: correct"
VERDICT = (
    r"(?<![\w'.-])(?<![<>=+*/^] )(?:[Oo]ption |[Cc]hoice |[Aa]nswer |选项|選項)?[(\"']?([A-Z])(?=[)\"']?(?:"
    r":? (?:(?:(?! [A-Z][ )])[^.,;:()\n]){1,120} )?(?:fits?|holds|works|wins|"
    r"(?:is|remains|must be|would be|stands out as|(?:seems|appears) to be) (?:\w+ ){0,3}?(?:correct|right|"
    r"best|only|"
    r"answer|choice|"
    r"pick|accurate|appropriate|closest|one|true(?=[.!]|$)))\b|"
    r"[.:] (?:[Cc]orrect|[Rr]ight|[Tt]rue)\b|"
    r"[^.:()\n]{1,100}: [Tt]his is (?:the )?(?:correct|right|best)\b|"
    r" (?:best\b|it is\b|as (?:the|my) (?:final )?(?:answer|choice)\b|"
    r"(?:as )?the (?:correct|best|right|only) (?:choice|option|answer)\b)|"
    r" ?(?:是|才是|项)?(?:正确|正確|对的|對的|正しい|が正しい|が正解)))")
_VERDICT = re.compile(VERDICT)

# ---------------------------------------------------------------- the letter itself, and how it stands

_LETTER = re.compile(
    r"(?:[(\[{\"'<]{0,2}(?:option|choice|number|letter|answer|alternative|opción|opcion|opção|choix|选项|"
    r"選項) ?:? ?)"
    r"{0,2}((?:[(\[{\"'<] ?){0,3})([A-Za-z])(?![A-Za-z0-9_\u00c0-\u024f\u0400-\u04ff])", re.I)
_LABEL_VERB = re.compile(
    r" (?:is|was|must|would|should|remains|seems|appears|fits|holds|works|wins|as)\b| ?[\u3040-\u9fff]")
_LABELS_RUN = re.compile(r"[(\[\"']?[A-Z]{2,4}\b")
_NOT_ALONE = re.compile(r"['\u2019]\w|-\w| ?(?:[=>^*\\+|]|<(?!/))| ?/ ?\w{2}|[(\[°_]|\.[A-Za-z]\.")
_WORD_AFTER = re.compile(r",? ([A-Za-z\u00c0-\u024f]+)")
_FUNCTION_WORDS = frozenset(
    "because since as is was for given due by which not rather instead over only and or but with from than "
    "that in on if would has fits holds works remains where when denn weil car porque parce puisque pues "
    "pending".split())
_SECOND = re.compile(
    r"[)\]}\"']{0,2}(?: ?(?:,|/|&|\+|or|and|und|oder|et|ou|y|o|和|或|、|と|及) ?){1,2}(?:option |choice )?"
    r"[(\"']?([A-Z])(?![\w'])[)\"']?"
    r"(?! (?:is|was|would|has|does|cannot|can|fails|will|have|had|do|am|think|believe)\b)")
_ASKED = re.compile(r"[)\]}\"'.]{0,2} ?[?\uff1f]")
_DENIED = re.compile(
    r"[)\]]?:? ?(?:(?:is|was|are|would be|can be|seems) (?:\w+ )?(?:not|wrong|incorrect|false|out|"
    r"eliminated|ruled|"
    r"rejected|excluded|invalid|impossible)|cannot|can't|isn't|fails|doesn't|does not)\b|"
    r" ?(?:不|は違|ではな)|"
    r"(?:[^.;\n]|\.\d){0,60}\bbut (?:this is|that is|it is|it's|that's) (?:not|incorrect|wrong)")
_NEGATED = re.compile(
    r"(?:(?:\bnot|n't|\bnever|\bneither|\bnor|\bno|\bnicht|\bpas)(?: (?:the|an?|be|necessarily))?|不|"
    r"非) ?$", re.I)
_HYPOTHESIS = re.compile(
    r"\b(?:suppose|supposing|imagine|whether(?!.*,)|example (?:line|answer|reply|output)|sample|template|"
    r"reminder|"
    r"(?:must|should) end|in the form|would say|might say|may say|tempt\w{0,4})\b"
    r"(?!.*\b(?:so|thus|hence|therefore|then)\b)", re.I | re.S)
_CONDITION = re.compile(
    r"(?:\b(?:if|assuming|unless)|^ ?(?:were|had))\b(?!.*\b(?:so|thus|hence|therefore|then|I)\b)", re.I)
_REPORT = re.compile(
    r"\b(?:agents?|peers?|others?|solutions?|some|someone|they|he|she|people|users?|students?|colleagues?|"
    r"experts?)\b"
    r"[^,;]{0,60}?(?:\b(?:claim|sa(?:y|id)|argue|state|think|thought|gave|give|chose|choose|pick|select|"
    r"went|go|"
    r"answer|vote|suggest|propose|report|believe|conclude|box|label|identif|favou?r|insist|prefer)\w{0,4}\b|"
    r":)"
    r"(?!.*\b(?:I|my|we|our|so|thus|hence|therefore)\b)", re.I | re.S)
# "Agent 1's answer: (A)": restated, so that it counts only where the reply names no answer of its own
_RESTATED = re.compile(
    r"\W{0,4}(?:the )?(?:agent|peer|expert|student|colleague|solution)s?"
    r"(?: #?(?:\d{1,2}|[A-Z])(?:['\u2019]s)?|['\u2019]s?) (?:\w+ ){0,2}", re.I)
_REVISED = re.compile(
    r"\b(?:wait|actually|correction|corrected|hmm|no,|however|oops|on reflection|my mistake|made a mistake|"
    r"scratch that|let me re|re-?(?:check|read|consider|examin)|upon closer|instead|turns out|misread|"
    r"mixed up)", re.I)
_ABSTAINED = re.compile(
    r"\b(?:can(?:no|')t|don't know|do not know|none|n/a|not enough|insufficient|unable|not (?:listed|in the|"
    r"among)|"
    r"unsure|refuse)\b", re.I)
_NO_OPTION_GIVEN = re.compile(
    r"(?:none\b|n/a\b|not (?:listed|given|in|among|one of|provided|available|present)\b|unknown\b)", re.I)
_SENTENCE_END = re.compile(r"[.!?;](?=[\s\"')])|[\n。！？；]")
_SOFT_END = re.compile(
    r"(?:option |choice )?[(\"']|[A-Z](?:[.,;:!)\n]|$| (?:because|since|as|for|rather|instead|not|over)\b)")

# ---------------------------------------------------------------- letters without a cue

_SET_APART_LAST = re.compile(r"(?:^|(?<=[.!?;)\]\"'] )|(?<=\n))(?:[(\[] ?)?([A-Z])(?: ?[)\]])?[.!]?$")
_LETTER_LINE = re.compile(r"^[(\[*\"']{0,3}([A-Z])[)\]*\"'.]{0,3}$", re.M)
_LAST_LINE = re.compile(r"\n\(([A-Z])\) [^\n]{1,300}$")
_LEADING = re.compile(
    r"\W{0,4}(?:option |choice )?([A-Za-z])"
    r"(?:[).:]\)?(?=\s|$)| ?\n| [-\u2013\u2014] | (?:because|since)\b|$)", re.I)
_MARKER = re.compile(r"(?:^|(?<=[\s,;.:(]))\(?([A-Z])[).:] ?(?=\S)")
_LAST_MENTION = re.compile(
    r"(?:,|(?:definitely|probably|likely|clearly|surely|certainly|obviously)) \(?([A-Z])\)?[.!]?$", re.I)
_AFTER_COLON = re.compile(r"[^\W\d]: \(?([A-Z])\)?(?=[.;\n]|$)")
_BRACKETED = re.compile(r"(?:^|(?<=[\s\"']))\((?:[Oo]ption )?([A-Z])\)")
_NUMBERED = re.compile(r"(?:^|\n)\W{0,2}\d{1,2}[.)] (?:[Tt]he )?(?:answer )?$")

_LAST_PLACES = 100  # of one cue: a looping reply names its answer thousands of times
_SEVERAL, _NO_OPTION = "", "-"


def _read(text, at, known):
    """The letter given at position `at`: upper case, `_SEVERAL` for two of them, None if there is none."""
    match = _LETTER.match(text, at)
    if not match:
        run = _LABELS_RUN.match(text, at)
        letters = run[0].strip("([\"'") if run else ""
        return _SEVERAL if letters and set(letters) <= known and len(set(letters)) == len(letters) else None
    opened, letter, end = match[1], match[2], match.end()
    after = text[end:end + 1]
    word = _WORD_AFTER.match(text, end)
    follows = word[1].lower() if word else ""
    apart = bool(opened) or after in ("", "\n", ")", ".", ":")
    if letter.islower():
        if letter.upper() not in known or not (apart or after in ",;" or text.startswith(" (", end)
                                               or letter not in "ai" and follows in _FUNCTION_WORDS):
            return None
    elif letter in "AI" and not apart and word and word[0][0] == " " and not word[1][0].isupper():
        # the article and the pronoun are followed by a noun or verb, the label by a function word
        if follows not in _FUNCTION_WORDS or letter == "I" and follows in ("would", "was", "as", "has", "on"):
            return None
    if text[at - 1:at] == "\n" and _heads_list(text, letter, end, lines=20):
        return None
    if opened and letter.islower() and f"({chr(ord(letter) + 1)})" in text:
        return None  # "(a) 5, (b) 7": the parts of the item
    if _NOT_ALONE.match(text, end) or _ASKED.match(text, end) or _DENIED.match(text, end):
        return None
    if letter == "X" and "X" not in known:
        return None  # the prompt's own placeholder
    letters, second = [letter.upper()], _SECOND.match(text, end)
    while second and len(letters) < 4:
        letters.append(second[1])
        second = _SECOND.match(text, second.end(1))
    if len(letters) > 2:
        return None  # a list of the labels, as in "Final Answer: A/B/C/D"
    return _SEVERAL if len(set(letters)) == 2 else letters[0]


def _heads_list(text, letter, end, lines=1):
    """Whether the letter before `end` heads the first of several listed options."""
    following = re.compile(rf"[\s,;.]\W{{0,3}}{chr(ord(letter) + 1)}[).:]").search(text, end, end + 500)
    return bool(following) and text.count("\n", end, following.start() + 1) <= lines


def _listed_before(text, letter):
    """Whether the option before `letter` heads a line: then the letter heads the next one, cut off."""
    return bool(re.compile(rf"(?:^|\n)\(?{chr(ord(letter) - 1)}[).:] ").search(text))


def _standing(text, at):
    """How a commitment stands in its sentence: 0 as said, 1 under a condition or restated, None not
    the writer's."""
    sentence = text[max(0, at - 250):at]
    ends = [end.end() for end in _SENTENCE_END.finditer(sentence)]
    before = sentence[ends[-1]:] if ends else sentence
    if _NEGATED.search(before) or _HYPOTHESIS.search(before) or _REPORT.search(before):
        return None
    if before.strip() and before[-1] in "'\"":
        return None
    return 1 if _CONDITION.search(before) or _RESTATED.fullmatch(before) else 0


def _denied(text, begin, end):
    """Whether the letter between `begin` and `end` is negated before or rejected after."""
    before = text[max(0, begin - 30):begin].rstrip("(")
    return bool(_NEGATED.search(before) or _DENIED.match(text, end))


def _options(text):
    """Options restated in the reply, as letter -> text, and where the list ends."""
    found, expected = [], "A"
    for marker in _MARKER.finditer(text):
        if marker[1] == expected and (not found or marker.start() - found[-1].end() < 200):
            found.append(marker)
            expected = chr(ord(expected) + 1)
    if len(found) < 2:
        return {}, 0
    edges = [marker.start() for marker in found[1:]]
    stop = re.compile(r"\n|[.;] |$").search(text, found[-1].end())
    edges.append(stop.start())
    named = {m[1]: text[m.end():edge].strip(" \n,;.()") for m, edge in zip(found, edges, strict=True)}
    return named, stop.end()


def _commitments(text, known):
    """(position, tier, letter, rule) of each commitment; tier 1 firm, 2 soft, 3 conditional."""
    found = []
    for name, tier, cue in _CUES:
        if name == "placeholder" and "X" in known:
            continue
        for match in deque(cue.finditer(text), maxlen=_LAST_PLACES):
            letter = _read(text, match.end(), known)
            if letter is None and name == "answer" and _NO_OPTION_GIVEN.match(text, match.end()):
                letter = _NO_OPTION
            bare = name == "therefore" and "option" not in match[0] and not _SOFT_END.match(text, match.end())
            if letter is None or bare:  # "so A is the area": a symbol
                continue
            standing = 0 if name in ("tag", "json", "boxed", "hashes") else _standing(text, match.start())
            if standing is not None:
                found.append((match.start(), 3 if standing else tier, letter, name))
    for match in deque(_VERDICT.finditer(text), maxlen=_LAST_PLACES):
        standing = _standing(text, match.start())
        # "A careful reader ... works": the article, not the option
        article = match[0][0] in "AI" and len(match[0]) == 1 and not _LABEL_VERB.match(text, match.end())
        placeholder = match[1] == "X" and "X" not in known
        if standing is not None and not article and not placeholder and not _DENIED.match(text, match.end(1)):
            found.append((match.start(1), 3 if standing else 2, match[1], "verdict"))
    last = _SET_APART_LAST.search(text)
    if last and last[1] in known and not _listed_before(text, last[1]):
        found.append((last.start(1), 1, last[1], "last_letter"))
    leading = _LEADING.match(text)
    # a lower-case letter that begins a long reply, "(a) First ...", heads one of its parts
    if leading and leading[1].upper() in known and (leading[1].isupper() or len(text) < 120):
        letter = leading[1].upper()
        numeral = letter == "I" and "II" in text
        if "\n" in leading[0] or not (numeral or _heads_list(text, letter, leading.end())):
            found.append((0, 1, letter, "leading"))
    numbered = [f for f in found if _NUMBERED.search(text, max(0, f[0] - 20), f[0])]
    if len({f[2] for f in numbered}) > 1:  # answers to a list of questions, not to this one
        found = [f for f in found if f not in numbered]
    return sorted(found)


def _code(text, known):
    """(letter or None, rule) of one reply."""
    if not text.strip():
        return None, "empty"
    text = own_voice(text)
    if text is None:
        return None, "unfinished_reasoning"
    text = plain(text)
    following = next_turn(text)
    if following:
        letter, rule = _conclude(text[:following].strip(), known)
        if letter:
            return letter, rule
    return _conclude(text, known)


def _conclude(text, known):
    found = _commitments(text, known)
    firm = [f for f in found if f[1] == 1]
    soft = [f for f in found if f[1] == 2]
    chosen = None
    if firm:
        chosen = firm[-1]
        later = soft[-1] if soft and soft[-1][0] > chosen[0] else None
        if later and (chosen[2] not in known  # "not listed, but the closest is (C)"
                      or chosen[3] == "leading" and later[0] > len(text) - 200
                      or _REVISED.search(text, chosen[0], later[0])):
            chosen = later
    elif found:
        chosen = (soft or found)[-1]
    if chosen:
        letter, rule = chosen[2:]
        verdicts = {f[2] for f in found if f[3] == "verdict"}
        if rule == "verdict" and len(verdicts) > 1 and not _REVISED.search(text):
            letter = _SEVERAL
    else:
        letter, rule = _weak(text, known)
    if letter is None or letter == _NO_OPTION:
        return None, "abstained" if _ABSTAINED.search(text) else "none"
    if letter == _SEVERAL:
        return None, "several"
    return (letter, rule) if letter in known else (None, "outside_labels")


def _weak(text, known):
    """What a reply without any commitment still tells: (letter or None, rule)."""
    lines = [m[1] for m in _LETTER_LINE.finditer(text) if m[1] in known and not _listed_before(text, m[1])]
    if lines:
        return lines[-1], "letter_line"
    last = _LAST_LINE.search(text)
    if last and last[1] in known and not _listed_before(text, last[1]):
        return last[1], "last_line"
    colon = [m[1] for m in _AFTER_COLON.finditer(text) if m[1] in known]
    if colon and not _options(text)[0]:
        return colon[-1], "after_colon"
    if not re.search(r"[.!?)\"']$", text):
        return None, "none"  # cut off before it came to an answer
    options, end = _options(text)
    if options and all(len(v) > 1 for v in options.values()):
        rest = text[end:]
        tail = rest[-400:].lower()
        named = {k: v.lower() for k, v in options.items() if v and v.lower() in tail}
        named = {k: v for k, v in named.items() if not any(v != w and v in w for w in named.values())}
        return (next(iter(named)), "option_text") if len(named) == 1 else (None, "none")
    if _ABSTAINED.search(text[-300:]) and not re.search(r"\([A-Z]\)\.?$", text):
        return None, "abstained"
    bracketed = {m[1] for m in _BRACKETED.finditer(text)
                 if not _denied(text, m.start(), m.end(1))} & known
    if len(bracketed) == 1:
        return bracketed.pop(), "only_bracketed"
    last = _LAST_MENTION.search(text)
    if last and last[1] in known and not _denied(text, last.start(1), last.end(1)):
        others = {m[1] for m in re.finditer(r"\b([B-HJ-Z])\b", text)} - {last[1]}
        if not others:
            return last[1], "only_letter"
    return None, "none"


# ---------------------------------------------------------------- many replies

# A last sentence that is nothing but the declaration; five characters before it, so that it is no list item.
_PLAIN_ENDING = (r"(?:^\s*|[^\n]{5}[.!?]\s+|[^\n]{5}[.!?]?\s*\n\s*)(?:(?:So|Thus|Therefore|Hence),? )?"
                 r"(?:[Tt]he (?:correct |final |best |right )?answer is:? |"
                 r"(?:Final )?Answer: ?)\(?(?P<letter>[A-Z])\)?\.?\s*$")


def _settle_plain(array, masks):
    """Letter codes of the replies that end in one plain declaration, else -1; by Arrow kernels only."""
    tail = pc.utf8_slice_codeunits(array, start=-120)
    letter = pc.struct_field(pc.extract_regex(tail, _PLAIN_ENDING), "letter")
    plain = pc.and_(pc.is_valid(letter), pc.invert(pc.match_substring_regex(array, NOT_PLAIN)))
    code = pc.index_in(letter, pa.array([chr(65 + k) for k in range(26)], letter.type))
    code = pc.fill_null(pc.if_else(plain, code, -1), -1).to_numpy(zero_copy_only=False).astype(np.int8)
    valid = (code >= 0) & ((masks >> np.maximum(code, 0)) & 1 == 1)
    return np.where(valid, code, -1).astype(np.int8)


def letters(array, masks):
    """Code many replies.

    Parameters
    ----------
    array : pyarrow.LargeStringArray
        One reply each, null where missing.
    masks : ndarray of int64
        The valid letters of each, as bits (A is the lowest).

    Returns
    -------
    codes : ndarray of int8
        0 for A and so on, -1 where there is no answer.
    rules : pyarrow.LargeStringArray
        The rule that decided each.

    Examples
    --------
    >>> texts = pa.array(["The answer is (B).", "B or C?"], pa.large_string())
    >>> codes, rules = letters(texts, np.array([15, 15]))
    >>> codes.tolist(), rules.to_pylist()
    ([1, -1], ['answer', 'none'])
    """
    codes = _settle_plain(array, masks)
    rules = np.full(len(codes), "answer", dtype=object)
    known = {mask: frozenset(chr(65 + k) for k in range(26) if mask >> k & 1) for mask in set(masks.tolist())}
    for i in np.flatnonzero(codes < 0):
        letter, rules[i] = _code(array[int(i)].as_py() or "", known[int(masks[i])])
        codes[i] = ord(letter) - 65 if letter else -1
    return codes, pa.array(rules, pa.large_string())
