"""Figures with a knob: their frames lie beside the pages, and each page knows what its own show.

The page itself holds the still and the words of the frames.  ``_static/sliders.js`` makes a slider of them, and fetches
the pictures once a reader touches it; where scripts do not run, and in every other edition, there is the still alone.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.artefacts import Figure, Slider, figures_in
from book_tools.site.previews import element_at

FOLDER = "frames"


def write_sliders(book: Book, html: Path, chapters: list[Chapter]) -> None:
    """Put the frames of every figure of the ``chapters`` that has a knob below ``html``, and their words behind it."""
    problems: list[str] = []
    for chapter in chapters:
        figures = [figure for figure in figures_in(book.folder_of(chapter)) if figure.slider]
        if figures:
            problems += _dress_page(html, chapter, chapter.source.relative_to(book.root), figures)
    if problems:
        raise BookError(*problems)


def frames_script(figure_id: str, slider: Slider, names: list[str | None]) -> str:
    """Return what the script of the site reads: the words of each frame, and where its picture lies, or None."""
    told = {
        "id": figure_id,
        "knob": slider.knob,
        "start": slider.start,
        "frames": [
            {"text": frame.text, "fact": frame.fact, "alt": frame.alt, "source": name}
            for frame, name in zip(slider.frames, names, strict=True)
        ],
    }
    # Inside a script a "</" might end it.
    content = json.dumps(told, sort_keys=True, ensure_ascii=False).replace("</", "<\\/")
    return f'<script type="application/json" class="frames">{content}</script>\n'


def _dress_page(html: Path, chapter: Chapter, source: Path, figures: list[Figure]) -> list[str]:
    path = (html / source).with_suffix(".html")
    page = path.read_text(encoding="utf-8")
    target = html / FOLDER
    target.mkdir(exist_ok=True)
    place = posixpath.relpath(FOLDER, source.parent.as_posix())
    problems = []
    for figure in figures:
        opening = re.search(rf'<figure\b[^>]*\bid="{re.escape(figure.id)}"[^>]*>', page)
        if opening is None or figure.slider is None:
            problems.append(f"{chapter.source.name}: {figure.id} has a slider, but stands on the page as no figure")
            continue
        names: list[str | None] = []
        for index, frame in enumerate(figure.slider.frames):
            # The still is on the page already.
            names.append(None if index == figure.slider.start else f"{place}/{frame.image.name}")
            if index != figure.slider.start:
                shutil.copy2(frame.image, target)
        # Behind the figure, which may hold no script of its own.
        end = opening.start() + len(element_at(page, opening.start()))
        page = page[:end] + "\n" + frames_script(figure.id, figure.slider, names) + page[end:]
    path.write_text(page, encoding="utf-8")
    return problems
