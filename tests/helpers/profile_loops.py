"""The generated corpora once more, document by document.  Imports only numpy and the other loops, and
draws as the generator draws.

The numbers are a second copy on purpose: a change of either must be made twice.
"""

import math
from collections.abc import Sequence

import numpy as np
from oracles import warped

YAHOO = {"law": "gamma", "mean": 23.0, "longest": 139, "shares": (0.26, 0.36, 0.28, 0.08, 0.02)}
ISTELLA = {"law": "beta", "mean": 103.0, "longest": 182, "shares": (0.89, 0.02, 0.04, 0.03, 0.02)}
ALIGNED = {"noise": 0.7, "minority": 0.0, "longer": 1}
MIXED = {"noise": 1.05, "minority": 1 / 3, "longer": 2}
CORPORA = {
    "yahoo-like": {**YAHOO, **ALIGNED},
    "yahoo-like:mixed": {**YAHOO, **MIXED},
    "istella-like": {**ISTELLA, **ALIGNED},
    "istella-like:mixed": {**ISTELLA, **MIXED},
}

FACTORS, NUISANCE, SHAPE = 8, 12, 2.0


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def size_of(name: str) -> tuple[tuple[int, int, int], int]:
    """At scale smoke: queries of train, validation and test, and the features of each document."""
    return ((60, 30, 40) if name.startswith("istella") else (200, 80, 120)), 20


def drawn_lengths(k: dict, n_queries: int, rng: np.random.Generator) -> list[int]:
    mean, longest = k["longer"] * k["mean"] - 0.5, k["longer"] * k["longest"]
    if k["law"] == "gamma":
        return [1 + math.floor(min(v, longest - 1)) for v in rng.gamma(SHAPE, mean / SHAPE, size=n_queries).tolist()]
    # Mean of Beta(a, b) is a / (a + b).
    other = SHAPE * (1 - mean / longest) / (mean / longest)
    return [1 + math.floor(min(v * longest, longest - 1)) for v in rng.beta(SHAPE, other, size=n_queries).tolist()]


def corpus(
    name: str, seed: int, sizes: Sequence[int], n_features: int, n_checked: int
) -> list[tuple[list[int], list[int], list[list[float]]]]:
    """``(offsets, grades, features of the first n_checked queries)`` of train, validation and test."""
    k = CORPORA[name]
    total = FACTORS + NUISANCE
    rng = np.random.default_rng([seed, 0])
    direction = rng.normal(size=FACTORS).tolist()
    norm = math.sqrt(dot(direction, direction))
    direction = [v / norm for v in direction]
    order = rng.permutation(FACTORS).tolist()
    pairs = [(order[i], order[i + 1]) for i in range(0, FACTORS, 2)]
    loadings = []
    for _ in range(n_features):
        row = [0.0] * total
        values = rng.normal(size=2).tolist()
        for place, value in zip(rng.choice(FACTORS, size=2, replace=False).tolist(), values, strict=True):
            row[place] = value
        values = rng.normal(size=2).tolist()
        for place, value in zip(rng.choice(NUISANCE, size=2, replace=False).tolist(), values, strict=True):
            row[FACTORS + place] = 2.0 * value
        norm = math.sqrt(dot(row, row))
        loadings.append([v / norm for v in row])
    blur = [0.8 * v for v in rng.uniform(0.3, 1.7, size=n_features).tolist()]
    kinds = rng.choice(4, size=n_features, p=(0.4, 0.25, 0.2, 0.15)).tolist()
    of_query = (rng.random(n_features) < 0.15).tolist()
    away = rng.normal(size=FACTORS).tolist()
    along = dot(away, direction)
    away = [a - along * d for a, d in zip(away, direction, strict=True)]
    norm = math.sqrt(dot(away, away))
    angle = math.radians(70.0)
    other = [math.cos(angle) * d + math.sin(angle) * a / norm for a, d in zip(away, direction, strict=True)]

    parts = []
    for part, n_queries in enumerate(sizes, start=1):
        rng = np.random.default_rng([seed, part])
        offsets = [0]
        for length in drawn_lengths(k, n_queries, rng):
            offsets.append(offsets[-1] + length)
        n_docs = offsets[-1]
        topic = 0.5 * rng.normal(size=(n_queries, total))
        own = rng.normal(size=(n_docs, total))
        heavy = rng.standard_t(3, size=n_docs).tolist()
        shift = rng.normal(size=n_queries).tolist()
        noise = rng.normal(size=(n_docs, n_features))
        shared = rng.normal(size=(n_queries, n_features))
        turned = (rng.random(n_queries) < k["minority"]).tolist() if k["minority"] else [False] * n_queries
        utilities, features = [], []
        for q in range(n_queries):
            about = topic[q].tolist()
            wanted = other if turned[q] else direction
            for d in range(offsets[q], offsets[q + 1]):
                z = [about[j] + math.sqrt(0.75) * own[d, j] for j in range(total)]
                utilities.append(
                    dot(wanted, z[:FACTORS])
                    + math.fsum(z[a] * z[b] for a, b in pairs) / math.sqrt(len(pairs))
                    + 0.4 * math.tanh(2.0 * z[pairs[0][0]])
                    + k["noise"] * heavy[d]
                    + 0.35 * shift[q]
                )
                if q < n_checked:
                    row = []
                    for i in range(n_features):
                        source, extra = (about, shared[q, i]) if of_query[i] else (z, blur[i] * noise[d, i])
                        row.append(warped(dot(loadings[i], source) + extra, kinds[i]))
                    features.append(row)
        parts.append((offsets, utilities, features))
    ordered = sorted(parts[0][1])
    cuts = []
    for i in range(1, len(k["shares"])):
        place = math.fsum(k["shares"][:i]) * (len(ordered) - 1)
        low = math.floor(place)
        cuts.append(ordered[low] + (place - low) * (ordered[low + 1] - ordered[low]))
    return [
        (offsets, [sum(1 for cut in cuts if cut < u) for u in utilities], features)
        for offsets, utilities, features in parts
    ]


def weight_moments(
    attraction: Sequence[float], place: Sequence[int], gamma: float, shift: float
) -> tuple[float, float]:
    """``(M̄, M)`` over expected clicks: mean and maximum of 1/p, documents weighted by their click probability."""
    clicks = weighted = largest = 0.0
    for a, r in zip(attraction, place, strict=True):
        p = 1.0 / (shift + r) ** gamma
        clicks += a * p
        weighted += a * p * (1.0 / p)
        largest = max(largest, 1.0 / p)
    return weighted / clicks, largest
