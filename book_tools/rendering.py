"""Text that is generated: templates filled in, Markdown tables, times in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

INCLUDE = re.compile(r"\{include\} (\S+)$", re.MULTILINE)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; bars and line breaks inside cells are made harmless."""
    lines = [_row(header), _row(["---"] * len(header))]
    lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def duration(seconds: float | None) -> str:
    """Return a run time as a reader says it."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds > 7200:
        return f"{seconds / 3600:.1f} h"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def included(page: Path) -> list[str]:
    """Return the names of the files that a page in Markdown, if it is there, includes from beside it."""
    return INCLUDE.findall(page.read_text(encoding="utf-8")) if page.is_file() else []


def render(template: str, **values: object) -> str:
    """Return one of the Jinja templates of ``book_tools/templates``, filled in; a missing value is an error."""
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["table"] = lambda rows, header: table(header, rows)
    return environment.get_template(template).render(values)


def first_paragraph(doc: str) -> str:
    """Return the first paragraph of a docstring on one line, in Markdown, with references as code."""
    text = " ".join(doc.strip().split("\n\n")[0].split())
    return re.sub(r"(?::\w+:)?(`+)~?([^`]+)\1", r"`\2`", text)
