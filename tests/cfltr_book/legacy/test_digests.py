"""Digests: a comment changes none, and whatever decides a result changes one."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracles
import pytest
import torch

from cfltr_book.legacy import digests
from cfltr_book.legacy.digests import (
    NotWritten,
    check_draws,
    code_digest,
    describe,
    executed_cells,
    package_digest,
    plain_code,
)
from cfltr_core import power_examination

PLAIN = """
import math

OFFSET = 1.5
TABLE = {"a": [1, 2]}

def helper(x, scale=2.0):
    return x * scale

class Model:
    rate = 0.1
    def __init__(self):
        self.state = [1, 2]
    def act(self, x):
        return x + self.rate

model = Model()

def make(bound):
    def f(seed, rng):
        inner = lambda v: v + bound
        return inner(helper(seed)) + OFFSET + math.pi + len(TABLE) + model.act(0) + sum(i for i in range(3))
    return f

f = make(3)
"""
# The same program with comments, docstrings and another layout.
DRESSED = '"""A module."""' + PLAIN
for bare, dressed in (
    ("import math", "import math  # of the standard library"),
    ('{"a": [1, 2]}', '{\n    "a": [1, 2],\n}'),
    ("    return x * scale", '    """Twice x."""\n    # no more\n    return x * scale'),
    ("    rate", '    """A model."""\n\n    rate'),
    ("        inner =", '        """f itself."""\n        inner ='),
    ("sum(i for i in range(3))", "sum(\n            i for i in range(3)\n        )"),
):
    DRESSED = oracles.replaced_once(DRESSED, bare, dressed)
CHANGES = {
    "the code itself": ("+ OFFSET", "- OFFSET"),
    "a global number": ("OFFSET = 1.5", "OFFSET = 1.25"),
    "a global container": ('"a": [1, 2]', '"a": [1, 3]'),
    "a function that is called": ("return x * scale", "return x / scale"),
    "a default": ("scale=2.0", "scale=3.0"),
    "the value in the closure": ("f = make(3)", "f = make(4)"),
    "an inner lambda": ("v + bound", "v - bound"),
    "a generator inside": ("range(3)", "range(4)"),
    "an attribute of a class": ("rate = 0.1", "rate = 0.2"),
    "a method": ("return x + self.rate", "return x - self.rate"),
    "the state of an object": ("self.state = [1, 2]", "self.state = [1, 4]"),
    "another name of a library": ("math.pi", "math.e"),
}


def program(text: str, folder: Path, name: str = "program") -> Callable[..., Any]:
    """``f`` of a module with this text, as if it were imported from ``folder``."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(text, str(path), "exec"), vars(module))
    return module.f


def test_code_digest_sees_what_matters_and_nothing_else(tmp_path: Path) -> None:
    plain = code_digest(program(PLAIN, tmp_path))
    assert plain == code_digest(program(PLAIN, tmp_path)) == code_digest(program(DRESSED, tmp_path))
    found = {plain}
    for what, (old, new) in CHANGES.items():
        changed = oracles.replaced_once(PLAIN, old, new)
        found.add(code_digest(program(changed, tmp_path)))
        assert len(found) == 2 + list(CHANGES).index(what), what


def test_code_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(PLAIN + "\nWORDS = {'a', 'b', 'c'}\ng = lambda: (f, WORDS)\n")
    script = "import sys; from elsewhere import g; from cfltr_book.legacy.digests import code_digest as c; print(c(g))"
    both = []
    for salt in ("1", "2"):
        environment = {"PYTHONHASHSEED": salt, "PYTHONPATH": f"{tmp_path}:{Path(digests.__file__).parents[2]}"}
        run = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        both.append(run.stdout.strip())
    assert both[0] == both[1]
    assert len(both[0]) == 64


def test_a_module_of_ones_own_counts_with_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    helpers = ModuleType("helpers")
    helpers.__file__ = str(tmp_path / "helpers.py")
    found = []
    for text in ("x = 1\n", "x = 1  # one\n", "x = 2\n"):
        Path(helpers.__file__).write_text(text)
        found.append(describe(helpers, "helpers"))
    assert found[0] == found[1] != found[2]


def test_plain_code() -> None:
    assert plain_code(PLAIN) == plain_code(DRESSED)
    for old, new in CHANGES.values():
        assert plain_code(oracles.replaced_once(PLAIN, old, new)) != plain_code(PLAIN)
    assert plain_code("no code (") == "no code ("
    assert plain_code('def f():\n    """Only this."""') == plain_code("def f():\n    pass")


def test_package_digest(tmp_path: Path) -> None:
    def of(**files: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir()))) / "package"
        for name, text in files.items():
            path = folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return package_digest(folder)

    first = of(a=PLAIN, b="x = 1")
    assert first == of(a=DRESSED, b="x = 1  # one")
    different = [of(a=PLAIN, b="x = 2"), of(a=PLAIN, c="x = 1"), of(a=PLAIN)]
    assert len({first, *different}) == 4
    root = Path(digests.__file__).parents[2]
    assert package_digest() == package_digest(root / "cfltr_core", root / "cfltr_book")
    assert package_digest(root / "cfltr_core") != package_digest() != package_digest(root / "cfltr_book")


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


def above(base: type) -> type:
    return type("Above", (base,), {"__module__": __name__})


net = torch.nn.Linear(2, 1)
# Pairs of values that differ in one thing.
PAIRS = {
    "numbers": (1, 2),
    "types": (1, 1.0),
    "list and tuple": ([1], (1,)),
    "sets": ({1, 2}, {1, 3}),
    "dictionaries": ({"a": 1}, {"a": 2}),
    "arrays": (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "kinds of array": (np.zeros(2), np.zeros(2, dtype=int)),
    "arrays of words": (np.array(["a", None]), np.array(["a", 1])),
    "objects": (Plain(1), Plain([1])),
    "of the package": (power_examination(1.0), power_examination(2.0)),
    "partial functions": (functools.partial(max, 1), functools.partial(max, 2)),
    "methods": (Plain(1).__init__, Plain(2).__init__),
    "cached functions": (functools.cache(lambda: 1), functools.cache(lambda: 2)),
    "built-in functions": (len, sum),
    "functions of NumPy": (np.sum, np.mean),
    "classes": (Plain, ModuleType),
    "classes that stand on others": (above(Plain), above(dict)),
    "networks": (net, torch.nn.Linear(2, 1)),
    "tensors": (torch.zeros(2), torch.ones(2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_describe_tells_values_apart(name: str) -> None:
    one, other = PAIRS[name]
    assert describe(one, "x") == describe(one, "x") != describe(other, "x")
    # What it says can be written as JSON and read back.
    assert oracles.same(json.loads(json.dumps(describe(one, "x"))), describe(one, "x"))


def test_describe_does_not_depend_on_order_where_none_is_meant() -> None:
    assert describe({"a": 1, "b": 2}, "x") == describe({"b": 2, "a": 1}, "x")
    assert describe({"x", "y", "z"}, "x") == describe({"z", "y", "x"}, "x")
    assert describe(np.float64(0.5), "x") == describe(0.5, "x")


def test_a_shared_generator_is_found_wherever_it_hides() -> None:
    hidden = np.random.default_rng(0)
    users = [
        lambda: hidden.random(),
        lambda x=hidden: x,
        functools.partial(min, hidden),
        Plain({"r": [hidden]}).__init__,
    ]
    for function in users:
        with pytest.raises(NotWritten, match="is a generator of random numbers that all cells would share"):
            check_draws(function)
        with pytest.raises(NotWritten, match="is a generator of random numbers"):
            code_digest(function)
    state = oracles.uniforms([0], 1)
    check_draws(lambda rng: rng.random())
    assert hidden.random() == state[0]  # nobody has drawn from it


CELLS = [
    "scale = 'smoke'",
    "import numpy as np\nfrom cfltr_book.legacy.digests import code_digest, executed_cells",
    "x = 1",
    "def f(seed, rng):\n    return x",
    "opaque = (i for i in range(3))\ndef g(seed, rng):\n    return opaque",
]
ASK = "print(code_digest(f), code_digest(g), len(executed_cells()))"
NOTEBOOKS = """
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
import cfltr_book.legacy.digests
for cells in json.loads(sys.argv[1]):
    if os.fork() == 0:
        shell = InteractiveShell.instance()
        for cell in cells:
            assert shell.run_cell(cell, store_history=True).success
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_in_a_notebook_the_cells_executed_so_far_take_part() -> None:
    assert executed_cells() is None
    *start, last = CELLS
    counts = "x = globals().get('x', 0) + 1"
    notebooks = [
        [*CELLS, ASK, ASK],  # interrupted, and executed again
        [*start[:-1], start[-1] + "  # why", last, ASK],
        [*start, "y = 5", last, ASK],  # a cell that f does not even read
        [*start[:2], counts, *start[3:], last, ASK],
        [*start[:2], counts, counts, *start[3:], last, ASK],
    ]
    run = subprocess.run([sys.executable, "-c", NOTEBOOKS, json.dumps(notebooks)], capture_output=True, text=True)
    (f, g, n), again, commented, other, twice, thrice = (line.split() for line in run.stdout.splitlines())
    assert int(n) == len(CELLS) + 1
    assert commented[:2] == [f, g]
    assert other[0] != f
    assert other[1] != g
    assert again[0] == f
    assert again[1] != g  # which reads what only the cells say
    assert twice[0] != thrice[0]  # the same cell twice, but x has another value


def test_each_object_is_described_once_and_a_circle_says_where_it_returns() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    assert describe([[], circle], "x") == [
        "list",
        [["list", []], ["list", [["int", "1"], ["described above", 3]]]],
    ]


def stuck() -> Any:
    return (i for i in ())


def reads() -> Any:
    return STUCK


def closed(part: Any) -> Callable[[], Any]:
    return lambda: part


STUCK = stuck()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (stuck(), "x"),
        ({"a": [0, {1: stuck()}]}, r"x\['a'\]\[1\]\[1\]"),
        (np.array([None, stuck()]), "x"),
        (type("Below", (), {"__module__": __name__, "part": stuck()}), r"x\.part"),
        (Plain(stuck()).__init__, r"a part of x\[2\]\['value'\]"),
        (functools.cache(reads), "STUCK"),
        (closed(stuck()), "part"),
    ],
)
def test_what_cannot_be_written_is_named_wherever_it_sits(value: Any, name: str) -> None:
    with pytest.raises(NotWritten, match=f"^{name} is a generator, which cannot be written"):
        describe(value, "x")
