"""Small books in temporary folders, on which the pipeline is tried out."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement

from book_tools.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).resolve().parent / "pages"

INLINE = {"span", "em", "strong", "code", "cite", "i"}
PARAMETERS = 'scale = "ci"\ncorpus = "yahoo-like"\nseed = 0'

# What cfltr_core writes, in as few lines as a toy needs and without importing matplotlib.
FIGURE = """
import json, os, pathlib
from IPython.display import Markdown, display
folder = pathlib.Path(os.environ["CFLTR_RUN_DIR"]) / "figures"
svg = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="60" height="20"/></svg>'
about = {"id": "fig-toy", "caption": "A bar of length $2x$.", "alt": "Bar chart with one bar of length 60.",
         "image": "fig-toy.svg", "data": "fig-toy.csv"}
(folder / "fig-toy.svg").write_text(svg)
(folder / "fig-toy.csv").write_text(f"name,length\\nbar,{60 + seed}.25\\n")
(folder / "fig-toy.json").write_text(json.dumps(about))
display({"image/svg+xml": svg, "text/plain": "figure"}, raw=True, metadata={"cfltr": {"figure": "fig-toy"}})
display(Markdown("Figure: a bar."), metadata={"cfltr": {"caption": "fig-toy"}})
"""
RECORD = """
import json, os, pathlib
folder = pathlib.Path(os.environ["CFLTR_RUN_DIR"]) / "records"
record = {"name": "toy-length", "value": 60.25, "text": "60.25"}
(folder / "toy-length.json").write_text(json.dumps(record))
"""
IMAGE_WITHOUT_ALT = """
from IPython.display import display
display({"image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="3"/>'}, raw=True)
"""
# Starts a command that hears Ctrl-C even where these tests run in the background, with the signal ignored.
LISTENING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Toy:
    """A book with the repository's own configuration and chapters of a few cells."""

    root: Path

    @classmethod
    def at(cls, root: Path) -> Toy:
        """Return the book that is already in ``root``."""
        toy = cls.__new__(cls)
        toy.root = root
        return toy

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "chapters").mkdir(parents=True)
        shutil.copy(REPOSITORY / "_config.yml", root)
        shutil.copytree(REPOSITORY / "_static", root / "_static")
        (root / "references.bib").write_text("")
        (root / "index.md").write_text("# Toy\n\nA book for trying things out.\n")
        self.contents()

    def contents(self, *pages: str) -> None:
        """Write the table of contents."""
        chapters = [{"file": f"chapters/{page}"} for page in pages]
        toc = {"format": "jb-book", "root": "index", "chapters": chapters}
        (self.root / "_toc.yml").write_text(json.dumps(toc))

    def chapter(self, name: str, *sources: str, parameters: tuple[str, ...] = (PARAMETERS,)) -> Path:
        """Write a chapter; a source that starts with 'Text' is a Markdown cell, any other a code cell."""
        cells: list[dict[str, Any]] = [_markdown(f"# The chapter {name}\n\nIt says hello.")]
        cells += [_code(source, "parameters") for source in parameters]
        cells += [_markdown(s) if s.startswith("Text") else _code(s) for s in sources]
        path = self.root / "chapters" / f"{name}.ipynb"
        path.write_text(json.dumps(notebook(cells)))
        return path

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of one pipeline command on this book."""
        return [sys.executable, "-m", "book_tools", "--root", str(self.root), *arguments]

    def cli(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What one pipeline command says that ends with this code, on both its output streams, in order."""
        said = io.StringIO()
        with (
            redirect_stdout(said),
            redirect_stderr(said),
            mock.patch.dict(os.environ, surroundings(**environment), clear=True),
            warnings.catch_warnings(action="ignore"),
        ):
            try:
                ended = main(["--root", str(self.root), *arguments])
            except SystemExit as refused:
                ended = int(refused.code or 0)
        assert ended == code, said.getvalue()
        return said.getvalue()

    def process(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one pipeline command in a process of its own."""
        return subprocess.run(self.command(*arguments), **alone(**environment), check=False)

    def started(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start one pipeline command, which hears Ctrl-C; what it says is read from its ``stdout``."""
        return subprocess.Popen([sys.executable, "-c", LISTENING, *self.command(*arguments)], **alone(**environment))

    def page(self, name: str) -> BeautifulSoup:
        """Return a built page of the book."""
        return BeautifulSoup((self.root / "_build" / "html" / f"{name}.html").read_text(), "html.parser")

    def git(self, *arguments: str, **environment: str) -> str:
        """Run git in the book's folder, as nobody in particular, and return what it prints."""
        command = ["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments]
        env = {**os.environ, **environment}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()

    def done(self, name: str) -> Path:
        """Return the folder of an executed chapter."""
        return self.root / "_build" / "run" / "chapters" / name

    def artefacts(self) -> dict[str, bytes]:
        """Return the bytes of everything that the chapters left, by path."""
        top = self.root / "_build" / "run" / "chapters"
        return {p.relative_to(top).as_posix(): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Wait for ``condition``, and fail instead of hanging, or when the ``process`` that should bring it about ended."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def seen(tag: Tag) -> str:
    """What a reader meets on a part of a page, a block a line: its words, where links lead, and what pictures say."""
    lines = _words(tag).splitlines()
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line) + "\n"


def _words(node: PageElement) -> str:
    if not isinstance(node, Tag):
        return str(node)
    inner = "".join(map(_words, node.children))
    if node.name in ("p", "td", "th", "summary", "figcaption"):
        inner = " ".join(inner.split())
    if node.name == "a":
        return f"[{inner}]({node.get('href')})"
    if node.name == "img":
        return f"![{node['alt']}]({node['src']})"
    if node.name == "source":
        return f"{node['media']}: {node['srcset']}\n"
    if node.name == "details":
        inner = f"{'open' if node.has_attr('open') else 'folded'}: {inner.lstrip()}end of fold"
    return f"\n{inner}\n" if node.name not in INLINE else inner


def surroundings(**changes: str) -> dict[str, str]:
    """Return this process's environment without a collection folder, changed as asked."""
    environment = {name: value for name, value in os.environ.items() if name != "CFLTR_DATA"}
    return environment | changes


def alone(**changes: str) -> dict[str, Any]:
    """How a process is started that has nothing but these surroundings, and says all in ``stdout``."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return {"cwd": REPOSITORY, "env": surroundings(**changes), "text": True, **streams}


def notebook(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a notebook without outputs."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


def _markdown(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": [],
        "source": source.strip(),
    }
