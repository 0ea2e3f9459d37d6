"""Decide whether a run still says what the book says.

The verdicts are checked by the same arithmetic that made them, from the stored numbers: a verdict that was
edited, a test that always agrees, and a claim that went missing are all found.  What is on record for a claim,
and where it must hold, is read from the registry as it is now: a changed record shows without a new run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from book_tools.book import Book, Chapter
from book_tools.checks.reference import has_reference, reference_problems
from book_tools.errors import BookError
from book_tools.execution.artefacts import collect, figures_in, measured_claims, records_in
from book_tools.execution.state import state_of

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim
    from cfltr_book.reporting.claims import Measurement

ORDERING = "ordering"
# The same arithmetic on the same numbers, perhaps on another machine.
SAME = 1e-9


def verify(book: Book, wanted: list[str] | None = None) -> None:
    """Check the ``wanted`` chapters of the present run (all when empty); print a summary, or raise all problems."""
    from cfltr_book.reporting.claim_registry import registry

    state = state_of(book, wanted)
    if state.parameters is None or state.problems:
        raise BookError(*state.problems, "verify: nothing to check without a fresh run of these chapters")
    chapters = state.chapters
    found = measured_claims(book, chapters)
    figures = collect(book, chapters, figures_in, lambda figure: figure.id)
    records = collect(book, chapters, records_in, lambda record: record.name)
    problems = claim_problems(chapters, found, registry())
    if has_reference(book, state.parameters):
        problems += reference_problems(book, state.parameters, chapters, whole=not wanted)
        compared = f"{len(figures)} figures and {len(records)} numbers compared with the reference"
    else:
        compared = f"no reference for {state.parameters}: figures and numbers not compared"
    summary = f"{len(found)} claims in {len(chapters)} chapters checked; {compared}"
    if problems:
        raise BookError(*problems, f"verify: {len(problems)} problems; {summary}")
    for line in news(found, registry()):
        print(line, flush=True)
    gating = sum(_gates(registry()[name], measurement) for name, (_, measurement) in found.items())
    print(f"verify: {summary}; {gating} claims gate at this scale and corpus", flush=True)


def news(found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]) -> list[str]:
    """Return one notice per verdict that is due and sharper than the one on record, *inconclusive*: no failure."""
    return [
        f"NEWS {name} (chapter {chapter.number}): {_beside_record(registry[name], measurement)}; if it is to stay, "
        "'make accept' puts it on record"
        for name, (chapter, measurement) in found.items()
        if name in registry and _gates(registry[name], measurement) and _is_news(registry[name], measurement)
    ]


def verdict_report(book: Book) -> list[str]:
    """Return what to print of the verdicts: those that changed where they must hold, then the others in one block."""
    from cfltr_book.reporting.claim_registry import registry
    from cfltr_book.reporting.wording import outcome

    found = measured_claims(book, book.chapters())
    changed = {
        name: (chapter, measurement)
        for name, (chapter, measurement) in found.items()
        if name in registry() and measurement.result.verdict != _recorded(registry()[name], measurement)
    }
    due = {name: at for name, at in changed.items() if _gates(registry()[name], at[1])}
    gating = {name: at for name, at in due.items() if not _is_news(registry()[name], at[1])}
    lines = [
        f"  {name} (chapter {chapter.number}): {_beside_record(registry()[name], measurement)}"
        for name, (chapter, measurement) in gating.items()
    ]
    if lines:
        lines.insert(0, f"CHANGED where it must hold, 'make verify' fails: {len(gating)} of {len(found)} verdicts")
    else:
        lines.append(
            "every verdict that must hold at this scale and corpus is the one on record"
            + (", or sharper" if len(due) > len(gating) else "")
        )
    lines += [f"  {line}" for line in news(found, registry())]
    others = [(name, *at) for name, at in changed.items() if name not in due]
    if others:
        lines.append(
            f"{len(others)} others differ where they need not hold; 'python -m cfltr_book' lists every verdict"
        )
        for number, some in groupby(others, key=lambda other: other[1].number):
            counts = Counter(
                outcome(registry()[name], at.result.verdict, interval=at.result.interval) for name, _, at in some
            )
            lines.append(f"  chapter {number}: " + ", ".join(f"{n} {words}" for words, n in sorted(counts.items())))
    return lines


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
    problems += [
        f"{spec.id}: an ordering needs a negative control in the registry, where its effect must vanish"
        for spec in due.values()
        if spec.kind == ORDERING and not spec.control
    ]
    for name in sorted(found.keys() & due.keys()):
        problems += [f"{name}: {problem}" for problem in _one_claim(found[name][1], due[name])]
    return problems


def _one_claim(measurement: Measurement, spec: Claim) -> list[str]:
    from cfltr_book.reporting import claims

    problems = []
    result = measurement.result
    if _gates(spec, measurement) and not spec.meets(result.verdict, measurement.scale, measurement.corpus):
        problems.append(_beside_record(spec, measurement))
    again = claims.judge(spec, measurement.arrays)
    if again.verdict != result.verdict or not _same(again.effect, result.effect):
        problems.append(
            f"stored as {result.verdict} with effect {result.effect:.6g}, but its stored numbers say "
            f"{again.verdict} with {again.effect:.6g}"
        )
    if spec.kind == ORDERING and again.verdict == "supported":
        turned = claims.judge(spec, claims.swapped(measurement.arrays)).verdict
        if turned != "contradicted":
            problems.append(f"still {turned} when its two methods are swapped; its test decides nothing")
    return problems


def _gates(spec: Claim, measurement: Measurement) -> bool:
    return spec.gates(measurement.scale, measurement.corpus)


def _recorded(spec: Claim, measurement: Measurement) -> str:
    return spec.recorded(measurement.scale, measurement.corpus)


def _is_news(spec: Claim, measurement: Measurement) -> bool:
    return spec.is_news(measurement.result.verdict, measurement.scale, measurement.corpus)


def _beside_record(spec: Claim, measurement: Measurement) -> str:
    """A measured verdict beside the one on record, in words: *undecided, on record: seen*."""
    from cfltr_book.reporting.wording import outcome

    result = measurement.result
    measured = outcome(spec, result.verdict, interval=result.interval)
    reason = f" ({result.reason})" if result.reason else ""
    return f"{measured}{reason}, on record: {outcome(spec, _recorded(spec, measurement))}"


def _same(effect: float, stored: float) -> bool:
    """Tell whether two effects are equal, as far as another machine computes them; two that are not there are."""
    return math.isclose(effect, stored, rel_tol=SAME) or (math.isnan(effect) and math.isnan(stored))
