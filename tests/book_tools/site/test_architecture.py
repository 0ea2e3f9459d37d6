"""The page about the code says what the imports say: every module, every floor, and no arrow that points up."""

from __future__ import annotations

import re

import pytest
from toy import REPOSITORY

from book_tools.book import GENERATED, Book
from book_tools.site.architecture import (
    BOX,
    NAME,
    PACKAGES,
    architecture,
    drawing,
    first_line,
    rooms_below,
    without_detours,
)
from book_tools.site.floors import DOOR, modules_of, plan_of

ARROW = re.compile(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"')


def test_the_page_has_its_place_in_the_contents() -> None:
    assert NAME in GENERATED
    assert NAME in Book(REPOSITORY).pages()


def test_every_module_of_both_packages_stands_on_it_once() -> None:
    text = architecture()
    for package in PACKAGES:
        for name, path in modules_of(REPOSITORY / package).items():
            assert text.count(f"- `{name}`: {first_line(path)}\n") == 1, name


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_says_what_it_is_for_in_one_paragraph(name: str) -> None:
    silent = [module for module, path in modules_of(REPOSITORY / name).items() if not 15 < len(first_line(path)) < 300]
    assert silent == []


@pytest.mark.parametrize("name", PACKAGES)
def test_arrows_point_down_or_are_the_one_that_is_allowed_beside(name: str) -> None:
    package = REPOSITORY / name
    plan, edges = plan_of(package), rooms_below(package)
    picture = drawing(name, plan, edges)
    arrows = [tuple(map(float, found)) for found in ARROW.findall(picture)]
    assert len(arrows) == len(without_detours(edges))
    level = [(x1, y1, x2, y2) for x1, y1, x2, y2 in arrows if y1 >= y2]
    assert all(y1 == y2 for _, y1, _, y2 in level)
    assert len(level) == len(plan.beside)
    rooms = {*plan.floors} - {DOOR[1]}
    assert picture.count("<rect ") == len(rooms)
    # No box leaves the picture or lies on another.
    boxes = [tuple(map(float, found)) for found in re.findall(r'<rect x="([\d.-]+)" y="([\d.-]+)"', picture)]
    assert all(0 <= x <= 360 - BOX for x, _ in boxes)
    assert all(abs(x - u) >= BOX or y != v for x, y in boxes for u, v in boxes if (x, y) != (u, v))


def test_the_imports_are_those_of_the_sources() -> None:
    edges = rooms_below(REPOSITORY / "cfltr_core")
    assert edges["checks"] == set()
    assert edges["ranking"] == {"checks", "files"}
    assert "learning" in edges["__init__"]
    assert "evaluation" not in edges["propensity"]


def test_a_short_cut_of_a_longer_way_is_not_drawn() -> None:
    edges = {"top": {"middle", "low"}, "middle": {"low"}, "low": set()}
    assert without_detours(edges) == [("middle", "low"), ("top", "middle")]


def test_what_is_seen_is_also_said() -> None:
    for label in re.findall(r'role="img" aria-label="([^"]+)"', architecture()):
        assert "imports from" in label
    text = architecture()
    assert text.count('role="img"') == len(PACKAGES)
    assert "Imports from: `checks`, `clicks`, `evaluation`, `files`, `ranking`, `sampling`." in text
