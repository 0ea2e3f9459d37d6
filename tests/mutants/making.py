"""Mutants of the package: mutmut's operators, one at a time, as whole modules."""

from __future__ import annotations

import ast
import difflib
import importlib.util
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cfltr_core", "cfltr_book")
T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    """One changed place: what stood there and what stands there now, with all else in its line."""

    path: str  # below the root, with slashes
    function: str  # ``Class.method``, or "" at the top of the module
    lines: tuple[int, ...]  # of the statement that was changed
    before: str
    after: str
    source: str  # of the whole changed module

    @property
    def module(self) -> str:
        """``clicks.logs``"""
        return self.path.partition("/")[2].removesuffix(".py").replace("/", ".")

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move."""
        return self.module, self.function, self.before, self.after

    def diff(self, context: int = 3) -> str:
        old = (ROOT / self.path).read_text(encoding="utf-8").splitlines()
        return "\n".join(difflib.unified_diff(old, self.source.splitlines(), self.path, self.path, "", "", context, ""))


def statement_at(tree: ast.Module, line: int) -> tuple[str, tuple[int, ...]]:
    """The function around a line, and the lines of its innermost statement: of an ``if`` or a loop only its head."""
    nested = [
        node
        for node in ast.walk(tree)  # the outer before the inner
        if isinstance(node, ast.stmt)
        and min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) <= line <= node.end_lineno
    ]
    names = [node.name for node in nested if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    if not nested:
        return "", (line,)
    first, last = nested[-1].lineno, nested[-1].end_lineno
    inside = [node.lineno for node in ast.walk(nested[-1]) if isinstance(node, ast.stmt) and node is not nested[-1]]
    return ".".join(names), tuple(range(first, max(min(inside, default=last + 1), first + 1)))


@dataclass(frozen=True, eq=False)
class Place:
    """Where a module can be changed, and how: cheap to list, while writing the changed module takes a moment."""

    path: Path
    tree: Any  # of libcst, as are the nodes
    mutation: Any


def places_of(path: Path) -> list[Place]:
    """Every place of a module that mutmut would change.

    Left out are ``__all__`` and the texts of messages, which tests compare in part: strings in
    ``raise ValueError("…")`` and those given to the functions of ``checks``, ``checks.positive(eta, "eta")``.
    """
    if importlib.util.find_spec("mutmut") is None:
        raise ModuleNotFoundError("mutmut is not installed: pip install -e '.[mutants]', or 'make mutants'")
    import libcst as cst
    from libcst import matchers
    from mutmut.mutation.file_mutation import create_mutations

    tree, mutations, *_ = create_mutations(str(path), path.read_text(encoding="utf-8"))
    exports = matchers.Assign(targets=[matchers.AssignTarget(target=matchers.Name("__all__"))])
    spared = set()
    for node in matchers.findall(tree, matchers.Raise() | exports):
        spared |= {id(part) for part in matchers.findall(node, matchers.SimpleString())}
        if isinstance(node, cst.Assign):
            spared.add(id(node))
    for call in matchers.findall(tree, matchers.Call(matchers.Attribute(matchers.Name("checks")))):
        spared |= {id(argument.value) for argument in call.args if isinstance(argument.value, cst.SimpleString)}
    return [Place(path, tree, mutation) for mutation in mutations if id(mutation.original_node) not in spared]


def mutant_of(place: Place) -> Mutant | None:
    """The mutant of a place; None where what comes out is no Python."""
    from mutmut.mutation.file_mutation import deep_replace

    text = place.path.read_text(encoding="utf-8")
    source = deep_replace(place.tree, place.mutation.original_node, place.mutation.mutated_node).code
    try:
        ast.parse(source)
    except SyntaxError:
        return None
    first, before, after = change(text, source)
    function, lines = statement_at(ast.parse(text), first)
    return Mutant(place.path.relative_to(ROOT).as_posix(), function, lines, before, after, source)


def change(old: str, new: str) -> tuple[int, str, str]:
    """The first changed line, and the changed lines before and after, without their indentation."""
    texts = [old.splitlines(), new.splitlines()]
    start = alike(*texts)
    end = alike(*(lines[start:][::-1] for lines in texts))
    before, after = (" ".join(line.strip() for line in lines[start : len(lines) - end]) for lines in texts)
    return start + 1, before, after


def alike(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start on."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])


def modules(names: list[str]) -> list[Path]:
    """The modules with these names: ``metrics``, ``clicks.logs``; a folder stands for its modules, none for all."""
    dotted = {
        ".".join(path.relative_to(ROOT / package).with_suffix("").parts): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.stem.startswith("__")
    }
    chosen = []
    for name in names or list(dotted):
        found = [path for dots, path in dotted.items() if f".{name}." in f".{dots}."]
        if not found:
            raise ValueError(f"there is no module {name!r}; choose among {', '.join(dotted)}")
        chosen += [path for path in found if path not in chosen]
    return chosen


def draw(every: dict[str, list[T]], size: int, rng: np.random.Generator) -> list[T]:
    """``size`` of all, as many from each module as from any other, as far as each has them."""
    shuffled = [[places[i] for i in rng.permutation(len(places))] for places in every.values()]
    rng.shuffle(shuffled)
    rounds = zip_longest(*shuffled)
    return [place for one in rounds for place in one if place is not None][:size]
