"""Make what a run found what later runs are compared with: its verdicts, and the numbers of the default corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from book_tools.book import Book
from book_tools.checks.reference import update_reference
from book_tools.checks.verify import Comparison, comparisons
from book_tools.errors import UsageError
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.fingerprint import LETOR_PREFIX
from book_tools.execution.state import state_of
from book_tools.parameters import Parameters
from cfltr_core.files import write_whole

if TYPE_CHECKING:
    from cfltr_book.reporting.accepted import Accepted
    from cfltr_book.reporting.claim_registry import Claim


def accept(book: Book) -> None:
    """Write the verdicts of the present run and, with the default corpus, its numbers; print which verdicts turned.

    Raises
    ------
    UsageError
        For a run that is not complete, and for one that others could not repeat or compare: of another seed, or of a
        collection of the user's.
    """
    from cfltr_book.reporting.accepted import accepted_text
    from cfltr_book.reporting.claim_registry import registry

    state = state_of(book)
    if state.parameters is None or state.problems:
        raise UsageError(*state.problems, "a complete run only can be accepted")
    parameters = state.parameters
    if parameters.seed != Parameters().seed or parameters.corpus.startswith(LETOR_PREFIX):
        raise UsageError(f"this run has {parameters}; accepted are runs of the default seed, with a corpus of the book")
    found = measured_claims(book, state.chapters)
    due = {name: one for name, one in comparisons(found, registry()).items() if one.gates}
    turned = [
        f"{name} (chapter {one.chapter.number}): {one.recorded} → {one.measurement.result.verdict}"
        for name, one in due.items()
        if one.changed
    ]
    if parameters == Parameters(scale=parameters.scale):
        update_reference(book, parameters, state.chapters)
    book.verdicts.parent.mkdir(parents=True, exist_ok=True)
    write_whole(book.verdicts, accepted_text(_rows(due, registry())))
    for line in turned:
        print(line)
    print(f"accept: {len(turned)} verdicts turned in {book.verdicts.relative_to(book.root)}", flush=True)


def _rows(due: Mapping[str, Comparison], registry: Mapping[str, Claim]) -> Iterator[Accepted]:
    """Yield the accepted verdicts in the order of the registry, those of this run in the place of older ones."""
    from cfltr_book.reporting.accepted import Accepted
    from cfltr_book.reporting.claim_registry import SCALE_ORDER

    for spec in registry.values():
        rows = {(row.corpus, row.scale): row for row in spec.accepted}
        if spec.id in due:
            about = due[spec.id].measurement
            low, high = about.result.interval or (None, None)
            rows[about.corpus, about.scale] = Accepted(
                spec.id, about.corpus, about.scale, about.result.verdict, about.result.effect, low, high
            )
        yield from (rows[corpus, scale] for corpus in spec.corpora for scale in SCALE_ORDER if (corpus, scale) in rows)
