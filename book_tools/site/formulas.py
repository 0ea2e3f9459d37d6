"""Find the formulas in the text of a docstring, and say how they are set: variables, subscripts, superscripts.

Docstrings write formulas as a terminal can show them, as in Σ_d w_d λ(rank(d)).  A formula is the longest stretch that
reads as one: operands with operators between them, beginning at a symbol.  Names of code, as n_docs, stay what they
are.  Nothing is reordered or left out, except the signs that say what is raised or lowered: _ ^ and their brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["plain", "variable", "lowered", "raised"]
PLAIN: Final = "plain"
VARIABLE: Final = "variable"
LOWERED: Final = "lowered"
RAISED: Final = "raised"


@dataclass(frozen=True)
class Piece:
    """A part of a formula: text, a variable, or what is lowered or raised, which has parts of its own."""

    kind: Kind
    text: str = ""
    parts: tuple[Piece, ...] = ()


Formula: TypeAlias = tuple[Piece, ...]

SPACE = r"[ \t]*\n?[ \t]*"
GREEK = "Α-ΡΤ-ΩΔα-ωϑϰϱϕϵεĉŵŷ"
MARKS = "\u0300-\u036f"
# A variable: one letter, with what stands on it, and no part of a word.
SYMBOL = re.compile(rf"(?<![\w.’'-])(?:[A-Za-z{GREEK}ℓ∞][{MARKS}]*)(?![A-Za-z0-9À-ɏ{GREEK}]|[-’'][A-Za-z]|\.\w)")
# Where others stand before it: 2αT, Σσ.
CLOSE_SYMBOL = re.compile(rf"[A-Za-z{GREEK}ℓ∞][{MARKS}]*(?![A-Za-z0-9À-ɏ]|[-’'][A-Za-z]|\.\w)")
GREEK_SYMBOL = re.compile(rf"[{GREEK}ℓ∞][{MARKS}]*(?![a-z]{{2}}|-)")
NUMBER = re.compile(r"(?<![\w.-])(?:\d+(?:[.,]\d+)*|\.\d+)%?(?![\w]*[A-Za-z]{2}|-\w)|[½¼¾]")
# A word of the code, which is no formula: n_docs, two_layer.
CODE = re.compile(
    r"[nCp]_[A-Za-z0-9]{3,}|[A-Za-z]\w*_\w*_\w+|[A-Za-z]{2,}_(?:[A-Za-z0-9]{3,}|(?:up|by|of|at|to|in|on|id)\b)"
)
BIG = re.compile(rf"[ΣΠ∇∂√¬−±∫]|(?:log₂|log|exp|max|min|mean|Var|Cov|E)(?=_|[ ]?[{GREEK}Σ‖⟨(]|[ ][a-zA-Z0-9](?!\w))")
# A sign with a space only before it belongs to what follows; a bar without spaces is one of a pair.
BINARY = re.compile(rf"{SPACE}(?:>=|<=|:=|[=·×≤≥<>∈∉≠≈∝~∩∪→/])(?!>|=){SPACE}|[+−]|[ \n]{SPACE}[+−±|][ \n]{SPACE}")
COMPARED = re.compile(rf"{SPACE}(?:>=|<=|[=<>≤≥≠≈∈])")
# What may stand beside another factor although it is a word.
BESIDE = re.compile(r"(?:log₂|log|exp|max|min|sign)[(_ ]|[a-z]{2,}(?:_[A-Za-z]{1,2}(?!\w)|[²³])")
DOTS = re.compile(r"…|\.\.\.")
AFTER = re.compile(rf"(?:[²³⁻⁺¹ᵀ₀-₉₊₋{MARKS}*′!]|'(?!\w)|’(?!\w)|@[A-Za-z](?!\w)|±(?=[\s,.;)]))+")
BRACKETS = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "‖": "‖", "|": "|"}
# What happens, or what is counted, may be said in words: P(click at rank r), E[clicks per session], O(documents).
IN_WORDS = re.compile(r"\((?:[^()\n]|\([^()\n]*\)){1,60}\)|\[[^\[\]\n]{1,60}\]")
# Words of sentences, which are never what an operator joins; and letters that are words.
SENTENCE = re.compile(
    r"a|an|the|of|and|or|is|are|be|been|with|without|for|by|to|in|at|as|over|under|not|no|which|that|this|it|its|if|"
    r"than|then|on|from|where|when|all|each|one|two|so|but|such|has|have|was|were|only|here|there|per|what",
    re.IGNORECASE,
)
ARTICLES = {"a", "A", "I"}
NAMES = re.compile(r"A/B\b")
# Quantities that are called by a word.
QUANTITIES = {"Var", "Cov", "RMS", "DCG"}
# What is found nowhere but in formulas.
SURE = re.compile(rf"[{GREEK}ΣΠ∇∂√¬±∫‖⟨⟩∈∉≤≥≠≈∝·×²³½ᵀℓ∞₀-₉]|[{MARKS}]")


def parts_of(text: str) -> list[str | Formula]:
    """Split ``text`` into what is no formula, as it stands, and formulas."""
    parts: list[str | Formula] = []
    done = place = 0
    while place < len(text):
        end = _Reader(text).expression(place) if _may_begin(text, place) and not _article(text, place) else None
        while end is not None and text[end - 1].isspace():
            end -= 1
        if end is None or not _is_formula(text, place, end):
            whole = NAMES.match(text, place) or CODE.match(text, place)
            place = whole.end() if whole and not text[place - 1 : place].isalnum() else place + 1
            continue
        if done < place:
            parts.append(text[done:place])
        parts.append(pieces_of(text[place:end]))
        done = place = end
    return [*parts, text[done:]] if done < len(text) else parts


def pieces_of(formula: str) -> Formula:
    """Return the parts of a text that is a formula as a whole."""
    return tuple(_pieces(formula))


def text_of(parts: str | Formula) -> str:
    """Return what is read of a part, without what only lowers or raises."""
    if isinstance(parts, str):
        return parts
    return "".join(piece.text or text_of(piece.parts) for piece in parts)


def _may_begin(text: str, place: int) -> bool:
    before = text[place - 1 : place]
    return not text[place].isspace() and not (before.isalnum() or before in ("_", ".", "^", "-"))


def _article(text: str, place: int) -> bool:
    """Tell whether the letter that stands here is a word: *a* function, *A* log, but not A and B."""
    if text[place] not in ARTICLES or re.match(r"[A-Z] (?:and|or) [A-Z](?!\w)", text[place:]):
        return False
    return re.match(r"[A-Za-z](?:[ \n]+[^\s=+−·×≤≥<>∈/≠≈∝~]|\W*\Z)", text[place:]) is not None


def _is_formula(text: str, place: int, end: int) -> bool:
    """Tell whether an expression is one, and not a word or a number of the sentence."""
    found = text[place:end]
    if SURE.search(found):
        return True
    if re.fullmatch(r"[A-Za-z]", found):
        return not _article(text, place)
    if NAMES.fullmatch(found):
        return False
    if re.search(r"(?<!\w)[A-Za-z](?:_\{?\w|\^|\*|\()", found):
        return True
    if re.fullmatch(r"[A-Za-z](?: [A-Za-z])+", found):
        return True
    # An operator between words or numbers of a sentence may be none.
    variable = re.search(r"(?<![A-Za-z_])[A-Za-z](?![A-Za-z_])", found)
    return bool(BINARY.search(found) and (variable or re.search(r"\d/[A-Za-z]|[A-Za-z]/\d", found)))


class _Reader:
    """Reads one expression; every method takes where to begin, and returns where what it read ends, or None."""

    def __init__(self, text: str) -> None:
        self.text = text

    def expression(self, place: int, joined: bool = False) -> int | None:
        end = self.operand(place, joined)
        if end is None:
            return None
        while (more := self._more(end)) is not None:
            end = more
        return end

    def _more(self, place: int) -> int | None:
        operator = BINARY.match(self.text, place)
        if operator and not operator[0].isspace():
            return self.operand(operator.end(), joined=True)
        # Side by side: a product, if what follows can be nothing else.
        space = re.compile(r" ?").match(self.text, place)
        after = space.end() if space else place
        if after < len(self.text) and self.text[after] in "([‖⟨Σ∇Π½|√¬":
            return self.operand(after)
        if self._is_symbol(after):
            return self.operand(after, joined=True)
        if BESIDE.match(self.text, after) and not CODE.match(self.text, after):
            return self.operand(after, joined=True)
        return None

    def _is_symbol(self, place: int) -> bool:
        found = CLOSE_SYMBOL.match(self.text, place) or GREEK_SYMBOL.match(self.text, place)
        if found is None or CODE.match(self.text, place):
            return False
        return found[0] not in ARTICLES or self.text[found.end() : found.end() + 1] in ("_", "^", "(")

    def operand(self, place: int, joined: bool = False) -> int | None:
        big = BIG.match(self.text, place)
        if big:
            after = self._after(big.end(), arguments=False)
            gap = re.compile(r" ?").match(self.text, after)
            inner = self.operand(gap.end() if gap else after, joined=True)
            return inner if inner is not None else None if big[0].isascii() or big[0] in "−±" else after
        end = self._primary(place, joined)
        return None if end is None else self._after(end, self.text[place:end] in ("P", "E", "O"))

    def _primary(self, place: int, joined: bool) -> int | None:
        text = self.text
        if place >= len(text):
            return None
        if text[place] in BRACKETS:
            return self._bracketed(place, joined=text[place] in "‖⟨|")
        code = CODE.match(text, place)
        if code:
            return code.end() if joined else None
        close = CLOSE_SYMBOL if joined or text[place - 1 : place].isspace() or place == 0 else SYMBOL
        for pattern in (NUMBER, close, SYMBOL, GREEK_SYMBOL, DOTS):
            if found := pattern.match(text, place):
                return found.end()
        word = re.compile(r"[A-Za-z][A-Za-z]+").match(text, place)
        if word and not SENTENCE.fullmatch(word[0]):
            called = text[word.end() : word.end() + 1]
            operator = BINARY.match(text, word.end())
            if operator and word[0] not in QUANTITIES and COMPARED.match(text, word.end()):
                operator = None
            if joined or operator or called in ("(", "[", "_", "@"):
                return word.end()
        return None

    def _bracketed(self, place: int, joined: bool) -> int | None:
        """Read a list of expressions in brackets."""
        close = BRACKETS[self.text[place]]
        end: int | None = place + 1
        while end is not None:
            gap = re.compile(SPACE).match(self.text, end)
            end = self.expression(gap.end() if gap else end, joined)
            if end is None:
                return None
            gap = re.compile(SPACE).match(self.text, end)
            end = gap.end() if gap else end
            if self.text.startswith(close, end):
                return end + 1
            comma = re.compile(rf"[,;]{SPACE}").match(self.text, end)
            end = comma.end() if comma else None
        return None

    def _after(self, place: int, in_words: bool = False, arguments: bool = True) -> int:
        """Read what is lowered or raised, and the ``arguments`` of a function, which may be ``in_words``."""
        while place < len(self.text):
            found = AFTER.match(self.text, place) or re.compile(
                r"[_^](?:\{(?:[^{}]|\{[^{}]*\})*\}|−?[A-Za-z0-9α-ω*]+[{M}]*[′’']?|\([^()]*\))".replace("{M}", MARKS)
            ).match(self.text, place)
            if found:
                place = found.end()
            elif arguments and self.text[place] in "([" and (end := self._bracketed(place, joined=True)) is not None:
                place = end
            elif in_words and (said := IN_WORDS.match(self.text, place)):
                place = said.end()
            else:
                break
        return place


SCRIPT = re.compile(r"([_^])(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\(([^()]*)\)|(−?[A-Za-z0-9α-ω]+[′’']?|\*))")
LETTER = re.compile(rf"(?:[{GREEK}ℓ]|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))[{MARKS}]*")

TOKEN = re.compile(rf"(?P<code>{CODE.pattern})|(?P<script>{SCRIPT.pattern})|(?P<letter>{LETTER.pattern})")


def _pieces(formula: str) -> Iterator[Piece]:
    done = 0
    for token in re.finditer(
        rf"(?P<code>{CODE.pattern})|(?P<script>{SCRIPT.pattern})|(?P<letter>{LETTER.pattern})", formula
    ):
        if token.start() > done:
            yield Piece(PLAIN, formula[done : token.start()])
        done = token.end()
        if token["code"]:
            yield Piece(PLAIN, token[0])
        elif token["letter"]:
            yield Piece(VARIABLE, token[0])
        else:
            script = SCRIPT.fullmatch(token[0])
            assert script is not None
            inner = next(group for group in script.groups()[1:] if group is not None)
            # Of several letters in an index each is a variable of its own, as in n_sk; three capitals are a name.
            yield Piece(LOWERED if script[1] == "_" else RAISED, parts=_index(inner))
    if done < len(formula):
        yield Piece(PLAIN, formula[done:])


def _index(text: str) -> Formula:
    if re.fullmatch(r"[a-z]{1,2}|[A-Z][a-z]|[a-z][A-Z]", text):
        return (Piece(VARIABLE, text),)
    return pieces_of(text)
