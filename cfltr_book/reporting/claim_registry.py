"""What ``cfltr_book/claims/NN.yml`` states of the claims of chapter NN, each of them *before* it is measured.

An entry holds the claim's ``source`` (A18, J20, O20: the papers; N: the notes; B: derived in this book), its
``statement``, its kind, the corpora and the scale from which it is put to the test, the smallest effect that would
matter with the ``reason``, and the verdict that is ``predicted``.  What a chapter measures for it is judged in
:mod:`cfltr_book.reporting.claims`.

kind         arrays                     supported when
-----------  -------------------------  --------------------------------------------------------------
identity     left, right                max ``|left − right|`` <= tolerance
inequality   lower, upper               max (lower − upper) <= tolerance
ordering     larger, smaller (paired)   the interval of mean(larger − smaller) lies above ``margin``
equivalence  left, right (paired)       the interval of mean(left − right) lies inside ±``margin``
number       values                     the interval of mean(values) lies inside ``value`` ± ``margin``
limit        x, errors (seeds × x)      the interval of the log-log slope lies inside ``value`` ± ``margin``

What was ``predicted`` before a claim was measured is never rewritten: one verdict, or one per corpus where they differ,
and *none* for a statement that replaced another one after a measurement, or that was set after a trial, as its reason
then says.  On record is the verdict of the last accepted run (:mod:`cfltr_book.reporting.accepted`), which a new run
is compared with; until there is one, what was predicted.  An *inconclusive* on record that becomes a verdict is news
(:meth:`Claim.is_news`); anything else that differs is a change.  A statement that was replaced after it was measured
stays in the file, marked ``withdrawn`` with ``replaced_by``, ``measured`` and ``why``; :func:`withdrawn` lists these,
:func:`registry` the others.

A claim is *mathematical* (true or false, whatever the corpus) or *empirical* (seen here or not): identities,
inequalities and limits are mathematical, the other kinds empirical, unless a field ``nature`` says otherwise.  Each
value of a claim is of one seed, unless a field ``each`` says of what: of a *random problem*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from cfltr_book.reporting.accepted import Accepted, accepted_verdicts

ARRAYS: Mapping[str, tuple[str, ...]] = {
    "identity": ("left", "right"),
    "inequality": ("lower", "upper"),
    "ordering": ("larger", "smaller"),
    "equivalence": ("left", "right"),
    "number": ("values",),
    "limit": ("x", "errors"),
}
EXACT = ("identity", "inequality")
VERDICTS = ("supported", "contradicted", "inconclusive")
# What is predicted of a claim that replaced another after a measurement: nothing, it was written too late for that.
NO_PREDICTION = "none"
NATURES = ("mathematical", "empirical")
MATHEMATICAL = ("identity", "inequality", "limit")
# The fields of an entry that its measurement depends on: another value, and the chapter must run again.
MEASURED_BY = ("id", "kind", "chapter", "margin", "tolerance", "value")
SCALE_ORDER = ("smoke", "ci", "paper")
# ``letor`` stands for every collection of the user; a mixed profile is a corpus of its own.
CORPORA = ("yahoo-like", "yahoo-like:mixed", "istella-like", "istella-like:mixed", "digits", "letor")
FAMILY_ALPHA = 0.05


@dataclass(frozen=True)
class Withdrawal:
    """What became of a statement that was replaced: the id of its successor (or None), what it measured, and why."""

    replaced_by: str | None
    measured: str | Mapping[str, str]
    why: str


@dataclass(frozen=True)
class Claim:
    """One entry of the file of its chapter; see the module's table for ``kind``, and its docstring for other words.

    ``nature`` follows from the kind unless the file says otherwise; ``accepted`` are the verdicts of accepted runs.
    """

    id: str
    source: str
    statement: str
    kind: str
    chapter: str
    corpora: tuple[str, ...]
    scale: str
    predicted: str | Mapping[str, str]
    reason: str
    margin: float = 0.0
    tolerance: float = 0.0
    value: float = 0.0
    control: str | None = None
    nature: str = ""
    each: str = "seed"
    withdrawn: Withdrawal | None = None
    accepted: tuple[Accepted, ...] = ()

    def __post_init__(self) -> None:
        """Fill in what the file leaves to a rule."""
        if not self.nature:
            object.__setattr__(self, "nature", NATURES[self.kind not in MATHEMATICAL])

    def gates(self, scale: str, corpus: str) -> bool:
        """True where the verdict on record must be met: at this scale or larger, on a named corpus."""
        return _corpus_family(corpus) in self.corpora and SCALE_ORDER.index(scale) >= SCALE_ORDER.index(self.scale)

    @property
    def tested_where(self) -> str:
        """Which runs put the claim to the test, in words: *it is put to the test from scale ci on, with digits*."""
        since = "" if self.scale == SCALE_ORDER[0] else f" from scale {self.scale} on,"
        return f"it is put to the test{since} with {' or '.join(self.corpora)}"

    def counted(self, values: int) -> str:
        """So many values in words, by what each of them is of: *5 seeds*."""
        return f"{values} {self.each}{'' if values == 1 else 's'}"

    def recorded(self, scale: str, corpus: str) -> str:
        """The verdict on record for a scale and a corpus; for a corpus that is not named, that of the first named one.

        Of the accepted verdicts it is that of the largest scale up to ``scale``, or of the smallest scale where all are
        larger.  Without one it is the prediction, and *inconclusive* where nothing was predicted.  Of a withdrawn claim
        it is what it had measured.
        """
        if self.withdrawn is not None:
            return _on(corpus, self.withdrawn.measured, self.corpora)
        family = _corpus_family(corpus)
        named = family if family in self.corpora else self.corpora[0]
        found = {one.scale: one.verdict for one in self.accepted if one.corpus == named}
        scales = [name for name in SCALE_ORDER if name in found]
        upto = [name for name in scales if SCALE_ORDER.index(name) <= SCALE_ORDER.index(scale)]
        if scales:
            return found[(upto or scales[:1])[-1]]
        predicted = self.prediction(corpus)
        return "inconclusive" if predicted == NO_PREDICTION else predicted

    def prediction(self, corpus: str) -> str:
        """The verdict predicted before the first measurement, or *none*; corpora as in :meth:`recorded`."""
        return _on(corpus, self.predicted, self.corpora)

    def is_news(self, verdict: str, scale: str, corpus: str) -> bool:
        """True for a verdict where *inconclusive* is on record: sharper than before, in either direction."""
        return self.recorded(scale, corpus) == "inconclusive" and verdict in ("supported", "contradicted")

    def meets(self, verdict: str, scale: str, corpus: str) -> bool:
        """True for the verdict on record, and for any verdict where *inconclusive* is on record."""
        return verdict == self.recorded(scale, corpus) or self.is_news(verdict, scale, corpus)


def entries_of(text: str) -> list[dict[str, Any]]:
    """The entries of one file of claims, as they stand there; a yaml.YAMLError for text that is no YAML."""
    import yaml

    # The parser in C, which not every build of PyYAML has, is about eight times as fast.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or []


@cache
def _file() -> Mapping[str, Claim]:
    entries = []
    for file in sorted(resources.files("cfltr_book").joinpath("claims").iterdir(), key=lambda file: file.name):
        chapter, _, ending = file.name.partition(".")
        for entry in entries_of(file.read_text(encoding="utf-8")) if ending == "yml" else []:
            if "chapter" in entry:
                raise _fault(chapter, entry.get("id", "<no id>"), "its chapter is that of the file; leave it out")
            entries.append({**entry, "chapter": chapter})
    return parse_registry(entries, accepted_verdicts())


@cache
def registry() -> Mapping[str, Claim]:
    """All claims that are to be measured, by id, in the order of the chapters and of their files."""
    return {name: spec for name, spec in _file().items() if spec.withdrawn is None}


@cache
def withdrawn() -> Mapping[str, Claim]:
    """The claims that were replaced after a measurement, by id, in the same order."""
    return {name: spec for name, spec in _file().items() if spec.withdrawn is not None}


def check_measured(id: str) -> None:
    """Raise a ValueError, which names the id, for a claim that is withdrawn or stands nowhere."""
    if id in registry():
        return
    if id in withdrawn():
        raise ValueError(f"id is {id!r}: this claim was withdrawn and is not measured any more")
    raise ValueError(f"id is {id!r}: no such claim; add it to cfltr_book/claims before it is measured")


def parse_registry(entries: list[dict[str, Any]], accepted: Iterable[Accepted] = ()) -> dict[str, Claim]:
    """Check and build the registry: known fields, kinds, verdicts, and a negative control per ordering.

    Each entry has its ``chapter`` beside what stands in the file.  The withdrawn entries are among the result; they
    need no control, and no verdict is accepted for them.
    """
    out: dict[str, Claim] = {}
    for entry in entries:
        spec = _parse(entry)
        if spec.id in out:
            raise _fault(spec.chapter, spec.id, "stands twice")
        out[spec.id] = spec
    measured = {name for name, spec in out.items() if spec.withdrawn is None}
    for spec in out.values():
        if spec.withdrawn is not None:
            successor = spec.withdrawn.replaced_by
            if successor is not None and (successor not in out or successor == spec.id):
                raise _fault(spec.chapter, spec.id, f"replaced_by is {successor}, which is no other claim")
            continue
        if spec.kind == "ordering" and (spec.control not in measured or spec.control == spec.id):
            raise _fault(spec.chapter, spec.id, "an ordering names its negative control, another claim")
        if spec.control is not None and spec.control not in measured:
            raise _fault(spec.chapter, spec.id, f"its control {spec.control} is no claim")
        if spec.control is not None and out[spec.control].chapter != spec.chapter:
            raise _fault(spec.chapter, spec.id, "the control is measured in the same chapter")
    seen = set()
    for row in accepted:
        place = f"verdicts.csv, {row.id}, {row.corpus}, {row.scale}"
        if row.id not in measured:
            raise ValueError(f"{place}: no such claim is to be measured; take the row out")
        spec = out[row.id]
        if row.verdict not in VERDICTS or row.corpus not in spec.corpora or not spec.gates(row.scale, row.corpus):
            raise ValueError(f"{place}: {row.verdict} is no verdict, or the claim is not put to the test there")
        if place in seen:
            raise ValueError(f"{place}: stands twice")
        seen.add(place)
        out[row.id] = replace(spec, accepted=(*spec.accepted, row))
    return out


def _fault(chapter: str, id: str, text: str) -> ValueError:
    return ValueError(f"claims/{chapter}.yml, {id}: {text}")


def _parse(entry: dict[str, Any]) -> Claim:
    """One entry, checked by itself."""
    place = entry.get("chapter", "NN"), entry.get("id", "<no id>")
    if not isinstance(entry.get("corpora", [""]), list) or entry.get("corpora") == []:
        raise _fault(*place, "corpora is a list of at least one, as in [yahoo-like, digits]")
    for field in ("margin", "tolerance", "value"):
        # YAML reads 1e-12 as a word: it wants 1.0e-12.
        if not isinstance(entry.get(field, 0.0), (int, float)):
            raise _fault(*place, f"{field} is {entry[field]!r}; write a number such as 1.0e-12")
    try:
        replaced = Withdrawal(**entry["withdrawn"]) if "withdrawn" in entry else None
        spec = Claim(**{**entry, "corpora": tuple(entry["corpora"]), "withdrawn": replaced})
    except (KeyError, TypeError) as error:
        raise _fault(*place, f"{error}") from error
    each, needs_margin = spec.each, ("equivalence", "number", "limit")
    for is_wrong, text in (
        (spec.kind not in ARRAYS or spec.scale not in SCALE_ORDER, "unknown kind or scale"),
        (spec.nature not in NATURES, f"nature is one of {NATURES}"),
        (not isinstance(each, str) or each[-1:] in ("", "s"), f"each is {each!r}; name one of what is counted"),
        (not set(spec.corpora) <= set(CORPORA), f"corpora {spec.corpora} are not all among {CORPORA}"),
        (spec.kind in EXACT and not spec.tolerance > 0, "an exact claim states a tolerance > 0"),
        (spec.kind in needs_margin and not spec.margin > 0, "this kind states a margin > 0"),
        (spec.kind in ("number", "limit") and "value" not in entry, "this kind states the value that is claimed"),
        (spec.margin < 0, "margin is the smallest effect that matters, >= 0"),
    ):
        if is_wrong:
            raise _fault(*place, text)
    stated: list[tuple[str, str | Mapping[str, str], tuple[str, ...]]] = [
        ("predicted", spec.predicted, (*VERDICTS, NO_PREDICTION)),
        *([("withdrawn: measured", replaced.measured, VERDICTS)] if replaced else []),
    ]
    for called, given, allowed in stated:
        told = dict.fromkeys(spec.corpora, given) if isinstance(given, str) else given
        if set(told) != set(spec.corpora) or not set(told.values()) <= set(allowed):
            raise _fault(*place, f"{called} is one of {allowed}, or one of them per corpus")
    return spec


def level_of(spec: Claim) -> float:
    """Confidence level of a statistical claim: 1 − 0.05 / (number of statistical claims of its chapter)."""
    family = [c for c in registry().values() if c.chapter == spec.chapter and c.kind not in EXACT]
    return 1.0 - FAMILY_ALPHA / max(1, len(family))


def _on(corpus: str, verdicts: str | Mapping[str, str], corpora: tuple[str, ...]) -> str:
    """The verdict for a corpus; for one that is not named, that of the first named corpus."""
    return verdicts if isinstance(verdicts, str) else verdicts.get(_corpus_family(corpus), verdicts[corpora[0]])


def _corpus_family(corpus: str) -> str:
    return "letor" if corpus.startswith("letor:") else corpus
