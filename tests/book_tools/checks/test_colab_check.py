"""Running the copies as Colab would: what goes wrong there is found, and only that."""

import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from toy import REPOSITORY, Toy

from book_tools.book import Book, Chapter
from book_tools.checks import colab_check
from book_tools.checks.colab_check import PREINSTALLED, check_copies
from book_tools.colab.repository import VARIABLE, as_listed, origin_of
from book_tools.errors import BookError
from book_tools.parameters import Parameters


def test_without_copies_there_is_nothing_to_try(executed: Toy) -> None:
    assert "no copies of a complete run; make them with 'make book'" in executed.cli("colab-check", code=2)


class Standing:
    """Stands for an environment like Colab's, and for what is on top of it: the one these tests run in."""

    folder = Path(sys.prefix)

    def on_top(self, folder: Path) -> Path:
        return Path(sys.executable)


def stand_in(monkeypatch: pytest.MonkeyPatch, *lists: set[str]) -> None:
    """Let the environment of these tests stand for Colab's, with these lists of packages, one after the other."""
    listed = iter(lists)
    monkeypatch.setattr(colab_check, "BareEnvironment", lambda book, index: Standing())
    monkeypatch.setattr(colab_check, "packages", lambda python: next(listed))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"numpy==1", "STAMPED"}, None),
        ({"numpy==1"}, "installed nothing, stamped cfltr-core @ git+"),
        ({"numpy==1", "cfltr-core @ git+https://other.example/book@abc"}, "@abc, stamped cfltr-core @ git+"),
        ({"numpy==2", "STAMPED"}, "the installation changed what was there: numpy==1, numpy==2"),
    ],
)
def test_a_copy_is_run_and_what_it_installed_is_looked_at(
    built: Toy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    after: set[str],
    message: str | None,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    book = Book(built.root)
    stamped = as_listed(origin_of(book))
    lists = {"numpy==1"}, {stamped if line == "STAMPED" else line for line in after}
    stand_in(monkeypatch, *lists)
    if message is not None:  # what it installed is wrong, whatever it computes
        done = SimpleNamespace(DEVNULL=None, run=lambda *_, **__: SimpleNamespace(returncode=0))
        monkeypatch.setattr(colab_check, "subprocess", done)
    with nullcontext() if message is None else pytest.raises(BookError, match=re.escape(message)):
        check_copies(book, "smoke", ["91"], "", 1)
    assert ("91_alpha: as the chapter at scale smoke" in capsys.readouterr().out) == (message is None)


def test_a_copy_is_tried_at_the_scale_asked_for_and_with_kept_tables_where_it_begins(
    built: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    stand_in(monkeypatch)
    expected: list[tuple[str, str]] = []
    tried: list[tuple[str, str]] = []

    def execute(chapter: Chapter, parameters: Parameters, *_: object) -> None:
        expected.append((chapter.name, parameters.scale))

    def run_copy(_: Book, copy: Chapter, parameters: Parameters, *__: object) -> list[str]:
        tried.append((copy.name, parameters.scale))
        return ["stopped here"]

    monkeypatch.setattr(colab_check, "execute", execute)
    monkeypatch.setattr(colab_check, "_run_copy", run_copy)
    with pytest.raises(BookError, match="stopped here"):
        check_copies(Book(built.root), "ci", [], "", 1)
    assert sorted(tried) == [("01_toy", "ci"), ("91_alpha", "ci"), ("92_beta", "smoke")]
    # The site was built at scale smoke: only the other chapters have to be run once more.
    assert sorted(expected) == [("01_toy", "ci"), ("91_alpha", "ci")]


def test_a_copy_that_fails_shows_its_cell(rebuilt: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    copy = rebuilt.root / "_build" / "html" / "colab" / "92_beta.ipynb"
    copy.write_text(copy.read_text().replace("x = 3", "x = 3 / 0"))
    stand_in(monkeypatch, {"numpy==1"})
    with pytest.raises(BookError, match="this cell failed with ZeroDivisionError"):
        check_copies(Book(rebuilt.root), "smoke", ["92"], "", 1)


def test_the_versions_to_try_are_older_than_those_of_the_lock_and_complete() -> None:
    def pins(name: str) -> dict[str, tuple[int, ...]]:
        lines = (REPOSITORY / name).read_text().splitlines()
        pairs = (re.match(r"([\w.-]+)==(\d[\d.]*\d)", line) for line in lines)
        return {m[1].lower(): tuple(map(int, m[2].split("."))) for m in pairs if m}

    colab, lock = pins("book_tools/colab/constraints.txt"), pins("requirements.txt")
    assert {name.lower() for name in PREINSTALLED} - {"papermill"} <= colab.keys()
    assert {name for name in colab if colab[name] > lock[name]} == set()
    assert colab["torch"] == lock["torch"]
    assert colab["numpy"] < lock["numpy"]
    assert colab["pandas"] < lock["pandas"]
