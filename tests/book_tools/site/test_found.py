"""The book can be found, cited and corrected, and names no address that is not known."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from bs4 import BeautifulSoup
from colab_book import SITE
from toy import REPOSITORY, Toy

from book_tools.colab.repository import Origin, Repository
from book_tools.site import found

KNOWN = Origin(Repository("https://github.com/someone/toy-book"), "0123456789abcdef", False)
UNKNOWN = Origin(None, "0123456789abcdef", False)
PAGE = (
    "<html><head><title>2. Weights</title></head><body><h1>2. Weights</h1>"
    r"<p>Let \(x\) be a formula that nobody can read in a list.</p>"
    "<p><strong>In one sentence:</strong> dividing each click by a “probability” makes the estimate right.</p>"
    "</body></html>"
)


def site(tmp_path: Path) -> Path:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "02_weights.html").write_text(PAGE)
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "genindex.html").write_text(PAGE)
    return tmp_path


def test_with_an_address_pages_name_it_and_a_map_lists_them(tmp_path: Path) -> None:
    found.make_findable(site(tmp_path), KNOWN)
    page = BeautifulSoup((tmp_path / "chapters" / "02_weights.html").read_text(), "html.parser")
    place = f"{SITE}chapters/02_weights.html"
    assert page.select_one('link[rel="canonical"]')["href"] == place  # type: ignore[index]
    assert page.select_one('meta[property="og:url"]')["content"] == place  # type: ignore[index]
    words = "Dividing each click by a “probability” makes the estimate right."
    assert page.select_one('meta[name="description"]')["content"] == words  # type: ignore[index]
    places = re.findall("<loc>(.*?)</loc>", (tmp_path / "sitemap.xml").read_text())
    assert places == [place, f"{SITE}index.html"]
    assert f'href="{SITE}index.html"' in (tmp_path / "404.html").read_text()


def test_without_an_address_there_is_none(tmp_path: Path) -> None:
    found.make_findable(site(tmp_path), UNKNOWN)
    assert not (tmp_path / "sitemap.xml").exists()
    text = (tmp_path / "index.html").read_text() + (tmp_path / "404.html").read_text()
    assert "http" not in text
    assert "canonical" not in text
    assert 'name="description"' in text


def test_the_page_for_wrong_links_loads_nothing(tmp_path: Path) -> None:
    found.make_findable(site(tmp_path), KNOWN)
    page = BeautifulSoup((tmp_path / "404.html").read_text(), "html.parser")
    assert page.select('script, img, link:not([href="data:,"])') == []
    assert page.select_one("h1") is not None


def test_a_description_ends_at_a_word() -> None:
    text = found.description("<h1>x</h1><p>" + "word " * 60 + "</p>")
    assert len(text) <= found.LONGEST
    assert text.endswith("word…")
    assert found.description("<h1>x</h1><p>Short.</p>") == ""


def test_a_chapter_and_the_book_are_cited() -> None:
    chapter = found.bibtex("cfltr-02", KNOWN, "chapters/02_weights.html", "Weights", "2")
    assert chapter.startswith("@incollection{cfltr-02,\n")
    for words in (f"{{{SITE}chapters/02_weights.html}}", "{Chapter 2, revision 0123456789ab}", f"{{{found.BOOK}}}"):
        assert words in chapter
    book = found.bibtex("cfltr", UNKNOWN)
    assert book.startswith("@misc{cfltr,\n")
    assert "url" not in book
    assert chapter.count("{") == chapter.count("}")


def test_an_error_is_reported_with_page_and_revision() -> None:
    address = found.report_address("chapters/02_weights", "Weights", KNOWN)
    assert address is not None
    parts = urlsplit(address)
    assert parts.path == "/someone/toy-book/issues/new"
    body = parse_qs(parts.query)["body"][0]
    assert "Page: chapters/02_weights" in body
    assert "Revision: 0123456789abcdef" in body
    assert found.report_address("x", "y", UNKNOWN) is None
    assert found.report_address("x", "y", Origin(Repository("https://git.example.org/a/b"), None, None)) is None
    assert "report an error" not in found.closing("x", "y", found.bibtex("cfltr", UNKNOWN), UNKNOWN)


def test_the_citation_is_that_of_the_book() -> None:
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert config["title"] == citation["title"] == found.BOOK
    assert config["copyright"] == str(found.YEAR)
    assert citation["authors"][0]["name"] in found.AUTHOR


def test_the_built_pages(built: Toy) -> None:
    root = built.root / "_build" / "html"
    page = BeautifulSoup((root / "chapters" / "91_alpha.html").read_text(), "html.parser")
    assert page.select_one('link[rel="canonical"]')["href"] == f"{SITE}chapters/91_alpha.html"  # type: ignore[index]
    fold = page.select("article details")[-1]
    assert "Cite this chapter, or report an error" in fold.get_text()
    assert "@incollection{cfltr-91," in fold.get_text()
    assert fold.select_one('a[href*="issues/new"]') is not None
    downloads = [str(link["href"]) for link in page.select("a[href$='.ipynb']") if "http" not in str(link["href"])]
    assert downloads == ["../colab/91_alpha.ipynb", "../read/91_alpha.ipynb"], "one to run, one to read"
    assert not (root / "_sources").exists()
