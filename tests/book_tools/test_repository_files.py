"""The files around the book: what installs, builds and publishes it, on GitHub by make and with few rights."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import REPOSITORY, Toy

import cfltr_core
from book_tools.book import Book

SETTINGS: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PYPROJECT: dict[str, Any] = SETTINGS["project"]
LOCK = (REPOSITORY / "requirements.txt").read_text()

# Written in pieces, so that this file does not name what it forbids.
REGISTRY = re.compile(
    r"\b(?:pypi|pythonhosted|anaconda|npmjs|debian|pytorch)" + r"\.(?:org|com|io)\b|/" + r"simple/|file" + "://"
)
TORCH_CPU_INDEX = "https://download.pytorch" + ".org/whl/cpu"
MACHINE_PATH = re.compile(r"(?<![\w.~-])/" + r"(?:home|root|Users|tmp)/\w")


def make(*arguments: str, folder: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run make without the variables of a make that runs these tests."""
    own = re.findall(r"^(\w+) *\?=", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    hidden = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", *own}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower() for requirement in requirements}


def committed_texts() -> list[tuple[str, str]]:
    """Every file under version control, with its text: none is binary; what else lies in a clone is the user's own."""
    names = Toy.at(REPOSITORY).git("ls-files", "--cached").splitlines()
    return [(name, (REPOSITORY / name).read_text(encoding="utf-8")) for name in names if (REPOSITORY / name).is_file()]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the Makefile and an environment that stands for a whole one: what is run is only printed."""
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    for name in ("pyproject.toml", "requirements.txt", ".venv/.whole"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


CHAPTER_TARGETS = ("chapter", "page", "paper", "tables")


def test_make_alone_lists_what_is_often_needed_and_names_the_rest() -> None:
    result = make()
    assert result.returncode == 0
    phony = re.search(r"^\.PHONY: (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    listed = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert {"setup", "book", "chapter", "test", "verify", "lint", "serve", "clean"} <= set(listed)
    assert len(listed) <= 15
    (rest,) = re.findall(r"^seldom needed.*: (.*)$", result.stdout, re.MULTILINE)
    assert sorted([*listed, *rest.split(", "), "help"]) == sorted(phony[1].split())


def test_the_citation_has_the_day_and_version_of_the_newest_release() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+) – (\S+)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert citation["version"] == newest[1] == PYPROJECT["version"] == cfltr_core.__version__
    assert citation.get("date-released", "unreleased") == newest[2]


WINDOWS = "Linux, macOS or WSL, not on Windows itself: open WSL ('wsl --install' sets it up)"
CAPITALS = "{} sets nothing: variables are written in capitals, {}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *((("-n", target, "OS=Windows_NT"), WINDOWS) for target in ("book", "help", "test")),
        *(((target,), f"CHAPTER is not set; name one, as in 'make {target} CHAPTER=5'") for target in CHAPTER_TARGETS),
        (("-n", "book", "scale=smoke"), CAPITALS.format("scale=smoke", "SCALE='smoke'")),
        (("serve",), "no site to serve; build it with 'make book'"),
    ],
)
def test_what_make_refuses_with_a_way_out(bare: Path, arguments: tuple[str, ...], message: str) -> None:
    result = make(*arguments, folder=bare)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert make("-n", "book", "OS=GNU", "SCALE=smoke", folder=bare).returncode == 0


def test_variables_reach_the_pipeline_and_the_tests_as_they_are(bare: Path) -> None:
    """Through make, the shell and the command line, to the parameters of a chapter and its copy."""
    corpus = "letor:my lists@2,normalise,log1p,drop=12+13"
    words = shlex.split(make("-n", "book", f"CORPUS={corpus}", folder=bare).stdout)
    assert words[words.index("--corpus") + 1] == corpus
    command = shlex.split(make("-n", "test", "JOBS=3", "PYTEST_ARGS=-k 'one or two'", folder=bare).stdout)
    assert command[command.index("-n") + 1] == "3"
    assert command[-2:] == ["-k", "one or two"]
    recipe = make("-n", "lock", folder=bare).stdout
    assert "--upgrade" in shlex.split(recipe), "without it uv keeps the versions that the file holds"


def test_the_lock_pins_exact_public_versions_of_every_requirement() -> None:
    pin = re.compile(r"[a-z0-9._-]+==[0-9][0-9a-z.]*( ; .+)?")
    odd = [line for line in LOCK.splitlines() if not pin.fullmatch(line)]
    assert odd == [], "no host, no path, no local version such as +cpu"
    wanted = names([*PYPROJECT["dependencies"], *itertools.chain(*PYPROJECT["optional-dependencies"].values())])
    assert wanted - {PYPROJECT["name"]} <= names(LOCK.splitlines())


# Extras that a target of their own installs, when it is first run, or a reader who wants more rows of a table.
BY_HAND = {"lightgbm", "mutants"}
# What another extra brings along.
INCLUDED = {"chapters"}


def test_conda_and_the_makefile_install_every_extra_with_the_versions_of_the_lock() -> None:
    extras = set(PYPROJECT["optional-dependencies"]) - BY_HAND - INCLUDED
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    assert f"python{PYPROJECT['requires-python']}" in environment["dependencies"]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip[0] == "-c requirements.txt"
    (asked,) = re.findall(r"^-e \.\[(.*)\]$", pip[1])
    assert set(asked.split(",")) == extras
    makefile = (REPOSITORY / "Makefile").read_text()
    (asked,) = re.findall(r"^EXTRAS \?= (.*)$", makefile, re.MULTILINE)
    assert set(asked.split(",")) == extras
    (version,) = re.findall(r"^TORCH_VERSION \?= (\S+)$", makefile, re.MULTILINE)
    assert f"torch=={version}" in LOCK.splitlines()


def test_the_package_is_installed_typed_and_checked() -> None:
    assert [path.parent.name for path in sorted(REPOSITORY.glob("*/py.typed"))] == ["cfltr_book", "cfltr_core"]
    setuptools = SETTINGS["tool"]["setuptools"]
    assert setuptools["packages"]["find"]["include"] == ["cfltr_core*", "cfltr_book*"]
    assert SETTINGS["tool"]["mypy"]["files"] == ["cfltr_core", "cfltr_book"]
    for package, names in setuptools["package-data"].items():
        assert all(list((REPOSITORY / package).glob(name)) for name in names)
    assert "/mypy cfltr_core cfltr_book book_tools\n" in (REPOSITORY / "Makefile").read_text()
    assert [path.name for path in Book(REPOSITORY).packages] == ["cfltr_core", "cfltr_book"]


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = []
    for name, text in committed_texts():
        allowed = f"TORCH_INDEX ?= {TORCH_CPU_INDEX}" if name == "Makefile" else None
        for line in text.splitlines():
            if line != allowed and (REGISTRY.search(line) or MACHINE_PATH.search(line)):
                found.append(f"{name}: {line.strip()[:100]}")
    assert found == []


def test_half_an_environment_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    """An installation that breaks off is started from nothing; only one that was whole is brought up to date."""
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "requirements.txt").touch()
    log, broken = tmp_path / "log", tmp_path / "broken"
    # Stands for Python: notes its arguments, "makes" an environment, and fails to install while told so.
    script = f"""#!/bin/sh
echo "$*" >> {log}
case "$*" in
  *venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *--editable*) [ ! -e {broken} ] ;;
esac
"""
    python = tmp_path / "python"
    python.write_text(script)
    python.chmod(0o755)

    def setup() -> tuple[int, list[str]]:
        log.write_text("")
        code = make("setup", f"PYTHON={python}", folder=tmp_path).returncode
        return code, [line for line in log.read_text().splitlines() if "-m" in line]

    broken.touch()
    old = make("setup", "PYTHON=false", folder=tmp_path)
    assert (old.returncode, "Python 3.11 or newer is needed" in old.stderr) == (2, True)
    assert not (tmp_path / ".venv").exists(), "an old Python is refused before anything is made"
    assert setup()[0] == 2
    broken.unlink()
    code, calls = setup()
    assert code == 0
    assert calls[0] == "-m venv --clear --upgrade-deps .venv"
    assert ["torch" in call for call in calls[1:]] == [True, False], "torch first, then the rest"
    assert all("-c requirements.txt" in call for call in calls[1:])
    assert setup() == (0, []), "a whole environment is left alone"
    os.utime(tmp_path / "pyproject.toml", (4e9, 4e9))
    code, calls = setup()
    assert code == 0
    assert calls
    assert not any("venv" in call for call in calls)


GITHUB = REPOSITORY / ".github"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((GITHUB / "workflows").glob("*.yml"))}
WORKFLOWS: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
BOOK = WORKFLOWS["book"]


def jobs() -> dict[str, dict[str, Any]]:
    return {f"{name}/{job}": about for name, flow in WORKFLOWS.items() for job, about in flow["jobs"].items()}


def test_actions_are_named_by_commit_with_one_version_beside_it() -> None:
    used = {use for text in TEXTS.values() for use in re.findall(r"uses: (.*)", text)}
    assert [use for use in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    assert len(used) == len({use.partition("@")[0] for use in used}) > 3


def test_only_make_is_called_but_for_the_report() -> None:
    commands = [
        step["run"] for name, job in jobs().items() if name != "canary/report" for step in job["steps"] if "run" in step
    ]
    assert commands
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for command in commands:
        target = re.fullmatch(r"make (\w+)( [A-Z]+=([\w,-]*|\$\{\{ matrix\.\w+ \}\}))*", command)
        assert target, command
        assert re.search(rf"^{target[1]}:", makefile, re.MULTILINE), command


def test_every_job_ends_and_reads_unless_it_must_write() -> None:
    for name, flow in WORKFLOWS.items():
        assert flow["permissions"] == {"contents": "read"}, name
    longest = {name: 350 if name in ("weekly/tables", "weekly/older") else 90 for name in jobs()}
    assert [name for name, job in jobs().items() if not 0 < job["timeout-minutes"] <= longest[name]] == []
    writing = {name: job["permissions"] for name, job in jobs().items() if "permissions" in job}
    assert writing == {
        "book/deploy": {"pages": "write", "id-token": "write"},
        "book/publish": {"contents": "write"},
        "canary/report": {"issues": "write"},
    }


@pytest.mark.parametrize(
    ("job", "folder", "scales"),
    [("tables", "cfltr_book/kept", {"ci", "paper"}), ("older", "tests/reference/kept", {"ci"})],
)
def test_every_kept_table_is_computed_once_a_week(job: str, folder: str, scales: set[str]) -> None:
    matrix = WORKFLOWS["weekly"]["jobs"][job]["strategy"]["matrix"]["include"]
    computed = {(row["chapter"], row.get("scale", "ci"), row["corpus"].replace(":", ".")) for row in matrix}
    kept = {table.relative_to(REPOSITORY / folder).parts[:3] for table in (REPOSITORY / folder).rglob("*.csv")}
    assert computed == {place for place in kept if place[1] in scales}


def test_only_what_passed_on_main_is_published() -> None:
    for name in ("deploy", "publish"):
        job = BOOK["jobs"][name]
        assert job["if"] == "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
        assert set(job["needs"]) == {"test", "book", "colab"}
