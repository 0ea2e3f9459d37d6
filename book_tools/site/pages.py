"""The pages that are written from a run: the scoreboard of claims, and the status of the build."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from book_tools.book import Book, Chapter
from book_tools.execution.artefacts import measured_claims
from book_tools.files import read_json
from book_tools.notebooks import read_notebook, title_of
from book_tools.parameters import Parameters
from book_tools.site.tables import duration, interval, number, table

if TYPE_CHECKING:
    from cfltr_core.reporting.claims import Claim, Measurement

# What turns executed notebooks into pages; the manifest names what they were executed with.
BUILDERS = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme")


def generated_pages(book: Book, parameters: Parameters) -> dict[str, str]:
    """Return the text of every generated page, by the name it has in the table of contents."""
    return {"chapters/scoreboard": scoreboard(book, parameters), "chapters/status": status(book, parameters)}


def scoreboard(book: Book, parameters: Parameters) -> str:
    """Return the page that lists every claim of the registry, as it is now, with what this run found."""
    from cfltr_core.reporting.claims import BUDGET, NO_VERDICT, VERDICTS, registry

    chapters = book.chapters()
    found = {name: measurement for name, (_, measurement) in measured_claims(book, chapters).items()}
    specs = {chapter: [spec for spec in registry().values() if spec.chapter == chapter.number] for chapter in chapters}
    outcomes = (*VERDICTS, NO_VERDICT)
    parts = [
        "# Scoreboard\n",
        "Every published claim that the book puts to the test, and what this run of the book found. "
        "A verdict is computed from the numbers of each seed, never written by hand; an interval that "
        "crosses the threshold makes it *inconclusive*. Where a claim need not hold, at this scale or on this corpus, "
        f"numbers that are not finite leave it with *{NO_VERDICT}*.\n",
        f"This run: {parameters}.\n",
        table(
            ["Chapter", "Claims", *(outcome.capitalize() for outcome in outcomes), "As expected"],
            [[_link(chapter), *_tally(specs[chapter], found, parameters.corpus, outcomes)] for chapter in chapters],
        ),
        f"{BUDGET}\n",
    ]
    for chapter in chapters:
        if specs[chapter]:
            parts.append(f"## {_link(chapter)}\n")
            parts += [_entry(spec, found.get(spec.id), spec.expected(parameters.corpus)) for spec in specs[chapter]]
    return "\n".join(parts)


def _tally(specs: list[Claim], found: dict[str, Measurement], corpus: str, outcomes: tuple[str, ...]) -> list[str]:
    verdicts = [found[spec.id].result.verdict for spec in specs if spec.id in found]
    expected = sum(found[spec.id].result.verdict == spec.expected(corpus) for spec in specs if spec.id in found)
    return [str(len(specs)), *(str(verdicts.count(outcome)) for outcome in outcomes), str(expected)]


def _entry(spec: Claim, measurement: Measurement | None, expected: str) -> str:
    """Return one claim as a list item: a table of so many columns could not be read on a phone."""
    verdict = measurement.result.verdict if measurement else "not measured"
    surprise = "" if verdict == expected else f" (expected: {expected})"
    statement = " ".join(spec.statement.split())
    return (
        f"- **{verdict.capitalize()}**{surprise}. {statement} *({spec.source})*\n\n"
        f"  {_measured(measurement) if measurement else ''}`{spec.id}`\n"
    )


def _measured(measurement: Measurement) -> str:
    result = measurement.result
    if result.reason:
        return f"Measured: {result.reason}. "
    effect = number(result.effect)
    if result.interval is not None and result.level is not None:
        effect += f", {result.level:.1%} interval {interval(result.interval)} over {result.seeds} seeds"
        if result.units is not None and result.units < result.seeds:
            effect += f" in {result.units} folds"
    else:
        effect += f" in {result.seeds} cases"
    return f"Measured: {effect}; threshold {number(result.threshold)}. "


def status(book: Book, parameters: Parameters) -> str:
    """Return the page that says what the site was built with and how long it took."""
    manifest = read_json(book.manifest)
    revision = manifest.get("revision") or "not under version control"
    changed = ", with uncommitted changes" if manifest.get("dirty") else ""
    packages = {**manifest.get("packages", {}), **{name: version(name) for name in BUILDERS}}
    timings = read_json(book.timings)
    chapters = book.chapters()
    known = [timings[chapter.name] for chapter in chapters if chapter.name in timings]
    rows = [[_link(chapter), duration(timings.get(chapter.name))] for chapter in chapters]
    rows.append(["all chapters together", duration(sum(known))])
    return "\n".join(
        [
            "# Status of this build\n",
            f"Run with {parameters}. Revision: {revision}{changed}.\n",
            "## Run times\n",
            "Wall-clock time of each chapter where this site was built, the start of Python included.\n",
            table(["Chapter", "Time"], rows),
            "## Versions\n",
            table(
                ["Package", "Version"],
                [["Python", str(manifest.get("python", ""))], *([f"`{k}`", v] for k, v in sorted(packages.items()))],
            ),
        ]
    )


def _link(chapter: Chapter) -> str:
    return f"[{title_of(read_notebook(chapter.source)) or chapter.name}]({chapter.source.name})"
