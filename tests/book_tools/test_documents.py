"""README and CONTRIBUTING say what is so: their code runs, their commands, options and files exist."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from toy import REPOSITORY

from book_tools.book import Book
from book_tools.checks.reference import Tolerance, compare_csv
from book_tools.site.front import FIGURE, PICTURE, numbers_of
from book_tools.site.map import drawn, stops

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+) *\?=", MAKEFILE, re.MULTILINE))


def commands(text: str) -> list[str]:
    """Return every command line of the fences without a language or with that of the shell, and between back quotes."""
    fences = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for fence in fences for line in fence.splitlines() if line.strip()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def test_the_readme_fits_on_two_screens() -> None:
    rows = sum(max(1, len(textwrap.wrap(line, 100))) for line in README.splitlines())
    assert rows <= 95, "the picture takes the rest"


def test_the_two_commands_come_first() -> None:
    first = README.partition("```")[2].partition("```")[0].strip().splitlines()
    assert [line.partition("#")[0].strip() for line in first] == ["make book", "make test"]


def test_the_code_of_the_readme_gives_what_it_shows() -> None:
    test = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert sum(len(example.source.splitlines()) for example in test.examples) == 11
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append) == (0, len(test.examples)), "".join(said)


def test_the_picture_of_the_readme_has_the_numbers_of_the_book(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text(numbers_of(REPOSITORY / PICTURE), encoding="utf-8")
    # What the picture shows: a hundredth of a DCG is not to be seen.
    problems = compare_csv(path, REPOSITORY / "tests" / "reference" / "ci" / f"{FIGURE}.csv", Tolerance(0, 5e-3))
    assert problems == [], "write it anew: 'make book', then 'make accept'"
    (shown,) = re.findall(r'<img src="([^"]+)"[^>]* alt="[^"]{40,}">', README)
    assert Path(shown) == PICTURE


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_target_and_variable_exists(name: str) -> None:
    found = 0
    for command in commands((REPOSITORY / name).read_text(encoding="utf-8")):
        words = command.split("#")[0].split()
        while words and "=" in words[0]:
            words.pop(0)
        if words and words[0] in {"…", "make"}:
            words = words[1:] if words[0] == "make" else words[2:]
            for word in words:
                found += 1
                variable, is_variable, _ = word.partition("=")
                if is_variable:
                    assert variable in VARIABLES, f"{name}: {command}"
                elif re.fullmatch("[a-z]+", word):
                    assert word in TARGETS, f"{name}: {command}"
    assert found > 5


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_command_of_the_pipeline_is_understood(name: str) -> None:
    for command in commands((REPOSITORY / name).read_text(encoding="utf-8")):
        for arguments in re.findall(r"-m book_tools ([^|;&#]*)", command):
            words = [word.strip("'") for word in arguments.split()]
            options = [word for word in words[1:] if word.startswith("--")]
            done = subprocess.run(
                [sys.executable, "-m", "book_tools", words[0], "--help"],
                cwd=REPOSITORY, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, command
            assert [option for option in options if option not in done.stdout] == [], command


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_link_leads_to_a_file(name: str) -> None:
    text = re.sub(r"^```.*?^```", "", (REPOSITORY / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
    for file, anchor in re.findall(r"\]\(([^)#\s]+)#([^)\s]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (REPOSITORY / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def test_the_lines_are_read_as_they_are_meant() -> None:
    text = "Say `make a B=1`.\n\n```sh\nmake c  # d\n```\n\n```python\nmake = 1\n```\n"
    assert commands(text) == ["make c  # d", "make a B=1"]


def walks() -> dict[str, str]:
    """Return what each walk has one type, by its heading."""
    parts = re.split(r"^## (A first \w+)\n", CONTRIBUTING, flags=re.MULTILINE)
    texts = {title: text.partition("\n## ")[0] for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    fences = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return {title: "".join(fences.findall(text)) for title, text in texts.items()}


def heredocs(script: str, command: str) -> list[str]:
    return re.findall(rf"^{re.escape(command)} <<'EOF'\n(.*?)^EOF$", script, re.DOTALL | re.MULTILINE)


def test_the_walks_are_scripts_that_a_shell_can_read() -> None:
    assert list(walks()) == ["A first claim", "A first chapter", "A first corpus"]
    for title, script in walks().items():
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert done.stderr == "", title
        assert "make chapter CHAPTER=" in script
        for code in heredocs(script, ".venv/bin/python -"):
            compile(code, title, "exec")


@pytest.mark.parametrize("title", ["A first claim", "A first chapter", "A first corpus"])
def test_what_a_walk_changes_can_be_changed(title: str) -> None:
    patches = heredocs(walks()[title], "git apply")
    assert patches
    for patch in patches:
        done = subprocess.run(
            ["git", "apply", "--check"], cwd=REPOSITORY, input=patch, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{title}: {done.stderr}"


def test_the_walk_to_a_chapter_ends_with_one_that_can_be_run_and_stands_on_the_map(tmp_path: Path) -> None:
    """It is typed as it stands, in a copy; only the running is left out, which takes long."""
    for name in ("_toc.yml", "_config.yml", "index.md", "references.bib"):
        shutil.copy(REPOSITORY / name, tmp_path)
    shutil.copytree(REPOSITORY / "chapters", tmp_path / "chapters")
    script = walks()["A first chapter"].replace(".venv/bin/python", f"{shlex.quote(sys.executable)}")
    script = script.replace("-m book_tools", "-m book_tools --root .")
    kept = [line for line in script.splitlines() if not line.startswith("make ") and "-m pytest" not in line]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(kept),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    book = Book(tmp_path)
    assert f"check: {len(Book(REPOSITORY).chapters()) + 1} chapters can be run" in done.stdout
    assert "Which of two wanted documents is seen to be wanted?" in drawn(book)
    assert stops(book)[-1].on == {"02_inverse_propensity_scoring": True}


@pytest.mark.parametrize(
    ("looked_for", "page"),
    [
        ("save model", "book_tools/site/api_recipes.md"),
        ("conda", "book_tools/site/api_recipes.md"),
        ("{index} ! own log", "chapters/guide.md"),
    ],
)
def test_what_people_look_for_stands_on_a_page(looked_for: str, page: str) -> None:
    """The search finds pages that have all words; an entry of the index comes before pages that only use them."""
    text = (REPOSITORY / page).read_text(encoding="utf-8").lower()
    words = [looked_for] if looked_for.startswith("{") else looked_for.split()
    assert [word for word in words if word not in text] == []
