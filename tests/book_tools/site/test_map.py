"""The map on the first page is what the chapters say they build on, and they build on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.site import map as book_map
from book_tools.site.map import (
    SAID,
    Stop,
    builds_on,
    check_map,
    drawn,
    lanes,
    needed,
    reading_note,
    spans,
    stops,
    write_map,
)
from book_tools.site.reading_time import RULE, in_words

LABEL = re.compile(r"^:label: (\S+)$|\$\$ \((\S+)\)$|^\((\S+)\)=$", re.MULTILINE)


def stop(number: int, *on: int, part: int = 0, half: tuple[int, ...] = ()) -> Stop:
    roots = {f"{one:02}_x": True for one in on} | {f"{one:02}_x": False for one in half}
    return Stop(f"{number:02}_x", f"{number}. X", "Why?", part, roots, "nothing")


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]


def names_in(path: Path) -> set[str]:
    """Labels of theorems, equations and sections, and figures, that a chapter defines."""
    text = "\n".join(sources(path))
    return {"".join(found) for found in LABEL.findall(text)} | set(re.findall(r"\"(fig-[\w-]+)\"", text))


@pytest.fixture(scope="module")
def line() -> list[Stop]:
    return stops(Book(REPOSITORY))


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("*Reading 35 minutes. Builds on basic probability.*", {}),
        ("*Reading 5. Builds on [A](01_a.ipynb) and [B](02_b.ipynb).*", {"01_a": True, "02_b": True}),
        (
            "*Reading 5. Builds on [A](01_a.ipynb), [B](02_b.ipynb) and, in two experiments, [C](03_c.ipynb).*",
            {"01_a": True, "02_b": True, "03_c": False},
        ),
        (
            "*Reading 5. Builds on [A](01_a.ipynb); section 5 uses the bound of [B](02_b.ipynb).*",
            {"01_a": True, "02_b": False},
        ),
    ],
)
def test_what_a_chapter_says_it_builds_on(said: str, names: dict[str, bool]) -> None:
    found = builds_on(f"# 1. X\n\n{said}\n\nMore.")
    assert found is not None
    assert found[0] == names
    assert builds_on("# 1. X\n\nReading is fun.") is None


def test_every_chapter_but_the_first_builds_on_another_and_all_on_the_first(line: list[Stop]) -> None:
    assert len(line) == len(Book(REPOSITORY).chapters())
    below = {line[0].name: set[str]()}
    assert line[0].on == {}
    for one in line[1:]:
        assert any(one.on.values()), f"{one.name} builds wholly on nothing"
        below[one.name] = {*one.on, *(deep for name in one.on for deep in below[name])}
        assert line[0].name in below[one.name]


def test_what_a_chapter_builds_on_it_also_uses(line: list[Stop]) -> None:
    """Outside that line it links to it, names it by number or subject, or refers to something that it defines."""
    paths = {chapter.name: chapter.source for chapter in Book(REPOSITORY).chapters()}
    unused = []
    for one in line:
        text = SAID.sub("", "\n".join(sources(paths[one.name])))
        for name in one.on:
            number = int(name[:2])
            named = re.search(rf"\b[Cc]hapters? (?:\d+(?:, | and ))*{number}\b", text)
            labels = [label for label in names_in(paths[name]) if f"`{label}`" in text]
            subject = re.search(rf"\[([^]]+)\]\({name}\.ipynb\)", one.words)
            assert subject is not None
            spoken = subject[1].lower().rstrip("s") in text.lower()
            if not (named or labels or spoken or f"({name}.ipynb" in text):
                unused.append((one.name, name))
    assert unused == []


def test_a_lane_is_nobody_elses_while_it_is_in_use(line: list[Stop]) -> None:
    for given in (line, [stop(1), stop(2, 1), stop(3, 1, 2), stop(4, 1), stop(5, 3)]):
        ways, row = lanes(given), {one.name: index for index, one in enumerate(given)}
        used = {name for one in given for name in one.on}
        assert set(ways) == used
        for name, (lane, last) in ways.items():
            assert last == max(row[one.name] for one in given if name in one.on)
            for other, (beside, end) in ways.items():
                if other != name and beside == lane:
                    assert last <= row[other] or end <= row[name]
    assert lanes([stop(1), stop(2, 1), stop(3, 2)]) == {"01_x": (0, 1), "02_x": (0, 2)}
    assert max(lane for lane, _ in lanes(line).values()) * book_map.GAP < book_map.LEFT - book_map.GAP


def test_the_map_has_every_chapter_its_question_and_its_roots(line: list[Stop]) -> None:
    text = drawn(Book(REPOSITORY))
    questions = yaml.safe_load((REPOSITORY / "chapters" / "questions.yml").read_text(encoding="utf-8"))
    assert list(questions) == [one.name for one in line]
    for one in line:
        opening = f"About {in_words(one.minutes)}. Builds on "
        assert f"[{one.title}](chapters/{one.name}.ipynb)\n\n  {questions[one.name]}\n\n  {opening}" in text
        row = text.partition(f"[{one.title}]")[2].partition("\n- ")[0]
        for name, whole in one.on.items():
            link = f"[{int(name[:2])}](chapters/{name}.ipynb)"
            assert link in row.partition("in part on")[0 if whole else 2]
    parts = [part["caption"] for part in yaml.safe_load((REPOSITORY / "_toc.yml").read_text())["parts"]]
    assert [caption for caption in parts if f"**{caption}**" in text] == parts[: len({one.part for one in line})]
    assert text.count("<circle ") == len(line)
    # One branch arrives for each that is built on; those of a part are dashed.
    assert text.count(f'H{book_map.LEFT - book_map.DOT}" />') == sum(len(one.on) for one in line)
    assert text.count("stroke-dasharray") == sum(not whole for one in line for whole in one.on.values())


def test_what_a_chapter_needs_in_all() -> None:
    given = [stop(1), stop(2, 1), stop(3, 2), stop(4, 3, half=(2,)), stop(5, 2, half=(4,)), stop(6, 4, 5)]
    found = {name[:2]: [int(one.number) for one in roots] for name, roots in needed(given).items()}
    # The second of 5's roots is needed in a section only, so that what it needs itself is not.
    assert found == {"01": [], "02": [1], "03": [1, 2], "04": [1, 2, 3], "05": [1, 2], "06": [1, 2, 3, 4, 5]}


def test_the_map_says_what_is_needed_in_all_where_that_is_more(line: list[Stop]) -> None:
    text = drawn(Book(REPOSITORY))
    for one in line:
        row = text.partition(f"[{one.title}](chapters/")[2].partition("\n- ")[0]
        roots = needed(line)[one.name]
        more = {root.name for root in roots} - {*one.on}
        assert ("Needs in all" in row) == bool(more)
        if more:
            time = in_words(sum(root.minutes for root in roots))
            assert f"Needs in all {spans([int(root.number) for root in roots])}, about {time} before it." in row
    assert spans([1, 2, 3, 4, 9, 11, 12]) == "1–4, 9, 11 and 12"
    assert spans([1, 2]) == "1 and 2"
    assert spans([7]) == "7"


def test_the_time_of_all_chapters_is_added_up_and_the_rule_stated(line: list[Stop]) -> None:
    note = reading_note(line)
    assert note in drawn(Book(REPOSITORY))
    assert f"about {in_words(sum(one.minutes for one in line))} to read. {RULE}." in note
    apart = [abs(one.minutes - (one.said or 0)) for one in line]
    assert f"differs by up to {max(apart):.0f} minutes." in note
    # What a chapter says was found by reading; the rule must not be far from it.
    assert max(apart) < 15
    assert abs(sum(one.minutes for one in line) / sum(one.said or 0 for one in line) - 1) < 0.1
    assert reading_note([stop(1)]).endswith(f"{RULE}.")


def write_chapters(toy: Toy, second: str = "Builds on [alpha](91_alpha.ipynb).") -> Book:
    for name, said in (("91_alpha", "Builds on nothing."), ("92_beta", second)):
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
    write_map(book)
    assert not (book.stage / "map.md").exists()
    page.write_text("# Toy\n\n:::{include} map.md\n:::\n")
    write_map(book)
    text = (book.stage / "map.md").read_text()
    assert "How?\n\n  About 5 minutes. Builds on [91](chapters/91_alpha.ipynb).\n" in text
    assert "Builds on nothing." in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("line", "92_beta.ipynb: its first cell does not say '*Reading … Builds on ….*'"),
        ("question", "92_beta.ipynb: has no question; write the one that it answers into chapters/questions.yml"),
        ("later", "91_alpha.ipynb: builds on 92_beta, which does not come before it"),
        ("gone", "questions.yml: 93_gamma: there is no such chapter"),
    ],
)
def test_a_map_that_cannot_be_drawn_says_what_is_missing(toy: Toy, change: str, message: str) -> None:
    book = write_chapters(toy, second="Easy." if change == "line" else "Builds on [alpha](91_alpha.ipynb).")
    questions = toy.root / "chapters" / "questions.yml"
    if change == "question":
        questions.write_text("91_alpha: Why?\n")
    if change == "gone":
        questions.write_text(questions.read_text() + "93_gamma: Who?\n")
    if change == "later":
        toy.contents("92_beta", "91_alpha")
        path = toy.root / "chapters" / "91_alpha.ipynb"
        path.write_text(path.read_text().replace("Builds on nothing", "Builds on [beta](92_beta.ipynb)"))
        second = toy.root / "chapters" / "92_beta.ipynb"
        second.write_text(second.read_text().replace("Builds on [alpha](91_alpha.ipynb)", "Builds on nothing"))
        toy.contents("91_alpha", "92_beta")
    with pytest.raises(BookError) as raised:
        stops(book)
    assert any(message in problem for problem in raised.value.problems), raised.value.problems
    # Nobody asked for a map yet; then it is told before the chapters run.
    check_map(book)
    (toy.root / "index.md").write_text("# Toy\n\n:::{include} map.md\n:::\n")
    for command in ("check", "book"):
        result = toy.cli(command)
        assert result.returncode == 1
        assert message in result.stdout
        assert "running" not in result.stdout
