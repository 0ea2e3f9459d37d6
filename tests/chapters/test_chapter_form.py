"""Every chapter has the form that a reader, a Colab user and the pipeline rely on.

The form is that of ``chapter_form.py``; chapters that are not yet written anew are listed here by name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from chapter_form import form_problems_of, names_of, path_problems_of, problems_of
from visible import Cell, cells_of, path_words, prose_of

from cfltr_book.reporting.claim_registry import registry

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
# Chapters that are written anew.
ANEW = {"01", "02", "03", "04"}
COMMITTED = ROOT / "tests" / "reference" / "ci" / "records.json"
# What a bare Colab offers, beside the package itself and the standard library.
IMPORTS = {"cfltr_core", "cfltr_book", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "sklearn", "torch"}
# A chapter that writes files does so in a temporary folder.
STANDARD = {"itertools", "math", "functools", "collections", "dataclasses", "importlib", "inspect", "tempfile"}


def cells(path: Path) -> list[tuple[str, str, list[str]]]:
    """(kind, text, tags) of each cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [(c["cell_type"], "".join(c["source"]), c["metadata"].get("tags", [])) for c in notebook["cells"]]


def prose(path: Path) -> str:
    return "\n\n".join(text for kind, text, _ in cells(path) if kind == "markdown")


def code(path: Path) -> str:
    lines = "\n".join(text for kind, text, _ in cells(path) if kind == "code")
    return re.sub(r"^\s*[%!].*$", "", lines, flags=re.M)


def calls(path: Path, name: str) -> list[ast.Call]:
    """Calls of ``run.name`` in a chapter."""
    found = []
    for node in ast.walk(ast.parse(code(path))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            found.append(node)
    return found


def test_the_table_of_contents_lists_every_chapter_once() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [c["file"] for part in toc["parts"] for c in part["chapters"]]
    notebooks = [f"chapters/{p.stem}" for p in CHAPTERS]
    assert [f for f in listed if f in notebooks] == notebooks
    assert len(listed) == len(set(listed))


def test_chapters_are_in_the_form() -> None:
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
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


def test_what_kept_cells_may_read() -> None:
    """What they define themselves, also under a name that an untagged cell uses; and what the parameters say."""
    fine = [
        "x = 1\nz = x\nf = lambda y: (y, z)",
        "run = scale\ntable = run.kept('curve', [eta for eta in range(3)], settings=[{}], stream=1)",
        "f(table, print)",
    ]
    cells = sound()
    for text in fine:
        cells = with_code(text, "kept")(cells)
    assert [line for line in problems_of(cells, 7, {}) if "kept" in line] == []
    hidden = with_code("# @title K\nz = 2", "kept", "hide-input")(sound())
    assert problems_of(hidden, 7, {}) == []
    assert [cell.is_for_kept_tables for cell in hidden if cell.tags & {"kept", "parameters"}] == [True, True]


WORD = "word " * 12
TEXTS = {
    "start": """# 7. A title

**In one sentence:** it holds.

*Reading 20 minutes, running under a minute.*

After this chapter you will be able to

- prove it.

## 1. What goes wrong

A shop shows A, B, C.""",
    "definitions": """## 2. By hand

## 3. Words

:::{prf:definition}
:label: def-one

One.

:::""",
    "proof": """## 4. Why

:::{prf:theorem}
:label: thm-one

$$
x = y
$$ (eq-one)

:::

:::{prf:proof}
It is {glue:text}`size-1`, and {glue:text}`who-wins`.

:::""",
    "before": "What to look for: the line.",
    "after": "What was seen: it falls.",
    "end": """## 5. Steps

## 6. Pictures

## 7. When it fails

## 8. In practice

## 9. Check yourself

:::{dropdown} Answers
Yes.
:::

:::{exercise}
:label: ex-one

One.

:::

:::{solution} ex-one
:class: dropdown

One.

:::

:::{exercise}
:label: ex-two

Two.

:::

:::{solution-start} ex-two
:class: dropdown

:::""",
    "last": """:::{solution-end}
:::

:::{exercise}
:label: ex-three

Three.

:::

:::{solution} ex-three
:class: dropdown

Three.

:::

### Key ideas

- It holds.

**Read next:** the next chapter.""",
}
FIGURE = '# @title How this was drawn\nrun.figure(fig, "fig-{0}", caption="c", alt="a", data=d)'


def sound() -> list[Cell]:
    """The smallest chapter in the form."""

    def code(text: str, *tags: str) -> Cell:
        return Cell("code", text, frozenset(tags))

    def text(name: str) -> Cell:
        return Cell("markdown", TEXTS[name], frozenset())

    figures = [
        cell for index in range(3) for cell in (text("before"), code(FIGURE.format(index), "hide-input"), text("after"))
    ]
    return [
        text("start"),
        code('scale = "ci"', "parameters"),
        *(code("eta = 1.0  # try 0, 2\ny = eta") for _ in range(7)),
        text("definitions"),
        text("proof"),
        code("# @title Evidence: the steps\n" + "assert True\n" * 40, "hide-cell"),
        code('run.record("size-1", 0.5)\nrun.record("who-wins", "A" if y > 0 else "B")'),
        *figures,
        Cell("markdown", "\n".join([WORD] * 125), frozenset()),
        text("end"),
        Cell("code", "x = 1\n" * 16, frozenset(), solution=True),
        text("last"),
    ]


def test_a_sound_chapter_has_no_problem() -> None:
    assert problems_of(sound(), 7, {}) == []


def edited(old: str, new: str) -> Callable[[list[Cell]], list[Cell]]:
    """Replace a text in every cell that holds it; some cell does."""

    def edit(cells: list[Cell]) -> list[Cell]:
        assert any(old in cell.text for cell in cells)
        return [Cell(cell.kind, cell.text.replace(old, new), cell.tags, cell.solution) for cell in cells]

    return edit


def with_code(text: str, *tags: str) -> Callable[[list[Cell]], list[Cell]]:
    """Add a cell before the last text."""
    return lambda cells: [*cells[:-1], Cell("code", text, frozenset(tags)), cells[-1]]


def without(tag: str) -> Callable[[list[Cell]], list[Cell]]:
    return lambda cells: [Cell(cell.kind, cell.text, cell.tags - {tag}, cell.solution) for cell in cells]


def code_for(text: str) -> Callable[[list[Cell]], list[Cell]]:
    """Put a cell of code in the place of the first text that holds ``text``."""

    def put(cells: list[Cell]) -> list[Cell]:
        place = next(index for index, cell in enumerate(cells) if text in cell.text)
        return [*cells[:place], Cell("code", "x = 1", frozenset()), *cells[place + 1 :]]

    return put


FOLD = Cell("code", "# @title F\n1", frozenset({"hide-cell"}))
PATH = [
    (with_code("x = z + len([y])"), "reads z, which no visible cell above it defines"),
    (with_code("import folded\nfrom a import z", "hide-input"), None),
    (lambda cells: with_code("z")(with_code("# @title Z\nz = 1", "hide-input")(cells)), "reads z, which no visible"),
    (lambda cells: with_code("z")(with_code("z = 1")(cells)), None),
    (with_code("from cfltr_book.experiments.ch01 import a, b, c"), None),
    (with_code("from cfltr_book.experiments.ch01 import a, b, c, d"), "4 names are borrowed from experiments"),
    (with_code("# @title E\n" + 'run.evidence("ch01", "one")\n' * 2, "hide-input"), "stands twice: one fold a section"),
    (with_code('# @title R\nrun.record("who", "A")', "hide-input"), "run.record is called"),
    (lambda cells: [*cells, Cell("markdown", WORD * 200, frozenset())], "words on the path without its proofs"),
    (lambda cells: [*cells, Cell("markdown", f":::{{prf:proof}}\n{WORD * 200}\n:::", frozenset())], None),
    (
        lambda cells: [*cells, *(Cell("code", "# @title F\n1", frozenset({"hide-cell"})) for _ in range(10))],
        "folded cells",
    ),
]


@pytest.mark.parametrize(("change", "problem"), PATH)
def test_what_keeps_a_reader_from_following_the_path(
    change: Callable[[list[Cell]], list[Cell]], problem: str | None
) -> None:
    plain = edited('run.record("size-1", 0.5)\nrun.record("who-wins", "A" if y > 0 else "B")', "y")(sound())
    found = path_problems_of(change(plain))
    assert found == [] if problem is None else len(found) == 1 and problem in found[0], found


def swapped(one: str, other: str) -> Callable[[list[Cell]], list[Cell]]:
    """Exchange two texts."""

    def swap(cells: list[Cell]) -> list[Cell]:
        return edited("SWAPPED", other)(edited(other, one)(edited(one, "SWAPPED")(cells)))

    return swap


LONG = "x = 1\n"
NUMBERS = " ".join(f"{{glue:text}}`size-{number}`" for number in range(1, 12))
RECORDS = "\n".join(f'run.record("size-{number}", {number})' for number in range(2, 12))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (edited("# 7. A", "# 8. A"), "the first line is not the title: expected '# 7. …'"),
        (edited("## 6. Pictures", "### Pictures"), "are numbered [1, 2, 3, 4, 5, 7, 8, 9]: expected 1 to 9"),
        (edited("**In one sentence:**", "So:"), "missing: the promise"),
        (edited("*Reading 20 minutes", "*Running 20 minutes"), "missing: the reading time"),
        (edited("you will be able to", "you can"), "missing: what the reader will be able to do"),
        (edited("A, B, C", "three"), "missing: the three documents of the hand example"),
        (edited("{prf:definition}", "{prf:remark}"), "missing: a definition or an assumption"),
        (edited("{prf:theorem}", "{prf:lemma}"), "missing: a theorem"),
        (edited("{prf:proof}", "{prf:remark}"), "missing: a proof"),
        (edited("When it fails", "Beyond"), "missing: a heading with 'fails'"),
        (edited("In practice", "On Monday"), "missing: a heading with 'practice'"),
        (edited("Check yourself", "Questions"), "missing: a heading with 'Check yourself'"),
        (edited("### Key ideas", "### Ideas"), "missing: the key ideas"),
        (edited("**Read next:**", "Then"), "missing: what to read next"),
        (swapped("When it fails", "In practice"), "a heading with 'practice' before a heading with 'fails'"),
        (swapped("{prf:theorem}", "{prf:proof}"), "a proof before a theorem"),
        (without("parameters"), "expected one cell tagged 'parameters'"),
        (edited("  # try 0, 2", ""), "nothing to change: expected a visible line like"),
        (edited(WORD, "word " * 10), "words on the path: expected 1,500 to 3,000"),
        (edited(WORD, "word " * 26), "words on the path: expected 1,500 to 3,000"),
        (edited("  # try 0, 2\n", "  # try 0, 2\n" + LONG * 7), "have 9 lines in the median: expected at most 8"),
        (with_code(LONG * 17), "has 17 lines: a visible cell has at most 16"),
        (with_code("# @title E\n" + LONG * 41, "hide-cell"), "has 41 lines: a folded cell has at most 40"),
        (edited("x = 1\n" * 16, "x = 1\n" * 17), "has 17 lines: a solution's cell has at most 16"),
        (with_code("x = " + "1" * 85), "has a line of 89 columns, more than 88"),
        (with_code("# @title E\nx = " + "1" * 85, "hide-input"), "has a line of 89 columns, more than 88"),
        (
            with_code("x = 1\ntable = run.kept('curve', f, settings=[{}], stream=1)"),
            "calls run.kept without the tag 'kept'",
        ),
        (with_code("table = run.kept(name, f, settings=[{}], stream=1)", "kept"), "with a name that is no literal"),
        (
            with_code("run.kept('a', f, settings=[{}], stream=1)\nrun.kept('a', f, settings=[{}], stream=2)", "kept"),
            "two kept tables are called 'a'",
        ),
        (with_code("z = eta", "kept"), "is tagged 'kept' and reads eta, which cell 2 defines without the tag"),
        (
            with_code("def f(a):\n    return [a + y for a in range(3)]", "kept"),
            "is tagged 'kept' and reads y, which cell 2 defines without the tag",
        ),
        (with_code("x = 1", "hide-input"), "is folded, and nothing says what is in it"),
        (with_code("x = 1", "hide-cell"), "is folded, and nothing says what is in it"),
        (with_code("# @title E\nx = 1"), "has a title, but no tag folds it"),
        (with_code("x = 1\n# @title E"), "has a title that is not its first line"),
        (lambda cells: [cell for cell in cells if not cell.is_fold], "no folded cell after the proof"),
        (edited("run.figure(", "draw("), "0 figures: expected 3 to 5"),
        # A figure with a knob is one figure, and stands between texts too.
        (edited("run.figure(fig,", "run.slider(draw,"), None),
        (lambda cells: code_for("What was seen")(edited("run.figure(", "run.slider(")(cells)), "says what was seen"),
        (edited("What to look for", ":::{margin}\nX.\n:::\n\nWhat to look for"), None),
        # One text may stand between two figures; a cell between text and figure may not.
        (lambda cells: [c for c in cells if "What was seen" not in c.text], None),
        (code_for("What to look"), "the text before it says what to look for"),
        (code_for("What was seen"), "the text after it says what was seen"),
        (edited("run.record(", "keep("), None),
        (edited('"size-1"', '"size"'), "size-1 is quoted, but recorded nowhere"),
        (with_code('run.record("more", 1)'), "more is recorded, but quoted nowhere"),
        (
            lambda cells: with_code(RECORDS)(edited("{glue:text}`size-1`", NUMBERS)(cells)),
            "11 recorded numbers are quoted, more than 10: size-1, size-10, size-11, size-2",
        ),
        (edited(":::{exercise}\n:label: ex-three", ":::{note}\n:label: ex-three"), "2 exercises: expected three"),
        (edited("{solution} ex-three", "{solution} ex-one"), "solutions are those of ['ex-one', 'ex-two', 'ex-one']"),
    ],
)
def test_what_departs_from_the_form(change: Callable[[list[Cell]], list[Cell]], problem: str | None) -> None:
    """None where the change is allowed."""
    found = problems_of(change(sound()), 7, {})
    assert found == [] if problem is None else any(problem in line for line in found), found


def note() -> list[Cell]:
    """A note at the limits of its form: no theorem, no exercises, one figure."""
    figure = [Cell("markdown", TEXTS["before"], frozenset()), Cell("code", FIGURE.format(0), frozenset({"hide-input"}))]
    return [
        Cell("markdown", "# 7. A question", frozenset()),
        Cell("code", 'scale = "ci"', frozenset({"parameters"})),
        *[Cell("code", "y = 1", frozenset())] * 7,
        *figure,
        *[Cell("code", "# @title More\ny = 2", frozenset({"hide-cell"}))] * 3,
        Cell("markdown", TEXTS["after"], frozenset()),
    ]


def test_a_note_is_short_and_needs_no_parts() -> None:
    kinds: dict[str, bool] = {"note": True, "anew": False}
    assert form_problems_of(note(), 7, {}, **kinds) == []
    # As a chapter it would lack its parts, and a chapter is too long for a note.
    assert any("missing" in line for line in form_problems_of(note(), 7, {}, note=False, anew=False))
    assert any("words on the path: a note" in line for line in form_problems_of(sound(), 7, {}, **kinds))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            edited("# 7. A question", f"# 7. A question\n\n{' '.join(['word'] * 900)}"),
            "words on the path: a note has at",
        ),
        (with_code("y = 3"), "9 visible code cells: a note has at most 8"),
        (with_code("# @title E\ny = 3", "hide-cell"), "5 folded cells: a note has at most 4"),
        (edited("# 7. ", "# 8. "), "the first line is not the title"),
        (without("parameters"), "expected one cell tagged 'parameters'"),
        (without("hide-cell"), "has a title, but no tag folds it"),
        (edited("y = 1", "y = 1\n" * 17), "has 17 lines: a visible cell"),
        (edited("y = 1", "y = z"), "reads z, which no visible cell above it defines"),
        (edited("y = 2", 'run.number("lost", y)'), "lost is recorded, but quoted nowhere"),
        (lambda cells: cells[:-1], "the text after it says what was seen"),
    ],
)
def test_what_departs_from_the_form_of_a_note(change: Callable[[list[Cell]], list[Cell]], problem: str) -> None:
    found = form_problems_of(change(note()), 7, {}, note=True, anew=False)
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(("more", "counted"), [(-2, 7), (8, 17)])
def test_the_number_of_visible_cells(more: int, counted: int) -> None:
    cells = sound()
    extra = [Cell("code", "x = 1", frozenset())] * more
    changed = [*cells[:-1], *extra, cells[-1]] if more > 0 else cells[:2] + cells[2 - more :]
    assert f"{counted} visible code cells: expected 8 to 16" in problems_of(changed, 7, {})
    # What is removed from the page, folded, or part of a folded solution is not visible.
    unseen = [Cell("code", "# @title E\nx = 1", frozenset({tag})) for tag in ("hide-input", "hide-cell")]
    unseen += [Cell("code", "x = 1", frozenset({tag})) for tag in ("remove-cell", "remove-input")]
    assert problems_of([*cells[:-1], *unseen, cells[-1]], 7, {}) == []


@pytest.mark.parametrize(
    ("value", "phrase"),
    [
        ("0.5", False),
        ("gap.mean()", False),
        ("f'{gap} pages'", True),
        ("'A' if gap > 0 else 'B'", True),
        ("'A' if gap > 0 else gap", False),
        ("words[verdict]", True),
        ("words.get(verdict, 'neither')", True),
        ("words.get(verdict, 0)", False),
        ("numbers[verdict]", False),
        ("chosen", True),
        ("says(gap)", True),
        ("measures(gap)", False),
        ("'more: ' + says(gap)", True),
        ("', '.join(names)", True),
        ("names[0]", True),
        ("recursive(gap)", False),
    ],
)
def test_a_phrase_is_no_number(value: str, phrase: bool) -> None:
    """What the last accepted run recorded decides; before there is one, the source does, as far as it tells."""
    source = f"""
words, numbers = None, None
words = {{"supported": "wins", "contradicted": "loses"}}
numbers = {{"supported": 1.0}}
names = [f"page {{i}}" for i in range(3)]
chosen = words["supported"]
def says(gap):
    return "A" if gap else chosen
def measures(gap):
    return 2 * gap
def recursive(gap):
    return recursive(gap)
run.record("what", {value})"""
    prose = NUMBERS.replace("{glue:text}`size-11`", "{glue:text}`what`")
    cells = with_code(source + "\n" + RECORDS)(edited("{glue:text}`size-1`", prose)(sound()))
    cells = [cell for cell in cells if "size-11" not in cell.text or cell.kind == "markdown"] + [
        Cell("code", (source + "\n" + RECORDS).replace('\nrun.record("size-11", 11)', ""), frozenset())
    ]
    too_many = [line for line in problems_of(cells, 7, {}) if "recorded numbers" in line]
    assert (too_many == []) is phrase
    for committed, counts in (("wins", False), (0.5, True), (None, True)):
        lines = problems_of(cells, 7, {"what": committed})
        assert any("recorded numbers" in line for line in lines) is counts


def test_words_are_counted_on_the_path_only() -> None:
    text = """## 1. Two words

One $x + y$ two, {glue:text}`three` - four.

$$
x y z
$$ (eq-x)

:::{margin}
Not these words.

:::

:::{dropdown} Nor these
Nor these.

:::

:::{prf:theorem} Title
:label: thm-x

Five.

:::

:::{solution} ex-a
:class: dropdown

Not these.

:::

:::{solution-start} ex-b
:class: dropdown

:::

Nor these.

:::{solution-end}
:::

Six."""
    # "1." and "Two words" of the heading, six words, and the title of the theorem.
    assert path_words(text) == 3 + 6 + 1


def test_a_folded_solution_hides_its_cells() -> None:
    def markdown(text: str) -> dict[str, object]:
        return {"cell_type": "markdown", "metadata": {}, "source": [text]}

    code = {"cell_type": "code", "metadata": {"tags": ["hide-input"]}, "source": ["x = 1\n", "y = 2"]}
    start, end = ":::{solution-start} ex-a\n:class: dropdown\n\n:::", ":::{solution-end}\n:::"
    cells = cells_of({"cells": [code, markdown(start), code, markdown("Text."), code, markdown(end), code]})
    assert [cell.solution for cell in cells] == [False, False, True, False, True, False, False]
    assert cells[0] == Cell("code", "x = 1\ny = 2", frozenset({"hide-input"}))
    assert prose_of(cells) == f"{start}\n\nText.\n\n{end}"
