"""Doubly robust estimates: a model guesses what documents are worth, and clicks that it did not expect correct it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.logs import ClickLog, require_exposed
from cfltr_core.clicks.users import User
from cfltr_core.evaluation.estimates import Estimate
from cfltr_core.ranking.ragged import query_index, segment_sum
from cfltr_core.ranking.rank_weight import RankWeights

Predict = Callable[[NDArray[np.float32]], ArrayLike]
# From features, clicks and looks of some documents to a function that guesses clicks a look from features.
Fit = Callable[[NDArray[np.float32], FloatArray, FloatArray], Predict]


def doubly_robust(
    log: ClickLog,
    rank_weights: RankWeights,
    *,
    guess: ArrayLike,
    shares: DisplayShares,
    user: User,
    cap: float = np.inf,
) -> Estimate:
    """Doubly robust estimate (1/N) Σ_d λ_d G_d over N sessions, with the gains G_d of :func:`robust_gains`.

    Unbiased if the weights are right, whatever the guess, or if the guess is right, whatever the weights; θ must be
    right either way.  With right weights a good guess takes off variance: only what it did not expect is weighted.
    Documents that were never shown have their guess alone, where IPS has 0.  The standard error takes the queries for a
    sample, as that of :func:`~cfltr_core.evaluation.estimators.ips` by default; it leaves out the error of the guess,
    which comes from other queries and is small, and the error of θ̂.

    Source: Oosterhuis 2023, "Doubly Robust Estimation for Correcting Position Bias in Click Feedback for Unbiased
    Learning to Rank", Eq. 27, with the examination of the place that was displayed.

    Parameters
    ----------
    log : ClickLog
        Its propensities are not used.
    rank_weights : RankWeights
        λ(rank(d)) under the ranker to be judged, or the difference of two.
    guess, shares, user, cap
        As in :func:`robust_gains`, and so are the errors.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> page, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, page, user=user, sessions=[6])
    >>> proposed, shares = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg()), cf.DisplayShares.of_policy(page)
    >>> for cap in (2, 3):  # true: 1.631; capped at 2, IPS gives 1.298
    ...     guess = cf.doubly_robust(log, proposed, guess=[0.9, 0.2, 0.6], shares=shares, user=user, cap=cap)
    ...     print(round(guess.report(), 3))
    1.498
    1.631
    """
    checks.arguments(doubly_robust, locals())
    gains = robust_gains(log, guess=guess, shares=shares, user=user, cap=cap)
    if len(rank_weights) != len(gains):
        raise ValueError(f"rank_weights: it has {len(rank_weights)} documents, the log has {len(gains)}: rank those")
    n = log.n_sessions
    if n == 0:
        raise ValueError("log: there is no session in the log, so nothing can be estimated")
    totals = segment_sum(rank_weights.lam * gains, log.offsets)
    value = float(totals.sum()) / n
    asked = int((log.sessions > 0).sum())
    squares = float(((totals - log.sessions * value) ** 2).sum())
    error = float(np.sqrt(asked / (asked - 1) * squares)) / n if asked > 1 else float("nan")
    return Estimate(value, error, n, log.n_clicks, rank_weights.metric)


def robust_gains(
    log: ClickLog, *, guess: ArrayLike, shares: DisplayShares, user: User, cap: float = np.inf
) -> FloatArray:
    """Gains G_d = S_q g_d + w_d (clicks_d − g_d Σ_k n_dk θ_k) of each document, shape (n_docs,): what learners take.

    S_q are the sessions of the query, n_dk the impressions at rank k, w_d = min(1/e_d, ``cap``) with e_d = Σ_k
    share_dk θ_k, and 0 where e_d is 0.  Their mean is S_q times the attraction of d, P(click if examined).  They stand
    where IPS has clicks / e, and may be negative.

    Source: that of :func:`doubly_robust`.

    Parameters
    ----------
    log : ClickLog
    guess : (n_docs,) in [0, 1]
        g, clicks a look, from other queries: :func:`cross_fitted`.
    shares : DisplayShares
        Displays of the rankers that filled the log.
    user : User
        θ.
    cap : float
        Largest weight, at least 1; none without it.

    Raises
    ------
    ValueError
        For a guess that is no probability, shares of other lists, a cap below 1, or a click on a document without
        exposure.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.doubly_robust import robust_gains
    >>> page, user = cf.DeterministicPolicy([1, 2, 0], [0, 3]), cf.PositionBasedUser([1, 1/2])
    >>> log = cf.aggregate_clicks([0] * 6 + [1] * 2, page, user=user, sessions=[6])
    >>> robust_gains(log, guess=[0.9, 0.2, 0.5], shares=cf.DisplayShares.of_policy(page), user=user)
    array([6., 4., 3.])
    """
    checks.arguments(robust_gains, locals())
    n_docs = int(log.offsets[-1])
    g = checks.finite_vector(guess, n_docs, "guess", low=0, high=1, why="clicks a look; clip what a model predicts")
    if not np.array_equal(shares.offsets, log.offsets):
        raise ValueError("shares: its offsets are not those of the log: use the same lists in the same order")
    exposure = shares.exposure(user)
    require_exposed(log, exposure, "give the displays of the rankers that filled the log, and the θ of their users")
    clicks, looks = _by_document(log, user)
    weight = np.minimum(np.divide(1.0, exposure, out=np.zeros(n_docs), where=exposure > 0), cap)
    sessions = log.sessions[query_index(log.offsets)]
    return np.asarray(sessions * g + weight * (clicks - g * looks))


def cross_fitted(
    features: ArrayLike, log: ClickLog, *, user: User, folds: int = 5, ridge: float = 10.0, fit: Fit | None = None
) -> FloatArray:
    """Guesses of clicks a look, each from the clicks on other queries: (n_docs,) in [0, 1].

    Query q is of fold q mod ``folds``; its documents are guessed by a model of the other folds, so that a guess knows
    nothing of the clicks that correct it.  The model is least squares of clicks / looks on standardised features and a
    constant, each document weighted by its looks Σ_k n_dk θ_k, with ``ridge`` times their mean on the diagonal; or what
    ``fit`` makes.

    Source: Oosterhuis 2023, §4.3, for the regression; Chernozhukov et al. 2018 for the folds.

    Parameters
    ----------
    features : (n_docs, n_features)
    log : ClickLog
    user : User
        θ.
    folds : int
        From 2 to the number of queries.
    ridge : float
        Positive.
    fit : callable, optional
        ``fit(features, clicks, looks)`` of some documents returns a function from features to guesses; what is outside
        [0, 1] is clipped.

    Raises
    ------
    ValueError
        For features of other documents, folds or ridge out of range, queries outside a fold that nobody looked at, or
        guesses that are not one finite number a document.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> cuts, relevance = range(0, 61, 3), [1, 0, 1] * 20
    >>> page, user = cf.DeterministicPolicy([1, 2, 3] * 20, cuts), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> rng = np.random.default_rng(0)
    >>> log = cf.simulate_clicks(page, user, relevance=relevance, sessions=[100] * 20, rng=rng)
    >>> features = np.column_stack([relevance, rng.normal(size=60)])
    >>> cf.cross_fitted(features, log, user=user, ridge=0.1)[:3].round(2)  # of A, B and C in the first query
    array([1., 0., 1.])
    """
    checks.arguments(cross_fitted, locals())
    n_docs, n_queries = int(log.offsets[-1]), len(log.offsets) - 1
    x = checks.feature_matrix(np.ascontiguousarray(features, dtype=np.float32), n_docs=n_docs)
    if folds > n_queries:
        raise ValueError(f"folds is {folds}: the log has {n_queries} queries, and each fold needs one")
    clicks, looks = _by_document(log, user)
    fold = query_index(log.offsets) % folds
    guess = np.zeros(n_docs)
    learn = fit if fit is not None else _least_squares(x, ridge)
    for number in range(folds):
        mine = fold == number
        if not looks[~mine].any():
            raise ValueError(f"log: of the queries outside fold {number} nothing was examined: take fewer folds")
        found = learn(x[~mine], clicks[~mine], looks[~mine])(x[mine])
        guess[mine] = np.clip(checks.finite_vector(found, int(mine.sum()), "guesses of fit"), 0.0, 1.0)
    return guess


def _by_document(log: ClickLog, user: User) -> tuple[FloatArray, FloatArray]:
    """Clicks of each document, and how many looks its impressions had on average, both (n_docs,)."""
    n_docs = int(log.offsets[-1])
    clicks = np.bincount(log.document, log.clicks, minlength=n_docs).astype(np.float64)
    looks = np.bincount(log.document, log.impressions * user.propensity(log.rank), minlength=n_docs)
    return clicks, looks.astype(np.float64)


def _least_squares(features: NDArray[np.float32], ridge: float) -> Fit:
    """Weighted least squares on ``features`` that are brought to one scale; constant ones stay 0."""
    centre, scale = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)

    def columns(x: NDArray[np.float32]) -> FloatArray:
        return np.column_stack([np.ones(len(x)), (x - centre) / (scale + 1e-12)])

    def learn(x: NDArray[np.float32], clicks: FloatArray, looks: FloatArray) -> Predict:
        rows = columns(x)
        normal = rows.T @ (looks[:, None] * rows) + ridge * looks.mean() * np.eye(rows.shape[1])
        weights = np.linalg.solve(normal, rows.T @ clicks)
        return lambda other: columns(other) @ weights

    return learn
