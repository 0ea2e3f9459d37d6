"""Digests of what a result depends on: code without comments and docstrings, and the values that a function reads.

A kept result may be used again only where nothing has changed that it came from.  For a function that is its own
code, the functions that it calls, and the values that it reads from its closure and its module; for a notebook also
the cells that have been executed; and the code of both packages of the book.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    EllipsisType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

# The packages that a chapter computes with, which one digest covers: the methods, and what stands above them.
PACKAGES = tuple(Path(__file__).resolve().parents[2] / name for name in ("cfltr_core", "cfltr_book"))
OURS = {path.name for path in PACKAGES}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BUILT_IN = (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
    np.ufunc,
)
# What Python itself writes into a class, which says nothing of what the class does.
_BOOKKEEPING = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate_func__"}
_BOOKKEEPING |= {"__annotations_cache__", "__static_attributes__", "__firstlineno__", "__qualname__"}


class NotWritten(ValueError):
    """A value that no digest can be taken of; the message names it."""


def digest(description: Any) -> str:
    """SHA-256, in hexadecimal, of a description made of lists, strings and numbers."""
    return hashlib.sha256(json.dumps(description, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def plain_code(text: str) -> str:
    """Python code without comments, docstrings and layout: two texts that do the same thing so give the same.

    Text that is no Python is returned as it is.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


@cache
def package_digest(*folders: Path) -> str:
    """Digest of the Python code below ``folders``, both packages by default, by :func:`plain_code`."""
    files = [
        (path.relative_to(folder.parent), path)
        for folder in folders or PACKAGES
        for path in sorted(folder.rglob("*.py"))
        if "__pycache__" not in path.parts
    ]
    return digest([[str(name), plain_code(path.read_text(encoding="utf-8"))] for name, path in files])


def executed_cells() -> list[str] | None:
    """Code of the notebook cells executed so far, the present one last, by :func:`plain_code`; None outside."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        return None
    return [plain_code(text) for text in shell.history_manager.input_hist_parsed if text.strip()]


def code_digest(function: Callable[..., Any]) -> str:
    """Digest of all that decides what ``function`` returns for given arguments.

    Its code and that of the functions and classes it uses; the values of its defaults, of its closure and of the
    names that it reads from its module; and, in a notebook, the cells executed so far.  Of installed libraries the
    name and version stand for the code, of the book's own packages :func:`package_digest`.

    A value that cannot be written (:func:`describe`) is refused outside a notebook.  In a notebook the cells say how
    it came about.  A cell that is executed twice in a row counts once, unless such a value is read.

    Raises
    ------
    NotWritten
        A ValueError, which names the value; always for a generator of random numbers, since what is drawn from one
        that is shared depends on the order of the calls.
    """
    cells = executed_cells()
    try:
        read = describe(function, getattr(function, "__name__", "function"))
    except NotWritten:
        if cells is None:
            raise
        read = describe(function, "function", strict=False)
    else:
        cells = cells and [text for text, before in zip(cells, [None, *cells], strict=False) if text != before]
    return digest([package_digest(), cells, read])


def check_draws(function: Callable[..., Any]) -> None:
    """Raise a ValueError when ``function`` reads a generator of random numbers that it is not handed."""
    _Description(strict=False, contents=False).of(function, getattr(function, "__name__", "function"))


def describe(value: Any, name: str, *, strict: bool = True) -> Any:
    """``value`` as lists, strings and numbers: equal for equal values, in every process.

    Numbers, strings, arrays, lists, tuples, sets, mappings, functions (their code and what they read), classes,
    modules, and objects by their class and attributes.  ``name`` is what messages call the value.

    Raises
    ------
    NotWritten
        For anything else; with ``strict=False`` only for a generator of random numbers, and the type stands for it.
    """
    return _Description(strict=strict, contents=True).of(value, name)


class _Description:
    """One walk over a value and all that it refers to; each object is described once."""

    def __init__(self, *, strict: bool, contents: bool) -> None:
        self.strict, self.contents = strict, contents
        self.known: dict[int, Any] = {}
        self.alive: list[Any] = []  # an id is that of one object only as long as the object lives

    def of(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, range, slice, EllipsisType)):
            return [type(value).__name__, repr(value)]
        if id(value) not in self.known:
            self.alive.append(value)
            self.known[id(value)] = ["described above", len(self.alive)]  # where a circle comes back
            self.known[id(value)] = self._compound(value, name)
        return self.known[id(value)]

    def _compound(self, value: Any, name: str) -> Any:
        if isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
            raise NotWritten(
                f"{name} is a generator of random numbers that all cells would share: "
                "draw from the one that each call is handed"
            )
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, [self.of(item, f"{name}[{i}]") for i, item in enumerate(value)]]
        if isinstance(value, (set, frozenset)):
            return ["set", sorted((self.of(item, name) for item in value), key=json.dumps)]
        if isinstance(value, Mapping):
            pairs = [[self.of(key, name), self.of(item, f"{name}[{key!r}]")] for key, item in value.items()]
            return ["mapping", sorted(pairs, key=json.dumps)]
        if isinstance(value, CodeType):
            return self._code(value, name)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, FunctionType):
            return self._function(value, name)
        if isinstance(value, type):
            return self._class(value, name)
        return self._object(value, name)

    def _array(self, array: np.ndarray, name: str) -> Any:
        if array.dtype.hasobject:
            return ["array", list(array.shape), [self.of(item, name) for item in array.ravel().tolist()]]
        content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() if self.contents else ""
        return ["array", array.dtype.str, list(array.shape), content]

    def _module(self, module: ModuleType) -> Any:
        if _is_library(module.__name__, getattr(module, "__file__", None)):
            return _library(module.__name__)
        return ["module", plain_code(Path(str(module.__file__)).read_text(encoding="utf-8"))]

    def _class(self, cls: type, name: str) -> Any:
        module = sys.modules.get(cls.__module__)
        if module is not None and _is_library(cls.__module__, getattr(module, "__file__", None)):
            return [*_library(cls.__module__), cls.__qualname__]
        own = {key: item for key, item in vars(cls).items() if key not in _BOOKKEEPING}
        bases = [self.of(base, name) for base in cls.__bases__]
        return ["class", cls.__qualname__, bases, [[k, self.of(v, f"{name}.{k}")] for k, v in sorted(own.items())]]

    def _function(self, function: FunctionType, name: str) -> Any:
        if _is_importable(function):
            return [*_library(function.__module__), function.__qualname__]
        closure = [[key, self.of(item, key)] for key, item in _closure(function)]
        if _is_library(function.__module__, function.__code__.co_filename):
            return [*_library(function.__module__), function.__qualname__, closure]
        found = function.__globals__
        read = [[key, self.of(found[key], key)] for key in sorted({*_globals(function.__code__)} & {*found})]
        defaults = self.of([function.__defaults__, function.__kwdefaults__], f"a default of {name}")
        return ["function", self._code(function.__code__, name), defaults, closure, read]

    def _code(self, code: CodeType, name: str) -> Any:
        # Instructions with their arguments: neither lines, nor comments, nor the docstring take part.
        steps = [[step.opname, self.of(step.argval, name)] for step in dis.get_instructions(code)]
        signature = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        return ["code", signature, list(code.co_varnames), steps, code.co_exceptiontable.hex()]

    def _object(self, value: Any, name: str) -> Any:
        if isinstance(value, MethodType):
            return ["method", self.of(value.__self__, name), self.of(value.__func__, name)]
        if isinstance(value, _BUILT_IN):
            owner = getattr(value, "__self__", None)  # of a method: the object that it belongs to
            whose = None if owner is None or isinstance(owner, ModuleType) else self.of(owner, name)
            return ["built in", str(getattr(value, "__module__", "")), value.__name__, whose]
        if isinstance(value, property):
            return ["property", self.of([value.fget, value.fset], name)]
        if isinstance(value, staticmethod | classmethod) or hasattr(value, "__wrapped__"):  # a cached function, too
            return [type(value).__name__, self.of(value.__wrapped__, name)]
        try:
            parts = value.__reduce_ex__(4)  # what pickle would keep: its class and all that it holds
        except Exception as error:  # an object may raise anything here; every case means that it cannot be written
            if self.strict:
                raise NotWritten(
                    f"{name} is a {type(value).__name__}, which cannot be written into the key of a kept result: "
                    "pass it as a setting made of numbers, strings, arrays, lists or dictionaries"
                ) from error
            return ["opaque", f"{type(value).__module__}.{type(value).__qualname__}"]
        if isinstance(parts, str):
            return ["global", *_library(type(value).__module__), parts]
        items = [list(part) if part is not None else None for part in (*parts[3:5],)]  # of lists and dictionaries
        return ["object", self.of(type(value), name), self.of([*parts[:3], *items], f"a part of {name}")]


def _globals(code: CodeType) -> Iterator[str]:
    """Names that a function, or one inside it, reads from its module."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
        if isinstance(step.argval, CodeType):
            yield from _globals(step.argval)


def _is_importable(function: FunctionType) -> bool:
    """True for a function of a library that is found under its name; another one may hold values in its closure."""
    if not _is_library(function.__module__, function.__code__.co_filename):
        return False
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _closure(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield key, cell.cell_contents
        except ValueError:  # the enclosing function has not given it a value yet
            continue


@cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")})


@cache
def _is_library(module: str | None, file: str | None) -> bool:
    """True for what is installed or built in, and for the packages of the book, whose digest is in every key."""
    root = (module or "").partition(".")[0]
    if root == "__main__":
        return False
    if root in OURS or root in sys.stdlib_module_names or file is None:
        return True
    path = Path(file).resolve()
    return "site-packages" in path.parts or any(path.is_relative_to(folder) for folder in _library_folders())


def _library(module: str | None) -> list[str]:
    root = (module or "").partition(".")[0]
    version = "" if root in OURS else str(getattr(sys.modules.get(root), "__version__", ""))
    return ["library", str(module), version]
