"""A verdict that changed, was edited, or could not have failed makes verify fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import Toy

from book_tools.book import Book, Chapter
from book_tools.checks import verify
from book_tools.checks.verify import claim_problems, news, verdict_report
from book_tools.cli import main
from book_tools.parameters import Parameters
from cfltr_book.reporting import claim_registry, wording
from cfltr_book.reporting import claims as published
from cfltr_book.reporting.accepted import parse_accepted
from cfltr_book.reporting.claims import Measurement

CHAPTERS = [Chapter(Path("91_alpha.ipynb"))]
BETTER = {"larger": [2.0, 2.1, 2.2, 2.1], "smaller": [1.0, 1.1, 1.0, 1.2]}


def specification(**changes: Any) -> claim_registry.Claim:
    entry: dict[str, Any] = {
        "id": "toy-better",
        "source": "Toy 2026, Table 1",
        "statement": "A exceeds B",
        "kind": "ordering",
        "chapter": "91",
        "corpora": ("yahoo-like",),
        "scale": "smoke",
        "predicted": "supported",
        "reason": "by construction",
        "margin": 0.1,
        "control": "toy-control",
    }
    return claim_registry.Claim(**{**entry, **changes})


def measured(arrays: Mapping[str, list[float]] = BETTER, **changes: Any) -> Measurement:
    where = {name: changes.pop(name) for name in ("scale", "corpus") if name in changes}
    result = replace(published.verdict_of(specification(), arrays), **changes)
    return Measurement(result, **{"scale": "smoke", "corpus": "yahoo-like", **where}, arrays=dict(arrays))


def problems_of(*found: Measurement, specs: Iterable[claim_registry.Claim] = (specification(),)) -> list[str]:
    by_id = {measurement.result.id: (CHAPTERS[0], measurement) for measurement in found}
    return claim_problems(CHAPTERS, by_id, {spec.id: spec for spec in specs})


def test_a_claim_that_holds() -> None:
    assert problems_of(measured()) == []


def test_methods_that_were_swapped_in_a_chapter() -> None:
    assert problems_of(measured(published.swapped(BETTER))) == ["toy-better: opposite seen, on record: seen"]


@pytest.mark.parametrize("arrays", [BETTER, published.swapped(BETTER)])
def test_a_verdict_sharper_than_inconclusive_is_news_and_no_problem(arrays: Mapping[str, Any]) -> None:
    specs = [specification(predicted="inconclusive")]
    found = measured(arrays)
    assert problems_of(found, specs=specs) == []
    (notice,) = news({"toy-better": (CHAPTERS[0], found)}, {"toy-better": specs[0]})
    called = wording.outcome(specs[0], found.result.verdict, interval=found.result.interval)
    assert notice.startswith(f"NEWS toy-better (chapter 91): {called}, on record: undecided; if it is to")
    elsewhere = specification(predicted="inconclusive", scale="ci")
    assert news({"toy-better": (CHAPTERS[0], found)}, {"toy-better": elsewhere}) == []


def test_a_verdict_less_sharp_than_expected_is_a_change() -> None:
    open_ended = {"larger": [2.0, 0.0], "smaller": [1.0, 1.0]}
    assert problems_of(measured(open_ended)) == ["toy-better: undecided, on record: seen"]
    assert news({"toy-better": (CHAPTERS[0], measured(open_ended))}, {"toy-better": specification()}) == []


@pytest.mark.parametrize("place", [{"corpora": ("digits",)}, {"scale": "ci"}])
def test_a_claim_gates_only_where_the_registry_says_that_it_must_hold(place: dict[str, Any]) -> None:
    assert problems_of(measured(published.swapped(BETTER)), specs=[specification(**place)]) == []


def test_numbers_without_a_verdict_are_a_problem_only_where_the_claim_must_hold() -> None:
    arrays = {"larger": [2.0, None], "smaller": [1.0, 1.0]}
    found = Measurement(published.judge(specification(), arrays), "smoke", "yahoo-like", arrays)
    (problem,) = problems_of(found)
    assert problem.startswith(
        "toy-better: no verdict (toy-better, larger: expected finite numbers, but larger[1] is nan"
    )
    assert problem.endswith("), on record: seen")
    assert problems_of(found, specs=[specification(scale="ci")]) == []


def test_a_claim_that_is_missing_or_extra() -> None:
    assert problems_of() == ["toy-better: chapter 91 should measure this claim but did not"]
    extra = problems_of(measured(), measured(id="toy-other"))
    assert extra == ["toy-other: measured in chapter 91 but not in the registry for it; add it there"]


def test_claims_of_chapters_that_are_not_in_the_book_are_not_expected() -> None:
    other = specification(id="toy-later", chapter="92")
    assert problems_of(measured(), specs=[specification(), other]) == []


def test_a_claim_of_another_chapter() -> None:
    elsewhere = {"toy-better": (Chapter(Path("92_beta.ipynb")), measured())}
    chapters = [*CHAPTERS, Chapter(Path("92_beta.ipynb"))]
    assert claim_problems(chapters, elsewhere, {"toy-better": specification()}) == [
        "toy-better: measured in chapter 92 but not in the registry for it; add it there"
    ]


@pytest.mark.parametrize("edit", [{"verdict": "inconclusive"}, {"effect": 5.0}])
def test_a_verdict_or_effect_that_was_edited(edit: dict[str, Any]) -> None:
    problems = problems_of(measured(**edit), specs=[specification(scale="ci")])
    assert len(problems) == 1
    assert "but its stored numbers say supported with 1.025" in problems[0]


def test_a_test_that_always_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured()
    monkeypatch.setattr(published, "judge", lambda spec, arrays: found.result)
    assert problems_of(found) == [
        "toy-better: still supported when its two methods are swapped; its test decides nothing"
    ]


def test_an_ordering_without_a_negative_control() -> None:
    problems = problems_of(measured(), specs=[specification(control=None)])
    assert problems == [
        "toy-better: an ordering needs a negative control in the registry, where its effect must vanish"
    ]


@pytest.fixture
def claimed(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """An executed book with a registry of its own: two claims that gate at smoke, three that do not."""
    toy.chapter("91_alpha", *(claim_cell(name) for name in ("toy-one", "toy-two", "toy-far")))
    toy.chapter("92_beta", *(claim_cell(name) for name in ("toy-other", "toy-last")))
    toy.contents("91_alpha", "92_beta", "scoreboard", "status")
    write_registry(toy)
    monkeypatch.setattr(claim_registry, "registry", lambda: read_registry(toy))
    result = toy.cli("run", "--scale", "smoke")
    assert result.returncode == 0, result.stdout
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
    entries = [
        {
            "id": f"toy-{name}",
            "source": "Toy 2026, Table 1",
            "statement": "It is one.",
            "kind": "number",
            "chapter": chapter,
            "corpora": ["yahoo-like"],
            "scale": scale,
            "predicted": verdicts.get(name, "supported"),
            "reason": "by construction",
            "margin": 0.1,
            "value": 1.0,
        }
        for name, chapter, scale in (
            ("one", "91", "smoke"),
            ("two", "91", "smoke"),
            ("far", "91", "ci"),
            ("other", "92", "ci"),
            ("last", "92", "ci"),
        )
    ]
    folder = toy.root / "cfltr_book" / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    for number in ("91", "92"):
        here = [entry for entry in entries if entry["chapter"] == number]
        plain = [{key: value for key, value in entry.items() if key != "chapter"} for entry in here]
        (folder / f"{number}.yml").write_text(yaml.safe_dump(plain))


def read_registry(toy: Toy) -> dict[str, claim_registry.Claim]:
    entries = [
        {**entry, "chapter": path.stem}
        for path in sorted((toy.root / "cfltr_book" / "claims").glob("*.yml"))
        for entry in yaml.safe_load(path.read_text())
    ]
    verdicts = Book(toy.root).verdicts
    return claim_registry.parse_registry(entries, parse_accepted(verdicts.read_text()) if verdicts.is_file() else [])


def test_a_flipped_expectation_shows_at_once(claimed: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(claimed.root), "verify"]) == 0
    assert "5 claims in 2 chapters checked" in capsys.readouterr().out
    before = claimed.artefacts()
    write_registry(claimed, two="contradicted", far="contradicted")
    assert main(["--root", str(claimed.root), "verify"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "toy-two: seen, on record: opposite seen"
    assert len(said) == 2, "toy-far need not hold here, and no chapter is stale"
    assert "kept  91_alpha" in claimed.cli("run", "--scale", "smoke").stdout
    assert claimed.artefacts() == before


def test_news_is_told_and_fails_nothing(claimed: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    write_registry(claimed, two="inconclusive", far="inconclusive")
    assert main(["--root", str(claimed.root), "verify"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("NEWS toy-two (chapter 91): seen, on record: undecided; if it is to stay")
    assert said[1].startswith("verify: 5 claims in 2 chapters checked")
    report = verdict_report(Book(claimed.root))
    assert report[0] == "every verdict that must hold at this scale and corpus is the one on record, or sharper"
    assert report[1] == f"  {said[0]}"
    assert report[2:] == [
        "1 others differ where they need not hold; 'python -m cfltr_book' lists every verdict",
        "  chapter 91: 1 seen",
    ]


def test_changed_verdicts_that_gate_stand_first_and_the_others_in_one_block(claimed: Toy) -> None:
    book = Book(claimed.root)
    assert verdict_report(book) == ["every verdict that must hold at this scale and corpus is the one on record"]
    write_registry(claimed, two="contradicted", far="contradicted", other="inconclusive", last="contradicted")
    assert verdict_report(book) == [
        "CHANGED where it must hold, 'make verify' fails: 1 of 5 verdicts",
        "  toy-two (chapter 91): seen, on record: opposite seen",
        "3 others differ where they need not hold; 'python -m cfltr_book' lists every verdict",
        "  chapter 91: 1 seen",
        "  chapter 92: 2 seen",
    ]


def test_a_run_on_a_collection_that_cannot_be_seen_any_more(
    executed: Toy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = executed.root / "_build" / "run" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "corpus": "letor:mq2008"}))
    monkeypatch.delenv("CFLTR_DATA", raising=False)
    assert main(["--root", str(executed.root), "verify"]) == 2
    said = capsys.readouterr().err
    assert "the environment variable CFLTR_DATA is not set" in said
    assert "the present run has scale smoke, corpus letor:mq2008" in said


def test_no_run_a_partial_run_and_a_stale_run(executed: Toy) -> None:
    assert executed.cli("verify").returncode == 0
    executed.chapter("91_alpha", "x = 'changed'")
    stale = executed.cli("verify")
    assert stale.returncode == 2
    assert "91_alpha: the run is stale" in stale.stdout
    assert "92_beta" not in stale.stdout

    assert executed.cli("verify", "--chapter", "91").returncode == 2
    other = executed.cli("verify", "--chapter", "92")
    assert other.returncode == 0, "one chapter is checked whatever the others are"
    assert "0 claims in 1 chapters checked" in other.stdout

    executed.chapter("93_gamma", "x = 1")
    executed.contents("92_beta", "93_gamma")
    partial = executed.cli("verify")
    assert partial.returncode == 2
    assert "93_gamma: not executed" in partial.stdout

    shutil.rmtree(executed.root / "_build")
    none = executed.cli("verify")
    assert none.returncode == 2
    assert "no run exists; start one with 'make book'" in none.stdout


def test_what_is_accepted_is_on_record_and_what_turned_is_told(
    claimed: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    book = Book(claimed.root)

    def told(command: str, code: int) -> list[str]:
        assert main(["--root", str(claimed.root), command]) == code
        return capsys.readouterr().out.splitlines()

    write_registry(claimed, one="contradicted", two="inconclusive", far="contradicted")
    told("verify", 1)
    assert told("accept", 0) == [
        "reference: 0 figures in tests/reference/smoke",
        "toy-one (chapter 91): contradicted → supported",
        "toy-two (chapter 91): inconclusive → supported",
        "accept: 2 verdicts turned in cfltr_book/claims/verdicts.csv",
    ]
    before = book.verdicts.read_text()
    found = {row.id: row for row in parse_accepted(before)}
    assert list(found) == ["toy-one", "toy-two"], "the others need not hold at this scale"
    result = json.loads((claimed.done("91_alpha") / "claims" / "toy-one.json").read_text())
    numbers = [float(f"{number:.3g}") for number in (result["effect"], *result["interval"])]
    assert [found["toy-one"].effect, found["toy-one"].low, found["toy-one"].high] == numbers
    # What was predicted stays; the run is fresh, and agrees now; accepted once more nothing turns.
    assert read_registry(claimed)["toy-one"].predicted == "contradicted"
    told("verify", 0)
    assert told("accept", 0)[-1].startswith("accept: 0 verdicts turned")
    assert book.verdicts.read_text() == before


@pytest.mark.parametrize("parameters", [{"seed": 1}, {"corpus": "letor:mine"}])
def test_only_what_others_can_run_is_accepted(
    claimed: Toy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any]
) -> None:
    monkeypatch.setattr(verify, "fresh_run", lambda book, otherwise: Parameters("smoke", **parameters))
    assert main(["--root", str(claimed.root), "accept"]) == 2
    assert "accepted are runs of the default seed, with a corpus of the book" in capsys.readouterr().err
    assert not Book(claimed.root).verdicts.exists()


def test_the_numbers_of_another_corpus_are_no_reference(claimed: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "fresh_run", lambda book, otherwise: Parameters("smoke", "digits"))
    assert main(["--root", str(claimed.root), "accept"]) == 0
    assert Book(claimed.root).verdicts.is_file()
    assert not (claimed.root / "tests").exists()
