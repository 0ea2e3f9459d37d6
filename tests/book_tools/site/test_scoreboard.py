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
from bs4 import BeautifulSoup, Tag
from claim_files import registry_of
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.repository import Origin
from book_tools.parameters import Parameters
from book_tools.site.claim_rows import ClaimRow, claim_rows, numbers_of, tally
from book_tools.site.scoreboard import OUTCOMES, budget, function_of, scoreboard
from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.accepted import Accepted
from cfltr_book.reporting.claim_registry import VERDICTS
from cfltr_book.reporting.intervals import FEW_UNITS
from cfltr_book.reporting.measures import measure_of
from cfltr_book.reporting.wording import SOURCES, is_published, outcome, source_of, spelt_out
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


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("A18 §5.2", "Agarwal et al. (2018) §5.2"),
        ("B, after A18 §3 and J20 §5", "this book, after Agarwal et al. (2018) §3 and Jagerman and de Rijke (2020) §5"),
        ("N, against A18 §4", "the notes, against Agarwal et al. (2018) §4"),
        ("A18 Eq. 3; B (the rate)", "Agarwal et al. (2018) Eq. 3; this book (the rate)"),
        ("Toy 2026, grade B", "Toy 2026, grade B"),
    ],
)
def test_a_source_without_short_codes(source: str, words: str) -> None:
    assert spelt_out(source) == words


def test_the_real_claims_name_their_source_twice_and_alike() -> None:
    """By the code before the id, and in words: none is left with a code that only we know."""
    codes = re.compile(rf"\b({'|'.join(SOURCES)})\b(?!\W*=)")
    for spec in (*claim_registry.registry().values(), *claim_registry.withdrawn().values()):
        assert source_of(spec.id) in (*SOURCES, "control"), spec.id
        assert not codes.search(spelt_out(spec.source).split("“")[0].split('"')[0]), spec.source
        if is_published(spec.id):
            assert source_of(spec.id) in spec.source.split("(")[0] or source_of(spec.id) in spec.source, spec.id


def test_an_outcome_is_named_by_nature() -> None:
    parsed = registry_of(FILE)
    assert [outcome(parsed["A18-true"], verdict) for verdict in VERDICTS] == ["true", "false", "undecided"]
    assert [outcome(parsed["A18-seen"], verdict) for verdict in VERDICTS] == [
        "seen",
        "opposite seen",
        "undecided",
    ]
    assert [outcome(parsed["control-one"], verdict) for verdict in VERDICTS] == [
        "held",
        "did not hold",
        "undecided",
    ]
    assert outcome(parsed["A18-true"], claims.NO_VERDICT) == "no verdict"


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
    assert "| Published in one of the four sources | 2 | 1 | 1 | 0 | 0 | 2 of 2 |" in text
    assert "| Published in one of the four sources | 4 | 1 | 1 | 1 | 1 | 0 | 0 | 2 of 4 |" in text
    assert "| Our own | 0 | 0 | 0 | 0 | 0 | 0 of 0 |" in text
    assert "| Our own | 3 | 0 | 0 | 0 | 0 | 1 | 2 | 0 of 2 |" in text
    assert "| Controls | 1 | 1 | 0 | 0 | 0 | 1 of 1 |" in text
    assert "*of* those claims of the row of which a verdict had been predicted" in text


def test_an_effect_below_the_margin_is_not_the_opposite(measured: Toy) -> None:
    text = scoreboard(Book(measured.root), SMOKE)
    small = row(text, "J20-small")
    assert 'class="claim verdict-smaller-than-asked source-j20 verdict-surprise"' in small
    assert '<span class="verdict">Smaller than asked</span>' in small
    assert "Predicted: undecided. Measured: smaller than asked (mean difference 0.2, " in small
    assert "; must exceed 0.5)" in small
    unseen = row(text, "J20-unseen")
    assert "Predicted: contradicted. Measured: not seen (mean difference" in unseen
    assert 'class="claim verdict-not-seen source-j20"' in unseen, "it was predicted"
    assert "**On record: seen.**" in unseen


def test_the_buttons_come_before_what_is_explained(measured: Toy) -> None:
    """They stand in the first screen of a phone, and what is explained can be hidden as one."""
    text = scoreboard(Book(measured.root), SMOKE)
    before, _, after = text.partition('<div class="board-about">')
    assert before.count("<fieldset") == 2
    assert len(re.sub(r"<fieldset.*</fieldset>", "", before, flags=re.DOTALL)) < 300
    about = after.partition("</div>")[0]
    assert "| Mathematical claims | All |" in about
    assert "<div" not in about
    sheet = (REPOSITORY / "_static" / "pages.css").read_text()
    assert "input:checked:not(#verdict-all, #source-all)) .board-about {" in sheet


def test_why_a_margin_is_what_it_is(measured: Toy) -> None:
    """In the open where it takes a line, folded where it is long."""
    text = scoreboard(Book(measured.root), SMOKE)
    assert "\n\nWhy a margin of 0.1: r.\n" in row(text, "A18-seen")
    assert "\n\nWhy a tolerance of 1e-09: r.\n" in row(text, "A18-true")
    assert "\n\nWhy a margin of 0.1: r.\n" in row(text, "B-old")
    small = row(text, "J20-small")
    fold = (
        '<details class="reason"><summary>Why a margin of 0.5</summary>\n\nHalf of what the paper\'s figure shows. half'
    )
    assert fold in small
    assert small.count("<details") == small.count("</details>") == 1


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
    text = scoreboard(Book(measured.root), SMOKE).partition("## How many false alarms to expect")[2]
    assert f"Were *none* of the {len(due)} true, at most {allowed['expected']:.2g} of them" in text


def test_the_rows(measured: Toy) -> None:
    text = scoreboard(Book(measured.root), SMOKE)
    assert "scale smoke, corpus yahoo-like, seed 0" in text
    assert (
        "they hold together at 95%: each statistical claim of a chapter with m of them is judged at level 1 − 0.05/m"
        in text
    )
    assert "with probability at most 2.5%" in text
    assert f"Fewer than {FEW_UNITS} seeds or folds that all give the same value decide nothing." in text
    true = row(text, "A18-true")
    assert 'class="claim verdict-true source-a18"' in true
    assert '<span class="verdict">True</span> It is one. *(Agarwal et al. (2018) §1)*' in true
    assert "Mathematical. Predicted: true. Measured: true (largest |left − right| 0 in 1 cases; must not exceed" in true
    seen = row(text, "A18-seen")
    low, high = claims.judge(claim_registry.registry()["A18-seen"], VALUES["A18-seen"]).interval or (0, 0)
    assert (
        f"Empirical. Predicted: seen. Measured: seen (mean 1, 99.4% interval [{low:.3g}, {high:.3g}] over 3 random"
        in seen
    )
    assert "over 2 seeds; must" in row(text, "control-one")
    assert 'control: <a href="#claim-control-one">control-one</a> (held)' in seen
    assert "{download}`numbers (CSV) <claims/A18-seen.csv>`" in seen
    opposite = row(text, "O20-opposite")
    assert "Predicted: seen. Measured: opposite seen (" in opposite
    assert "verdict-opposite-seen source-o20 verdict-surprise" in opposite
    assert "last accepted run" not in opposite, "it is what the last accepted run gave"
    assert "Predicted: nothing, written after a first measurement. Measured: undecided" in row(text, "B-open")
    nothing = row(text, "B-nothing")
    assert "Measured: no verdict (B-nothing, values: expected finite numbers, but values[0] is nan)." in nothing
    assert "Decides nothing here: it is put to the test from scale ci on, with yahoo-like." in nothing
    missing = row(text, "B-missing")
    assert "Measured: not measured. **On record: seen.**" in missing
    assert "download" not in missing
    assert '<span class="verdict">Held</span>' in row(text, "control-one")
    assert "N-elsewhere" not in text, "its chapter is not in the book"


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
    changed = row(scoreboard(Book(measured.root), SMOKE), "A18-seen")
    assert "**On record: opposite seen.**" in changed
    assert "verdict-surprise" in changed


def test_a_claim_that_a_few_equal_seeds_leave_open_says_so(measured: Toy) -> None:
    arrays = {"values": [1.0, 1.0]}
    found = claims.judge(claim_registry.registry()["control-one"], arrays)
    record = claims.Measurement(found, "smoke", "yahoo-like", arrays).as_record()
    write_json(measured.done("91_alpha") / "claims" / "control-one.json", record)
    control = row(scoreboard(Book(measured.root), SMOKE), "control-one")
    assert '<span class="verdict">Undecided</span>' in control
    assert "(mean 1; both seeds gave the same value, so that their spread says nothing; must lie within" in control


def test_a_withdrawn_claim_is_listed_with_what_it_measured(measured: Toy) -> None:
    text = scoreboard(Book(measured.root), SMOKE)
    assert 'Took the place of <a href="#claim-B-old">B-old</a>, withdrawn.' in row(text, "B-open")
    assert text.count("Took the place of") == 1
    old = row(text, "B-old")
    assert text.index("## Withdrawn") < text.index('id="claim-B-old"')
    assert 'class="claim verdict-opposite-seen source-b withdrawn verdict-surprise"' in old
    assert "Predicted: seen. Measured: opposite seen on `yahoo-like`. Replaced by" in old
    assert '<a href="#claim-B-open">B-open</a>. It was the other way round. `B-old`' in old


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


MEASURING = """
import cfltr_book as book
{sizes}
run = book.Run(scale, corpus, seed)
first = run.claim("{first}", left=[1.0], right=[1.0])
first
"""


def test_links_lead_from_a_chapter_to_the_scoreboard_and_back(toy: Toy) -> None:
    """On the built pages, whose links are all checked; with what every claim of the chapter rests on."""
    first, second = [
        spec.id for spec in claim_registry.registry().values() if spec.kind == "identity" and spec.chapter == "02"
    ][:2]
    cells = MEASURING.format(first=first, sizes="")
    again = f'second = run.claim("{second}", left=[1.0], right=[2.0])\nrun.evidence(first, second)'
    toy.chapter("02_toy", cells, again)
    toy.contents("02_toy", "scoreboard")
    result = toy.cli("book", "--scale", "smoke")
    assert result.returncode == 0, result.stdout

    def page(name: str) -> BeautifulSoup:
        path = toy.root / "_build" / "html" / "chapters" / f"{name}.html"
        return BeautifulSoup(path.read_text(), "html.parser")

    chapter, board = page("02_toy"), page("scoreboard")
    for name in (first, second):
        (place,) = chapter.select(f'[id="claim-{name}"]')
        assert chapter.select(f'a[href="scoreboard.html#claim-{name}"]')
        (block,) = board.select(f'[id="claim-{name}"]')
        assert block.select(f'a[href="02_toy.html#claim-{name}"]')
        (data,) = block.select("a.download")
        written = (toy.root / "_build" / "html" / "chapters" / str(data["href"])).resolve()
        assert written.read_text().splitlines()[0] == "row,left,right"
        assert place.name == ("span" if name == first else "tr")
    assert _filtered(board, "all") == _filtered(board, "") != set()
    assert f"claim-{second}" in _filtered(board, "false")
    assert f"claim-{first}" not in _filtered(board, "false")
    assert all(one.find_parent("article") for one in board.select("fieldset input"))


def _filtered(board: BeautifulSoup, choice: str) -> set[str]:
    """The rows that stay when a button is pressed, by the rule that the style sheet has for it."""
    rows: list[Tag] = board.select("article .claim")
    if choice in ("", "all"):
        return {str(row["id"]) for row in rows}
    (button,) = board.select(f"#verdict-{choice}")
    assert button["name"] == "verdict"
    return {str(row["id"]) for row in rows if f"verdict-{choice}" in row["class"]}
