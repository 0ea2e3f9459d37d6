"""Every chapter has the form that a reader, a Colab user and the pipeline rely on."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

from cfltr_core.reporting.claims import registry

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
# What a bare Colab offers, beside the package itself and the standard library.
IMPORTS = {"cfltr_core", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "sklearn", "torch"}
STANDARD = {"itertools", "math", "functools", "collections", "dataclasses", "importlib"}
HEADINGS = 9


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


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
class TestForm:
    def test_title_carries_the_number_of_the_file(self, path: Path) -> None:
        first = cells(path)[0]
        assert first[0] == "markdown"
        assert re.match(rf"# {int(path.stem[:2])}\. \w", first[1])
        assert "**In one sentence:**" in first[1]
        assert "you will be able to" in first[1]

    def test_nine_parts_in_order(self, path: Path) -> None:
        numbers = [int(n) for n in re.findall(r"^## (\d+)\. ", prose(path), flags=re.M)]
        assert numbers == list(range(1, HEADINGS + 1))

    def test_length(self, path: Path) -> None:
        # Words that are read as words: formulas, directive lines and labels are not.
        text = re.sub(r"\$\$.*?\$\$", "", prose(path), flags=re.S)
        words = re.sub(r"\$[^$\n]+\$|^:.*$", "", text, flags=re.M).split()
        assert 1_500 <= len(words) <= 2_500
        visible = [t for kind, t, tags in cells(path) if kind == "code" and "remove-cell" not in tags]
        assert 15 <= len(visible) <= 25
        lines = [sum(1 for line in text.splitlines() if line.strip()) for text in visible]
        assert max(lines) <= 25
        assert max(len(line) for text in visible for line in text.splitlines()) <= 120

    def test_figures_records_and_exercises(self, path: Path) -> None:
        assert 3 <= len(calls(path, "figure")) <= 5
        assert len(calls(path, "record")) <= 10
        assert len(re.findall(r"^:::\{exercise\}", prose(path), flags=re.M)) == 3
        solutions = re.findall(r"^:::\{solution(?:-start)?\} (ex-[\w-]+)", prose(path), flags=re.M)
        assert solutions == re.findall(r"^:label: (ex-[\w-]+)", prose(path), flags=re.M)

    def test_every_figure_is_read_aloud(self, path: Path) -> None:
        """Before a figure the text says what to look for, after it what was seen."""
        sequence = cells(path)
        for i, (kind, text, _) in enumerate(sequence):
            if kind == "code" and "run.figure(" in text:
                before = [t for k, t, _ in sequence[max(0, i - 2) : i] if k == "markdown"]
                assert any("What to look for" in t or "Which ranker" in t or "Two numbers" in t for t in before), text
                assert sequence[i + 1][0] == "markdown"
                assert "What was seen" in sequence[i + 1][1]

    def test_recorded_numbers_are_quoted_and_quoted_numbers_recorded(self, path: Path) -> None:
        recorded = [ast.literal_eval(c.args[0]) for c in calls(path, "record") if isinstance(c.args[0], ast.Constant)]
        looped = re.findall(r'for name, value in zip\((\("[^)]*\))', code(path))
        recorded += [name for names in looped for name in ast.literal_eval(names)]
        quoted = re.findall(r"\{glue:text\}`([\w-]+)`", prose(path))
        assert sorted(recorded) == sorted(set(quoted))

    def test_claims_are_those_of_the_registry(self, path: Path) -> None:
        strings = [n.value for n in ast.walk(ast.parse(code(path))) if isinstance(n, ast.Constant)]
        made = [text for text in strings if isinstance(text, str) and text in registry()]
        assert sorted(made) == sorted(c.id for c in registry().values() if c.chapter == path.stem[:2])

    def test_only_the_run_knows_where_the_chapter_stands(self, path: Path) -> None:
        """Corpora, generators of seeds, claims, records and figures come from one object, which is made once."""
        tree = ast.parse(code(path))
        assert code(path).count("run = cf.Run(scale, corpus, seed)") == 1
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        arguments = [a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in (*n.args, *n.kwonlyargs)]
        assert [*stored, *arguments].count("run") == 1
        around = r"\bcf\.(load_corpus|SCALES|claim|record|figure)\b"
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
