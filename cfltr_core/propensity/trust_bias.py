"""Trust bias from a log without labels: slope and intercept of the click probability at each rank.

Of a stratum s with attraction γ_s the click probability at rank k is taken to be a line,

    μ_sk = β_k γ_s + α_k,

of which the position-based model is the case α = 0.

**What a log identifies.**  For a > 0 and any b the change γ → aγ + b, β → β/a, α → α − βb/a leaves every μ_sk as it is:
no log can tell, and β₁ = 1, α₁ = 0 is a choice, with which γ_s is the click probability at rank 1.  That is all, if the
log links the ranks well.  Proof: put p_k = 1/β_k and q_k = α_k/β_k.  Then the model says p_k μ_sk − q_k = γ_s at every
rank where s was shown: *linear* equations in (p, q, γ), in which scale and shift are two free directions.  So (β, α) is
unique up to them if and only if these equations have no third.  Two strata of different γ at both of two ranks k and j
are two points, (μ_sj, μ_sk) and (μ_tj, μ_tk), on the line that maps rank j to rank k, and fix it; a path of such pairs
fixes all ranks of the path.  One stratum, or several of one γ, fix a point, and the line may turn about it.  (Two
points for each pair are enough, not always needed: four ranks of which every pair has one stratum of its own give 12
equations for 14 unknowns, and are fixed too.)

**How it is estimated.**  A free γ_s for each stratum has *incidental parameters*: from few impressions the rate at
rank j is a noisy regressor, and the slope of the rates at k on it comes out too small however many strata there are.
Here the sum of squares that the equations suggest is freed of its noise.  With rates y_sk = c_sk/n_sk, weights
w_sk = n_sk ω_k, x_sk = p_k y_sk − q_k and the weighted mean x̄_s of the stratum,

    Q(p, q) = Σ_s Σ_k [ w_sk (x_sk − x̄_s)² − w_sk (1 − w_sk/W_s) p_k² v_sk ],    v_sk = y_sk (1 − y_sk)/(n_sk − 1).

v_sk is unbiased for the variance of y_sk; in other words y² is replaced by c(c − 1)/(n(n − 1)), the clicks of *two
different* sessions.  So the mean of Q, given the displays, is its value without noise: a quadratic form that is >= 0,
and 0 exactly for the solutions of the equations.  Its minimum among (p, q) with q₁ = 0 and Σ_k N_k p_k² = 1, N_k the
noise that was taken off at rank k, is an eigenvector; it is consistent with many queries, whatever the numbers of
impressions >= 2.  It is rescaled to p₁ = 1, and clusters of queries give its error.  Nothing is assumed of how γ is
distributed, or of which ranks an attractive document gets.

Source: the affine model is that of Vardasbi et al. 2020, with trust as in Agarwal et al. 2019 ("Addressing Trust Bias
for Unbiased Learning-to-Rank"), who estimate it from labels or by EM.  Least squares freed of noise is Fuller 1987,
"Measurement Error Models"; that it estimates trust is derived in chapter 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.curves import clustered_covariance
from cfltr_core.propensity.identifiability import components_of, link_table, parts_of, words_for
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.propensity.trust_curves import TrustCurve

# Weights ω_k follow the estimate: the first is made with ω = 1, and so many times it is made again.
REWEIGHTED = 2
# The spread between documents, in its standard errors: below the first there is no answer, below the second a warning.
NO_SPREAD, LITTLE_SPREAD = 2.0, 6.0


@dataclass(frozen=True, eq=False)
class TrustMoments:
    """The quadratic form Q(p, q) = (p, q)ᵀ A (p, q) of a log; :func:`trust_moments` makes it.

    ``form`` is A, (2n, 2n), and ``noise`` (n,) what was taken off the diagonal of p, for n ranks from 1.
    """

    form: FloatArray
    noise: FloatArray


def trust_moments(counts: DisplayCounts, weights: ArrayLike) -> TrustMoments:
    """A of the quadratic form Q(p, q), whose mean is its value without noise, given the displays.

    Terms of one impression say nothing, for the noise of their rate is not known; of the others,

        A = Σ_s Σ_k w_sk a_sk a_skᵀ − w_sk (1 − w_sk/W_s) v_sk e_k e_kᵀ  −  Σ_s (Σ_k w_sk a_sk)(Σ_k w_sk a_sk)ᵀ / W_s,

    in which a_sk has y_sk at p_k and −1 at q_k, and e_k has 1 at p_k.

    Parameters
    ----------
    counts : DisplayCounts
    weights : (n_ranks,)
        ω_k > 0 of each rank.

    Raises
    ------
    ValueError
        For weights of another number, or not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> from cfltr_core.propensity.trust_bias import trust_moments
    >>> rows = dict(query=[0] * 4, document=[0, 0, 1, 1], rank=[1, 2] * 2, impressions=[2000] * 4)
    >>> moments = trust_moments(DisplayCounts(**rows, clicks=[1600, 900, 400, 300]), [1, 1])
    >>> p, q = np.array([1, 2]), np.array([0, 0.1])  # rates .8, .2 at rank 1 and .45, .15 at rank 2: μ₂ = (μ₁ + .1)/2
    >>> value = np.append(p, q) @ moments.form @ np.append(p, q)
    >>> bool(np.isclose(value, -moments.noise @ p**2))  # the rates lie on this line: only the noise taken off is left
    True
    """
    least, why = float(np.finfo(np.float64).tiny), "expected a number > 0 for each rank"
    terms = _Terms.of(counts, checks.finite_vector(weights, counts.n_ranks, "weights", low=least, why=why))
    return TrustMoments(terms.form(), terms.by_rank(terms.taken_off))


@dataclass(frozen=True, eq=False)
class _Terms:
    """The terms of at least two impressions in strata of at least two of them, with their weights."""

    n: int
    place: IntArray
    stratum: IntArray
    cluster: IntArray
    rate: FloatArray
    impressions: FloatArray
    weight: FloatArray
    total: FloatArray
    taken_off: FloatArray

    @classmethod
    def of(cls, counts: DisplayCounts, omega: FloatArray, part: IntArray | None = None) -> _Terms:
        """Those at the ranks of ``part`` (from 0), by default all."""
        use = counts.impressions >= 2
        if part is not None:
            use &= np.isin(counts.rank - 1, part)
        alone = np.bincount(counts.stratum[use], minlength=len(counts.start) - 1) < 2
        use &= ~alone[counts.stratum]
        n, y = counts.impressions[use].astype(np.float64), counts.clicks[use] / counts.impressions[use]
        stratum = np.unique(counts.stratum[use], return_inverse=True)[1].astype(np.int64)
        w = n * omega[counts.rank[use] - 1]
        total = np.asarray(np.bincount(stratum, w)[stratum], dtype=np.float64) if len(w) else w
        taken = w * (1.0 - w / total) * y * (1.0 - y) / (n - 1.0)
        return cls(counts.n_ranks, counts.rank[use] - 1, stratum, counts.cluster[use], y, n, w, total, taken)

    def by_rank(self, values: FloatArray) -> FloatArray:
        """Sums over the terms of each rank."""
        return np.bincount(self.place, values, minlength=self.n).astype(np.float64)

    @property
    def unit_noise(self) -> FloatArray:
        """What measures directions: the noise that is taken off, a little more where there is none."""
        return self.taken_off + 1e-9 * self.weight

    def form(self) -> FloatArray:
        from scipy.sparse import csr_matrix

        w, y, n = self.weight, self.rate, self.n
        out = np.zeros((2 * n, 2 * n))
        p, q = np.arange(n), np.arange(n, 2 * n)
        out[p, p] = self.by_rank(w * y * y - self.taken_off)
        out[p, q] = out[q, p] = -self.by_rank(w * y)
        out[q, q] = self.by_rank(w)
        scale = 1.0 / np.sqrt(self.total)
        row, column = np.tile(self.stratum, 2), np.concatenate([self.place, self.place + n])
        n_strata = int(self.stratum.max(initial=-1)) + 1
        sums = csr_matrix((np.concatenate([w * y * scale, -w * scale]), (row, column)), shape=(n_strata, 2 * n))
        return np.asarray(out - (sums.T @ sums).toarray())

    def gradients(self, p: FloatArray, q: FloatArray, n_clusters: int) -> FloatArray:
        """A_q (p, q) of each query, (n_clusters, 2n)."""
        x = p[self.place] * self.rate - q[self.place]
        mean = np.bincount(self.stratum, self.weight * x)[self.stratum] / self.total
        residual = self.weight * (x - mean)
        parts = (residual * self.rate - self.taken_off * p[self.place], -residual)
        cell = self.cluster * self.n + self.place
        tables = [np.bincount(cell, part, minlength=n_clusters * self.n).reshape(n_clusters, -1) for part in parts]
        return np.concatenate(tables, axis=1)


def trust_bias(counts: DisplayCounts) -> TrustCurve:
    """Slope and intercept of every rank that the log links with rank 1, from least squares freed of noise.

    Two ranks are linked if at least two strata were shown at both, at least twice at each.  That the documents that
    link them differ in attraction is tested: without spread between them every line through one point fits.  It needs
    what every estimator of this folder needs: displays that do not depend on clicks of the same stratum, and an
    attraction that does not vary with the page inside it.  It needs many more clicks than a curve of examination, since
    it lives on the difference between documents.

    Parameters
    ----------
    counts : DisplayCounts
        From :func:`~cfltr_core.propensity.strata.display_counts` or
        :func:`~cfltr_core.propensity.strata.count_rows`.

    Raises
    ------
    TypeError
        For ``counts`` of another type.
    ValueError
        For counts without a click, when no rank is linked with rank 1, or the documents that link the ranks are
        equally attractive as far as the log can tell, with the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> rankers = [cf.DeterministicPolicy(rank * 200, range(0, 601, 3)) for rank in ([1, 2, 3], [2, 3, 1])]
    >>> policy = cf.MixturePolicy(rankers, shares=[0.5, 0.5])
    >>> user = cf.TrustUser([1, 1/2, 1/3], epsilon_plus=0.9, epsilon_minus=[0.4, 0.2, 0.1])
    >>> rng = np.random.default_rng(0)
    >>> relevance = rng.integers(2, size=600)
    >>> log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=[9_000] * 200, rng=rng)
    >>> curve = cf.trust_bias(cf.display_counts(log))
    >>> slope, intercept = user.line([1, 2, 3])  # with γ the click probability at rank 1: β_k/β₁, α_k − α₁ β_k/β₁
    >>> curve.slope.round(2), (slope / slope[0]).round(2)
    (array([1.  , 0.7 , 0.53]), array([1.  , 0.7 , 0.53]))
    >>> curve.intercept.round(2), (intercept - intercept[0] * slope / slope[0]).round(2)
    (array([ 0.  , -0.18, -0.18]), array([ 0.  , -0.18, -0.18]))
    """
    checks.arguments(trust_bias, locals())
    if not counts.clicks.any():
        raise ValueError(
            "counts: there is no click, so no line can be drawn through click rates; collect more sessions"
        )
    n = counts.n_ranks
    part, notes = _linked(counts)
    omega, n_clusters = np.ones(n), int(counts.cluster[-1]) + 1
    for _ in range(1 + REWEIGHTED):
        terms = _Terms.of(counts, omega, part)
        p, q, strength = _solve(terms, part, n_clusters)
        # The variance of p y is p² μ(1 − μ)/n: weights make it alike at all ranks.
        spread = terms.by_rank(terms.impressions * terms.rate * (1 - terms.rate))
        size = terms.by_rank(terms.impressions)
        omega[part] = size[part] / np.maximum(p[part] ** 2 * spread[part], 1e-12 * size[part])
        omega[part] /= omega[part].max()
    spread_pq = clustered_covariance(_influence(terms, p, q, n_clusters), len(np.unique(terms.cluster)))
    slope, intercept = np.full(n, np.nan), np.full(n, np.nan)
    slope[part], intercept[part] = 1 / p[part], q[part] / p[part]
    # By the delta method: dβ = −dp/p², dα = dq/p − q dp/p².
    change = np.zeros((2 * n, 2 * n))
    change[part, part] = -1 / p[part] ** 2
    change[part + n, part] = -q[part] / p[part] ** 2
    change[part + n, part + n] = 1 / p[part]
    known = np.zeros(2 * n, dtype=bool)
    known[np.concatenate([part, part + n])] = True
    covariance = np.where(known[:, None] & known, change @ np.nan_to_num(spread_pq) @ change.T, np.nan)
    if np.isnan(spread_pq).any():
        free = np.concatenate([part[1:], part[1:] + n])
        covariance[np.ix_(free, free)] = np.nan
    if np.isfinite(strength) and strength < LITTLE_SPREAD:
        notes.append(
            f"The documents that link the ranks differ little in attraction ({strength:.1f} standard errors): "
            "do not rely on the intervals, collect more sessions."
        )
    return TrustCurve(
        slope=slope,
        intercept=intercept,
        covariance=covariance,
        strength=strength,
        notes=tuple(notes),
        origin=counts.origin,
    )


def _influence(terms: _Terms, p: FloatArray, q: FloatArray, n_clusters: int) -> FloatArray:
    """How far each query moves (p, q), (n_clusters, 2n): from (A − λ N)(p, q) = 0, N the scale, with p₁ = 1 and q₁ = 0.

    A query moves A, N and the eigenvalue λ = Q/Σ N p².
    """
    n, z = terms.n, np.append(p, q)
    form, scale = terms.form(), np.append(terms.by_rank(terms.unit_noise), np.zeros(n))
    size = float(scale @ z**2)
    least = float(z @ form @ z) / size
    own = terms.gradients(p, q, n_clusters)
    cell = terms.cluster * n + terms.place
    own[:, :n] -= least * p * np.bincount(cell, terms.unit_noise, minlength=n_clusters * n).reshape(n_clusters, n)
    own -= (own @ z)[:, None] * (scale * z) / size
    # Ranks that are not linked have p = 0 and stay where they are.
    free = np.flatnonzero((np.tile(p, 2) > 0) & (np.arange(2 * n) % n > 0))
    out = np.zeros((n_clusters, 2 * n))
    out[:, free] = -own[:, free] @ np.linalg.inv((form - least * np.diag(scale))[np.ix_(free, free)])
    return out


def _linked(counts: DisplayCounts) -> tuple[IntArray, list[str]]:
    """The ranks, from 0, that are linked with rank 1, and what there is to say."""
    use = counts.impressions >= 2
    place, start = counts.rank[use] - 1, np.append(0, np.cumsum(use))[counts.start]
    together = link_table(place, start, np.ones_like(place), n_ranks=counts.n_ranks)
    parts = parts_of(components_of(together - 1, strong=False))  # two strata at least
    first = parts[0]
    groups = "; ".join(words_for(part) for part in parts)
    remedy = (
        "show one per cent of the sessions their page with two ranks of different groups swapped, in at least two "
        "queries with documents of different attraction"
    )
    if len(first) < 2:
        raise ValueError(
            "counts: no rank is linked with rank 1 by two documents that were shown twice at both. Groups of linked "
            f"ranks: {groups}; {remedy}"
        )
    notes = []
    if len(parts) > 1:
        notes.append(f"Only ranks of one group are on one scale: {groups}. To join them, {remedy}.")
    left_out = int((~use).sum())
    if left_out:
        notes.append(f"{left_out} of {len(use)} terms have one impression and say nothing here.")
    return np.array(first) - 1, notes


def _solve(terms: _Terms, part: IntArray, n_clusters: int) -> tuple[FloatArray, FloatArray, float]:
    """p and q of the linked ranks with p₁ = 1 and q₁ = 0, and the strength; ValueError where there is no answer.

    With q at its best, Q is pᵀ S p.  Free of noise it is 0 in one direction, the truth, and positive in all others, as
    far as documents differ.  So p is the eigenvector of the smallest eigenvalue of S, and the second smallest tells how
    surely it is the only one.  Directions are measured by the noise that was taken off: with p₁ = 1 as the measure, the
    rates of rank 1 would be put down to those of the deep ranks, whose noise is largest.
    """
    n = terms.n
    later = part[1:] + n
    form, scale = terms.form(), 1.0 / np.sqrt(terms.by_rank(terms.unit_noise)[part])
    best_q = -np.linalg.solve(form[np.ix_(later, later)], form[np.ix_(later, part)])
    reduced = form[np.ix_(part, part)] + form[np.ix_(part, later)] @ best_q
    values, vectors = np.linalg.eigh(reduced * scale[:, None] * scale)
    p, q, step = np.zeros(n), np.zeros(n), np.zeros(2 * n)
    step[part] = scale * vectors[:, 1]
    step[later] = best_q @ step[part]
    by_query = (terms.gradients(step[:n], step[n:], n_clusters) @ step)[np.unique(terms.cluster)]
    error = float(np.sqrt(clustered_covariance((by_query - by_query.mean())[:, None], len(by_query))[0, 0]))
    # One query is no sample: nothing is known of the error.
    strength = float(values[1]) / error if error > 0 else float("nan")
    if values[1] <= 1e-9 * values[-1] or values[1] <= 0 or strength < NO_SPREAD:
        worst = int(part[1:][np.argmax(np.abs(vectors[1:, 1]))]) + 1
        raise ValueError(
            f"counts: the documents that link rank {worst} with the others are equally attractive, as far as the log "
            "can tell: one point does not make a line. Collect more sessions, give the part that the curve is "
            "estimated from a larger share of them (split=…), or show documents of different attraction at both ranks"
        )
    # Its first entry is 0 where rates at another rank are all the same, as without a click there.
    direction = scale * vectors[:, 0] * np.sign(vectors[0, 0])
    if not (direction > 0).all():
        rank = int(part[1:][np.argmin(direction[1:])]) + 1
        raise ValueError(
            f"counts: at rank {rank} what is clicked more at rank 1 does not seem to be clicked more: either the model "
            "is wrong, or the log is too small; collect more sessions, or cut the page above that rank"
        )
    p[part] = direction / direction[0]
    q[later - n] = best_q @ p[part]
    return p, q, strength
