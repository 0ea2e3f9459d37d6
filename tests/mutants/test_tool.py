"""The tool behind ``make mutants``: what it draws, what it counts, and that its list of equivalents is of today."""

from __future__ import annotations

import ast
import functools
import importlib.util
import runpy
from collections import Counter
from pathlib import Path

import making
import numpy as np
import pytest
from making import Mutant, change, draw, modules, statement_at

HERE = Path(__file__).parent
MODULE = '''"""Prose."""

A = 1


class Thing:
    def method(self, x):
        if (
            x > 1
            and x < 9
        ):
            return x + 1
        for i in range(x):
            x -= i
        return x


def function(x):
    try:
        y = [
            x,
            A,
        ]
    except ValueError:
        y = 2
    return y
'''

SMALL = """__all__ = ["f"]


def f(x):
    checks.one_of(x, "some", ("a", 2))
    if x > 1:
        raise ValueError("large")
    return x + 2
"""


@pytest.mark.parametrize(
    ("line", "function", "lines"),
    [
        (3, "", [3]),
        (9, "Thing.method", [8, 9, 10, 11]),
        (12, "Thing.method", [12]),
        (13, "Thing.method", [13]),
        (14, "Thing.method", [14]),
        (21, "function", [20, 21, 22, 23]),
        (25, "function", [25]),
        (18, "function", [18]),
    ],
)
def test_the_statement_around_a_line(line: int, function: str, lines: list[int]) -> None:
    assert statement_at(ast.parse(MODULE), line) == (function, tuple(lines))


def mutant(module: str, line: int) -> Mutant:
    return Mutant(f"cfltr_core/{module}.py", "f", (line,), "x", f"y{line}", "")


def test_a_draw_is_even_over_the_modules_as_far_as_they_reach() -> None:
    every = {name: [mutant(name, i) for i in range(n)] for name, n in (("few", 3), ("some", 20), ("many", 400))}
    for seed in range(10):
        for size, expected in ((12, [3, 4, 5]), (30, [3, 13, 14]), (80, [3, 20, 57]), (999, [3, 20, 400])):
            drawn = draw(every, size, np.random.default_rng(seed))
            assert len(set(drawn)) == len(drawn) == min(size, 423)
            counts = sorted(Counter(one.module for one in drawn).values())
            assert counts[0] == 3
            assert max(abs(a - b) for a, b in zip(counts, expected, strict=True)) <= 1
    first = draw(every, 30, np.random.default_rng(0))
    assert first == draw(every, 30, np.random.default_rng(0)) != draw(every, 30, np.random.default_rng(1))


def test_modules_by_name() -> None:
    names = [path.stem for path in modules([])]
    assert {"metrics", "logs", "checks", "svmlight"} <= set(names)
    assert not any(name.startswith("__") for name in names)
    assert [path.stem for path in modules(["metrics", "clicks.logs", "metrics"])] == ["metrics", "logs"]
    assert {path.parent.name for path in modules(["learning"])} == {"learning"}
    with pytest.raises(ValueError, match=r"there is no module 'metric'; choose among checks, clicks\.display_shares, "):
        modules(["metric"])


@pytest.mark.skipif(importlib.util.find_spec("mutmut") is None, reason="mutmut is installed by 'make mutants'")
def test_mutants_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "ROOT", tmp_path)
    path = tmp_path / "cfltr_core" / "thing.py"
    path.parent.mkdir()
    path.write_text(SMALL, encoding="utf-8")
    mutants = [making.mutant_of(place) for place in making.places_of(path)]
    keys = {one.key for one in mutants}
    assert ("thing", "f", "if x > 1:", "if x >= 1:") in keys
    assert ("thing", "f", "return x + 2", "return x - 2") in keys
    assert ("thing", "f", "return x + 2", "return x + 3") in keys
    assert not any("LARGE" in after or "XXlarge" in after for *_, after in keys)
    (one,) = (one for one in mutants if one.after == "return x - 2")
    assert one.lines == (8,)
    inner = {after for *_, after in keys if after.startswith("checks.one_of(x, ")}
    assert 'checks.one_of(x, "some", ("XXaXX", 2))' in inner
    assert 'checks.one_of(x, "some", ("a", 3))' in inner
    assert not any("XXsome" in after or "SOME" in after for after in inner)
    assert "-    return x + 2\n+    return x - 2" in one.diff()


@functools.cache
def read(module: str) -> tuple[str, ast.AST]:
    (path,) = making.modules([module])
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)


def test_equivalents_stand_in_the_package_with_a_reason() -> None:
    """An entry whose line is gone excuses nothing; it would hide a mutant of another line that reads the same."""
    for (module, function, before, after), reason in runpy.run_path(str(HERE / "__main__.py"))["equivalents"]().items():
        text, node = read(module)
        for name in filter(None, function.split(".")):
            (node,) = (child for child in ast.walk(node) if getattr(child, "name", None) == name)
        source = text if isinstance(node, ast.Module) else ast.get_source_segment(text, node, padded=True)
        lines = " ".join(line.strip() for line in source.splitlines())
        assert before in lines, f"equivalent.yml: {module}, {function}: {before!r} is gone"
        assert before != after
        assert len(reason) >= 20, f"equivalent.yml: {module}, {function}, {before!r}: say why"
