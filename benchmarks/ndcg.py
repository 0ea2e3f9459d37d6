"""nDCG@10 of 10,000 lists of 100 documents, against scikit-learn.

    python -m benchmarks.ndcg

Prints the time of one evaluation and its ratio to this package's.  scikit-learn averages over ties by default, as we
do, at the cost of a loop over queries; ``ignore_ties=True`` is its vectorised short cut, which ranks ties by their
place in the file, so that it is compared on scores without ties.  Equal values are checked first, on scores with and
without ties.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import ndcg_score

from benchmarks.timing import best_of, table
from cfltr_core import ndcg

N_QUERIES, N_DOCS, K = 10_000, 100, 10


def main() -> None:
    rng = np.random.default_rng(0)
    grades = rng.choice(5, size=(N_QUERIES, N_DOCS), p=(0.5, 0.25, 0.15, 0.07, 0.03))
    offsets = np.arange(N_QUERIES + 1) * N_DOCS
    gains = np.exp2(grades) - 1.0  # scikit-learn takes gains, not grades
    for name, scores in (
        ("scores without ties", rng.normal(size=(N_QUERIES, N_DOCS))),
        (
            "scores in 50 levels: ties at almost every cut-off",
            rng.integers(0, 50, size=(N_QUERIES, N_DOCS)).astype(float),
        ),
    ):

        def ours(scores: np.ndarray = scores) -> float:
            return ndcg(scores.ravel(), offsets, relevance=grades.ravel(), cutoff=K, empty="zero").mean

        def exact(scores: np.ndarray = scores) -> float:
            return float(ndcg_score(gains, scores, k=K))

        def short_cut(scores: np.ndarray = scores) -> float:
            return float(ndcg_score(gains, scores, k=K, ignore_ties=True))

        peers = {"scikit-learn ndcg_score": exact}
        if name == "scores without ties":
            peers["scikit-learn ndcg_score(ignore_ties=True)"] = short_cut
        for peer in peers.values():
            np.testing.assert_allclose(ours(), peer(), rtol=0, atol=1e-12)
        base, _ = best_of(ours)
        rows = [("cfltr_core.ndcg", base, 1.0)]
        for label, peer in peers.items():
            seconds, _ = best_of(peer, repetitions=3)
            rows.append((label, seconds, seconds / base))
        print(f"nDCG@{K}, {N_QUERIES:,} lists of {N_DOCS}, {name}; values equal to 1e-12")
        print(table(rows))


if __name__ == "__main__":
    main()
