"""Cards are small, show the title and the first figure of their chapter, and are the same twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from bs4 import BeautifulSoup
from colab_book import SITE
from PIL import Image
from toy import FIGURE, RECORD, Toy

from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.messages import PARSER
from book_tools.site import cards

# As cfltr_core.figure leaves it: a red square.
CARD = """
import os, pathlib
from PIL import Image
folder = pathlib.Path(os.environ["CFLTR_RUN_DIR"]) / "figures"
Image.new("RGB", (676, 468), (255, 0, 0)).save(folder / "fig-toy.card.png")
"""
TITLE = "Counterfactual Learning to Rank, a book you can run"


@pytest.fixture
def red(tmp_path: Path) -> Path:
    Image.new("RGB", (676, 468), (255, 0, 0)).save(tmp_path / "red.png")
    return tmp_path / "red.png"


def pixels(content: bytes, tmp_path: Path) -> np.ndarray:
    (tmp_path / "card.png").write_bytes(content)
    with Image.open(tmp_path / "card.png") as image:
        return np.asarray(image.convert("RGB")).astype(int)


def test_a_card_has_its_size_its_picture_and_its_title(red: Path, tmp_path: Path) -> None:
    content = cards.picture("Inverse propensity scoring", TITLE, red)
    assert content == cards.picture("Inverse propensity scoring", TITLE, red)
    seen = pixels(content, tmp_path)
    assert seen.shape == (cards.HEIGHT, cards.WIDTH, 3)
    is_red = (np.abs(seen - [255, 0, 0]) < 30).all(axis=2)
    rows, columns = np.nonzero(is_red)
    # Whole, in the right half, as wide for its height as it was.
    assert columns.min() > cards.WIDTH * 0.45
    shape = (np.ptp(columns) + 1) / (np.ptp(rows) + 1)
    assert shape == pytest.approx(676 / 468, abs=0.02)
    assert is_red.sum() == (np.ptp(columns) + 1) * (np.ptp(rows) + 1)
    other = pixels(cards.picture("Additive metrics", TITLE, red), tmp_path)
    assert (other[:, : cards.WIDTH // 2] != seen[:, : cards.WIDTH // 2]).any(), "the title is in it"


@pytest.mark.parametrize(
    "title",
    ["Joint", "The convex–concave procedure and SVM PropDCG", "Counterfactual Learning to Rank from clicks " * 3],
)
def test_every_title_fits(red: Path, tmp_path: Path, title: str) -> None:
    seen = pixels(cards.picture(title, TITLE, red), tmp_path)
    light = (seen > 200).all(axis=2)
    panel = round(0.475 * cards.WIDTH)
    assert not light[:, panel - 12 : panel - 1].any(), "letters run into the picture"
    assert not light[[0, 1, -2, -1]].any(), "letters run over the edge"


def test_settings_of_plots_change_no_card(red: Path) -> None:
    plain = cards.picture("A title", TITLE, red)
    with mpl.rc_context({"figure.constrained_layout.use": True, "axes.facecolor": "red", "savefig.dpi": 50}):
        assert cards.picture("A title", TITLE, red) == plain


def test_pages_name_their_cards_by_whole_addresses(toy: Toy, tmp_path: Path) -> None:
    toy.chapter("91_alpha", RECORD, FIGURE + CARD)
    toy.chapter("92_beta", "x = 3")
    toy.contents("91_alpha", "92_beta")
    address = "https://github.com/someone/toy-book"
    result = toy.cli("book", "--scale", "smoke", CFLTR_REPOSITORY=address)
    assert result.returncode == 0, result.stdout
    html = toy.root / "_build" / "html"

    def meta(page: str) -> dict[str, str]:
        content = BeautifulSoup((html / page).read_text(), PARSER)
        return {
            str(tag.get("property") or tag.get("name")): str(tag["content"]) for tag in content.select("meta[content]")
        }

    alpha = meta("chapters/91_alpha.html")
    assert alpha["og:image"] == f"{SITE}cards/91_alpha.png"
    assert alpha["og:image:alt"] == "The chapter 91_alpha. Bar chart with one bar of length 60."
    assert (alpha["og:image:width"], alpha["og:image:height"]) == ("1200", "630")
    assert alpha["twitter:card"] == "summary_large_image"
    # Pages without a figure have the card of the book.
    assert meta("index.html")["og:image"] == meta("chapters/92_beta.html")["og:image"] == f"{SITE}cards/book.png"
    assert sorted(path.name for path in (html / "cards").iterdir()) == ["91_alpha.png", "book.png"]
    assert all(path.stat().st_size <= cards.LARGEST for path in (html / "cards").iterdir())
    before = {path.relative_to(html): path.read_bytes() for path in html.rglob("*") if path.is_file()}
    assert toy.cli("site", CFLTR_REPOSITORY=address).returncode == 0
    assert {path.relative_to(html): path.read_bytes() for path in html.rglob("*") if path.is_file()} == before
    # Without an address nobody could fetch a card, and there is none.
    assert toy.cli("site", CFLTR_REPOSITORY="").returncode == 0
    assert not (html / "cards").exists()
    assert "og:image" not in meta("chapters/91_alpha.html")
    assert meta("chapters/91_alpha.html")["twitter:card"] == "summary"


def test_too_large_a_card_is_named(built: Toy, tmp_path: Path, red: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(built.root / "_build" / "run", tmp_path / "_build" / "run")
    book = Book(built.root)
    (chapter,) = book.select(["91"])
    shown = cards.first_figure(book, chapter)
    assert shown is None, "without a picture there is no card"
    folder = tmp_path / "_build" / "run" / "chapters" / "91_alpha" / "figures"
    shutil.copy(red, folder / "fig-toy.card.png")
    for name in ("chapters", "_toc.yml", "index.md"):
        (tmp_path / name).symlink_to(built.root / name)
    assert set(cards.write_cards(Book(tmp_path), tmp_path, TITLE)) == {"", "chapters/91_alpha.html"}
    monkeypatch.setattr(cards, "LARGEST", 100)
    with pytest.raises(BookError, match=r"card of 91_alpha: .* kB"):
        cards.write_cards(Book(tmp_path), tmp_path, TITLE)
