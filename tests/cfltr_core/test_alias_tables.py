"""The alias method on every small list of whole weights: the law that a table implies is the one it was made from."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from cfltr_core.sampling import AliasTable


def implied(keep: list[float], alias: list[int]) -> list[float]:
    law = [0.0] * len(keep)
    for column, share in enumerate(keep):
        law[column] += share / len(keep)
        law[alias[column]] += (1 - share) / len(keep)
    return law


def test_every_small_list_of_weights() -> None:
    """Columns that are exactly full, light and heavy ones in every order."""
    for n in range(1, 6):
        for weights in itertools.product(range(4), repeat=n):
            if not sum(weights):
                continue
            table = AliasTable.build(weights)
            law = [float(Fraction(weight, sum(weights))) for weight in weights]
            np.testing.assert_allclose(implied(table.keep.tolist(), table.alias.tolist()), law, rtol=0, atol=1e-15)
            np.testing.assert_allclose(table.probabilities(), law, rtol=0, atol=1e-15)


def test_a_draw_is_a_column_and_a_comparison() -> None:
    table = AliasTable([0.25, 1.0, 0.0], [1, 1, 0])
    for size in (5, (2, 3), 0):
        found = table.draw(size, np.random.default_rng(7))
        rng = np.random.default_rng(7)
        column = rng.integers(3, size=size)
        chance = rng.random(size)
        expected = [
            c if u < [0.25, 1.0, 0.0][c] else [1, 1, 0][c]
            for c, u in zip(np.ravel(column).tolist(), np.ravel(chance).tolist(), strict=True)
        ]
        assert found.shape == np.shape(column)
        assert found.ravel().tolist() == expected
    assert repr(table) == "AliasTable(3 categories)"
