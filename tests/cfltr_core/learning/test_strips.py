"""Rectangles side by side in one vector hold what they hold apart: against literal loops, and to the last bit."""

import numpy as np
import oracles
import pytest

from cfltr_core.learning import bounds
from cfltr_core.learning.bounds import ClickedLists
from cfltr_core.learning.strips import MARK, Strip, strips

CUTS = np.array([0, 1, 5, 8, 12, 13, 20, 60, 63])
# Lists of one, three, four, seven and forty documents; documents 2 and 6 occur twice, 0 and 12 have no rival.
DOCUMENTS = np.array([6, 2, 0, 3, 2, 19, 6, 9, 12, 10, 14, 59, 20, 33, 61, 4])
BLOCKS = (1, 5, 9, 30, 1 << 14)


def scores(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(CUTS[-1]) < 0.5, rng.integers(-1, 3, size=CUTS[-1]), rng.normal(size=CUTS[-1]))


def cut(block: int, monkeypatch: pytest.MonkeyPatch) -> tuple[ClickedLists, list[Strip]]:
    monkeypatch.setattr(bounds, "BLOCK", block)
    lists = ClickedLists(CUTS, DOCUMENTS)
    return lists, strips(lists)


def rows_of(strip: Strip, pairs: np.ndarray) -> list[np.ndarray]:
    return [row for rectangle in strip.rectangles(pairs) for row in rectangle]


@pytest.mark.oracle("strips.strips", "bounds.ClickedLists.rectangle")
def test_every_rectangle_is_in_one_strip_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = set()
    for block in BLOCKS:
        lists, found = cut(block, monkeypatch)
        assert [i for strip in found for i in strip.blocks] == list(range(len(lists.shapes)))
        sizes = [n * m for n, m in lists.shapes]
        for strip, after in zip(found, [*found[1:], None], strict=True):
            total = sum(sizes[i] for i in strip.blocks)
            assert strip.single == (len(strip.blocks) == 1)
            assert total <= block or strip.single
            # The next rectangle would have been too much.
            assert after is None or total + sizes[after.blocks[0]] > block
            terms = [t for i in strip.blocks for t in lists.rectangle(i)[0]]
            assert strip.terms.tolist() == terms
            lengths.add(len(strip.blocks))
            for i in strip.blocks:
                terms, columns, _, _ = lists.rectangle(i)
                assert {len(oracles.rivals(CUTS, d)) + 1 for d in DOCUMENTS[terms]} == {columns}
    assert len(lengths) > 2
    assert strips(ClickedLists(CUTS, np.array([], dtype=int))) == []


@pytest.mark.oracle("strips.Strip.gaps", "strips.Strip.rectangles", "strips.Strip.centres",
                    "bounds.ClickedLists.gaps_of")  # fmt: skip
@pytest.mark.parametrize("block", BLOCKS)
def test_pairs(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lists, found = cut(block, monkeypatch)
    s = scores(1)
    for strip in found:
        z, centres = strip.gaps(s), strip.centres()
        assert z.shape == centres.shape
        assert centres.dtype == np.float32
        for t, row, centre in zip(strip.terms, rows_of(strip, z), rows_of(strip, centres), strict=True):
            d = DOCUMENTS[t]
            query = sorted([*oracles.rivals(CUTS, d), d])
            np.testing.assert_allclose(row, [1 - (s[d] - s[y]) for y in query], atol=1e-14)
            assert centre.tolist() == [np.float32(MARK) if y == d else 0.5 for y in query]
        n_pairs = sum(row.size for row in rows_of(strip, z))
        assert (centres == 0.5).sum() == n_pairs - len(strip.terms)
        for i, rectangle in zip(strip.blocks, strip.rectangles(z), strict=True):
            assert np.array_equal(rectangle, lists.gaps_of(i, s))


@pytest.mark.oracle("strips.Strip.sums", "strips.Strip.products", "strips.Strip.chosen")
@pytest.mark.parametrize("block", BLOCKS)
def test_sums_of_rows(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near the literal sums, and equal to what NumPy gives for the rectangle."""
    for strip in cut(block, monkeypatch)[1]:
        z, other = (strip.gaps(scores(seed).astype(np.float32)) for seed in (2, 3))
        rows = list(zip(rows_of(strip, z), rows_of(strip, other), strict=True))
        singles = [np.add.reduce(rectangle, axis=1) for rectangle in strip.rectangles(z)]
        assert np.array_equal(strip.sums(z), np.concatenate(singles))
        np.testing.assert_allclose(strip.sums(z), [sum(map(float, row)) for row, _ in rows], rtol=1e-5, atol=1e-5)
        doubles = [np.add.reduce(rectangle, axis=1, dtype=np.float64) for rectangle in strip.rectangles(z)]
        assert np.array_equal(strip.sums(z, np.float64), np.concatenate(doubles))
        both = zip(strip.rectangles(z), strip.rectangles(other), strict=True)
        inner = np.concatenate([[np.einsum("ij,ij->i", a, b) for b in (c, a)] for a, c in both], axis=1)
        assert np.array_equal(strip.products(z, (other, z)), inner)
        literal = [sum(float(a) * float(b) for a, b in zip(*pair, strict=True)) for pair in rows]
        np.testing.assert_allclose(strip.products(z, (other, z))[0], literal, rtol=1e-5, atol=1e-5)
        terms, rivals = strip.chosen(z > 1.2)
        wanted = [
            (t, y)
            for t, (row, _) in zip(strip.terms, rows, strict=True)
            for y, value in zip(sorted([*oracles.rivals(CUTS, DOCUMENTS[t]), DOCUMENTS[t]]), row, strict=True)
            if value > 1.2
        ]
        assert list(zip(terms, rivals, strict=True)) == wanted


@pytest.mark.oracle("strips.Strip.push")
@pytest.mark.parametrize("block", BLOCKS)
def test_forces(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Minus the gradient of Σ price · S, strip by strip, and to the last bit that of the rectangles."""
    s, price = scores(4), np.random.default_rng(4).uniform(0, 2, size=len(DOCUMENTS))
    lists, found = cut(block, monkeypatch)
    for kind in (np.float64, np.float32):
        given = s.astype(kind)
        whole, apart = np.zeros(len(s)), np.zeros(len(s))
        for strip in found:
            part = np.zeros(len(s))
            strip.push(
                part, (strip.gaps(given) > 0).astype(kind) * (strip.centres() > MARK).astype(kind), price[strip.terms]
            )
            _, gradient = oracles.bound(s, CUTS, DOCUMENTS[strip.terms], price[strip.terms], lambda r: r, lambda r: 1.0)
            np.testing.assert_allclose(part, [-g for g in gradient], rtol=1e-6, atol=1e-6)
            slope = strip.gaps(given)
            slope *= strip.centres() > 0
            strip.push(whole, slope.copy(), price[strip.terms])
            for i, rectangle in zip(strip.blocks, strip.rectangles(slope), strict=True):
                terms, _, start, first = lists.rectangle(i)
                lists.push(apart, terms, start, first, rectangle.copy(), price[terms])
        assert np.array_equal(whole, apart)
