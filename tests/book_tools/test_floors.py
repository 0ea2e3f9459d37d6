"""The pipeline's four wings stand on one ground floor, imports point down, and the page about the code says so."""

from pathlib import Path

import pytest
from floors import REST, floor_problems, modules_of, plan_of
from toy import REPOSITORY

from book_tools.book import GENERATED, Book
from book_tools.errors import BookError, UsageError, for_each
from book_tools.files import digests_below
from book_tools.rendering import first_paragraph
from book_tools.site.architecture import NAME, PACKAGES, architecture, docstring

PIPELINE = REPOSITORY / "book_tools"
WINGS = ("execution", "colab", "site", "checks")
PLAN = plan_of(PIPELINE)


def test_the_pipeline_keeps_to_its_floors() -> None:
    """The wings stand above each other between the ground and the door, one room a floor; the door are two files."""
    assert floor_problems(PIPELINE, PLAN.floors, PLAN.beside) == []
    assert PLAN.beside == frozenset()
    rising = sorted(PLAN.floors, key=lambda room: (PLAN.floors[room], room))
    assert rising == [REST, *WINGS, "cli", "__init__", "__main__"]
    assert len({*PLAN.floors.values()}) == len(rising) - 1
    assert {name.split(".")[1] for name in modules_of(PIPELINE) if name.count(".") == 2} == set(WINGS)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A sound package: a ground floor of two modules, two rooms on the first floor, a door."""
    files = {
        "__init__.py": "",
        "ground.py": "import os\n\n\ndef _hidden(): ...\n",
        "earth.py": "from house.ground import __doc__ as doc\n",
        "left/__init__.py": "",
        "left/low.py": "from house import ground\nfrom house.earth import doc\n",
        "left/high.py": "import house.left.low\nfrom . import low as other\nfrom .low import ground\n",
        "right/__init__.py": "",
        "right/only.py": "class Only:\n    _own = 1\n\n    def show(self):\n        return self._own\n",
        "door.py": "from house.left import high, low\nfrom house.right.only import Only\n",
    }
    for name, text in files.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "house"


HOUSE = {REST: 0, "left": 1, "right": 1, "door": 2}


@pytest.mark.parametrize(
    ("module", "line", "message"),
    [
        ("ground", "from house.left.low import doc", "house.ground, line 1: imports house.left.low, which stands on"),
        ("ground", "def f():\n    from house import door", "house.ground, line 2: imports house.door, which stands on"),
        ("left/low", "import house.right.only", "house.left.low, line 1: imports house.right.only, a room beside"),
        ("left/low", "from ..right import only", "house.left.low, line 1: imports house.right.only, a room beside"),
        ("ground", "from house import earth", "a circle of imports: house.earth ← house.ground ← house.earth"),
        ("left/low", "from house.left.high import other", "a circle of imports: house.left"),
        ("door", "from house.ground import _hidden", "house.door, line 1: takes the private _hidden of house.ground"),
        ("door", "import house.ground as g\ng._hidden()", "house.door, line 2: takes the private _hidden of house.gro"),
        ("door", "import house.ground\nhouse.ground._hidden", "house.door, line 2: takes the private _hidden of house"),
        ("door", "from house import ground\ngetattr(ground, '_hidden')", "line 2: takes the private _hidden of house"),
        ("door", "from house.right.only import Only\nOnly._own", "line 2: takes the private _own of house.right.only"),
    ],
)
def test_what_breaks_the_plan(package: Path, module: str, line: str, message: str) -> None:
    assert floor_problems(package, HOUSE) == [], "it is sound"
    path = package / f"{module}.py"
    path.write_text(f"{line}\n{path.read_text()}")
    assert any(message in problem for problem in floor_problems(package, HOUSE))


def test_one_error_lists_the_problems_of_all() -> None:
    def half(number: int) -> int:
        if number % 2:
            raise BookError(f"{number} is odd")
        return number // 2

    assert for_each([2, 4], half) == [1, 2]
    with pytest.raises(UsageError) as raised:
        for_each([1, 2, 3], half, UsageError, "2 problems")
    assert raised.value.problems == ("1 is odd", "3 is odd", "2 problems")


def test_a_digest_belongs_to_the_content_and_the_path(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name, text in (("a", "x"), ("below/b", "x"), ("below/c", "y"), ("below/stamp", "z")):
        (tmp_path / name).write_text(text)
    digests = digests_below(tmp_path, "stamp")
    assert list(digests) == ["a", "below/b", "below/c"]
    assert digests["a"] == digests["below/b"] != digests["below/c"]


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
