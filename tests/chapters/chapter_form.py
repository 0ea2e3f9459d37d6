"""What a chapter in the form of the book looks like, and everything in which a notebook departs from it.

Three layers on one page: the *path*, which is visible; the *evidence*, folded under a line that says what is in it; the
*margin*.  Only the path is counted in words, and only its cells in their number and length.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator, Mapping
from functools import cache
from statistics import median
from typing import Any

from visible import TITLE, Cell, path_words, prose_of

from book_tools.colab.myst import Directive, blocks_of

WORDS, VISIBLE_CELLS, FIGURES = (1_500, 3_000), (8, 16), (3, 5)
MEDIAN_LINES, VISIBLE_LINES, FOLDED_LINES, COLUMNS, NUMBERS = 8, 16, 40, 88, 10
# Of chapters that are written anew, proofs not counted.
PATH_WORDS, FOLDED_CELLS, BORROWED = 2_600, 10, 3
# Of notes, short chapters on one question, whose metadata say `"kind": "note"`: words, visible and folded cells.
NOTE = (900, 8, 4)
EXPERIMENTS = "cfltr_book.experiments"
PROOF = re.compile(r"^:::\{prf:proof\}.*?^:::$", re.MULTILINE | re.DOTALL)

# The first sign of each part, in the order of the parts; a heading says what happens, in words of its own.
PARTS = (
    ("the promise, **In one sentence:**", r"^\*\*In one sentence:\*\*"),
    ("the reading time", r"^\*Reading \d+ minutes"),
    ("what the reader will be able to do", r"you will be able to"),
    ("the three documents of the hand example, A, B, C", r"\bA\b[^\n]*\bB\b[^\n]*\bC\b"),
    ("a definition or an assumption", r"^:::\{prf:(?:definition|assumption)\}"),
    ("a theorem", r"^:::\{prf:theorem\}"),
    ("a proof", r"^:::\{prf:proof\}"),
    ("a heading with 'fails'", r"^##+ .*\bfails?\b"),
    ("a heading with 'practice'", r"^##+ .*\bpractice\b"),
    ("a heading with 'Check yourself'", r"^##+ .*\b[Cc]heck yourself\b"),
    ("the exercises", r"^:::\{exercise\}"),
    ("the key ideas", r"^##+ .*\b[Kk]ey ideas\b"),
    ("what to read next, **Read next:**", r"^\*\*Read next:\*\*"),
)
# A figure with a knob is one figure.
SHOWN = ("figure", "slider")
QUOTED = re.compile(r"\{glue:text\}`([\w-]+)`")


@cache
def nodes_of(cell: Cell) -> list[ast.AST]:
    """Every node of the code of a cell, without the commands of the notebook."""
    return [*ast.walk(ast.parse(without_commands(cell.text)))] if cell.kind == "code" else []


def without_commands(code: str) -> str:
    return re.sub(r"^\s*[%!].*$", "", code, flags=re.MULTILINE)


def form_problems_of(
    cells: list[Cell], number: int, committed: Mapping[str, Any], *, note: bool, anew: bool
) -> list[str]:
    """What is wrong with a notebook: by the form of notes, or of chapters, which ask for more where they are new."""
    if note:
        return note_problems_of(cells, number, committed)
    return [*problems_of(cells, number, committed), *(path_problems_of(cells) if anew else ())]


def problems_of(cells: list[Cell], number: int, committed: Mapping[str, Any]) -> list[str]:
    """Everything in which a chapter departs from the form, one line each.

    ``committed`` are the recorded values of the last accepted run: what is a string there is a phrase, no number.
    """
    problems = [*_parts(cells, number), *_sizes(cells), *_folds(cells), *_records(cells, committed)]
    return [*problems, *_figures(cells), *_exercises(prose_of(cells))]


def note_problems_of(cells: list[Cell], number: int, committed: Mapping[str, Any]) -> list[str]:
    """The same of a note, which is short instead of having all parts; what it has, it has in the form of a chapter."""
    found = path_words(prose_of(cells)), sum(c.is_visible for c in cells), sum(c.is_fold for c in cells)
    names = ("words on the path", "visible code cells", "folded cells")
    problems = [
        f"{value:,} {name}: a note has at most {most:,}"
        for value, name, most in zip(found, names, NOTE, strict=True)
        if value > most
    ]
    problems += [*_title(cells, number), *_lengths(cells), *_folds(cells), *_records(cells, committed)]
    return [*problems, *_texts_around_figures(cells), *path_problems_of(cells)]


def path_problems_of(cells: list[Cell]) -> list[str]:
    """What keeps a reader of the visible path from following it, of a chapter that is written anew."""
    return [*_short(cells), *_runs_from_what_is_visible(cells), *_no_phrases(cells)]


def _short(cells: list[Cell]) -> Iterator[str]:
    words = path_words(PROOF.sub("", prose_of(cells)))
    if words > PATH_WORDS:
        yield f"{words:,} words on the path without its proofs: expected at most {PATH_WORDS:,}"
    folded = sum(cell.is_fold for cell in cells)
    if folded > FOLDED_CELLS:
        yield f"{folded} folded cells: expected at most {FOLDED_CELLS}"
    shown = [tuple(ast.unparse(one) for one in call.args) for call in _calls(cells, "evidence")]
    yield from (
        f"run.evidence{one} stands twice: one fold a section" for one in sorted(set(shown)) if shown.count(one) > 1
    )


def _runs_from_what_is_visible(cells: list[Cell]) -> Iterator[str]:
    known = {*dir(builtins)}
    borrowed: set[str] = set()
    for index, cell in enumerate(cells):
        if not (cell.is_visible or cell.solution):
            continue
        defined, read = names_of(cell.text)
        missing = sorted(read - defined - known)
        if missing:
            yield f"cell {index} reads {', '.join(missing)}, which no visible cell above it defines"
        known |= defined
        if cell.is_visible:
            borrowed |= {
                alias.name
                for node in nodes_of(cell)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(EXPERIMENTS)
                for alias in node.names
            }
    if len(borrowed) > BORROWED:
        yield f"{len(borrowed)} names are borrowed from experiments, more than {BORROWED}: {sorted(borrowed)}"


def _no_phrases(cells: list[Cell]) -> Iterator[str]:
    if _calls(cells, "record"):
        yield "run.record is called: quote numbers by run.number, and write sentences with the marks of their claims"


def _between(name: str, value: float, limits: tuple[float, float]) -> Iterator[str]:
    low, high = limits
    if not low <= value <= high:
        yield f"{value:,} {name}: expected {low:,} to {high:,}"


def _parts(cells: list[Cell], number: int) -> Iterator[str]:
    prose = prose_of(cells)
    yield from _title(cells, number)
    headings = [int(n) for n in re.findall(r"^## (\d+)\. ", prose, flags=re.MULTILINE)]
    if headings != list(range(1, 10)):
        yield f"headings '## N. …' are numbered {headings}: expected 1 to 9, the nine parts"
    before, place = "", -1
    for name, sign in PARTS:
        match = re.search(sign, prose, flags=re.MULTILINE)
        if match is None:
            yield f"missing: {name}"
        elif match.start() < place:
            yield f"{name} before {before}"
        else:
            before, place = name, match.start()
    if not any(re.search(r"# try\b", cell.text) for cell in cells if cell.is_visible):
        yield "nothing to change: expected a visible line like 'eta = 1.0  # try 0, 0.5, 2'"


def _title(cells: list[Cell], number: int) -> Iterator[str]:
    if not cells[0].text.startswith(f"# {number}. "):
        yield f"the first line is not the title: expected '# {number}. …'"
    if sum("parameters" in cell.tags for cell in cells) != 1:
        yield "expected one cell tagged 'parameters'"


def _sizes(cells: list[Cell]) -> Iterator[str]:
    yield from _between("words on the path", path_words(prose_of(cells)), WORDS)
    visible = [cell for cell in cells if cell.is_visible]
    yield from _between("visible code cells", len(visible), VISIBLE_CELLS)
    middle = median(cell.lines for cell in visible) if visible else 0
    if middle > MEDIAN_LINES:
        yield f"visible code cells have {middle:g} lines in the median: expected at most {MEDIAN_LINES}"
    yield from _lengths(cells)


def _lengths(cells: list[Cell]) -> Iterator[str]:
    for index, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        if cell.solution:
            most, kind = VISIBLE_LINES, "solution's"
        else:
            most, kind = (VISIBLE_LINES, "visible") if cell.is_visible else (FOLDED_LINES, "folded")
        if cell.lines > most:
            yield f"cell {index} has {cell.lines} lines: a {kind} cell has at most {most}"
        for line in cell.text.splitlines():
            if len(line) > COLUMNS:
                yield f"cell {index} has a line of {len(line)} columns, more than {COLUMNS}: {line.strip()[:40]} …"


def _folds(cells: list[Cell]) -> Iterator[str]:
    for index, cell in enumerate(cells):
        titled = bool(TITLE.match(cell.text))
        if cell.is_fold and not titled:
            yield f"cell {index} is folded, and nothing says what is in it: begin with '# @title …'"
        if titled and not cell.is_fold:
            yield f"cell {index} has a title, but no tag folds it: hide-input or hide-cell"
        if len(re.findall(r"^# @title", cell.text, flags=re.MULTILINE)) > titled:
            yield f"cell {index} has a title that is not its first line, or says nothing"
    proof = next((i for i, cell in enumerate(cells) if ":::{prf:proof}" in cell.text), None)
    if proof is not None and not any(cell.is_fold for cell in cells[proof:]):
        yield "no folded cell after the proof: its steps are not checked"


def _records(cells: list[Cell], committed: Mapping[str, Any]) -> Iterator[str]:
    quoted = set(QUOTED.findall(prose_of(cells)))
    nodes = [node for cell in cells for node in nodes_of(cell)]
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    calls = [*_calls(cells, "record"), *_calls(cells, "number")]
    recorded = {call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)}
    yield from (f"{name} is recorded, but quoted nowhere" for name in sorted(recorded - quoted))
    yield from (f"{name} is quoted, but recorded nowhere" for name in sorted(quoted - strings))
    numbers = sorted(name for name in quoted if not isinstance(committed.get(name), str))
    if len(numbers) > NUMBERS:
        yield f"{len(numbers)} recorded numbers are quoted, more than {NUMBERS}: {', '.join(numbers)}"


def _figures(cells: list[Cell]) -> Iterator[str]:
    yield from _between("figures", sum(len(_calls(cells, method)) for method in SHOWN), FIGURES)
    yield from _texts_around_figures(cells)


def _texts_around_figures(cells: list[Cell]) -> Iterator[str]:
    for index, cell in enumerate(cells):
        if cell.kind == "code" and any(f"run.{method}(" in cell.text for method in SHOWN):
            before = next((c for c in reversed(cells[:index]) if not c.is_fold and "remove-cell" not in c.tags), None)
            after = next((c for c in cells[index + 1 :] if not c.is_fold), None)
            if before is None or before.kind != "markdown":
                yield f"cell {index} shows a figure: the text before it says what to look for"
            if after is None or after.kind != "markdown":
                yield f"cell {index} shows a figure: the text after it says what was seen"


def _exercises(prose: str) -> Iterator[str]:
    directives = [block for block in blocks_of(prose) if isinstance(block, Directive)]
    exercises = [block.options.get("label", "") for block in directives if block.name in ("exercise", "exercise-start")]
    solutions = [block.argument for block in directives if block.name in ("solution", "solution-start")]
    if len(exercises) != 3:
        yield f"{len(exercises)} exercises: expected three, by hand, in code, open"
    if solutions != exercises:
        yield f"solutions are those of {solutions}, the exercises are {exercises}"


def names_of(code: str) -> tuple[set[str], set[str]]:
    """The names that a cell defines in the notebook, and those that it, or a function in it, reads from there."""
    defined: set[str] = set()
    read: set[str] = set()
    tables = [symtable.symtable(without_commands(code), "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            outside = table.get_type() == "module" or symbol.is_global()
            if outside and (symbol.is_assigned() or symbol.is_imported()):
                defined.add(symbol.get_name())
            if outside and symbol.is_referenced():
                read.add(symbol.get_name())
    return defined, read


def _calls(cells: list[Cell], method: str) -> list[ast.Call]:
    found = [node for cell in cells for node in nodes_of(cell) if isinstance(node, ast.Call)]
    return [call for call in found if isinstance(call.func, ast.Attribute) and call.func.attr == method]
