"""Counterfactual learning to rank: the tested code behind the book.

Folders are floors, and imports point only down:

=====  ==============================  ==============================================================================
floor  folder                          what lives there
=====  ==============================  ==============================================================================
6      this file                       the public names
5      ``learning``                    surrogates, learners, and the theory of their training
4      ``evaluation``, ``propensity``  what a log says of a ranker; where propensities come from
4      ``reporting``                   what a chapter calls to show and to claim
3      ``clicks``, ``data``            who clicks on what, and what is kept of it; where lists come from
2      ``ranking``, ``sampling``       what a ranked list is, and how it is judged; draws
1      ``checks``, ``files``           argument checks; files that are whole or absent
=====  ==============================  ==============================================================================
"""

from cfltr_core.clicks.loggers import fit_linear_ranker
from cfltr_core.clicks.logs import (
    ClickLog,
    aggregate_clicks,
    draw_sessions,
    expand_clicks,
    sessions_for_clicks,
    simulate_clicks,
)
from cfltr_core.clicks.policies import DeterministicPolicy, MixturePolicy
from cfltr_core.clicks.stochastic_policies import EpsilonGreedyPolicy, PlackettLucePolicy
from cfltr_core.clicks.users import PositionBasedUser, power_examination
from cfltr_core.data.corpora import load_corpus
from cfltr_core.data.scales import SCALES
from cfltr_core.evaluation.estimators import clipped, ips, ips_variance, naive, policy_aware, self_normalised
from cfltr_core.evaluation.exact import enumerate_logs, expectation, mean_and_variance
from cfltr_core.learning.bounds import bound_loss, surrogate_ranks
from cfltr_core.learning.convergence import exact_runs, proof_steps, weight_summary
from cfltr_core.learning.countersample import click_sampler, train_sgd
from cfltr_core.learning.deep import AGARWAL_DEEP, fit_deep, select_deep
from cfltr_core.learning.networks import two_layer
from cfltr_core.learning.propdcg import fit_propdcg
from cfltr_core.learning.proprank import fit_proprank
from cfltr_core.learning.query_sampling import query_sampler
from cfltr_core.learning.selection import select_C
from cfltr_core.ranking.linear import LinearRanker
from cfltr_core.ranking.metrics import (
    RankWeight,
    RankWeights,
    additive_metric,
    average_rank,
    dcg,
    ndcg,
    precision,
    rank_weights,
    ranks,
    rbp,
)
from cfltr_core.ranking.ragged import RankingData, query_index, segment_sum
from cfltr_core.reporting.claims import claim
from cfltr_core.reporting.figures import METHODS, band, curves, figure, record, style
from cfltr_core.reporting.intervals import mean_interval
from cfltr_core.reporting.run import Run

__all__ = [
    "AGARWAL_DEEP",
    "METHODS",
    "SCALES",
    "ClickLog",
    "DeterministicPolicy",
    "EpsilonGreedyPolicy",
    "LinearRanker",
    "MixturePolicy",
    "PlackettLucePolicy",
    "PositionBasedUser",
    "RankWeight",
    "RankWeights",
    "RankingData",
    "Run",
    "additive_metric",
    "aggregate_clicks",
    "average_rank",
    "band",
    "bound_loss",
    "claim",
    "click_sampler",
    "clipped",
    "curves",
    "dcg",
    "draw_sessions",
    "enumerate_logs",
    "exact_runs",
    "expand_clicks",
    "expectation",
    "figure",
    "fit_deep",
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
    "query_sampler",
    "rank_weights",
    "ranks",
    "rbp",
    "record",
    "segment_sum",
    "select_C",
    "select_deep",
    "self_normalised",
    "sessions_for_clicks",
    "simulate_clicks",
    "style",
    "surrogate_ranks",
    "train_sgd",
    "two_layer",
    "weight_summary",
]
__version__ = "0.1.0"
