"""One table of symbols for the whole book: every letter of a formula stands there, each with one meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from symbols import formulas, letters, table

FOLDER = Path(__file__).resolve().parents[2] / "chapters"
CHAPTERS = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
PAGE = (FOLDER / "notation.md").read_text(encoding="utf-8")


def number(chapter: Path) -> int:
    return int(chapter.name[:2])


@pytest.mark.parametrize("chapter", CHAPTERS, ids=number)
def test_every_letter_of_a_chapter_is_in_the_table(chapter: Path) -> None:
    known = set().union(*(symbol.letters for symbol in table(PAGE) if symbol.means_in(number(chapter))))
    unknown: dict[str, str] = {}
    for formula in formulas(chapter):
        for letter in letters(formula) - known:
            unknown.setdefault(letter, formula.strip())
    assert unknown == {}, f"chapters/notation.md says nothing of these for chapter {number(chapter)}"


def test_a_symbol_has_one_meaning() -> None:
    seen: dict[tuple[str, int], str] = {}
    twice = []
    for symbol in table(PAGE):
        for chapter in symbol.chapters or map(number, CHAPTERS):
            for written in symbol.written:
                if (written, chapter) in seen:
                    twice.append(f"{written} in chapter {chapter}: {seen[written, chapter]}; {symbol.meaning}")
                seen[written, chapter] = symbol.meaning
    assert twice == []


def test_the_table_holds_no_letter_that_a_chapter_does_not_use() -> None:
    used = {number(chapter): set().union(*map(letters, formulas(chapter))) for chapter in CHAPTERS}
    for symbol in table(PAGE):
        for chapter in symbol.chapters or ():
            if chapter in used and symbol.letters:
                assert symbol.letters & used[chapter], f"{symbol.written} in chapter {chapter}"
        if symbol.chapters is None:
            assert symbol.letters <= set().union(*used.values()), f"{symbol.written} in no chapter"
