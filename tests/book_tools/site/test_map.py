"""The map on the first page is what the chapters say they build on, and they build on it."""

import json
import re
from pathlib import Path

import pytest
from toy import REPOSITORY, Toy
from visible import cells_of, path_words, prose_of

from book_tools.book import Book
from book_tools.cli import main
from book_tools.parameters import Parameters
from book_tools.site.map import BELOW_TITLE, Entry, check_map, map_entries, map_of
from book_tools.site.pages import write_accompanying

LABEL = re.compile(r"^:label: (\S+)$|\$\$ \((\S+)\)$|^\((\S+)\)=$", re.MULTILINE)


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]


def names_in(path: Path) -> set[str]:
    """Labels of theorems, equations and sections, and figures, that a chapter defines."""
    text = "\n".join(sources(path))
    return {"".join(found) for found in LABEL.findall(text)} | set(re.findall(r"\"(fig-[\w-]+)\"", text))


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return map_entries(Book(REPOSITORY))


def test_every_chapter_but_the_first_builds_on_another_and_all_on_the_first(entries: list[Entry]) -> None:
    assert len(entries) == len(Book(REPOSITORY).chapters())
    below = {entries[0].name: set[str]()}
    assert entries[0].builds_on == []
    for one in entries[1:]:
        below[one.name] = {*one.builds_on, *(deep for name in one.builds_on for deep in below[name])}
        assert entries[0].name in below[one.name]


def test_what_a_chapter_builds_on_it_also_uses(entries: list[Entry]) -> None:
    """Outside that line it links to it, names it by number or subject, or refers to something that it defines."""
    paths = {chapter.name: chapter.source for chapter in Book(REPOSITORY).chapters()}
    unused = []
    for one in entries:
        text = BELOW_TITLE.sub("", "\n".join(sources(paths[one.name])))
        for name in one.builds_on:
            number = int(name[:2])
            named = re.search(rf"\b[Cc]hapters? (?:\d+(?:, | and ))*{number}\b", text)
            labels = [label for label in names_in(paths[name]) if f"`{label}`" in text]
            subject = re.search(rf"\[([^]]+)\]\({name}\.ipynb\)", one.about)
            assert subject is not None
            spoken = subject[1].lower().rstrip("s") in text.lower()
            if not (named or labels or spoken or f"({name}.ipynb" in text):
                unused.append((one.name, name))
    assert unused == []


def test_the_map_has_every_chapter_with_its_question_and_its_line(entries: list[Entry]) -> None:
    text = map_of(Book(REPOSITORY))
    for one in entries:
        row = text.partition(f"- [{one.title}](chapters/{one.name}.ipynb): {one.question}")[2].partition("\n- ")[0]
        assert f"Reading {one.minutes} minutes" in row
        assert all(f"](chapters/{name}.ipynb)" in row for name in one.builds_on)


def test_the_time_that_a_chapter_states_is_near_what_stands_open_on_it(entries: list[Entry]) -> None:
    """A minute for 80 words of the path, or for 6 visible lines of code."""
    for one, chapter in zip(entries, Book(REPOSITORY).chapters(), strict=True):
        cells = cells_of(json.loads(chapter.source.read_text(encoding="utf-8")))
        minutes = path_words(prose_of(cells)) / 80 + sum(cell.lines for cell in cells if cell.is_visible) / 6
        assert abs(one.minutes - minutes) < 15, one.name


def write_chapters(toy: Toy) -> Book:
    for name, said in (("91_alpha", "Builds on nothing."), ("92_beta", "Builds on [alpha](91_alpha.ipynb).")):
        path = toy.chapter(name)
        content = json.loads(path.read_text())
        content["cells"][0]["source"] += f"\n\n*Reading a minute. {said}*"
        path.write_text(json.dumps(content))
    toy.contents("91_alpha", "92_beta")
    (toy.root / "chapters" / "questions.yml").write_text("91_alpha: Why?\n92_beta: How?\n")
    return Book(toy.root)


def test_the_map_lies_beside_the_page_that_includes_it(toy: Toy) -> None:
    book = write_chapters(toy)
    book.stage.mkdir(parents=True)
    page = book.stage / "index.md"
    page.write_text("# Toy\n")
    write_accompanying(book, Parameters())
    assert not (book.stage / "map.md").exists()
    page.write_text("# Toy\n\n:::{include} map.md\n:::\n")
    write_accompanying(book, Parameters())
    text = (book.stage / "map.md").read_text()
    assert "How?\n\n  Reading a minute. Builds on [alpha](chapters/91_alpha.ipynb).\n" in text
    assert "Builds on nothing." in text


ALPHA, BETA = "Builds on [alpha](91_alpha.ipynb)", "Builds on [beta](92_beta.ipynb)"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("92_beta.ipynb", ALPHA, "Easy", "92_beta.ipynb: its first cell does not say '*Reading … Builds on ….*'"),
        ("questions.yml", "92_beta: How?", "", "92_beta.ipynb: has no question; write the one that it answers"),
        ("91_alpha.ipynb", "Builds on nothing", BETA, "91_alpha.ipynb: builds on 92_beta, which does not come before"),
        ("questions.yml", "How?", "How?\n93_gamma: Who?", "questions.yml: 93_gamma: there is no such chapter"),
    ],
)
def test_a_map_that_cannot_be_written_says_what_is_missing(
    toy: Toy, capsys: pytest.CaptureFixture[str], name: str, old: str, new: str, message: str
) -> None:
    book = write_chapters(toy)
    path = toy.root / "chapters" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    # Nobody asked for a map yet; then it is told before the chapters run.
    check_map(book)
    (toy.root / "index.md").write_text("# Toy\n\n:::{include} map.md\n:::\n")
    for command in ("check", "book"):
        assert main(["--root", str(toy.root), command]) == 1
        said = capsys.readouterr()
        assert message in said.err
        assert "running" not in said.out
