"""Every chapter has the form that a reader, a Colab user and the pipeline rely on.

The form is that of ``chapter_form.py``; chapters that are not yet written anew are listed here by name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from chapter_form import PARTS, form_problems_of, names_of, path_problems_of
from visible import Cell, cells_of, path_words, prose_of

from cfltr_book.reporting.claim_registry import registry

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
# Chapters that are written anew.
ANEW = {"01", "02", "03", "04", "05", "06", "11", "12", "16", "17"}
ACCEPTED = ROOT / "tests" / "reference" / "ci" / "records.json"
# What a bare Colab offers, beside the package itself and the standard library.
IMPORTS = {"cfltr_core", "cfltr_book", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "sklearn", "torch"}
# A chapter that writes files does so in a temporary folder.
STANDARD = {"itertools", "math", "functools", "collections", "dataclasses", "importlib", "inspect", "tempfile"}


@cache
def cells(path: Path) -> list[tuple[str, str, list[str]]]:
    """(kind, text, tags) of each cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [(c["cell_type"], "".join(c["source"]), c["metadata"].get("tags", [])) for c in notebook["cells"]]


def prose(path: Path) -> str:
    return "\n\n".join(text for kind, text, _ in cells(path) if kind == "markdown")


@cache
def code(path: Path) -> str:
    lines = "\n".join(text for kind, text, _ in cells(path) if kind == "code")
    return re.sub(r"^\s*[%!].*$", "", lines, flags=re.M)


def test_the_table_of_contents_lists_every_chapter_once() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [c["file"] for part in toc["parts"] for c in part["chapters"]]
    notebooks = [f"chapters/{p.stem}" for p in CHAPTERS]
    assert [f for f in listed if f in notebooks] == notebooks
    assert len(listed) == len(set(listed))


def test_chapters_are_in_the_form() -> None:
    committed = json.loads(ACCEPTED.read_text(encoding="utf-8"))
    notebooks = {path: json.loads(path.read_text(encoding="utf-8")) for path in CHAPTERS}
    problems = [
        f"{path.name}: {problem}"
        for path, notebook in notebooks.items()
        for problem in form_problems_of(
            cells_of(notebook),
            int(path.stem[:2]),
            committed,
            note=notebook["metadata"].get("kind") == "note",
            anew=path.stem[:2] in ANEW,
        )
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
class TestEveryChapter:
    def test_title_carries_the_number_of_the_file(self, path: Path) -> None:
        first = cells(path)[0]
        assert first[0] == "markdown"
        assert re.match(rf"# {int(path.stem[:2])}\. \w", first[1])
        assert "**In one sentence:**" in first[1]

    def test_claims_are_those_of_the_registry(self, path: Path) -> None:
        measured = ROOT / "cfltr_book" / "evidence" / f"ch{path.stem[:2]}.py"
        trees = [code(path), *([measured.read_text(encoding="utf-8")] if measured.is_file() else [])]
        strings = [n.value for tree in trees for n in ast.walk(ast.parse(tree)) if isinstance(n, ast.Constant)]
        made = [text for text in strings if isinstance(text, str) and text in registry()]
        assert sorted(made) == sorted(c.id for c in registry().values() if c.chapter == path.stem[:2])

    def test_only_the_run_knows_where_the_chapter_stands(self, path: Path) -> None:
        """Corpora, generators of seeds, claims, records and figures come from one object, which is made once."""
        tree = ast.parse(code(path))
        assert code(path).count("run = book.Run(scale, corpus, seed)") == 1
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        arguments = [a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in (*n.args, *n.kwonlyargs)]
        assert [*stored, *arguments].count("run") == 1
        around = r"\bcf\.(load_corpus|SCALES|claim|record|figure|slider)\b"
        assert not re.search(around, code(path))
        assert not re.search(r"default_rng\(\[|scale=scale|corpus=corpus", code(path))

    def test_imports_only_what_colab_has(self, path: Path) -> None:
        for node in ast.walk(ast.parse(code(path))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {n.split(".")[0] for n in names} <= IMPORTS | STANDARD

    def test_one_code_path_at_every_scale_and_no_files(self, path: Path) -> None:
        assert not re.search(r"\bif\b[^\n]*\bscale\b", code(path))
        assert not re.search(r"\bopen\(|read_csv|savefig|plt\.show|np\.random\.(seed|rand)", code(path))
        # The default parameters are those of the pages.
        tagged = [t for _, t, tags in cells(path) if "parameters" in tags]
        assert len(tagged) == 1
        assert 'scale = "ci"' in tagged[0]

    def test_directives_survive_a_plain_renderer(self, path: Path) -> None:
        text = prose(path)
        assert "```{" not in text
        for block in re.findall(r"^:::\{(?:prf:\w+|exercise|solution)\}.*?^:::$", text, flags=re.M | re.S):
            assert block.rstrip(":").endswith("\n\n"), block[:60]
        labels = re.findall(r"^:label: ([\w-]+)", text, flags=re.M)
        assert all(re.match(r"(thm|def|ass|lem|alg|ex|sec)-", label) for label in labels)
        assert len(labels) == len(set(labels))


def test_a_chapter_written_anew_has_ten_questions_for_its_readers() -> None:
    asked = yaml.safe_load((ROOT / "tests" / "chapters" / "readers.yml").read_text(encoding="utf-8"))
    assert {name[:2] for name in asked} == ANEW
    for name, questions in asked.items():
        assert (ROOT / "chapters" / f"{name}.ipynb").is_file()
        assert len(set(questions)) == 10
        assert all("?" in question for question in questions)


def test_names_of_a_cell() -> None:
    code = """%matplotlib inline
import numpy as np
from a import b as c
total = sum(n for n in numbers)
def f(x, *, y=default):
    inner = x + shared
    def g():
        return inner + deep
    return g
class K(Base):
    held = at_class
for i, (j, k) in pairs: last = i
with opened() as stream: pass
"""
    defined, read = names_of(code)
    assert defined == {"np", "c", "total", "f", "K", "i", "j", "k", "last", "stream"}
    assert read == {"sum", "numbers", "default", "shared", "deep", "Base", "at_class", "pairs", "opened", "i"}


WORD = "word " * 12
# The texts of the smallest chapter in the form: up to its code, to its proof, to the exercise in code, and to the end.
TEXTS = Path(__file__).with_name("sound.md").read_text(encoding="utf-8")
START, PROVED, END, LAST = TEXTS.removesuffix("\n").split("\n\n---\n\n")
BEFORE, AFTER = "What to look for: the line.", "What was seen: it falls."
FIGURE = '# @title How this was drawn\nrun.figure(fig, "fig-0", caption="c", alt="a", data=d)'
RECORD = 'run.record("size-1", 0.5)\nrun.record("who-wins", "A")'
COMMITTED = {"who-wins": "A"}
Change = Callable[[list[Cell]], list[Cell]]


def markdown(text: str) -> Cell:
    return Cell("markdown", text, frozenset())


def code_cell(text: str, *tags: str, solution: bool = False) -> Cell:
    return Cell("code", text, frozenset(tags), solution)


FIGURE_CELLS = [markdown(BEFORE), code_cell(FIGURE, "hide-input"), markdown(AFTER)]


def sound() -> list[Cell]:
    """The smallest chapter in the form."""
    return [
        markdown(START),
        code_cell('scale = "ci"', "parameters"),
        *[code_cell("eta = 1.0  # try 0, 2\ny = eta")] * 7,
        markdown(PROVED),
        code_cell("# @title Evidence: the steps\n" + "assert True\n" * 40, "hide-cell"),
        code_cell(RECORD),
        *FIGURE_CELLS * 3,
        markdown("\n".join([WORD] * 125)),
        markdown(END),
        code_cell("x = 1\n" * 16, solution=True),
        markdown(LAST),
    ]


def note() -> list[Cell]:
    """A note at the limits of its form: no theorem, no exercises, one figure."""
    return [
        markdown("# 7. A question"),
        code_cell('scale = "ci"', "parameters"),
        *[code_cell("y = 1")] * 7,
        *FIGURE_CELLS[:2],
        *[code_cell("# @title More\ny = 2", "hide-cell")] * 3,
        markdown(AFTER),
    ]


def problems_of(cells: list[Cell], **changes: Any) -> list[str]:
    return form_problems_of(cells, 7, COMMITTED, **{"note": False, "anew": False, **changes})


def edited(old: str, new: str) -> Change:
    """Replace a text in every cell that holds it; some cell does."""

    def edit(cells: list[Cell]) -> list[Cell]:
        assert any(old in cell.text for cell in cells)
        return [replace(cell, text=cell.text.replace(old, new)) for cell in cells]

    return edit


def added(*cells: Cell) -> Change:
    """Add cells before the last text."""
    return lambda before: [*before[:-1], *cells, before[-1]]


def with_code(text: str, *tags: str) -> Change:
    return added(code_cell(text, *tags))


def without(tag: str) -> Change:
    return lambda cells: [replace(cell, tags=cell.tags - {tag}) for cell in cells]


def code_for(text: str) -> Change:
    """Put a cell of code in the place of the text."""
    return lambda cells: [code_cell("x = 1") if cell.text == text else cell for cell in cells]


def both(*changes: Change) -> Change:
    def change(cells: list[Cell]) -> list[Cell]:
        for one in changes:
            cells = one(cells)
        return cells

    return change


def swapped(one: str, other: str) -> Change:
    """Exchange two texts."""
    return both(edited(one, "SWAPPED"), edited(other, one), edited("SWAPPED", other))


def without_part(sign: str) -> Change:
    """Break the first sign of a part wherever it stands."""
    return lambda cells: [replace(cell, text=re.sub(sign, "Gone", cell.text, flags=re.MULTILINE)) for cell in cells]


LONG = "x = 1\n"
NUMBERS = " ".join(f"{{glue:text}}`size-{number}`" for number in range(1, 12))
RECORDS = "\n".join(f'run.record("size-{number}", {number})' for number in range(2, 12))
EVIDENCE = "# @title E\n"
MISSING = [(without_part(sign), f"missing: {name}") for name, sign in PARTS if name != "the exercises"]
# None where the change is allowed.
DEPARTURES: list[tuple[Change, str | None]] = [
    *MISSING,
    (lambda cells: cells, None),
    (edited("# 7. A", "# 8. A"), "the first line is not the title: expected '# 7. …'"),
    (edited("## 6. Pictures", "### Pictures"), "are numbered [1, 2, 3, 4, 5, 7, 8, 9]: expected 1 to 9"),
    (swapped("When it fails", "In practice"), "a heading with 'practice' before a heading with 'fails'"),
    (swapped("{prf:theorem}", "{prf:proof}"), "a proof before a theorem"),
    (without("parameters"), "expected one cell tagged 'parameters'"),
    (edited("  # try 0, 2", ""), "nothing to change: expected a visible line like"),
    *((edited(WORD, "word " * n), "words on the path: expected 1,500 to 3,000") for n in (10, 26)),
    (lambda cells: cells[:2] + cells[4:], "7 visible code cells: expected 8 to 16"),
    (added(*[code_cell("x = 1")] * 8), "17 visible code cells: expected 8 to 16"),
    (with_code("x = 1", "remove-cell"), None),
    (edited("  # try 0, 2\n", "  # try 0, 2\n" + LONG * 7), "have 9 lines in the median: expected at most 8"),
    (with_code(LONG * 17), "has 17 lines: a visible cell has at most 16"),
    (with_code(EVIDENCE + LONG * 41, "hide-cell"), "has 41 lines: a folded cell has at most 40"),
    (edited(LONG * 16, LONG * 17), "has 17 lines: a solution's cell has at most 16"),
    (with_code("x = " + "1" * 85), "has a line of 89 columns, more than 88"),
    (with_code(EVIDENCE + "x = " + "1" * 85, "hide-input"), "has a line of 89 columns, more than 88"),
    *((with_code("x = 1", tag), "is folded, and nothing says what is in it") for tag in ("hide-input", "hide-cell")),
    (with_code("# @title E\nx = 1"), "has a title, but no tag folds it"),
    (with_code("x = 1\n# @title E"), "has a title that is not its first line"),
    (lambda cells: [cell for cell in cells if not cell.is_fold], "no folded cell after the proof"),
    (edited("run.figure(", "draw("), "0 figures: expected 3 to 5"),
    # A figure with a knob is one figure, and stands between texts too.
    (edited("run.figure(fig,", "run.slider(draw,"), None),
    (both(edited("run.figure(", "run.slider("), code_for(AFTER)), "says what was seen"),
    # One text may stand between two figures; a cell between text and figure may not.
    (lambda cells: [cell for cell in cells if cell.text != AFTER], None),
    (code_for(BEFORE), "the text before it says what to look for"),
    (edited("run.record(", "keep("), None),
    (edited('"size-1"', '"size"'), "size-1 is quoted, but recorded nowhere"),
    (with_code('run.record("more", 1)'), "more is recorded, but quoted nowhere"),
    # Eleven numbers, and a phrase, which is none.
    (
        both(with_code(RECORDS), edited("{glue:text}`size-1`", NUMBERS)),
        "11 recorded numbers are quoted, more than 10: size-1, size-10, size-11, size-2",
    ),
    (edited(":::{exercise}\n:label: ex-three", ":::{note}\n:label: ex-three"), "2 exercises: expected three"),
    (edited("{solution} ex-three", "{solution} ex-one"), "solutions are those of ['ex-one', 'ex-two', 'ex-one']"),
]


@pytest.mark.parametrize(("change", "problem"), DEPARTURES)
def test_what_departs_from_the_form(change: Change, problem: str | None) -> None:
    found = problems_of(change(sound()))
    assert found == [] if problem is None else any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (with_code("x = z + len([y])"), "reads z, which no visible cell above it defines"),
        (with_code("import folded\nfrom a import z", "hide-input"), None),
        (both(with_code("# @title Z\nz = 1", "hide-input"), with_code("z")), "reads z, which no visible"),
        (both(with_code("z = 1"), with_code("z")), None),
        (with_code("from cfltr_book.experiments.ch01 import a, b, c"), None),
        (with_code("from cfltr_book.experiments.ch01 import a, b, c, d"), "4 names are borrowed from experiments"),
        (with_code(EVIDENCE + 'run.evidence("ch01", "one")\n' * 2, "hide-input"), "stands twice: one fold a section"),
        (with_code(EVIDENCE + 'run.record("who", "A")', "hide-input"), "run.record is called"),
        (lambda cells: [*cells, markdown(WORD * 200)], "words on the path without its proofs"),
        (lambda cells: [*cells, markdown(f":::{{prf:proof}}\n{WORD * 200}\n:::")], None),
        (added(*[code_cell("# @title F\n1", "hide-cell")] * 7), "11 folded cells: expected at most 10"),
    ],
)
def test_what_keeps_a_reader_from_following_the_path(change: Change, problem: str | None) -> None:
    found = path_problems_of(change(edited(RECORD, "y")(sound())))
    assert found == [] if problem is None else len(found) == 1 and problem in found[0], found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda cells: cells, None),
        (lambda cells: sound(), "words on the path: a note has at"),
        (with_code("y = 3"), "9 visible code cells: a note has at most 8"),
        (with_code("# @title E\ny = 3", "hide-cell"), "5 folded cells: a note has at most 4"),
        (edited("# 7. ", "# 8. "), "the first line is not the title"),
        (without("hide-cell"), "has a title, but no tag folds it"),
        (edited("y = 1", "y = 1\n" * 17), "has 17 lines: a visible cell"),
        (edited("y = 1", "y = z"), "reads z, which no visible cell above it defines"),
        (edited("y = 2", 'run.number("lost", y)'), "lost is recorded, but quoted nowhere"),
        (lambda cells: cells[:-1], "the text after it says what was seen"),
    ],
)
def test_what_departs_from_the_form_of_a_note(change: Change, problem: str | None) -> None:
    found = problems_of(change(note()), note=True)
    assert found == [] if problem is None else any(problem in line for line in found), found
    assert any("missing" in line for line in problems_of(note())), "as a chapter it would lack its parts"


def test_words_are_counted_on_the_path_only() -> None:
    """Those of folds, margins and solutions are none, nor are formulas, labels and numbers of headings."""
    fold = ":::{{{}}}{}\nNot these words.\n\n:::\n"
    folds = [("margin", ""), ("dropdown", " Nor these"), ("solution", " ex-a\n:class: dropdown")]
    text = f"""## 1. Two words

One $x + y$ two, {{glue:text}}`three` - four.

$$
x y z
$$ (eq-x)

{"".join(fold.format(*one) for one in folds)}
:::{{prf:theorem}} Title
:label: thm-x

Five.

:::

:::{{solution-start}} ex-b
:class: dropdown

:::

Nor these.

:::{{solution-end}}
:::

Six."""
    assert path_words(text) == len(["1.", "Two", "words", "One", "two", "three", "four", "Title", "Five", "Six"])


def test_a_folded_solution_hides_its_cells() -> None:
    def text(source: str) -> dict[str, object]:
        return {"cell_type": "markdown", "metadata": {}, "source": [source]}

    code = {"cell_type": "code", "metadata": {"tags": ["hide-input"]}, "source": ["x = 1\n", "y = 2"]}
    start, end = ":::{solution-start} ex-a\n:class: dropdown\n\n:::", ":::{solution-end}\n:::"
    cells = cells_of({"cells": [code, text(start), code, text("Text."), code, text(end), code]})
    assert [cell.solution for cell in cells] == [False, False, True, False, True, False, False]
    assert cells[0] == code_cell("x = 1\ny = 2", "hide-input")
    assert prose_of(cells) == f"{start}\n\nText.\n\n{end}"
