"""Several claims as one small table under one line of summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import NO_PREDICTION, Claim
from cfltr_book.reporting.claims import NO_VERDICT, ClaimResult
from cfltr_book.reporting.wording import EMPIRICAL, describe, is_control, outcome, required, spelt_out

# How a statement of each kind fails; the effect follows.  An ordering of data fails in the words of the scoreboard.
_FAILS = {
    "identity": "equality fails: off by up to",
    "inequality": "the bound fails: exceeded by up to",
    "ordering": "there is no such advantage: on average",
    "equivalence": "they differ: on average by",
    "number": "the value is another:",
    "limit": "the slope is another:",
}
_HEAD = ("claim", "measured", "verdict", "control")


@dataclass(frozen=True)
class Evidence:
    """Claims with what was measured, each verdict in words, and its negative control.

    A notebook shows the table folded under :attr:`summary`; where a verdict that is due is not the expected one, it
    stands open.  ``str`` gives the same as plain text.

    Parameters
    ----------
    results
        What :func:`cfltr_book.reporting.claims.claim` returned, one after the other.
    corpus, scale : str
        Where they were measured: what is expected depends on it.

    Raises
    ------
    ValueError
        Without a result, or for something that is none.
    """

    results: Sequence[ClaimResult]
    corpus: str
    scale: str

    def __post_init__(self) -> None:
        if not self.results:
            raise ValueError("results: there is none; pass what run.claim returns")
        for index, result in enumerate(self.results):
            if not isinstance(result, ClaimResult):
                raise ValueError(f"results[{index}] is a {type(result).__name__}: pass what run.claim returns")

    @property
    def summary(self) -> str:
        """One line: how many claims, how many of each verdict, how many controls held, and what was not expected."""
        claims = [r for r in self.results if not is_control(r.id)]
        controls = [r for r in self.results if is_control(r.id)]
        verdicts = Counter(r.verdict for r in claims)
        parts = [f"{number} {verdict}" for verdict, number in sorted(verdicts.items(), reverse=True)]
        line = "Evidence: " + ", ".join([_count(len(claims), "claim"), *parts] if claims else [])
        if controls:
            outcomes = Counter(map(self._outcome, controls))
            line += f"{'; ' if claims else ''}{_count(len(controls), 'control')}"
            line += f" {next(iter(outcomes))}" if len(outcomes) == 1 else ""
            line += ": " + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items()) if len(outcomes) > 1 else ""
        changed = sum(self._changed(r) for r in self.results)
        return line + (f"; {changed} not as expected" if changed else "")

    def words(self, result: ClaimResult) -> str:
        """The verdict in words: whether it was predicted, and, of a claim that fails, how it fails.

        A verdict that is the one of the last accepted run, but not the one that was predicted before the first
        measurement, has the prediction beside it; where nothing was predicted, nothing is said of it.  Of a run
        that does not put the claim to the test, at a smaller scale or on another corpus, they say which runs do.
        """
        spec = claim_registry.registry()[result.id]
        expected, predicted = _expected(result, self.corpus), spec.prediction(self.corpus)
        # Where the claim is not put to the test, an open verdict goes neither with the prediction nor against it.
        if result.verdict == expected and (result.verdict != "inconclusive" or spec.gates(self.scale, self.corpus)):
            against = predicted not in (NO_PREDICTION, result.verdict)
            words = f"{result.verdict} (predicted: {predicted})" if against else result.verdict
            if predicted == result.verdict != "supported":
                words += ", as predicted"
            failed = f": {_fails(spec, result)} {result.effect:.3g}" if result.verdict == "contradicted" else ""
            return words + failed
        if spec.is_news(result.verdict, self.corpus):
            return f"{result.verdict}, though no clear answer was expected"
        if self._changed(result):
            return f"{result.verdict}, but {expected} was expected"
        there = "no clear answer" if expected == "inconclusive" else expected
        return f"{result.verdict} here, which decides nothing: {spec.tested_where}; {there} is expected there"

    def __str__(self) -> str:
        rows = ["; ".join(cell for cell in row if cell) for row in self._rows()]
        return "\n".join([self.summary, *(f"- {row}" for row in rows)])

    def _repr_mimebundle_(self, **selection: Any) -> tuple[dict[str, str], dict[str, Any]]:
        # The mark lets the pages write the table anew from the registry, without running the chapter again.
        bundle = {"text/html": self.html(), "text/plain": str(self)}
        return bundle, {"cfltr": {"evidence": [r.id for r in self.results]}}

    def html(self, *, scoreboard: str | None = None, anchors: Collection[str] = ()) -> str:
        """The table as a folded block of HTML.

        ``scoreboard`` is the address of a page on which every claim has the anchor ``claim-<id>``: the ids become
        links to it.  The rows of the claims in ``anchors`` bear that anchor themselves.
        """
        head = "".join(f'<th scope="col">{name}</th>' for name in _HEAD)
        rows = ""
        for result, row in zip(self.results, self._rows(), strict=True):
            cells = [escape(cell) for cell in row]
            if scoreboard is not None:
                linked = f'(<a href="{escape(scoreboard)}#claim-{result.id}">{result.id}</a>; '
                cells[0] = linked.join(cells[0].rsplit(f"({result.id}; ", 1))
            anchor = f' id="claim-{result.id}"' if result.id in anchors else ""
            rows += f"<tr{anchor}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        is_open = " open" if any(map(self._changed, self.results)) else ""
        return (
            f'<details class="evidence"{is_open}><summary>{escape(self.summary)}</summary>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
        )

    def _rows(self) -> list[tuple[str, str, str, str]]:
        outcomes = {r.id: self._outcome(r) for r in self.results}
        out = []
        for result in self.results:
            spec = claim_registry.registry()[result.id]
            control = spec.control or ""
            if control:
                control += f" {outcomes[control]}" if control in outcomes else " (elsewhere in this chapter)"
            title = f"{spec.statement} ({result.id}; {spelt_out(spec.source)})"
            out.append((title, _measured(spec, result), self.words(result), control))
        return out

    def _outcome(self, control: ClaimResult) -> str:
        return {"supported": "held", "contradicted": "did not hold"}.get(control.verdict, "undecided here")

    def _changed(self, result: ClaimResult) -> bool:
        due = claim_registry.registry()[result.id].gates(self.scale, self.corpus)
        return due and not claim_registry.registry()[result.id].meets(result.verdict, self.corpus)


def _expected(result: ClaimResult, corpus: str) -> str:
    return claim_registry.registry()[result.id].expected(corpus)


def _fails(spec: Claim, result: ClaimResult) -> str:
    """How a contradicted claim fails."""
    called = outcome(spec, result.verdict, interval=result.interval)
    named = spec.kind == "ordering" and spec.nature == EMPIRICAL and not is_control(result.id)
    return f"{called}, on average" if named else _FAILS[spec.kind]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _measured(spec: Claim, result: ClaimResult) -> str:
    if result.verdict == NO_VERDICT:
        return result.reason
    text = f"{describe(spec)} {result.effect:.3g}"
    if result.reason:
        text += f"; {result.reason}"
    elif result.interval is not None and result.level is not None:
        low, high = result.interval
        text += f", {result.level:.1%} interval [{low:.3g}, {high:.3g}] over {spec.counted(result.seeds)}"
    return f"{text}; {required(spec)}"
