"""Small registries of claims, with verdicts that a run has been accepted for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cfltr_book.reporting.accepted import Accepted
from cfltr_book.reporting.claim_registry import Claim, parse_registry


def registry_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Claim]:
    """The registry of these entries; under ``on_record`` one may have an accepted verdict, or one for each corpus."""
    plain, rows = [], []
    for entry in entries:
        verdicts = entry.get("on_record", {})
        each = dict.fromkeys(entry["corpora"], verdicts) if isinstance(verdicts, str) else verdicts
        rows += [Accepted(entry["id"], corpus, entry["scale"], verdict) for corpus, verdict in each.items()]
        plain.append({name: value for name, value in entry.items() if name != "on_record"})
    return parse_registry(plain, rows)
