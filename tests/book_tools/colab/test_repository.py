"""The address of the repository is found in one place, and nothing points to what that place does not hold."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_markdown_cell
from toy import REPOSITORY, Toy

from book_tools.colab.repository import (
    CHAPTERS,
    EXTRAS,
    NUMBERS_VARIABLE,
    VARIABLE,
    Origin,
    extras_of,
    find_repository,
    install_source,
    stamp_of,
)
from book_tools.errors import UsageError

GITHUB = "https://github.com/Someone/the-book.git"
ELSEWHERE = "https://git.example/someone/the-book"


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def clone(folder: Path, origin: str | None) -> Path:
    Toy.at(folder).git("init", "--quiet")
    if origin:
        Toy.at(folder).git("remote", "add", "origin", origin)
    return folder


@pytest.mark.parametrize(
    ("origin", "found"),
    [
        (GITHUB, GITHUB),
        (f"{ELSEWHERE}/", ELSEWHERE),
        *((f"https://{host}/book", None) for host in ("token@git.example", "user:secret@git.example", "localhost")),
        *((f"https://{host}/book", None) for host in ("machine.local", "127.0.0.1", "10.0.0.7:3000")),
        *((origin, None) for origin in ("git@github.com:someone/the-book.git", "http://git.example/book")),
        *((origin, None) for origin in (None, "../elsewhere", "https://git.example/a'b")),
    ],
)
def test_the_origin_counts_when_everybody_can_reach_it(tmp_path: Path, origin: str | None, found: str | None) -> None:
    assert find_repository(tmp_path) is None, "there is none outside"
    assert find_repository(clone(tmp_path, origin)) == found
    (tmp_path / "inner").mkdir()
    assert find_repository(tmp_path / "inner") is None, "nor inside another"


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone(tmp_path, "https://git.example/book")
    monkeypatch.setenv(VARIABLE, "https://other.example/book")
    assert find_repository(tmp_path) == "https://other.example/book"
    monkeypatch.setenv(VARIABLE, "")
    assert find_repository(tmp_path) == "https://git.example/book"
    monkeypatch.setenv(VARIABLE, "git@other.example:book")
    with pytest.raises(UsageError, match=r"CFLTR_REPOSITORY=git@.*expected a public address"):
        find_repository(tmp_path)


@pytest.mark.parametrize(
    ("address", "site", "colab"),
    [
        (GITHUB, "https://someone.github.io/the-book/", "Someone/the-book"),
        ("https://github.com/Someone/someone.github.io", "https://someone.github.io/", "Someone/someone.github.io"),
        (ELSEWHERE, None, None),
    ],
)
def test_what_follows_from_an_address(address: str, site: str | None, colab: str | None) -> None:
    origin = Origin(address, None, None)
    opened = colab and f"https://colab.research.google.com/github/{colab}/blob/colab/01_a.ipynb"
    assert (origin.site, origin.colab("01_a.ipynb")) == (site, opened)


def run_install_cell(origin: Origin, module: str, extras: tuple[str, ...] = ()) -> list[str]:
    """Run the cell with another module in place of the package; return the magic commands that it gave."""
    commands: list[str] = []

    class Shell:
        def run_line_magic(self, name: str, line: str) -> None:
            commands.append(f"%{name} {line}")

    source = install_source(origin, extras).replace("cfltr_book", module)
    plain = TransformerManager().transform_cell(source)
    exec(compile(plain, "cell", "exec"), {"get_ipython": Shell})
    return commands


@pytest.mark.parametrize("repository", [GITHUB, ELSEWHERE])
@pytest.mark.parametrize("extras", [(), ("logs",)])
def test_the_install_cell_installs_the_stamped_revision_once(repository: str, extras: tuple[str, ...]) -> None:
    origin, named = Origin(repository, "abc123", False), ",".join([CHAPTERS, *extras])
    assert run_install_cell(origin, "json", extras) == []
    wanted = f'%pip install -q "cfltr-core[{named}] @ git+{repository}@abc123"'
    assert run_install_cell(origin, "no_such_module", extras) == [wanted]


def test_the_numbers_of_figures_are_told_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NUMBERS_VARIABLE, "{}")
    source = install_source(Origin(None, None, None), numbers={"fig-a": "Fig. 1.1", "fig-b": 'Fig. "1.2"'})
    exec(compile(source.replace("cfltr_book", "json"), "cell", "exec"), {})
    assert json.loads(os.environ[NUMBERS_VARIABLE]) == {"fig-a": "Fig. 1.1", "fig-b": 'Fig. "1.2"'}
    assert NUMBERS_VARIABLE not in install_source(Origin(None, None, None))


def test_a_notebook_that_reads_events_installs_the_extra_for_it() -> None:
    cells = [new_code_cell("events = cf.read_events(source, features)"), new_markdown_cell("`read_events()`")]
    assert extras_of(cells) == ("logs",)
    assert extras_of(cells[1:]) == ()
    assert extras_of([new_code_cell("logs = open_bandit()")]) == ("real",)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert {CHAPTERS, *EXTRAS} <= set(project["optional-dependencies"])


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (Origin(None, "abc123", False), "made from revision abc123, and no public repository is known"),
        (Origin(GITHUB, "abc123", True), "uncommitted changes on top of revision abc123, which does not hold them"),
        (Origin(GITHUB, "abc123", None), "no repository holds that"),
        (Origin(GITHUB, None, None), "made from files that are under no version control"),
    ],
)
def test_a_copy_that_cannot_install_says_why_and_what_to_do(origin: Origin, message: str) -> None:
    assert run_install_cell(origin, "json") == []
    remedy = r"run `pip install '\.\[chapters,logs\]'` in the clone of the book"
    with pytest.raises(ModuleNotFoundError, match=remedy) as raised:
        run_install_cell(origin, "no_such_module", ("logs",))
    assert message in str(raised.value)
    assert "git+" not in install_source(origin)
    assert stamp_of(origin) in str(raised.value)
