"""What claims are called in words: their sources without short codes, and their verdicts as a reader takes them.

A *mathematical* claim is true or false.  An *empirical* one is seen on the corpus at hand or not: generated data can
show the opposite of what a paper says of its data, and cannot refute it.  A *control* held or did not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

# The short codes that begin the ids of claims, with what they stand for.
SOURCES: Mapping[str, str] = {
    "A18": "Agarwal et al. (2018)",
    "J20": "Jagerman and de Rijke (2020)",
    "O20": "Oosterhuis and de Rijke (2020)",
    "N": "the notes",
    "B": "this book",
}
OWN, CONTROL = "B", "control"
CODE = re.compile(r"\b(A18|J20|O20)\b|^(N|B)\b|(?<=; )(N|B)\b")
# From a verdict to what it is called, by nature; a control has words of its own.
OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "mathematical": {"supported": "true", "contradicted": "false", "inconclusive": "undecided"},
    "empirical": {"supported": "seen", "contradicted": "opposite seen", "inconclusive": "undecided"},
    CONTROL: {"supported": "held", "contradicted": "did not hold", "inconclusive": "undecided"},
}


def spelt_out(source: str) -> str:
    """The source of a claim with the names of the authors in place of the short codes.

    Examples
    --------
    >>> spelt_out("B, after A18 §3.2")
    'this book, after Agarwal et al. (2018) §3.2'
    """
    return CODE.sub(lambda found: SOURCES[found[0]], source)


def source_of(id: str) -> str:
    """The code of the source that an id names: one of :data:`SOURCES`, or *control*; *B* for an id that names none."""
    first = id.partition("-")[0]
    return first if first in SOURCES or first == CONTROL else OWN


def is_control(id: str) -> bool:
    """True for a negative control, in which an effect must vanish.

    Examples
    --------
    >>> is_control("control-shuffled-page"), is_control("B-crossing-in-all")
    (True, False)
    """
    return source_of(id) == CONTROL


def is_published(id: str) -> bool:
    """True for a claim that one of the four sources makes: neither the book's own nor a control."""
    return source_of(id) not in (OWN, CONTROL)


class Named(Protocol):
    """What words need to know of a claim."""

    @property
    def id(self) -> str:
        """Its id, which begins with the code of its source."""

    @property
    def nature(self) -> str:
        """Mathematical or empirical."""

    @property
    def kind(self) -> str:
        """How it is judged: identity, inequality, ordering, equivalence, number or limit."""

    @property
    def margin(self) -> float:
        """The smallest effect that matters."""

    @property
    def tolerance(self) -> float:
        """The largest excess of an exact claim."""

    @property
    def value(self) -> float:
        """The value that is claimed."""


def outcome(spec: Named, verdict: str) -> str:
    """A verdict on a claim in words: true, false; seen, opposite seen; held, did not hold; undecided.

    Whatever is no verdict (*no verdict*, *none*) stays as it is.
    """
    kind = CONTROL if is_control(spec.id) else spec.nature
    return OUTCOMES[kind].get(verdict, verdict)


def describe(spec: Named) -> str:
    """What the effect of a claim of this kind is, in words."""
    return {
        "identity": "largest |left − right|",
        "inequality": "largest excess",
        "ordering": "mean difference",
        "equivalence": "mean difference",
        "number": "mean",
        "limit": "log-log slope",
    }[spec.kind]


def required(spec: Named) -> str:
    """What the effect must meet for the claim to be supported, in words."""
    return {
        "identity": f"must not exceed {spec.tolerance:g}",
        "inequality": f"must not exceed {spec.tolerance:g}",
        "ordering": f"must exceed {spec.margin:g}",
        "equivalence": f"must lie within ±{spec.margin:g}",
        "number": f"must lie within {spec.value:g} ± {spec.margin:g}",
        "limit": f"must lie within {spec.value:g} ± {spec.margin:g}",
    }[spec.kind]
