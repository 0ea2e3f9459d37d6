"""What an estimator of examination returns: a curve relative to rank 1, what can be compared, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.origins import Origin
from cfltr_core.clicks.users import PositionBasedUser
from cfltr_core.propensity.identifiability import parts_of


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PropensityCurve:
    """Estimated examination θ_k, up to a factor for each group of ranks that the log can compare.

    Clicks show ratios of θ alone: whether all documents are twice as attractive, or all ranks looked at twice as
    often, no log can tell.  So the curve is θ_k/θ₁, as far as rank k was compared with rank 1, directly or over
    others.  :func:`~cfltr_core.propensity.conditional_poisson.conditional_poisson` makes one.

    Parameters
    ----------
    method : str
        The estimator.
    log_ratio : (n_ranks,)
        log θ_k/θ_j, with j the first rank of the group of k; 0 for j itself.
    covariance : (n_ranks, n_ranks)
        Of ``log_ratio``; NaN between groups, 0 for the first rank of each, which is fixed.
    component : (n_ranks,)
        Number of the group of each rank, from 0 in the order of their first ranks.
    clicks : (n_ranks,)
        Clicks that the estimate rests on.
    notes : tuple of str
        What the estimator found in the log, in sentences.
    queries : (n_ranks,), optional
        To how many queries of equal weight the log amounts at each rank, for a covariance that was estimated from as
        many: :func:`effective_queries`, of the queries' parts in the variance of ``log_ratio``
        (:meth:`~cfltr_core.propensity.conditional_poisson.StratifiedPoisson.noise`; infinite at the first rank of a
        group, which is fixed), or of their clicks at the rank.
    origin : Origin, optional
        Of which sessions of a log that was read: :func:`~cfltr_core.evaluation.decisions.decide` judges others.

    Raises
    ------
    ValueError
        For shapes that disagree.

    Examples
    --------
    >>> from cfltr_core.propensity.conditional_poisson import conditional_poisson
    >>> from cfltr_core.propensity.strata import count_rows
    >>> rows = dict(query=[0] * 12, document=[0] * 12, rank=[1, 2, 3] * 4)
    >>> curve = conditional_poisson(count_rows(**rows, clicked=[1, 1, 0] * 2 + [1, 0, 1] + [1, 0, 0]))
    >>> curve, curve.curve  # clicked 4, 2 and 1 times in four displays each
    (PropensityCurve(conditional Poisson: 3 of 3 ranks compared with rank 1), array([1.  , 0.5 , 0.25]))
    >>> curve.components, curve.clipped
    (((1, 2, 3),), ())
    >>> curve.standard_error.round(2)  # one query is no sample: the spread between queries is unknown
    array([ 0., nan, nan])
    >>> [round(x, 3) for x in curve.ratio(3, 2)]
    [0.5, nan, nan]
    >>> curve.interval().shape, curve.user(epsilon_minus=0.1).propensity([1, 2, 3])
    ((3, 2), array([1.  , 0.5 , 0.25]))
    >>> print(curve.diagnosis.splitlines()[0])
    All ranks from 1 to 3 are linked.
    """

    method: str
    log_ratio: FloatArray
    covariance: FloatArray
    component: IntArray
    clicks: FloatArray
    notes: tuple[str, ...] = ()
    queries: FloatArray | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        n = len(self.log_ratio)
        checks.shapes(self, covariance=(n, n), component=(n,), clicks=(n,), queries=(n,))

    def __repr__(self) -> str:
        known = int(np.isfinite(self.curve).sum())
        return f"PropensityCurve({self.method}: {known} of {len(self.log_ratio)} ranks compared with rank 1)"

    @property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The ranks, from 1, that can be compared with each other: groups of at least one."""
        return tuple(map(tuple, parts_of(self.component)))

    @property
    def curve(self) -> FloatArray:
        """θ_k/θ₁ of each rank, shape (n_ranks,): 1 at rank 1, NaN where rank k is not comparable with it."""
        return np.where(self.component == self.component[0], np.exp(self.log_ratio), np.nan)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of log θ_k/θ₁, shape (n_ranks,); of θ_k/θ₁ it is this, times the ratio."""
        error = np.sqrt(np.diag(self.covariance))
        return np.where(self.component == self.component[0], error, np.nan)

    def interval(self, level: float = 0.95) -> FloatArray:
        """Intervals θ̂_k/θ̂₁ · exp(± t · standard error) of the ``curve`` at ``level``, shape (n_ranks, 2).

        They are symmetric for the logarithm, where the estimate is nearest to normal.  The standard error is itself an
        estimate, from ``queries`` G: t is the quantile of Student's law with G − 1 degrees of freedom, G the smaller of
        those of rank k and rank 1; it is infinite if one query holds all clicks at a rank.  It matters below a hundred
        queries: with 25, the normal quantile, which curves without ``queries`` get, covers .92 in place of .95.

        Source: Student's law for few clusters of unequal weight, Satterthwaite 1946; Bell & McCaffrey 2002; with clicks
        as the weights, Carter, Schnepel & Steigerwald 2017, "Asymptotic Behavior of a t-Test Robust to Cluster
        Heterogeneity".

        ValueError for a level that is not strictly between 0 and 1.
        """
        checks.arguments(PropensityCurve.interval, locals())
        error = self.standard_error
        half = np.array([self._half(k, 0, level) for k in range(len(error))])
        width = np.where(error > 0, half * np.where(error > 0, error, 1.0), error)
        return np.asarray(self.curve[:, None] * np.exp(width[:, None] * [-1.0, 1.0]))

    def _half(self, k: int, other: int, level: float) -> float:
        """The quantile by which a standard error of ranks ``k`` and ``other``, from 0, is multiplied."""
        degrees = np.inf if self.queries is None else min(self.queries[k], self.queries[other]) - 1.0
        return student_quantile(degrees, level)

    def ratio(self, rank: int, other: int, *, level: float = 0.95) -> tuple[float, float, float]:
        """θ_k/θ_j of the ranks k = ``rank`` and j = ``other``, with its interval at ``level``: (ratio, low, high).

        ValueError, with what can be compared, for two ranks of different groups.
        """
        checks.arguments(PropensityCurve.ratio, locals())
        k, j = (self._index(value, name) for value, name in ((rank, "rank"), (other, "other")))
        if self.component[k] != self.component[j]:
            raise ValueError(f"rank {rank} cannot be compared with rank {other}: {self.diagnosis}")
        variance = self.covariance[k, k] + self.covariance[j, j] - 2 * self.covariance[k, j]
        value = float(np.exp(self.log_ratio[k] - self.log_ratio[j]))
        error = float(np.sqrt(max(variance, 0.0) if np.isfinite(variance) else np.nan))
        half = self._half(k, j, level) * error if error != 0 else 0.0
        return value, value * float(np.exp(-half)), value * float(np.exp(half))

    def _index(self, value: int, name: str) -> int:
        if value > len(self.log_ratio):
            raise ValueError(f"{name} is {value}: the log goes down to rank {len(self.log_ratio)}")
        return value - 1

    @property
    def clipped(self) -> tuple[int, ...]:
        """Ranks whose estimate is above that of rank 1: ``user`` puts them at 1."""
        return tuple((np.flatnonzero(self.curve > 1) + 1).tolist())

    @property
    def diagnosis(self) -> str:
        """What the log can and cannot tell, one sentence a line."""
        lines = list(self.notes)
        if self.clipped:
            found = ", ".join(f"{self.curve[k - 1]:.3g} at rank {k}" for k in self.clipped)
            lines.append(f"More examined than rank 1, by this estimate: {found}; user() puts them at 1.")
        return "\n".join(lines)

    def user(
        self, *, epsilon_plus: float = 1.0, epsilon_minus: float = 0.0, cutoff: int | None = None
    ) -> PositionBasedUser:
        """The click model to go on with: examination min(θ̂_k/θ̂₁, 1) at ranks 1 … ``cutoff``, by default all ranks.

        That rank 1 is always examined is a choice: a factor common to all ranks cannot be estimated, scales all
        weights alike, and leaves the order of rankers as it is.  The noise ``epsilon_plus``, ``epsilon_minus`` is not
        estimated here either.  Estimates above 1 are put at 1; ``clipped`` names them.

        Raises
        ------
        ValueError
            Naming the first rank up to ``cutoff`` that cannot be compared with rank 1.
        """
        checks.arguments(PropensityCurve.user, locals())
        known = np.isfinite(self.curve)
        last = len(known) if cutoff is None else self._index(cutoff, "cutoff") + 1
        if not known[:last].all():
            missing = int(np.argmin(known[:last])) + 1
            remedy = f"go on with cutoff={missing - 1}, or link it" if missing > 1 else "link it"
            raise ValueError(f"rank {missing} cannot be compared with rank 1: {remedy}. {self.diagnosis}")
        return PositionBasedUser(
            np.minimum(self.curve[:last], 1.0).tolist(), epsilon_plus=epsilon_plus, epsilon_minus=epsilon_minus
        )


def student_quantile(freedom: float, level: float) -> float:
    """By what a standard error is multiplied at a ``level``: Student's law of ``freedom`` degrees, ∞ if there is none.

    Examples
    --------
    >>> from cfltr_core.propensity.curves import student_quantile
    >>> [round(student_quantile(freedom, 0.95), 2) for freedom in (float("inf"), 4.0, 0.0)]
    [1.96, 2.78, inf]
    """
    from scipy.special import ndtri, stdtrit

    if freedom == np.inf:
        return float(ndtri(0.5 + level / 2))
    return float(stdtrit(freedom, 0.5 + level / 2)) if freedom > 1e-9 else float("inf")


def effective_queries(weights: ArrayLike) -> FloatArray:
    """(Σ_q w_qk)² / Σ_q w_qk² of ``weights`` (n_queries, n_ranks): as many queries of equal weight speak of each rank.

    Weights are the parts of the queries in a variance, or clicks.  It is the number of queries if all weigh alike, and
    1 if one has all the weight; 0 for a rank without any.

    Source: Kish 1965, *Survey Sampling*, for samples of unequal weight; Satterthwaite 1946, for parts of a variance.

    Examples
    --------
    >>> from cfltr_core.propensity.curves import effective_queries
    >>> effective_queries([[6, 3, 0], [6, 1, 0]])
    array([2. , 1.6, 0. ])
    """
    c = np.asarray(weights, dtype=np.float64)
    square = (c**2).sum(axis=0)
    return np.asarray(np.divide(c.sum(axis=0) ** 2, square, out=np.zeros_like(square), where=square > 0))


def clustered_covariance(influence: FloatArray, n_queries: int) -> FloatArray:
    """Covariance Q/(Q−1) Σ_q i_q i_qᵀ of an estimate whose error is Σ_q i_q; NaN for a single query.

    ``influence`` is (n_clusters, n); of the clusters, Q = ``n_queries`` say something, and the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.curves import clustered_covariance
    >>> clustered_covariance(np.array([[0.1], [-0.1], [0.0]]), 2).round(3)
    array([[0.04]])
    """
    rows = np.asarray(influence, dtype=np.float64)
    if n_queries < 2:
        return np.full((rows.shape[1], rows.shape[1]), np.nan)
    return np.asarray(rows.T @ rows * (n_queries / (n_queries - 1)))


def grouped_curve(
    method: str,
    log_theta: FloatArray,
    *,
    covariance: FloatArray,
    component: IntArray,
    **about: Any,
) -> PropensityCurve:
    """A :class:`PropensityCurve` from any ``log_theta`` and its ``covariance``, each group set to 0 at its first rank.

    With D = I − (column j of ones), j the first rank of the group, u ← D u and V ← D V Dᵀ on each group.  ``method``,
    ``component`` and the other fields, which are ``about`` the curve, are passed on.
    """
    ratio, spread = np.full(len(log_theta), np.nan), np.full((len(log_theta), len(log_theta)), np.nan)
    for group in range(int(component.max()) + 1):
        ranks = np.flatnonzero(component == group)
        block = covariance[np.ix_(ranks, ranks)]
        ratio[ranks] = log_theta[ranks] - log_theta[ranks[0]]
        spread[np.ix_(ranks, ranks)] = block - block[:1] - block[:, :1] + block[0, 0]
        # The first rank is the yardstick: it has no error, also where the spread is not known.
        ratio[ranks[0]] = spread[ranks[0], ranks] = spread[ranks, ranks[0]] = 0.0
    return PropensityCurve(method=method, log_ratio=ratio, covariance=spread, component=component, **about)


def curve_of(
    method: str,
    ranks: IntArray,
    log_theta: FloatArray,
    *,
    n_ranks: int,
    covariance: FloatArray,
    clicks: FloatArray,
    **about: Any,
) -> PropensityCurve:
    """A :class:`PropensityCurve` of ``n_ranks`` from the numbers of some ``ranks`` (n,), from 1, that are one group.

    ``log_theta`` and ``clicks`` are (n,), ``covariance`` (n, n); each other rank is a group of its own.  What else is
    ``about`` the curve, as its ``notes``, is passed on.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.curves import curve_of
    >>> given = dict(covariance=np.zeros((2, 2)), clicks=np.array([6.0, 2.0]))
    >>> curve = curve_of("by hand", np.array([1, 3]), np.log([0.8, 0.4]), n_ranks=3, **given)
    >>> curve.curve, curve.clicks, curve.component
    (array([1. , nan, 0.5]), array([6., 0., 2.]), array([0, 1, 0]))
    """
    at, group = ranks - 1, np.arange(n_ranks)
    every, spread, heard = np.zeros(n_ranks), np.full((n_ranks, n_ranks), np.nan), np.zeros(n_ranks)
    every[at], spread[np.ix_(at, at)], heard[at], group[at] = log_theta, covariance, clicks, at[0]
    component = np.unique(group, return_inverse=True)[1]
    return grouped_curve(method, every, covariance=spread, component=component, clicks=heard, **about)
