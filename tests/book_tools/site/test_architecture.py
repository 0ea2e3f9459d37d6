"""The page about the code has every module of every package, once, with what it is for, and the floors."""

from __future__ import annotations

import pytest
from floors import modules_of, plan_of
from toy import REPOSITORY

from book_tools.book import GENERATED, Book
from book_tools.site.architecture import NAME, PACKAGES, architecture, first_paragraph


def test_the_page_has_its_place_in_the_contents() -> None:
    assert NAME in GENERATED
    assert NAME in Book(REPOSITORY).pages()


def test_every_module_and_every_floor_stands_on_it_once() -> None:
    text = architecture()
    for package in PACKAGES:
        for name, path in modules_of(REPOSITORY / package).items():
            assert text.count(f"- `{name}`: {first_paragraph(path)}\n") == 1, name
        rooms = text.partition(f"## `{package}`")[2].partition(":::{dropdown}")[0]
        assert all(f"``{room}``" in rooms for room in plan_of(REPOSITORY / package).floors if room.isalpha())


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_says_what_it_is_for_in_one_paragraph(name: str) -> None:
    texts = {module: first_paragraph(path) for module, path in modules_of(REPOSITORY / name).items()}
    assert [module for module, text in texts.items() if not 15 < len(text) < 300] == []
