"""A plugin for pytest that writes how long each test took, and which failed."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

TAKEN: dict[str, float] = defaultdict(float)
FAILED: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TAKEN[report.nodeid] += report.duration
    if report.failed:
        FAILED.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SECONDS_FILE"]).write_text(json.dumps({"seconds": TAKEN, "failed": FAILED}), encoding="utf-8")
