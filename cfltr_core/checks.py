"""Argument checks shared by the public functions.

What an argument must be is said once.  :func:`arguments` reads it from the types of a function: a choice is what its
``Literal`` lists, an object is of its class, a whole number is at least 1 and another number finite and positive,
unless ``BOUNDS`` has other bounds for that name.  :func:`fields` does the same for a dataclass.  Arrays are checked one
by one, since their sizes depend on each other.

A check runs once, at the public function, before any work.  Its message names the argument, the first
offending index, the value found and the remedy.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, reduce
from math import inf
from numbers import Integral, Real
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Numbers from ``low`` to ``high``, each with the end or without it, as in ``"[)"``; or the ``whole`` ones."""

    low: float
    high: float = inf
    ends: str = "[)"
    whole: bool = False

    def __contains__(self, value: Any) -> bool:
        # The usual types come first: to ask for an abstract one takes a microsecond.
        kind: Any = (int, Integral) if self.whole else (float, int, Real)
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        above = value >= self.low if self.ends[0] == "[" else value > self.low
        return bool(above and (value <= self.high if self.ends[1] == "]" else value < self.high))

    def __str__(self) -> str:
        if self.whole:
            return f"a whole number of at least {self.low}"
        what = "a finite number" if self.high == inf and self.ends[1] == ")" else "a number"
        below = "" if self.high == inf else f" and {'<=' if self.ends[1] == ']' else '<'} {self.high:g}"
        return f"{what} {'>=' if self.ends[0] == '[' else '>'} {self.low:g}{below}"


WHOLE, POSITIVE = Bounds(1, whole=True), Bounds(0, ends="()")
# Names of arguments, wherever they occur, with other bounds than these two.
BOUNDS = {
    **dict.fromkeys(("extend", "seed"), Bounds(0, whole=True)),
    **dict.fromkeys(("folds", "n", "n_displays", "redraws"), Bounds(2, whole=True)),
    **dict.fromkeys(("decay", "eta", "shift", "tolerance", "weight_decay"), Bounds(0)),
    **dict.fromkeys(
        ("epsilon_minus", "epsilon_plus", "fraction", "give_up", "stop", "uniform_share"), Bounds(0, 1, "[]")
    ),
    **dict.fromkeys(("gap", "level", "persistence"), Bounds(0, 1, "()")),
    "cap": Bounds(1, ends="[]"),
    "smoothing": Bounds(0, 2, "[]"),
    **dict.fromkeys(("ceiling", "spend", "swap"), Bounds(0, 1, "(]")),
}
# What several checks say.
BINARY = "the user model takes binary relevance, as data.binary is"
CLICK = "expected 1 for a click and 0 for none; count a second click on the same display once"
FROM_1 = "ranks start at 1; add 1 to positions that start at 0"
ONCE = "more clicks than impressions; count a display at most once as clicked"
# Where an object of a class comes from.
MADE_BY = {
    "ClickLog": "such as events.log(user), or policy_aware(events.log(), events.displays().exposure(user))",
    "DisplayCounts": "from display_counts(log) or count_rows(…)",
    "DisplayShares": "such as DisplayShares.of_policy(policy) or events.displays()",
    "Events": "from read_events",
    "PageCounts": "from simulate_pages or count_pages",
    "PropensityCurve": "as estimators of it return; a curve that is known is given as user=…",
    "RankWeight": "such as dcg() or average_rank()",
    "RankWeights": "what rank_weights(scores, offsets, metric=…) returns",
    "TrustCurve": "the latter from trust_bias(counts)",
}


def arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check what a ``function`` was ``given``, its ``locals()`` before any work, by its types and by ``BOUNDS``."""
    for name, (rule, optional) in rules_of(function).items():
        value = given[name]
        if value is None and optional:
            continue
        if isinstance(rule, Bounds):
            number(value, name, rule)
        elif isinstance(rule, tuple):
            one_of(value, name, rule)
        elif rule is np.random.Generator:
            generator(value, name)
        else:
            of_type(value, name, rule)


def fields(thing: Any) -> None:
    """Check the fields of a dataclass by their types and by ``BOUNDS``."""
    arguments(type(thing).__init__, vars(thing))


@cache
def rules_of(function: Callable[..., Any]) -> dict[str, tuple[Any, bool]]:
    """What each argument of ``function`` must be, and whether it may be None: bounds, one of some words, or a class."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        # One by one: typing.get_type_hints gives nothing at all where one type is imported for type checkers only.
        try:
            hint = eval(parameter.annotation, function.__globals__)
        except (NameError, TypeError):
            continue
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        some = [kind for kind in kinds if kind is not NoneType]
        rule: Any = None
        if get_origin(some[0]) is Literal:
            rule = get_args(some[0])
        elif some[0] in (int, float) and len(some) == 1:
            rule = BOUNDS.get(name, WHOLE if some[0] is int else POSITIVE)
        elif all(isinstance(kind, type) and _is_own(kind) for kind in some):
            rule = reduce(or_, some)
        if rule is not None:
            found[name] = rule, len(some) < len(kinds)
    return found


def _is_own(kind: type) -> bool:
    protocol = getattr(kind, "_is_protocol", False)
    return kind is np.random.Generator or (kind.__module__.startswith("cfltr_core.") and not protocol)


def refuse(bad: BoolArray, name: str, values: Any, why: str) -> None:
    """ValueError for the first of ``values`` that is ``bad``: its place in ``name``, what it is, and ``why``."""
    if np.any(bad):
        raise ValueError(f"{_first(bad, name, values)}: {why}")


def _first(bad: BoolArray, name: str, values: Any) -> str:
    place = np.unravel_index(int(np.argmax(bad)), np.shape(bad))
    where = f"[{', '.join(map(str, place))}]" if place else ""
    return f"{name}{where} is {np.asarray(values)[place]}"


def keep(thing: Any, **values: Any) -> None:
    """Put ``values`` into the fields of a frozen ``thing``, once they are checked."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def increasing(values: ArrayLike, name: str, least: int = 1) -> FloatArray:
    """Return ``values`` as float64 after checking that they are ``least`` numbers at least, positive and increasing."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < least or not (array[0] > 0 and (np.diff(array) > 0).all()):
        raise ValueError(f"{name} is {array.tolist()}: expected at least {least} numbers, positive and increasing")
    return array


def shapes(thing: Any, **expected: tuple[int, ...]) -> None:
    """Check the shapes of the fields of ``thing`` that are not None."""
    for name, shape in expected.items():
        value = getattr(thing, name)
        if value is not None and np.shape(value) != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {np.shape(value)}")


def offsets_of(offsets: ArrayLike, n_docs: int | None = None, name: str = "offsets") -> IntArray:
    """Return ``offsets`` as int64 after checking that they cut ``n_docs`` documents into non-empty lists."""
    array = np.asarray(offsets)
    if array.ndim != 1 or array.size < 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{name}: expected a 1-d integer array of n_queries + 1 numbers starting at 0, "
            f"got shape {array.shape} and dtype {array.dtype}"
        )
    out = array.astype(np.int64, copy=False)
    if out[0] != 0:
        raise ValueError(f"{name}[0] is {out[0]}: the first list must start at document 0")
    steps = np.diff(out)
    if (steps <= 0).any():
        query = int(np.argmax(steps <= 0))
        raise ValueError(
            f"{name}[{query + 1}] is {out[query + 1]}, not larger than {name}[{query}] = {out[query]}: "
            "query lists must be non-empty and in order; drop empty queries first"
        )
    if n_docs is not None and out[-1] != n_docs:
        raise ValueError(
            f"{name}[-1] is {out[-1]} but there are {n_docs} documents: the last offset must be the number of documents"
        )
    return out


def finite_vector(
    values: ArrayLike, size: int | None, name: str, *, low: float = -inf, high: float = inf, why: str = ""
) -> FloatArray:
    """Return ``values`` as float64 after checking shape ``(size,)``, finiteness and ``low <= values <= high``."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,) and (size is not None or array.ndim != 1):
        wanted = "n_docs" if size is None else size
        raise ValueError(f"{name}: expected shape ({wanted},), got {array.shape}")
    refuse(~np.isfinite(array), name, array, "replace or drop non-finite values first")
    return within(array, low, high, name, why) if why else array


def feature_matrix(
    values: Any,
    n_features: int | None = None,
    *,
    n_docs: int | None = None,
    name: str = "features",
    finite: bool = True,
) -> NDArray[Any]:
    """Return ``values`` as a matrix of numbers (n_docs, n_features), float32 or float64 as they come, else float64."""
    if hasattr(values, "toarray"):
        raise ValueError(f"{name} is a {type(values).__name__}: pass an array, as {name}.toarray() gives it")
    array = np.asarray(values)
    shape = ("n_docs" if n_docs is None else n_docs, "n_features" if n_features is None else n_features)
    fits = [not isinstance(wanted, int) or wanted == n for wanted, n in zip(shape, array.shape, strict=False)]
    if array.ndim != 2 or array.shape[1] == 0 or not all(fits):
        rows = "" if n_docs is None else ": give a row for each document of the lists"
        rows += "; a single feature is a column, values[:, None]" if array.ndim == 1 else ""
        raise ValueError(f"{name}: expected shape ({shape[0]}, {shape[1]}), got {array.shape}{rows}")
    if array.dtype not in (np.float32, np.float64):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            for (row, column), value in np.ndenumerate(array):
                try:
                    float(value)
                except (TypeError, ValueError):
                    shown = repr(value.item() if isinstance(value, np.generic) else value)
                    raise ValueError(
                        f"{name}[{row}, {column}] is {shown}, which is no number: encode or drop this column"
                    ) from None
            raise
    # Few rows at once: a mask of all of them would be large.
    if finite and not all(np.isfinite(array[row : row + 4096]).all() for row in range(0, len(array), 4096)):
        refuse(~np.isfinite(array), name, array, "replace or drop non-finite values first")
    return array


def finite_scores(scores: FloatArray, features: NDArray[Any]) -> FloatArray:
    """Return ``scores`` of the rows of ``features``; ValueError for one that comes of a value which is not finite."""
    if not np.isfinite(scores).all():
        refuse(~np.isfinite(features), "features", features, "replace or drop non-finite values first")
    return scores


def within(values: ArrayLike, low: float, high: float, name: str, why: str) -> FloatArray:
    """Return ``values`` as float64 after checking ``low <= values <= high`` (NaN fails)."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= low) & (array <= high))
    if bad.any():
        raise ValueError(f"{_first(bad, name, array)}, outside [{low:g}, {high:g}]: {why}")
    return array


def counts(
    values: ArrayLike, size: int, name: str, *, low: float = 0, high: float = inf, why: str = "expected 0 or more"
) -> IntArray:
    """Return ``values`` as int64 after checking shape ``(size,)``, whole numbers and ``low <= values <= high``."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    array = numbers(array, name, "a whole number")
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**63)
        refuse(~whole, name, array, "expected a whole number")
    out = array.astype(np.int64, copy=False)
    bad, span = (out < low) | (out > high), "" if (low, high) == (0, inf) else f", outside [{low:g}, {high:g}]"
    if bad.any():
        raise ValueError(f"{_first(bad, name, out)}{span}: {why}")
    return out


def numbers(values: ArrayLike, name: str, expected: str) -> NDArray[Any]:
    """Return ``values`` as an array of real numbers, or name the first that is none and what was ``expected``.

    Whole numbers that came as Python objects become int64.  Text is no number, even where it spells one.
    """
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array
    for index, item in enumerate(array.ravel().tolist()):
        if not isinstance(item, int) or not -(2**63) <= item < 2**63:
            raise ValueError(f"{name}[{index}] is {item!r}: expected {expected}")
    return array.astype(np.int64)


def indices(values: ArrayLike, name: str, size: int | None = None, why: str = "") -> IntArray:
    """Return ``values`` as int64 after checking that they are a 1-d list of whole numbers (no mask), below ``size``."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name}: expected a 1-d integer array of indices, got shape {array.shape} and dtype {array.dtype}; "
            "turn a mask into indices with np.flatnonzero"
        )
    if size is not None:
        within(array, 0, size - 1, name, why or f"no such {name.removesuffix('s')}")
    return array.astype(np.int64, copy=False)


def number(value: Any, name: str, bounds: Bounds) -> Any:
    """Return ``value`` as int or float after checking that it lies within ``bounds``."""
    if value not in bounds:
        raise ValueError(f"{name} is {value!r}: expected {bounds}")
    return int(value) if bounds.whole else float(value)


def positive_int(value: Any, name: str, least: int = 1) -> int:
    """Return ``value`` as int after checking that it is a whole number ``>= least``."""
    return int(number(value, name, Bounds(least, whole=True)))


def positive(value: float, name: str) -> float:
    """Return ``value`` as float after checking that it is a finite number > 0."""
    return float(number(value, name, POSITIVE))


def one_of(value: Any, name: str, choices: Iterable[Any]) -> Any:
    """Return ``value`` after checking that it is one of ``choices``."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, known))}")
    return value


def of_type(value: Any, name: str, kind: Any) -> Any:
    """Return ``value`` after checking that it is of class ``kind``, or of one of several, ``A | B``."""
    if not isinstance(value, kind):
        found = repr(value) if isinstance(value, str) else type(value).__name__
        known = [one.__name__ for one in get_args(kind) or (kind,)]
        made = "".join(f", {MADE_BY[one]}" for one in known if one in MADE_BY)
        raise TypeError(f"{name} is {found}: expected {' or '.join(known)}{made}")
    return value


def noise(plus: float, minus: float, *, apart: bool = False) -> None:
    """Check that 0 <= ``minus`` <= ``plus`` <= 1 and ``plus`` > 0, or ``minus`` < ``plus`` where they are ``apart``."""
    if not (0.0 <= minus <= plus <= 1.0 and plus > (minus if apart else 0.0)):
        order = (
            "epsilon_minus < epsilon_plus <= 1" if apart else "epsilon_minus <= epsilon_plus <= 1 and epsilon_plus > 0"
        )
        raise ValueError(f"epsilon_plus={plus}, epsilon_minus={minus}: expected 0 <= {order}")


def one_line(thing: Any) -> str:
    """The fields of a dataclass: the first values of what is given by rank, and no address of a function."""

    def words(value: Any) -> str:
        if callable(value):
            return "a function of ranks"
        table = np.asarray(value, dtype=np.float64)
        if not table.ndim:
            return f"{table:g}"
        return f"[{', '.join(f'{one:.3g}' for one in table[:4])}{', …' * (len(table) > 4)}]"

    shown = ", ".join(f"{one.name}={words(getattr(thing, one.name))}" for one in dataclasses.fields(thing))
    return f"{type(thing).__name__}({shown})"


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return ``rng`` after checking that it is a ``numpy.random.Generator``."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"{name} is {type(rng).__name__}: pass a numpy.random.Generator, e.g. np.random.default_rng(0)")
    return rng
