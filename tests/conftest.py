"""What all tests share: the marker that ties a public function to the test that checks it against a reference."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "oracle(*names): checks these public functions of cfltr_core against a literal loop in tests/oracles.py",
    )
