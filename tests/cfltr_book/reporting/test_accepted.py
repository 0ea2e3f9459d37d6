"""The verdicts of accepted runs: their file, and what is on record at which scale."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import cfltr_book
from cfltr_book.reporting.accepted import Accepted, accepted_text, accepted_verdicts, parse_accepted
from cfltr_book.reporting.claim_registry import Claim, parse_registry, registry

HEAD = "id,corpus,scale,verdict,effect,low,high\n"
ENTRY: dict[str, Any] = {
    "id": "one",
    "source": "somewhere",
    "statement": "Something holds.",
    "kind": "number",
    "chapter": "01",
    "corpora": ["yahoo-like", "letor"],
    "scale": "smoke",
    "predicted": "supported",
    "reason": "a test",
    "margin": 0.1,
    "value": 0.0,
}


def claim_with(*rows: Accepted, **changes: Any) -> Claim:
    return parse_registry([{**ENTRY, **changes}], rows)["one"]


def test_a_file_is_read_as_it_was_written() -> None:
    rows = [
        Accepted("one", "digits", "ci", "supported", 0.125, -math.inf, math.inf),
        Accepted("two", "yahoo-like:conflict", "paper", "contradicted"),
        Accepted("three", "letor", "smoke", "supported", 0.0),
    ]
    text = accepted_text(rows)
    assert text == HEAD + (
        "one,digits,ci,supported,0.125,-inf,inf\ntwo,yahoo-like:conflict,paper,contradicted,,,\n"
        "three,letor,smoke,supported,0,,\n"
    )
    assert parse_accepted(text) == rows
    assert accepted_text([Accepted("one", "digits", "ci", "supported", 2 / 3)]).endswith(",0.667,,\n")


@pytest.mark.parametrize("text", ["id,verdict\n", HEAD + "one,digits,ci,a\n", HEAD + "one,digits,ci,a,1,2,3,4\n"])
def test_other_columns_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"verdicts\.csv: '.*' has not the columns id,corpus,scale,verdict,effect"):
        parse_accepted(text)


def test_a_larger_scale_has_the_verdict_of_the_largest_below_it() -> None:
    smoke, paper = (
        Accepted("one", "yahoo-like", *rest) for rest in (("smoke", "inconclusive"), ("paper", "supported"))
    )
    letor = Accepted("one", "letor", "ci", "contradicted")
    one = claim_with(paper, smoke, letor)
    assert [one.recorded(scale, "yahoo-like") for scale in ("smoke", "ci", "paper")] == [
        "inconclusive",
        "inconclusive",
        "supported",
    ]
    # Below all of them it is that of the smallest; a corpus that is not named has that of the first.
    assert [one.recorded(scale, "letor:mine") for scale in ("smoke", "ci")] == ["contradicted"] * 2
    assert one.recorded("ci", "digits") == "inconclusive"
    assert claim_with(letor).recorded("ci", "yahoo-like") == "supported", "what was predicted, until a run is accepted"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            Accepted("two", "yahoo-like", "ci", "supported"),
            "two, yahoo-like, ci: no such claim is to be measured",
        ),
        (Accepted("old", "yahoo-like", "ci", "supported"), "old, yahoo-like, ci: no such claim is to be measured"),
        (Accepted("one", "digits", "ci", "supported"), "supported is no verdict, or the claim is not put to the test"),
        (Accepted("one", "letor", "smoke", "supported"), "or the claim is not put to the test there"),
        (Accepted("one", "letor", "ci", "maybe"), "maybe is no verdict"),
        (Accepted("one", "yahoo-like", "ci", "supported"), "one, yahoo-like, ci: stands twice"),
    ],
)
def test_a_row_belongs_to_a_claim_that_is_put_to_the_test(row: Accepted, message: str) -> None:
    gone = {**ENTRY, "id": "old", "withdrawn": {"replaced_by": None, "measured": "supported", "why": "so"}}
    rows = [Accepted("one", "yahoo-like", "ci", "contradicted"), row]
    with pytest.raises(ValueError, match=rf"^verdicts\.csv, .*{message}"):
        parse_registry([{**ENTRY, "scale": "ci"}, gone], rows)


def test_the_books_own_file() -> None:
    """It ships with the package, each row is of a claim, and written anew it stays as it is."""
    path = Path(cfltr_book.__file__).parent / "claims" / "verdicts.csv"
    rows = accepted_verdicts()
    assert accepted_text(rows) == path.read_text(encoding="utf-8")
    assert [row for spec in registry().values() for row in spec.accepted] == rows
    at_ci = [spec for spec in registry().values() if spec.gates("ci", "yahoo-like")]
    missing = [spec.id for spec in at_ci if not any(row.corpus == "yahoo-like" for row in spec.accepted)]
    assert not missing, f"no verdict of {missing} was accepted: 'make book', look, 'make accept'"
