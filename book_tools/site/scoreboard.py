"""The scoreboard: every claim with what was predicted and what this run of the book measured."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from book_tools.book import Book, Chapter
from book_tools.notebooks import read_notebook, title_of
from book_tools.parameters import Parameters
from book_tools.site.standings import NOT_MEASURED, Standing, numbers_of, standings, tally
from book_tools.site.tables import interval, number, table

if TYPE_CHECKING:
    from cfltr_core.reporting.claim_registry import Claim
    from cfltr_core.reporting.claims import Measurement

# Beside the chapters; one file per claim.
NUMBERS_FOLDER = "claims"
# What the short codes stand for; a small book may do without.
SOURCES_PAGE = "chapters/sources"
ROLES = {"published": "Published in one of the four sources", "own": "Our own"}
# The order of the columns and of the filter, with the outcomes that have no place in the tables of totals at the end.
MATHEMATICAL = ("true", "false", "undecided")
EMPIRICAL = ("seen", "opposite seen", "undecided")
CONTROLS = ("held", "did not hold", "undecided")
OUTCOMES = ("true", "false", "seen", "opposite seen", "held", "did not hold", "undecided", "no verdict", NOT_MEASURED)
INTRODUCTION = (
    "# Scoreboard\n",
    "Every claim that the book puts to the test: what it says, what was predicted before it was first measured, and "
    "what this run of the book found. A verdict is computed from the numbers of each seed, never written by hand.\n",
    "- A *mathematical* claim is **true** or **false**. Its chapter has the proof or the counterexample; the run "
    "checks it on numbers, and the check can fail.",
    "- An *empirical* claim is **seen** on `{corpus}`, its **opposite** is **seen** there, or it stays **undecided**: "
    "the interval over the seeds crosses the threshold. That the opposite is seen does not refute a paper that speaks "
    "of other data. An ordering counts as *opposite seen* also where the difference is surely smaller than the margin "
    "that was stated to matter: then its interval can lie on the paper's side of zero. Chapters and code say "
    "*supported*, *contradicted* and *inconclusive*.",
    "- A *control* is a repetition in which an effect must vanish or turn round. It **held** or it **did not hold**.\n",
    "The ids begin with a short code for the source{sources}. [How a verdict is reached](#sec-verdicts) stands at the "
    "end of the page.\n",
    "This run: {parameters}.\n",
)
INTERVALS = (
    "(sec-verdicts)=\n## How a verdict is reached\n",
    "Intervals are two-sided Student intervals across seeds, or across what a claim counts in their place. Within a "
    "chapter they hold together at {together:.0%}: each statistical claim of a chapter with m of them is judged at "
    "level 1 − {alpha:g}/m (Bonferroni). A false *supported* errs on one side only, so that a chapter raises such an "
    "alarm with probability at most {alarm:.1%}. This takes seeds as independent; the seeds of `digits` and of a "
    "`letor:` collection split the same data and are not quite. Seeds that read the same fold of a collection are "
    "averaged and count once. Identities and inequalities are exact: they have no false alarms. Fewer than {few} "
    "seeds or folds that all give the same value decide nothing. A control in which nothing differed on any seed could "
    "not have failed, and decides nothing either. An ordering claims that the difference matters: a difference that is "
    "real but smaller than the stated margin contradicts it.\n",
)
WITHDRAWN = (
    "## Withdrawn\n",
    "Statements that were replaced after they had been measured, with what they measured then and why they were "
    "replaced. They are not measured any more and decide nothing.\n",
)


def scoreboard(book: Book, parameters: Parameters) -> str:
    """Return the page that lists every claim of the registry, as it is now, with what this run found."""
    from cfltr_core.reporting.claim_registry import FAMILY_ALPHA, withdrawn
    from cfltr_core.reporting.intervals import FEW_UNITS

    found = standings(book)
    chapters = [chapter for chapter in book.chapters() if any(one.chapter == chapter for one in found)]
    numbers = {chapter.number for chapter in book.chapters()}
    gone = [spec for spec in withdrawn().values() if spec.chapter in numbers]
    where = ", see [the four sources](sources.md)" if SOURCES_PAGE in book.pages() else ""
    parts = [
        *(line.format(corpus=parameters.corpus, parameters=parameters, sources=where) for line in INTRODUCTION),
        _totals(found, parameters.corpus),
        _filter(found, gone, parameters.corpus),
    ]
    for chapter in chapters:
        parts.append(f"## {link_to(chapter)}\n")
        parts += [_row(one, parameters) for one in found if one.chapter == chapter]
    if gone:
        parts += WITHDRAWN
        parts += [_gone(spec, parameters.corpus) for spec in gone]
    share = {"together": 1 - FAMILY_ALPHA, "alpha": FAMILY_ALPHA, "alarm": FAMILY_ALPHA / 2, "few": FEW_UNITS}
    parts += [line.format(**share) for line in INTERVALS]
    return "\n".join(parts)


def numbers_files(book: Book) -> dict[str, str]:
    """Return the numbers that each verdict rests on, by the path of a file below the pages."""
    return {
        f"chapters/{NUMBERS_FOLDER}/{one.spec.id}.csv": numbers_of(one.measurement)
        for one in standings(book)
        if one.measurement
    }


def link_to(chapter: Chapter) -> str:
    """Return a link to a chapter from a page that lies beside it."""
    return f"[{title_of(read_notebook(chapter.source)) or chapter.name}]({chapter.source.name})"


def _totals(found: list[Standing], corpus: str) -> str:
    counts = tally(found)
    kept = Counter(one.group for one in found if one.predicted_as_measured(corpus))

    def rows(nature: str, outcomes: tuple[str, ...]) -> list[list[str]]:
        groups = [(name, (role, nature)) for role, name in ROLES.items()]
        groups = groups if nature else [("Controls", ("control", ""))]
        lines = []
        for name, group in groups:
            have = counts.get(group, Counter())
            rest = have.total() - sum(have[outcome] for outcome in outcomes)
            listed = [str(have[outcome]) for outcome in outcomes]
            lines.append([name, str(have.total()), *listed, str(rest), str(kept[group])])
        return lines

    parts = []
    for kind, nature, outcomes in (
        ("Mathematical claims", "mathematical", MATHEMATICAL),
        (f"Empirical claims, on {corpus}", "empirical", EMPIRICAL),
        ("Controls", "", CONTROLS),
    ):
        heads = [outcome.capitalize() for outcome in outcomes]
        parts.append(table([kind, "All", *heads, "Without a verdict", "As predicted"], rows(nature, outcomes)))
    return "\n".join(parts)


def _filter(found: list[Standing], gone: list[Claim], corpus: str) -> str:
    """Return two rows of buttons that leave only some claims to be seen; the style sheet does it, without a script."""
    from cfltr_core.reporting.wording import CONTROL, OWN, SOURCES, outcome, source_of

    outcomes = {one.outcome for one in found} | {outcome(spec, spec.expected(corpus)) for spec in gone}
    used = {one.source for one in found} | {source_of(spec.id) for spec in gone}
    sources = {_class(code): "our own" if code == OWN else name for code, name in SOURCES.items() if code in used}
    if CONTROL in used:
        sources[CONTROL] = "controls"
    verdicts = {_class(name): name for name in OUTCOMES if name in outcomes}
    if any(not one.predicted_as_measured(corpus) for one in found):
        verdicts["surprise"] = "not as predicted"
    return _buttons("verdict", verdicts) + _buttons("source", sources)


def _buttons(name: str, choices: dict[str, str]) -> str:
    buttons = "".join(
        f'<label><input type="radio" name="{name}" id="{name}-{key}"'
        f"{' checked' if key == 'all' else ''}> {escape(words)}</label>\n"
        for key, words in {"all": "all", **choices}.items()
    )
    return f'<fieldset class="claim-filter"><legend>{name.capitalize()}</legend>\n{buttons}</fieldset>\n\n'


def _row(one: Standing, parameters: Parameters) -> str:
    """Return one claim as a block: a table of so many columns could not be read on a phone."""
    spec, corpus = one.spec, parameters.corpus
    gates = spec.gates(parameters.scale, corpus)
    measured = _measured(spec, one.measurement) if one.measurement else ""
    lines = [
        f"Predicted: {_prediction(spec, corpus)}. Measured: {one.outcome}{measured}.",
        "" if gates else f"Decides nothing here: {spec.tested_where}.",
        _compared(one, corpus) if gates else "",
        _links(one),
    ]
    return _block(spec, one.outcome, " ".join(filter(None, lines)), not one.predicted_as_measured(corpus))


def _gone(spec: Claim, corpus: str) -> str:
    from cfltr_core.reporting.wording import outcome

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
        f"{' '.join(about.why.split())} `{spec.id}`",
    ]
    changed = spec.prediction(corpus) != spec.expected(corpus)
    return _block(spec, outcome(spec, spec.expected(corpus)), " ".join(filter(None, lines)), changed)


def _block(spec: Claim, outcome: str, about: str, is_surprise: bool) -> str:
    from cfltr_core.reporting.wording import source_of, spelt_out

    classes = f"claim verdict-{_class(outcome)} source-{_class(source_of(spec.id))}"
    classes += " withdrawn" if spec.withdrawn else ""
    classes += " verdict-surprise" if is_surprise else ""
    nature = "Control" if source_of(spec.id) == "control" else spec.nature.capitalize()
    return (
        f'<div class="{classes}" id="claim-{spec.id}">\n\n'
        f'<span class="verdict">{outcome.capitalize()}</span> {" ".join(spec.statement.split())} '
        f"*({spelt_out(spec.source)})*\n\n"
        f"{nature}. {about}\n\n</div>\n"
    )


def _prediction(spec: Claim, corpus: str) -> str:
    from cfltr_core.reporting.claim_registry import NO_PREDICTION
    from cfltr_core.reporting.wording import outcome

    predicted = spec.prediction(corpus)
    return "nothing, written after a first measurement" if predicted == NO_PREDICTION else outcome(spec, predicted)


def _compared(one: Standing, corpus: str) -> str:
    """Say where this run differs from the last accepted one."""
    from cfltr_core.reporting.wording import outcome

    expected = one.spec.expected(corpus)
    return "" if one.verdict == expected else f"**The last accepted run: {outcome(one.spec, expected)}.**"


def _links(one: Standing) -> str:
    """Lead to what measured the claim: its place in the chapter, the figure beside it, the numbers, the control."""
    spec, page = one.spec, f"{one.chapter.name}.html"
    place = f"#claim-{spec.id}" if one.is_shown else ""
    links = [f'<a href="{page}{place}">Where it was measured</a>' if one.measurement else ""]
    if one.figure:
        links.append(f'<a href="{page}#{one.figure}">figure beside it</a>')
    if one.measurement:
        links.append(f"{{download}}`numbers (CSV) <{NUMBERS_FOLDER}/{spec.id}.csv>`")
    if spec.control:
        links.append(f"control: {_anchor(spec.control)}")
    return " · ".join(filter(None, [*links, f"`{spec.id}`"]))


def _anchor(id: str) -> str:
    return f'<a href="#claim-{id}">{id}</a>'


def _measured(spec: Claim, measurement: Measurement) -> str:
    from cfltr_core.reporting.claims import NO_VERDICT
    from cfltr_core.reporting.wording import describe, required

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


def _class(words: str) -> str:
    return words.lower().replace(" ", "-")
