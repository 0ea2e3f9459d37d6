"""Fixtures of the pipeline's tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from colab_book import ADDRESS, write_book
from toy import FIGURE, RECORD, Toy


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A book without chapters."""
    return Toy(tmp_path / "book")


@pytest.fixture(scope="session")
def executed_once(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A book of two chapters, executed with two jobs; to be looked at, not to be changed."""
    toy = Toy(tmp_path_factory.mktemp("executed") / "book")
    toy.chapter("91_alpha", FIGURE, RECORD, "print(scale, object())", "Text\n\nSee {numref}`fig-toy`.")
    toy.chapter("92_beta", "x = 3\nx", "Text\n\n$$\ny = x\n$$ (eq-toy)\n\nSee {eq}`eq-toy`.")
    toy.contents("91_alpha", "92_beta", "scoreboard", "status")
    result = toy.cli("run", "--scale", "smoke", "--jobs", "2")
    assert result.returncode == 0, result.stdout
    return toy


@pytest.fixture
def executed(executed_once: Toy, tmp_path: Path) -> Toy:
    """A copy of the executed book, for a test to change."""
    shutil.copytree(executed_once.root, tmp_path / "copy")
    return Toy.at(tmp_path / "copy")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A built book whose files are all in a revision of a repository on GitHub; to be looked at only."""
    toy = Toy(tmp_path_factory.mktemp("colab") / "book")
    write_book(toy)
    (toy.root / ".gitignore").write_text("_build/\n")
    for command in ("init --quiet", "add --all", "commit --quiet -m x", f"remote add origin {ADDRESS}"):
        toy.git(*command.split())
    result = toy.cli("book", "--scale", "smoke", CFLTR_REPOSITORY="")
    assert result.returncode == 0, result.stdout
    return toy
