"""What claims are called: every source, outcome and condition, word for word."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cfltr_book.reporting import wording


@dataclass(frozen=True)
class Spec:
    id: str = "B-x"
    nature: str = "empirical"
    kind: str = "ordering"
    margin: float = 0.25
    tolerance: float = 1e-9
    value: float = 2.0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("A18 §5.2", "Agarwal et al. (2018) §5.2"),
        ("J20 §4; O20 Eq. 2", "Jagerman and de Rijke (2020) §4; Oosterhuis and de Rijke (2020) Eq. 2"),
        ("N", "the notes"),
        ("N, three; B", "the notes, three; this book"),
        ("B, after A18, Table N and NB", "this book, after Agarwal et al. (2018), Table N and NB"),
        ("A180, BA18", "A180, BA18"),
    ],
)
def test_a_source_is_spelt_out(source: str, words: str) -> None:
    assert wording.spelt_out(source) == words


@pytest.mark.parametrize(
    ("id", "source", "published"),
    [
        ("A18-x", "A18", True),
        ("J20-x-y", "J20", True),
        ("O20-x", "O20", True),
        ("N-x", "N", True),
        ("B-x", "B", False),
        ("control-A18", "control", False),
        ("something-else", "B", False),
        ("A18", "A18", True),
    ],
)
def test_an_id_names_its_source(id: str, source: str, published: bool) -> None:
    assert wording.source_of(id) == source
    assert wording.is_published(id) is published
    assert wording.is_control(id) is (source == "control")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(nature="mathematical"), ("true", "false", "undecided")),
        (Spec(), ("seen", "contradicted", "undecided")),
        (Spec(margin=0.0), ("seen", "opposite seen", "undecided")),
        (Spec(kind="equivalence"), ("seen", "opposite seen", "undecided")),
        (Spec(id="control-x", nature="mathematical"), ("held", "did not hold", "undecided")),
        (Spec(id="control-x", nature="empirical"), ("held", "did not hold", "undecided")),
    ],
)
def test_a_verdict_in_words(spec: Spec, words: tuple[str, ...]) -> None:
    verdicts = ("supported", "contradicted", "inconclusive")
    assert tuple(wording.outcome(spec, verdict) for verdict in verdicts) == words
    assert [wording.outcome(spec, other) for other in ("no verdict", "none")] == ["no verdict", "none"]


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.01, 0.2), "smaller than asked"),
        # What touches 0 has not left it.
        ((0.0, 0.2), "not seen"),
        ((-0.1, 0.2), "not seen"),
        ((-0.1, 0.0), "not seen"),
        ((-0.2, -0.01), "opposite seen"),
    ],
)
def test_a_contradicted_ordering_is_called_by_the_sign_of_its_interval(
    interval: tuple[float, float], words: str
) -> None:
    assert wording.shortfall(interval) == words
    assert wording.outcome(Spec(), "contradicted", interval=interval) == words
    # Other verdicts, kinds and natures have one word each, whatever the interval.
    assert wording.outcome(Spec(), "supported", interval=interval) == "seen"
    assert wording.outcome(Spec(), "inconclusive", interval=interval) == "undecided"
    assert wording.outcome(Spec(kind="number"), "contradicted", interval=interval) == "opposite seen"
    assert wording.outcome(Spec(nature="mathematical"), "contradicted", interval=interval) == "false"
    assert wording.outcome(Spec(id="control-x"), "contradicted", interval=interval) == "did not hold"


@pytest.mark.parametrize(
    ("kind", "effect", "condition"),
    [
        ("identity", "largest |left − right|", "must not exceed 1e-09"),
        ("inequality", "largest excess", "must not exceed 1e-09"),
        ("ordering", "mean difference", "must exceed 0.25"),
        ("equivalence", "mean difference", "must lie within ±0.25"),
        ("number", "mean", "must lie within 2 ± 0.25"),
        ("limit", "log-log slope", "must lie within 2 ± 0.25"),
    ],
)
def test_what_is_measured_and_what_it_must_meet(kind: str, effect: str, condition: str) -> None:
    assert wording.describe(Spec(kind=kind)) == effect
    assert wording.required(Spec(kind=kind)) == condition
