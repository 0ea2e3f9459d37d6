"""The table of claims: what each verdict is called, and what its summary counts."""

import re
from dataclasses import replace
from typing import Any

import oracles
import pytest
from bs4 import BeautifulSoup
from claim_files import entry, put

from cfltr_book.reporting import claim_registry, claims, wording
from cfltr_book.reporting.claim_registry import Claim
from cfltr_book.reporting.claims import verdict_of
from cfltr_book.reporting.evidence import Evidence

NUMBERS = {"supported": [2.0, 2.01, 1.99], "contradicted": [5.0, 5.01, 4.99], "inconclusive": [2.0, 9.0, -5.0]}
ARRAYS = {
    "identity": {"left": [1.0, 2.0], "right": [1.0, 2.25]},
    "inequality": {"lower": [1.5], "upper": [1.0]},
    "ordering": {"larger": [1.0, 1.01, 0.99], "smaller": [2.0, 2.0, 2.0]},
    "equivalence": {"left": [2.0, 2.01, 1.99], "right": [1.0, 1.0, 1.0]},
    "number": {"values": [5.0, 5.01, 4.99]},
    "limit": {"x": [1.0, 2.0, 4.0], "errors": [[1.0, 0.25, 0.0625], [1.0, 0.25, 0.0626]]},
}


def of(id: str, kind: str = "number", **changes: Any) -> dict[str, Any]:
    exact = kind in claim_registry.EXACT
    about = {"source": "Table <1>", "statement": "A & B hold.", "tolerance": 1e-9 if exact else None}
    return entry(id, kind, **{**about, **({} if exact else {"margin": 0.5, "value": 2.0}), **changes})


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Claim]:
    return put(
        monkeypatch,
        *(of(f"{kind}-fails", kind, predicted="contradicted", control="control-one") for kind in ARRAYS),
        of("holds", control="control-one"),
        of("control-one"),
        of("open", predicted="inconclusive"),
        of("of-problems", each="random problem"),
        of("always", scale="smoke", corpora=["digits"]),
        of("foreseen", on_record="supported", predicted="inconclusive"),
        of("unforeseen", on_record="supported", predicted="none"),
    )


def measured(known: dict[str, Claim], id: str, verdict: str = "supported") -> claims.ClaimResult:
    return verdict_of(known[id], {"values": NUMBERS[verdict]})


ELSEWHERE = "here, which decides nothing: it is put to the test from scale ci on, with yahoo-like or digits"


@pytest.mark.parametrize(
    ("id", "verdict", "place", "words"),
    [
        ("holds", "supported", "ci digits", "seen"),
        ("holds", "contradicted", "ci digits", "opposite seen (on record: seen)"),
        ("open", "inconclusive", "ci digits", "undecided"),
        ("open", "supported", "ci digits", "seen (on record: undecided)"),
        ("open", "supported", "smoke digits", f"seen {ELSEWHERE} (on record: undecided)"),
        # The name of a profile begins like that of its corpus; the words say that it is another.
        ("holds", "contradicted", "ci yahoo-like:mixed", f"opposite seen {ELSEWHERE} (on record: seen)"),
        ("control-one", "supported", "ci digits", "held"),
        ("control-one", "contradicted", "ci digits", "did not hold (on record: held)"),
        ("foreseen", "supported", "ci digits", "seen (predicted: undecided)"),
        ("foreseen", "inconclusive", "ci digits", "undecided (on record: seen)"),
        ("unforeseen", "supported", "ci digits", "seen"),
        # From the smallest scale on is always.
        (
            *("always", "contradicted", "smoke letor:mine"),
            "opposite seen here, which decides nothing: it is put to the test with digits (on record: seen)",
        ),
    ],
)
def test_verdicts_in_words(known: dict[str, Claim], id: str, verdict: str, place: str, words: str) -> None:
    result = measured(known, id, verdict)
    assert result.verdict == verdict
    scale, corpus = place.split()
    assert Evidence([result], corpus, scale).words(result) == words


def test_a_claim_that_fails_is_false_or_its_opposite_is_seen(known: dict[str, Claim]) -> None:
    for kind, arrays in ARRAYS.items():
        result = verdict_of(known[f"{kind}-fails"], arrays)
        wanted = "false" if kind in ("identity", "inequality", "limit") else "opposite seen"
        assert Evidence([result], "digits", "ci").words(result) == wanted
    none = claims.judge(known["holds"], {"values": [float("nan")]})
    assert "values[0] is nan; no verdict here, which decides nothing" in str(Evidence([none], "digits", "smoke"))
    for results in ([], ["supported"]):
        with pytest.raises(ValueError, match=r"^results"):
            Evidence(results, "digits", "ci")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pairs", "summary", "differs"),
    [
        ([("holds", "supported")] * 5 + [("number-fails", "contradicted")], "6 claims: as on record", False),
        ([("holds", "supported"), ("control-one", "supported")], "1 claim, 1 control: as on record", False),
        ([("control-one", "supported"), ("control-one", "contradicted")], "2 controls: 1 not as on record", True),
        # What is sharper than the record is news, and leaves the table shut.
        ([("open", "supported")], "1 claim: 1 not as on record", False),
    ],
)
def test_the_summary_counts(known: dict[str, Claim], pairs: list[tuple[str, str]], summary: str, differs: bool) -> None:
    results = [measured(known, *pair) for pair in pairs]
    for scale, is_open in (("ci", differs), ("smoke", False)):
        table = Evidence(results, "digits", scale)
        assert table.summary == f"Evidence: {summary}"
        assert ('<details class="evidence" open>' in table.html()) == is_open


def rows_of(evidence: Evidence) -> list[list[str]]:
    rows = BeautifulSoup(evidence.html(), "html.parser").select("tr")
    return [[cell.get_text() for cell in row.select("td, th")] for row in rows]


def test_the_table(known: dict[str, Claim]) -> None:
    shown = [measured(known, "holds"), verdict_of(known["identity-fails"], ARRAYS["identity"])]
    head, first, second = rows_of(Evidence(shown, "digits", "ci"))
    assert "A &amp; B hold. (holds; Table &lt;1&gt;)" in Evidence(shown, "digits", "ci").html()
    assert head == ["claim", "measured", "verdict", "control"]
    mean, low, high = oracles.mean_interval(NUMBERS["supported"], shown[0].level or 0)
    interval = f"mean {mean:.3g}, {shown[0].level:.1%} interval [{low:.3g}, {high:.3g}]"
    assert first == [
        "A & B hold. (holds; Table <1>)",
        f"{interval} over 3 seeds; must lie within 2 ± 0.5",
        "seen",
        "control-one (elsewhere in this chapter)",
    ]
    assert second[1] == "largest |left − right| 0.25 in 2 cases; must not exceed 1e-09"
    of_problems = rows_of(Evidence([measured(known, "of-problems")], "digits", "ci"))
    assert of_problems[1][1] == first[1].replace("over 3 seeds", "over 3 random problems")
    for verdict, words in (("contradicted", "control-one did not hold"), ("supported", "control-one held")):
        both = [measured(known, "holds"), measured(known, "control-one", verdict)]
        assert rows_of(Evidence(both, "digits", "ci"))[1][3] == words


def test_a_notebook_is_shown_the_table_and_others_the_text(known: dict[str, Claim]) -> None:
    evidence = Evidence([measured(known, "holds")], "digits", "ci")
    bundle, about = evidence._repr_mimebundle_()
    assert bundle == {"text/html": evidence.html(), "text/plain": str(evidence)}
    assert about == {"cfltr": {"evidence": ["holds"]}}
    summary, line = str(evidence).splitlines()
    assert summary == evidence.summary
    assert re.match(r"- A & B hold\. \(holds; Table <1>\); mean 2, .*; seen; control-one", line)


def test_ids_become_links_to_a_scoreboard_and_anchors(known: dict[str, Claim], monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = replace(known["holds"], statement="This (holds; always) is so.")
    monkeypatch.setattr(claim_registry, "registry", lambda: {**known, "holds": spoken})
    evidence = Evidence([measured(known, "holds"), measured(known, "control-one")], "digits", "ci")
    plain = evidence.html()
    # A statement may speak of its own id; the link is the one before the source.
    assert "(holds; always)" in plain
    linked = evidence.html(scoreboard="a&b.html")
    one, other = (f'(<a href="a&amp;b.html#claim-{id}">{id}</a>; ' for id in ("holds", "control-one"))
    assert "<a " not in plain
    assert linked == plain.replace("(holds; T", f"{one}T").replace("(control-one; ", other)
    assert linked.count("<a href=") == 2
    anchored = evidence.html(anchors=["control-one", "elsewhere"])
    first, second = (row.start() for row in re.finditer(r"<tr><td>", plain))
    assert anchored == plain[:second] + '<tr id="claim-control-one"><td>' + plain[second + len("<tr><td>") :]
    assert first < second


@pytest.mark.parametrize(
    ("larger", "changes", "words"),
    [
        ([2.2, 2.21, 2.19], {}, "smaller than asked"),
        ([2.0, 2.01, 1.99], {}, "not seen"),
        ([1.0, 1.01, 0.99], {}, "opposite seen"),
        ([2.0, 2.0, 2.0, 2.0, 2.0], {}, "not seen"),  # what touches 0 has not left it
        ([2.2, 2.21, 2.19], {"nature": "mathematical"}, "false"),
        ([2.2, 2.21, 2.19], {"id": "control-two"}, "did not hold"),
    ],
)
def test_a_contradicted_ordering_is_called_by_the_sign_of_its_interval(
    monkeypatch: pytest.MonkeyPatch, larger: list[float], changes: dict[str, Any], words: str
) -> None:
    one = of("one", "ordering", on_record="contradicted", predicted="none", control="control-one") | changes
    spec = put(monkeypatch, one, of("control-one"))[one["id"]]
    result = verdict_of(spec, {"larger": larger, "smaller": [2.0] * len(larger)})
    assert Evidence([result], "digits", "ci").words(result) == words
    if not changes:
        assert wording.shortfall(result.interval) == words
        assert wording.outcome(spec, "contradicted") == "contradicted", "it can be all three"
        assert wording.outcome(replace(spec, margin=0.0), "contradicted") == "opposite seen"


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        *((kind, "must not exceed 1e-09") for kind in ("identity", "inequality")),
        *((kind, "must lie within 2 ± 0.5") for kind in ("number", "limit")),
        *(("ordering", "must exceed 0.5"), ("equivalence", "must lie within ±0.5")),
    ],
)
def test_what_the_effect_must_meet(known: dict[str, Claim], kind: str, condition: str) -> None:
    assert wording.required(known[f"{kind}-fails"]) == condition


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("J20 §4; O20 Eq. 2", "Jagerman and de Rijke (2020) §4; Oosterhuis and de Rijke (2020) Eq. 2"),
        ("N, three; B", "the notes, three; this book"),
        ("B, after A18, Table N and NB", "this book, after Agarwal et al. (2018), Table N and NB"),
        ("A180, BA18", "A180, BA18"),
    ],
)
def test_a_source_is_spelt_out(source: str, words: str) -> None:
    assert wording.spelt_out(source) == words


def test_an_id_names_its_source() -> None:
    sources = {"A18-x": "A18", "J20-x-y": "J20", "O20-x": "O20", "N-x": "N", "B-x": "B", "else": "B", "A18": "A18"}
    for id, source in {**sources, "control-A18": "control"}.items():
        assert wording.source_of(id) == source
        assert wording.is_published(id) is (source not in ("B", "control"))
        assert wording.is_control(id) is (source == "control")
