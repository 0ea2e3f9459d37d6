"""The half pages of earlier chapters: said on one page, folded into each chapter that builds on them."""

import re

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from book_tools.book import Book
from book_tools.colab.half_pages import BELOW_TITLE, LINK, executed_chapter, half_pages
from book_tools.errors import BookError
from book_tools.execution.execute import NOTEBOOK
from book_tools.notebooks import read_notebook, write_notebook
from tests.helpers.of_name import ROOT

SUMMARIES = "# Half pages\n\n## [One](01_one.ipynb)\n\nFirst.\n\nMore.\n\n## [Two](02_two.ipynb)\n\nSecond.\n"


def a_book(toy, builds_on):
    """A book whose third chapter says what it builds on, as if it had been executed."""
    (toy.root / "chapters" / "half_pages.md").write_text(SUMMARIES, encoding="utf-8")
    toy.chapter("03_three")
    toy.contents("03_three", "half_pages")
    book = Book(toy.root)
    (chapter,) = book.chapters()
    text = f"# 3. Three\n\n*Reading a minute. Builds on {builds_on}.*\n\n- do it.\n\n## 1. Start\n\nText.\n"
    book.folder_of(chapter).mkdir(parents=True)
    write_notebook(book.folder_of(chapter) / NOTEBOOK, new_notebook(cells=[new_markdown_cell(text)]))
    return book, chapter


def test_a_chapter_begins_with_the_half_pages_of_those_it_builds_on(toy):
    book, chapter = a_book(toy, "[One](01_one.ipynb) and, in a part, [Two](02_two.ipynb)")
    source = executed_chapter(book, chapter).cells[0].source
    fold = source.index(":::{dropdown} What you need to know\n**[One](01_one.ipynb).** First.\n\nMore.\n\n**[Two]")
    assert source.index("- do it.") < fold < source.index("\n## 1. Start")
    assert source.endswith("Text.\n")


def test_a_chapter_that_builds_on_none_stays_as_it_is(toy):
    book, chapter = a_book(toy, "basic probability")
    assert executed_chapter(book, chapter) == read_notebook(book.folder_of(chapter) / NOTEBOOK)


def test_a_chapter_without_a_half_page_is_named(toy):
    book, chapter = a_book(toy, "[Nine](09_nine.ipynb)")
    with pytest.raises(BookError, match=r"half_pages\.md has no section for 09_nine, on which 03_three builds"):
        executed_chapter(book, chapter)


def test_every_chapter_has_half_a_page():
    book = Book(ROOT)
    halves = half_pages(book)
    assert list(halves) == [chapter.source.stem for chapter in book.chapters()]
    for name, text in halves.items():
        words = len(re.sub(r"\$[^$]*\$", "formula", text).split())
        assert 20 <= words <= 200, f"{name}: {words} words"
    for chapter in book.chapters():
        stated = BELOW_TITLE.search(read_notebook(chapter.source).cells[0].source)
        assert stated, chapter.name
        assert set(LINK.findall(stated[1])) <= set(halves)
