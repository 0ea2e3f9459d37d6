"""What runs on GitHub: make and nothing else, actions by commit, and no more rights than a job needs."""

from __future__ import annotations

import re
from typing import Any

import yaml
from toy import REPOSITORY

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


def test_only_what_passed_on_main_is_published() -> None:
    for name in ("deploy", "publish"):
        job = BOOK["jobs"][name]
        assert job["if"] == "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
        assert set(job["needs"]) == {"test", "book", "colab"}
