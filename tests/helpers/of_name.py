"""``pytest --of NAME``: only the tests of a public name.

A test says whose test it is by its ``oracle`` marker.  One without a marker is taken at its word: it is a test of every
public name that it uses, in its body, in what it is parametrised with, or in a function of its file that it calls.
"""

import ast
import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cfltr_core", "cfltr_book", "book_tools")
DOCTEST = "DoctestItem"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public_names(root: Path = ROOT) -> dict[str, set[str]]:
    """Every public name of the packages, and the ways to say it in full: ``ips`` is ``estimators.ips``."""
    known: dict[str, set[str]] = {}
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        for name in defined(tree_of(path).body):
            known.setdefault(name, set()).add(f"{path.stem}.{name}")
            if "." in name:
                known.setdefault(name.rpartition(".")[2], set()).add(f"{path.stem}.{name}")
    return known


def defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Functions, classes, ``Class.method`` and constants without an underscore."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
            yield from (f"{node.name}.{item}" for item in defined(node.body))
        elif isinstance(node, ast.FunctionDef):
            if not node.name.startswith("_"):
                yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and not target.id.startswith("_"):
                    yield target.id


def words_of(node: ast.AST) -> set[str]:
    """Names and attributes, and what an import inside calls them."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        if isinstance(part, ast.Attribute):
            found.add(part.attr)
        if isinstance(part, ast.alias):
            found.add(part.name)
    return found


@cache
def helpers_of(path: Path) -> dict[str, ast.AST]:
    """What stands at the top of a file of tests: its own functions, classes and constants, by name."""
    out: dict[str, ast.AST] = {}
    for node in tree_of(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                out |= {part.id: node.value for part in ast.walk(target) if isinstance(part, ast.Name)}
    return out


@cache
def words_of_test(path: Path, test: str, case: frozenset[str] = frozenset()) -> frozenset[str]:
    """Everything that a test mentions, followed through its own file.

    Of a table from which the test takes one ``case`` by its key, only that entry counts.
    """
    helpers = helpers_of(path)
    found, todo = set(), [test]
    seen = set(todo)
    while todo:
        node = helpers.get(todo.pop())
        if node is None:
            continue
        words = words_of(node)
        if isinstance(node, ast.Dict):
            chosen = [
                value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and str(key.value) in case
            ]
            words = {word for value in chosen for word in words_of(value)} if chosen else words
        if isinstance(node, ast.FunctionDef):
            words |= {argument.arg for argument in node.args.args}  # fixtures
        found |= words
        todo += [word for word in words if word in helpers and word not in seen]
        seen |= words
    return frozenset(found)


def is_of(item: pytest.Item, full: set[str]) -> bool:
    """Whether a test is a test of a name, given in full: ``module.name`` or ``module.Class.method``."""
    if type(item).__name__ == DOCTEST:
        dotted = item.name.split(".")
        return any(is_part(name.split("."), dotted) for name in full)
    marks = list(item.iter_markers("oracle"))
    if marks:
        return any(is_part(name.split("."), word.split(".")) for mark in marks for word in mark.args for name in full)
    case = frozenset(str(value) for value in getattr(getattr(item, "callspec", None), "params", {}).values())
    words = words_of_test(item.path, getattr(item, "originalname", item.name), case)
    return any(set(name.split(".")[1:]) <= words for name in full)


def is_part(inner: list[str], outer: list[str]) -> bool:
    return any(outer[i : i + len(inner)] == inner for i in range(len(outer) - len(inner) + 1))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--of",
        action="append",
        default=[],
        metavar="NAME",
        help="only the tests of this public name: ips, fit_proprank, ClickLog, ClickLog.weights; may be given again",
    )


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--of")
    known = public_names() if wanted else {}
    names = known | {full: {full} for fulls in known.values() for full in fulls}
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
            hint = f"near it are {', '.join(near)}" if near else "cfltr_core/__init__.py lists those of the package"
            raise pytest.UsageError(f"--of {name}: there is no public name {name!r}; {hint}")
    config.stash[FULL] = {full for name in wanted for full in names[name]}


FULL = pytest.StashKey[set[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full = config.stash[FULL]
    if full:
        kept = [item for item in items if is_of(item, full)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
