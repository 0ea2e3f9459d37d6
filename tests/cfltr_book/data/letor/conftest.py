"""The tests of the reader start without a cache, whatever the machine has set."""

import pytest


@pytest.fixture(autouse=True)
def no_cache_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CFLTR_CACHE", raising=False)
