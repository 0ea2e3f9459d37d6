"""The shape of the packages that chapters import: small rooms on floors, cheap to import, every public function tested.

A public function is anything in an ``__all__`` and any function, method, property or checked class of a module whose
name has no underscore.  One that *computes* is compared with a reference: ``@pytest.mark.oracle("module.name")`` stands
on a test that names it and something from ``tests/helpers/oracles.py``.  Of the others, which check arguments, read and
write files and report, a copy would prove nothing: some test uses each.
"""

import ast
import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from evidence_due import MEASURED
from floors import floor_problems, plan_of

import cfltr_book
import cfltr_book.data.letor
import cfltr_book.theory
import cfltr_core

PACKAGES = [Path(package.__file__).parent for package in (cfltr_core, cfltr_book)]
PACKAGE = PACKAGES[0]
TESTS = Path(__file__).resolve().parents[1]
# A module is known by its name alone, so names are unique; a folder's ``__init__`` says what the folder is for.
EVERY = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
MODULES = [path for path in EVERY if path.stem != "__init__"]
FOLDERS = [path for path in EVERY if path.stem == "__init__"]
# Operators that users call without seeing their name, and the word that stands for them ("" for the class).
OPERATORS = {"__call__": "", "__len__": "len"}

# The rooms whose functions compute: folders, and single modules.
COMPUTING = ("ranking", "clicks", "evaluation", "propensity", "learning", "sampling", "data.generated", "data.corpora")
COMPUTING += ("theory", "logs.homogeneity", "logs.model_tests", "logs.movement", "logs.session_sums")

# Lines of the largest rooms, with their docstrings; a room that outgrows this wants splitting.
LARGEST = 500


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def computes(path: Path) -> bool:
    return any(f"{name_of(path)}.".startswith(f"{room}.") for room in COMPUTING)


def public_functions(paths: Iterable[Path] = tuple(MODULES)) -> Iterator[str]:
    """``module.function``, ``module.Class`` if it checks its fields, ``module.Class.method``."""
    for path in paths:
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
                out[alias.asname or alias.name] = f"{node.module.rpartition('.')[2]}.{alias.name}"
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


def test_every_public_function_that_computes_has_an_oracle_test() -> None:
    names = {
        name
        for package in (cfltr_core, cfltr_book, cfltr_book.theory, cfltr_book.data.letor)
        for name in exported(package).values()
    }
    rooms = {path.stem for path in MODULES if computes(path)}
    wanted = {*public_functions(filter(computes, MODULES)), *(name for name in names if name.split(".")[0] in rooms)}
    found = {name for name, _, _ in registered()}
    assert sorted(wanted - found) == [], "no test compares these with a reference"
    assert sorted(found - names - set(public_functions())) == [], "no such public function any more"


def test_every_other_public_function_is_used_by_a_test() -> None:
    used = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            nodes = [*ast.walk(tree_of(path))]
            used |= {n.id for n in nodes if isinstance(n, ast.Name)}
            used |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    # The functions that measure exact claims meet all the same test.
    used |= {measure.function.__name__ for measure in MEASURED}
    for name in public_functions(path for path in MODULES if not computes(path)):
        *_, owner, last = name.split(".")
        assert (OPERATORS.get(last, last) or owner) in used, f"no test uses {name}"


def test_oracle_tests_name_the_function_and_a_reference_and_assert_something() -> None:
    for name, path, test in registered():
        body = [n for statement in test.body for n in ast.walk(statement)]
        words = {n.id for n in body if isinstance(n, ast.Name)} | {n.attr for n in body if isinstance(n, ast.Attribute)}
        *_, owner, last = name.split(".")
        where = f"{path.name}::{test.name}"
        assert (OPERATORS.get(last, last) or owner) in words, f"{where} never mentions {name}"
        references = [n for n in body if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "oracles"]
        assert references, f"{where} compares {name} with nothing from tests/helpers/oracles.py"
        calls = {ast.unparse(n.func) for n in body if isinstance(n, ast.Call)}
        checks = any(isinstance(n, ast.Assert) for n in body) or any(
            c.startswith(("np.testing.assert_", "assert_")) for c in calls
        )
        assert checks, f"{where} asserts nothing"


def test_references_import_only_numpy_and_the_standard_library() -> None:
    roots = set()
    for node in ast.walk(tree_of(TESTS / "helpers" / "oracles.py")):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            roots.add(node.module.partition(".")[0])
    assert roots - set(sys.stdlib_module_names) == {"numpy"}
    assert "importlib" not in roots


@pytest.mark.parametrize("package", [cfltr_core, cfltr_book, cfltr_book.theory, cfltr_book.data.letor])
def test_all_lists_what_init_imports_and_nothing_else(package: ModuleType) -> None:
    # Constants, then classes, then functions, of which one is called select_C.
    assert package.__all__ == sorted(package.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n))
    assert set(package.__all__) == set(exported(package))
    assert all(hasattr(package, name) for name in package.__all__)


def test_rooms_stay_small_and_have_names_of_their_own() -> None:
    assert {
        path.stem: n for path in MODULES if (n := len(path.read_text(encoding="utf-8").splitlines())) > LARGEST
    } == {}
    # The rooms of a chapter, what is simulated for it and what is measured, share its number.
    named = [path.stem for path in MODULES if not re.fullmatch(r"ch\d\d", path.stem)]
    assert len(set(named)) == len(named)


def name_of(path: Path) -> str:
    """``folder.module`` below its package."""
    package = next(package for package in PACKAGES if package in path.parents)
    return ".".join(path.relative_to(package).with_suffix("").parts)


def dotted(path: Path) -> str:
    """As it is imported."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_imports_point_down_without_circles_or_private_names() -> None:
    plans = [plan_of(package) for package in PACKAGES]
    for package, plan in zip(PACKAGES, plans, strict=True):
        rooms = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        assert {*plan.floors} - {"__main__"} == rooms - {"__main__"}
        assert floor_problems(package, plan.floors, plan.beside) == []
    methods, book = (plan.floors for plan in plans)
    assert methods["checks"] == methods["files"] == 1 < methods["learning"] < methods["__init__"]
    assert book["data"] < book["reporting"] < book["__init__"]


def test_the_packages_stand_above_each_other() -> None:
    """The method knows nothing of the book, and neither of them of the workshop."""
    above = {"cfltr_core": ("cfltr_book", "book_tools"), "cfltr_book": ("book_tools",)}
    for path in EVERY:
        nodes = [*ast.walk(tree_of(path))]
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        package = next(package.name for package in PACKAGES if package in path.parents)
        wrong = [name for name in names if name.partition(".")[0] in above[package]]
        assert wrong == [], f"{path.stem} imports from a package above its own"
        if package == "cfltr_core":  # what the extra 'chapters' brings is for the book alone
            assert {name.partition(".")[0] for name in names} & {"matplotlib", "seaborn", "joblib", "yaml"} == set()


IMPORT = """
import json, os, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("a socket was opened")

socket.socket = socket.create_connection = socket.getaddrinfo = refuse
touched = []

def watch(event, args):
    writing = event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writing or event in ("os.mkdir", "os.rename", "os.remove") or event.startswith("socket."):
        touched.append((event, str(args[0])))

sys.addaudithook(watch)
import cfltr_core, cfltr_book
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {
    "torch", "scipy", "sklearn", "matplotlib", "seaborn", "pandas", "yaml", "IPython", "joblib"})
print(json.dumps({"heavy": heavy, "touched": touched, "here": sorted(os.listdir("."))}))
"""


def test_import_is_cheap_and_touches_nothing(tmp_path: Path) -> None:
    """No heavy library, no socket, no file written; benchmarks/imports.py tells how long it takes."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "HOME": str(tmp_path)}
    child = subprocess.run(
        [sys.executable, "-B", "-c", IMPORT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(child.stdout)
    assert found == {"heavy": [], "touched": [], "here": []}
    assert child.stderr == ""


def test_data_classes_cannot_be_changed_after_they_were_checked() -> None:
    found = []
    for path in (path for path in MODULES if not path.stem.startswith("__")):
        for thing in vars(importlib.import_module(dotted(path))).values():
            if dataclasses.is_dataclass(thing) and isinstance(thing, type):
                assert thing.__dataclass_params__.frozen, thing
                found.append(thing.__name__)
    assert {"RankingData", "ClickLog", "DeterministicPolicy", "PositionBasedUser", "Estimate", "Claim"} <= set(found)
    assert "ReaderOptions" in found


@pytest.mark.parametrize("path", [*MODULES, *FOLDERS], ids=name_of)
def test_every_public_thing_has_a_docstring(path: Path) -> None:
    for node in tree_of(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.stem}.{node.name}"
    assert ast.get_docstring(tree_of(path))
