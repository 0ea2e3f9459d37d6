"""The page that shows how the code is built: floors, rooms and modules of the packages, drawn from their imports.

Nothing of it is typed: the floors are those of the packages' docstrings, which tests compare with the imports, the
arrows are the imports, and what a module is for is its own first line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from book_tools.site.floors import DOOR, REST, Plan, docstring, imports_of, modules_of, plan_of, room_of

NAME = "chapters/architecture"
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "cfltr_core": "What the book teaches, and what a practitioner installs.",
    "cfltr_book": "What a chapter leans on besides: its run, corpora, figures and claims. It calls `cfltr_core`.",
    "book_tools": "How the book is executed, built and checked. Chapters never import it.",
}
INTRODUCTION = """# How the code is built

Three packages make the book, and each calls only those before it. The folders of each are floors of a house, and
imports point only down: what stands on a floor uses what lies below it, and knows nothing of what stands above. So
each floor can be read, tested and changed with nothing but the floors below in mind. This page is drawn from the
imports themselves when the site is built; a test fails where an import points up, where two rooms of one floor know
each other without leave, or where a name with
an underscore leaves its module.
"""
# The picture, in units of its own: a phone shows it about as large as this.
WIDTH, BOX, HEIGHT, STOREY = 360, 104, 36, 78
Edges = dict[str, set[str]]


def architecture() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for name, purpose in PACKAGES.items():
        package = ROOT / name
        plan, edges = plan_of(package), rooms_below(package)
        parts += [f"## `{name}`\n\n{purpose}\n", drawing(name, plan, edges), *_storeys(package, plan, edges)]
    return "\n".join(parts)


def rooms_below(package: Path) -> Edges:
    """Return from which rooms each room of a package imports; what no row of the plan names is one room."""
    plan, modules = plan_of(package), modules_of(package)
    edges: Edges = {_known(room_of(name), plan): set() for name in modules}
    for name, path in modules.items():
        for found in imports_of(name, path, modules):
            here, there = (_known(room_of(module), plan) for module in (found.importer, found.module))
            edges[here] |= {there} - {here}
    return edges


def _known(room: str, plan: Plan) -> str:
    return DOOR[0] if room in DOOR else room if room in plan.floors else REST


def without_detours(edges: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that are no short cut of a longer way: all of them, drawn, would hide each other."""

    def reached(room: str) -> set[str]:
        return {far for near in edges.get(room, set()) for far in {near, *reached(near)}}

    return [
        (here, there)
        for here in sorted(edges)
        for there in sorted(edges[here])
        if not any(there in reached(other) for other in edges[here] - {there})
    ]


def drawing(name: str, plan: Plan, edges: Edges) -> str:
    """Return the floors as a picture: a box for each room, an arrow from a room to those it imports from."""
    heights = sorted({floor for floor, _, _ in plan.rows}, reverse=True)
    at: dict[str, tuple[float, float]] = {}
    for row, height in enumerate(heights):
        rooms = [room for floor, rooms, _ in plan.rows if floor == height for room in rooms if room != DOOR[1]]
        for place, room in enumerate(rooms):
            at[room] = (WIDTH * (2 * place + 1) / (2 * len(rooms)), STOREY * row + HEIGHT / 2 + 2)
    arrows = without_detours(edges)
    tall = STOREY * (len(heights) - 1) + HEIGHT + 4
    said = "; ".join(f"{_label(here, name)} imports from {_label(there, name)}" for here, there in arrows)
    lines = [
        f'<svg class="house" viewBox="0 0 {WIDTH} {tall}" role="img" '
        f'aria-label="{len(heights)} floors of {name}, '
        f'with an arrow down for each import that no longer way implies: {html.escape(said)}.">',
        f'<defs><marker id="tip-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
    ]
    for here, there in arrows:
        (x1, y1), (x2, y2) = _ends(at[here], at[there])
        lines.append(
            f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" fill="none" stroke="currentColor" marker-end="url(#tip-{name})"/>'
        )
    for room, (x, y) in at.items():
        lines.append(
            f'<rect x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="4" fill="none" '
            f'stroke="currentColor"/><text x="{x:g}" y="{y + 4:g}" text-anchor="middle" '
            f'fill="currentColor">{_label(room, name)}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def _ends(here: tuple[float, float], there: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where an arrow begins and ends on the edges of two boxes."""
    (x1, y1), (x2, y2) = here, there
    if y1 == y2:
        side = BOX / 2 if x2 > x1 else -BOX / 2
        return (x1 + side, y1), (x2 - side, y2)
    inner = BOX / 2 - 14
    reach = [min(max(other - own, -inner), inner) for own, other in ((x1, x2), (x2, x1))]
    # Half the way at the tip, so that arrows which arrive from both sides keep apart.
    return (x1 + reach[0], y1 + HEIGHT / 2), (x2 + reach[1] / 2, y2 - HEIGHT / 2)


def _label(room: str, package: str) -> str:
    return {DOOR[0]: package, REST: "other files"}.get(room, room)


def _storeys(package: Path, plan: Plan, edges: Edges) -> Iterable[str]:
    """Yield for each floor, from the top, its rooms with their modules, folded."""
    modules = modules_of(package)
    for floor, rooms, what in plan.rows:
        yield f"**Floor {floor}**: {what}.\n"
        for room in [room for room in rooms if room != DOOR[1]]:
            inside = {name: path for name, path in modules.items() if _known(room_of(name), plan) == room}
            below = ", ".join(f"`{_label(other, package.name)}`" for other in sorted(edges[room])) or "nothing here"
            count = f"{len(inside)} modules" if len(inside) > 1 else "1 module"
            lines = "\n".join(f"- `{name}`: {first_line(path)}" for name, path in inside.items())
            yield f":::{{dropdown}} {_label(room, package.name)}: {count}\n\nImports from: {below}.\n\n{lines}\n\n:::\n"


def first_line(path: Path) -> str:
    """Return the first paragraph of what a module says of itself, in Markdown."""
    text = " ".join(docstring(path).split("\n\n")[0].split())
    return re.sub(r"(?::\w+:)?(`+)~?([^`]+)\1", r"`\2`", text)
