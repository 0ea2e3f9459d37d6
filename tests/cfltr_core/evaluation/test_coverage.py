"""95 % intervals of IPS cover the truth: 1,000 logs each, position bias eta = 1.

With 1,000 logs the share that covers has a standard deviation of 0.7 %; 93 … 97 % leaves a good interval almost three
of them.  The negative controls show that the wrong unit does not pass.
"""

import numpy as np
import oracles

import cfltr_core as cf
from cfltr_core.ranking.ragged import document_index

N_LOGS = 1_000
USER = cf.PositionBasedUser(cf.power_examination(1.0))


def covers(estimate, truth: float) -> bool:
    low, high = estimate.interval()
    return low <= truth <= high


def test_query_intervals_cover_the_risk_of_a_large_population() -> None:
    """Each log asks 500 fresh queries out of 20,000 and serves them 5,000 sessions.

    Weights 1/p up to 10 make the estimate skewed: with 200 queries the normal interval covers 94.6 % (of
    20,000 logs), with 500 it covers 95.0 % (of 10,000).
    """
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 11, size=20_000)
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    n_docs = int(cuts[-1])
    scores, shown = rng.normal(size=n_docs), rng.normal(size=n_docs)
    relevance = (rng.random(n_docs) < 0.3).astype(int)
    displayed = cf.DeterministicPolicy.rank_by(shown, cuts, rng=rng).displayed_rank
    lam = cf.rank_weights(scores, cuts, metric=cf.dcg()).lam
    truth = np.mean(oracles.additive_metric(scores.tolist(), relevance.tolist(), cuts.tolist(), oracles.dcg))
    by_query = by_session = 0
    for _ in range(N_LOGS):
        queries = rng.choice(20_000, size=500, replace=False)
        rows = document_index(queries, cuts)
        policy = cf.DeterministicPolicy(displayed[rows], np.concatenate([[0], np.cumsum(sizes[queries])]))
        log = cf.simulate_clicks(
            policy, USER, relevance=relevance[rows], sessions=cf.draw_sessions(5_000, 500, rng=rng), rng=rng
        )
        by_query += covers(cf.ips(log, lam=lam[rows], unit="query"), truth)
        by_session += covers(cf.ips(log, lam=lam[rows], unit="session"), truth)
    assert 0.93 <= by_query / N_LOGS <= 0.97
    # Sessions of one query are alike: taken as independent they promise too much.
    assert by_session < by_query
    assert by_session / N_LOGS < 0.93
