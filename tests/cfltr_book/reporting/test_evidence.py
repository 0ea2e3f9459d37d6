"""The table of claims: what each verdict is called, and what its summary counts."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claim_files import entry, put
from kept_text import same_as_kept

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


# In the order in which they are kept: a verdict of a claim each, and of every kind one that fails.
PAIRS = [*(("holds", verdict) for verdict in NUMBERS), ("open", "inconclusive"), ("open", "supported")]
PAIRS += [(name, verdict) for name in ("control-one", "foreseen") for verdict in NUMBERS]
PAIRS += [("unforeseen", "supported"), ("always", "contradicted"), ("of-problems", "supported")]
# The name of a profile begins like that of its corpus, and is another.
PLACES = ("ci digits", "smoke digits", "ci yahoo-like:mixed", "smoke letor:mine")


@pytest.mark.parametrize("place", PLACES)
def test_the_tables(known: dict[str, Claim], place: str) -> None:
    """Each result by itself, with its words; then all, with and without what is not as on record."""
    scale, corpus = place.split()
    results = [measured(known, *pair) for pair in PAIRS]
    results += [verdict_of(known[f"{kind}-fails"], arrays) for kind, arrays in ARRAYS.items()]
    found = [Evidence(some, corpus, scale) for some in ([[one] for one in results] + [results, results[:1]])]
    folds = ["open" if '<details class="evidence" open>' in table.html() else "shut" for table in found]
    text = "".join(f"{fold} {table}\n" for fold, table in zip(folds, found, strict=True)) + found[-2].html() + "\n"
    assert f"over 3 seeds; {wording.required(known['holds'])}; seen" in text
    same_as_kept(Path(__file__).with_name(f"evidence_{place.replace(' ', '_').replace(':', '_')}.txt"), text)


def test_numbers_without_a_verdict_and_no_results(known: dict[str, Claim]) -> None:
    none = claims.judge(known["holds"], {"values": [float("nan")]})
    assert "values[0] is nan; no verdict here, which decides nothing" in str(Evidence([none], "digits", "smoke"))
    for results in ([], ["supported"]):
        with pytest.raises(ValueError, match=r"^results"):
            Evidence(results, "digits", "ci")  # type: ignore[arg-type]


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
