"""The shape of the packages: small, layered, cheap to import, and every public function checked against a reference.

``cfltr_core`` is what the book teaches; ``cfltr_letor``, the reader of files, stands above it.  A public function is
anything in ``__all__`` of either and any function, method, property or checked class of a module whose name has no
underscore.  Each is registered by ``@pytest.mark.oracle("module.name")`` on a test that names it and something from
``tests/oracles.py``.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import io
import json
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import cfltr_core
import cfltr_letor

PACKAGE = Path(cfltr_core.__file__).parent
TESTS = Path(__file__).resolve().parents[1]
MODULES = sorted(PACKAGE.glob("*.py"))
READER = sorted(Path(cfltr_letor.__file__).parent.glob("*.py"))
# Operators that users call without seeing their name, and the word that stands for them ("" for the class).
OPERATORS = {"__call__": "", "__len__": "len"}

# The floors of the design: imports only point down, or to another module of the same floor.
FLOORS = {
    "checks": 0,
    "files": 0,
    "ragged": 0,
    "corpora": 0,
    "metrics": 1,
    "users": 2,
    "policies": 2,
    "stochastic": 2,
    "logs": 2,
    "exact": 2,
    "estimators": 3,
    "propensities": 3,
    "sorted_lists": 2,
    "bounds": 3,
    "convergence": 3,
    "enclosure": 3,
    "hinge_solver": 3,
    "proprank": 4,
    "propdcg": 4,
    "deep": 4,
    "lambdaloss": 4,
    "countersample": 4,
    "sweeps": 5,
}
SIDE = {"claims", "figures", "__main__"}
READER_FLOORS = {"svmlight": 0, "archives": 0, "reader": 1}
READER_NEEDS = {"checks", "files", "ragged"}  # of cfltr_core


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public_functions() -> Iterator[str]:
    """``module.function``, ``module.Class`` if it checks its fields, ``module.Class.method``."""
    for path in (*MODULES, *READER):
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{path.stem}.{node.name}"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef):
                        if item.name == "__post_init__":
                            yield f"{path.stem}.{node.name}"
                        elif item.name in OPERATORS or not item.name.startswith("_"):
                            yield f"{path.stem}.{node.name}.{item.name}"


def exported(package: ModuleType) -> dict[str, str]:
    """Where each name in ``__all__`` comes from."""
    out = {}
    for node in tree_of(Path(package.__file__)).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                out[alias.asname or alias.name] = f"{node.module.removeprefix(package.__name__ + '.')}.{alias.name}"
    return out


def registered() -> Iterator[tuple[str, Path, ast.FunctionDef]]:
    """Every name given to an ``oracle`` marker, with the test that carries it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.oracle":
                    for argument in decorator.args:
                        yield ast.literal_eval(argument), path, node


def test_every_public_function_has_an_oracle_test() -> None:
    wanted = {*public_functions(), *exported(cfltr_core).values(), *exported(cfltr_letor).values()}
    found = {name for name, _, _ in registered()}
    assert sorted(wanted - found) == [], "no test compares these with a reference"
    assert sorted(found - wanted) == [], "no such public function any more"


def test_oracle_tests_name_the_function_and_a_reference_and_assert_something() -> None:
    for name, path, test in registered():
        body = [n for statement in test.body for n in ast.walk(statement)]
        words = {n.id for n in body if isinstance(n, ast.Name)} | {n.attr for n in body if isinstance(n, ast.Attribute)}
        *_, owner, last = name.split(".")
        where = f"{path.name}::{test.name}"
        assert (OPERATORS.get(last, last) or owner) in words, f"{where} never mentions {name}"
        references = [n for n in body if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "oracles"]
        assert references, f"{where} compares {name} with nothing from tests/oracles.py"
        calls = {ast.unparse(n.func) for n in body if isinstance(n, ast.Call)}
        checks = any(isinstance(n, ast.Assert) for n in body) or any(
            c.startswith(("np.testing.assert_", "assert_")) for c in calls
        )
        assert checks, f"{where} asserts nothing"


def test_references_import_only_numpy_and_the_standard_library() -> None:
    roots = set()
    for node in ast.walk(tree_of(TESTS / "oracles.py")):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            roots.add(node.module.partition(".")[0])
    assert roots - set(sys.stdlib_module_names) == {"numpy"}
    assert "importlib" not in roots


@pytest.mark.parametrize("package", [cfltr_core, cfltr_letor])
def test_all_lists_what_init_imports_and_nothing_else(package: ModuleType) -> None:
    # Constants, then classes, then functions, of which one is called select_C.
    assert package.__all__ == sorted(package.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n))
    assert set(package.__all__) == set(exported(package))
    assert all(hasattr(package, name) for name in package.__all__)


def code_lines(path: Path) -> int:
    """Lines that are no docstring, no comment and not blank."""
    text = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            prose |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def test_the_package_stays_small() -> None:
    # ``__init__`` only gathers names and ``__main__`` only calls ``claims.main``: neither is a module to be learnt.
    # Their lines count.
    assert len([path for path in MODULES if not path.stem.startswith("__")]) <= 23
    assert sum(map(code_lines, MODULES)) < 3_500
    assert len(cfltr_core.__all__) <= 60


def test_the_reader_stays_small() -> None:
    assert sum(map(code_lines, READER)) <= 600
    assert len(cfltr_letor.__all__) == 4


MODULE = '''"""Prose
over two lines."""

# a comment
x = 1  # another


def f():
    """Prose."""
    return """a
b"""
'''


def test_code_lines(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    assert code_lines(tmp_path / "module.py") == 4


def imports_of(path: Path, package: str) -> set[str]:
    """Modules of ``package`` that a module imports, anywhere in it; "" for the package itself."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} uses a relative import"
            if node.module == package:
                found |= {alias.name for alias in node.names}
            elif node.module.startswith(f"{package}."):
                found.add(node.module.removeprefix(f"{package}."))
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".") for alias in node.names]
            found |= {module for root, _, module in names if root == package}
    return found


def test_the_reader_stands_above_the_package() -> None:
    graph = {path.stem: imports_of(path, "cfltr_letor") for path in READER if path.stem != "__init__"}
    assert set(graph) == set(READER_FLOORS), "a new module needs a floor"
    assert not set(graph) & {path.stem for path in MODULES}, "markers name modules without their package"
    for module, needs in graph.items():
        assert all(READER_FLOORS[need] < READER_FLOORS[module] for need in needs), f"{module} imports {needs}"
    for path in READER:
        assert imports_of(path, "cfltr_core") <= READER_NEEDS, path.name
    # The other way there is one place: load_corpus, when it is called.  An annotation loads nothing.
    assert [path.stem for path in MODULES if imports_of(path, "cfltr_letor")] == ["corpora"]
    importing = [
        ast.unparse(node.test) if isinstance(node, ast.If) else getattr(node, "name", type(node).__name__)
        for node in tree_of(PACKAGE / "corpora.py").body
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Import, ast.ImportFrom)) and "cfltr_letor" in ast.unparse(inner)
    ]
    assert importing == ["TYPE_CHECKING", "load_corpus"]


def test_imports_point_down() -> None:
    graph = {path.stem: imports_of(path, "cfltr_core") for path in MODULES if path.stem != "__init__"}
    assert set(graph) <= set(FLOORS) | SIDE, "a new module needs a floor"
    for module, needs in graph.items():
        assert needs <= set(graph), f"{module} imports {needs - set(graph)}"
        for need in needs:
            if module in SIDE:
                assert need in SIDE | {"checks", "files"}, f"{module} imports {need}"
            else:
                assert need not in SIDE, f"{module} imports {need}"
                assert FLOORS[need] <= FLOORS[module], f"{module} imports {need}, which stands above it"
    # No cycles: take away modules that need nothing any more until none is left.
    while graph:
        free = {module for module, needs in graph.items() if not needs & set(graph)}
        assert free, f"a cycle among {sorted(graph)}"
        graph = {module: needs for module, needs in graph.items() if module not in free}


IMPORT = """
import json, os, socket, sys, time

def refuse(*args, **kwargs):
    raise AssertionError("a socket was opened")

socket.socket = socket.create_connection = socket.getaddrinfo = refuse
touched = []

def watch(event, args):
    writing = event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writing or event in ("os.mkdir", "os.rename", "os.remove") or event.startswith("socket."):
        touched.append((event, str(args[0])))

sys.addaudithook(watch)
start = time.perf_counter()
import cfltr_core
seconds = time.perf_counter() - start
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {
    "torch", "scipy", "sklearn", "matplotlib", "seaborn", "pandas", "yaml", "IPython", "joblib", "cfltr_letor"})
print(json.dumps({"seconds": seconds, "heavy": heavy, "touched": touched, "here": sorted(os.listdir("."))}))
"""


def test_import_is_cheap_and_touches_nothing(tmp_path: Path) -> None:
    """No heavy library, no reader, no socket, no file written, less than half a second (the best of five)."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "HOME": str(tmp_path)}
    seconds = []
    for _ in range(5):
        child = subprocess.run(
            [sys.executable, "-B", "-c", IMPORT],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(child.stdout)
        assert found["heavy"] == []
        assert found["touched"] == []
        assert found["here"] == []
        assert child.stderr == ""
        seconds.append(found["seconds"])
    assert min(seconds) < 0.5


def test_data_classes_cannot_be_changed_after_they_were_checked() -> None:
    found = []
    for path in (path for path in (*MODULES, *READER) if not path.stem.startswith("__")):
        for thing in vars(importlib.import_module(f"{path.parent.name}.{path.stem}")).values():
            if dataclasses.is_dataclass(thing) and isinstance(thing, type):
                assert thing.__dataclass_params__.frozen, thing
                found.append(thing.__name__)
    assert {"RankingData", "ClickLog", "DeterministicPolicy", "PositionBasedUser", "Estimate", "Claim"} <= set(found)
    assert "ReaderOptions" in found


@pytest.mark.parametrize("path", [*MODULES, *READER], ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_every_public_thing_has_a_docstring(path: Path) -> None:
    for node in tree_of(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.stem}.{node.name}"
    assert ast.get_docstring(tree_of(path))
