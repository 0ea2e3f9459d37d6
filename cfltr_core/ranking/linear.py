"""A linear scorer f(x) = w · x that can be kept in a file and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.files import write_json

# Numbers that are taken to double precision at once.
BLOCK = 1 << 20
# Bytes of a column's name that every common database keeps.
LONGEST_NAME = 63


@dataclass(frozen=True, eq=False, repr=False)
class LinearRanker:
    """A linear scorer f(x) = w · x: documents are ranked by it, largest first.

    Parameters
    ----------
    weights : (n_features,) finite
        w, for features as they are in the data.

    Raises
    ------
    ValueError
        For weights that are no finite vector.

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
    '(2.0e+00 * "clicks last year" + -1.0e+00 * "price")'
    """

    weights: FloatArray
    # What a file of this class is called, and what it keeps beside the weights; a reader asks for nothing else.
    FORMAT: ClassVar[str] = "cfltr linear ranker 1"
    KEPT: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        object.__setattr__(self, "weights", checks.finite_vector(weights, weights.size, "weights"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.weights)} weights)"

    def decision_function(self, features: ArrayLike) -> FloatArray:
        """w · x of each row of ``features`` (n_docs, n_features), float64 of shape (n_docs,).

        Raises
        ------
        ValueError
            For features of another width.
        """
        x = np.asarray(features)
        if x.ndim != 2 or x.shape[1] != len(self.weights):
            raise ValueError(f"features: expected shape (n_docs, {len(self.weights)}), got {x.shape}")
        out = np.empty(len(x))
        rows = max(1, BLOCK // max(1, x.shape[1]))
        for i in range(0, len(x), rows):
            out[i : i + rows] = x[i : i + rows].astype(np.float64, copy=False) @ self.weights
        return out

    def sql(self, feature_names: Sequence[str]) -> str:
        """The score as an SQL expression of columns with these ``feature_names``, one for each weight.

        Names are quoted as the standard asks ("double" quotes, doubled inside), numbers are written in full and with an
        exponent, which makes them floating-point numbers, and sums are nested in pairs, since databases limit how deep
        an expression may be.  A weight of 0 is left out, and with it its column.

        Raises
        ------
        TypeError
            For a name that is not text, or text in place of a list of names.
        ValueError
            For another number of names, a name that is empty, has a control character or more than 63 bytes, where
            some databases cut it off, and for two names that differ in capitals only, or not at all.
        """
        if isinstance(feature_names, str):
            raise TypeError("feature_names is str: expected a list of names, one for each weight")
        names = list(feature_names)
        if len(names) != len(self.weights):
            raise ValueError(
                f"feature_names: expected {len(self.weights)} names, one for each weight, got {len(names)}"
            )
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            if not isinstance(name, str):
                raise TypeError(f"feature_names[{i}] is {type(name).__name__}: expected the name of a column")
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
        return terms[0] if terms else "0.0e+00"

    def save(self, path: str | Path) -> None:
        """Keep the scorer at ``path`` as JSON, whole or not at all; :meth:`load` gives the same digits."""
        record: dict[str, Any] = {"format": self.FORMAT, "weights": self.weights.tolist()}
        write_json(Path(path), record | {name: getattr(self, name) for name in self.KEPT})

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
        return cls(**{name: record[name] for name in ("weights", *cls.KEPT)})


def _below(kind: type[LinearRanker]) -> list[type[LinearRanker]]:
    return [deeper for direct in kind.__subclasses__() for deeper in (direct, *_below(direct))]
