"""Every chapter has the form that a reader, a Colab user and the pipeline rely on.

The form is that of ``chapter_form.py``; chapters that are not yet written anew are listed here by name.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from chapter_form import form_problems_of
from kept_text import same_as_kept
from visible import Cell, cells_of, prose_of

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


WORD = "word " * 12
# The texts of the smallest chapter in the form: up to its code, to its proof, to the exercise in code, and to the end.
TEXTS = Path(__file__).with_name("sound.md").read_text(encoding="utf-8")
BEFORE, AFTER = "What to look for: the line.", "What was seen: it falls."
FIGURE = '# @title How this was drawn\nrun.figure(fig, "fig-0", caption="c", alt="a", data=d)'
LINE, TITLED = "x = 1\n", "# @title E\n"


def markdown(text: str) -> Cell:
    return Cell("markdown", text, frozenset())


def code_cell(text: str, *tags: str, solution: bool = False) -> Cell:
    return Cell("code", text, frozenset(tags), solution)


START, PROVED, END, LAST = map(markdown, TEXTS.removesuffix("\n").split("\n\n---\n\n"))
FIGURE_CELLS = [markdown(BEFORE), code_cell(FIGURE, "hide-input"), markdown(AFTER)]
PARAMETERS = code_cell('run = scale = "ci"', "parameters")
SOUND = [
    START,
    PARAMETERS,
    *[code_cell("eta = 1.0  # try 0, 2\ny = eta")] * 7,
    replace(PROVED, text=PROVED.text.replace("So.", "So. " * 1_200)),
    code_cell("# @title Evidence: the steps\n" + "assert True\n" * 40, "hide-cell"),
    code_cell('from cfltr_book.experiments.ch01 import a, b, c\nrun.number("size-1", 0.5)\nwins = "who-wins"'),
    code_cell("import folded", "remove-cell"),
    *FIGURE_CELLS * 2,
    # A figure with a knob is one figure; one text may stand between two.
    *(replace(cell, text=cell.text.replace("figure(fig,", "slider(draw,")) for cell in FIGURE_CELLS[:2]),
    markdown("\n".join([WORD] * 125)),
    END,
    code_cell(LINE * 16, solution=True),
    LAST,
]
NOTE = [
    markdown("# 7. A question"),
    PARAMETERS,
    *[code_cell("y = 1")] * 7,
    *FIGURE_CELLS[:2],
    *[code_cell("# @title More\ny = 2", "hide-cell")] * 3,
    markdown(AFTER),
]
NUMBERS = " ".join(f"{{glue:text}}`size-{number}`" for number in range(1, 12))
# The same chapter with everything that it has in another order, without folds and without a title.
SWAPS = {
    "# 7. A": "# 8. A",
    "## 6. Pictures": "### Pictures",
    "When it fails": "In practice",
    "In practice": "When it fails",
    "{prf:theorem}": "{prf:proof}",
    "{prf:proof}": "{prf:theorem}",
    "  # try 0, 2": "",
    ":::{exercise}\n:label: ex-three": ":::{note}\n:label: ex-three",
    "{solution} ex-three": "{solution} ex-one",
    '"size-1"': '"size"',
}
OTHERWISE = re.compile("|".join(map(re.escape, SWAPS)))
DISORDERLY = [
    replace(cell, text=OTHERWISE.sub(lambda found: SWAPS[found[0]], cell.text), tags=cell.tags - {"parameters"})
    for cell in SOUND
    if not cell.is_fold
]
# One more of everything that is counted, and code that does not say what it is.
CROWDED = [
    *[replace(cell, text=cell.text.replace("x = 1", "x = 1\nx = 1")) for cell in SOUND[:2]],
    *[code_cell("eta = 1.0  # try 0, 2\n" + LINE * 8)] * 8,
    replace(PROVED, text=PROVED.text.replace("{glue:text}`size-1`", NUMBERS)),
    *SOUND[10:12],
    code_cell("\n".join(f'run.number("size-{n}", {n})' for n in range(2, 12)) + '\nrun.record("more", z)'),
    code_cell(LINE * 17),
    code_cell("from cfltr_book.experiments.ch01 import d\nx = " + "1" * 85),
    code_cell(f"{TITLED}x = 1"),
    code_cell(f"x = 1\n{TITLED}"),
    *[code_cell("x = 1"), *FIGURE_CELLS[1:2], code_cell("x = 1")],
    *FIGURE_CELLS * 5,
    code_cell(TITLED + LINE * 41, "hide-cell"),
    code_cell(f"{TITLED}z = " + "1" * 85, "hide-input"),
    code_cell(TITLED + 'run.evidence("ch01", "one")\n' * 2, "hide-input"),
    code_cell("x = 1", "hide-cell"),
    markdown("\n".join([WORD] * 260)),
    END,
    code_cell(LINE * 17, solution=True),
    LAST,
]
CROWDED_NOTE = [
    markdown("# 8. A question " + "word " * 900),
    *NOTE[1:-1],
    code_cell("y = z\n" * 17),
    code_cell('# @title More\nrun.number("lost", y)', "hide-cell"),
]
NOTEBOOKS = {
    "a sound chapter": (SOUND, False),
    "nothing": ([markdown("Text."), code_cell("x = 1")], False),
    "in disorder": (DISORDERLY, False),
    "crowded": (CROWDED, False),
    "a sound note": (NOTE, True),
    "a crowded note": (CROWDED_NOTE, True),
}


def test_what_is_found_in_notebooks_that_depart_from_the_form() -> None:
    """What only chapters written anew are told begins with a plus."""
    lines = []
    for name, (cells, note) in NOTEBOOKS.items():
        every, old = (form_problems_of(cells, 7, {"who-wins": "A"}, note=note, anew=anew) for anew in (True, False))
        assert every[: len(old)] == old
        lines += [f"{name}:", *(f"  {line}" for line in old), *(f"+ {line}" for line in every[len(old) :])]
    same_as_kept(Path(__file__).with_name("findings.txt"), "\n".join(lines) + "\n")


def test_a_folded_solution_hides_its_cells() -> None:
    def text(source: str) -> dict[str, object]:
        return {"cell_type": "markdown", "metadata": {}, "source": [source]}

    code = {"cell_type": "code", "metadata": {"tags": ["hide-input"]}, "source": ["x = 1\n", "y = 2"]}
    start, end = ":::{solution-start} ex-a\n:class: dropdown\n\n:::", ":::{solution-end}\n:::"
    cells = cells_of({"cells": [code, text(start), code, text("Text."), code, text(end), code]})
    assert [cell.solution for cell in cells] == [False, False, True, False, True, False, False]
    assert cells[0] == code_cell("x = 1\ny = 2", "hide-input")
    assert prose_of(cells) == f"{start}\n\nText.\n\n{end}"
