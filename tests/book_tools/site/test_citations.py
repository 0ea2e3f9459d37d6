"""The book is cited and corrected at an address only where that is known."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import yaml
from colab_book import SITE
from toy import REPOSITORY

from book_tools.colab.repository import Origin
from book_tools.site import citations

KNOWN = Origin("https://github.com/someone/toy-book", "0123456789abcdef", False)
UNKNOWN = Origin(None, "0123456789abcdef", False)


def test_a_chapter_and_the_book_are_cited() -> None:
    chapter = citations.bibtex("cfltr-02", KNOWN, "chapters/02_weights.html", "Weights", "2")
    assert chapter.startswith("@incollection{cfltr-02,\n")
    for words in (f"{{{SITE}chapters/02_weights.html}}", "{Chapter 2, revision 0123456789ab}", f"{{{citations.BOOK}}}"):
        assert words in chapter
    book = citations.bibtex("cfltr", UNKNOWN)
    assert book.startswith("@misc{cfltr,\n")
    assert "url" not in book
    assert chapter.count("{") == chapter.count("}")


def test_an_error_is_reported_with_page_and_revision() -> None:
    address = citations.report_address("chapters/02_weights", "Weights", KNOWN)
    assert address is not None
    parts = urlsplit(address)
    assert parts.path == "/someone/toy-book/issues/new"
    body = parse_qs(parts.query)["body"][0]
    assert "Page: chapters/02_weights" in body
    assert "Revision: 0123456789abcdef" in body
    assert citations.report_address("x", "y", UNKNOWN) is None
    assert citations.report_address("x", "y", Origin("https://git.example.org/a/b", None, None)) is None
    assert "report an error" not in citations.closing("x", "y", citations.bibtex("cfltr", UNKNOWN), UNKNOWN)


def test_the_citation_is_that_of_the_book() -> None:
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert config["title"] == citation["title"] == citations.BOOK
    assert config["copyright"] == str(citations.YEAR)
    assert citation["authors"][0]["name"] in citations.AUTHOR
