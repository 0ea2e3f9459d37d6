"""The tool behind ``make mutants``: what it draws, what it counts, and that its list of equivalents is of today."""

from __future__ import annotations

import ast
import functools
import importlib.util
import runpy
from pathlib import Path

import making
import pytest
from making import modules

HERE = Path(__file__).parent

SMALL = """__all__ = ["f"]


def f(x):
    checks.one_of(x, "some", ("a", 2))
    if x > 1:
        raise ValueError("large")
    return x + 2
"""


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
