"""The scoreboard: every claim with what was predicted and what this run of the book measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from book_tools.book import Book, Chapter
from book_tools.colab.marks import LEGEND
from book_tools.colab.repository import Origin, origin_of
from book_tools.notebooks import read_notebook, title_of
from book_tools.parameters import Parameters
from book_tools.rendering import render
from book_tools.site.claim_rows import (
    CONTROLS,
    EMPIRICAL,
    MATHEMATICAL,
    NOT_MEASURED,
    ClaimRow,
    claim_rows,
    numbers_of,
    tally,
)
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import EXACT, FAMILY_ALPHA, level_of
from cfltr_book.reporting.intervals import FEW_UNITS
from cfltr_book.reporting.measures import measure_of
from cfltr_book.reporting.wording import CONTROL, OWN, SOURCES, spelt_out

# What the short codes stand for; a small book may do without.
SOURCES_PAGE = "chapters/sources"
# Beside the chapters; one file per claim.
NUMBERS_FOLDER = "claims"
ROLES = {"published": "Published in one of the four sources", "own": "Our own"}
# The order of the filter.
OUTCOMES = (
    *("true", "false", "seen", "smaller than asked", "not seen", "opposite seen", "contradicted"),
    *("held", "did not hold", "undecided", "no verdict", NOT_MEASURED),
)


def scoreboard(book: Book, parameters: Parameters) -> str:
    """Return the page that lists every claim of the registry, as it is now, with what this run found."""
    rows = claim_rows(book, parameters)
    numbers = {chapter.number for chapter in book.chapters()}
    withdrawn = [ClaimRow(spec, parameters) for spec in claim_registry.withdrawn().values() if spec.chapter in numbers]
    chapters = [chapter for chapter in book.chapters() if any(row.chapter == chapter for row in rows)]
    verdict_buttons, source_buttons = _buttons([*rows, *withdrawn], any(not row.is_as_predicted for row in rows))
    return render(
        "scoreboard.md.jinja",
        rows=rows,
        withdrawn=withdrawn,
        chapters=[(chapter, link_to(chapter)) for chapter in chapters],
        outcomes={row.spec.id: row.outcome for row in rows},
        functions={row.spec.id: function_of(row, origin_of(book)) for row in rows},
        verdict_buttons=verdict_buttons,
        source_buttons=source_buttons,
        totals=_totals(rows, parameters.corpus),
        budget=budget(rows),
        parameters=parameters,
        has_sources=SOURCES_PAGE in book.pages(),
        legend=LEGEND,
        alpha=FAMILY_ALPHA,
        few=FEW_UNITS,
        numbers=NUMBERS_FOLDER,
        class_of=_class_of,
        spelt_out=spelt_out,
    )


def numbers_files(book: Book, parameters: Parameters) -> dict[str, str]:
    """Return the numbers that each verdict rests on, by the path of a file below the pages."""
    return {
        f"chapters/{NUMBERS_FOLDER}/{row.spec.id}.csv": numbers_of(row.measurement)
        for row in claim_rows(book, parameters)
        if row.measurement
    }


def link_to(chapter: Chapter) -> str:
    """Return a link to a chapter from a page that lies beside it."""
    return f"[{title_of(read_notebook(chapter.source)) or chapter.name}]({chapter.source.name})"


def budget(rows: Iterable[ClaimRow]) -> Mapping[str, float]:
    """Return how many claims must hold in this run, and how many may come out *seen* by chance, were none true.

    A claim falsely *seen* errs on one side: an interval of level 1 − a lies wholly above a threshold that the mean does
    not exceed with probability at most a/2.  An interval inside ±margin, of a mean outside, errs at one end likewise.
    So ``expected``, Σ (1 − level)/2 over the statistical claims, bounds the mean number of false ones, and by the union
    bound the probability that there is any.
    """
    must_hold = [row for row in rows if row.gates]
    drawn = [row for row in must_hold if row.spec.kind not in EXACT]
    return {
        "due": len(drawn),
        "exact": len(must_hold) - len(drawn),
        "chapters": len({row.spec.chapter for row in drawn}),
        "supported": sum(row.verdict == "supported" for row in drawn),
        "expected": sum((1.0 - level_of(row.spec)) / 2 for row in drawn),
    }


def function_of(row: ClaimRow, origin: Origin) -> str | None:
    """Say which function measured a claim, with a link to its source where the repository is on GitHub."""
    measure = measure_of(row.spec.id)
    if measure is None:
        return None
    path, line = measure.place
    name = f"<code>{measure.function.__name__}</code> in <code>{path}</code>, line {line}"
    if origin.github is None or origin.revision is None:
        return f"function {name}"
    return f'function <a href="https://github.com/{origin.github}/blob/{origin.revision}/{path}#L{line}">{name}</a>'


def _totals(rows: Sequence[ClaimRow], corpus: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the head and the lines of a table of outcomes for each nature of claims."""
    counts = tally(rows)
    predicted = Counter(row.group for row in rows if row.prediction)
    came_true = Counter(row.group for row in rows if row.is_as_predicted)
    tables = []
    for kind, nature, outcomes in (
        ("Mathematical claims", "mathematical", MATHEMATICAL),
        (f"Empirical claims, on {corpus}", "empirical", EMPIRICAL),
        ("Controls", "", CONTROLS),
    ):
        lines = []
        for role, name in (ROLES if nature else {CONTROL: "Controls"}).items():
            group = role, nature
            found = counts.get(group, Counter())
            listed = [found.total(), *(found[outcome] for outcome in outcomes)]
            rest = 2 * found.total() - sum(listed)
            lines.append([name, *map(str, listed), str(rest), f"{came_true[group]} of {predicted[group]}"])
        heads = [outcome.capitalize() for outcome in outcomes]
        tables.append(([kind, "All", *heads, "Without a verdict", "As predicted"], lines))
    return tables


def _buttons(rows: Sequence[ClaimRow], has_surprises: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the buttons that leave only some claims to be seen, by class: of verdicts, and of sources."""
    outcomes, used = {row.outcome for row in rows}, {row.source for row in rows}
    # Of withdrawn claims no more is known than this verdict.
    words = {"contradicted": "contradicted (withdrawn)"}
    verdicts = {_class_of(name): words.get(name, name) for name in OUTCOMES if name in outcomes}
    names = {**SOURCES, OWN: "our own", CONTROL: "controls"}
    sources = {_class_of(code): name for code, name in names.items() if code in used}
    surprise = {"surprise": "not as predicted"} if has_surprises else {}
    return {"all": "all", **verdicts, **surprise}, {"all": "all", **sources}


def _class_of(words: Any) -> str:
    """Return words as the name of a class of the style sheet."""
    return str(words).lower().replace(" ", "-")
