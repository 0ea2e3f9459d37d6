"""Argument checks shared by the public functions.

A check runs once, at the public function, before any work.  Its message names the argument, the first
offending index, the value found and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Kind = TypeVar("Kind")


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


def finite_vector(values: ArrayLike, size: int, name: str) -> FloatArray:
    """Return ``values`` as float64 after checking shape ``(size,)`` and finiteness."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), one number per document, got {array.shape}")
    if not np.isfinite(array).all():
        index = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name}[{index}] is {array[index]}: replace or drop non-finite values first")
    return array


def feature_matrix(values: Any, n_features: int | None = None) -> NDArray[Any]:
    """Return ``values`` as a matrix of numbers (n_docs, n_features), float32 or float64 as they come, else float64."""
    width = "n_features" if n_features is None else n_features
    if hasattr(values, "toarray"):
        raise ValueError(f"features is a {type(values).__name__}: pass an array, as features.toarray() gives it")
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] == 0 or (n_features is not None and array.shape[1] != n_features):
        raise ValueError(f"features: expected shape (n_docs, {width}), got {array.shape}")
    if array.dtype in (np.float32, np.float64):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), value in np.ndenumerate(array):
            try:
                float(value)
            except (TypeError, ValueError):
                shown = repr(value.item() if isinstance(value, np.generic) else value)
                raise ValueError(
                    f"features[{row}, {column}] is {shown}, which is no number: encode or drop this column"
                ) from None
        raise


def finite_scores(scores: FloatArray, features: NDArray[Any]) -> FloatArray:
    """Return ``scores`` of the rows of ``features``; ValueError for one that comes of a value which is not finite."""
    for row in np.flatnonzero(~np.isfinite(scores)):
        for column in np.flatnonzero(~np.isfinite(features[row])):
            raise ValueError(
                f"features[{row}, {column}] is {features[row, column]}: replace or drop non-finite values first"
            )
    return scores


def within(values: ArrayLike, low: float, high: float, name: str, why: str) -> FloatArray:
    """Return ``values`` as float64 after checking ``low <= values <= high`` (NaN fails)."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= low) & (array <= high))
    if bad.any():
        index = int(np.argmax(bad.ravel()))
        where = f"{name}[{index}]" if array.ndim else name
        raise ValueError(f"{where} is {array.ravel()[index]}, outside [{low:g}, {high:g}]: {why}")
    return array


def counts(values: ArrayLike, size: int, name: str) -> IntArray:
    """Return ``values`` as int64 after checking shape ``(size,)``, whole numbers and no negative one."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    array = numbers(array, name, "a whole number")
    if not np.issubdtype(array.dtype, np.integer):
        whole = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**63)
        if not whole.all():
            index = int(np.argmin(whole))
            raise ValueError(f"{name}[{index}] is {array[index]}: expected a whole number")
    out = array.astype(np.int64, copy=False)
    if (out < 0).any():
        index = int(np.argmax(out < 0))
        raise ValueError(f"{name}[{index}] is {out[index]}: expected 0 or more")
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


def indices(values: ArrayLike, name: str) -> IntArray:
    """Return ``values`` as int64 after checking that they are a 1-d list of whole numbers (no mask)."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name}: expected a 1-d integer array of indices, got shape {array.shape} and dtype {array.dtype}; "
            "turn a mask into indices with np.flatnonzero"
        )
    return array.astype(np.int64, copy=False)


def positive_int(value: Any, name: str, least: int = 1) -> int:
    """Return ``value`` as int after checking that it is a whole number ``>= least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}: expected a whole number of at least {least}")
    return int(value)


def positive(value: float, name: str) -> float:
    """Return ``value`` as float after checking that it is a finite number > 0."""
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}: expected a finite number > 0")
    return float(value)


def one_of(value: Any, name: str, choices: Iterable[Any]) -> Any:
    """Return ``value`` after checking that it is one of ``choices``."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, known))}")
    return value


def of_type(value: Any, name: str, kind: type[Kind], such_as: str = "") -> Kind:
    """Return ``value`` after checking that it is a ``kind``, ``such_as`` these."""
    if not isinstance(value, kind):
        found = repr(value) if isinstance(value, str) else type(value).__name__
        raise TypeError(f"{name} is {found}: expected {kind.__name__}{such_as and f', {such_as}'}")
    return value


def one_line(thing: Any) -> str:
    """The fields of a dataclass: the first values of what is given by rank, and no address of a function."""

    def words(value: Any) -> str:
        if callable(value):
            return "a function of ranks"
        table = np.asarray(value, dtype=np.float64)
        if not table.ndim:
            return f"{table:g}"
        return f"[{', '.join(f'{one:.3g}' for one in table[:4])}{', …' * (len(table) > 4)}]"

    shown = ", ".join(f"{one.name}={words(getattr(thing, one.name))}" for one in fields(thing))
    return f"{type(thing).__name__}({shown})"


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return ``rng`` after checking that it is a ``numpy.random.Generator``."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"{name} is {type(rng).__name__}: pass a numpy.random.Generator, e.g. np.random.default_rng(0)")
    return rng
