"""The page of the four sources counts how the claims of each came out."""

from __future__ import annotations

from test_scoreboard import SMOKE, measured  # noqa: F401
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.rendering import included
from book_tools.site.front import source_counts
from book_tools.site.pages import write_included
from book_tools.site.scoreboard import SOURCES_PAGE
from cfltr_book.reporting.wording import OWN, SOURCES
from cfltr_core.files import write_whole


def including(book: Book, *codes: str) -> None:
    parts = [f":::{{include}} counts_{code}.md\n:::\n" for code in codes]
    write_whole(book.stage / f"{SOURCES_PAGE}.md", "\n".join(["# Sources\n", *parts]))


def test_each_source_has_its_own_counts(measured: Toy) -> None:  # noqa: F811
    book = Book(measured.root)
    including(book, "a18", "j20", "o20", "n")
    write_included(book, SMOKE)
    texts = {path.stem: path.read_text() for path in (book.stage / "chapters").glob("counts_*.md")}
    assert texts == {
        "counts_a18": "The book checks 2 claims of this source: 1 that can be proved or refuted (**1 true**) "
        "and 1 about data, here `yahoo-like` (**1 seen**).\n",
        "counts_j20": "The book checks 3 claims of this source: 1 that can be proved or refuted (**1 false**) "
        "and 2 about data, here `yahoo-like` (**1 smaller than asked**, **1 not seen**).\n",
        "counts_o20": "The book checks 1 claim of this source: 1 about data, here `yahoo-like` "
        "(**1 opposite seen**).\n",
        "counts_n": "The book checks 0 claims of this source.\n",
    }

    assert source_counts(book, SMOKE, "N") == texts["counts_n"]


def test_a_page_that_includes_nothing_gets_nothing(measured: Toy) -> None:  # noqa: F811
    book = Book(measured.root)
    write_included(book, SMOKE)
    assert not book.stage.exists(), "a book without the page"
    including(book)
    write_included(book, SMOKE)
    including(book, "x99")
    write_included(book, SMOKE)
    assert [path.name for path in (book.stage / "chapters").iterdir()] == ["sources.md"]


def test_the_books_own_page_includes_them_for_each_source() -> None:
    page = REPOSITORY / f"{SOURCES_PAGE}.md"
    assert included(page) == [f"counts_{code.lower()}.md" for code in SOURCES if code != OWN]
    assert page.read_text().count("{include}") == len(included(page))
