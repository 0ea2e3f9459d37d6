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

Of the folders beside each other on one floor only ``evaluation`` may import ``propensity``, ``evaluation`` may import
``logs``, and ``logs`` may import ``propensity``.
"""

import types as _types

# A public name is imported as itself, which says to type checkers that it is meant for users.
from cfltr_core.clicks.display_shares import DisplayShares as DisplayShares
from cfltr_core.clicks.epsilon_greedy import EpsilonGreedyPolicy as EpsilonGreedyPolicy
from cfltr_core.clicks.events import read_events as read_events
from cfltr_core.clicks.loggers import fit_linear_ranker as fit_linear_ranker
from cfltr_core.clicks.logs import ClickLog as ClickLog
from cfltr_core.clicks.logs import aggregate_clicks as aggregate_clicks
from cfltr_core.clicks.other_users import TrustUser as TrustUser
from cfltr_core.clicks.pages import count_pages as count_pages
from cfltr_core.clicks.pages import simulate_pages as simulate_pages
from cfltr_core.clicks.plackett_luce import PlackettLucePolicy as PlackettLucePolicy
from cfltr_core.clicks.policies import DeterministicPolicy as DeterministicPolicy
from cfltr_core.clicks.policies import MixturePolicy as MixturePolicy
from cfltr_core.clicks.simulation import draw_sessions as draw_sessions
from cfltr_core.clicks.simulation import simulate_clicks as simulate_clicks
from cfltr_core.clicks.users import PositionBasedUser as PositionBasedUser
from cfltr_core.clicks.users import power_examination as power_examination
from cfltr_core.evaluation.affine import affine as affine
from cfltr_core.evaluation.decisions import decide as decide
from cfltr_core.evaluation.doubly_robust import cross_fitted as cross_fitted
from cfltr_core.evaluation.doubly_robust import doubly_robust as doubly_robust
from cfltr_core.evaluation.estimators import clipped as clipped
from cfltr_core.evaluation.estimators import ips as ips
from cfltr_core.evaluation.estimators import naive as naive
from cfltr_core.evaluation.estimators import policy_aware as policy_aware
from cfltr_core.evaluation.estimators import self_normalised as self_normalised
from cfltr_core.evaluation.safe_choice import choose_safely as choose_safely
from cfltr_core.learning.bounds import bound_loss as bound_loss
from cfltr_core.learning.bounds import surrogate_ranks as surrogate_ranks
from cfltr_core.learning.certified import certified_optimum as certified_optimum
from cfltr_core.learning.certified import label_log as label_log
from cfltr_core.learning.deep import AGARWAL_DEEP as AGARWAL_DEEP
from cfltr_core.learning.deep import fit_deep as fit_deep
from cfltr_core.learning.lambda_loss import click_gains as click_gains
from cfltr_core.learning.lambda_loss import lambda_loss as lambda_loss
from cfltr_core.learning.lambdaloss_fit import fit_lambdaloss as fit_lambdaloss
from cfltr_core.learning.networks import two_layer as two_layer
from cfltr_core.learning.propdcg import fit_propdcg as fit_propdcg
from cfltr_core.learning.proprank import fit_proprank as fit_proprank
from cfltr_core.learning.samplers import click_sampler as click_sampler
from cfltr_core.learning.samplers import query_sampler as query_sampler
from cfltr_core.learning.selection import select_C as select_C
from cfltr_core.learning.sgd import train_sgd as train_sgd
from cfltr_core.learning.single_clicks import weight_summary as weight_summary
from cfltr_core.logs.health import check_log as check_log
from cfltr_core.propensity.all_pairs import all_pairs as all_pairs
from cfltr_core.propensity.clicks_above import clicks_above_test as clicks_above_test
from cfltr_core.propensity.conditional_poisson import conditional_poisson as conditional_poisson
from cfltr_core.propensity.contextual import contextual_curve as contextual_curve
from cfltr_core.propensity.dual_learning import dual_learning as dual_learning
from cfltr_core.propensity.halves import same_curve as same_curve
from cfltr_core.propensity.harvesting import adjacent_chain as adjacent_chain
from cfltr_core.propensity.harvesting import click_rates as click_rates
from cfltr_core.propensity.harvesting import pivot as pivot
from cfltr_core.propensity.identifiability import rank_links as rank_links
from cfltr_core.propensity.interventional_sets import pair_counts as pair_counts
from cfltr_core.propensity.interventions import RandTopPolicy as RandTopPolicy
from cfltr_core.propensity.interventions import SwapPolicy as SwapPolicy
from cfltr_core.propensity.interventions import intervention_cost as intervention_cost
from cfltr_core.propensity.joint_fits import assumption_range as assumption_range
from cfltr_core.propensity.joint_models import expectation_maximisation as expectation_maximisation
from cfltr_core.propensity.joint_models import regression_em as regression_em
from cfltr_core.propensity.shrinkage import shrunk_power as shrunk_power
from cfltr_core.propensity.strata import DisplayCounts as DisplayCounts
from cfltr_core.propensity.strata import count_rows as count_rows
from cfltr_core.propensity.strata import display_counts as display_counts
from cfltr_core.propensity.towers import two_towers as two_towers
from cfltr_core.propensity.trust_bias import trust_bias as trust_bias
from cfltr_core.ranking.linear import LinearRanker as LinearRanker
from cfltr_core.ranking.metrics import additive_metric as additive_metric
from cfltr_core.ranking.metrics import ndcg as ndcg
from cfltr_core.ranking.metrics import rank_weights as rank_weights
from cfltr_core.ranking.metrics import ranks as ranks
from cfltr_core.ranking.ragged import RankingData as RankingData
from cfltr_core.ranking.ragged import query_index as query_index
from cfltr_core.ranking.ragged import segment_sum as segment_sum
from cfltr_core.ranking.rank_weight import RankWeight as RankWeight
from cfltr_core.ranking.rank_weight import average_rank as average_rank
from cfltr_core.ranking.rank_weight import dcg as dcg
from cfltr_core.ranking.rank_weight import precision as precision
from cfltr_core.ranking.rank_weight import rbp as rbp

# What was imported, the submodules left out: constants, then classes, then functions.
__all__ = sorted(
    (name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _types.ModuleType)),
    key=lambda name: (not name.isupper(), name[0].islower(), name),
)
__version__ = "0.1.0"
