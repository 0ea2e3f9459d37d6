"""A verdict that changed, was edited, or could not have failed makes verify fail."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from claim_files import entry, spec
from toy import Toy

from book_tools.book import Book, Chapter
from book_tools.checks import verify
from book_tools.checks.verify import claim_problems, news, verdict_report
from book_tools.parameters import Parameters
from cfltr_book.reporting import claim_registry, wording
from cfltr_book.reporting import claims as published
from cfltr_book.reporting.accepted import parse_accepted
from cfltr_book.reporting.claims import Measurement

CHAPTERS = [Chapter(Path("91_alpha.ipynb"))]
BETTER = {"larger": [2.0, 2.1, 2.2, 2.1], "smaller": [1.0, 1.1, 1.0, 1.2]}


def specification(**changes: Any) -> claim_registry.Claim:
    here = {"id": "toy-better", "chapter": "91", "scale": "smoke", "control": "toy-control"}
    return spec(**{"kind": "ordering", **here, **changes})


def measured(arrays: Mapping[str, list[float]] = BETTER, **changes: Any) -> Measurement:
    where = {name: changes.pop(name) for name in ("scale", "corpus") if name in changes}
    result = replace(published.verdict_of(specification(), arrays), **changes)
    return Measurement(result, **{"scale": "smoke", "corpus": "yahoo-like", **where}, arrays=dict(arrays))


def problems_of(*found: Measurement, specs: Iterable[claim_registry.Claim] = (specification(),)) -> list[str]:
    by_id = {measurement.result.id: (CHAPTERS[0], measurement) for measurement in found}
    return claim_problems(CHAPTERS, by_id, {one.id: one for one in specs})


SWAPPED = published.swapped(BETTER)
OPEN_ENDED = {"larger": [2.0, 0.0], "smaller": [1.0, 1.0]}
UNMEASURED = {"larger": [2.0, None], "smaller": [1.0, 1.0]}
EDITED = "but its stored numbers say supported with 1.025"


@pytest.mark.parametrize(
    ("arrays", "edit", "changes", "message"),
    [
        (BETTER, {}, {}, None),
        (SWAPPED, {}, {}, "toy-better: opposite seen, on record: seen"),
        (OPEN_ENDED, {}, {}, "toy-better: undecided, on record: seen"),
        # It gates only where the registry says that it must hold.
        (SWAPPED, {}, {"corpora": ("digits",)}, None),
        (SWAPPED, {}, {"scale": "ci"}, None),
        # Sharper than undecided is news, and no problem.
        (BETTER, {}, {"predicted": "inconclusive"}, None),
        (SWAPPED, {}, {"predicted": "inconclusive"}, None),
        (BETTER, {"verdict": "inconclusive"}, {"scale": "ci"}, EDITED),
        (BETTER, {"effect": 5.0}, {"scale": "ci"}, EDITED),
        (
            BETTER,
            {"id": "toy-other"},
            {"id": "toy-other", "chapter": "92"},
            "toy-other: measured in chapter 91 but not",
        ),
    ],
)
def test_a_claim_against_what_is_on_record(
    arrays: Mapping[str, list[float]], edit: dict[str, Any], changes: dict[str, Any], message: str | None
) -> None:
    one, found = specification(**changes), measured(arrays, **edit)
    problems = problems_of(found, specs=[one])
    assert len(problems) == (message is not None)
    assert (message or "") in "".join(problems)
    notices = news({one.id: (CHAPTERS[0], found)}, {one.id: one})
    assert len(notices) == (changes == {"predicted": "inconclusive"})
    if notices:
        called = wording.outcome(one, found.result.verdict, interval=found.result.interval)
        assert notices[0].startswith(f"NEWS toy-better (chapter 91): {called}, on record: undecided; if it is to")


def test_numbers_without_a_verdict_are_a_problem_only_where_the_claim_must_hold() -> None:
    found = Measurement(published.judge(specification(), UNMEASURED), "smoke", "yahoo-like", UNMEASURED)
    (problem,) = problems_of(found)
    assert all(part in problem for part in ("toy-better: no verdict", "larger[1]", "on record: seen"))
    assert problems_of(found, specs=[specification(scale="ci")]) == []


def test_a_claim_that_is_missing_or_of_another_chapter_and_one_that_always_agrees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (missing,) = problems_of()
    assert missing.startswith("toy-better: chapter 91 should measure")
    assert problems_of(measured(), specs=[specification(), specification(id="toy-later", chapter="92")]) == []
    other, found = Chapter(Path("92_beta.ipynb")), measured()
    (extra,) = claim_problems([*CHAPTERS, other], {"toy-better": (other, found)}, {"toy-better": specification()})
    assert extra.startswith("toy-better: measured in chapter 92 but not")
    monkeypatch.setattr(published, "judge", lambda spec, arrays: found.result)
    (constant,) = problems_of(found)
    assert constant.startswith("toy-better: still supported when its two methods are swapped")


@pytest.fixture(scope="module")
def claimed_once(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """An executed book with a registry of its own: two claims that gate at smoke, three that do not."""
    toy = Toy(tmp_path_factory.mktemp("claimed") / "book")
    toy.chapter("91_alpha", *(claim_cell(name) for name in ("toy-one", "toy-two", "toy-far")))
    toy.chapter("92_beta", *(claim_cell(name) for name in ("toy-other", "toy-last")))
    toy.contents("91_alpha", "92_beta", "scoreboard", "status")
    write_registry(toy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_registry, "registry", lambda: read_registry(toy))
        toy.cli("run", "--scale", "smoke")
    return toy


@pytest.fixture
def claimed(claimed_once: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Toy:
    """A copy of it, for a test to change."""
    shutil.copytree(claimed_once.root, tmp_path / "copy")
    toy = Toy.at(tmp_path / "copy")
    monkeypatch.setattr(claim_registry, "registry", lambda: read_registry(toy))
    return toy


def claim_cell(name: str) -> str:
    """Write what the package's ``claim`` writes for a number that was measured as 1, without a registry."""
    arrays = {"values": [0.999, 1.001]}
    one = specification(id=name, kind="number", value=1.0, control=None)
    record = Measurement(published.verdict_of(one, arrays, level=0.95), "smoke", "yahoo-like", arrays).as_record()
    return f"""
import json, os, pathlib
path = pathlib.Path(os.environ["CFLTR_RUN_DIR"]) / "claims" / "{name}.json"
path.write_text({json.dumps(record)!r})
"""


def write_registry(toy: Toy, **verdicts: str) -> None:
    """Write the registry of the toy book; ``verdicts`` changes those on record, by name with an underscore."""
    folder = toy.root / "cfltr_book" / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    common: dict[str, Any] = {"chapter": None, "value": 1.0, "corpora": ["yahoo-like"]}
    scales = {"91": {"one": "smoke", "two": "smoke", "far": "ci"}, "92": {"other": "ci", "last": "ci"}}
    for number, some in scales.items():
        claims = [
            entry(f"toy-{name}", scale=scale, predicted=verdicts.get(name, "supported"), **common)
            for name, scale in some.items()
        ]
        (folder / f"{number}.yml").write_text(yaml.safe_dump(claims))


def read_registry(toy: Toy) -> dict[str, claim_registry.Claim]:
    files = sorted((toy.root / "cfltr_book" / "claims").glob("*.yml"))
    entries = [{**one, "chapter": path.stem} for path in files for one in yaml.safe_load(path.read_text())]
    verdicts = Book(toy.root).verdicts
    return claim_registry.parse_registry(entries, parse_accepted(verdicts.read_text()) if verdicts.is_file() else [])


HOLDS = "every verdict that must hold at this scale and corpus is the one on record"


@pytest.mark.parametrize(
    ("verdicts", "said", "report"),
    [
        ({}, [], [HOLDS]),
        (
            # Of which those of scale ci need not hold here.
            {"two": "contradicted", "far": "contradicted", "other": "inconclusive", "last": "contradicted"},
            ["toy-two: seen, on record: opposite seen"],
            [
                "CHANGED where it must hold, 'make verify' fails: 1 of 5 verdicts",
                "  toy-two (chapter 91): seen, on record: opposite seen",
                *("3 others", "  chapter 91: 1 seen", "  chapter 92: 2 seen"),
            ],
        ),
        (
            {"two": "inconclusive", "far": "inconclusive"},
            ["NEWS toy-two"],
            [f"{HOLDS}, or sharper", "  NEWS toy-two", "1 others", "  chapter 91: 1 seen"],
        ),
    ],
)
def test_a_changed_expectation_shows_at_once(
    claimed: Toy, verdicts: dict[str, str], said: list[str], report: list[str]
) -> None:
    before = claimed.artefacts()
    write_registry(claimed, **verdicts)
    *lines, summary = claimed.cli("verify", code=int(report[0].startswith("CHANGED"))).splitlines()
    assert "5 claims in 2 chapters checked" in summary
    for found, beginnings in ((lines, said), (verdict_report(Book(claimed.root)), report)):
        assert len(found) == len(beginnings)
        assert all(line.startswith(words) for line, words in zip(found, beginnings, strict=True)), found
    assert "kept  91_alpha" in claimed.cli("run", "--scale", "smoke"), "no chapter is stale"
    assert claimed.artefacts() == before


def test_a_run_on_a_collection_that_cannot_be_seen_any_more(executed: Toy) -> None:
    path = executed.root / "_build" / "run" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "corpus": "letor:mq2008"}))
    done = executed.cli("verify", code=2)
    assert "the environment variable CFLTR_DATA is not set" in done
    assert "the present run has scale smoke, corpus letor:mq2008" in done


def test_no_run_a_partial_run_and_a_stale_run(executed: Toy) -> None:
    executed.cli("verify")
    executed.chapter("91_alpha", "x = 'changed'")
    said = executed.cli("verify", code=2)
    assert ("91_alpha: the run is stale" in said, "92_beta" in said) == (True, False)
    executed.cli("verify", "--chapter", "91", code=2)
    assert "0 claims in 1 chapters checked" in executed.cli("verify", "--chapter", "92"), "whatever the others are"
    executed.chapter("93_gamma", "x = 1")
    executed.contents("92_beta", "93_gamma")
    assert "93_gamma: not executed" in executed.cli("verify", code=2)
    shutil.rmtree(executed.root / "_build")
    for command in ("verify", "accept"):
        assert "no run exists; start one with 'make book'" in executed.cli(command, code=2)
    assert not (executed.root / "tests").exists()


def test_what_is_accepted_is_on_record_and_what_turned_is_told(claimed: Toy) -> None:
    book = Book(claimed.root)
    write_registry(claimed, one="contradicted", two="inconclusive", far="contradicted")
    claimed.cli("verify", code=1)
    assert claimed.cli("accept").splitlines() == [
        "reference: 0 figures in tests/reference/smoke",
        "toy-one (chapter 91): contradicted → supported",
        "toy-two (chapter 91): inconclusive → supported",
        "accept: 2 verdicts turned, 2 written for the first time, in cfltr_book/claims/verdicts.csv",
    ]
    before = book.verdicts.read_text()
    found = {row.id: row for row in parse_accepted(before)}
    assert list(found) == ["toy-one", "toy-two"], "the others need not hold at this scale"
    result = json.loads((claimed.done("91_alpha") / "claims" / "toy-one.json").read_text())
    numbers = [float(f"{number:.3g}") for number in (result["effect"], *result["interval"])]
    assert [found["toy-one"].effect, found["toy-one"].low, found["toy-one"].high] == numbers
    # What was predicted stays; the run is fresh, and agrees now; accepted once more nothing turns.
    assert read_registry(claimed)["toy-one"].predicted == "contradicted"
    claimed.cli("verify")
    assert "accept: 0 verdicts turned, 0 written" in claimed.cli("accept")
    assert book.verdicts.read_text() == before


@pytest.mark.parametrize(
    ("parameters", "code"), [({"seed": 1}, 2), ({"corpus": "letor:mine"}, 2), ({"corpus": "digits"}, 0)]
)
def test_only_what_others_can_run_is_accepted_and_numbers_of_the_default_corpus_alone(
    claimed: Toy, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], code: int
) -> None:
    monkeypatch.setattr(verify, "fresh_run", lambda book, otherwise, wanted: Parameters("smoke", **parameters))
    said = claimed.cli("accept", code=code)
    refused = "accepted are runs of the default seed, with a corpus of the book" in said
    assert (refused, Book(claimed.root).verdicts.exists()) == (code == 2, code == 0)
    assert not (claimed.root / "tests").exists()
