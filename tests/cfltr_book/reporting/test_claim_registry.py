"""The files of claims: what an entry must say, what is on record and was predicted, and the list of all of them."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from claim_files import entry, put, registry_of, spec

import cfltr_book
from cfltr_book import claim
from cfltr_book.__main__ import main
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.accepted import Accepted, accepted_text, accepted_verdicts, parse_accepted
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
from cfltr_book.reporting.claims import NO_VERDICT

PACKAGE = Path(cfltr_book.__file__).parent
PREDICTIONS = Path(__file__).parents[2] / "reference" / "predictions.csv"
HEAD = "id,corpus,scale,verdict,effect,low,high\n"
GONE = {"replaced_by": "zero", "measured": "contradicted", "why": "it asked too little"}


def one(**changes: Any) -> Claim:
    return registry_of([entry("one", **changes)])["one"]


def test_an_entry_is_read_and_what_it_leaves_out_follows_from_its_kind() -> None:
    text = "- id: one\n  margin: .1\n- {id: two, corpora: [digits]}\n"
    assert entries_of(text) == yaml.safe_load(text) != []
    assert entries_of("# nothing yet\n") == []
    assert parse_registry([]) == {}
    found = parse_registry([entry("zero"), *(entry(kind, kind, control="zero", margin=0.2) for kind in ARRAYS)])
    assert list(found) == ["zero", *ARRAYS]
    natures = dict.fromkeys(ARRAYS, "empirical") | dict.fromkeys(("identity", "inequality", "limit"), "mathematical")
    assert {kind: found[kind].nature for kind in ARRAYS} == natures
    assert one(kind="limit", nature="empirical").nature == "empirical"
    limit = found["limit"]
    assert (limit.corpora, limit.margin, limit.control) == (("yahoo-like", "digits"), 0.2, "zero")
    ordering = parse_registry([entry("zero"), entry("one", "ordering", control="zero", margin=None)])["one"]
    assert ordering.margin == 0.0, "any difference"


GONE_ENTRY = {"withdrawn": GONE, "kind": "ordering"}


def test_where_a_claim_gates() -> None:
    found = spec(corpora=("digits", "letor"), scale="ci")
    for corpus in ("yahoo-like", "digits", "letor:mq2008", "letor-like"):
        expected = corpus in ("digits", "letor:mq2008")
        assert [found.gates(scale, corpus) for scale in ("smoke", "ci", "paper")] == [False, expected, expected]
    assert found.tested_where == "it is put to the test from scale ci on, with digits or letor"
    assert spec(scale="smoke").gates("smoke", "yahoo-like")
    assert spec(scale="smoke").tested_where == "it is put to the test with yahoo-like"


def test_what_is_on_record_is_accepted_or_predicted() -> None:
    """What is accepted at the largest scale up to this one; elsewhere what is expected on the first corpus."""
    predicted = one(predicted={"yahoo-like": "supported", "digits": "inconclusive"})
    assert [predicted.recorded("ci", corpus) for corpus in ("digits", "letor:x")] == ["inconclusive", "supported"]
    assert [predicted.prediction(corpus) for corpus in ("digits", "letor:x")] == ["inconclusive", "supported"]
    assert one(predicted="none").recorded("ci", "digits") == "inconclusive"
    assert one(predicted="none").prediction("digits") == NO_PREDICTION
    rows = [
        Accepted("one", "yahoo-like", "smoke", "inconclusive"),
        Accepted("one", "yahoo-like", "paper", "supported"),
        Accepted("one", "letor", "ci", "contradicted"),
        Accepted("one", "letor", "paper", "supported"),
    ]
    entries = [entry("one", scale="smoke", corpora=["yahoo-like", "letor"])]
    kept = parse_registry(entries, rows)["one"]
    scales = ("smoke", "ci", "paper")
    assert [kept.recorded(scale, "yahoo-like") for scale in scales] == ["inconclusive", "inconclusive", "supported"]
    assert [kept.recorded(scale, "letor:mine") for scale in scales] == ["contradicted", "contradicted", "supported"]
    assert kept.recorded("ci", "digits") == "inconclusive"
    assert parse_registry(entries, rows[2:])["one"].recorded("ci", "yahoo-like") == "supported"


@pytest.mark.parametrize("expected", VERDICTS)
@pytest.mark.parametrize("verdict", [*VERDICTS, NO_VERDICT])
def test_only_a_verdict_sharper_than_inconclusive_may_differ(expected: str, verdict: str) -> None:
    found = one(on_record={"yahoo-like": "supported", "digits": expected}, predicted="none")
    sharper = (expected, verdict) in {("inconclusive", "supported"), ("inconclusive", "contradicted")}
    assert found.is_news(verdict, "ci", "digits") == sharper
    assert found.meets(verdict, "ci", "digits") == (sharper or verdict == expected)
    assert not found.is_news("contradicted", "ci", "yahoo-like")


def test_accepted_verdicts_are_read_as_they_were_written() -> None:
    rows = [
        Accepted("one", "digits", "ci", "supported", 0.125, -math.inf, math.inf),
        Accepted("two", "yahoo-like:mixed", "paper", "contradicted"),
        Accepted("three", "letor", "smoke", "supported", 0.0),
    ]
    text = accepted_text(rows)
    assert text == HEAD + (
        "one,digits,ci,supported,0.125,-inf,inf\ntwo,yahoo-like:mixed,paper,contradicted,,,\n"
        "three,letor,smoke,supported,0,,\n"
    )
    assert parse_accepted(text) == rows
    assert accepted_text([Accepted("one", "digits", "ci", "supported", 2 / 3)]).endswith(",0.667,,\n")


def test_a_withdrawn_claim_is_listed_apart_and_measured_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_registry([entry("zero"), entry("old", **GONE_ENTRY), entry("two")])
    monkeypatch.setattr(claim_registry, "_file", lambda: found)
    for function in (registry, withdrawn):
        monkeypatch.setattr(claim_registry, function.__name__, function.__wrapped__)
    assert list(claim_registry.registry()) == ["zero", "two"]
    assert claim_registry.withdrawn() == {"old": found["old"]}
    assert found["old"].withdrawn == claim_registry.Withdrawal("zero", "contradicted", "it asked too little")
    assert found["old"].recorded("ci", "digits") == "contradicted"
    # It has no share in the false alarms of its chapter.
    assert level_of(found["zero"]) == 1 - 0.05 / 2
    with pytest.raises(ValueError, match="id is 'old': this claim was withdrawn and is not measured any more"):
        claim("old", scale="ci", corpus="digits", larger=[1.0], smaller=[0.0])


def test_the_books_own_files() -> None:
    """Withdrawn claims stand at the end of their file; accepted verdicts, written anew, are the same file."""
    files = sorted((PACKAGE / "claims").glob("*.yml"))
    entries = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    every = (*registry().values(), *withdrawn().values())
    assert {found.id: found.chapter for found in every} == {
        entry["id"]: chapter for chapter, some in entries.items() for entry in some
    }
    for some in entries.values():
        assert some == sorted(some, key=lambda entry: "withdrawn" in entry)
    rows = accepted_verdicts()
    assert accepted_text(rows) == (PACKAGE / "claims" / "verdicts.csv").read_text(encoding="utf-8")
    assert [row for found in registry().values() for row in found.accepted] == rows
    at_ci = [found for found in registry().values() if found.gates("ci", "yahoo-like")]
    missing = [found.id for found in at_ci if not any(row.corpus == "yahoo-like" for row in found.accepted)]
    assert not missing, f"no verdict of {missing} was accepted: 'make chapter CHAPTER=…', look, 'make accept CHAPTER=…'"


def test_no_prediction_was_edited() -> None:
    """Each is what it was when the claim was committed; a new claim brings its line, and none ever leaves."""

    def line(found: Claim) -> list[str]:
        by_corpus = "; ".join(f"{corpus}: {found.prediction(corpus)}" for corpus in found.corpora)
        return [found.id, found.predicted if isinstance(found.predicted, str) else by_corpus]

    with PREDICTIONS.open(encoding="utf-8", newline="") as file:
        head, *committed = csv.reader(file)
    assert head == ["id", "predicted"]
    present = map(line, (*registry().values(), *withdrawn().values()))
    assert sorted(present) == sorted(committed), f"the lines of {PREDICTIONS.name} are written once, with their claims"


def test_the_history_of_the_books_own_claims() -> None:
    """Every id in the real file names its source, and what was written after a measurement was not predicted by it."""
    for found in (*registry().values(), *withdrawn().values()):
        assert found.id.startswith(("A18-", "J20-", "O20-", "N-", "B-", "control-")), found.id
    for old in withdrawn().values():
        assert old.withdrawn is not None
        assert old.withdrawn.why
        assert old.withdrawn.replaced_by in {None, *registry(), *withdrawn()}
    replacing = {old.withdrawn.replaced_by for old in withdrawn().values() if old.withdrawn}
    for found in registry().values():
        # Nothing can be predicted of what replaced a measured statement or was set after a trial.
        after = found.id in replacing or "set after a trial" in found.reason
        assert after or found.predicted != NO_PREDICTION, found.id
        assert "set after a trial" not in found.reason or found.predicted == NO_PREDICTION, found.id


def test_main_prints_every_claim_with_its_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(monkeypatch, entry("same", "identity"), entry("two", chapter="02", predicted="inconclusive"))
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "_build" / "run"

    def printed(*arguments: str, code: int = 0) -> tuple[dict[str, str], str]:
        """What is said of each claim, and on the error stream."""
        assert main([*arguments]) == code
        said = capsys.readouterr()
        return {line.split()[1]: " ".join(line.split()[2:]) for line in said.out.splitlines()[::2]}, said.err

    unrun = {"same": "on record: true measured: not run", "two": "on record: undecided measured: not run"}
    found, warned = printed()
    assert found == unrun
    assert warned.startswith(f"no claim records below {run}: run 'make book' in the book")
    assert "no claim records below" in printed(str(tmp_path), code=1)[1]
    monkeypatch.setenv("CFLTR_RUN_DIR", str(run / "chapters" / "01_one"))
    claim("same", scale="ci", corpus="yahoo-like", left=[1.0], right=[2.0])
    monkeypatch.setenv("CFLTR_RUN_DIR", str(run / ".partial" / "01_two"))
    claim("two", scale="ci", corpus="digits", values=[0.0, 0.01, -0.01])
    false = unrun | {"same": "on record: true measured: false (changed)"}
    assert printed() == printed(str(run)) == (false, "")
    sharper = {"two": "on record: undecided measured: seen (sharper than on record)"}
    assert printed(str(run / ".partial")) == (unrun | sharper, "")
    (run / "chapters" / "01_one" / "claims" / "same.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"same\.json: no claim record of this version \('id'\)"):
        main([])


def test_only_the_claims_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*words: str) -> list[str]:
        assert main(["--only", *words]) == 0
        return [line.split()[1] for line in capsys.readouterr().out.splitlines()[::2]]

    of_five = [one.id for one in registry().values() if one.chapter == "05"]
    assert listed("5") == listed("05") == of_five != []
    says = [one.id for one in registry().values() if "propdcg" in f"{one.id} {one.statement} {one.source}".lower()]
    assert listed("PropDCG") == says
    assert listed("5", "PropDCG") == [name for name in says if name in of_five] != of_five
    assert main(["--only", "5", "no such words"]) == 1
    assert capsys.readouterr().err == "--only 5 no such words: no claim has all of these words\n"
