"""How many claims of a whole run may be *seen* by chance alone: what the levels of the claims allow at most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from book_tools.parameters import Parameters
from book_tools.site.standings import Standing

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim


@dataclass(frozen=True)
class Budget:
    """The statistical claims that a run puts to the test, and how many false ones to expect at most, were none true.

    ``expected`` bounds the mean number of claims falsely *seen* by Σ (1 − level)/2 over the claims; by the union bound
    it bounds the probability that there is any, too.
    """

    due: int
    exact: int
    chapters: int
    supported: int
    expected: float

    def words(self) -> str:
        """The budget as a paragraph of the scoreboard."""
        if not self.due:
            tested = (
                f"no statistical claim is put to the test; of the {self.exact} exact ones none can be a false alarm"
            )
            return f"In this run {tested}.\n"
        return (
            f"{self.due} statistical claims of {self.chapters} chapters are put to the test in "
            f"this run, beside {self.exact} exact ones. The correction is made within each chapter, not over the book. "
            f"Were *none* of the {self.due} true, at most {self.expected:.2g} of them would be expected to come out "
            "*seen* all the same, in one run, and the probability that any does is at most "
            f"{min(1.0, self.expected):.0%}; where some are true it is less. {self.supported} of them came out "
            "*seen*. This assumes that the values of a claim are independent draws of a normal distribution, as "
            "Student's interval does, and that its statement, margin and level were fixed before the run. It does not "
            "count what is decided again: each later run with other code or seeds is another look. A false "
            "*opposite seen* has as much probability for an ordering, and at most twice as much for the other kinds, "
            "which can be missed on two sides.\n"
        )


def budget(found: Iterable[Standing], parameters: Parameters) -> Budget:
    """Return the budget of the claims that must hold where the book was run.

    A claim falsely *seen* errs on one side: an interval of level 1 − a lies wholly above a threshold that the mean does
    not exceed with probability at most a/2.  An interval inside ±margin, of a mean outside, errs at one end likewise.
    """
    from cfltr_book.reporting.claim_registry import EXACT, level_of

    due = [one for one in found if one.spec.gates(parameters.scale, parameters.corpus)]
    drawn: list[Standing] = [one for one in due if one.spec.kind not in EXACT]

    def alarm(spec: Claim) -> float:
        return (1.0 - level_of(spec)) / 2

    return Budget(
        len(drawn),
        len(due) - len(drawn),
        len({one.chapter.number for one in drawn}),
        sum(one.verdict == "supported" for one in drawn),
        sum(alarm(one.spec) for one in drawn),
    )
