"""The scoreboard: claims told apart by source and nature, predicted beside measured, links there and back."""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claim_files import registry_of
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.repository import Origin
from book_tools.parameters import Parameters
from book_tools.site.claim_rows import ClaimRow, claim_rows, numbers_of, tally
from book_tools.site.scoreboard import OUTCOMES, budget, function_of, scoreboard
from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.accepted import Accepted
from cfltr_book.reporting.measures import measure_of
from cfltr_book.reporting.wording import SOURCES, is_published, source_of, spelt_out
from cfltr_core.files import write_json

SMOKE = Parameters("smoke")
ENTRY: dict[str, Any] = {
    "source": "A18 §1",
    "statement": "It is one.",
    "kind": "number",
    "chapter": "91",
    "corpora": ["yahoo-like"],
    "scale": "smoke",
    "predicted": "supported",
    "reason": "r",
    "margin": 0.1,
    "value": 1.0,
}
ORDERING = {"source": "J20", "kind": "ordering", "margin": 0.5, "control": "control-one", "predicted": "contradicted"}
EXACT = {"kind": "identity", "tolerance": 1e-9}
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


def entry(id: str, **changes: Any) -> dict[str, Any]:
    fields = {**ENTRY, "id": id, **changes}
    return {name: value for name, value in fields.items() if value is not None}


FILE = [
    entry("A18-true", **EXACT),
    entry("J20-false", source="J20 §5", predicted="contradicted", **EXACT),
    entry("A18-seen", control="control-one", each="random problem"),
    entry("O20-opposite", source="O20", on_record="contradicted", predicted="supported"),
    entry(
        "J20-small",
        **{**ORDERING, "predicted": "inconclusive", "on_record": "contradicted"},
        reason="half of what the paper's figure shows. " * 3,
    ),
    entry("J20-unseen", **{**ORDERING, "on_record": "supported"}),
    entry("B-open", source="B, after J20 §5", on_record="inconclusive", predicted="none"),
    entry("B-nothing", source="B", scale="ci"),
    entry("B-missing", source="B"),
    entry("control-one", source="B, negative control"),
    entry("N-elsewhere", source="N", chapter="92"),
    entry(
        "B-old",
        source="B",
        predicted="supported",
        withdrawn={
            "replaced_by": "B-open",
            "measured": {"yahoo-like": "contradicted"},
            "why": "It was the other way round.",
        },
    ),
]


@pytest.fixture
def measured(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A book with one chapter that measured nine claims of a registry of its own."""
    toy.chapter("91_alpha", "x = 1")
    toy.contents("91_alpha", "scoreboard")
    parsed = registry_of(FILE)
    standing = {name: spec for name, spec in parsed.items() if spec.withdrawn is None}
    monkeypatch.setattr(claim_registry, "registry", lambda: standing)
    monkeypatch.setattr(claim_registry, "withdrawn", lambda: {"B-old": parsed["B-old"]})
    for name, arrays in VALUES.items():
        found = claims.judge(standing[name], arrays)
        record = claims.Measurement(found, "smoke", "yahoo-like", arrays)
        write_json(toy.done("91_alpha") / "claims" / f"{name}.json", record.as_record())
    return toy


def row(text: str, id: str) -> str:
    """The block of one claim in the page's Markdown."""
    (found,) = re.findall(rf'<div class="[^"]*" id="claim-{re.escape(id)}">.*?</div>', text, re.DOTALL)
    return str(found)


def test_the_real_claims_name_their_source_twice_and_alike() -> None:
    """By the code before the id, and in words: none is left with a code that only we know."""
    codes = re.compile(rf"\b({'|'.join(SOURCES)})\b(?!\W*=)")
    for spec in (*claim_registry.registry().values(), *claim_registry.withdrawn().values()):
        assert source_of(spec.id) in (*SOURCES, "control"), spec.id
        assert not codes.search(re.split('[“"]', spelt_out(spec.source))[0]), spec.source
        assert not is_published(spec.id) or source_of(spec.id) in spec.source, spec.id


def test_what_is_counted_together(measured: Toy) -> None:
    counts = tally(claim_rows(Book(measured.root), SMOKE))
    assert {group: dict(counter) for group, counter in counts.items()} == {
        ("published", "mathematical"): {"true": 1, "false": 1},
        ("published", "empirical"): {"seen": 1, "smaller than asked": 1, "not seen": 1, "opposite seen": 1},
        ("own", "empirical"): {"undecided": 1, "no verdict": 1, "not measured": 1},
        ("control", ""): {"held": 1},
    }
    text = scoreboard(Book(measured.root), SMOKE)
    # All, the outcomes, without a verdict, as predicted of those with a prediction.
    assert re.findall(r"^\| (\w+)[^|]* \| ((?:\d+ \| )+\d+ of \d+) \|$", text, re.MULTILINE) == [
        ("Published", "2 | 1 | 1 | 0 | 0 | 2 of 2"),
        ("Our", "0 | 0 | 0 | 0 | 0 | 0 of 0"),
        ("Published", "4 | 1 | 1 | 1 | 1 | 0 | 0 | 2 of 4"),
        ("Our", "3 | 0 | 0 | 0 | 0 | 1 | 2 | 0 of 2"),
        ("Controls", "1 | 1 | 0 | 0 | 0 | 1 of 1"),
    ]
    assert text.partition('<div class="board-about">')[0].count("<fieldset") == 2, "the buttons come first"


# Of each claim: the classes of its row, what was predicted and what was measured, and what else stands there.
ROWS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "A18-true": (
        "verdict-true source-a18",
        "true",
        "true (largest |left − right| 0 in 1 cases; must not exceed",
        ("True</span> It is one. *(Agarwal et al. (2018) §1)*", "\n\nWhy a tolerance of 1e-09: r.\n"),
    ),
    "J20-false": ("verdict-false source-j20", "false", "false (", ('href="91_alpha.html">Where it was measured',)),
    "A18-seen": (
        "verdict-seen source-a18",
        "seen",
        "seen (mean 1, 99.4% interval [",
        ('<a href="#claim-control-one">control-one</a> (held)', "(CSV) <claims/A18-seen.csv>`", "over 3 random"),
    ),
    "O20-opposite": ("verdict-opposite-seen source-o20 verdict-surprise", "seen", "opposite seen (", ()),
    "J20-small": (
        "verdict-smaller-than-asked source-j20 verdict-surprise",
        "undecided",
        "smaller than asked (mean difference 0.2, ",
        ("; must exceed 0.5)", '<details class="reason"><summary>Why a margin of 0.5</summary>\n\nHalf of'),
    ),
    "J20-unseen": ("verdict-not-seen source-j20", "contradicted", "not seen (", ("**On record: seen.**",)),
    "B-open": (
        "verdict-undecided source-b verdict-surprise",
        "nothing, written after a first measurement",
        "undecided",
        ('Took the place of <a href="#claim-B-old">B-old</a>, withdrawn.',),
    ),
    "B-nothing": (
        "verdict-no-verdict source-b verdict-surprise",
        "seen",
        "no verdict (B-nothing, values: expected finite numbers, but values[0] is nan).",
        ("Decides nothing here: it is put to the test from scale ci on, with yahoo-like.",),
    ),
    "B-missing": ("verdict-not-measured source-b verdict-surprise", "seen", "not measured. **On record: seen.**", ()),
    "control-one": ("verdict-held source-control", "held", "held (", ("over 2 seeds; must",)),
    "B-old": (
        "verdict-opposite-seen source-b withdrawn verdict-surprise",
        "seen",
        'opposite seen on `yahoo-like`. Replaced by <a href="#claim-B-open">B-open</a>.',
        ("It was the other way round. `B-old`", "\n\nWhy a margin of 0.1: r.\n"),
    ),
}


def test_the_rows(measured: Toy) -> None:
    text = scoreboard(Book(measured.root), SMOKE)
    for name, (classes, predicted, found, parts) in ROWS.items():
        block = row(text, name)
        assert block.startswith(f'<div class="claim {classes}"'), name
        for part in (f"Predicted: {predicted}. Measured: {found}", *parts):
            assert part in block.replace("\n<a", " <a"), name
        assert ("download" in block) == (name in VALUES), name
    assert re.findall('id="claim-([^"]+)"', text)[-1] == "B-old"
    assert len(re.findall('id="claim-', text)) == len(ROWS), "the chapter of N-elsewhere is not in the book"
    assert text.count("On record: ") == 2, "elsewhere it is what the last accepted run gave"
    assert "scale smoke, corpus yahoo-like, seed 0" in text


def test_how_to_check_that_a_prediction_came_first(measured: Toy, tmp_path: Path) -> None:
    """The command of the page, run in a repository: the commit of the claim stands before that of the measurement."""
    text = scoreboard(Book(measured.root), SMOKE)
    (command,) = re.findall(r"```bash\n(git log .*?)\n```", text, re.DOTALL)
    assert all(len(line) <= 88 for line in command.splitlines())
    assert "A18-true" in command

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments], cwd=tmp_path, check=True
        )

    git("init", "--quiet")
    for folder in ("claims", "chapters"):
        (tmp_path / folder).mkdir()
    for name, content in (("claims/91.yml", "- id: A18-true\n"), ("chapters/91_a.ipynb", '["A18-true"]')):
        (tmp_path / name).write_text(content)
        git("add", "--all")
        git("commit", "--quiet", "-m", f"adds {name}")
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = [line for line in done.stdout.splitlines() if line.endswith((".yml", ".ipynb"))]
    assert [line.split()[-1] for line in found] == ["claims/91.yml"] * 2 + ["chapters/91_a.ipynb"] * 2


def test_the_false_alarms_of_the_whole_book(measured: Toy) -> None:
    found = claim_rows(Book(measured.root), SMOKE)
    due = [one.spec for one in found if one.spec.kind != "identity" and one.spec.scale == "smoke"]
    family = [one.spec for one in found if one.spec.kind != "identity"]
    allowed = budget(found)
    # One chapter, whose correction is for all its statistical claims, due or not: 0.05 / 8 each, and half of that.
    assert [allowed[name] for name in ("due", "exact", "chapters", "supported")] == [len(due), 2, 1, 2]
    assert allowed["expected"] == pytest.approx(0.05 / len(family) / 2 * len(due))


def test_verdicts_of_other_corpora_stand_beside(measured: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = claim_registry.registry()["J20-small"]
    accepted = [
        Accepted(spec.id, "yahoo-like", "smoke", "supported"),
        Accepted(spec.id, "digits", "ci", "contradicted", 0.2, 0.1, 0.3),
        Accepted(spec.id, "digits", "smoke", "inconclusive"),
        Accepted(spec.id, "letor", "smoke", "supported"),
    ]
    changed = {**claim_registry.registry(), spec.id: replace(spec, accepted=tuple(accepted))}
    monkeypatch.setattr(claim_registry, "registry", lambda: changed)
    small = row(scoreboard(Book(measured.root), SMOKE), spec.id)
    assert "On record elsewhere: smaller than asked on `digits`, seen on `letor`." in small


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


def test_a_changed_verdict_is_set_beside_the_last_accepted_one(measured: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = registry_of([{**one, "predicted": "contradicted"} if one["id"] == "A18-seen" else one for one in FILE])
    monkeypatch.setattr(claim_registry, "registry", lambda: {n: s for n, s in parsed.items() if s.withdrawn is None})
    assert "**On record: opposite seen.**" in row(scoreboard(Book(measured.root), SMOKE), "A18-seen")


def test_a_claim_that_a_few_equal_seeds_leave_open_says_so(measured: Toy) -> None:
    arrays = {"values": [1.0, 1.0]}
    found = claims.judge(claim_registry.registry()["control-one"], arrays)
    record = claims.Measurement(found, "smoke", "yahoo-like", arrays).as_record()
    write_json(measured.done("91_alpha") / "claims" / "control-one.json", record)
    control = row(scoreboard(Book(measured.root), SMOKE), "control-one")
    assert '<span class="verdict">Undecided</span>' in control
    assert "(mean 1; both seeds gave the same value, so that their spread says nothing; must lie within" in control


def test_a_figure_stands_for_the_claims_below_it_until_the_next_heading(measured: Toy) -> None:
    def cell(kind: str, **marks: Any) -> dict[str, Any]:
        if kind == "markdown":
            return {"cell_type": kind, "metadata": {}, "source": marks["source"]}
        outputs = [
            {"output_type": "display_data", "data": {}, "metadata": {"cfltr": {name: value}}}
            for name, value in marks.items()
        ]
        return {"cell_type": kind, "metadata": {}, "source": "", "outputs": outputs, "execution_count": 1}

    cells = [
        cell("code", claim="A18-true"),
        cell("code", figure="fig-one"),
        cell("markdown", source="*What was seen:* much."),
        cell("code", evidence=["A18-seen", "A18-true"]),
        cell("markdown", source="## Next"),
        cell("code", claim="B-open"),
    ]
    page = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (measured.done("91_alpha") / "notebook.ipynb").write_text(json.dumps(page))
    text = scoreboard(Book(measured.root), SMOKE)
    assert '<a href="91_alpha.html#claim-A18-seen">Where it was measured</a>' in row(text, "A18-seen")
    assert '<a href="91_alpha.html#fig-one">figure beside it</a>' in row(text, "A18-seen")
    for name in ("A18-true", "B-open"):
        assert f'<a href="91_alpha.html#claim-{name}">Where it was measured</a>' in row(text, name)
        assert "figure beside it" not in row(text, name)
    assert '<a href="91_alpha.html">Where it was measured</a>' in row(text, "J20-false"), "it is shown nowhere"


def test_the_numbers_behind_a_verdict() -> None:
    def text_of(**arrays: Any) -> list[list[str]]:
        result = claims.ClaimResult("one", "number", "supported", 1.0, None, None, 0.1, 1)
        return list(csv.reader(numbers_of(claims.Measurement(result, "ci", "digits", arrays)).splitlines()))

    assert text_of(values=[0.5, None]) == [["row", "values"], ["0", "0.5"], ["1", "nan"]]
    assert text_of(larger=[1.0, 2.0], smaller=[0.0, 0.25], units=[3.0, 3.0]) == [
        ["row", "unit", "larger", "smaller"],
        ["0", "3", "1", "0"],
        ["1", "3", "2", "0.25"],
    ]
    assert text_of(x=[1.0, 10.0], errors=[[0.1, 0.2], [0.3, 0.4]]) == [
        ["row", "column", "x", "errors"],
        ["0", "0", "1", "0.1"],
        ["0", "1", "10", "0.2"],
        ["1", "0", "1", "0.3"],
        ["1", "1", "10", "0.4"],
    ]
    assert text_of(values=[]) == [["row", "values"]]
    assert text_of(left=1.0, right=2.0) == [["left", "right"], ["1", "2"]]


def test_every_button_of_the_filter_has_its_rule() -> None:
    """The style sheet hides, for every verdict and source that a claim can have, the claims that have another."""
    sheet = (REPOSITORY / "_static" / "pages.css").read_text()
    choices = [f"verdict-{name.replace(' ', '-')}" for name in (*OUTCOMES, "surprise")]
    choices += [f"source-{code.lower()}" for code in (*SOURCES, "control")]
    for choice in choices:
        assert f":has(#{choice}:checked) .claim:not(.{choice})" in sheet
        assert f":has(#{choice}:checked) section:has(> .claim):not(:has(> .{choice}))" in sheet
