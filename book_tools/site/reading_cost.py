"""What it costs to count raw events: the measured points as a table, and on what machine they were measured."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd

from book_tools.site.tables import render


def reading_cost(path: Path) -> list[str]:
    """Return the section of the page, from the points that ``benchmarks.events --cost`` keeps; empty without them."""
    if not path.is_file():
        return []
    points = pd.read_csv(path)
    rows = [
        [
            f"$10^{{{round(math.log10(size))}}}$" if math.log10(size).is_integer() else f"{size:,}",
            f"{mean['terms']:,.0f}",
            f"{mean['cpu']:.1f} s",
            f"{mean['seconds']:.1f} s",
            f"{mean['MiB'] / 1024:.1f} GiB",
        ]
        for size, mean in points.groupby("rows").mean().iterrows()
    ]
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return [render("reading_cost.md.jinja", about=about, readings=len(points), rows=rows)]
