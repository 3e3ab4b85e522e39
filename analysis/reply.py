"""A reply reduced to what it says in its own voice: no reasoning, no look-alike letters, no markup.

Models wrap their answer in reasoning blocks, channels, markdown and LaTeX, write letters of other
alphabets, and go on to questions nobody asked. The coder reads what is left when these are taken away.
"""

import re
import unicodedata
from functools import cache

_COMPATIBILITY = ((0xA0, 0xBF), (0x2000, 0x2BFF), (0x3000, 0x33FF), (0xFB00, 0xFFF0), (0x1D400, 0x1D800),
                  (0x1F100, 0x1F1A0))
_LOOKALIKE = dict(zip("АВСЕНІЈАΑΒΕΗΙ", "ABCEHIJAABEHI", strict=True))
_LOOKALIKE_ALONE = re.compile(rf"(?<!\w)[{''.join(_LOOKALIKE)}](?=[\s.,;:)\]]*$|[.,;:)\]])", re.M)


@cache
def _plain_forms():
    """Translation of full-width, circled, mathematical and raised forms, quotes, dashes and zero-widths."""
    table = {}
    for low, high in _COMPATIBILITY:
        for point in range(low, high):
            form = unicodedata.normalize("NFKC", chr(point)).replace("\u2044", "/")
            if form != chr(point) and form.isascii():
                raised = "SUPERSCRIPT" in unicodedata.name(chr(point), "")
                table[point] = "^" + form if raised else " " + form if "/" in form else form
    for first in (0x1F150, 0x1F170):  # white letters on black have no compatibility form
        table |= {first + k: chr(65 + k) for k in range(26)}
    table |= {ord(c): '"' for c in "“”„«»「」『』"} | {ord(c): "'" for c in "‘’‚"}
    table |= {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f"}
    table |= {0x2212: "-", 0x2010: "-", 0x2011: "-", 0x3010: "(", 0x3011: ")", 0x25C1: "<", 0x25B7: ">"}
    table |= {0x85: "\n", 0x2028: "\n", 0x2029: "\n"}
    return table


_TAGS = "think|thinking|thought|reasoning|scratchpad|analysis|reflection"
_OPENING = re.compile(rf"<(?:{_TAGS})>|\[THINK\]", re.I)
_CLOSING = re.compile(rf"</(?:{_TAGS})>|\[/THINK\]", re.I)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,40}<\|message\|>")
_TOKEN = re.compile(r"<\|[a-z_]{1,20}\|>")
_NEXT_TURN = re.compile(
    r"\n ?(?:#+ ?)?\W{0,3}(?:(?:next |new )?(?:question|problem|exercise|frage|pregunta|"
    r"问题)(?: ?\d{1,3})? ?[:.)]|Q ?\d{0,3} ?[:.)]|"
    r"(?:user|human|assistant|system|instruction|input) ?:|\[INST\]|=+ ?response|answer ?: ?the answer is|"
    r"for the other questions|the question asks)", re.I)


def own_voice(text):
    """The reply without its reasoning, or None if it never got beyond the reasoning.

    Parameters
    ----------
    text : str
        A reply as the model wrote it.

    Returns
    -------
    str or None
        What follows the reasoning block or channel, look-alike characters replaced by plain ones.

    Examples
    --------
    >>> own_voice("<think>A? No.</think> The answer is Ｂ")
    ' The answer is B'
    >>> own_voice("<think>Perhaps A, as") is None
    True
    """
    if not text.isascii():
        text = text.translate(_plain_forms())
        text = _LOOKALIKE_ALONE.sub(lambda m: _LOOKALIKE[m[0]], text)
    channels = list(_CHANNEL.finditer(text))
    if channels:
        if channels[-1][1].lower() != "final":
            return None
        text = text[channels[-1].end():]
    elif text.startswith("analysis") and "assistantfinal" in text:
        text = text[text.rindex("assistantfinal") + len("assistantfinal"):]
    closed = max((match.end() for match in _CLOSING.finditer(text)), default=0)
    opening = _OPENING.search(text, closed)
    if opening:
        # What stands before an unfinished block may be a finished reply; what stands inside it is not one.
        text = text[:opening.start()]
    return text[closed:] if text[closed:].strip() or not (closed or opening) else None


_MARKUP = (
    (re.compile(r"~~[^~\n]{0,200}~~"), " "),                                       # struck through: withdrawn
    (re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|bf|rm)\b ?"), ""),
    (re.compile(r"\\[()\[\],;! ]|\$"), " "),
    (re.compile(r"\*\*|__|`+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<!\w)_(?=\w)|(?<=[^\W_])_(?!\w)"), ""),
    (re.compile(r"^ ?(?:#+|>) ?", re.M), ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"(?: ?\n ?)+"), "\n"),
)


def plain(text):
    """The text without LaTeX and markdown dress, white space collapsed."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def next_turn(text):
    """Where the reply goes on to an invented next question or turn (text stripped, so never 0), or None."""
    match = _NEXT_TURN.search(text)
    return match.start() if match else None


# For Arrow's RE2: anything that could make a text's ending something else than the reply's own final answer.
NOT_PLAIN = (r"(?i)<[/|a-z]|~|`|\[(?:think|inst)|assistantfinal|[\x{85}\x{2028}\x{2029}]|"
              r"\n[^\n]{0,8}(?:question|problem|exercise|frage|pregunta|问题|q ?\d{0,3} ?[:.)]|user|human|"
              r"assistant|system|instruction|input|\[|=|answer ?: ?the|for the other|the question asks|next|"
              r"new)")
