"""What a chapter shows of its claims: marks in its prose, ``{claim}`ID VERDICT` ``, and what its cells show.

A mark names the claim that a sentence rests on and the verdict that the sentence reports, in the words of the registry:
*supported*, *contradicted* or *inconclusive*.  A page, a copy and the printed book show whether the run that they were
made from agrees.  The sentences are written for the book's own run, so a mark that reports another verdict than the
accepted one is a fault of the chapter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from nbformat import NotebookNode

from book_tools.book import Book, Chapter
from book_tools.colab.myst import INLINE, outside_code
from book_tools.errors import Problems, for_each
from book_tools.execution.artefacts import claims_in
from book_tools.notebooks import TURNED, mark_on, read_notebook, source_index
from book_tools.parameters import Parameters
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import VERDICTS, Claim, check_measured
from cfltr_book.reporting.claims import Measurement
from cfltr_book.reporting.evidence import Evidence
from cfltr_book.reporting.wording import outcome

ROLE = "claim"
# Every claim has a row there, with the anchor claim-<id>; the chapters lie beside it.
SCOREBOARD = "scoreboard.html"
AGREES, DISAGREES, OPEN = "✓", "✗", "○"
LEGEND = (
    f"{AGREES} stands behind a sentence that the run agrees with, {DISAGREES} where it found another verdict, "
    f"and {OPEN} where it cannot tell."
)

# What Markdown would take for its own in a plain text.
MARKUP = re.compile(r"[*_`$<\[\]\\]")


@dataclass(frozen=True)
class Mark:
    """A sentence reports the verdict ``reported`` on the claim ``spec``; ``measured`` is what a run found of it."""

    spec: Claim
    reported: str
    measured: Measurement | None = None

    @property
    def symbol(self) -> str:
        """✓ where the run found the verdict that the sentence reports, ✗ where another, ○ where it cannot tell."""
        verdict = self.measured.result.verdict if self.measured else ""
        if verdict == self.reported:
            return AGREES
        return DISAGREES if verdict in ("supported", "contradicted") else OPEN

    @property
    def found(self) -> str:
        """What the run found, in the words of the scoreboard."""
        if self.measured is None:
            return "not measured"
        result = self.measured.result
        called = outcome(self.spec, result.verdict, interval=result.interval)
        due = self.spec.gates(self.measured.scale, self.measured.corpus)
        return called if due else f"{called}, which decides nothing: {self.spec.tested_where}"

    @property
    def words(self) -> str:
        """What the symbol means here, for those who do not see it or ask."""
        means = {AGREES: "This run agrees", DISAGREES: "This run disagrees", OPEN: "This run cannot tell"}
        return f"{means[self.symbol]}: {self.found} ({self.spec.id})"


def mark_of(content: str) -> Mark:
    """Return the mark with this content, which no run has measured yet.

    Raises
    ------
    ValueError
        For anything but a claim of the registry and a verdict.
    """
    id, _, verdict = content.partition(" ")
    if verdict not in VERDICTS:
        raise ValueError(f"{{{ROLE}}}`{content}`: expected a claim and one of {', '.join(VERDICTS)}")
    check_measured(id)
    return Mark(claim_registry.registry()[id], verdict)


def check_marks(book: Book) -> None:
    """Raise one error that lists every mark that cannot be, or reports another verdict than the accepted one."""

    def check(mark: Mark) -> str:
        accepted = mark.spec.recorded(Parameters().scale, Parameters().corpus)
        if mark.reported != accepted:
            raise ValueError(
                f"a sentence reports {mark.reported} for {mark.spec.id}, but the accepted verdict is {accepted}: write "
                "the sentence anew"
            )
        return ""

    for_each(book.chapters(), lambda chapter: _write_each(chapter, read_notebook(chapter.source), check))


def measured(book: Book, mark: Mark) -> Mark:
    """Return the mark with what the present run of the book found."""
    folders = [book.folder_of(chapter) for chapter in book.chapters() if chapter.number == mark.spec.chapter]
    found = (one for folder in folders for one in claims_in(folder) if one.result.id == mark.spec.id)
    return replace(mark, measured=next(found, None))


def write_marks(book: Book, chapter: Chapter, notebook: NotebookNode, linked: bool) -> list[Mark]:
    """Write the marks of an executed chapter for its page, in place, and return them in their order.

    Where they are ``linked`` each leads to its claim on the scoreboard; otherwise, as on paper, the symbol stands
    alone.

    Raises
    ------
    BookError
        For each mark that cannot be.
    """
    marks: list[Mark] = []

    def write(mark: Mark) -> str:
        mark = measured(book, mark)
        marks.append(mark)
        words = escape(mark.words)
        return (
            f'<a class="mark" id="mark-{len(marks)}" href="{SCOREBOARD}#claim-{mark.spec.id}" '
            f'aria-label="{words}" title="{words}">{mark.symbol}</a>'
            if linked
            else mark.symbol
        )

    _write_each(chapter, notebook, write)
    return marks


def _write_each(chapter: Chapter, notebook: NotebookNode, write: Callable[[Mark], str]) -> None:
    """Put what ``write`` returns in the place of every mark outside of code; a ValueError is told with its cell."""
    problems = Problems()
    for index, cell in enumerate(notebook.cells):
        place = f"{chapter.source.name}, cell {source_index(notebook, index)}: "

        def piece(found: re.Match[str], place: str = place) -> str:
            if found["role"] != ROLE:
                return found[0]
            with problems.collected(place, ValueError):
                return write(mark_of(" ".join(found["content"].split())))
            return ""

        if cell.cell_type == "markdown":
            cell["source"] = outside_code(cell.source, partial(INLINE.sub, piece))
    problems.raise_any()


def box_of(marks: list[Mark], linked: bool = True) -> str:
    """Return what stands on top of a page on which marks turned, and nothing where none did."""
    title = "On this run these sentences turned"
    turned = [(number, mark) for number, mark in enumerate(marks, start=1) if mark.symbol == DISAGREES]
    if not turned:
        return ""
    said = [(number, " ".join(mark.spec.statement.split()), f"This run: {mark.found}.") for number, mark in turned]
    if not linked:
        return "\n".join([f"**{title}:**\n", *(f"- {statement} {found}" for _, statement, found in said)])
    items = "".join(
        f'<li><a href="#mark-{number}">{escape(statement)}</a> {escape(found)}</li>'
        for number, statement, found in said
    )
    return f'{TURNED}<p class="admonition-title">{title}</p><ul>{items}</ul></div>\n'


def rewrite_claims(
    notebook: NotebookNode, measurements: Iterable[Measurement], scoreboard: str | None = SCOREBOARD
) -> None:
    """Write every claim that ``notebook`` shows anew, in place: its text may have changed since it was measured.

    Each leads to its row on the ``scoreboard``, where that has an address, which on paper it has not; where it is shown
    first it bears an anchor, to which that row leads back.
    """
    registry = claim_registry.registry()
    measured = {measurement.result.id: measurement for measurement in measurements}
    by_id = {name: measurement.result for name, measurement in measured.items()}
    seen: set[str] = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            name: str = mark_on(output).get("claim", "")
            several: list[str] = mark_on(output).get("evidence", [])
            if name in by_id and name in registry:
                text = by_id[name].markdown(scoreboard=scoreboard, anchor=name not in seen)
                output["data"] = {**output.data, "text/markdown": text, "text/plain": repr(by_id[name])}
                seen.add(name)
            if several and all(name in measured and name in registry for name in several):
                first = measured[several[0]]
                table = Evidence([by_id[name] for name in several], corpus=first.corpus, scale=first.scale)
                html = table.html(scoreboard=scoreboard, anchors=set(several) - seen)
                output["data"] = {**output.data, "text/html": html, "text/plain": str(table)}
                if scoreboard is None:
                    # Paper takes no HTML, and would show the plain text as code.
                    output["data"]["text/markdown"] = MARKUP.sub(r"\\\g<0>", str(table))
                seen |= set(several)
