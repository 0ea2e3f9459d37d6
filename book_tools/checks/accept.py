"""Make what a run found what later runs are compared with: its verdicts, and the numbers of the default corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from book_tools.book import Book
from book_tools.checks.reference import update_reference
from book_tools.checks.verify import rows_of
from book_tools.errors import UsageError
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.state import LETOR_PREFIX, fresh_run
from book_tools.parameters import Parameters
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.accepted import Accepted, accepted_text
from cfltr_book.reporting.claim_registry import SCALE_ORDER
from cfltr_book.reporting.claims import Measurement
from cfltr_core.files import write_whole


def accept(book: Book) -> None:
    """Write the verdicts of the present run and, with the default corpus, its numbers; print which verdicts turned.

    Raises
    ------
    UsageError
        For a run that is not complete, and for one that others could not repeat or compare: of another seed, or of a
        collection of the user's.
    """
    parameters = fresh_run(book, "a complete run only can be accepted")
    if parameters.seed != Parameters().seed or parameters.corpus.startswith(LETOR_PREFIX):
        raise UsageError(f"this run has {parameters}; accepted are runs of the default seed, with a corpus of the book")
    found = measured_claims(book, book.chapters())
    due = [row for row in rows_of(found, claim_registry.registry()) if row.gates]
    turned = [row for row in due if row.is_changed]
    if parameters == Parameters(scale=parameters.scale):
        update_reference(book, parameters, book.chapters())
    book.verdicts.parent.mkdir(parents=True, exist_ok=True)
    write_whole(book.verdicts, accepted_text(_accepted({row.spec.id: found[row.spec.id][1] for row in due})))
    for row in turned:
        print(f"{row.spec.id} (chapter {row.spec.chapter}): {row.recorded} → {row.verdict}")
    print(f"accept: {len(turned)} verdicts turned in {book.verdicts.relative_to(book.root)}", flush=True)


def _accepted(due: Mapping[str, Measurement]) -> Iterator[Accepted]:
    """Yield the accepted verdicts in the order of the registry, those of this run in the place of older ones."""
    for spec in claim_registry.registry().values():
        rows = {(row.corpus, row.scale): row for row in spec.accepted}
        if spec.id in due:
            about = due[spec.id]
            low, high = about.result.interval or (None, None)
            rows[about.corpus, about.scale] = Accepted(
                spec.id, about.corpus, about.scale, about.result.verdict, about.result.effect, low, high
            )
        yield from (rows[corpus, scale] for corpus in spec.corpora for scale in SCALE_ORDER if (corpus, scale) in rows)
