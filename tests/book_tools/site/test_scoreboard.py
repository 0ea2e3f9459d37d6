"""The scoreboard: claims told apart by source and nature, predicted beside measured, links there and back."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from claim_files import registry_of
from kept_text import same_as_kept
from toy import PAGES, REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.repository import Origin
from book_tools.parameters import Parameters
from book_tools.site.claim_rows import ClaimRow, claim_rows, numbers_of
from book_tools.site.scoreboard import OUTCOMES, budget, function_of, scoreboard
from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.accepted import Accepted
from cfltr_book.reporting.measures import measure_of
from cfltr_book.reporting.wording import SOURCES, is_published, source_of, spelt_out
from cfltr_core.files import write_json

SMOKE = Parameters("smoke")
# Parsed from a file of claims: what they have in common, and what each has besides.
ABOUT = yaml.safe_load((PAGES / "claims.yml").read_text(encoding="utf-8"))
FILE: list[dict[str, Any]] = [{**ABOUT["common"], **claim} for claim in ABOUT["claims"]]
VALUES: Mapping[str, dict[str, Any]] = {
    "A18-true": {"left": [1.0], "right": [1.0]},
    "J20-false": {"left": [[1.0, 2.0]], "right": [[1.0, 2.5]]},
    "A18-seen": {"values": [1.0, 1.01, 0.99]},
    "O20-opposite": {"values": [3.0, 3.01, 2.99]},
    "J20-small": {"larger": [1.2, 1.21, 1.19], "smaller": [1.0, 1.0, 1.0]},
    "J20-unseen": {"larger": [1.02, 0.98, 1.01], "smaller": [1.0, 1.0, 1.0]},
    "B-open": {"values": [1.0, 2.0, 0.0]},
    "B-nothing": {"values": [math.nan]},
    "control-one": {"values": [0.9999, 1.0001]},
}


ELSEWHERE = [
    Accepted("J20-small", "digits", "ci", "contradicted", 0.2, 0.1, 0.3),
    Accepted("J20-small", "digits", "smoke", "inconclusive"),
    Accepted("J20-small", "letor", "smoke", "supported"),
]


def cell(kind: str, source: str = "", **marks: Any) -> dict[str, Any]:
    output = {"output_type": "display_data", "data": {}, "metadata": {"cfltr": marks}}
    shown = {"outputs": [output], "execution_count": 1} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **shown}


# A figure stands for the claims below it until the next heading.
CELLS = [
    cell("code", claim="A18-true"),
    cell("code", figure="fig-one"),
    cell("markdown", source="*What was seen:* much."),
    cell("code", evidence=["A18-seen", "A18-true"]),
    cell("markdown", source="## Next"),
    cell("code", claim="B-open"),
]


@pytest.fixture
def measured(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A book with one chapter that measured nine claims of a registry of its own."""
    toy.chapter("91_alpha", "x = 1")
    toy.contents("91_alpha", "scoreboard")
    parsed = registry_of(FILE)
    standing = {name: spec for name, spec in parsed.items() if spec.withdrawn is None}
    standing["J20-small"] = replace(standing["J20-small"], accepted=(*standing["J20-small"].accepted, *ELSEWHERE))
    monkeypatch.setattr(claim_registry, "registry", lambda: standing)
    monkeypatch.setattr(claim_registry, "withdrawn", lambda: {"B-old": parsed["B-old"]})
    for name, arrays in VALUES.items():
        found = claims.judge(standing[name], arrays)
        record = claims.Measurement(found, "smoke", "yahoo-like", arrays)
        write_json(toy.done("91_alpha") / "claims" / f"{name}.json", record.as_record())
    page = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    write_json(toy.done("91_alpha") / "notebook.ipynb", page)
    return toy


def test_the_real_claims_name_their_source_twice_and_alike() -> None:
    """By the code before the id, and in words: none is left with a code that only we know."""
    codes = re.compile(rf"\b({'|'.join(SOURCES)})\b(?!\W*=)")
    for spec in (*claim_registry.registry().values(), *claim_registry.withdrawn().values()):
        assert source_of(spec.id) in (*SOURCES, "control"), spec.id
        assert not codes.search(re.split('[“"]', spelt_out(spec.source))[0]), spec.source
        assert not is_published(spec.id) or source_of(spec.id) in spec.source, spec.id


def test_the_page(measured: Toy) -> None:
    same_as_kept(PAGES / "scoreboard.md", scoreboard(Book(measured.root), SMOKE))


def test_the_false_alarms_of_the_whole_book(measured: Toy) -> None:
    found = claim_rows(Book(measured.root), SMOKE)
    due = [one.spec for one in found if one.spec.kind != "identity" and one.spec.scale == "smoke"]
    family = [one.spec for one in found if one.spec.kind != "identity"]
    allowed = budget(found)
    # One chapter, whose correction is for all its statistical claims, due or not: 0.05 / 8 each, and half of that.
    assert [allowed[name] for name in ("due", "exact", "chapters", "supported")] == [len(due), 2, 1, 2]
    assert allowed["expected"] == pytest.approx(0.05 / len(family) / 2 * len(due))


def test_the_function_that_measures_a_claim_is_named_and_linked() -> None:
    measure = measure_of("N-naive-expectation")
    assert measure is not None
    spec = claim_registry.registry()[measure.id]
    path, line = measure.place
    here = ClaimRow(spec, SMOKE)
    named = f"<code>{measure.function.__name__}</code> in <code>{path}</code>, line {line}"
    assert function_of(here, Origin(None, None, None)) == f"function {named}"
    origin = Origin("https://github.com/someone/toy-book", "0123", False)
    address = f"https://github.com/someone/toy-book/blob/0123/{path}#L{line}"
    assert function_of(here, origin) == f'function <a href="{address}">{named}</a>'


@pytest.mark.parametrize(
    ("arrays", "lines"),
    [
        ({"values": [0.5, None]}, "row,values 0,0.5 1,nan"),
        (
            {"larger": [1.0, 2.0], "smaller": [0.0, 0.25], "units": [3.0, 3.0]},
            "row,unit,larger,smaller 0,3,1,0 1,3,2,0.25",
        ),
        ({"x": [1.0, 10.0], "errors": [[0.1, 0.2]]}, "row,column,x,errors 0,0,1,0.1 0,1,10,0.2"),
        ({"values": []}, "row,values"),
        ({"left": 1.0, "right": 2.0}, "left,right 1,2"),
    ],
)
def test_the_numbers_behind_a_verdict(arrays: dict[str, Any], lines: str) -> None:
    result = claims.ClaimResult("one", "number", "supported", 1.0, None, None, 0.1, 1)
    assert numbers_of(claims.Measurement(result, "ci", "digits", arrays)).splitlines() == lines.split()


def test_every_button_of_the_filter_has_its_rule() -> None:
    """The style sheet hides, for every verdict and source that a claim can have, the claims that have another."""
    sheet = (REPOSITORY / "_static" / "pages.css").read_text()
    choices = [f"verdict-{name.replace(' ', '-')}" for name in (*OUTCOMES, "surprise")]
    choices += [f"source-{code.lower()}" for code in (*SOURCES, "control")]
    for choice in choices:
        assert f":has(#{choice}:checked) .claim:not(.{choice})" in sheet
        assert f":has(#{choice}:checked) section:has(> .claim):not(:has(> .{choice}))" in sheet
