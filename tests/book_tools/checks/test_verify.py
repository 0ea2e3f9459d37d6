"""A verdict that changed, was edited, or could not have failed makes verify fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy import Toy

from book_tools.book import Chapter
from book_tools.checks.verify import claim_problems
from book_tools.execution.artefacts import Claim
from cfltr_core import claims as published

CHAPTERS = [Chapter(Path("91_alpha.ipynb"))]
BETTER = {"larger": [2.0, 2.1, 2.2, 2.1], "smaller": [1.0, 1.1, 1.0, 1.2]}


def specification(**changes: Any) -> published.Claim:
    entry: dict[str, Any] = {
        "id": "toy-better",
        "source": "Toy 2026, Table 1",
        "statement": "A exceeds B",
        "kind": "ordering",
        "chapter": "91",
        "corpora": ("yahoo-like",),
        "scale": "smoke",
        "expect": "supported",
        "reason": "by construction",
        "margin": 0.1,
        "control": "toy-control",
    }
    return published.Claim(**{**entry, **changes})


def measured(arrays: Mapping[str, list[float]] = BETTER, **changes: Any) -> Claim:
    result = published.verdict_of(specification(), arrays)
    record: dict[str, Any] = {
        "id": "toy-better",
        "kind": "ordering",
        "chapter": "91",
        "verdict": result.verdict,
        "gated": True,
        "effect": result.effect,
        "interval": result.interval,
        "level": result.level,
        "threshold": 0.1,
        "arrays": dict(arrays),
        "seeds": 4,
        "corpus": "yahoo-like",
    }
    return Claim(**{**record, **changes})


def library(*specs: published.Claim, **changes: Any) -> Any:
    parts = {
        "registry": lambda: {spec.id: spec for spec in specs},
        "verdict_of": published.verdict_of,
        "swapped": published.swapped,
        "BUDGET": "",
    }
    return SimpleNamespace(**{**parts, **changes})


def problems_of(*claims: Claim, using: Any = None) -> list[str]:
    return claim_problems(CHAPTERS, {claim.id: claim for claim in claims}, using or library(specification()))


def test_a_claim_that_holds() -> None:
    assert problems_of(measured()) == []


def test_methods_that_were_swapped_in_a_chapter() -> None:
    assert problems_of(measured(published.swapped(BETTER))) == ["toy-better: contradicted, expected supported"]


def test_a_verdict_better_than_expected_is_a_change_too() -> None:
    using = library(specification(expect="inconclusive"))
    assert problems_of(measured(), using=using) == ["toy-better: supported, expected inconclusive"]


def test_a_claim_gates_only_where_it_must_hold() -> None:
    assert problems_of(measured(published.swapped(BETTER), gated=False)) == []


def test_a_claim_that_is_missing_or_extra() -> None:
    assert problems_of() == ["toy-better: chapter 91 should measure this claim but did not"]
    extra = problems_of(measured(), measured(id="toy-other"))
    assert extra == ["toy-other: measured in chapter 91 but not in the registry for it; add it there"]


def test_claims_of_chapters_that_are_not_in_the_book_are_not_expected() -> None:
    other = specification(id="toy-later", chapter="92")
    assert problems_of(measured(), using=library(specification(), other)) == []


@pytest.mark.parametrize("edit", [{"verdict": "inconclusive"}, {"effect": 5.0}])
def test_a_verdict_or_effect_that_was_edited(edit: dict[str, Any]) -> None:
    problems = problems_of(measured(gated=False, **edit))
    assert len(problems) == 1
    assert "but its stored numbers say supported with 1.025" in problems[0]


def test_a_test_that_always_agrees() -> None:
    def agree(spec: published.Claim, arrays: Any) -> SimpleNamespace:
        return SimpleNamespace(verdict="supported", effect=measured().effect)

    problems = problems_of(measured(), using=library(specification(), verdict_of=agree))
    assert problems == ["toy-better: still supported when its two methods are swapped; its test decides nothing"]


def test_an_ordering_without_a_negative_control() -> None:
    problems = problems_of(measured(), using=library(specification(control=None)))
    assert problems == [
        "toy-better: an ordering needs a negative control in the registry, where its effect must vanish"
    ]


def test_no_run_a_partial_run_and_a_stale_run(executed: Toy) -> None:
    assert executed.cli("verify").returncode == 0
    executed.chapter("91_alpha", "x = 'changed'")
    stale = executed.cli("verify")
    assert stale.returncode == 1
    assert "91_alpha: the run is stale" in stale.stdout
    assert "92_beta" not in stale.stdout

    executed.chapter("93_gamma", "x = 1")
    executed.contents("92_beta", "93_gamma")
    partial = executed.cli("verify")
    assert partial.returncode == 1
    assert "93_gamma: not executed" in partial.stdout

    assert executed.cli("clean").returncode == 0
    none = executed.cli("verify")
    assert none.returncode == 1
    assert "no run exists; start one with 'make book'" in none.stdout
