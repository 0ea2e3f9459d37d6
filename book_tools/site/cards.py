"""A picture for each chapter that is shown where somebody passes on its address: its title, and its first figure.

Whoever shows it fetches it by a whole address, so that there are pictures only where the address of the site is known.
"""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.colab.copies import figures_of
from book_tools.errors import BookError
from book_tools.execution.artefacts import Figure, figures_in
from book_tools.execution.execute import NOTEBOOK
from book_tools.notebooks import read_notebook, title_of
from cfltr_core.files import write_whole

FOLDER = "cards"
# What those who show such pictures ask for.
WIDTH, HEIGHT = 1200, 630
LARGEST = 100_000
# The colours of the book's sign, and how many a picture has: few, for lines and letters on plain ground.
GROUND, MARK, INK = "#0b4f6c", "#f2b134", "#ffffff"
COLOURS = 64
# Letters of a line of the title.
LETTERS = 17


@dataclass(frozen=True)
class Card:
    """A picture below the site, and what it shows in words."""

    place: str
    alt: str


def write_cards(book: Book, site: Path, title: str) -> dict[str, Card]:
    """Write a card for every chapter that shows a figure, below ``site``, and return them by page.

    The card of the first chapter is also that of all pages without one of their own, as the entry with the empty name;
    it bears the ``title`` of the book.
    """
    cards: dict[str, Card] = {}
    for chapter in book.chapters():
        shown = first_figure(book, chapter)
        if shown is None:
            continue
        name = title_of(read_notebook(chapter.source))
        page = chapter.source.relative_to(book.root).with_suffix(".html").as_posix()
        cards[page] = _write(site, chapter.name, re.sub(r"^\d+\.\s+", "", name), title, shown)
        cards.setdefault("", _write(site, "book", title.partition(",")[0], title, shown))
    return cards


def first_figure(book: Book, chapter: Chapter) -> Figure | None:
    """Return the figure that an executed chapter shows first and that has a picture for a card."""
    folder = book.folder_of(chapter)
    figures = {figure.id: figure for figure in figures_in(folder) if figure.card.is_file()}
    cells = read_notebook(folder / NOTEBOOK).cells
    return next((figures[name] for cell in cells for name in figures_of(cell) if name in figures), None)


def _write(site: Path, name: str, title: str, below: str, shown: Figure) -> Card:
    content = picture(title, below, shown.card)
    if len(content) > LARGEST:
        raise BookError(f"card of {name}: {len(content) / 1e3:.0f} kB; at most {LARGEST / 1e3:.0f} are wanted")
    place = f"{FOLDER}/{name}.png"
    (site / FOLDER).mkdir(exist_ok=True)
    write_whole(site / place, content)
    return Card(place, f"{title}. {shown.alt}")


def picture(title: str, below: str, image: Path) -> bytes:
    """Return a PNG with ``title`` beside an ``image`` and a line ``below`` it: the same bytes for the same three."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from PIL import Image

    canvas = Canvas(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=GROUND)
    agg = FigureCanvasAgg(canvas)
    lines = textwrap.wrap(title, LETTERS, break_long_words=False)
    words = canvas.text(0.045, 0.53, "\n".join(lines), size=44, weight="bold", color=INK, va="center", linespacing=1.25)
    taken = words.get_window_extent(agg.get_renderer())  # type: ignore[no-untyped-call]
    words.set_fontsize(44 * min(1, 0.4 * WIDTH / max(taken.width, 1), 0.5 * HEIGHT / max(taken.height, 1)))
    canvas.text(0.045, 0.075, below, size=21, color=INK, va="center")
    for row, length in enumerate((0.085, 0.06, 0.032)):
        ink = MARK if row == 1 else INK
        y = 0.925 - 0.045 * row
        canvas.add_artist(Line2D([0.05, 0.05 + length], [y, y], color=ink, linewidth=8, solid_capstyle="round"))
    left, bottom, width, height = 0.475, 0.16, 0.49, 0.76
    canvas.add_artist(Rectangle((left, bottom), width, height, color="#ffffff", transform=canvas.transFigure))
    with Image.open(image) as opened:
        pixels = opened.convert("RGB")
    room = (round(width * WIDTH) - 24, round(height * HEIGHT) - 24)
    pixels.thumbnail(room, Image.Resampling.LANCZOS)
    agg.draw()  # type: ignore[no-untyped-call]
    drawn = bytes(agg.buffer_rgba())  # type: ignore[no-untyped-call]
    whole = Image.frombytes("RGBA", (WIDTH, HEIGHT), drawn).convert("RGB")
    x = round((left + width / 2) * WIDTH - pixels.width / 2)
    y = round((1 - bottom - height / 2) * HEIGHT - pixels.height / 2)
    whole.paste(pixels, (x, y))
    buffer = io.BytesIO()
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
