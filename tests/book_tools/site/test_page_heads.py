"""Pages say in their heads what they are about, and name no address that is not known."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup
from colab_book import SITE
from PIL import Image
from test_citations import KNOWN, UNKNOWN
from toy import Toy

from book_tools.book import Book
from book_tools.site import page_heads

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
    (tmp_path / "index.md").write_text("# Toy\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    return tmp_path


def test_with_an_address_pages_name_it_and_a_map_lists_them(tmp_path: Path) -> None:
    page_heads.write_heads(Book(tmp_path), site(tmp_path), KNOWN)
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
    page_heads.write_heads(Book(tmp_path), site(tmp_path), UNKNOWN)
    assert not (tmp_path / "sitemap.xml").exists()
    text = (tmp_path / "index.html").read_text() + (tmp_path / "404.html").read_text()
    assert "http" not in text
    assert "canonical" not in text
    assert 'name="description"' in text


def test_the_page_for_wrong_links_loads_nothing(tmp_path: Path) -> None:
    page_heads.write_heads(Book(tmp_path), site(tmp_path), KNOWN)
    page = BeautifulSoup((tmp_path / "404.html").read_text(), "html.parser")
    assert page.select('script, img, link:not([href="data:,"])') == []
    assert page.select_one("h1") is not None


def test_a_description_ends_at_a_word() -> None:
    text = page_heads.description("<h1>x</h1><p>" + "word " * 60 + "</p>")
    assert len(text) <= page_heads.LONGEST
    assert text.endswith("word…")
    assert page_heads.description("<h1>x</h1><p>Short.</p>") == ""


def test_a_chapter_has_its_first_figure_as_a_card_where_the_site_has_an_address(built: Toy, tmp_path: Path) -> None:
    book = Book(built.root)
    assert page_heads.write_cards(book, tmp_path) == {}, "no figure left a picture for one"
    (chapter,) = book.select(["91"])
    picture = book.folder_of(chapter) / "figures" / "fig-toy.card.png"
    Image.new("RGB", (676, 468), (255, 0, 0)).save(picture)
    try:
        cards = page_heads.write_cards(book, tmp_path)
    finally:
        picture.unlink()
    assert cards == {"chapters/91_alpha.html": "cards/fig-toy.card.png"}
    assert (tmp_path / "cards" / "fig-toy.card.png").is_file()
    head = page_heads.head_of("<title>x</title>", None, f"{SITE}cards/fig-toy.card.png")
    assert f'<meta property="og:image" content="{SITE}cards/fig-toy.card.png" />' in head
    assert "summary_large_image" in head


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
