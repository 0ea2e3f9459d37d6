"""Wrong formulas that a reader might write, and the test that notices each.

One expression of the package is replaced, a fresh copy of the package is imported, and the one test that is named must
fail.  These are kept because each stands for a mistake that is easy to make; ``make mutants`` tries all the others.

An expression is found by what it says, not by where it stands: in whatever module, however it is set.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import Phase, settings

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
# What is imported afresh, and holds the formulas: the methods, and what stands above them.
FRESH = ("cfltr_core", "cfltr_book")
# Seconds for one mistake: a mutant must be wrong, not slow.
LIMIT = 60
# A solver that is wrong may never close its gap, which is an error; NumPy's warnings fail a test as well.
FAILURES = (AssertionError, RuntimeError, RuntimeWarning, pytest.fail.Exception)

NOTICED = yaml.safe_load(Path(__file__).with_name("wrong_formulas.yml").read_text(encoding="utf-8"))
WRONG = {one["mistake"]: (one["old"], one["new"], test) for test, some in NOTICED.items() for one in some}


@cache
def expressions() -> dict[str, list[Path]]:
    """Every expression of the package, however it is set, and the modules that hold it, once for each time."""
    out: dict[str, list[Path]] = {}
    for path in (path for package in FRESH for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.expr):
                out.setdefault(ast.dump(node), []).append(path)
    return out


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Replace(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = ast.dump(expression(old)), new

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.dump(node) == self.old:
            return expression(self.new)
        return self.generic_visit(node)


class Mutator(importlib.abc.MetaPathFinder):
    """Imports one module of the package from changed source."""

    def __init__(self, path: Path, source: str) -> None:
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.path, self.source = str(path), source

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(fullname, self.path)
        loader.get_code = lambda _: compile(self.source, self.path, "exec")
        return importlib.util.spec_from_loader(fullname, loader)


@contextmanager
def mutated(old: str, new: str) -> Iterator[None]:
    """Within, ``import cfltr_core`` gives a fresh package with that one change."""
    places = expressions().get(ast.dump(expression(old)), [])
    assert len(places) == 1, f"{old} stands {len(places)} times in the package: bring the mistake up to date"
    path = places[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    finder = Mutator(path, ast.unparse(ast.fix_missing_locations(Replace(old, new).visit(tree))))
    whole = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in FRESH}
    # Helpers of the tests keep what they imported, and what they computed with it.
    helpers = {path.stem for path in (TESTS / "helpers").glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in helpers & sys.modules.keys()}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in FRESH or name in helpers]:
            del sys.modules[name]
        sys.modules.update(whole | kept)


def cases(test: Callable[..., None]) -> Iterator[dict[str, object]]:
    """The arguments of every case that pytest would make of a test."""
    choices = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            choices.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in mark.args[1]])
    for choice in itertools.product(*choices):
        yield {name: value for part in choice for name, value in part.items()}


def noticed(where: str) -> bool:
    """Whether a test fails with the package as it can be imported now."""
    file, _, name = where.partition("::")
    (path,) = TESTS.rglob(file)
    # That an example fails is enough here, the smallest one is for people; and a few of each case find most mistakes.
    for n_examples in (10, settings.get_profile("book").max_examples):
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("unshrunk", settings.get_profile("book"), phases=phases, max_examples=n_examples)
        settings.load_profile("unshrunk")
        try:
            test = runpy.run_path(str(path))[name]
        finally:
            settings.load_profile("book")
        for arguments in cases(test):
            try:
                test(**arguments)
            except FAILURES:
                return True
    return False


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An endless mutant is no caught mutant: after so many seconds of computing it ends with an error."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"still running after {seconds} s: a mutant must be wrong, not slow")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("mistake", WRONG)
def test_the_mistake_is_noticed(mistake: str) -> None:
    old, new, where = WRONG[mistake]
    with mutated(old, new), at_most(LIMIT):
        assert noticed(where)


def test_the_right_formula_passes() -> None:
    """The comparison above can fail: the same replacement, by itself."""
    old, _, where = WRONG["divided by clicks, not by sessions"]
    with mutated(old, old):
        assert not noticed(where)


def test_the_package_is_whole_again() -> None:
    import cfltr_core

    with mutated(*WRONG["gain 2^y"][:2]):
        import cfltr_core as changed

        assert changed is not cfltr_core
        assert changed.ndcg([2.0, 1.0], [0, 2], relevance=[1, 2]).mean > 2 / 3
    import cfltr_core as again

    assert again is cfltr_core
