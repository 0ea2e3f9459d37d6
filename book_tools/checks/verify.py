"""Decide whether a run still says what the book says.

The verdicts are checked by the same arithmetic that made them, from the stored numbers: a verdict that was
edited, a test that always agrees, and a claim that went missing are all found.  What is on record for a claim,
and where it must hold, is read from the registry as it is now: a changed record shows without a new run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from book_tools.book import Book, Chapter
from book_tools.checks.reference import Tolerance, has_reference, numbers_of, reference_problems
from book_tools.errors import BookError
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.state import state_of

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim
    from cfltr_book.reporting.claims import Measurement

ORDERING = "ordering"
# The same arithmetic on the same numbers, perhaps on another machine.
SAME = Tolerance(rtol=1e-9, atol=0.0)


@dataclass(frozen=True)
class Comparison:
    """A measured verdict beside the one on record for the same scale and corpus."""

    chapter: Chapter
    measurement: Measurement
    spec: Claim

    @property
    def where(self) -> tuple[str, str]:
        """Scale and corpus of the run."""
        return self.measurement.scale, self.measurement.corpus

    @property
    def gates(self) -> bool:
        """True where the verdict on record must be met."""
        return self.spec.gates(*self.where)

    @property
    def recorded(self) -> str:
        """The verdict on record."""
        return self.spec.recorded(*self.where)

    @property
    def changed(self) -> bool:
        """True for another verdict than the one on record."""
        return self.measurement.result.verdict != self.recorded

    @property
    def is_news(self) -> bool:
        """True for a verdict that is due and sharper than the one on record, *inconclusive*: no failure."""
        return self.gates and self.spec.is_news(self.measurement.result.verdict, *self.where)

    @property
    def outcome(self) -> str:
        """The measured verdict in the words of the scoreboard."""
        from cfltr_book.reporting.wording import outcome

        return outcome(self.spec, self.measurement.result.verdict, interval=self.measurement.result.interval)

    def __str__(self) -> str:
        """Both verdicts in words: *undecided, on record: seen*."""
        from cfltr_book.reporting.wording import outcome

        reason = self.measurement.result.reason
        return f"{self.outcome}{f' ({reason})' if reason else ''}, on record: {outcome(self.spec, self.recorded)}"


def verify(book: Book, wanted: list[str] | None = None) -> None:
    """Check the ``wanted`` chapters of the present run (all when empty); print a summary, or raise all problems."""
    from cfltr_book.reporting.claim_registry import registry

    state = state_of(book, wanted)
    if state.parameters is None or state.problems:
        raise BookError(*state.problems, "verify: nothing to check without a fresh run of these chapters")
    chapters = state.chapters
    found = measured_claims(book, chapters)
    numbers = numbers_of(book, chapters)
    problems = claim_problems(chapters, found, registry())
    if has_reference(book, state.parameters):
        problems += reference_problems(book, state.parameters, numbers, whole=not wanted)
        kinds = Counter(kind for kind, _ in numbers)
        compared = f"{kinds['figure']} figures and {kinds['record']} numbers compared with the reference"
    else:
        compared = f"no reference for {state.parameters}: figures and numbers not compared"
    summary = f"{len(found)} claims in {len(chapters)} chapters checked; {compared}"
    if problems:
        raise BookError(*problems, f"verify: {len(problems)} problems; {summary}")
    gating = sum(one.gates for one in comparisons(found, registry()).values())
    for line in (*news(found, registry()), f"verify: {summary}; {gating} claims gate at this scale and corpus"):
        print(line, flush=True)


def comparisons(
    found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]
) -> dict[str, Comparison]:
    """Return the measured claims of the registry, each beside what is on record."""
    return {name: Comparison(*found[name], registry[name]) for name in found if name in registry}


def news(found: Mapping[str, tuple[Chapter, Measurement]], registry: Mapping[str, Claim]) -> list[str]:
    """Return one notice per verdict that is due and sharper than the one on record, *inconclusive*: no failure."""
    return [
        f"NEWS {name} (chapter {one.chapter.number}): {one}; if it is to stay, 'make accept' puts it on record"
        for name, one in comparisons(found, registry).items()
        if one.is_news
    ]


def verdict_report(book: Book) -> list[str]:
    """Return what to print of the verdicts: those that changed where they must hold, then the others in one block."""
    from cfltr_book.reporting.claim_registry import registry

    found = measured_claims(book, book.chapters())
    changed = {name: one for name, one in comparisons(found, registry()).items() if one.changed}
    failing = {name: one for name, one in changed.items() if one.gates and not one.is_news}
    sharper = any(one.is_news for one in changed.values())
    if failing:
        lines = [f"CHANGED where it must hold, 'make verify' fails: {len(failing)} of {len(found)} verdicts"]
        lines += [f"  {name} (chapter {one.chapter.number}): {one}" for name, one in failing.items()]
    else:
        held = "every verdict that must hold at this scale and corpus is the one on record"
        lines = [f"{held}, or sharper" if sharper else held]
    lines += [f"  {line}" for line in news(found, registry())]
    others = Counter((one.chapter.number, one.outcome) for one in changed.values() if not one.gates)
    if others:
        lines.append(
            f"{others.total()} others differ where they need not hold; 'python -m cfltr_book' lists every verdict"
        )
        for number, counts in groupby(sorted(others.items()), key=lambda other: other[0][0]):
            lines.append(f"  chapter {number}: " + ", ".join(f"{n} {words}" for (_, words), n in counts))
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
        problems += [f"{name}: {problem}" for problem in _one_claim(Comparison(*found[name], due[name]))]
    return problems


def _one_claim(claim: Comparison) -> list[str]:
    from cfltr_book.reporting import claims

    problems = []
    spec, measurement, result = claim.spec, claim.measurement, claim.measurement.result
    if claim.gates and claim.changed and not claim.is_news:
        problems.append(str(claim))
    again = claims.judge(spec, measurement.arrays)
    if again.verdict != result.verdict or not SAME.agree(again.effect, result.effect):
        problems.append(
            f"stored as {result.verdict} with effect {result.effect:.6g}, but its stored numbers say "
            f"{again.verdict} with {again.effect:.6g}"
        )
    if spec.kind == ORDERING and again.verdict == "supported":
        turned = claims.judge(spec, claims.swapped(measurement.arrays)).verdict
        if turned != "contradicted":
            problems.append(f"still {turned} when its two methods are swapped; its test decides nothing")
    return problems
