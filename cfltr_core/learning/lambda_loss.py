"""LambdaLoss for gains that come from clicks: what it bounds, its value, its gradient and the diagonal of its Hessian.

With gains G_d, ranks by score and D(r) = 1/log₂(1 + r), the discounts of neighbouring ranks differ by

    δ(m) = D(m) − D(m + 1),        δ(1) + … + δ(r − 1) = 1 − D(r).

The documents above d have the rank differences 1, …, rank(d) − 1 to it.  So what d misses of its gain is a sum over
pairs, and each step of it lies below a logistic loss ℓ(x) = log₂(1 + exp(−σ x)):

    1 − D(rank(d)) = Σ_{d′ above d} δ(|rank(d) − rank(d′)|) ≤ Σ_{d′ ≠ d} δ(|rank(d) − rank(d′)|) ℓ(s_d − s_d′).

Both forms of the loss have this δ, or for a cut-off k another weight ω(rank(d), rank(d′)) of the pair:

    linear        L = Σ_d G_d Σ_{d′ ≠ d} ω ℓ(s_d − s_d′) ≥ Σ_d G_d λ(rank(d)),        λ(r) = Σ_{r′ < r} ω(r, r′)
    difference    Σ over pairs with G_d > G_d′ of (G_d − G_d′) ω ℓ(s_d − s_d′)

The linear form is linear in G: with unbiased gains it is unbiased for what it would be with full information, and so
are its gradients.  The difference form, which released code uses, is not: |G_d − G_d′| of estimates is on average
larger than that of what they estimate.  It bounds Σ_d G_d λ(rank(d)) less Σ over pairs of min(G_d, G_d′) ω.

=============  ====================================================  =================================================
truncation     ω(r, r′)                                              λ(r) that the linear form bounds
=============  ====================================================  =================================================
no cut-off     δ(|r − r′|)                                           1 − D(r), as Σ G_d less DCG
at_least_one   δ(|r − r′|) if r ≤ k or r′ ≤ k, else 0                1 − D(r) to rank k; then D(r − k) − D(r), which
                                                                     falls to 0: deep documents seem to cost nothing
both           δ(|r − r′|) if r ≤ k and r′ ≤ k, else 0               1 − D(r) to rank k; then 0: it is no bound on what
                                                                     DCG@k misses, and a document below never moves
beyond         δ(|r − r′|), divided by 1 − D(max(r, r′)) if          1 − D(r) to rank k; then 1: what DCG@k misses
               that worse rank is beyond k
=============  ====================================================  =================================================

All are bounds *at the scores where the ranks were taken*.  A gradient is that with the ranks held fixed; with these
ranks L lies neither above the metric at other scores, nor does it touch it where it stands.  So this is no majorisation
and no descent of the metric, nor of L itself, is promised.

Sources: Wang et al. 2018, §5 (NDCG-Loss2; their D is 1/D here); Oosterhuis & de Rijke 2020, Eq. 6; "beyond" is the
weight of Jagerman et al. 2022 for NDCG@k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.lambda_pairs import Form, LambdaLists, LambdaLoss, Truncation


def lambda_loss(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    gains: ArrayLike,
    cutoff: int | None = None,
    truncation: Truncation = "at_least_one",
    form: Form = "linear",
    sigma: float = 1.0,
    hessian: bool = False,
) -> LambdaLoss:
    """LambdaLoss Σ_d G_d Σ_{d′ ≠ d} ω(rank(d), rank(d′)) log₂(1 + exp(−σ (s_d − s_d′))), G the ``gains``.

    The work is O(k · list) for the truncations ``at_least_one`` and ``both``, else O(list²); memory is O(list) beside
    some thousand documents.  Lists in which all gains are 0 cost nothing.  Of documents with equal scores every order
    counts alike: value, gradient and Hessian are the means over all these orders.

    Source: Oosterhuis & de Rijke 2020, Eq. 6, in the loss of Wang et al. 2018; the module has the derivation.

    Parameters
    ----------
    scores : (n_docs,) finite
    offsets : (n_queries + 1,)
    gains : (n_docs,) finite, ≥ 0
        G_d: relevance, or what :func:`click_gains` estimates it to be.
    cutoff : int
        k; without it every pair counts, and the truncation plays no part.
    truncation : "at_least_one", "both" or "beyond"
        Which pairs count how much beyond the cut-off: those with a document in the first k; those with both there; all,
        with a weight that makes the loss bound what DCG@k misses.
    form : "linear" or "difference"
        The difference form has |G_d − G_d′| at the pair, with the document of the larger gain as d; it is biased where
        the gains are estimates.  Where documents with equal scores differ in gain its list costs O(list²) whatever the
        cut-off, and memory of the largest such group times the list.
    sigma : float
        Steepness σ > 0.
    hessian : bool
        Also give the second derivatives ∂²L/∂s_d².

    Returns
    -------
    LambdaLoss

    Raises
    ------
    ValueError
        For scores that are not finite, or so far apart that their difference is not; bad offsets; gains that are
        negative or do not match; a cutoff below 1, an unknown word, σ ≤ 0.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> loss = cf.lambda_loss([3, 2, 1, 0], [0, 4], gains=[0, 0, 0, 1], cutoff=2)  # D ought to be in the first two
    >>> round(loss.value, 3), loss.gradient.round(3)  # C pushes nobody: it is below rank 2 as well
    (0.707, array([ 0.095,  0.166,  0.   , -0.262]))
    >>> cf.lambda_loss([3, 2, 1, 0], [0, 4], gains=[0, 0, 0, 1], cutoff=2, truncation="both").gradient
    array([0., 0., 0., 0.])
    >>> cf.lambda_loss([3, 2, 1, 0], [0, 4], gains=[0, 0, 0, 1], cutoff=2, truncation="beyond").gradient.round(3)
    array([ 0.167,  0.292,  0.684, -1.143])
    """
    cuts = checks.offsets_of(offsets)
    values = checks.finite_vector(scores, int(cuts[-1]), "scores")
    return LambdaLists(cuts, gains, cutoff=cutoff, truncation=truncation, form=form, sigma=sigma).loss(
        values, hessian=hessian
    )


def click_gains(log: ClickLog) -> FloatArray:
    """G_d = (1/N_q) Σ clicks / propensity over the N_q sessions of the query of d, shape (n_docs,), 0 without sessions.

    With :func:`~cfltr_core.evaluation.estimators.policy_aware` the propensity of a log is the exposure, and without
    noise G_d has the mean relevance(d) for every document that the policy may show where it can be examined.

    Source: Oosterhuis & de Rijke 2020, Eq. 6.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.EpsilonGreedyPolicy([1, 2, 3], [0, 3], epsilon=[0, 1]), cf.PositionBasedUser([1, 1/2])
    >>> rng = np.random.default_rng(0)
    >>> log = cf.simulate_clicks(policy, user=user, relevance=[1, 0, 1], sessions=[1_000_000], rng=rng)
    >>> cf.click_gains(log).round(2)  # C is displayed by chance, half of the time
    array([1. , 0. , 0.5])
    >>> cf.click_gains(cf.policy_aware(log, policy.exposure(user))).round(2)
    array([1., 0., 1.])
    """
    sessions = np.maximum(log.sessions, 1)[log.query]
    by_term = log.clicks * log.weights / sessions
    return np.bincount(log.document, by_term, int(log.offsets[-1])).astype(np.float64, copy=False)
