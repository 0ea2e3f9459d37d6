"""Decide whether a run still says what the book says.

The verdicts are checked by the same arithmetic that made them, from the stored numbers: a verdict that was
edited, a test that always agrees, and a claim that went missing are all found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from book_tools.book import Book, Chapter
from book_tools.checks.reference import has_reference, reference_problems
from book_tools.errors import BookError
from book_tools.execution.artefacts import Claim, claims_in, collect, figures_in, records_in
from book_tools.execution.state import state_of
from book_tools.library import ClaimsLibrary, Specification

ORDERING = "ordering"
# The same arithmetic on the same numbers, perhaps on another machine.
SAME = 1e-9


def verify(book: Book, library: ClaimsLibrary) -> None:
    """Check the present run; print a summary, or raise an error with one line per problem."""
    state = state_of(book)
    if state.parameters is None or state.problems:
        raise BookError(*state.problems, "verify: nothing to check without a complete, fresh run")
    chapters = state.chapters
    claims = {key: claim for key, (_, claim) in collect(book, chapters, claims_in, "id").items()}
    figures = collect(book, chapters, figures_in, "id")
    records = collect(book, chapters, records_in, "name")
    problems = claim_problems(chapters, claims, library)
    if has_reference(book, state.parameters):
        problems += reference_problems(book, state.parameters, chapters)
        compared = f"{len(figures)} figures and {len(records)} numbers compared with the reference"
    else:
        compared = f"no reference for {state.parameters}: figures and numbers not compared"
    summary = f"{len(claims)} claims in {len(chapters)} chapters checked; {compared}"
    if problems:
        raise BookError(*problems, f"verify: {len(problems)} problems; {summary}")
    gated = sum(claim.gated for claim in claims.values())
    print(f"verify: {summary}; {gated} claims gate at this scale and corpus", flush=True)


def changed_verdicts(book: Book, library: ClaimsLibrary) -> list[str]:
    """Return a line for every verdict of the run that is not the expected one."""
    registry = library.registry()
    return [
        f"{claim.id}: {claim.verdict}, expected {registry[claim.id].expected(claim.corpus)}"
        + ("" if claim.gated else " (does not gate at this scale or corpus)")
        for chapter in book.chapters()
        for claim in claims_in(book.folder_of(chapter))
        if claim.id in registry and claim.verdict != registry[claim.id].expected(claim.corpus)
    ]


def claim_problems(chapters: list[Chapter], claims: Mapping[str, Claim], library: ClaimsLibrary) -> list[str]:
    """Return everything wrong with the claims of a run, measured against the registry."""
    numbers = {chapter.number for chapter in chapters}
    registry = {key: spec for key, spec in library.registry().items() if spec.chapter in numbers}
    problems = [
        f"{name}: chapter {registry[name].chapter} should measure this claim but did not"
        for name in sorted(registry.keys() - claims.keys())
    ]
    problems += [
        f"{name}: measured in chapter {claims[name].chapter} but not in the registry for it; add it there"
        for name in sorted(claims.keys() - registry.keys())
    ]
    problems += [
        f"{spec.id}: an ordering needs a negative control in the registry, where its effect must vanish"
        for spec in registry.values()
        if spec.kind == ORDERING and not spec.control
    ]
    for name in sorted(claims.keys() & registry.keys()):
        problems += [f"{name}: {problem}" for problem in _one_claim(claims[name], registry[name], library)]
    return problems


def _one_claim(claim: Claim, spec: Specification, library: ClaimsLibrary) -> list[str]:
    problems = []
    expected = spec.expected(claim.corpus)
    if claim.gated and claim.verdict != expected:
        problems.append(f"{claim.verdict}, expected {expected}")
    again = library.verdict_of(spec, claim.arrays)
    if again.verdict != claim.verdict or not math.isclose(again.effect, claim.effect, rel_tol=SAME):
        problems.append(
            f"stored as {claim.verdict} with effect {claim.effect:.6g}, but its stored numbers say "
            f"{again.verdict} with {again.effect:.6g}"
        )
    if spec.kind == ORDERING and again.verdict == "supported":
        turned = library.verdict_of(spec, library.swapped(claim.arrays)).verdict
        if turned != "contradicted":
            problems.append(f"still {turned} when its two methods are swapped; its test decides nothing")
    return problems
