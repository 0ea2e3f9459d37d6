"""What runs on GitHub: make and nothing else, actions by commit, and no more rights than a job needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import REPOSITORY

GITHUB = REPOSITORY / ".github"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((GITHUB / "workflows").glob("*.yml"))}
WORKFLOWS: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
BOOK, CANARY = WORKFLOWS["book"], WORKFLOWS["canary"]
REPORT = CANARY["jobs"]["report"]


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


def test_only_what_passed_on_main_is_published() -> None:
    for name in ("deploy", "publish"):
        job = BOOK["jobs"][name]
        assert job["if"] == "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
        assert set(job["needs"]) == {"test", "book", "colab"}


def test_the_canary_is_not_in_the_way_of_a_push() -> None:
    groups = {name: flow["concurrency"]["group"] for name, flow in WORKFLOWS.items()}
    assert groups == {"book": "book-${{ github.ref }}", "canary": "canary", "weekly": "weekly"}
    assert BOOK["concurrency"]["cancel-in-progress"] == "${{ github.event_name == 'pull_request' }}"
    assert CANARY["concurrency"]["cancel-in-progress"] is False
    commands = [step["run"] for step in CANARY["jobs"]["newest"]["steps"] if "run" in step]
    assert commands == ["make book LOCK=", "make verify LOCK=", "make test LOCK="]
    # YAML takes the word "on" for true.
    assert "schedule" in CANARY[True]
    assert "schedule" not in BOOK[True]


def test_every_week_the_kept_tables_are_computed_from_nothing() -> None:
    """Those of scale ci on each corpus, of chapters with a module all, in jobs that one core ends in time."""
    weekly = WORKFLOWS["weekly"]["jobs"]
    matrix = {job: weekly[job]["strategy"]["matrix"]["include"] for job in ("tables", "older")}
    asked = {job: {(e["chapter"], e.get("scale", "ci"), e["corpus"]) for e in each} for job, each in matrix.items()}
    seconds: dict[str, Counter[tuple[str, str, str]]] = {"tables": Counter(), "older": Counter()}
    for job, folder in (("tables", "cfltr_book/kept"), ("older", "tests/reference/kept")):
        for path in sorted((REPOSITORY / folder).rglob("*.json")):
            about = json.loads(path.read_text(encoding="utf-8"))
            place = path.relative_to(REPOSITORY / folder).parts[0], about["scale"], about["corpus"]
            if job == "tables" or about["scale"] == "ci":
                seconds[job][place] += sum(about["seconds"])
        assert asked[job] == {*seconds[job]}
        assert max(seconds[job].values()) < 60 * weekly[job]["timeout-minutes"]


GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
case "$2" in
  list) printf '%s' "$NUMBER" ;;
esac
"""


@pytest.mark.parametrize(("number", "then"), [("", "issue create --title"), ("17", "issue comment 17 --body")])
def test_the_report_opens_one_issue_and_goes_on_with_it(tmp_path: Path, number: str, then: str) -> None:
    assert REPORT["if"] == "failure()"
    assert REPORT["needs"] == "newest"
    (step,) = REPORT["steps"]
    gh, calls = tmp_path / "gh", tmp_path / "calls"
    gh.write_text(GH)
    gh.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "NUMBER": number}
    environment |= {"TITLE": step["env"]["TITLE"], "RUN": "https://github.com/someone/book/actions/runs/3"}
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], env=environment, check=True)
    listed, done = calls.read_text().splitlines()
    assert listed.startswith("issue list --state open ")
    assert json.dumps(environment["TITLE"]) in listed, "the title stands in the filter as a string"
    assert done.startswith(then)
    assert environment["RUN"] in done
    assert environment["TITLE"] in done or number


def test_dependabot_watches_the_actions_the_bounds_and_the_lock() -> None:
    watched = yaml.safe_load((GITHUB / "dependabot.yml").read_text(encoding="utf-8"))
    assert watched["version"] == 2
    ecosystems = {update["package-ecosystem"]: update for update in watched["updates"]}
    assert set(ecosystems) == {"github-actions", "pip"}
    assert all(update["directory"] == "/" and update["schedule"]["interval"] for update in ecosystems.values())
    assert ecosystems["pip"]["versioning-strategy"] == "increase-if-necessary", "lower bounds stay: Colab has its own"
    # What it takes for requirements: files with these endings, here and one folder deeper.
    asked = ["git", "ls-files", "*.txt", "*.in"]
    listed = subprocess.run(asked, cwd=GITHUB.parent, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [name for name in listed if name.count("/") < 2] == ["requirements.txt"]
