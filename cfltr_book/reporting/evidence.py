"""Several claims as one small table under one line of summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import NO_PREDICTION
from cfltr_book.reporting.claims import ClaimResult
from cfltr_book.reporting.wording import is_control, outcome, spelt_out

_HEAD = ("claim", "measured", "verdict", "control")


@dataclass(frozen=True)
class Evidence:
    """Claims with what was measured, each verdict in words, and its negative control.

    A notebook shows the table folded under :attr:`summary`; where a verdict that is due is not the one on record, it
    stands open.  ``str`` gives the same as plain text.

    Parameters
    ----------
    results
        What :func:`cfltr_book.reporting.claims.claim` returned, one after the other.
    corpus, scale : str
        Where they were measured: what is on record depends on it.

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
                raise ValueError(
                    f"results[{index}] is a {type(result).__name__}: pass what run.claim returns, or the names of a "
                    'module and a section, as in run.evidence("ch01", "naive")'
                )

    @property
    def summary(self) -> str:
        """One line: how many claims and controls, and how many verdicts differ from those on record."""
        controls = sum(is_control(result.id) for result in self.results)
        counts = {"claim": len(self.results) - controls, "control": controls}
        parts = [f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items() if count]
        recorded = (claim_registry.registry()[r.id].recorded(self.scale, self.corpus) for r in self.results)
        others = sum(r.verdict != verdict for r, verdict in zip(self.results, recorded, strict=True))
        return f"Evidence: {', '.join(parts)}: {f'{others} not ' if others else ''}as on record"

    def words(self, result: ClaimResult) -> str:
        """The verdict in the words of the scoreboard, and what it is compared with.

        A verdict that is the one on record, but not the one predicted before the first measurement, has the prediction
        beside it; where nothing was predicted, nothing is said of it.  Of a run that does not put the claim to the
        test, at a smaller scale or on another corpus, they say which runs do.
        """
        spec, called = claim_registry.registry()[result.id], self._outcome(result)
        recorded = spec.recorded(self.scale, self.corpus)
        if result.verdict != recorded:
            record = f"on record: {outcome(spec, recorded)}"
            if spec.gates(self.scale, self.corpus):
                return f"{called} ({record})"
            return f"{called} here, which decides nothing: {spec.tested_where} ({record})"
        predicted = spec.prediction(self.corpus)
        as_said = (NO_PREDICTION, result.verdict)
        return called if predicted in as_said else f"{called} (predicted: {outcome(spec, predicted)})"

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
            out.append((title, result.measured, self.words(result), control))
        return out

    def _outcome(self, result: ClaimResult) -> str:
        return outcome(claim_registry.registry()[result.id], result.verdict, interval=result.interval)

    def _changed(self, result: ClaimResult) -> bool:
        spec = claim_registry.registry()[result.id]
        return spec.gates(self.scale, self.corpus) and not spec.meets(result.verdict, self.scale, self.corpus)
