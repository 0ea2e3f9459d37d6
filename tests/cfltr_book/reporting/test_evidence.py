"""The table of claims: what each verdict is called, and what its summary counts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import oracles
import pytest
from claim_files import registry_of

from cfltr_book.reporting import claim_registry, claims
from cfltr_book.reporting.claim_registry import Claim, parse_registry
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


def entry(id: str, kind: str = "number", **changes: Any) -> dict[str, Any]:
    fields = {
        "id": id,
        "source": "Table <1>",
        "statement": "A & B hold.",
        "kind": kind,
        "chapter": "01",
        "corpora": ["yahoo-like", "digits"],
        "scale": "ci",
        "predicted": "supported",
        "reason": "a test",
    }
    fields |= {"margin": 0.5, "value": 2.0} if kind in ("number", "limit", "equivalence", "ordering") else {}
    return {**fields, **({"tolerance": 1e-9} if kind in claim_registry.EXACT else {}), **changes}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Claim]:
    entries = [entry(f"{kind}-fails", kind, predicted="contradicted", control="control-one") for kind in ARRAYS]
    entries += [entry("holds", control="control-one"), entry("control-one"), entry("open", predicted="inconclusive")]
    entries += [entry("of-problems", each="random problem"), entry("always", scale="smoke", corpora=["digits"])]
    found = parse_registry(entries)
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    return found


def measured(known: dict[str, Claim], id: str, verdict: str = "supported") -> claims.ClaimResult:
    return verdict_of(known[id], {"values": NUMBERS[verdict]})


def test_verdicts_in_words(known: dict[str, Claim]) -> None:
    called = dict.fromkeys(ARRAYS, "opposite seen")
    called |= dict.fromkeys(("identity", "inequality", "limit"), "false")
    for kind, arrays in ARRAYS.items():
        result = verdict_of(known[f"{kind}-fails"], arrays)
        assert Evidence([result], "digits", "ci").words(result) == called[kind]
    there = "here, which decides nothing: it is put to the test from scale ci on, with yahoo-like or digits"
    # (claim, verdict, corpus, scale) and what is said of it.
    cases = {
        ("holds", "supported", "digits", "ci"): "seen",
        ("holds", "supported", "digits", "smoke"): "seen",
        ("holds", "contradicted", "digits", "ci"): "opposite seen (on record: seen)",
        ("holds", "inconclusive", "digits", "paper"): "undecided (on record: seen)",
        ("open", "inconclusive", "digits", "ci"): "undecided",
        ("open", "supported", "digits", "ci"): "seen (on record: undecided)",
        ("open", "supported", "digits", "smoke"): f"seen {there} (on record: undecided)",
        ("holds", "inconclusive", "digits", "smoke"): f"undecided {there} (on record: seen)",
        ("holds", "contradicted", "letor:mine", "ci"): f"opposite seen {there} (on record: seen)",
        # The name of a profile begins like that of its corpus; the words say that it is another.
        ("holds", "contradicted", "yahoo-like:conflict", "ci"): f"opposite seen {there} (on record: seen)",
        ("control-one", "supported", "digits", "ci"): "held",
        ("control-one", "contradicted", "digits", "ci"): "did not hold (on record: held)",
        # From the smallest scale on is always.
        ("always", "contradicted", "letor:mine", "smoke"): "opposite seen here, which decides nothing: it is put to "
        "the test with digits (on record: seen)",
    }
    for (id, verdict, corpus, scale), words in cases.items():
        result = measured(known, id, verdict)
        assert result.verdict == verdict
        assert Evidence([result], corpus, scale).words(result) == words
    assert oracles.count_words([verdict for _, verdict, _, _ in cases])["supported"] == 5


@pytest.mark.parametrize(
    ("larger", "changes", "words"),
    [
        ([2.2, 2.21, 2.19], {}, "smaller than asked"),
        ([2.0, 2.01, 1.99], {}, "not seen"),
        ([1.0, 1.01, 0.99], {}, "opposite seen"),
        ([2.2, 2.21, 2.19], {"nature": "mathematical"}, "false"),
        ([2.2, 2.21, 2.19], {"id": "control-two"}, "did not hold"),
    ],
)
def test_an_ordering_fails_in_the_words_of_the_scoreboard(
    monkeypatch: pytest.MonkeyPatch, larger: list[float], changes: dict[str, Any], words: str
) -> None:
    one = entry("one", "ordering", on_record="contradicted", predicted="none", control="control-one") | changes
    found = registry_of([one, entry("control-one")])
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    result = verdict_of(found[one["id"]], {"larger": larger, "smaller": [2.0, 2.0, 2.0]})
    assert Evidence([result], "digits", "ci").words(result) == words


def test_the_table_says_why_there_is_no_verdict_or_none_yet(known: dict[str, Claim]) -> None:
    equal = Evidence([verdict_of(known["holds"], {"values": [2.0, 2.0]})], "digits", "smoke")
    (row,) = str(equal).splitlines()[1:]
    assert "; mean 2; both seeds gave the same value, so that their spread says nothing; must lie within" in row
    none = Evidence([claims.judge(known["holds"], {"values": [float("nan")]})], "digits", "smoke")
    (row,) = str(none).splitlines()[1:]
    assert "; holds, values: expected finite numbers, but values[0] is nan; no verdict here, which decides" in row
    assert row.endswith(" (on record: seen); control-one (elsewhere in this chapter)")


def test_a_verdict_against_the_prediction_has_it_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    # (verdict on record, predicted before the first measurement) and what is said if a run agrees with the former.
    cases = {
        ("contradicted", "contradicted"): "opposite seen",
        ("contradicted", "supported"): "opposite seen (predicted: seen)",
        ("contradicted", "none"): "opposite seen",
        ("supported", "supported"): "seen",
        ("supported", "contradicted"): "seen (predicted: opposite seen)",
        ("supported", "none"): "seen",
        ("inconclusive", "inconclusive"): "undecided",
        ("inconclusive", "supported"): "undecided (predicted: seen)",
        ("inconclusive", "none"): "undecided",
    }
    for (recorded, predicted), words in cases.items():
        found = registry_of([entry("one", on_record=recorded, predicted=predicted)])
        monkeypatch.setattr(claim_registry, "registry", lambda found=found: found)
        result = measured(found, "one", recorded)
        assert Evidence([result], "digits", "ci").words(result) == words


def test_the_summary_counts(known: dict[str, Claim]) -> None:
    def summary(*pairs: tuple[str, str], scale: str = "ci") -> str:
        return Evidence([measured(known, *pair) for pair in pairs], "digits", scale).summary

    six = [("holds", "supported")] * 5 + [("number-fails", "contradicted")]
    counted = oracles.count_words([verdict for _, verdict in six])
    assert summary(*six) == (
        f"Evidence: 6 claims: {counted['supported']} seen, {counted['contradicted']} opposite seen"
    )
    assert summary(("holds", "supported"), ("control-one", "supported")) == "Evidence: 1 claim: seen; 1 control: held"
    assert summary(("control-one", "supported"), ("control-one", "contradicted")) == (
        "Evidence: 2 controls: 1 held, 1 did not hold; 1 not as on record"
    )
    assert summary(("holds", "supported"), ("control-one", "inconclusive"), scale="smoke") == (
        "Evidence: 1 claim: seen; 1 control: undecided"
    )
    assert summary(("holds", "inconclusive")) == "Evidence: 1 claim: undecided; 1 not as on record"
    assert summary(("holds", "inconclusive"), scale="smoke") == "Evidence: 1 claim: undecided"


class Table(HTMLParser):
    """Cells of the rows, and whether the block stands open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open, self.summary, self.tag = False, "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tag = tag
        self.open |= tag == "details" and ("open", None) in attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.tag == "summary":
            self.summary += data
        if self.tag in ("td", "th"):
            self.rows[-1][-1] += data


def test_the_table(known: dict[str, Claim]) -> None:
    shown = [measured(known, "holds"), verdict_of(known["identity-fails"], ARRAYS["identity"])]
    table = Table(Evidence(shown, "digits", "ci").html())
    head, first, second = table.rows
    assert head == ["claim", "measured", "verdict", "control"]
    mean, low, high = oracles.mean_interval(NUMBERS["supported"], shown[0].level or 0)
    assert first[0] == "A & B hold. (holds; Table <1>)"
    assert first[1] == (
        f"mean {mean:.3g}, {shown[0].level:.1%} interval [{low:.3g}, {high:.3g}] over 3 seeds; must lie within 2 ± 0.5"
    )
    assert first[2:] == ["seen", "control-one (elsewhere in this chapter)"]
    assert second[1] == "largest |left − right| 0.25 in 2 cases; must not exceed 1e-09"
    assert table.summary == Evidence(shown, "digits", "ci").summary
    assert not table.open
    of_problems = Table(Evidence([measured(known, "of-problems")], "digits", "ci").html())
    assert of_problems.rows[1][1] == first[1].replace("over 3 seeds", "over 3 random problems")
    both = [measured(known, "holds"), measured(known, "control-one", "contradicted")]
    surprising = Table(Evidence(both, "digits", "ci").html())
    assert surprising.open
    assert surprising.rows[1][3] == "control-one did not hold"
    assert not Table(Evidence(both, "digits", "smoke").html()).open
    assert Table(Evidence([measured(known, "holds"), measured(known, "control-one")], "digits", "ci").html()).rows[1][
        3
    ] == ("control-one held")


def test_a_notebook_is_shown_the_table_and_others_the_text(known: dict[str, Claim]) -> None:
    evidence = Evidence([measured(known, "holds")], "digits", "ci")
    bundle, about = evidence._repr_mimebundle_()
    assert bundle == {"text/html": evidence.html(), "text/plain": str(evidence)}
    assert about == {"cfltr": {"evidence": ["holds"]}}
    summary, line = str(evidence).splitlines()
    assert summary == evidence.summary
    assert re.match(r"- A & B hold\. \(holds; Table <1>\); mean 2, .*; seen; control-one", line)


@pytest.mark.parametrize(
    ("results", "message"),
    [([], "results: there is none"), (["supported"], r"results\[0\] is a str: pass what run\.claim")],
)
def test_only_results_are_shown(results: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Evidence(results, "digits", "ci")


def test_ids_become_links_to_a_scoreboard_and_anchors(known: dict[str, Claim]) -> None:
    evidence = Evidence([measured(known, "holds"), measured(known, "control-one")], "digits", "ci")
    plain = evidence.html()
    linked = evidence.html(scoreboard="a&b.html")
    one, other = (f'(<a href="a&amp;b.html#claim-{id}">{id}</a>; ' for id in ("holds", "control-one"))
    assert "<a " not in plain
    assert linked == plain.replace("(holds; ", one).replace("(control-one; ", other)
    assert linked.count("<a href=") == 2
    anchored = evidence.html(anchors=["control-one", "elsewhere"])
    first, second = (row.start() for row in re.finditer(r"<tr><td>", plain))
    assert anchored == plain[:second] + '<tr id="claim-control-one"><td>' + plain[second + len("<tr><td>") :]
    assert first < second


def test_only_the_id_in_brackets_becomes_a_link(known: dict[str, Claim], monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement may speak of its own id; the link is the one before the source."""
    found = parse_registry([entry("holds", statement="This (holds; always) is so.")])
    monkeypatch.setattr(claim_registry, "registry", lambda: found)
    html = Evidence([verdict_of(found["holds"], {"values": NUMBERS["supported"]})], "digits", "ci").html(scoreboard="b")
    assert 'This (holds; always) is so. (<a href="b#claim-holds">holds</a>; ' in html
