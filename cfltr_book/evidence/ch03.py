"""How the claims of chapter 3 are measured: what clicks can tell of a metric, and what a choice by one loses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product
from math import comb
from typing import Any

import numpy as np

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch03 import by_rank, choices
from cfltr_book.theory.exact import expectation
from cfltr_core.checks import FloatArray, IntArray

Arrays = Mapping[str, FloatArray]
EXACTLY: dict[str, Any] = {"rtol": 0.0, "atol": 1e-12}
ADDITIVE, PRODUCTS, DIVIDED = slice(0, 4), slice(4, 6), slice(6, 8)


def _vectors(n: int) -> IntArray:
    """All 0/1 vectors of n documents, in binary order."""
    return np.array(list(product([0, 1], repeat=n)))


def _coefficients(values: FloatArray) -> FloatArray:
    """Those of the polynomial, from the values at all 0/1 vectors in binary order: (2ⁿ, ...)."""
    n = len(values).bit_length() - 1
    table = values.reshape((2,) * n + (-1,))
    for axis in range(n):
        low, high = np.split(table, 2, axis=axis)
        table = np.concatenate([low, high - low], axis=axis)
    return table.reshape(values.shape)


def _wheel(p: FloatArray, starts: FloatArray) -> FloatArray:
    """A law of looks with the propensities p, (2, ..., 2): d is examined if one pointer falls into its arc.

    The arc of d begins at ``starts[d]``, as a share of the circle, and has the length ``p[d]``.
    """
    cuts = np.unique(np.concatenate([[0, 1], starts, (starts + p) % 1]))
    middle, law = (cuts[:-1] + cuts[1:]) / 2, np.zeros((2,) * len(p))
    for point, chance in zip(middle, np.diff(cuts), strict=True):
        law[tuple(((point - starts) % 1 < p).astype(int))] += chance
    return law


def _independent(p: FloatArray) -> FloatArray:
    law = np.where(_vectors(len(p)), p, 1 - p).prod(axis=1)
    return np.asarray(law.reshape((2,) * len(p)))


def _of_clicks(law: FloatArray, x: IntArray) -> FloatArray:
    """The law of the clicks in binary order, given that of the looks: on irrelevant documents there are none."""
    for axis, relevant in enumerate(x):
        if not relevant:
            unclicked = law.sum(axis=axis, keepdims=True)
            law = np.concatenate([unclicked, 0 * unclicked], axis=axis)
    return law.ravel()


def _estimable(p: FloatArray, k: int, rng: np.random.Generator) -> int:
    """The dimension of the space of metrics that some function of the clicks in k sessions estimates without bias.

    Unbiasedness is a system of linear equations in the function's values: one for each relevance and each of many laws.
    """
    rows, sides = [], []
    for _ in range(80 * k):
        share = rng.random()
        law = share * _wheel(p, rng.random(len(p))) + (1 - share) * _wheel(p, rng.random(len(p)))
        for x, side in zip(_vectors(len(p)), np.eye(law.size), strict=True):
            row = clicks = _of_clicks(law, x)
            for _ in range(k - 1):
                row = np.outer(row, clicks).ravel()
            rows.append(row)
            sides.append(side)
    equations, wanted = np.array(rows), np.array(sides)
    fit = np.linalg.lstsq(equations, wanted, rcond=1e-11)[0]
    missed = np.linalg.svd(wanted - equations @ fit, compute_uv=False)
    return int((missed < 1e-7).sum())


def _counted(run: Run, sessions: tuple[int, ...]) -> Arrays:
    """For several propensities: as many metrics as the theorem names, documents that are always seen among them."""
    rng = run.rng(run.seed, [304, *sessions])
    shops = ((0.7, 0.5, 0.3), (1, 1 / 2, 1 / 3), (0.9, 0.8, 0.6, 0.4))
    cases = [(np.array(p, dtype=np.float64), k) for p in shops for k in sessions if k * len(p) <= 9]
    left = [_estimable(p, k, rng) for p, k in cases]
    right = []
    for p, k in cases:
        unsure = int((p < 1).sum())
        right.append(2 ** (len(p) - unsure) * sum(comb(unsure, size) for size in range(k + 1)))
    return {"left": np.array(left, dtype=np.float64), "right": np.array(right, dtype=np.float64)}


# The steps of both proofs, on three documents: all vectors, which of them contain which, and twenty laws of looks.
P3 = np.array([0.7, 0.5, 0.3])
V3 = _vectors(3)
WITHIN = np.all(V3[None] <= V3[:, None], axis=2)  # [c, U]: whether c contains U
SIZE = V3.sum(axis=1)


def _mean_of(g: FloatArray, law: FloatArray) -> FloatArray:
    """E[g] of one session, for every relevance."""
    return np.array([_of_clicks(law, x) @ g for x in V3])


def _laws(rng: np.random.Generator) -> list[FloatArray]:
    return [_independent(P3), *(_wheel(P3, rng.random(3)) for _ in range(20))]


def _check_one_session(rng: np.random.Generator) -> None:
    """The five steps of the first proof."""
    for law in _laws(rng):
        a, b, g = rng.normal(), rng.normal(size=3), rng.normal(size=8)
        assert np.allclose(_mean_of(a + V3 @ (b / P3), law), a + V3 @ b, **EXACTLY)  # step 1
        g_of, joint = _coefficients(g), law.ravel() @ WITHIN
        assert np.allclose(WITHIN @ g_of, g, **EXACTLY)  # step 2: g is this polynomial, and so
        assert np.allclose(_mean_of(g, law), WITHIN @ (g_of * joint), **EXACTLY)
        assert np.allclose(_coefficients(_mean_of(g, law)), g_of * joint, **EXACTLY)  # step 3
    start = _independent(P3).ravel()
    for u in np.flatnonzero(SIZE >= 2):  # step 4: only p_U moves, by t
        t = start[WITHIN[u]].min() / 2
        moved = start + t * WITHIN[u] * (-1.0) ** (SIZE[u] - SIZE)
        assert moved.min() > 0
        assert np.allclose((moved - start) @ WITHIN, np.where(np.arange(8) == u, t, 0), **EXACTLY)
        g = rng.normal(size=8)  # step 5: the expectations differ by t · g_U where x_U = 1
        change = _mean_of(g, moved.reshape(2, 2, 2)) - _mean_of(g, start.reshape(2, 2, 2))
        assert np.allclose(change, t * _coefficients(g)[u] * WITHIN[:, u], **EXACTLY)


def _check_two_sessions(rng: np.random.Generator) -> None:
    """The five steps of the second proof, for two sessions."""
    place = (V3[:, None] | V3[None]) @ np.array([4, 2, 1])  # [U_1, U_2]: index of their union
    small = (SIZE[:, None] <= 1) & (SIZE[None] <= 1)

    def mean_of_two(g: FloatArray, law: FloatArray) -> FloatArray:
        clicks = [_of_clicks(law, x) for x in V3]
        return np.array([one @ g @ one for one in clicks])

    x_ab = (V3[:, :1] / P3[0]) * (V3[:, 1] / P3[1])  # 1 in one session, 2 in the other
    wanted = (V3[:, 0] * V3[:, 1]).astype(np.float64)
    rows = []
    for law in _laws(rng):
        assert np.allclose(mean_of_two(x_ab, law), wanted, **EXACTLY)  # step 1
        g, joint = rng.normal(size=(8, 8)), law.ravel() @ WITHIN
        terms = _coefficients(_coefficients(g).T).T * np.outer(joint, joint)
        assert np.allclose(mean_of_two(g, law), [(terms * WITHIN[x][place]).sum() for x in range(8)], **EXACTLY)  # 2
        by_union = np.bincount(place.ravel(), terms.ravel(), minlength=8)
        assert np.allclose(_coefficients(mean_of_two(g, law)), by_union, **EXACTLY)  # step 3
        rows += [np.outer(clicks, clicks).ravel() for clicks in (_of_clicks(law, x) for x in V3)]
    # Step 4: any unbiased g, here one from the null space, has no more than the terms of single documents.
    _, sizes, basis = np.linalg.svd(np.array(rows))
    null = basis[np.sum(sizes > 1e-9 * sizes[0]) :]
    g = x_ab + (rng.normal(size=len(null)) @ null).reshape(8, 8)
    for law in _laws(rng)[:6]:
        joint = law.ravel() @ WITHIN
        terms = _coefficients(_coefficients(g).T).T * np.outer(joint, joint) * small
        assert np.allclose(np.bincount(place.ravel(), terms.ravel(), minlength=8), _coefficients(wanted), atol=1e-8)
    assert SIZE[place[small]].max() == 2  # step 5


@measures("A18-table1-monotone", section="degrees")
def table1_monotone(run: Run) -> Arrays:
    """Rank weights, as risks, at ranks 1 to 49 and at the next; that of RBP as it is printed."""
    r = np.arange(1, 51)
    printed = [cf.average_rank()(r), cf.dcg()(r), cf.precision(5)(r), -(1 - 0.8) / 0.8**r]
    return {"lower": np.array([w[:-1] for w in printed]), "upper": np.array([w[1:] for w in printed])}


@measures("B-only-additive", section="degrees")
def only_additive(run: Run) -> Arrays:
    """The degrees of eight metrics up to eight documents, the steps of the proof, and one session counted."""
    for n in range(2, 9):
        x = _vectors(n).astype(np.float64)
        found = np.abs(_coefficients(by_rank(x))) > 1e-12
        assert (found * x.sum(axis=1)[:, None]).max(axis=0).tolist() == [1, 1, 1, 1, n, n, n, n]
    _check_one_session(run.rng(run.seed, 305))
    return _counted(run, (1,))


@measures("B-degree-sessions", section="degrees")
def degree_sessions(run: Run) -> Arrays:
    """The steps of the proof, and two and three sessions counted."""
    _check_two_sessions(run.rng(run.seed, 306))
    return _counted(run, (2, 3))


# Four documents of which three are relevant, all rankings of them, and three ways to look with the same propensities.
P4, REL4 = np.array([1 / 2, 1, 1 / 4, 1 / 3]), np.array([1, 0, 1, 1])
V4 = _vectors(4)
ORDERS = np.array(list(permutations(range(4))))
TRUTH = by_rank(REL4[ORDERS].astype(np.float64))  # ranking × metric
LAWS = {
    "independent": _independent(P4),
    "nested": _wheel(P4, np.zeros(4)),
    "apart": _wheel(P4, np.array([0, 0, 0.5, 0.75])),
}


def _sessions_of(law: FloatArray, number: int) -> tuple[FloatArray, FloatArray]:
    """Every outcome of so many sessions: its chance, and its clicks (outcome, session, document)."""
    one = _of_clicks(law, REL4)
    picks = np.array(list(product(np.flatnonzero(one), repeat=number)))
    return one[picks].prod(axis=1), V4[picks].astype(np.float64)


def _plugged(law: FloatArray, number: int) -> FloatArray:
    """What plugging in expects: ranking × metric."""
    chance, clicks = _sessions_of(law, number)
    return np.tensordot(chance, by_rank((clicks.mean(axis=1) / P4)[:, ORDERS]), 1)


@measures("A18-additive-any-dependence", section="plugging")
def additive_any_dependence(run: Run) -> Arrays:
    """Additive metrics from one session and from two, by each law."""
    found = [_plugged(law, number)[:, ADDITIVE] for number in (1, 2) for law in LAWS.values()]
    return {"left": np.array(found), "right": np.array([TRUTH[:, ADDITIVE]] * len(found))}


@measures("B-multilinear-independent", section="plugging")
def multilinear_independent(run: Run) -> Arrays:
    """Reciprocal rank and ERR from two sessions with independent looks."""
    return {"left": _plugged(LAWS["independent"], 2)[:, PRODUCTS], "right": TRUTH[:, PRODUCTS]}


@measures("B-multilinear-dependent", section="plugging")
def multilinear_dependent(run: Run) -> Arrays:
    """The same with readers from the top."""
    return {"left": _plugged(LAWS["nested"], 2)[:, PRODUCTS], "right": TRUTH[:, PRODUCTS]}


@measures("B-normalised-plug-in", section="plugging")
def normalised_plug_in(run: Run) -> Arrays:
    """Average precision and nDCG from two sessions with independent looks."""
    return {"left": _plugged(LAWS["independent"], 2)[:, DIVIDED], "right": TRUTH[:, DIVIDED]}


@measures("B-products-unbiased", section="plugging")
def products_unbiased(run: Run) -> Arrays:
    """The four other metrics from four sessions, the click on each document from one of its own, by each law."""
    table = by_rank(V4[:, ORDERS].astype(np.float64))  # relevance × ranking × metric
    found = []
    for law in LAWS.values():
        chance, clicks = _sessions_of(law, 4)
        x = clicks[:, np.arange(4), np.arange(4)] / P4
        share = np.where(V4, x[:, None], 1 - x[:, None]).prod(axis=2)  # of each relevance, in each outcome
        found.append(np.tensordot(chance @ share, table, 1)[:, ADDITIVE.stop :])
    return {"left": np.array(found), "right": np.array([TRUTH[:, ADDITIVE.stop :]] * len(found))}


@measures("B-curves-decide", section="choice")
def curves_decide(run: Run) -> Arrays:
    """Every relevance and pair of rankings of five documents; Prec@k, DCG and 200 random weights that never rise."""
    x = np.array([v for v in _vectors(5) if 0 < v.sum() < 5], dtype=np.float64)
    first, second = np.array(list(permutations(range(len(x)), 2))).T
    same = x[first].sum(axis=1) == x[second].sum(axis=1)  # pages of the same documents
    change = (x[first] - x[second])[same]
    draws = -np.sort(-run.rng(run.seed, 307).random((200, 5)), axis=1)
    weights = np.vstack([np.tri(5), 1 / np.log2(1 + np.arange(1, 6)), draws])
    steps = np.diff(weights, axis=1, append=0)  # minus the falls of the weight
    counts = np.cumsum(change, axis=1)
    assert np.allclose(change @ weights.T, -counts @ steps.T, **EXACTLY)  # the sum by parts of the proof
    return {
        "left": (counts >= 0).all(axis=1).astype(np.float64),
        "right": (change @ weights.T >= -1e-12).all(axis=1).astype(np.float64),
    }


def _lost(run: Run, chooser: str, clicks: int) -> FloatArray:
    """The loss of MRR by this choice, seed by seed."""
    frame = choices(run)
    rows = frame[(frame["chooser"] == chooser) & (frame["clicks"] == clicks)]
    return np.asarray(rows.sort_values("seed")["lost"], dtype=np.float64)


@measures("B-dcg-stands-in", section="choice")
def dcg_stands_in(run: Run) -> Arrays:
    """What choosing by DCG loses, from the smallest log of the scale."""
    return {"values": _lost(run, "DCG", run.size.clicks[0])}


@measures("B-few-clicks-whole-page", section="choice")
def few_clicks_whole_page(run: Run) -> Arrays:
    """What choosing by Prec@1 and by DCG lose, from the same logs."""
    few = run.size.clicks[0]
    return {"larger": _lost(run, "Prec@1", few), "smaller": _lost(run, "DCG", few)}


@measures("control-choice-with-labels", section="choice")
def choice_with_labels(run: Run) -> Arrays:
    """The same with labels."""
    return {"left": _lost(run, "Prec@1", 0), "right": _lost(run, "DCG", 0)}


# Three documents in any order, as a page of the shop; ranks are examined with probability 1, 1/2, 1/3.
PAGES = np.array(list(permutations(range(3))))  # rank − 1 of each document
GAINS = (1 / np.log2(1 + np.arange(1, 4)))[PAGES]  # ranking × document


def _expected_ips(attraction: list[float]) -> FloatArray:
    """Of all six rankings, as a gain, by enumeration."""
    user = cf.PositionBasedUser(cf.power_examination(1.0))
    shop = cf.DeterministicPolicy(np.array([1, 2, 3]), np.array([0, 3]))
    case: dict[str, Any] = {"user": user, "relevance": attraction, "sessions": [1]}
    return np.asarray(expectation(lambda log: [cf.ips(log, lam=lam).value for lam in GAINS], shop, **case))


@measures("N-graded-order", section="fails")
def graded_order(run: Run) -> Arrays:
    """True times expected difference of every two rankings: negative where grade 1 is clicked like grade 2."""
    first, second = np.triu_indices(6, 1)
    true, expected = GAINS @ np.array([0, 1, 2]), _expected_ips([0, 0.9, 1])
    agreement = (true[first] - true[second]) * (expected[first] - expected[second])
    return {"lower": np.zeros(len(first)), "upper": agreement}


@measures("B-affine-clicks", section="fails")
def affine_clicks(run: Run) -> Arrays:
    """The steps of the proof, and the expected estimate of all rankings where clicks are affine in the grade."""
    rng = run.rng(run.seed, 308)
    for _ in range(200):  # steps 2 and 3: a change of sign between two turning points
        (a, b, c), (pa, pb, pc) = np.sort(rng.random(3)), np.sort(rng.random(3))
        v = -np.sort(-rng.random(3))
        change = v @ np.array([c, a, b]) - v @ np.array([b, c, a])
        assert np.isclose(change, (v[0] - v[1]) * (c - b) - (v[1] - v[2]) * (b - a), **EXACTLY)
        between = np.array([1 + np.mean([(b - a) / (c - b), (pb - pa) / (pc - pb)]), 1, 0])
        turned = [between @ (np.array([z, x, y]) - np.array([y, z, x])) for x, y, z in ((a, b, c), (pa, pb, pc))]
        assert turned[0] * turned[1] < 0
    closed = 0.4 * GAINS @ np.array([0, 1, 2]) + 0.1 * GAINS.sum(axis=1)
    return {"left": _expected_ips([0.1, 0.5, 0.9]), "right": closed}
