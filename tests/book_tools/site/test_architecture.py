"""The page about the code has every module of every package, once, with what it is for, and the floors."""

from floors import modules_of, plan_of
from toy import REPOSITORY

from book_tools.book import GENERATED, Book
from book_tools.rendering import first_paragraph
from book_tools.site.architecture import NAME, PACKAGES, architecture, docstring


def test_every_module_and_every_floor_stands_on_the_page_once() -> None:
    assert NAME in GENERATED
    assert NAME in Book(REPOSITORY).pages()
    text = architecture()
    for package in PACKAGES:
        for name, path in modules_of(REPOSITORY / package).items():
            about = first_paragraph(docstring(path))
            assert text.count(f"- `{name}`: {about}\n") == 1, name
            assert 15 < len(about) < 300, name
        rooms = text.partition(f"## `{package}`")[2].partition(":::{dropdown}")[0]
        assert all(f"``{room}``" in rooms for room in plan_of(REPOSITORY / package).floors if room.isalpha())
