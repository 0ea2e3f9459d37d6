"""What the front page shows of a run: one figure, and how many claims came out how.  Nothing of it is typed by hand.

The README shows the same figure, kept in ``_static`` with the numbers that it was drawn from.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.artefacts import Figure, figures_in
from book_tools.parameters import Parameters
from book_tools.site.scoreboard import CONTROLS, EMPIRICAL, MATHEMATICAL
from book_tools.site.standings import Standing, listed, standings, tally
from cfltr_core.files import write_whole

# The front page includes this file, which lies beside it while the site is built.
INCLUDED = "front.md"
FIGURE = "fig-ten-candidates"
# Where the README finds it, and what stands in that file beside the picture.
PICTURE = Path("_static") / "ten_candidates.svg"
HEADING = "Written when the reference numbers are, from these:"
NUMBERS = re.compile(rf"<!-- {HEADING}\n(.*?)-->\n", re.DOTALL)
# How the reason of a claim says that a trial had been made before the prediction.
TRIAL = re.compile(r"\btrials?\b", re.IGNORECASE)
# What the words of the second of the findings mean, where they occur.
MEANT = {
    "smaller than asked": "*smaller than asked*: surely in the paper's direction, and surely by less than this "
    "book had said would matter",
    "not seen": "*not seen*: surely less than that, and the sign is open",
    "opposite seen": "*opposite seen*: surely the other way round, or another value than was claimed",
}


def write_front(book: Book, parameters: Parameters) -> None:
    """Lay the figure and the findings beside the staged front page, if that includes them."""
    page = book.stage / f"{book.pages()[0]}.md"
    if not page.is_file() or INCLUDED not in page.read_text(encoding="utf-8"):
        return
    found = front_figure(book)
    if found is None:
        raise BookError(
            f"{page.name}: shows {FIGURE}, which no chapter of the book records; choose another in front.py"
        )
    chapter, figure = found
    name = f"front{figure.image.suffix}"
    shutil.copy2(figure.image, book.stage / name)
    place = f"chapters/{chapter.name}.html#{figure.id}"
    write_whole(book.stage / INCLUDED, picture(figure, name, place) + findings(book, parameters))


def front_figure(book: Book) -> tuple[Chapter, Figure] | None:
    """Return the figure of the front page and the chapter that recorded it, or None in a book without it."""
    for chapter in book.chapters():
        for figure in figures_in(book.folder_of(chapter)):
            if figure.id == FIGURE:
                return chapter, figure
    return None


def keep_picture(book: Book) -> None:
    """Write the figure of the front page for the README, with its numbers, in a book that has it."""
    found = front_figure(book)
    if found is not None:
        _, figure = found
        numbers = figure.data.read_text(encoding="utf-8")
        comment = f"<!-- {HEADING}\n{numbers}-->\n"
        image = figure.image.read_text(encoding="utf-8")
        write_whole(book.root / PICTURE, image.replace("<svg ", f'{comment}<svg style="background: white" ', 1))


def numbers_of(picture: Path) -> str:
    """Return the table of numbers that a kept picture was drawn from."""
    found = NUMBERS.search(picture.read_text(encoding="utf-8"))
    if found is None:
        raise BookError(f"{picture.name}: has no numbers; write it with 'make accept'")
    return found[1]


def picture(figure: Figure, name: str, place: str) -> str:
    """Return the figure with its caption: an image without a number, because it has one in its chapter."""
    return (
        f'<div class="front-figure">\n\n:::{{image}} {name}\n:alt: {figure.alt}\n:::\n\n'
        f'{figure.caption} <a href="{place}">The figure in its chapter, with its data</a>\n\n</div>\n\n'
    )


def findings(book: Book, parameters: Parameters) -> str:
    """Return three findings as a list: published claims by nature, then what was predicted and how the controls did."""
    from cfltr_book.reporting.claim_registry import NO_PREDICTION, withdrawn

    found, corpus = standings(book), parameters.corpus
    counts = tally(found)
    proved = counts.get(("published", "mathematical"), Counter())
    seen = counts.get(("published", "empirical"), Counter())
    controls = counts.get(("control", ""), Counter())
    predicted = [one for one in found if one.spec.prediction(corpus) != NO_PREDICTION]
    kept = sum(one.predicted_as_measured(corpus) for one in predicted)
    late = _known_before(predicted)
    meant = "; ".join(words for name, words in MEANT.items() if seen[name])
    numbers = {chapter.number for chapter in book.chapters()}
    gone = sum(spec.chapter in numbers for spec in withdrawn().values())
    return "\n".join(
        [
            f"- **Statements that can be proved or refuted.** The sources make {proved.total()} of those that the book "
            f"checks: {listed(proved, MATHEMATICAL)}.",
            f"- **Statements about data.** Of {seen.total()} published ones, on `{corpus}`: "
            f"{listed(seen, EMPIRICAL)}.{f' Here {meant}.' if meant else ''}",
            f"- **Predictions and controls.** Of all {len(found)} claims, controls and the book's own among them, "
            f"{len(predicted)} had a verdict predicted before they were measured; {kept} of these verdicts came out "
            f"so{f'; {late}' if late else ''}. Of {controls.total()} controls: {listed(controls, CONTROLS)}. "
            "Statements withdrawn (replaced or dropped) after they had been measured, and listed with what they "
            f"measured: {gone}.",
            f"\nComputed from this run: {parameters}. Every one of them stands on the "
            "[scoreboard](chapters/scoreboard.md), with its numbers.\n",
        ]
    )


def _known_before(predicted: list[Standing]) -> str:
    """Say of how many predicted claims something like them had been measured before, or "" where of none."""
    from cfltr_book.reporting.claim_registry import withdrawn

    successors = {spec.withdrawn.replaced_by for spec in withdrawn().values() if spec.withdrawn is not None}
    again = sum(one.spec.id in successors for one in predicted)
    tried = sum(bool(TRIAL.search(one.spec.reason)) for one in predicted)
    parts = [f"{again} of the {len(predicted)} took the place of a statement that had been measured"] if again else []
    parts += [f"the reasons of {tried} mention a trial"] if tried else []
    return ", and ".join(parts)
