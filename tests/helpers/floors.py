"""The folders of a package are floors: this reads its imports and tells where they break the plan.

The plan is a table in the docstring of the package; the page about the architecture shows it.  Nothing is imported:
the sources are parsed, so that an import inside a function or under ``TYPE_CHECKING`` counts too.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# The rooms of a package that a mapping of floors does not name stand on the floor of this entry.
REST = "*"
# The package itself: what ``import`` finds, and what ``python -m`` runs.
DOOR = ("__init__", "__main__")
# What a row of the table may say in place of names: the file in which it stands, and the rooms that no row names.
WORDS = {"this file": DOOR, "other files": (REST,)}
ROW = re.compile(r"^(\d+) +(\S.*?) {2,}\S.*$", re.MULTILINE)
BESIDE = re.compile(r"``(\w+)`` may import ``(\w+)``")


@dataclass(frozen=True)
class Plan:
    """The floors of a package as its docstring gives them.

    ``floors`` has the floor of each room, ``beside`` the pairs of rooms on one floor of which the first may import
    the second.
    """

    floors: dict[str, int]
    beside: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Import:
    """``importer`` takes ``name`` (None: the module itself) from ``module`` and calls it ``alias``."""

    importer: str
    line: int
    module: str
    name: str | None
    alias: str


def plan_of(package: Path) -> Plan:
    """Return the plan that stands in the docstring of a package.

    Raises
    ------
    ValueError
        Where there is no table, or a row names no room.
    """
    text = ast.get_docstring(_tree(package / "__init__.py")) or ""
    floors = {}
    for floor, names in ROW.findall(text):
        rooms = WORDS.get(names) or tuple(re.findall(r"``(\w+)``", names))
        if not rooms:
            raise ValueError(f"{package.name}/__init__.py: floor {floor} names no room: {names!r}")
        floors |= dict.fromkeys(rooms, int(floor))
    if not floors:
        raise ValueError(f"{package.name}/__init__.py: its docstring has no table of floors")
    return Plan(floors, frozenset(BESIDE.findall(" ".join(text.split()))))


def floor_problems(
    package: Path, floors: Mapping[str, int], beside: Collection[tuple[str, str]] = frozenset()
) -> list[str]:
    """Return every import that points up, every private name taken across a wall, and a circle if there is one.

    Parameters
    ----------
    package : the folder of a package.
    floors : the floor of each of its rooms, counted from below.  A room is a module or a folder that lies directly in
        the package (``__init__`` is the package itself); ``"*"`` stands for all that are not named.
    beside : pairs (importer, imported) of rooms on one floor of which the first may import the second.  Within one
        room imports are free, as long as they make no circle.
    """
    modules = modules_of(package)
    imports = [found for name, path in modules.items() for found in imports_of(name, path, modules)]
    problems = []
    for found in imports:
        here, there = room_of(found.importer), room_of(found.module)
        place = f"{found.importer}, line {found.line}"
        missing = [room for room in (here, there) if room not in floors and REST not in floors]
        if missing:
            problems.append(
                f"{place}: {missing[0]} has no floor; give it one in the table of {package.name}/__init__.py"
            )
            continue
        low, high = (floors.get(room, floors.get(REST, 0)) for room in (here, there))
        # Two modules that share the entry of the rest are one room.
        same = here == there or (here not in floors and there not in floors)
        if high > low:
            problems.append(f"{place}: imports {found.module}, which stands on a higher floor")
        elif high == low and not same and (here, there) not in beside:
            problems.append(f"{place}: imports {found.module}, a room beside its own")
        if found.name is not None and _private(found.name):
            problems.append(f"{place}: takes the private {found.name} of {found.module}")
    for name, path in modules.items():
        problems += _private_attributes(name, path, [found for found in imports if found.importer == name])
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for found in imports:
        graph[found.importer].add(found.module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        problems.append(f"a circle of imports: {' ← '.join(error.args[1])}")
    return list(dict.fromkeys(problems))


def modules_of(package: Path) -> dict[str, Path]:
    """Return the modules of a package by dotted name; a folder's name stands for its ``__init__``."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(importer: str, path: Path, modules: Mapping[str, Path]) -> Iterator[Import]:
    """Yield what one module imports from the others of its package."""
    folder = importer if path.name == "__init__.py" else importer.rpartition(".")[0]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name in modules:
                    yield Import(importer, node.lineno, item.name, None, item.asname or item.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = folder.split(".")[: len(folder.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for item in node.names:
                alias = item.asname or item.name
                if f"{base}.{item.name}" in modules:
                    yield Import(importer, node.lineno, f"{base}.{item.name}", None, alias)
                elif base in modules:
                    yield Import(importer, node.lineno, base, item.name, alias)


def _private_attributes(importer: str, path: Path, imports: list[Import]) -> list[str]:
    """Find ``alias._x`` and ``getattr(alias, "_x")`` where the alias came from another module of the package."""
    sources = {found.alias: found.module for found in imports}
    problems = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute):
            owner, name = ast.unparse(node.value), node.attr
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "getattr"
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
        ):
            owner, name = ast.unparse(node.args[0]), str(node.args[1].value)
        else:
            continue
        if owner in sources and _private(name):
            problems.append(f"{importer}, line {node.lineno}: takes the private {name} of {sources[owner]}")
    return problems


def room_of(module: str) -> str:
    """Return the part of a module's name that has a floor: the one below the package."""
    return module.split(".")[1] if "." in module else "__init__"


def _private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))
