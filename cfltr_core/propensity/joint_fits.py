"""What models of examination and relevance together return, and how far several of them disagree.

A joint model says how likely a click is from two unknowns at once: the examination θ_k of the rank and the attraction
γ_s of the stratum.  Where documents were shown at several ranks the log itself compares these ranks; where they were
not, only what the model assumes of γ does.  So every fit carries its assumption in words, and a range over several
assumptions is the honest answer where the log has none.

The factor that examination and attraction may exchange is settled as everywhere here: θ₁ = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.propensity.curves import PropensityCurve, grouped_curve
from cfltr_core.propensity.identifiability import RankLinks, numbered, parts_of, rank_links, words_for
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.ranking.linear import LinearRanker


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JointFit(PropensityCurve):
    """Examination and attraction, fitted together: a :class:`~cfltr_core.propensity.curves.PropensityCurve` and more.

    There is no standard error: how far a joint model is off depends on whether its assumption holds, and no sum over
    queries shows that.  ``covariance`` is NaN but for the 0 of the first rank of each group.

    Parameters
    ----------
    examination : (n_ranks,)
        θ̂_k/θ̂_j as the fit ended, j the first rank with a click, *whether or not* the log can compare the two;
        ``curve`` is NaN where neither the log nor the model can.
    attraction : (n_strata,)
        γ̂_s of each stratum of the counts on the scale where the examination of that rank j is 1: the estimated chance
        of a click at rank j.  It is a probability only if θ̂_j was 1 in the fit, so that a product with
        ``examination`` is the estimated chance of a click, while ``attraction`` itself may exceed 1 in other models.
    history : (n_iterations + 1,)
        What was maximised (a log-likelihood) or minimised (a loss): at the start, then after every iteration.
    assumption : str
        What is assumed of relevance, in words.
    ranker : LinearRanker, optional
        The linear scorer that was learnt, if it was one.

    Examples
    --------
    >>> from cfltr_core.propensity.joint_models import expectation_maximisation
    >>> from cfltr_core.propensity.joint_fits import JointFit
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(  # A stood at ranks 1 and 2, B below or above it
    ...     query=[0, 0, 0, 0], document=[0, 0, 1, 1], rank=[1, 2, 2, 1], impressions=[60] * 4, clicks=[48, 24, 6, 12],
    ... )
    >>> fit = expectation_maximisation(counts, iterations=1_000)
    >>> isinstance(fit, JointFit), fit.curve.round(3), fit.attraction.round(3), fit.standard_error
    (True, array([1. , 0.5]), array([0.8, 0.2]), array([ 0., nan]))
    >>> fit.assumption
    'none: each document has an attraction of its own'
    >>> fit.history[:3].round(1), fit.examination.round(3), fit.ranker  # the log-likelihood rises
    (array([-167.9, -136.6, -126.6]), array([1. , 0.5]), None)
    """

    examination: FloatArray
    attraction: FloatArray
    history: FloatArray
    assumption: str
    ranker: LinearRanker | None = None


def joint_fit(
    method: str,
    links: RankLinks,
    *,
    theta: FloatArray,
    attraction: FloatArray,
    component: IntArray | None = None,
    notes: tuple[str, ...] = (),
    **about: Any,
) -> JointFit:
    """A :class:`JointFit` from any ``theta`` (n_ranks,) and ``attraction`` (n_strata,), put on the scale of θ_j = 1.

    ``attraction`` is multiplied by θ_j and ``theta`` divided by it, j being the first rank with clicks.  ``component``
    (n_ranks,) are the ranks that are compared; without it a model of relevance compares all ranks with a click, and
    notes say which of these comparisons are not those of the ``links``.  ``method``, ``history``, ``assumption``,
    ``notes`` and ``ranker`` are passed on.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.joint_fits import joint_fit, joint_links
    >>> from cfltr_core.propensity.strata import count_rows
    >>> links = joint_links(count_rows(query=[0, 0], document=[0, 1], rank=[1, 2], clicked=[1, 1]))
    >>> given = dict(attraction=np.array([0.4]), history=np.zeros(1), assumption="linear")
    >>> fit = joint_fit("a model", links, theta=np.array([0.5, 0.1]), **given)
    >>> fit.curve, fit.attraction
    (array([1. , 0.2]), array([0.2]))
    >>> fit.notes[0]  # doctest: +ELLIPSIS
    "Between the groups rank 1 | rank 2 these ratios are the model's, not the log's: no document was shown in two ..."
    """
    if component is None:
        # Ranks without a click stand for themselves.
        component = numbered(np.where(links.clicks == 0, 1 + np.arange(len(theta)), 0))
        notes = (*_said_of_model(links), *notes)
    scale = float(theta[int(np.argmax(links.clicks > 0))])
    # A rank without a click has θ̂ = 0 or nearly: a group of its own, whose logarithm is not looked at.
    log_theta = np.log(np.maximum(theta, np.finfo(float).tiny))
    unknown, clicks = np.full((len(theta), len(theta)), np.nan), links.clicks.astype(np.float64)
    said = {"clicks": clicks, "notes": notes, "origin": links.origin}
    curve = grouped_curve(method, log_theta, covariance=unknown, component=component, **said)
    return JointFit(**vars(curve), examination=theta / scale, attraction=attraction * scale, **about)


def _said_of_model(links: RankLinks) -> tuple[str, ...]:
    """What is to be said if a model of relevance compares all ranks with a click."""
    groups = [part for part in parts_of(links.log) if links.clicks[part[0] - 1] > 0]
    if len(groups) < 2:
        return links.gaps
    of = [{int(links.design[rank - 1]) for rank in part} for part in groups]
    apart = all(len(part) == 1 for part in of) and len(set.union(*of)) == len(of)
    missing = "no document was shown in two of them" if apart else "clicks are missing on a side of the link"
    names = " | ".join(words_for(part) for part in groups)
    between = f"Between the groups {names} these ratios are the model's, not the log's: {missing}."
    return (between, *links.gaps)


def joint_links(counts: DisplayCounts, *, name: str = "counts") -> RankLinks:
    """:func:`~cfltr_core.propensity.identifiability.rank_links` of ``counts`` that a joint model can be fitted to.

    ``name`` is the argument that messages begin with.

    Raises
    ------
    ValueError
        For counts without a click, or with clicks at one rank only: then there is no ratio to estimate.

    Examples
    --------
    >>> from cfltr_core.propensity.joint_fits import joint_links
    >>> from cfltr_core.propensity.strata import count_rows
    >>> joint_links(count_rows(query=[0, 0], document=[0, 1], rank=[1, 2], clicked=[1, 1]))
    RankLinks(ranks that the log can compare: rank 1 | rank 2)
    """
    links = rank_links(counts)
    clicked = (np.flatnonzero(links.clicks) + 1).tolist()
    if not clicked:
        raise ValueError(
            f"{name}: there is no click, so neither examination nor relevance shows; collect more sessions"
        )
    if len(clicked) == 1:
        raise ValueError(
            f"{name}: clicks are at {words_for(clicked)} only, so there is no ratio of examinations to estimate; keep "
            "the rows of the other ranks, or collect more sessions"
        )
    return links


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AssumptionRange:
    """The smallest and the largest estimate of θ_k/θ₁ over several assumptions; :func:`assumption_range` makes it.

    Parameters
    ----------
    names : tuple of str
        What the curves are called, one for each assumption.
    curves : (n_curves, n_ranks)
        θ̂_k/θ̂₁ of each.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.joint_fits import AssumptionRange
    >>> found = AssumptionRange(names=("one", "other"), curves=np.array([[1.0, 0.4, np.nan], [1.0, 0.5, 0.3]]))
    >>> found.low, found.high
    (array([1. , 0.4, nan]), array([1. , 0.5, nan]))
    >>> found.diagnosis.splitlines()[1]
    'No range at rank 3: not known to one.'
    """

    names: tuple[str, ...]
    curves: FloatArray

    @property
    def low(self) -> FloatArray:
        """The smallest θ̂_k/θ̂₁ at each rank, shape (n_ranks,); NaN where one of the curves does not know it."""
        return np.asarray(self.curves.min(axis=0))

    @property
    def high(self) -> FloatArray:
        """The largest θ̂_k/θ̂₁ at each rank, shape (n_ranks,); NaN where one of the curves does not know it."""
        return np.asarray(self.curves.max(axis=0))

    @property
    def width(self) -> FloatArray:
        """How much hangs on the assumption: ``high`` − ``low``, shape (n_ranks,)."""
        return self.high - self.low

    def __repr__(self) -> str:
        return f"AssumptionRange({len(self.names)} assumptions: {', '.join(self.names)}; {self.curves.shape[1]} ranks)"

    @property
    def diagnosis(self) -> str:
        """Where the assumptions disagree most, in a sentence or two."""
        known = np.flatnonzero(np.isfinite(self.width))
        lines = []
        if len(known):
            worst = int(known[np.argmax(self.width[known])])
            least, most = (self.names[int(pick(self.curves[:, worst]))] for pick in (np.argmin, np.argmax))
            lines.append(
                f"They disagree most at rank {worst + 1}: {self.low[worst]:.3g} with {least}, {self.high[worst]:.3g} "
                f"with {most}; which is right hangs on what is assumed of relevance."
            )
        unknown = np.flatnonzero(~np.isfinite(self.width)) + 1
        if len(unknown):
            without = [name for name, row in zip(self.names, self.curves, strict=True) if np.isnan(row).any()]
            lines.append(f"No range at {words_for(unknown.tolist())}: not known to {', '.join(without)}.")
        return "\n".join(lines)


def assumption_range(fits: Mapping[str, PropensityCurve]) -> AssumptionRange:
    """The range of θ_k/θ₁ over estimates that assume different things: min and max of the curves at each rank.

    It is no confidence interval.  It holds the truth only if one of the assumptions errs upwards and another downwards
    at that rank; what it shows is how much of the answer is assumption.

    Parameters
    ----------
    fits : mapping of names to PropensityCurve
        At least two, over the same ranks.

    Raises
    ------
    ValueError
        For fewer than two curves, or curves of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.curves import grouped_curve
    >>> from cfltr_core.propensity.joint_fits import assumption_range
    >>> about = dict(covariance=np.zeros((2, 2)), component=np.array([0, 0]), clicks=np.array([9.0, 3.0]))
    >>> found = {"linear": [1.0, 0.4], "free": [1.0, 0.5]}
    >>> fits = {name: grouped_curve(name, np.log(curve), **about) for name, curve in found.items()}
    >>> found = assumption_range(fits)
    >>> found
    AssumptionRange(2 assumptions: linear, free; 2 ranks)
    >>> found.low, found.high, found.width.round(3)
    (array([1. , 0.4]), array([1. , 0.5]), array([0. , 0.1]))
    >>> print(found.diagnosis)
    They disagree most at rank 2: 0.4 with linear, 0.5 with free; which is right hangs on what is assumed of relevance.
    """
    if len(fits) < 2:
        raise ValueError(f"fits: expected at least two curves by name, got {len(fits)}; one assumption has no range")
    curves = {name: fit.curve for name, fit in fits.items()}
    first, n = next((name, len(curve)) for name, curve in curves.items())
    for name, curve in curves.items():
        if len(curve) != n:
            raise ValueError(
                f"fits[{name!r}] has {len(curve)} ranks, fits[{first!r}] has {n}: fit all to the counts of one log"
            )
    return AssumptionRange(names=tuple(curves), curves=np.array(list(curves.values())))
