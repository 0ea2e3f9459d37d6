"""Decide whether a run still says what the book says, or make what it says what later runs are compared with.

The verdicts are checked by the same arithmetic that made them, from the stored numbers: a verdict that was
edited, a test that always agrees, and a claim that went missing are all found.  What is on record for a claim,
and where it must hold, is read from the registry as it is now: a changed record shows without a new run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from book_tools.book import Book, Chapter
from book_tools.checks.reference import Tolerance, has_reference, numbers_of, reference_problems, update_reference
from book_tools.errors import BookError, UsageError
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.state import LETOR_PREFIX, fresh_run
from book_tools.parameters import Parameters
from book_tools.site.claim_rows import ClaimRow
from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.accepted import Accepted, accepted_text
from cfltr_book.reporting.claim_registry import SCALE_ORDER, Claim
from cfltr_book.reporting.claims import Measurement
from cfltr_core.files import write_whole

# The same arithmetic on the same numbers, perhaps on another machine.
SAME = Tolerance(rtol=1e-9, atol=0.0)


def verify(book: Book, wanted: list[str] | None = None) -> None:
    """Check the ``wanted`` chapters of the present run (all when empty); print a summary, or raise all problems."""
    parameters = fresh_run(book, "verify: nothing to check without a fresh run of these chapters", wanted)
    chapters, registry = book.select(wanted or []), claim_registry.registry()
    found = measured_claims(book, chapters)
    numbers = numbers_of(book, chapters)
    problems = claim_problems(chapters, found, registry)
    if has_reference(book, parameters):
        problems += reference_problems(book, parameters, numbers, whole=not wanted)
        kinds = Counter(kind for kind, _ in numbers)
        compared = f"{kinds['figure']} figures and {kinds['record']} numbers compared with the reference"
    else:
        compared = f"no reference for {parameters}: figures and numbers not compared"
    summary = f"{len(found)} claims in {len(chapters)} chapters checked; {compared}"
    if problems:
        raise BookError(*problems, f"verify: {len(problems)} problems; {summary}")
    gating = sum(row.gates for row in rows_of(found, registry))
    for line in (*news(found, registry), f"verify: {summary}; {gating} claims gate at this scale and corpus"):
        print(line, flush=True)


def rows_of(found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]) -> list[ClaimRow]:
    """Return the measured claims of the registry, each beside what is on record."""
    return [
        ClaimRow(registry[name], Parameters(measurement.scale, measurement.corpus), chapter, measurement)
        for name, (chapter, measurement) in found.items()
        if name in registry
    ]


def news(found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]) -> list[str]:
    """Return one notice per verdict that is due and sharper than the one on record, *inconclusive*: no failure."""
    return [
        f"NEWS {_told(row)}; if it is to stay, 'make accept' puts it on record"
        for row in rows_of(found, registry)
        if row.is_news
    ]


def verdict_report(book: Book) -> list[str]:
    """Return what to print of the verdicts: those that changed where they must hold, then the others in one block."""
    found, registry = measured_claims(book, book.chapters()), claim_registry.registry()
    changed = [row for row in rows_of(found, registry) if row.is_changed]
    failing = [row for row in changed if row.gates and not row.is_news]
    if failing:
        lines = [f"CHANGED where it must hold, 'make verify' fails: {len(failing)} of {len(found)} verdicts"]
        lines += [f"  {_told(row)}" for row in failing]
    else:
        held = "every verdict that must hold at this scale and corpus is the one on record"
        lines = [f"{held}, or sharper" if any(row.is_news for row in changed) else held]
    lines += [f"  {line}" for line in news(found, registry)]
    others = Counter((row.spec.chapter, row.outcome) for row in changed if not row.gates)
    if others:
        lines.append(
            f"{others.total()} others differ where they need not hold; 'python -m cfltr_book' lists every verdict"
        )
        for number, counts in groupby(sorted(others.items()), key=lambda other: other[0][0]):
            lines.append(f"  chapter {number}: " + ", ".join(f"{n} {words}" for (_, words), n in counts))
    return lines


def _told(row: ClaimRow) -> str:
    return f"{row.spec.id} (chapter {row.spec.chapter}): {row.beside_record}"


def claim_problems(
    chapters: list[Chapter], found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]
) -> list[str]:
    """Return everything wrong with the claims of a run, measured against the registry."""
    numbers = {chapter.number for chapter in chapters}
    due = {key: spec for key, spec in registry.items() if spec.chapter in numbers}
    problems = [
        f"{name}: chapter {due[name].chapter} should measure this claim but did not"
        for name in sorted(due.keys() - found.keys())
    ]
    problems += [
        f"{name}: measured in chapter {chapter.number} but not in the registry for it; add it there"
        for name, (chapter, _) in sorted(found.items())
        if name not in registry or registry[name].chapter != chapter.number
    ]
    for row in rows_of({name: found[name] for name in sorted(found.keys() & due.keys())}, due):
        problems += [f"{row.spec.id}: {problem}" for problem in _problems_of(row, found[row.spec.id][1])]
    return problems


def _problems_of(row: ClaimRow, measurement: Measurement) -> list[str]:
    problems = []
    spec, result = row.spec, measurement.result
    if row.gates and row.is_changed and not row.is_news:
        problems.append(row.beside_record)
    again = claims.judge(spec, measurement.arrays)
    if again.verdict != result.verdict or not SAME.agree(again.effect, result.effect):
        problems.append(
            f"stored as {result.verdict} with effect {result.effect:.6g}, but its stored numbers say "
            f"{again.verdict} with {again.effect:.6g}"
        )
    if spec.kind == "ordering" and again.verdict == "supported":
        turned = claims.judge(spec, claims.swapped(measurement.arrays)).verdict
        if turned != "contradicted":
            problems.append(f"still {turned} when its two methods are swapped; its test decides nothing")
    return problems


def accept(book: Book, wanted: list[str] | None = None) -> None:
    """Write the verdicts of the present run and, with the default corpus, its numbers; print which verdicts turned.

    Of the ``wanted`` chapters only, where some are named: what is on record for the others stays as it is.

    Raises
    ------
    UsageError
        For a run that lacks one of these chapters, and for one that others could not repeat or compare: of another
        seed, or of a collection of the user's.
    """
    parameters = fresh_run(book, "a fresh run of these chapters only can be accepted", wanted)
    chapters = book.select(wanted or [])
    if parameters.seed != Parameters().seed or parameters.corpus.startswith(LETOR_PREFIX):
        raise UsageError(f"this run has {parameters}; accepted are runs of the default seed, with a corpus of the book")
    found = measured_claims(book, chapters)
    due = [row for row in rows_of(found, claim_registry.registry()) if row.gates]
    turned = [row for row in due if row.is_changed]
    place = (parameters.corpus, parameters.scale)
    new = [row for row in due if place not in {(old.corpus, old.scale) for old in row.spec.accepted}]
    if parameters == Parameters(scale=parameters.scale):
        update_reference(book, parameters, chapters, whole=not wanted)
    book.verdicts.parent.mkdir(parents=True, exist_ok=True)
    write_whole(book.verdicts, accepted_text(_accepted({row.spec.id: found[row.spec.id][1] for row in due})))
    for row in turned:
        print(f"{row.spec.id} (chapter {row.spec.chapter}): {row.recorded} → {row.verdict}")
    where = book.verdicts.relative_to(book.root)
    print(f"accept: {len(turned)} verdicts turned, {len(new)} written for the first time, in {where}", flush=True)


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
