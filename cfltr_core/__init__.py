"""Counterfactual learning to rank: the methods that the book teaches.

Folders are floors, and imports point only down:

=====  ========================================  ====================================================================
floor  folder                                    what lives there
=====  ========================================  ====================================================================
6      this file                                 the public names
5      ``learning``                              surrogates, learners, and the theory of their training
4      ``evaluation``, ``propensity``, ``logs``  what a log says of a ranker; where propensities come from; its health
3      ``clicks``                                who clicks on what, and what is kept of it
2      ``ranking``, ``sampling``                 what a ranked list is, and how it is judged; draws
1      ``checks``, ``files``                     argument checks; files that are whole or absent
=====  ========================================  ====================================================================

Of the folders beside each other on one floor only ``evaluation`` may import ``propensity``, and ``logs`` may import
``propensity``.
"""

from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.epsilon_greedy import EpsilonGreedyPolicy
from cfltr_core.clicks.events import read_events
from cfltr_core.clicks.loggers import fit_linear_ranker
from cfltr_core.clicks.logs import ClickLog, aggregate_clicks
from cfltr_core.clicks.other_users import TrustUser
from cfltr_core.clicks.pages import count_pages, simulate_pages
from cfltr_core.clicks.plackett_luce import PlackettLucePolicy
from cfltr_core.clicks.policies import DeterministicPolicy, MixturePolicy
from cfltr_core.clicks.simulation import draw_sessions, simulate_clicks
from cfltr_core.clicks.users import PositionBasedUser, power_examination
from cfltr_core.evaluation.affine import affine
from cfltr_core.evaluation.decisions import decide
from cfltr_core.evaluation.doubly_robust import cross_fitted, doubly_robust
from cfltr_core.evaluation.estimators import clipped, ips, naive, policy_aware, self_normalised
from cfltr_core.evaluation.exact import enumerate_logs, expectation, mean_and_variance
from cfltr_core.evaluation.safe_choice import choose_safely
from cfltr_core.learning.bounds import bound_loss, surrogate_ranks
from cfltr_core.learning.certified import certified_optimum, label_log
from cfltr_core.learning.convergence import weight_summary
from cfltr_core.learning.deep import AGARWAL_DEEP, fit_deep
from cfltr_core.learning.lambda_loss import click_gains, lambda_loss
from cfltr_core.learning.lambdaloss_fit import fit_lambdaloss
from cfltr_core.learning.networks import two_layer
from cfltr_core.learning.proofs import exact_runs
from cfltr_core.learning.propdcg import fit_propdcg
from cfltr_core.learning.proprank import fit_proprank
from cfltr_core.learning.regret import evaluation_steps, regret
from cfltr_core.learning.samplers import click_sampler, query_sampler
from cfltr_core.learning.selection import select_C
from cfltr_core.learning.sgd import train_sgd
from cfltr_core.logs.health import check_log
from cfltr_core.propensity.all_pairs import all_pairs
from cfltr_core.propensity.clicks_above import clicks_above_test
from cfltr_core.propensity.conditional_poisson import conditional_poisson
from cfltr_core.propensity.contextual import contextual_curve
from cfltr_core.propensity.dual_learning import dual_learning
from cfltr_core.propensity.halves import same_curve
from cfltr_core.propensity.harvesting import adjacent_chain, click_rates, pivot
from cfltr_core.propensity.identifiability import rank_links
from cfltr_core.propensity.interventional_sets import pair_counts
from cfltr_core.propensity.interventions import RandTopPolicy, SwapPolicy, intervention_cost
from cfltr_core.propensity.joint_fits import assumption_range
from cfltr_core.propensity.joint_models import expectation_maximisation, regression_em
from cfltr_core.propensity.shrinkage import shrunk_power
from cfltr_core.propensity.strata import DisplayCounts, count_rows, display_counts
from cfltr_core.propensity.towers import two_towers
from cfltr_core.propensity.trust_bias import trust_bias
from cfltr_core.ranking.linear import LinearRanker
from cfltr_core.ranking.metrics import additive_metric, ndcg, rank_weights, ranks
from cfltr_core.ranking.ragged import RankingData, query_index, segment_sum
from cfltr_core.ranking.rank_weight import RankWeight, average_rank, dcg, precision, rbp

__all__ = [
    "AGARWAL_DEEP",
    "ClickLog",
    "DeterministicPolicy",
    "DisplayCounts",
    "DisplayShares",
    "EpsilonGreedyPolicy",
    "LinearRanker",
    "MixturePolicy",
    "PlackettLucePolicy",
    "PositionBasedUser",
    "RandTopPolicy",
    "RankWeight",
    "RankingData",
    "SwapPolicy",
    "TrustUser",
    "additive_metric",
    "adjacent_chain",
    "affine",
    "aggregate_clicks",
    "all_pairs",
    "assumption_range",
    "average_rank",
    "bound_loss",
    "certified_optimum",
    "check_log",
    "choose_safely",
    "click_gains",
    "click_rates",
    "click_sampler",
    "clicks_above_test",
    "clipped",
    "conditional_poisson",
    "contextual_curve",
    "count_pages",
    "count_rows",
    "cross_fitted",
    "dcg",
    "decide",
    "display_counts",
    "doubly_robust",
    "draw_sessions",
    "dual_learning",
    "enumerate_logs",
    "evaluation_steps",
    "exact_runs",
    "expectation",
    "expectation_maximisation",
    "fit_deep",
    "fit_lambdaloss",
    "fit_linear_ranker",
    "fit_propdcg",
    "fit_proprank",
    "intervention_cost",
    "ips",
    "label_log",
    "lambda_loss",
    "mean_and_variance",
    "naive",
    "ndcg",
    "pair_counts",
    "pivot",
    "policy_aware",
    "power_examination",
    "precision",
    "query_index",
    "query_sampler",
    "rank_links",
    "rank_weights",
    "ranks",
    "rbp",
    "read_events",
    "regression_em",
    "regret",
    "same_curve",
    "segment_sum",
    "select_C",
    "self_normalised",
    "shrunk_power",
    "simulate_clicks",
    "simulate_pages",
    "surrogate_ranks",
    "train_sgd",
    "trust_bias",
    "two_layer",
    "two_towers",
    "weight_summary",
]
__version__ = "0.1.0"
