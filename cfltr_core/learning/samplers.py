"""How a step of SGD on a click log draws, and how it scales what it drew: single clicks, or whole queries.

Single clicks (w = 1/p, M̄ the mean weight of a click):

    biased           uniform over clicks     1
    ips              uniform over clicks     w_i        Algorithm 1
    countersample    proportional to w_i     M̄          Algorithm 2

Clicks are drawn from counts: with replacement, a term with c clicks is drawn c times as often, which is the same law;
without, it comes c times in every epoch.  To score one click its whole list must be scored: a step that draws a query
has the gradients of all its clicks for the same documents.  ``sgd`` and ``torch_sampler`` train by these draws.
Source: Jagerman & de Rijke 2020, Algorithms 1 and 2; whole queries are derived in chapter 14.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.single_clicks import gradient_bounds, weight_summary
from cfltr_core.ranking.ragged import lengths, query_of, segment_sum
from cfltr_core.sampling import AliasTable, Deck

Method = Literal["biased", "ips", "countersample"]


class Draws(NamedTuple):
    """What a sampler draws from: item i is a list, the documents ``start[i]`` to ``stop[i] - 1``, with clicks on some.

    Those are ``own[first[i]]`` to ``own[first[i + 1] - 1]``, counted from the first of the list, and the gradient of
    each is multiplied by its ``factor``.
    """

    table: AliasTable | Deck
    start: IntArray
    stop: IntArray
    first: IntArray
    own: IntArray
    factor: FloatArray

    def lists_of(self, items: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """The documents of the lists of ``items``, list after list; where each list begins there, and its length."""
        width = (self.stop - self.start)[items]
        begin = np.cumsum(width) - width
        return np.arange(int(width.sum())) + np.repeat(self.start[items] - begin, width), begin, width


@dataclass(frozen=True, eq=False, repr=False)
class ClickSampler:
    """How one step of SGD picks a click and scales its gradient: term t with probability P(t), ∇f_t times factor_t.

    It is unbiased for (1/n) Σ_t clicks_t w_t ∇f_t if P(t) · factor_t = clicks_t w_t / n for every term t.

    Source: Jagerman & de Rijke 2020, Algorithms 1 and 2, Theorem 2.

    Parameters
    ----------
    document : (n_terms,)
        The clicked document of each term.
    table : AliasTable or Deck
        The law of the draws over terms, with replacement or without.
    factor : (n_terms,)
        Factor of the gradient of a term when it is drawn.
    offsets : (n_queries + 1,)
        The lists of the documents, those of the log.

    Raises
    ------
    ValueError
        For documents that do not exist, or arrays and a table that disagree on the number of terms.

    Examples
    --------
    A sampler of one's own: A and C equally often, and the gradient of C twice as strong.

    >>> import cfltr_core as cf
    >>> from cfltr_core.learning.samplers import ClickSampler
    >>> from cfltr_core.sampling import AliasTable, Deck, term_draws
    >>> sampler = ClickSampler([0, 2], AliasTable.build([1, 1]), factor=[1, 2], offsets=[0, 3])
    >>> sampler, sampler.draws.table.probabilities()
    (ClickSampler(2 terms), array([0.5, 0.5]))
    """

    document: IntArray
    table: AliasTable | Deck
    factor: FloatArray = field(kw_only=True)
    offsets: IntArray = field(kw_only=True)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        document = checks.indices(self.document, "document", int(offsets[-1]), "no such document")
        factor = checks.finite_vector(self.factor, len(document), "factor")
        size = len(self.table.counts if isinstance(self.table, Deck) else self.table.keep)
        if size != len(document):
            raise ValueError(f"table: it has {size} categories for {len(document)} terms")
        checks.keep(self, document=document, factor=factor, offsets=offsets)

    def __repr__(self) -> str:
        return f"ClickSampler({len(self.document)} terms)"

    @property
    def draws(self) -> Draws:
        """Each term as an item of its own."""
        query = query_of(self.document, self.offsets)
        start, first = self.offsets[query], np.arange(len(query) + 1)
        return Draws(self.table, start, self.offsets[query + 1], first, self.document - start, self.factor)


@dataclass(frozen=True, eq=False, repr=False)
class QuerySampler:
    """How one step of SGD picks a query and scales the gradient of its clicks:

        P(q) = law_q / Σ_k law_k,     g = Σ_{d in q} mass_d ∇f_d / P(q).

    E[g] = Σ_d mass_d ∇f_d whatever the law, if every query whose gradient is not 0 can be drawn.

    Source: derived in chapter 14.

    Parameters
    ----------
    mass : (n_docs,) >= 0
        What the loss of each document counts for in the objective, (1/n) Σ clicks/p over its terms; 0 for a document
        without clicks.
    offsets : (n_queries + 1,)
        The lists of the documents.
    law : (n_queries,) >= 0
        Proportional to the probability of each query; a query with 0 is left out.

    Raises
    ------
    ValueError
        For arrays that disagree with ``offsets``, a negative number, or a law that is 0 everywhere.

    Examples
    --------
    A sampler of one's own: both queries equally often.

    >>> from cfltr_core.learning.samplers import QuerySampler
    >>> sampler = QuerySampler([0.5, 0, 0.5, 0, 1], [0, 3, 5], law=[1, 1])
    >>> sampler.probability, sampler.factor
    (array([0.5, 0.5]), array([1., 0., 1., 0., 2.]))
    >>> sampler.draws.stop - sampler.draws.start  # documents of the lists that a step may draw
    array([3, 2])
    """

    mass: FloatArray
    offsets: IntArray
    law: FloatArray = field(kw_only=True)

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        mass = checks.finite_vector(self.mass, int(offsets[-1]), "mass", low=0, why="what a document counts for")
        law = checks.finite_vector(self.law, len(offsets) - 1, "law", low=0, why="proportional to a probability")
        if not law.any():
            raise ValueError("law: it is 0 for every query, so that none can be drawn")
        checks.keep(self, mass=mass, offsets=offsets, law=law)

    def __repr__(self) -> str:
        return f"QuerySampler({len(self.law)} queries)"

    @property
    def probability(self) -> FloatArray:
        """P(q), (n_queries,)."""
        return np.asarray(self.law / self.law.sum())

    @property
    def factor(self) -> FloatArray:
        """mass_d / P(q) of each document, (n_docs,): what its gradient is multiplied by if q is drawn; 0 if P(q) is."""
        width = lengths(self.offsets)
        drawable = np.repeat(self.law > 0, width)
        return np.divide(self.mass, np.repeat(self.probability, width), out=np.zeros(len(self.mass)), where=drawable)

    @property
    def draws(self) -> Draws:
        """Each query as an item, with those of its documents that count."""
        factor, start, stop = self.factor, self.offsets[:-1], self.offsets[1:]
        document = np.flatnonzero(factor)
        own, first = document - start[query_of(document, self.offsets)], np.searchsorted(document, self.offsets)
        return Draws(AliasTable.build(self.law), start, stop, first, own, factor[document])


def matched(features: ArrayLike, offsets: IntArray, name: str, own_name: str = "features") -> NDArray[Any]:
    """The features as a matrix; a ValueError unless they are finite and match the ``offsets`` of that ``name``."""
    x = checks.feature_matrix(features, name=own_name)
    checks.offsets_of(offsets, len(x), name)
    return x


def click_sampler(
    log: ClickLog, method: Method, *, replacement: bool = True, cap: float | None = None, uniform_share: float = 0.0
) -> ClickSampler:
    """The sampler of Biased-SGD, IPS-SGD or CounterSample on a log: P(t) and factor_t, with w = 1/p and M̄ = mean of w.

    ===============  ================================  ========
    ``method``       P(t)                              factor_t
    ===============  ================================  ========
    "biased"         clicks_t / n                      1
    "ips"            clicks_t / n                      w_t
    "countersample"  clicks_t w_t / Σ_s clicks_s w_s   M̄
    ===============  ================================  ========

    Source: Jagerman & de Rijke 2020, Algorithm 1, Algorithm 2 and Eq. 19–20; "biased" is the Biased-SGD of §6.5.

    Parameters
    ----------
    log : ClickLog
    method : "biased", "ips" or "countersample"
    replacement : bool
        Without it, every epoch of n draws has each of the n clicks once, in an order of its own.  An epoch at fixed
        weights then has the gradient of the objective exactly, whatever the order.
    cap : float
        The largest weight, at least 1: min(w, ``cap``) takes the place of w everywhere, so that a step is unbiased for
        the objective of the capped weights.  No cap if none is given.
    uniform_share : float
        u from 0 to 1: draw from P′(t) = (1 − u) P(t) + u clicks_t / n, and scale by factor_t P(t) / P′(t), which leaves
        the mean of a step as it was.  The factor of CounterSample is then at most M̄ / (1 − u), and at most w_t / u, so
        that a light click with a long gradient makes no step longer than 1/u times its step in IPS-SGD.  Source:
        Needell, Ward & Srebro 2014, who mix the two laws by halves, u = ½ (partially biased sampling).

    Returns
    -------
    ClickSampler
        Of the terms with clicks, in the order of the log.

    Raises
    ------
    ValueError
        For a log without clicks, an unknown method, a cap below 1, a share outside [0, 1], or "countersample" without
        replacement: if every click comes once in an epoch, none comes in proportion to its weight, and M̄ times the
        gradient of Biased-SGD is what is left.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> ips, countersample = cf.click_sampler(log, "ips"), cf.click_sampler(log, "countersample")
    >>> ips.table.probabilities(), ips.factor  # of A and C
    (array([0.75, 0.25]), array([1., 3.]))
    >>> countersample.table.probabilities(), countersample.factor
    (array([0.5, 0.5]), array([1.5, 1.5]))
    >>> cf.click_sampler(log, "ips", replacement=False).table
    Deck(8 cards of 2 categories)
    >>> mixed = cf.click_sampler(log, "countersample", uniform_share=0.5)
    >>> mixed.table.probabilities(), mixed.factor  # P · factor is clicks · w / n as before: ¾ and ¾
    (array([0.625, 0.375]), array([1.2, 2. ]))
    """
    checks.arguments(click_sampler, locals())
    log = _capped(log, cap)
    summary = weight_summary(log)
    clicked = np.flatnonzero(log.clicks)
    counts, weights = log.clicks[clicked], log.weights[clicked]
    laws = {
        "biased": (counts, np.ones(len(clicked))),
        "ips": (counts, weights),
        "countersample": (counts * weights, np.full(len(clicked), summary.mean)),
    }
    law, factor = laws[method]
    if not replacement and method == "countersample":
        raise ValueError(
            "replacement is False: CounterSample draws a click in proportion to its weight, but without replacement "
            'every click comes once in an epoch, which leaves M̄ times the gradient of "biased"; draw with replacement, '
            'or use "ips"'
        )
    if uniform_share > 0:
        before, law = law / law.sum(), _mixed(law, counts, uniform_share)
        factor = factor * before / law
    table = AliasTable.build(law) if replacement else Deck(counts)
    return ClickSampler(log.document[clicked], table, factor=factor, offsets=log.offsets)


def _capped(log: ClickLog, cap: float | None) -> ClickLog:
    """The log with its weights 1/p capped."""
    return log if cap is None else replace(log, propensity=np.maximum(log.propensity, 1 / cap))


def _mixed(law: NDArray[Any], plain: NDArray[Any], share: float) -> FloatArray:
    """(1 − share) · law + share · plain, of the two as probabilities."""
    return np.asarray((1 - share) * law / law.sum() + share * plain / plain.sum())


def query_sampler(
    log: ClickLog,
    *,
    gradient_bounds_of: ArrayLike | None = None,
    cap: float | None = None,
    uniform_share: float = 0.0,
) -> QuerySampler:
    """Draws query q with P(q) ∝ Σ_{i in q} w_i, and takes the gradient of all its clicks i, with w = 1/p:

        g = (1/n) Σ_{i in q} w_i ∇f_i / P(q).

    The mean of g is the gradient of R = (1/n) Σ_i w_i f_i, and at every point E‖g‖² is at most that of CounterSample,
    which draws single clicks by the same law.  A step scores one list, as a step with a single click does.

    With features as ``gradient_bounds_of`` the law is P(q) ∝ Σ_{i in q} w_i G_i instead, with
    G_i = Σ_{y ≠ d_i} ‖x_y − x_{d_i}‖ ≥ ‖∇f_i‖: then ‖g‖ ≤ (1/n) Σ_i w_i G_i in every step, no more than the M̄ · max G
    of CounterSample.  That takes a distance for each clicked document and each other of its list.

    Source: derived in chapter 14; Needell, Ward & Srebro 2014 and Zhao & Zhang 2015 draw single terms by w_i G_i.

    Parameters
    ----------
    log : ClickLog
    gradient_bounds_of : (n_docs, n_features) finite
        The features of a linear scorer, of which the G_i are taken; without them the law is Σ w.
    cap : float
        As for :func:`click_sampler`: min(w, ``cap``) takes the place of w.
    uniform_share : float
        u from 0 to 1: draw from (1 − u) P(q) + u / (number of queries with a click), and divide by that.  No step is
        then longer than 1/(1 − u) times what it can be without.  Source: Needell, Ward & Srebro 2014, with u = ½.

    Returns
    -------
    QuerySampler
        For :func:`cfltr_core.learning.sgd.train_sgd`.

    Raises
    ------
    ValueError
        For a log without clicks, a cap below 1, or a share outside [0, 1]; for features that are not finite or do not
        match the lists of the log, or where no clicked document differs from the rest of its list.

    Examples
    --------
    Two queries with three and two documents; A, C and the first document of the other query were clicked.

    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3, 1, 2], [0, 3, 5]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0, 0, 2, 3], policy, user=user, sessions=[6, 3])
    >>> features = np.array([[1.0], [0.0], [0.5], [1.0], [0.5]])
    >>> cf.query_sampler(log).law  # (2 · 1 + 1 · 3) / 4 and (1 · 1) / 4
    array([1.25, 0.25])
    >>> cf.query_sampler(log, gradient_bounds_of=features).law  # (2 · 1 · 1.5 + 1 · 3 · 1) / 4 and (1 · 1 · 0.5) / 4
    array([1.5  , 0.125])
    >>> rng = np.random.default_rng(0)
    >>> path = cf.train_sgd(features, cf.query_sampler(log), learning_rates=[0.1], steps=50, rng=rng)
    >>> bool(path.last[-1, 0, 0, 0] > 0)  # the feature speaks for what was clicked
    True
    """
    checks.arguments(query_sampler, locals())
    log = _capped(log, cap)
    weight_summary(log)  # which says so if there is no click
    mass: FloatArray = np.bincount(log.document, log.mass, minlength=int(log.offsets[-1])).astype(np.float64)
    each = mass
    if gradient_bounds_of is not None:
        x = matched(gradient_bounds_of, log.offsets, "log.offsets", "gradient_bounds_of")
        clicked = np.flatnonzero(mass)
        each = np.zeros(len(mass))
        each[clicked] = mass[clicked] * gradient_bounds(x, log.offsets, documents=clicked)
        if not each.any():
            raise ValueError(
                "gradient_bounds_of: no clicked document differs from the rest of its list, so that nothing can be "
                "learnt"
            )
    law = segment_sum(each, log.offsets)
    if uniform_share > 0:
        law = _mixed(law, segment_sum(mass, log.offsets) > 0, uniform_share)
    return QuerySampler(mass, log.offsets, law=law)
