"""A plugin for pytest that writes how long each test took, once all of them have passed."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

TAKEN: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TAKEN[report.nodeid] += report.duration


def pytest_sessionfinish(exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK:
        Path(os.environ["SECONDS_FILE"]).write_text(json.dumps(TAKEN), encoding="utf-8")
