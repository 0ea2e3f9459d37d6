"""What a description says, word by word: it is the key of what is kept, so a change of it makes all of that stale."""

from __future__ import annotations

import collections
import dis
import functools
import hashlib
import json
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from cfltr_book.legacy.digests import NotWritten, describe
from cfltr_core import ips

SCALE = 2.0
NONE = ["NoneType", "None"]
OBJECT = ["library", "builtins", "", "object"]


def add(x: int, y: int = 2, *, z: int = 3) -> int:
    return x + y + z


def scaled(x: float) -> float:
    return x * SCALE


def bounded(bound: int) -> Callable[[int], int]:
    return lambda x: min(x, bound)


class Holder:
    rate = 1

    def __init__(self, held: Any) -> None:
        self.held = held


def code(function: FunctionType) -> list[Any]:
    """The code of a function whose constants are simple, by the disassembler of this Python."""
    raw = function.__code__
    steps = [[step.opname, [type(step.argval).__name__, repr(step.argval)]] for step in dis.get_instructions(raw)]
    signature = [raw.co_argcount, raw.co_posonlyargcount, raw.co_kwonlyargcount, raw.co_flags]
    return ["code", signature, [*raw.co_varnames], steps, raw.co_exceptiontable.hex()]


def plain(function: FunctionType, closure: Any = (), read: Any = ()) -> list[Any]:
    """A function without defaults."""
    return ["function", code(function), ["list", [NONE, NONE]], [*closure], [*read]]


DEFAULTS = ["list", [["tuple", [["int", "2"]]], ["mapping", [[["str", "'z'"], ["int", "3"]]]]]]
ADD = ["function", code(add), DEFAULTS, [], []]
SCALED = plain(scaled, (), [["SCALE", ["float", "2.0"]]])
HOLDER = ["class", "Holder", [OBJECT], [["__init__", plain(Holder.__init__)], ["rate", ["int", "1"]]]]
LIMIT = bounded(5)
FORMS = {
    "None": (None, NONE),
    "a number": (0.5, ["float", "0.5"]),
    "of NumPy": (np.float32(0.5), ["float", "0.5"]),
    "complex": (1j, ["complex", "1j"]),
    "bytes": (b"x", ["bytes", "b'x'"]),
    "a range": (range(3), ["range", "range(0, 3)"]),
    "a slice": (slice(1, 2), ["slice", "slice(1, 2, None)"]),
    "an ellipsis": (..., ["ellipsis", "Ellipsis"]),
    "a list": ([1, "a"], ["list", [["int", "1"], ["str", "'a'"]]]),
    "a tuple": ((1,), ["tuple", [["int", "1"]]]),
    "a set": ({2, 1}, ["set", [["int", "1"], ["int", "2"]]]),
    "a frozen set": (frozenset({2, 1}), ["set", [["int", "1"], ["int", "2"]]]),
    "a mapping": ({"b": 1, "a": 2}, ["mapping", [[["str", "'a'"], ["int", "2"]], [["str", "'b'"], ["int", "1"]]]]),
    "another mapping": (collections.Counter("aa"), ["mapping", [[["str", "'a'"], ["int", "2"]]]]),
    "an array": (
        np.array([[1.0, 2.0]], dtype="<f8"),
        ["array", "<f8", [1, 2], hashlib.sha256(np.array([1.0, 2.0], dtype="<f8").tobytes()).hexdigest()],
    ),
    "an array of objects": (np.array(["a", None]), ["array", [2], [["str", "'a'"], NONE]]),
    "built in": (len, ["built in", "builtins", "len", None]),
    "built in, of a module": (math.sqrt, ["built in", "math", "sqrt", None]),
    "a ufunc": (np.exp, ["built in", "numpy", "exp", None]),
    "a bound method": ("abc".upper, ["built in", "None", "upper", ["str", "'abc'"]]),
    "a method of a type": (dict.fromkeys, ["built in", "None", "fromkeys", ["library", "builtins", "", "dict"]]),
    "an unbound method": (str.upper, ["built in", "", "upper", None]),
    "an operator of a number": ((3).__add__, ["built in", "", "__add__", ["int", "3"]]),
    "an operator": (int.__add__, ["built in", "", "__add__", None]),
    "a module of Python": (math, ["library", "math", ""]),
    "a library": (np, ["library", "numpy", np.__version__]),
    "a class of Python": (collections.OrderedDict, ["library", "collections", "", "OrderedDict"]),
    "a class of a library": (np.ndarray, ["library", "numpy", np.__version__, "ndarray"]),
    "a function of Python": (json.dumps, ["library", "json", json.__version__, "dumps"]),
    "a function of this package": (ips, ["library", "cfltr_core.evaluation.estimators", "", "ips"]),
    "a constant by its name": (NotImplemented, ["global", "library", "builtins", "", "NotImplemented"]),
    "a function": (add, ADD),
    "a function that reads": (scaled, SCALED),
    "a closure": (LIMIT, plain(LIMIT, [["bound", ["int", "5"]]])),
    "a cached function": (functools.cache(add), ["_lru_cache_wrapper", ADD]),
    "a static method": (staticmethod(add), ["staticmethod", ADD]),
    "a property": (property(add), ["property", ["list", [ADD, NONE]]]),
    "a property that can be set": (property(add, scaled), ["property", ["list", [ADD, SCALED]]]),
    "a class": (Holder, HOLDER),
}


@pytest.mark.parametrize("kind", FORMS)
def test_the_form_of_a_description(kind: str) -> None:
    value, expected = FORMS[kind]
    assert describe(value, "x") == expected


def test_each_object_is_described_once_and_a_circle_says_where_it_returns() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    assert describe([[], circle], "x") == [
        "list",
        [["list", []], ["list", [["int", "1"], ["described above", 3]]]],
    ]


def stuck() -> Any:
    return (i for i in ())


class Stuck:
    part = stuck()


def reads() -> Any:
    return STUCK


def defaults(x: Any = stuck()) -> Any:  # noqa: B008
    return x


def closed(part: Any) -> Callable[[], Any]:
    return lambda: part


STUCK = stuck()
# Where the value that cannot be written sits, and what the message calls it.
PLACES: dict[str, tuple[Any, str]] = {
    "itself": (stuck(), "x"),
    "a list": ([0, stuck()], "x[1]"),
    "a tuple": ((0, stuck()), "x[1]"),
    "a set": ({stuck()}, "x"),
    "a mapping": ({"a": {1: stuck()}}, "x['a'][1]"),
    "a key": ({stuck(): 1}, "x"),
    "an array": (np.array([None, stuck()]), "x"),
    "a class": (Stuck, "x.part"),
    "a base": (type("Below", (Stuck,), {"__module__": __name__}), "x.part"),
    "an object": (Holder(stuck()), "a part of x[2]['held']"),
    "a method": (Holder(stuck()).__init__, "a part of x[2]['held']"),
    "a name of the module": (reads, "STUCK"),
    "a default": (defaults, "a default of x[0][0]"),
    "a closure": (closed(stuck()), "part"),
    "a method of what is built in": ([stuck()].append, "x[0]"),
    "a property": (property(closed(stuck())), "part"),
    "a cached function": (functools.cache(reads), "STUCK"),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_message_says_where_it_sits(place: str) -> None:
    value, name = PLACES[place]
    with pytest.raises(NotWritten) as found:
        describe(value, "x")
    assert str(found.value) == (
        f"{name} is a generator, which cannot be written into the key of a kept result: "
        "pass it as a setting made of numbers, strings, arrays, lists or dictionaries"
    )
