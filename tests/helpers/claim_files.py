"""Claims as their files have them, and small registries of them, with verdicts that a run has been accepted for."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.accepted import Accepted
from cfltr_book.reporting.claim_registry import Claim, parse_registry


def entry(id: str = "one", kind: str = "number", **changes: Any) -> dict[str, Any]:
    """An entry that suits every kind; a change to None leaves a field out."""
    fields = {
        "id": id,
        "kind": kind,
        "source": "somewhere",
        "statement": "Something holds.",
        "chapter": "01",
        "corpora": ["yahoo-like", "digits"],
        "scale": "ci",
        "predicted": "supported",
        "reason": "a test",
        "margin": 0.1,
        "tolerance": 1e-12,
        "value": 0.0,
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}


def spec(kind: str = "number", **changes: Any) -> Claim:
    """A claim that stands in no file."""
    return Claim(**{**entry("some-claim", kind, chapter="99", corpora=("yahoo-like",)), **changes})


def registry_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Claim]:
    """The registry of these entries; under ``on_record`` one may have an accepted verdict, or one for each corpus."""
    plain, rows = [], []
    for one in entries:
        verdicts = one.get("on_record", {})
        each = dict.fromkeys(one["corpora"], verdicts) if isinstance(verdicts, str) else verdicts
        rows += [Accepted(one["id"], corpus, one["scale"], verdict) for corpus, verdict in each.items()]
        plain.append({name: value for name, value in one.items() if name != "on_record"})
    return parse_registry(plain, rows)


def put(monkeypatch: pytest.MonkeyPatch, *entries: Mapping[str, Any]) -> dict[str, Claim]:
    """The registry of these entries, in place of the book's own."""
    found = registry_of(entries)
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    return found
