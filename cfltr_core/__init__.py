"""Counterfactual learning to rank: the tested code behind the book.

Floors, imports only point down: ``checks``, ``files``, ``ragged`` and ``corpora`` (data), then ``metrics``, then
``users``, ``policies``, ``stochastic``, ``logs``, ``exact`` and ``sorted_lists``, then ``estimators``, ``bounds``,
``enclosure``, ``hinge_solver`` and ``convergence``, then ``proprank``, ``propdcg`` and ``countersample``, then
``sweeps``.  ``claims`` and ``figures`` stand beside them.  The reader of LETOR files is a package of its own,
``cfltr_letor``.
"""

from cfltr_core.bounds import bound_loss, surrogate_ranks
from cfltr_core.claims import claim, mean_interval
from cfltr_core.convergence import exact_runs, proof_steps, weight_summary
from cfltr_core.corpora import SCALES, load_corpus
from cfltr_core.countersample import click_sampler, train_sgd
from cfltr_core.estimators import clipped, ips, ips_variance, naive, policy_aware, self_normalised
from cfltr_core.exact import enumerate_logs, expectation, mean_and_variance
from cfltr_core.figures import METHODS, band, figure, record, style
from cfltr_core.logs import (
    ClickLog,
    aggregate_clicks,
    draw_sessions,
    expand_clicks,
    sessions_for_clicks,
    simulate_clicks,
)
from cfltr_core.metrics import (
    RankWeight,
    additive_metric,
    average_rank,
    dcg,
    ndcg,
    precision,
    rank_weights,
    ranks,
    rbp,
)
from cfltr_core.policies import DeterministicPolicy, MixturePolicy, fit_linear_ranker
from cfltr_core.propdcg import fit_propdcg, select_C
from cfltr_core.proprank import fit_proprank
from cfltr_core.ragged import RankingData, query_index, segment_sum
from cfltr_core.stochastic import EpsilonGreedyPolicy, PlackettLucePolicy
from cfltr_core.sweeps import sweep
from cfltr_core.users import PositionBasedUser, power_examination

__all__ = [
    "METHODS",
    "SCALES",
    "ClickLog",
    "DeterministicPolicy",
    "EpsilonGreedyPolicy",
    "MixturePolicy",
    "PlackettLucePolicy",
    "PositionBasedUser",
    "RankWeight",
    "RankingData",
    "additive_metric",
    "aggregate_clicks",
    "average_rank",
    "band",
    "bound_loss",
    "claim",
    "click_sampler",
    "clipped",
    "dcg",
    "draw_sessions",
    "enumerate_logs",
    "exact_runs",
    "expand_clicks",
    "expectation",
    "figure",
    "fit_linear_ranker",
    "fit_propdcg",
    "fit_proprank",
    "ips",
    "ips_variance",
    "load_corpus",
    "mean_and_variance",
    "mean_interval",
    "naive",
    "ndcg",
    "policy_aware",
    "power_examination",
    "precision",
    "proof_steps",
    "query_index",
    "rank_weights",
    "ranks",
    "rbp",
    "record",
    "segment_sum",
    "select_C",
    "self_normalised",
    "sessions_for_clicks",
    "simulate_clicks",
    "style",
    "surrogate_ranks",
    "sweep",
    "train_sgd",
    "weight_summary",
]
__version__ = "0.1.0"
