"""README, CONTRIBUTING and MAINTAINING say what is so: their code runs, their commands, options and files exist."""

import doctest
import re
import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import yaml
from toy import REPOSITORY
from visible import cells_of

from book_tools.book import Book
from book_tools.checks.reference import Tolerance, compare_csv
from book_tools.cli import main
from book_tools.site.front import FIGURE, HEADING, PICTURE
from book_tools.site.map import map_entries, map_of
from cfltr_book.evidence import ch01
from cfltr_book.reporting.claim_registry import parse_registry
from cfltr_book.reporting.claims import judge
from tests.chapters.chapter_form import form_problems_of

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+) *\?=", MAKEFILE, re.MULTILINE))


def commands(text: str) -> list[str]:
    """Return every command line of the fences without a language or with that of the shell, and between back quotes."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    typed = [fence for language, fence in fences if language in ("", "sh")]
    lines = [line for fence in typed for line in fence.splitlines() if line.strip()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def test_the_readme_fits_on_two_screens_and_begins_with_the_two_commands() -> None:
    rows = sum(max(1, len(textwrap.wrap(line, 100))) for line in README.splitlines())
    assert rows <= 75, "the picture takes the rest"
    first = README.partition("```")[2].partition("```")[0].strip().splitlines()
    assert [line.partition("#")[0].strip() for line in first] == ["make book", "make test"]


def test_the_code_of_the_readme_gives_what_it_shows() -> None:
    test = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert sum(len(example.source.splitlines()) for example in test.examples) == 11
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append) == (0, len(test.examples)), "".join(said)


def test_the_picture_of_the_readme_has_the_numbers_of_the_book(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    _, _, beyond = (REPOSITORY / PICTURE).read_text(encoding="utf-8").partition(f"<!-- {HEADING}\n")
    path.write_text(beyond.partition("-->")[0], encoding="utf-8")
    # What the picture shows: a hundredth of a DCG is not to be seen.
    problems = compare_csv(path, REPOSITORY / "tests" / "reference" / "ci" / f"{FIGURE}.csv", Tolerance(0, 5e-3))
    assert problems == [], "write it anew: 'make book', then 'make accept'"
    (shown,) = re.findall(r'<img src="([^"]+)"[^>]* alt="[^"]{40,}">', README)
    assert Path(shown) == PICTURE


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "MAINTAINING.md"])
def test_every_target_variable_command_and_option_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed, found = commands((REPOSITORY / name).read_text(encoding="utf-8")), set[str]()
    for command in typed:
        for words in re.findall(r"\b(?<!-)make ((?:[\w=',.:…/ -]|\$\S+)+)", command.partition("#")[0]):
            found |= {word.partition("=")[0] for word in words.split() if re.match(r"[a-z]+$|[A-Z_]+=", word)}
        for arguments in re.findall(r"-m book_tools ([^|;&#]*)", command):
            first, *words = arguments.split()
            with pytest.raises(SystemExit, match="0"):
                main([first.strip("'"), "--help"])
            said = capsys.readouterr().out
            assert [word for word in words if word.startswith("--") and word not in said] == [], command
    assert found <= TARGETS | VARIABLES, found - TARGETS - VARIABLES
    assert len(found) > 5


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "MAINTAINING.md"])
def test_every_link_leads_to_a_file(name: str) -> None:
    text = re.sub(r"^```.*?^```", "", (REPOSITORY / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
    for file, anchor in re.findall(r"\]\(([^)#\s]+)#([^)\s]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (REPOSITORY / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def blocks(walk: str, language: str) -> list[str]:
    """Return the fenced blocks of a language in one of the walks, in order."""
    text = re.split(r"\n## (?!\d)", CONTRIBUTING.partition(f"\n## {walk}\n")[2])[0]
    return re.findall(rf"^```{language}\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)


def test_the_claim_of_the_walk_is_one_and_can_fail() -> None:
    """Its entry is understood, and its function measures it for a fold that chapter 1 has."""
    (entry,), (code,) = blocks("Add a claim", "yaml"), blocks("Add a claim", "python")
    (fields,) = yaml.safe_load(entry)
    (spec,) = parse_registry([{**fields, "chapter": "01"}]).values()
    assert f"`{spec.id},{spec.predicted}`" in CONTRIBUTING, "the line of its prediction"
    chapter = (REPOSITORY / "chapters" / "01_clicks_are_biased.ipynb").read_text(encoding="utf-8")
    ((name, section),) = re.findall(r'^@measures\("(.+)", section="(.+)"\)$', code, re.MULTILINE)
    assert name == spec.id
    assert f'run.evidence(\\"ch01\\", \\"{section}\\")' in chapter
    run = SimpleNamespace(seed=0, rng=lambda seed, stream: np.random.default_rng([seed, stream]))
    for changed, verdict in (("1, 1, 1", "supported"), ("1, 1, 1 / 2", "contradicted")):
        names = {**vars(ch01), "measures": lambda id, section: lambda function: function}
        exec(code.replace("[1, 1, 1]", f"[{changed}]"), names)
        assert judge(spec, names["no_bias_no_difference"](run)).verdict == verdict


def test_the_walk_to_a_chapter_ends_with_one_that_can_be_run_and_stands_on_the_map(tmp_path: Path) -> None:
    """It is followed as it stands, in a copy; only the running is left out, which takes long."""
    for name in ("_toc.yml", "_config.yml", "index.md", "references.bib"):
        shutil.copy(REPOSITORY / name, tmp_path)
    shutil.copytree(REPOSITORY / "chapters", tmp_path / "chapters")
    walk = "A first chapter"
    title, text = blocks(walk, "markdown")
    imports, code = blocks(walk, "python")
    (question,) = blocks(walk, "yaml")
    chapter = nbformat.read(tmp_path / "chapters" / "01_clicks_are_biased.ipynb", as_version=4)
    chapter.cells, chapter.metadata["kind"] = chapter.cells[:4], "note"
    chapter.cells[0].source, chapter.cells[3].source = title, imports
    chapter.cells += [nbformat.v4.new_code_cell(code), nbformat.v4.new_markdown_cell(text)]
    nbformat.write(chapter, tmp_path / "chapters" / "98_two_pages.ipynb")
    with (tmp_path / "chapters" / "questions.yml").open("a") as questions:
        questions.write(f"{question}\n")
    contents = (tmp_path / "_toc.yml").read_text()
    *_, last = re.findall(r" +- file: chapters/\d\d_\w+\n", contents)
    (tmp_path / "_toc.yml").write_text(contents.replace(last, f"{last}{last.partition('/')[0]}/98_two_pages\n"))
    book = Book(tmp_path)
    assert main(["--root", str(tmp_path), "check"]) == 0
    assert form_problems_of(cells_of(chapter), 98, {}, note=True, anew=False) == []
    assert len(book.chapters()) == len(Book(REPOSITORY).chapters()) + 1
    assert "Which of two wanted documents is seen to be wanted?" in map_of(book)
    assert map_entries(book)[-1].builds_on == ["02_inverse_propensity_scoring"]


def test_the_collection_of_the_walk_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("A first corpus", "python")
    monkeypatch.setenv("HOME", str(tmp_path))
    exec(code, {})
    tiny = tmp_path / "collections" / "tiny"
    queries = {path.stem: {*re.findall(r"qid:(\d+)", path.read_text())} for path in tiny.glob("*.txt")}
    assert {part: len(found) for part, found in queries.items()} == {"train": 80, "vali": 40, "test": 40}
    assert len(set().union(*queries.values())) == 160, "no query is in two parts"


def test_the_files_that_the_walks_name_exist() -> None:
    for place in re.findall(r"`(\w+/[\w/]+\.(?:py|yml|ipynb))`", CONTRIBUTING.partition("## Write a chapter")[0]):
        named = REPOSITORY / place.replace("NN", "01")
        assert named.is_file() or place == "chapters/98_two_pages.ipynb", place
