"""The letters of the book: which ones the formulas of a chapter use, and what the notation page says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MATH = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\d)", re.DOTALL)
# Words inside a formula are no letters, and the base of the exponential is none either.
WORDS = re.compile(r"\\(?:text|mathrm|operatorname|tag|begin|end)\*?\{[^{}]*\}|(?<![A-Za-z\\])e(?=\^)")
# Words that stand for themselves; a function's name, a sign, or a space is none of the letters.
ACCENTS = {"bar", "hat", "tilde", "mathbf", "mathcal", "mathbb"}
GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa"),
    *("lambda", "mu", "nu", "xi", "pi", "rho", "varrho", "sigma", "tau"),
    *("upsilon", "phi", "varphi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega", "ell"),
}
TOKEN = re.compile(r"\\([A-Za-z]+)|([A-Za-z])|([^{\s])")
ROW = re.compile(r"^\* - (.*)\n  - (.*)\n  - (.*)\n  - (.*)$", re.MULTILINE)
SPAN = re.compile(r"(\d+)(?:–(\d+))?")
# The table that translates from the papers has letters of theirs.
OTHERS = "## Letters that clash"


def letters(formula: str) -> set[str]:
    r"""The letters of a formula, each with its accent: ``\bar r(d)`` has ``bar r`` and ``d``."""
    found: set[str] = set()
    accents: list[str] = []
    for command, latin, other in TOKEN.findall(WORDS.sub(" ", formula)):
        if command in ACCENTS:
            accents.append(command)
            continue
        if command in GREEK or latin:
            found.add(" ".join([*accents, command or latin]))
        if command or latin or other:
            accents = []
    return found


def formulas(chapter: Path) -> Iterator[str]:
    """Every formula of a chapter's text."""
    for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield from (display or inline for display, inline in MATH.findall("".join(cell["source"])))


@dataclass(frozen=True)
class Symbol:
    """A row of the notation page: what is written, what it means, and in which chapters (None: in all)."""

    written: tuple[str, ...]
    meaning: str
    chapters: frozenset[int] | None

    def means_in(self, chapter: int) -> bool:
        return self.chapters is None or chapter in self.chapters

    @property
    def letters(self) -> set[str]:
        return set().union(*map(letters, self.written))


def table(page: str) -> list[Symbol]:
    """The rows of the notation page."""
    found = []
    for written, meaning, _, where in ROW.findall(page.partition(OTHERS)[0]):
        if written == "Symbol":
            continue
        chapters = None
        if where != "all":
            spans = [(int(first), int(last or first)) for first, last in SPAN.findall(where)]
            chapters = frozenset(number for first, last in spans for number in range(first, last + 1))
        found.append(Symbol(tuple(display or inline for display, inline in MATH.findall(written)), meaning, chapters))
    return found
