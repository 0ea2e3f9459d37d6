"""What the pipeline needs from the claims of the book, as an interface.

``cfltr_core.reporting.claims`` provides it; tests put a small stand-in in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast


class Specification(Protocol):
    """One entry of the registry: what was published, and what is expected of our measurement."""

    @property
    def id(self) -> str: ...
    @property
    def chapter(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def statement(self) -> str: ...
    @property
    def control(self) -> str | None: ...

    def expected(self, corpus: str) -> str:
        """Return the verdict that is expected on ``corpus``."""


class Result(Protocol):
    """A verdict with the effect it rests on."""

    @property
    def verdict(self) -> str: ...
    @property
    def effect(self) -> float: ...


class ClaimsLibrary(Protocol):
    """The registry of claims and the tests that decide them."""

    @property
    def BUDGET(self) -> str:
        """Say in a sentence or two how many false alarms are to be expected."""

    def registry(self) -> Mapping[str, Specification]:
        """Return every claim of the book by its id."""

    def verdict_of(self, spec: Any, arrays: Any) -> Result:
        """Decide a claim from the numbers of each seed."""

    def swapped(self, arrays: Any) -> Any:
        """Return the same numbers with the two methods exchanged."""


def published_claims() -> ClaimsLibrary:
    """Return the claims of the book."""
    from cfltr_core.reporting import claims

    return cast(ClaimsLibrary, claims)
