"""Pages say what they are about and how they are cited, and name no address that is not known."""

import re
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from colab_book import SITE
from PIL import Image
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.repository import Origin
from book_tools.site import citations, page_heads

KNOWN = Origin("https://github.com/someone/toy-book", "0123456789abcdef", False)
UNKNOWN = Origin(None, "0123456789abcdef", False)
PAGE = (
    "<html><head><title>2. Weights</title></head><body><h1>2. Weights</h1>"
    r"<p>Let \(x\) be a formula that nobody can read in a list.</p>"
    "<p><strong>In one sentence:</strong> dividing each click by a “probability” makes the estimate right.</p>"
    "</body></html>"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "chapters").mkdir()
    for name in ("chapters/02_weights", "index", "genindex"):
        (tmp_path / f"{name}.html").write_text(PAGE)
    (tmp_path / "index.md").write_text("# Toy\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    return tmp_path


def test_with_an_address_pages_name_it_and_a_map_lists_them(site: Path) -> None:
    page_heads.write_heads(Book(site), site, KNOWN)
    page = BeautifulSoup((site / "chapters" / "02_weights.html").read_text(), "html.parser")
    place = f"{SITE}chapters/02_weights.html"
    for selected, attribute, value in (
        ('link[rel="canonical"]', "href", place),
        ('meta[property="og:url"]', "content", place),
        ('meta[name="description"]', "content", "Dividing each click by a “probability” makes the estimate right."),
    ):
        assert [tag[attribute] for tag in page.select(selected)] == [value]
    places = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    assert places == [place, f"{SITE}index.html"]
    lost = BeautifulSoup((site / "404.html").read_text(), "html.parser")
    assert lost.select(f'a[href="{SITE}index.html"]')
    assert lost.select('script, img, link:not([href="data:,"])') == [], "it loads nothing"


def test_without_an_address_there_is_none(site: Path) -> None:
    page_heads.write_heads(Book(site), site, UNKNOWN)
    assert not (site / "sitemap.xml").exists()
    text = (site / "index.html").read_text() + (site / "404.html").read_text()
    assert not re.search("http|canonical", text)
    assert 'name="description"' in text


def test_a_description_ends_at_a_word() -> None:
    text = page_heads.description("<h1>x</h1><p>" + "word " * 60 + "</p>")
    assert len(text) <= page_heads.LONGEST
    assert text.endswith("word…")
    assert page_heads.description("<h1>x</h1><p>Short.</p>") == ""


def test_a_chapter_has_its_first_figure_as_a_card_where_the_site_has_an_address(executed: Toy, tmp_path: Path) -> None:
    book = Book(executed.root)
    assert page_heads.write_cards(book, tmp_path) == {}, "no figure left a picture for one"
    Image.new("RGB", (676, 468)).save(executed.done("91_alpha") / "figures" / "fig-toy.card.png")
    assert page_heads.write_cards(book, tmp_path) == {"chapters/91_alpha.html": "cards/fig-toy.card.png"}
    assert (tmp_path / "cards" / "fig-toy.card.png").is_file()
    head = page_heads.head_of("<title>x</title>", None, f"{SITE}cards/fig-toy.card.png")
    assert f'<meta property="og:image" content="{SITE}cards/fig-toy.card.png" />' in head


def test_the_book_is_cited_by_one_name() -> None:
    book = citations.bibtex("cfltr", UNKNOWN)
    assert book.startswith("@misc{cfltr,\n")
    assert "url" not in book
    assert "report an error" not in citations.closing("x", "y", book, UNKNOWN)
    assert citations.report_address("x", "y", Origin("https://git.example.org/a/b", None, None)) is None
    config, citation = (yaml.safe_load((REPOSITORY / name).read_text()) for name in ("_config.yml", "CITATION.cff"))
    assert config["title"] == citation["title"] == citations.BOOK
    assert config["copyright"] == str(citations.YEAR)
    assert citation["authors"][0]["name"] in citations.AUTHOR
