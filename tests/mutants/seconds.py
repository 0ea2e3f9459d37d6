"""A plugin for pytest that writes how long each test took."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

TAKEN: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TAKEN[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SECONDS_FILE"]).write_text(json.dumps(TAKEN), encoding="utf-8")
