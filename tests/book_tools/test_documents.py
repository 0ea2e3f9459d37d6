"""README and CONTRIBUTING say what is so: their code runs, their commands, options and files exist."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from toy import REPOSITORY

from book_tools.checks.reference import Tolerance, compare_csv
from book_tools.site.front import FIGURE, PICTURE, numbers_of

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
    assert problems == [], "write it anew: 'make book', then 'python -m book_tools reference --update'"
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
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
    for file, anchor in re.findall(r"\]\(([^)#\s]+)#([^)\s]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (REPOSITORY / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def test_the_lines_are_read_as_they_are_meant() -> None:
    text = "Say `make a B=1`.\n\n```sh\nmake c  # d\n```\n\n```python\nmake = 1\n```\n"
    assert commands(text) == ["make c  # d", "make a B=1"]
