"""What was predicted stands beside what is expected; a statement that was replaced stays in the file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from claim_files import registry_of

from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.claim_registry import (
    ARRAYS,
    NO_PREDICTION,
    VERDICTS,
    Claim,
    entries_of,
    level_of,
    parse_registry,
    registry,
    withdrawn,
)
from cfltr_book.reporting.claims import claim
from cfltr_book.reporting.evidence import Evidence

PREDICTIONS = Path(__file__).parents[2] / "reference" / "predictions.csv"
GONE = {"replaced_by": "one", "measured": "contradicted", "why": "it asked too little"}


def entry(id: str, kind: str = "number", **changes: Any) -> dict[str, Any]:
    fields = {
        "id": id,
        "source": "somewhere",
        "statement": "Something holds.",
        "kind": kind,
        "chapter": "01",
        "corpora": ["yahoo-like", "digits"],
        "scale": "ci",
        "predicted": "supported",
        "reason": "a test",
        "margin": 0.1,
        "tolerance": 1e-12,
        "value": 0.0,
    }
    fields |= changes
    return {name: value for name, value in fields.items() if value is not None}


def gone(id: str, kind: str = "ordering", **changes: Any) -> dict[str, Any]:
    return entry(id, kind, **{"withdrawn": GONE, **changes})


def one(**changes: Any) -> Claim:
    return registry_of([entry("one", **changes)])["one"]


def test_the_entries_of_a_file_are_those_of_any_yaml_parser() -> None:
    text = "- id: one\n  margin: .1\n- {id: two, corpora: [digits]}\n"
    assert (
        entries_of(text) == yaml.safe_load(text) == [{"id": "one", "margin": 0.1}, {"id": "two", "corpora": ["digits"]}]
    )
    assert entries_of("# nothing yet\n") == []


def test_what_is_on_record_is_accepted_or_predicted() -> None:
    per_corpus = {"yahoo-like": "supported", "digits": "inconclusive"}
    assert one(predicted=per_corpus).recorded("ci", "digits") == "inconclusive"
    assert one(predicted="none").recorded("ci", "digits") == "inconclusive"
    kept = one(on_record=per_corpus, predicted="contradicted")
    assert (kept.prediction("digits"), kept.recorded("ci", "digits")) == ("contradicted", "inconclusive")
    split = one(predicted=per_corpus)
    assert [split.prediction(corpus) for corpus in ("digits", "yahoo-like", "letor:mine")] == [
        "inconclusive",
        "supported",
        "supported",
    ]
    assert one(predicted="none").prediction("digits") == NO_PREDICTION


@pytest.mark.parametrize("expected", VERDICTS)
@pytest.mark.parametrize("verdict", [*VERDICTS, claims.NO_VERDICT])
def test_only_a_verdict_sharper_than_inconclusive_may_differ(expected: str, verdict: str) -> None:
    spec = one(on_record={"yahoo-like": "supported", "digits": expected}, predicted="none")
    sharper = (expected, verdict) in {("inconclusive", "supported"), ("inconclusive", "contradicted")}
    assert spec.is_news(verdict, "ci", "digits") == sharper
    assert spec.meets(verdict, "ci", "digits") == (sharper or verdict == expected)
    assert not spec.is_news("contradicted", "ci", "yahoo-like")


def test_the_nature_follows_from_the_kind_unless_the_file_says_otherwise() -> None:
    found = {kind: parse_registry([entry("zero"), entry("one", kind, control="zero")])["one"] for kind in ARRAYS}
    natures = {kind: spec.nature for kind, spec in found.items()}
    assert natures == {
        **dict.fromkeys(("identity", "inequality", "limit"), "mathematical"),
        **dict.fromkeys(("ordering", "equivalence", "number"), "empirical"),
    }
    assert one(kind="limit", nature="empirical").nature == "empirical"
    assert one(nature="mathematical").nature == "mathematical"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predicted": "maybe"}, "one: predicted is one of .*'none'"),
        ({"predicted": {"digits": "supported"}}, "one: predicted is one of"),
        ({"nature": "physical"}, "one: nature is one of"),
        ({"each": "logs"}, "one: each is 'logs'; name one of what is counted"),
        ({"each": ""}, "one: each is ''"),
        ({"each": 5}, "one: each is 5"),
        ({"withdrawn": GONE, "predicted": None}, "one: .*missing 1 required positional argument: 'predicted'"),
        (
            {"withdrawn": "yes", "predicted": "supported"},
            "one: .*Withdrawal.* must be a mapping",
        ),
        (
            {"withdrawn": {"why": "so"}, "predicted": "supported"},
            "one: .*Withdrawal.*missing 2 required positional arguments: 'replaced_by' and 'measured'",
        ),
        (
            {"withdrawn": {**GONE, "measured": "maybe"}, "predicted": "supported"},
            "one: withdrawn: measured is one of",
        ),
        (
            {"withdrawn": GONE, "predicted": "supported"},
            "one: replaced_by is one, which is no other",
        ),
        (
            {"withdrawn": {**GONE, "replaced_by": "nobody"}, "predicted": "supported"},
            "one: replaced_by is nobody, which is no other claim",
        ),
    ],
)
def test_what_a_registry_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^claims/01\.yml, {message}"):
        parse_registry([entry("zero"), entry("one", **changes)])


def test_a_withdrawn_claim_needs_no_control_and_is_none() -> None:
    found = parse_registry([entry("one"), gone("old")])
    assert found["old"].control is None
    assert found["old"].withdrawn == claim_registry.Withdrawal("one", "contradicted", "it asked too little")
    assert found["old"].recorded("ci", "digits") == "contradicted"
    with pytest.raises(ValueError, match="two: an ordering names its negative control, another claim"):
        parse_registry([entry("one"), gone("old"), entry("two", "ordering", control="old")])
    with pytest.raises(ValueError, match="two: its control old is no claim"):
        parse_registry([entry("one"), gone("old"), entry("two", control="old")])
    with pytest.raises(ValueError, match="old: stands twice"):
        parse_registry([entry("one"), gone("old"), entry("old")])


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Claim]]:
    """A file of two claims that stand and one that does not, in place of the real one."""
    found = parse_registry([entry("one"), gone("old"), entry("two")])
    monkeypatch.setattr(claim_registry, "_file", lambda: found)
    for function in (registry, withdrawn):
        function.cache_clear()
    yield found
    monkeypatch.undo()
    for function in (registry, withdrawn):
        function.cache_clear()


def test_a_withdrawn_claim_is_listed_apart_and_measured_no_more(replaced: dict[str, Claim]) -> None:
    assert list(registry()) == ["one", "two"]
    assert list(withdrawn()) == ["old"]
    # It has no share in the false alarms of its chapter.
    assert level_of(replaced["one"]) == 1 - 0.05 / 2
    with pytest.raises(ValueError, match="id is 'old': this claim was withdrawn and is not measured any more"):
        claim("old", scale="ci", corpus="digits", larger=[1.0], smaller=[0.0])


def test_the_table_of_a_chapter_takes_a_sharper_verdict_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_registry([entry("one", predicted="inconclusive", control="control-two"), entry("control-two")])
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    sharper = claims.verdict_of(found["one"], {"values": [0.5, 0.51, 0.49]})
    failed = claims.verdict_of(found["control-two"], {"values": [0.5, 0.51, 0.49]})
    held = claims.verdict_of(found["control-two"], {"values": [0.0, 0.01, -0.01]})
    table = Evidence([sharper, held], "digits", "ci")
    assert table.words(sharper) == "opposite seen (on record: undecided)"
    assert "not as on record" not in table.summary
    assert table.summary.endswith("1 control: held")
    assert '<details class="evidence"><summary>' in table.html()
    failing = Evidence([sharper, failed], "digits", "ci")
    assert failing.summary.endswith("1 control: did not hold; 1 not as on record")
    assert '<details class="evidence" open>' in failing.html()


def test_no_prediction_was_edited() -> None:
    """Each is what it was when the claim was committed; a new claim brings its line, and none ever leaves."""
    with PREDICTIONS.open(encoding="utf-8", newline="") as file:
        head, *committed = csv.reader(file)
    assert head == ["id", "predicted"]
    present = [
        [
            spec.id,
            spec.predicted
            if isinstance(spec.predicted, str)
            else "; ".join(f"{corpus}: {spec.predicted[corpus]}" for corpus in spec.corpora),
        ]
        for spec in (*registry().values(), *withdrawn().values())
    ]
    assert sorted(present) == sorted(committed), f"the lines of {PREDICTIONS.name} are written once, with their claims"


def test_the_history_of_the_books_own_claims() -> None:
    """Every id in the real file names its source, and what was written after a measurement was not predicted by it."""
    for spec in (*registry().values(), *withdrawn().values()):
        assert spec.id.startswith(("A18-", "J20-", "O20-", "N-", "B-", "control-")), spec.id
    for old in withdrawn().values():
        assert old.withdrawn is not None
        assert old.withdrawn.why
        assert old.withdrawn.replaced_by in {None, *registry(), *withdrawn()}
    replacing = {old.withdrawn.replaced_by for old in withdrawn().values() if old.withdrawn}
    for spec in registry().values():
        # Nothing can be predicted of what replaced a measured statement or was set after a trial.
        after = spec.id in replacing or "set after a trial" in spec.reason
        assert after or spec.predicted != NO_PREDICTION, spec.id
        assert "set after a trial" not in spec.reason or spec.predicted == NO_PREDICTION, spec.id


def test_the_text_of_a_result_can_lead_to_the_scoreboard_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_registry([entry("one", source="A18 §1")])
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    result = claims.verdict_of(found["one"], {"values": [0.0, 0.01, -0.01]})
    plain = result.markdown()
    assert plain.startswith("**Claim `one`: supported.** Something holds. *(Agarwal et al. (2018) §1; mean 0")
    assert plain == result._repr_markdown_()
    linked = '<a href="board.html#claim-one">`one`</a>'
    assert result.markdown(scoreboard="board.html") == plain.replace("`one`", linked)
    anchored = result.markdown(scoreboard="board.html", anchor=True)
    assert anchored == plain.replace("`one`", f'<span id="claim-one"></span>{linked}')


@pytest.mark.parametrize(
    ("first", "corpora", "said"),
    [
        ("smoke", ["digits"], "it is put to the test with digits"),
        ("ci", ["yahoo-like", "digits"], "it is put to the test from scale ci on, with yahoo-like or digits"),
        ("paper", ["yahoo-like"], "it is put to the test from scale paper on, with yahoo-like"),
    ],
)
def test_where_a_claim_is_put_to_the_test_in_words(first: str, corpora: list[str], said: str) -> None:
    spec = one(scale=first, corpora=corpora)
    assert spec.tested_where == said
    tested = {(scale, corpus) for scale in ("smoke", "ci", "paper") for corpus in corpora if spec.gates(scale, corpus)}
    assert {corpus for _, corpus in tested} == set(corpora)
    assert next(scale for scale in ("smoke", "ci", "paper") if (scale, corpora[0]) in tested) == first
