"""How often each document stood at each rank, and the exposure that follows for any examination curve.

A policy knows its exposure; a log of past rankers has their displays.  Shares of displays hold what exposure needs of
either, so that the curve, which is estimated, can be put in later and its error carried on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.users import User
from cfltr_core.ranking.ragged import query_of

# Shares are sums of divisions: they may miss 1 by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DisplayShares:
    """P(rank(d) = k): in which share of its query's sessions document d stood at rank k.

    The exposure of a document is Σ_k share_dk θ_k.  Shares come from the displays of a policy (:meth:`of_policy`), or
    from what a log counted (:meth:`of_log`).  A policy knows them exactly; what was counted is as good as that only
    with many sessions a query.

    Source: the sum over displays in Oosterhuis & de Rijke 2020, Eq. 5, by rank.

    Parameters
    ----------
    document : (n_terms,)
        Flat document index; the query follows from ``offsets``.
    rank : (n_terms,)
        Displayed rank, from 1.
    share : (n_terms,) in [0, 1]
        Of the sessions of the query.  Those of a document add up to 1, or less if it was not always shown, and so do
        those of a place.
    offsets : (n_queries + 1,)

    Raises
    ------
    ValueError
        Naming the argument, the index and the remedy: for a rank below 1, a share that is no probability, shares of a
        document or of a place that add up to more than 1, or a document and rank that come twice.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> shares = cf.DisplayShares(  # A B C in half of the sessions, C A B in the others
    ...     document=[0, 0, 1, 1, 2, 2], rank=[1, 2, 2, 3, 1, 3], share=[1/2] * 6, offsets=[0, 3],
    ... )
    >>> shares, shares.n_ranks
    (DisplayShares(6 terms, 3 of 3 documents shown, 3 ranks), 3)
    >>> user = cf.PositionBasedUser([1, 1/2, 1/3])
    >>> shares.exposure(user).round(3)  # of A: (1 + 1/2) / 2
    array([0.75 , 0.417, 0.667])
    >>> shares.exposure_slope(user).round(3)  # if rank 2 is seen 1 % more often, A is so .0025 more often
    array([0.5  , 0.25 , 0.25 , 0.167, 0.5  , 0.167])

    The same of two rankers that share the traffic, and from a log of ten sessions:

    >>> a_b_c, c_a_b = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.DeterministicPolicy([2, 3, 1], [0, 3])
    >>> policy, rng = cf.MixturePolicy([a_b_c, c_a_b], [1/2, 1/2]), np.random.default_rng(0)
    >>> cf.DisplayShares.of_policy(policy).share
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    >>> log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1], sessions=[10], rng=rng)
    >>> cf.DisplayShares.of_log(log).share
    array([0.6, 0.4, 0.6, 0.4, 0.4, 0.6])
    """

    document: IntArray
    rank: IntArray
    share: FloatArray
    offsets: IntArray

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        n_terms = len(np.asarray(self.document))
        document = checks.counts(self.document, n_terms, "document", high=int(offsets[-1]) - 1, why="no such document")
        rank = checks.counts(self.rank, n_terms, "rank", low=1, why=checks.FROM_1)
        why = "a share of the sessions; divide displays by sessions"
        share = checks.finite_vector(self.share, n_terms, "share", low=0, high=1 + ROUNDING, why=why)
        width = int(rank.max(initial=0)) + 1
        _, first, count = np.unique(document * width + rank, return_index=True, return_counts=True)
        if (count > 1).any():
            term = int(first[np.argmax(count > 1)])
            raise ValueError(
                f"rank[{term}] is {rank[term]}, but another term is of the same document and rank: add up the shares"
            )
        for what, owner in (("document", document), ("place", query_of(document, offsets) * width + rank)):
            owners, number = np.unique(owner, return_inverse=True)
            total = np.bincount(number, share, minlength=len(owners))
            if (total > 1 + ROUNDING).any():
                worst = int(np.argmax(total > 1 + ROUNDING))
                term = int(np.argmax(number == worst))
                where = f"document {document[term]}"
                if what == "place":
                    where = f"rank {rank[term]} in query {query_of(document, offsets)[term]}"
                raise ValueError(
                    f"share: those of {where} add up to {total[worst]:g}: a session shows one document at a place, and "
                    "a document once; divide displays by the sessions of the query"
                )
        checks.keep(self, document=document, rank=rank, share=share, offsets=offsets)

    def __repr__(self) -> str:
        shown = len(np.unique(self.document[self.share > 0]))
        return (
            f"DisplayShares({len(self.document)} terms, {shown} of {self.offsets[-1]} documents shown, "
            f"{self.n_ranks} ranks)"
        )

    @property
    def n_ranks(self) -> int:
        """The deepest rank at which a document stood."""
        return int(self.rank.max(initial=0))

    def exposure(self, user: User) -> FloatArray:
        """Σ_k share_dk θ_k of each document, shape (n_docs,): how likely it is seen; 0 if it was never shown.

        θ is the ``user``'s, and of an estimated curve ``curve.user()``'s; ``policy_aware`` takes the result.
        """
        return np.bincount(self.document, self.exposure_slope(user), minlength=int(self.offsets[-1])).astype(np.float64)

    def exposure_slope(self, user: User) -> FloatArray:
        """∂ exposure_d / ∂ log θ_k = share_dk θ_k of each term (d, k), shape (n_terms,), for the θ of ``user``.

        All other derivatives are 0: the exposure of a document depends on the ranks where it stood.
        """
        if not hasattr(user, "propensity"):
            raise TypeError(f"user is {type(user).__name__}: expected a user, of an estimated curve curve.user()")
        return np.asarray(self.share * user.propensity(self.rank))

    @classmethod
    def of_policy(cls, policy: LoggingPolicy) -> DisplayShares:
        """The shares that a ``policy`` has in the long run: P(rank(d) = k), by ``policy.display_mean``."""
        table = np.stack([policy.display_mean(partial(np.equal, k)) for k in range(1, policy.cutoff + 1)], axis=1)
        document, place = np.nonzero(table)
        share = np.clip(table[document, place], 0.0, 1.0)
        return cls(document=document, rank=place + 1, share=share, offsets=policy.offsets)

    @classmethod
    def of_log(cls, log: ClickLog) -> DisplayShares:
        """Impressions divided by sessions, as the ``log`` counted them.

        A document that the past rankers could have shown but did not, for want of sessions, has no share: with few
        sessions a query take :meth:`of_policy` of the rankers and their traffic instead.
        """
        shown = log.impressions > 0
        document = log.document[shown]
        share = log.impressions[shown] / log.sessions[log.query[shown]]
        return cls(document=document, rank=log.rank[shown], share=share, offsets=log.offsets)
