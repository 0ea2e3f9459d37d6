"""What the front page and that of the sources show of a run: one figure, and how many claims came out how.

The README shows the same figure, kept in ``_static`` with the numbers that it was drawn from.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.artefacts import Figure, figures_in
from book_tools.parameters import Parameters
from book_tools.rendering import render
from book_tools.site.claim_rows import CONTROLS, EMPIRICAL, MATHEMATICAL, ClaimRow, claim_rows, listed, tally
from cfltr_book.legacy.kept_questions import number_of
from cfltr_book.reporting import claim_registry
from cfltr_core.files import write_whole

# The front page includes this file.
INCLUDED = "front.md"
FIGURE = "fig-ten-candidates"
# Where the README finds it, and what stands in that file beside the picture.
PICTURE = Path("_static") / "ten_candidates.svg"
HEADING = "Written when the reference numbers are, from these:"
# How the reason of a claim says that a trial had been made before the prediction.
TRIAL = re.compile(r"\btrials?\b", re.IGNORECASE)
# What the words of the second of the findings mean, where they occur.
MEANING = {
    "smaller than asked": "*smaller than asked*: surely in the paper's direction, and surely by less than this "
    "book had said would matter",
    "not seen": "*not seen*: surely less than that, and the sign is open",
    "opposite seen": "*opposite seen*: surely the other way round, or another value than was claimed",
}


def front(book: Book, parameters: Parameters) -> str:
    """Return the figure and the findings of the front page; the picture is laid beside it.

    Raises
    ------
    BookError
        Where no chapter recorded the figure.
    """
    found = front_figure(book, book.chapters())
    if found is None:
        raise BookError(
            f"{book.pages()[0]}.md: shows {FIGURE}, which no chapter of the book records; choose another in front.py"
        )
    chapter, figure = found
    picture = f"front{figure.image.suffix}"
    shutil.copy2(figure.image, book.stage / picture)
    place = f"chapters/{chapter.name}.html#{figure.id}"
    # An image without a number, because it has one in its chapter.
    shown = render("front.md.jinja", picture=picture, figure=figure, place=place)
    return shown + findings(book, parameters)


def front_figure(book: Book, chapters: list[Chapter]) -> tuple[Chapter, Figure] | None:
    """Return the figure of the front page and which of the ``chapters`` recorded it, or None where none did."""
    figures = ((chapter, figure) for chapter in chapters for figure in figures_in(book.folder_of(chapter)))
    return next((found for found in figures if found[1].id == FIGURE), None)


def keep_picture(book: Book, chapters: list[Chapter]) -> None:
    """Write the figure of the front page for the README, with its numbers, where one of the ``chapters`` has it."""
    found = front_figure(book, chapters)
    if found is not None:
        _, figure = found
        numbers = figure.data.read_text(encoding="utf-8")
        comment = f"<!-- {HEADING}\n{numbers}-->\n"
        image = figure.image.read_text(encoding="utf-8")
        write_whole(book.root / PICTURE, image.replace("<svg ", f'{comment}<svg style="background: white" ', 1))


def findings(book: Book, parameters: Parameters) -> str:
    """Return three findings as a list: published claims by nature, then what was predicted and how the controls did."""
    rows = claim_rows(book, parameters)
    counts = defaultdict(Counter, tally(rows))
    seen = counts["published", "empirical"]
    predicted = [row for row in rows if row.prediction]
    numbers = {chapter.number for chapter in book.chapters()}
    return render(
        "findings.md.jinja",
        rows=rows,
        proved=counts["published", "mathematical"],
        seen=seen,
        controls=counts["control", ""],
        predicted=predicted,
        meaning="; ".join(words for name, words in MEANING.items() if seen[name]),
        known_before=_known_before(predicted),
        withdrawn=sum(spec.chapter in numbers for spec in claim_registry.withdrawn().values()),
        parameters=parameters,
        listed=listed,
        mathematical=MATHEMATICAL,
        empirical=EMPIRICAL,
        control_outcomes=CONTROLS,
    )


def _known_before(predicted: list[ClaimRow]) -> str:
    """Say of how many predicted claims something like them had been measured before, or "" where of none."""
    withdrawn = [spec.withdrawn for spec in claim_registry.withdrawn().values()]
    successors = {about.replaced_by for about in withdrawn if about is not None}
    again = sum(row.spec.id in successors for row in predicted)
    tried = sum(bool(TRIAL.search(row.spec.reason)) for row in predicted)
    parts = [f"{again} of the {len(predicted)} took the place of a statement that had been measured"] if again else []
    parts += [f"the reasons of {tried} mention a trial"] if tried else []
    return ", and ".join(parts)


def source_counts(book: Book, parameters: Parameters, code: str) -> str:
    """Return how the claims of the source with this ``code`` came out in this run, as a paragraph."""
    rows = [row for row in claim_rows(book, parameters) if row.source == code]
    counts = {nature: several for (_, nature), several in tally(rows).items()}
    words = {
        "mathematical": ("that can be proved or refuted", MATHEMATICAL),
        "empirical": (f"about data, here `{parameters.corpus}`", EMPIRICAL),
    }
    parts = [
        f"{counts[nature].total()} {what} ({listed(counts[nature], outcomes)})"
        for nature, (what, outcomes) in words.items()
        if nature in counts
    ]
    return (
        f"The book checks {number_of(len(rows), 'claim')} of this source{': ' if parts else ''}{' and '.join(parts)}.\n"
    )
