"""One claim of the scoreboard as a block: a table of so many columns could not be read on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from book_tools.parameters import Parameters
from book_tools.site.standings import Standing
from book_tools.site.tables import interval, number

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim
    from cfltr_book.reporting.claims import Measurement

# Beside the chapters; one file per claim.
NUMBERS_FOLDER = "claims"
# A reason of so many characters stands open.
SHORT = 100


def claim_row(
    one: Standing, parameters: Parameters, replaced: Sequence[str] = (), outcomes: Mapping[str, str] | None = None
) -> str:
    """Return one claim as a block, with the ids of the withdrawn claims that it replaced.

    ``outcomes`` says of every claim what came out, so that a control's outcome stands beside what it controls.
    """
    spec, corpus = one.spec, parameters.corpus
    gates = spec.gates(parameters.scale, corpus)
    measured = _measured(spec, one.measurement) if one.measurement else ""
    lines = [
        f"Predicted: {_prediction(spec, corpus)}. Measured: {one.outcome}{measured}.",
        "" if gates else f"Decides nothing here: {spec.tested_where}.",
        _compared(one, parameters) if gates else "",
        _predecessors(replaced),
        _links(one, outcomes or {}),
    ]
    about = f"{' '.join(filter(None, lines))}\n\n{_reason(spec)}"
    return _block(spec, one.outcome, about, not one.predicted_as_measured(corpus))


def withdrawn_row(spec: Claim, corpus: str, replaced: Sequence[str] = ()) -> str:
    """Return a withdrawn claim as a block, with what it measured, what replaced it, and what it had replaced itself."""
    from cfltr_book.reporting.wording import outcome

    about = spec.withdrawn
    if about is None:
        raise ValueError(f"{spec.id} stands: only a withdrawn claim is listed here")
    measured = (
        outcome(spec, about.measured)
        if isinstance(about.measured, str)
        else ", ".join(f"{outcome(spec, verdict)} on `{name}`" for name, verdict in about.measured.items())
    )
    lines = [
        f"Predicted: {_prediction(spec, corpus)}. Measured: {measured}.",
        f"Replaced by {_anchor(about.replaced_by)}." if about.replaced_by else "",
        _predecessors(replaced),
        f"{' '.join(about.why.split())} `{spec.id}`",
    ]
    found = spec.recorded(spec.scale, corpus)
    text = f"{' '.join(filter(None, lines))}\n\n{_reason(spec)}"
    return _block(spec, outcome(spec, found), text, spec.prediction(corpus) != found)


def _block(spec: Claim, outcome: str, about: str, is_surprise: bool) -> str:
    from cfltr_book.reporting.wording import source_of, spelt_out

    classes = f"claim verdict-{class_of(outcome)} source-{class_of(source_of(spec.id))}"
    classes += " withdrawn" if spec.withdrawn else ""
    classes += " verdict-surprise" if is_surprise else ""
    nature = "Control" if source_of(spec.id) == "control" else spec.nature.capitalize()
    return (
        f'<div class="{classes}" id="claim-{spec.id}">\n\n'
        f'<span class="verdict">{outcome.capitalize()}</span> {" ".join(spec.statement.split())} '
        f"*({spelt_out(spec.source)})*\n\n"
        f"{nature}. {about}\n\n</div>\n"
    )


def _predecessors(replaced: Sequence[str]) -> str:
    """Lead back to the withdrawn claims that this one took the place of."""
    return f"Took the place of {' and '.join(map(_anchor, replaced))}, withdrawn." if replaced else ""


def _reason(spec: Claim) -> str:
    """Say why the margin or the tolerance is what it is, folded where that takes more than a line or two."""
    from cfltr_book.reporting.claim_registry import EXACT

    text = " ".join(spec.reason.split()).removesuffix(".")
    size = f"a tolerance of {spec.tolerance:g}" if spec.kind in EXACT else f"a margin of {spec.margin:g}"
    if len(text) <= SHORT:
        return f"Why {size}: {text}."
    return f'<details class="reason"><summary>Why {size}</summary>\n\n{text[0].upper()}{text[1:]}.\n\n</details>'


def _prediction(spec: Claim, corpus: str) -> str:
    from cfltr_book.reporting.claim_registry import NO_PREDICTION
    from cfltr_book.reporting.wording import outcome

    predicted = spec.prediction(corpus)
    return "nothing, written after a first measurement" if predicted == NO_PREDICTION else outcome(spec, predicted)


def _compared(one: Standing, parameters: Parameters) -> str:
    """Say where this run differs from the last accepted one."""
    from cfltr_book.reporting.wording import outcome

    recorded = one.spec.recorded(parameters.scale, parameters.corpus)
    return "" if one.verdict == recorded else f"**On record: {outcome(one.spec, recorded)}.**"


def _links(one: Standing, outcomes: Mapping[str, str]) -> str:
    """Lead to what measured the claim: its place in the chapter, the figure beside it, the numbers, the control."""
    spec, page = one.spec, f"{one.chapter.name}.html"
    place = f"#claim-{spec.id}" if one.is_shown else ""
    links = [f'<a href="{page}{place}">Where it was measured</a>' if one.measurement else ""]
    if one.figure:
        links.append(f'<a href="{page}#{one.figure}">figure beside it</a>')
    if one.measurement:
        links.append(f"{{download}}`numbers (CSV) <{NUMBERS_FOLDER}/{spec.id}.csv>`")
    if spec.control:
        came_out = f" ({outcomes[spec.control]})" if spec.control in outcomes else ""
        links.append(f"control: {_anchor(spec.control)}{came_out}")
    return " · ".join(filter(None, [*links, f"`{spec.id}`"]))


def _anchor(id: str) -> str:
    return f'<a href="#claim-{id}">{id}</a>'


def _measured(spec: Claim, measurement: Measurement) -> str:
    from cfltr_book.reporting.claims import NO_VERDICT
    from cfltr_book.reporting.wording import describe, required

    result = measurement.result
    if result.verdict == NO_VERDICT:
        return f" ({result.reason})"
    effect = f"{describe(spec)} {number(result.effect)}"
    if result.reason:
        effect += f"; {result.reason}"
    elif result.interval is not None and result.level is not None:
        effect += f", {result.level:.1%} interval {interval(result.interval)} over {spec.counted(result.seeds)}"
        if result.units is not None and result.units < result.seeds:
            effect += f" in {result.units} folds"
    else:
        effect += f" in {result.seeds} cases"
    return f" ({effect}; {required(spec)})"


def class_of(words: str) -> str:
    """Return words as the name of a class of the style sheet."""
    return words.lower().replace(" ", "-")
