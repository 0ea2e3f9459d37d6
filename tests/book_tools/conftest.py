"""Fixtures of the pipeline's tests."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from colab_book import ADDRESS, write_book
from toy import FIGURE, RECORD, Toy


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Toy], None]) -> Toy:
    """The book that ``make`` makes, for all workers by the one that asks first."""
    here = tmp_path_factory.getbasetemp()
    folder = (here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder / "book", ignore_errors=True)
            make(Toy(folder / "book"))
            (folder / "whole").touch()
    return Toy.at(folder / "book")


def execute(toy: Toy) -> None:
    toy.chapter("91_alpha", FIGURE, RECORD, "print(scale, object())", "Text\n\nSee {numref}`fig-toy`.")
    toy.chapter("92_beta", "x = 3\nx", "Text\n\n$$\ny = x\n$$ (eq-toy)\n\nSee {eq}`eq-toy`.")
    toy.contents("91_alpha", "92_beta", "scoreboard", "status")
    toy.cli("run", "--scale", "smoke", "--jobs", "2")


def build(toy: Toy) -> None:
    write_book(toy)
    (toy.root / ".gitignore").write_text("_build/\n")
    for command in ("init --quiet", "add --all", "commit --quiet -m x", f"remote add origin {ADDRESS}"):
        toy.git(*command.split())
    (toy.root / "_build" / "printed.txt").write_text(toy.cli("book", "--scale", "smoke", CFLTR_REPOSITORY=""))


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A book without chapters."""
    return Toy(tmp_path / "book")


@pytest.fixture(scope="session")
def executed_once(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A book of two chapters, executed with two jobs; to be looked at, not to be changed."""
    return made_once(tmp_path_factory, "executed", execute)


@pytest.fixture
def executed(executed_once: Toy, tmp_path: Path) -> Toy:
    """A copy of the executed book, for a test to change."""
    shutil.copytree(executed_once.root, tmp_path / "copy")
    return Toy.at(tmp_path / "copy")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A built book whose files are all in a revision of a repository on GitHub; to be looked at only."""
    return made_once(tmp_path_factory, "built", build)


@pytest.fixture
def rebuilt(built: Toy, tmp_path: Path) -> Toy:
    """A copy of the built book, for a test to change."""
    shutil.copytree(built.root, tmp_path / "rebuilt", symlinks=True)
    return Toy.at(tmp_path / "rebuilt")
