"""What ``claims.yml`` states of the claims of the papers, each of them *before* it is measured.

An entry holds the claim's kind, the smallest effect that would matter, and the verdict on record.  What a chapter
measures for it is judged in :mod:`cfltr_book.reporting.claims`.

kind         arrays                     supported when
-----------  -------------------------  --------------------------------------------------------------
identity     left, right                max ``|left − right|`` <= tolerance
inequality   lower, upper               max (lower − upper) <= tolerance
ordering     larger, smaller (paired)   the interval of mean(larger − smaller) lies above ``margin``
equivalence  left, right (paired)       the interval of mean(left − right) lies inside ±``margin``
number       values                     the interval of mean(values) lies inside ``value`` ± ``margin``
limit        x, errors (seeds × x)      the interval of the log-log slope lies inside ``value`` ± ``margin``

What was ``predicted`` before a claim was measured is never rewritten; ``on_record`` is the verdict of the last accepted
run, which a new run is compared with.  An *inconclusive* on record that becomes a verdict is news
(:meth:`Claim.is_news`); anything else that differs is a change.  A statement that was replaced after it was measured
stays in the file, marked ``withdrawn`` with what it had measured; :func:`withdrawn` lists these, :func:`registry` the
others.

A claim is *mathematical* (true or false, whatever the corpus) or *empirical* (seen here or not): identities,
inequalities and limits are mathematical, the other kinds empirical, unless a field ``nature`` says otherwise.  Each
value of a claim is of one seed, unless a field ``each`` says of what: of a *random problem*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

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
# ``letor`` stands for every collection of the user; a conflict profile is a corpus of its own.
CORPORA = ("yahoo-like", "yahoo-like:conflict", "istella-like", "istella-like:conflict", "digits", "letor")
FAMILY_ALPHA = 0.05


@dataclass(frozen=True)
class Withdrawal:
    """What became of a statement that was replaced: the id of its successor (or None), what it measured, and why."""

    replaced_by: str | None
    measured: str | Mapping[str, str]
    why: str


@dataclass(frozen=True)
class Claim:
    """One entry of ``claims.yml``; see the module's table for ``kind``, and its docstring for the other words.

    ``predicted`` is ``on_record`` unless the file says otherwise, ``nature`` follows from the kind unless it does.
    """

    id: str
    source: str
    statement: str
    kind: str
    chapter: str
    corpora: tuple[str, ...]
    scale: str
    on_record: str | Mapping[str, str]
    reason: str
    margin: float = 0.0
    tolerance: float = 0.0
    value: float = 0.0
    control: str | None = None
    predicted: str | Mapping[str, str] = ""
    nature: str = ""
    each: str = "seed"
    withdrawn: Withdrawal | None = None

    def __post_init__(self) -> None:
        """Fill in what the file leaves to a rule."""
        if not self.predicted:
            object.__setattr__(self, "predicted", self.on_record)
        if not self.nature:
            object.__setattr__(self, "nature", NATURES[self.kind not in MATHEMATICAL])

    def gates(self, scale: str, corpus: str) -> bool:
        """True where the verdict on record must be met: at this scale or larger, on a named corpus."""
        named = _corpus_family(corpus) in self.corpora
        return named and SCALE_ORDER.index(scale) >= SCALE_ORDER.index(self.scale)

    @property
    def tested_where(self) -> str:
        """Which runs put the claim to the test, in words: *it is put to the test from scale ci on, with digits*."""
        since = "" if self.scale == SCALE_ORDER[0] else f" from scale {self.scale} on,"
        return f"it is put to the test{since} with {' or '.join(self.corpora)}"

    def counted(self, values: int) -> str:
        """So many values in words, by what each of them is of: *5 seeds*."""
        return f"{values} {self.each}{'' if values == 1 else 's'}"

    def recorded(self, corpus: str) -> str:
        """The verdict on record for a corpus; for one that is not named, that of the first named corpus."""
        return _on(corpus, self.on_record, self.corpora)

    def prediction(self, corpus: str) -> str:
        """The verdict predicted before the first measurement, or *none*; corpora as in :meth:`recorded`."""
        return _on(corpus, self.predicted, self.corpora)

    def is_news(self, verdict: str, corpus: str) -> bool:
        """True for a verdict where *inconclusive* is on record: sharper than before, in either direction."""
        return self.recorded(corpus) == "inconclusive" and verdict in ("supported", "contradicted")

    def meets(self, verdict: str, corpus: str) -> bool:
        """True for the verdict on record, and for any verdict where *inconclusive* is on record."""
        return verdict == self.recorded(corpus) or self.is_news(verdict, corpus)


@cache
def _file() -> Mapping[str, Claim]:
    import yaml

    text = resources.files("cfltr_book.reporting").joinpath("claims.yml").read_text(encoding="utf-8")
    return parse_registry(yaml.safe_load(text) or [])


@cache
def registry() -> Mapping[str, Claim]:
    """All claims of ``claims.yml`` that are to be measured, by id, in file order."""
    return {name: spec for name, spec in _file().items() if spec.withdrawn is None}


@cache
def withdrawn() -> Mapping[str, Claim]:
    """The claims of ``claims.yml`` that were replaced after a measurement, by id, in file order."""
    return {name: spec for name, spec in _file().items() if spec.withdrawn is not None}


def check_measured(id: str) -> None:
    """Raise a ValueError, which names the id, for a claim that is withdrawn or stands nowhere."""
    if id in registry():
        return
    if id in withdrawn():
        raise ValueError(f"id is {id!r}: this claim was withdrawn and is not measured any more")
    raise ValueError(f"id is {id!r}: no such claim; add it to claims.yml before it is measured")


def parse_registry(entries: list[dict[str, Any]]) -> dict[str, Claim]:
    """Check and build the registry: known fields, kinds, verdicts, and a negative control per ordering.

    The withdrawn entries are among the result; they need no control.
    """
    out: dict[str, Claim] = {}
    for entry in entries:
        spec = _parse(entry)
        if spec.id in out:
            raise ValueError(f"claims.yml: {spec.id} stands twice")
        out[spec.id] = spec
    measured = {name for name, spec in out.items() if spec.withdrawn is None}
    for spec in out.values():
        if spec.withdrawn is not None:
            successor = spec.withdrawn.replaced_by
            if successor is not None and (successor not in out or successor == spec.id):
                raise ValueError(f"claims.yml, {spec.id}: replaced_by is {successor}, which is no other claim")
            continue
        if spec.kind == "ordering" and (spec.control not in measured or spec.control == spec.id):
            raise ValueError(f"claims.yml, {spec.id}: an ordering names its negative control, another claim")
        if spec.control is not None and spec.control not in measured:
            raise ValueError(f"claims.yml, {spec.id}: its control {spec.control} is no claim")
        if spec.control is not None and out[spec.control].chapter != spec.chapter:
            raise ValueError(f"claims.yml, {spec.id}: the control is measured in the same chapter")
    return out


def _parse(entry: dict[str, Any]) -> Claim:
    """One entry, checked by itself."""
    name = entry.get("id", "<no id>")
    if not isinstance(entry.get("corpora", [""]), list) or entry.get("corpora") == []:
        raise ValueError(f"claims.yml, {name}: corpora is a list of at least one, as in [yahoo-like, digits]")
    for field in ("margin", "tolerance", "value"):
        # YAML reads 1e-12 as a word: it wants 1.0e-12.
        if not isinstance(entry.get(field, 0.0), (int, float)):
            raise ValueError(f"claims.yml, {name}: {field} is {entry[field]!r}; write a number such as 1.0e-12")
    replaced = _withdrawal(entry)
    if replaced is not None:
        entry = {**entry, "withdrawn": replaced, "on_record": replaced.measured}
    try:
        spec = Claim(**{**entry, "corpora": tuple(entry["corpora"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"claims.yml, {name}: {error}") from error
    if spec.kind not in ARRAYS or spec.scale not in SCALE_ORDER:
        raise ValueError(f"claims.yml, {name}: unknown kind or scale")
    if spec.nature not in NATURES:
        raise ValueError(f"claims.yml, {name}: nature is one of {NATURES}")
    if not isinstance(spec.each, str) or not spec.each or spec.each.endswith("s"):
        raise ValueError(
            f"claims.yml, {name}: each is {spec.each!r}; name one of what is counted, as in random problem"
        )
    if not set(spec.corpora) <= set(CORPORA):
        raise ValueError(f"claims.yml, {name}: corpora {spec.corpora} are not all among {CORPORA}")
    for field, allowed in (("on_record", VERDICTS), ("predicted", (*VERDICTS, NO_PREDICTION))):
        given = getattr(spec, field)
        each = dict.fromkeys(spec.corpora, given) if isinstance(given, str) else given
        if set(each) != set(spec.corpora) or not set(each.values()) <= set(allowed):
            called = "withdrawn: measured" if field == "on_record" and replaced is not None else field
            raise ValueError(f"claims.yml, {name}: {called} is one of {allowed}, or one of them per corpus")
    if spec.kind in EXACT and not spec.tolerance > 0:
        raise ValueError(f"claims.yml, {name}: an exact claim states a tolerance > 0")
    if spec.kind in ("equivalence", "number", "limit") and not spec.margin > 0:
        raise ValueError(f"claims.yml, {name}: this kind states a margin > 0")
    if spec.kind in ("number", "limit") and "value" not in entry:
        raise ValueError(f"claims.yml, {name}: this kind states the value that is claimed")
    if spec.margin < 0:
        raise ValueError(f"claims.yml, {name}: margin is the smallest effect that matters, >= 0")
    return spec


def _withdrawal(entry: Mapping[str, Any]) -> Withdrawal | None:
    """The ``withdrawn`` field of an entry, checked; None for a claim that stands."""
    if "withdrawn" not in entry:
        return None
    name, about = entry.get("id", "<no id>"), entry["withdrawn"]
    wanted = {field.name for field in fields(Withdrawal)}
    if not isinstance(about, Mapping) or set(about) != wanted:
        raise ValueError(f"claims.yml, {name}: withdrawn holds {', '.join(sorted(wanted))}, each of them")
    if "on_record" in entry or "predicted" not in entry:
        raise ValueError(
            f"claims.yml, {name}: a withdrawn claim says what was predicted, and under withdrawn what it measured; "
            "nothing is on record for it"
        )
    return Withdrawal(**about)


def level_of(spec: Claim) -> float:
    """Confidence level of a statistical claim: 1 − 0.05 / (number of statistical claims of its chapter)."""
    family = [c for c in registry().values() if c.chapter == spec.chapter and c.kind not in EXACT]
    return 1.0 - FAMILY_ALPHA / max(1, len(family))


def _on(corpus: str, verdicts: str | Mapping[str, str], corpora: tuple[str, ...]) -> str:
    """The verdict for a corpus; for one that is not named, that of the first named corpus."""
    return verdicts if isinstance(verdicts, str) else verdicts.get(_corpus_family(corpus), verdicts[corpora[0]])


def _corpus_family(corpus: str) -> str:
    return "letor" if corpus.startswith("letor:") else corpus
