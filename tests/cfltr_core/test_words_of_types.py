"""The words that a type lists are those that a function gives back: editors and type checkers read nothing else.

Those that it takes are checked by the type itself (``test_errors.py``).
"""

from typing import get_args, get_type_hints

import numpy as np

from cfltr_book.data.generated import GENERATED, Knobs
from cfltr_core import RankWeight, TrustUser, dcg, ndcg, power_examination
from cfltr_core.learning.propdcg import Curvature, curvature


def test_words_that_are_given_back() -> None:
    shapes = [RankWeight("a line", lambda r: r), RankWeight("a square", np.square), RankWeight("a root", np.sqrt)]
    assert [curvature(weight, 20) for weight in shapes] == [*get_args(Curvature)] == ["linear", "convex", "concave"]
    assert {knobs.lengths for knobs in GENERATED.values()} == {*get_args(get_type_hints(Knobs)["lengths"])}


def test_what_is_printed_is_short_and_names_no_address() -> None:
    judged = ndcg(np.arange(300.0), np.arange(0, 301, 3), relevance=np.tile([0, 1, 2], 100))
    assert repr(judged) == "NDCG(mean=1 over 100 queries, share_dropped=0)"
    assert repr(dcg(10)) == "RankWeight(DCG@10)"
    trusting = TrustUser(np.ones(100), epsilon_minus=power_examination(1.0))
    words = "TrustUser(examination=[1, 1, 1, 1, …], epsilon_plus=1, epsilon_minus=a function of ranks)"
    assert repr(trusting) == words
