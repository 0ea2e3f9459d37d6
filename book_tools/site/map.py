"""The map on the front page: which chapter answers which question, and what each builds on.

Every chapter says itself what it builds on, in the line below its title; ``chapters/questions.yml`` has its question.
From nothing else the map is drawn: a row for each chapter, and a lane from each chapter down to those that build on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.notebooks import read_notebook, title_of
from book_tools.site.reading_time import RULE, in_words, minutes_of
from cfltr_core.files import write_whole

# The front page includes this file, which lies beside it while the site is built.
INCLUDED = "map.md"
QUESTIONS = "questions.yml"
SAID = re.compile(r"^\*Reading .*?Builds on (?P<what>.+)\.\*$", re.MULTILINE)
STATED = re.compile(r"^\*Reading (\d+) minutes", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\((\w+)\.ipynb\)")
# What may stand before a link without saying that only a part of the chapter needs it.
JOINING = {"", "and", ","}
# On paper, where what is HTML is left out, there is no picture and nothing to explain.
LEGEND = (
    "The line of a chapter leads down to those that build on it, and ends at the last of them; a dashed branch leads "
    "to one that needs it in a section or two."
)
# The picture, in pixels: the dots stand at LEFT, TOP of their rows, the lanes GAP apart to the left of them; what
# leaves a dot does so below what arrives, at LOW, and all turns are ROUND.
LEFT, TOP, DOT, GAP, LOW, ROUND = 70, 14, 5, 10, 32, 5


@dataclass(frozen=True)
class Stop:
    """A chapter on the map: ``on`` has the names of those it builds on, and whether all of it does.

    ``minutes`` is how long reading it takes by the rule, ``said`` what the line below its title says of that.
    """

    name: str
    title: str
    question: str
    part: int
    on: dict[str, bool]
    words: str
    minutes: float = 0.0
    said: int | None = None

    @property
    def number(self) -> str:
        """The number as it stands in the title."""
        return str(int(self.name.partition("_")[0]))


def write_map(book: Book) -> None:
    """Lay the map beside the staged front page, if that includes it."""
    if _wanted(book.stage / f"{book.pages()[0]}.md"):
        write_whole(book.stage / INCLUDED, drawn(book))


def check_map(book: Book) -> None:
    """Raise where the front page wants a map that cannot be drawn: better said before the chapters run than after."""
    if _wanted(book.root / f"{book.pages()[0]}.md"):
        stops(book)


def _wanted(page: Path) -> bool:
    return page.is_file() and f"{{include}} {INCLUDED}" in page.read_text(encoding="utf-8")


def builds_on(text: str) -> tuple[dict[str, bool], str] | None:
    """Return what a chapter says it builds on: names of chapters, True where all of it does, and the words themselves.

    A link after more words than *and* names what only a part of the chapter needs.  None where nothing is said.
    """
    found = SAID.search(text)
    if found is None:
        return None
    what, names, end = found["what"], {}, 0
    for link in LINK.finditer(what):
        names[link[1]] = set(what[end : link.start()].replace(",", " , ").split()) <= JOINING
        end = link.end()
    return names, what


def stops(book: Book) -> list[Stop]:
    """Return the chapters in the order of the contents, each with its question and what it builds on.

    Raises
    ------
    BookError
        Where a chapter lacks its question or the line below its title, or builds on one that does not come before it;
        where there is a question without a chapter.
    """
    path = book.root / "chapters" / QUESTIONS
    questions: Mapping[str, str] = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None) or {}
    parts = _parts(book)
    out: list[Stop] = []
    problems = [f"{QUESTIONS}: {name}: there is no such chapter" for name in questions if name not in parts]
    for chapter in book.chapters():
        place, earlier = chapter.source.name, {stop.name for stop in out}
        notebook = read_notebook(chapter.source)
        opening = "\n".join(cell.source for cell in notebook.cells[:1])
        said, stated = builds_on(opening), STATED.search(opening)
        if said is None:
            problems.append(
                f"{place}: its first cell does not say '*Reading … Builds on ….*', which the map is drawn from"
            )
        if chapter.name not in questions:
            problems.append(f"{place}: has no question; write the one that it answers into chapters/{QUESTIONS}")
        on, words = said or ({}, "")
        problems += [f"{place}: builds on {name}, which does not come before it" for name in on if name not in earlier]
        about = (chapter.name, title_of(notebook), questions.get(chapter.name, ""), parts[chapter.name], on, words)
        out.append(Stop(*about, minutes_of(notebook), int(stated[1]) if stated else None))
    if problems:
        raise BookError(*problems)
    return out


def _parts(book: Book) -> dict[str, int]:
    """Return in which part of the contents each chapter stands, counted from 0."""
    return {chapter.name: part for part, (_, chapters) in enumerate(_captions(book)) for chapter in chapters}


def _captions(book: Book) -> Iterator[tuple[str, list[Chapter]]]:
    """Yield the parts of the contents that have chapters, with their captions."""
    contents = yaml.safe_load(book.toc.read_text(encoding="utf-8"))
    by_page = {chapter.source.relative_to(book.root).with_suffix("").as_posix(): chapter for chapter in book.chapters()}
    for group in [contents, *contents.get("parts", [])]:
        found = [by_page[page["file"]] for page in group.get("chapters", []) if page["file"] in by_page]
        if found:
            yield group.get("caption", ""), found


def lanes(line: list[Stop]) -> dict[str, tuple[int, int]]:
    """Return for each chapter on which others build its lane, counted from the right, and the row of the last of them.

    A lane is free again in the row in which it ends; a chapter takes the first that is free.
    """
    row = {stop.name: index for index, stop in enumerate(line)}
    last: dict[str, int] = {}
    for stop in line:
        last |= dict.fromkeys(stop.on, row[stop.name])
    out: dict[str, tuple[int, int]] = {}
    for stop in line:
        if stop.name in last:
            taken = {lane for lane, end in out.values() if end > row[stop.name]}
            lane = next(lane for lane in range(len(line)) if lane not in taken)
            out[stop.name] = (lane, last[stop.name])
    return out


def needed(line: list[Stop]) -> dict[str, list[Stop]]:
    """Return for each chapter all those that it needs: what it builds on, what these build on, and so forth.

    Only links of whole chapters are followed: a section or two may be read, or left out, without what it needs.
    """
    below: dict[str, set[str]] = {}
    for stop in line:
        whole = [name for name, is_whole in stop.on.items() if is_whole]
        below[stop.name] = {*whole, *(deep for name in whole for deep in below[name])}
    return {stop.name: [one for one in line if one.name in below[stop.name]] for stop in line}


def reading_note(line: list[Stop]) -> str:
    """Say how long all chapters take together, by which rule, and how far the chapters' own words are from it."""
    total = (
        f"Together the {len(line)} chapters take about {in_words(sum(stop.minutes for stop in line))} to read. {RULE}."
    )
    apart = [abs(stop.said - stop.minutes) for stop in line if stop.said is not None]
    if not apart:
        return total
    return f"{total} What a chapter says below its title was set by hand; it differs by up to {max(apart):.0f} minutes."


def drawn(book: Book) -> str:
    """Return the map: a list in which every chapter has its piece of the picture, its link, question and roots."""
    line = stops(book)
    captions = [caption for caption, _ in _captions(book)]
    roots = needed(line)
    rows: list[str] = []
    for index, stop in enumerate(line):
        caption = captions[stop.part]
        if caption and (index == 0 or line[index - 1].part != stop.part):
            rows.append(f"- {_piece(line, index, caption=True)}**{caption}**\n")
        rows.append(
            f"- {_piece(line, index)}[{stop.title}](chapters/{stop.name}.ipynb)\n\n  {stop.question}\n\n"
            f"  About {in_words(stop.minutes)}. Builds on {_roots(stop, line)}.{_in_all(stop, roots[stop.name])}\n"
        )
    head = f'<div class="book-map">\n<p>{LEGEND}</p>\n\n{reading_note(line)}\n\n'
    return head + "\n".join(rows) + "\n</div>\n"


def _in_all(stop: Stop, roots: list[Stop]) -> str:
    """Say what a chapter needs in all, and how long that takes, where it is more than it builds on itself."""
    if {one.name for one in roots} <= {*stop.on}:
        return ""
    time = in_words(sum(one.minutes for one in roots))
    return f" Needs in all {spans([int(one.number) for one in roots])}, about {time} before it."


def spans(numbers: list[int]) -> str:
    """Return numbers in words, three and more in a row by the first and the last: *1–4, 9 and 11*."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [part for run in runs for part in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _roots(stop: Stop, line: list[Stop]) -> str:
    """Say what a chapter builds on, by number."""
    if not stop.on:
        return stop.words
    links = {
        whole: [f"[{one.number}](chapters/{one.name}.ipynb)" for one in line if stop.on.get(one.name) is whole]
        for whole in (True, False)
    }
    said = [" and ".join(links[True])] if links[True] else []
    said += ["in part on " + " and ".join(links[False])] if links[False] else []
    return "; ".join(said)


def _piece(line: list[Stop], index: int, caption: bool = False) -> str:
    """Draw one row: the lanes that pass, the branches that arrive, the lane that leaves, and the dot.

    It is as high as the row, whatever that is, so lanes are lines to 100 %, and everything else is near the top.
    """
    ways, stop = lanes(line), line[index]
    row = {one.name: place for place, one in enumerate(line)}
    marks = []
    for name, (lane, last) in ways.items():
        x, hue = LEFT - GAP * (lane + 1), f'class="part-{line[row[name]].part}"'
        passing = row[name] < index < last or (caption and row[name] < index <= last)
        if passing:
            marks.append(f'<line {hue} x1="{x}" y1="0" x2="{x}" y2="100%" />')
        if caption:
            continue
        if name == stop.name:
            turn = f"V{LOW - ROUND}Q{LEFT} {LOW} {LEFT - ROUND} {LOW}H{x + ROUND}Q{x} {LOW} {x} {LOW + ROUND}"
            marks.append(f'<path {hue} d="M{LEFT} {TOP + DOT}{turn}" />')
            marks.append(f'<line {hue} x1="{x}" y1="{LOW + ROUND}" x2="{x}" y2="100%" />')
        elif name in stop.on:
            dashed = "" if stop.on[name] else ' stroke-dasharray="3 3"'
            marks.append(f'<path {hue}{dashed} d="M{x} {TOP - ROUND}Q{x} {TOP} {x + ROUND} {TOP}H{LEFT - DOT}" />')
            if last == index:
                marks.append(f'<line {hue} x1="{x}" y1="0" x2="{x}" y2="{TOP - ROUND}" />')
    if not caption:
        marks.append(f'<circle class="part-{stop.part}" cx="{LEFT}" cy="{TOP}" r="{DOT}" />')
    # Without a view box its units are pixels, and a percentage is of the row.
    return f'<svg aria-hidden="true" width="{LEFT + 6}" height="100%">{"".join(marks)}</svg>'
