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
from typing import Any

from book_tools.book import Book, Chapter
from book_tools.errors import BookError, Problems
from book_tools.execution.artefacts import Figure, figures_in

FOLDER = "frames"


def write_sliders(book: Book, html: Path, chapters: list[Chapter]) -> None:
    """Put the frames of every figure of the ``chapters`` that has a knob below ``html``, and their words behind it."""
    problems = Problems()
    for chapter in chapters:
        for figure in figures_in(book.folder_of(chapter)):
            if figure.slider:
                with problems.collected(f"{chapter.source.name}: "):
                    _write_slider(html, html / f"{book.page_of(chapter)}.html", figure, figure.slider)
    problems.raise_any()


def _write_slider(html: Path, path: Path, figure: Figure, slider: dict[str, Any]) -> None:
    page = path.read_text(encoding="utf-8")
    shown = re.search(rf'<figure\b[^>]*\bid="{re.escape(figure.id)}".*?</figure>', page, re.DOTALL)
    if shown is None:
        raise BookError(f"{figure.id} has a slider, but stands on the page as no figure")
    target = html / FOLDER
    target.mkdir(exist_ok=True)
    frames = [{name: frame[name] for name in ("text", "fact", "alt")} for frame in slider["frames"]]
    for index, (frame, kept) in enumerate(zip(frames, slider["frames"], strict=True)):
        # The still is on the page already.
        frame["source"] = None
        if index != slider["start"]:
            shutil.copy2(figure.image.with_name(kept["image"]), target)
            frame["source"] = posixpath.relpath((target / kept["image"]).as_posix(), path.parent.as_posix())
    about = {"id": figure.id, "knob": slider["knob"], "start": slider["start"], "frames": frames}
    # Inside a script a "</" might end it.
    content = json.dumps(about, sort_keys=True, ensure_ascii=False).replace("</", "<\\/")
    # Behind the figure, which may hold no script of its own.
    script = f'\n<script type="application/json" class="frames">{content}</script>\n'
    path.write_text(page[: shown.end()] + script + page[shown.end() :], encoding="utf-8")
