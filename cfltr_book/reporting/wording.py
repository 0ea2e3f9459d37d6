"""What claims are called in words: their sources without short codes, and their verdicts as a reader takes them.

A *mathematical* claim is true or false.  An *empirical* one is seen on the corpus at hand or not: generated data can
show the opposite of what a paper says of its data, and cannot refute it.  A *control* held or did not.

An ordering claims a difference of more than a margin.  A difference that surely does not exceed it is contradicted,
which says too little to a reader; its interval says the rest: :func:`shortfall`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfltr_book.reporting.intervals import below

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim

# The short codes that begin the ids of claims, with what they stand for.
SOURCES: Mapping[str, str] = {
    "A18": "Agarwal et al. (2018)",
    "J20": "Jagerman and de Rijke (2020)",
    "O20": "Oosterhuis and de Rijke (2020)",
    "N": "the notes",
    "B": "this book",
}
OWN, CONTROL, EMPIRICAL = "B", "control", "empirical"
CODE = re.compile(r"\b(A18|J20|O20)\b|^(N|B)\b|(?<=; )(N|B)\b")
# From a verdict to what it is called, by nature; a control has words of its own.  An empirical ordering that is
# contradicted is called by where its interval lies, and where that is not known by the verdict.
SMALLER, NOT_SEEN, OPPOSITE = "smaller than asked", "not seen", "opposite seen"
OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "mathematical": {"supported": "true", "contradicted": "false", "inconclusive": "undecided"},
    EMPIRICAL: {"supported": "seen", "contradicted": OPPOSITE, "inconclusive": "undecided"},
    CONTROL: {"supported": "held", "contradicted": "did not hold", "inconclusive": "undecided"},
}
# What the effect of a claim of each kind is, and what it must meet.
_WITHIN = "must lie within {0.value:g} ± {0.margin:g}"
_EFFECTS: Mapping[str, tuple[str, str]] = {
    "identity": ("largest |left − right|", "must not exceed {0.tolerance:g}"),
    "inequality": ("largest excess", "must not exceed {0.tolerance:g}"),
    "ordering": ("mean difference", "must exceed {0.margin:g}"),
    "equivalence": ("mean difference", "must lie within ±{0.margin:g}"),
    "number": ("mean", _WITHIN),
    "limit": ("log-log slope", _WITHIN),
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
    >>> is_control("control-shuffled-learning"), is_control("B-oblivious-bias")
    (True, False)
    """
    return source_of(id) == CONTROL


def is_published(id: str) -> bool:
    """True for a claim that one of the four sources makes: neither the book's own nor a control."""
    return source_of(id) not in (OWN, CONTROL)


def outcome(spec: Claim, verdict: str, *, interval: tuple[float, float] | None = None) -> str:
    """A verdict on a claim in words: true, false; seen, opposite seen; held, did not hold; undecided.

    A contradicted ordering of data is *smaller than asked*, *not seen* or *opposite seen*, as its ``interval`` says
    (:func:`shortfall`).  Without one it can be all three, and stays *contradicted*, unless its margin is 0: then only
    the opposite contradicts it.  Whatever is no verdict (*no verdict*, *none*) stays as it is.

    Examples
    --------
    >>> from cfltr_book.reporting.claim_registry import registry
    >>> spec = registry()["B-naive-misorders"]
    >>> outcome(spec, "contradicted", interval=(0.01, 0.1)), outcome(spec, "contradicted")
    ('smaller than asked', 'contradicted')
    """
    kind = CONTROL if is_control(spec.id) else spec.nature
    if (kind, spec.kind, verdict) == (EMPIRICAL, "ordering", "contradicted") and spec.margin > 0:
        return verdict if interval is None else shortfall(interval)
    return OUTCOMES[kind].get(verdict, verdict)


def shortfall(interval: tuple[float, float]) -> str:
    """What is seen of a difference that surely does not exceed its margin, by the side of 0 that its interval is on.

    Above 0 it is *smaller than asked*, below 0 the *opposite is seen*; an interval that has 0 inside leaves the sign
    open: the difference is *not seen*.

    Examples
    --------
    >>> shortfall((0.1, 0.2)), shortfall((-0.1, 0.2)), shortfall((-0.2, -0.1))
    ('smaller than asked', 'not seen', 'opposite seen')
    """
    low, high = interval
    return SMALLER if below(0.0, low) else OPPOSITE if below(high, 0.0) else NOT_SEEN


def describe(spec: Claim) -> str:
    """What the effect of a claim of this kind is, in words."""
    return _EFFECTS[spec.kind][0]


def required(spec: Claim) -> str:
    """What the effect must meet for the claim to be supported, in words."""
    return _EFFECTS[spec.kind][1].format(spec)
