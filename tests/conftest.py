"""What all tests share: the marker that ties a public function to its reference, hypothesis, the real collections."""

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

# ``pytest --of NAME``
pytest_plugins = ("of_name",)

# A fixed sequence of examples: the same run everywhere, nothing stored.
settings.register_profile("book", derandomize=True, deadline=None, database=None, max_examples=200, print_blob=False)
settings.load_profile("book")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "oracle(*names): checks these public functions against a literal loop in tests/helpers/oracles.py",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples in docstrings are those of the package: files below this folder hold tests only."""
    collectors = yield
    return [collector for collector in collectors if type(collector).__name__ != "DoctestModule"]


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
