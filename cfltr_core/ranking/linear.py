"""A linear scorer f(x) = w · x that can be kept in a file and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.files import write_json

# Numbers that are taken to double precision at once.
BLOCK = 1 << 20
# The score of a row without all features, in SQL: below any other, and a number to every database.
MISSING = "-1.0e+99"
# Bytes of a column's name that every common database keeps.
LONGEST_NAME = 63


@dataclass(frozen=True, eq=False, repr=False)
class LinearRanker:
    """A linear scorer f(x) = w · x: documents are ranked by it, largest first.

    Parameters
    ----------
    weights : (n_features,) finite
        w, for features as they are in the data.
    feature_names : (n_features,), optional
        What the features are called, where that is known; :meth:`named` adds it.  A data frame is then scored by the
        names of its columns, whatever their order, and a file keeps them.

    Raises
    ------
    TypeError, ValueError
        For weights that are no finite vector, and names that are not text, not as many, or not different.

    Examples
    --------
    >>> import tempfile
    >>> import cfltr_core as cf
    >>> ranker = cf.LinearRanker([2.0, -1.0])
    >>> ranker.decision_function([[1, 0], [1, 1], [0, 3]])  # the features of A, B, C
    array([ 2.,  1., -3.])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(f"{folder}/ranker.json")
    ...     cf.LinearRanker.load(f"{folder}/ranker.json").weights
    array([ 2., -1.])
    >>> ranker.sql(["clicks last year", "price"])  # SELECT … AS score, in the database where the features are
    'COALESCE((2.0e+00 * "clicks last year" + -1.0e+00 * "price"), -1.0e+99)'
    >>> import pandas as pd
    >>> turned = pd.DataFrame({"price": [0, 1, 3], "age": [9, 9, 9], "clicks last year": [1, 1, 0]})
    >>> ranker.named(["clicks last year", "price"]).decision_function(turned)
    array([ 2.,  1., -3.])
    """

    weights: FloatArray
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    # What a file of this class is called, and what it keeps beside the weights; a reader asks for nothing else.
    FORMAT: ClassVar[str] = "cfltr linear ranker 1"
    KEPT: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        checks.keep(self, weights=checks.finite_vector(self.weights, None, "weights"))
        if self.feature_names is not None:
            checks.keep(self, feature_names=tuple(_named(self.feature_names, len(self.weights))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.weights)} weights)"

    def named(self, feature_names: Sequence[str] | None) -> Self:
        """The same scorer, which knows that its features have these ``feature_names``, in the order of the weights.

        With None it knows of none.

        Raises
        ------
        TypeError, ValueError
            For names that are not text, not as many as weights, or not different.
        """
        return replace(self, feature_names=feature_names)  # type: ignore[arg-type]  # a tuple once it is checked

    def decision_function(self, features: ArrayLike) -> FloatArray:
        """w · x of each row of ``features`` (n_docs, n_features), float64 of shape (n_docs,).

        Of a data frame a scorer with names takes the columns of these names, in whatever order they stand, and leaves
        others out; one without takes all columns as they stand.

        Raises
        ------
        ValueError
            For features of another width, values that are no finite numbers, or a data frame that lacks one of the
            names or has it twice.
        """
        given: Any = features
        if self.feature_names is not None and hasattr(given, "columns"):
            given = given[_columns(list(given.columns), self.feature_names)]
        x = checks.feature_matrix(given, len(self.weights), finite=False)
        out = np.empty(len(x))
        rows = max(1, BLOCK // max(1, x.shape[1]))
        for i in range(0, len(x), rows):
            out[i : i + rows] = x[i : i + rows].astype(np.float64, copy=False) @ self.weights
        return checks.finite_scores(out, x)

    def sql(self, feature_names: Sequence[str] | None = None) -> str:
        """The score as an SQL expression of columns with these ``feature_names``, one for each weight; or with its own.

        Names are quoted as the standard asks ("double" quotes, doubled inside), numbers are written in full and with an
        exponent, which makes them floating-point numbers, and sums are nested in pairs, since databases limit how deep
        an expression may be.  A weight of 0 is left out, with its column.  A row that lacks a feature (NULL) gets
        −1e99 and is last, where some databases would put a NULL first.

        Raises
        ------
        TypeError
            For a name that is not text, or text in place of a list of names.
        ValueError
            For another number of names, a name that is empty, has a control character or more than 63 bytes, where
            some databases cut it off, for two names that differ in capitals only, or not at all, and for the
            scorer's own names in another order.
        """
        if feature_names is None and self.feature_names is None:
            raise TypeError("feature_names: this scorer does not know the names of its features; give one each weight")
        names = _listed(self.feature_names if feature_names is None else feature_names, len(self.weights))
        own = self.feature_names or ()
        if sorted(names) == sorted(own) and tuple(names) != own:
            i = next(i for i, name in enumerate(names) if name != own[i])
            raise ValueError(
                f"feature_names[{i}] is {names[i]!r}, but weights[{i}] is that of {own[i]!r}: the names are those of "
                "this scorer in another order; leave them out"
            )
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            if not name.strip() or not all(c.isprintable() for c in name):
                raise ValueError(
                    f"feature_names[{i}] is {name!r}: empty, or with a control character; rename the column"
                )
            if len(name.encode("utf-8", errors="replace")) > LONGEST_NAME:
                raise ValueError(
                    f"feature_names[{i}] has more than {LONGEST_NAME} bytes: databases cut longer names off; rename it"
                )
            same = first.setdefault(name.casefold(), i)
            if same != i:
                raise ValueError(
                    f"feature_names[{i}] is {name!r}, feature_names[{same}] is {names[same]!r}: databases that ignore "
                    "capitals take them for one; rename one"
                )
        terms = [
            f'{np.format_float_scientific(w, trim="0")} * "{name.replace(chr(34), 2 * chr(34))}"'
            for name, w in zip(names, self.weights, strict=True)
            if w != 0
        ]
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [f"({' + '.join(pair)})" if len(pair) == 2 else pair[0] for pair in pairs]
        return f"COALESCE({terms[0]}, {MISSING})" if terms else "0.0e+00"

    def save(self, path: str | Path) -> None:
        """Keep the scorer at ``path`` as JSON, whole or not at all; :meth:`load` gives the same digits."""
        record: dict[str, Any] = {"format": self.FORMAT, "weights": self.weights}
        names = {} if self.feature_names is None else {"feature_names": list(self.feature_names)}
        write_json(Path(path), record | names | {name: getattr(self, name) for name in self.KEPT})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote to ``path``, by this version of the package or another.

        Raises
        ------
        FileNotFoundError
            No such file.
        ValueError
            For a file that is not JSON, or whose format is not one of ours.
        """
        file = Path(path)
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"path: {file.name} is no JSON file ({error}); give one that save() wrote") from error
        kinds: list[type[LinearRanker]] = [LinearRanker, *_below(LinearRanker)]
        known = {kind.FORMAT for kind in kinds}
        form = record.get("format") if isinstance(record, dict) else None
        if form not in known:
            raise ValueError(f"path: {file.name} has the format {form!r}: expected one of {', '.join(sorted(known))}")
        missing = [name for name in ("weights", *cls.KEPT) if name not in record]
        if missing:
            raise ValueError(f"path: {file.name} ({form}) lacks {', '.join(missing)}, which {cls.__name__} needs")
        names = {"feature_names": record["feature_names"]} if "feature_names" in record else {}
        return cls(**names, **{name: record[name] for name in ("weights", *cls.KEPT)})


def _below(kind: type[LinearRanker]) -> list[type[LinearRanker]]:
    return [deeper for direct in kind.__subclasses__() for deeper in (direct, *_below(direct))]


def names_of(features: Any) -> tuple[str, ...] | None:
    """The names of the columns of ``features``, if these are a data frame whose columns have different names in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.ranking.linear import names_of
    >>> names_of(pd.DataFrame({"clicks": [1], "price": [0]})), names_of([[1, 0]])
    (('clicks', 'price'), None)
    """
    names = tuple(getattr(features, "columns", ()))
    words = bool(names) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return names if words else None


def _listed(feature_names: Any, n_weights: int) -> list[str]:
    """``feature_names`` as a list, checked to be text and as many as there are weights."""
    if isinstance(feature_names, str):
        raise TypeError("feature_names is str: expected a list of names, one for each weight")
    names = list(feature_names)
    if len(names) != n_weights:
        raise ValueError(f"feature_names: expected {n_weights} names, one for each weight, got {len(names)}")
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"feature_names[{i}] is {type(name).__name__}: expected the name of a column")
    return names


def _named(feature_names: Any, n_weights: int) -> list[str]:
    """As :func:`_listed`, and all of them different."""
    names = _listed(feature_names, n_weights)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"feature_names[{i}] is {name!r}, as is feature_names[{names.index(name)}]: rename one")
    return names


def _columns(there: list[Any], names: Sequence[str]) -> list[str]:
    """The ``names`` among the columns that a data frame has, in their order."""
    for i, name in enumerate(names):
        if there.count(name) != 1:
            has = "has it twice" if name in there else f"has {', '.join(map(repr, there))}"
            raise ValueError(
                f"features: weights[{i}] is that of {name!r}, and the data frame {has}: give each feature that was "
                "learnt from in one column of its name, or an array with the columns in the order of the weights"
            )
    return list(names)
