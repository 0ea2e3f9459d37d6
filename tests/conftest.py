"""What all tests share: the marker that ties a public function to its reference, and the real collections."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "oracle(*names): checks these public functions against a literal loop in tests/oracles.py",
    )


@pytest.fixture
def real() -> Callable[[str], Path]:
    """The folder of a real collection below CFLTR_DATA; the test is skipped, with the reason, where it is absent."""

    def folder_of(folder: str) -> Path:
        root = os.environ.get("CFLTR_DATA")
        if not root:
            pytest.skip("CFLTR_DATA is not set: no real collections on this machine")
        path = Path(root).expanduser() / folder
        if not path.is_dir():
            pytest.skip(f"there is no folder {folder} in CFLTR_DATA")
        return path

    return folder_of
