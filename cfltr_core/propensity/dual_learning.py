"""Dual learning: a ranker from clicks weighted by examination, and examination from clicks weighted by the ranker.

On a page of documents d at ranks k(d), of which d₁ stands on top, with clicks c_d, scores f_d of the documents and g_k
of the ranks,

    ranker:       −Σ_d c_d e^{g_1 − g_k(d)} log softmax(f)_d,
    examination:  −Σ_d c_d e^{f_d₁ − f_d} log softmax(g)_k(d),

with both softmaxes over the documents, or the ranks, of that page.  Each loss weights its clicks by what the other has
learnt, relative to the top of the page, and takes these weights as given.  In the mean over clicks with chances θ_k γ_d
the first is least for softmax(f)_d = γ_d/Σγ if e^{g_k} ∝ θ_k, and the second for e^{g_k} ∝ θ_k if e^{f_d} ∝ γ_d: the
truth is a point where both rest.  There is no function that both minimise, so nothing says that they come to rest, or
only there.

Source: Ai et al. 2018, "Unbiased Learning to Rank with Unbiased Propensity Estimation"; the two losses are
theirs.  They take a gradient step of both for each batch of pages; here, in a round, each is minimised on all pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_single_display
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links
from cfltr_core.propensity.score_models import climb, score_model
from cfltr_core.propensity.strata import DisplayCounts, display_counts

Climbed = Callable[[FloatArray], tuple[float, FloatArray]]
# A ratio of examinations beyond this, or below its inverse, is no estimate any more.
FARTHEST = 1e4
# Rounds that still move a ratio by more than this part of itself have not settled.
SETTLED = 1e-3
# Steps of L-BFGS for the few numbers of the ranks in a round.
RANK_STEPS = 50


class DualLosses(NamedTuple):
    """The two losses a click, and the gradient of each by its own numbers, the other's being given.

    ``ranker`` with ``by_score`` (n_docs,), ``examination`` with ``by_bias`` (n_ranks,).  :func:`dual_losses` makes it.
    """

    ranker: float
    by_score: FloatArray
    examination: float
    by_bias: FloatArray


def pooled_counts(logs: ClickLog | Sequence[ClickLog]) -> DisplayCounts:
    """Strata of several ``logs`` of one time, of rankers that were served side by side: one for each (query, document).

    :func:`~cfltr_core.propensity.strata.display_counts` makes each log a period with strata of its own, which nothing
    links; here a document that one ranker shows at rank 1 and another at rank 3 is one stratum with both ranks.

    Raises
    ------
    ValueError
        For no log, logs on different lists, or logs without an impression.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.dual_learning import pooled_counts
    >>> user, rng = cf.PositionBasedUser([1, 1/2]), np.random.default_rng(0)
    >>> pages = [cf.DeterministicPolicy(rank, [0, 2]) for rank in ([1, 2], [2, 1])]
    >>> logs = [cf.simulate_clicks(p, user, relevance=[1, 1], sessions=[50], rng=rng) for p in pages]
    >>> pooled_counts(logs).impressions, cf.display_counts(logs)
    (array([50, 50, 50, 50]), DisplayCounts(142 clicks, 200 impressions, 4 strata, 2 ranks))
    """
    apart = display_counts(logs)
    n = apart.n_ranks
    cell, where = np.unique(apart.document * n + apart.rank - 1, return_inverse=True)
    query = np.zeros(len(cell), dtype=np.int64)
    query[where] = apart.query
    return DisplayCounts(
        query=query,
        document=cell // n,
        rank=cell % n + 1,
        impressions=np.bincount(where, apart.impressions).astype(np.int64),
        clicks=np.bincount(where, apart.clicks).astype(np.int64),
    )


class _Pages:
    """The rows of the pages with a click, page after page, from the top; ranks that were never clicked are left out."""

    def __init__(self, logs: ClickLog | Sequence[ClickLog]) -> None:
        for i, log in enumerate([logs] if isinstance(logs, ClickLog) else logs):
            try:
                require_single_display(log)
            except ValueError as error:
                raise ValueError(
                    f"logs[{i}]: dual learning needs to know which documents stood on a page together, so each log is "
                    f"that of one ranker whose pages do not change; simulate or count each ranker alone ({error})"
                ) from None
        counts = display_counts(logs)
        self.n_ranks, self.n_docs = counts.n_ranks, int((logs if isinstance(logs, ClickLog) else logs[0]).offsets[-1])
        clicked = np.bincount(counts.rank, counts.clicks, minlength=self.n_ranks + 1) > 0
        page = counts.query * (1 + (0 if counts.period is None else int(counts.period.max())))
        page = page + (0 if counts.period is None else counts.period)
        use = clicked[counts.rank] & (np.bincount(page, counts.clicks)[page] > 0)
        order = np.lexsort((counts.rank, page))
        order = order[use[order]]
        new = np.append(True, np.diff(page[order]) != 0)[: len(order)]
        shared = np.flatnonzero(~new[1:] & (np.diff(counts.rank[order]) == 0))
        if len(shared):
            above, below = order[shared[0] : shared[0] + 2]
            raise ValueError(
                f"logs: documents {counts.document[above]} and {counts.document[below]} of query {counts.query[above]} "
                f"both stood at rank {counts.rank[above]}: their pages changed; count each ranker alone"
            )
        self.document, self.place = counts.document[order], counts.rank[order] - 1
        self.clicks = counts.clicks[order].astype(np.float64)
        self.start, self.page = np.flatnonzero(new), np.cumsum(new) - 1
        self.n_clicks = float(self.clicks.sum())
        if self.n_clicks == 0:
            raise ValueError(
                "logs: there is no click, so neither ranker nor examination can be learnt; collect more sessions"
            )

    def weights(self, given: FloatArray) -> FloatArray:
        """c_d e^{v₁ − v_d} / Σc of each row, v the ``given`` numbers of the rows and v₁ that of the page's top."""
        hit = self.clicks > 0
        with np.errstate(over="ignore"):
            ratio = np.exp(np.where(hit, given[self.start][self.page] - given, 0.0))
        return np.asarray(self.clicks * ratio / self.n_clicks)

    def loss(self, values: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
        """−Σ w log softmax(v) over the pages, of the ``values`` v of the rows, and its gradient by these."""
        v = values - np.maximum.reduceat(values, self.start)[self.page]
        mass = np.exp(v)
        total, all_weight = np.add.reduceat(mass, self.start), np.add.reduceat(weight, self.start)
        value = float(all_weight @ np.log(total) - weight @ v)
        return value, (all_weight / total)[self.page] * mass - weight


def dual_losses(logs: ClickLog | Sequence[ClickLog], scores: ArrayLike, *, bias: ArrayLike) -> DualLosses:
    """The losses of the ranker and of the examination, divided by the number of clicks, with their gradients.

    Source: Ai et al. 2018.

    Parameters
    ----------
    logs : ClickLog or sequence of ClickLog
        As for :func:`dual_learning`.
    scores : (n_docs,)
        f of every document of the lists.
    bias : (n_ranks,)
        g of every rank that was shown.

    Raises
    ------
    ValueError
        For numbers that are not finite or of another length, and for logs as in :func:`dual_learning`.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.dual_learning import dual_losses
    >>> policy, user = cf.DeterministicPolicy([1, 2], [0, 2]), cf.PositionBasedUser([1, 1/2])
    >>> log = cf.aggregate_clicks([0, 0, 0, 0, 1], policy, user=user, sessions=[5])
    >>> found = dual_losses(log, [0.0, 0.0], bias=[0.0, 0.0])  # half of the pages each, but four fifths of the clicks
    >>> found.by_score, found.by_bias
    (array([-0.3,  0.3]), array([-0.3,  0.3]))
    """
    pages = _Pages(logs)
    f = _finite(scores, pages.n_docs, "scores", "document")
    g = _finite(bias, pages.n_ranks, "bias", "rank")
    at_row, at_place = f[pages.document], g[pages.place]
    ranker, by_row = pages.loss(at_row, pages.weights(at_place))
    examination, by_place = pages.loss(at_place, pages.weights(at_row))
    return DualLosses(
        ranker,
        np.bincount(pages.document, by_row, minlength=len(f)).astype(np.float64),
        examination,
        np.bincount(pages.place, by_place, minlength=len(g)).astype(np.float64),
    )


def _finite(values: ArrayLike, size: int, name: str, what: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), one number for each {what}, got {array.shape}")
    return checks.finite_vector(array, size, name)


def dual_learning(
    logs: ClickLog | Sequence[ClickLog],
    features: ArrayLike,
    *,
    module: Any = None,
    decay: float = 0.0,
    rounds: int = 60,
    steps: int = 20,
    seed: int = 0,
) -> JointFit:
    """A ranker and the examination, each learnt from clicks that the other weights.

    Starting from the naive ranker (g = 0, f = 0), every round lowers the ranker's loss at the weights of the last g,
    then the examination's at the weights of the new f, until a round moves no ratio any more, or ``rounds`` are over.
    The fit says plainly if it did not settle; if it ran away, ``curve`` is NaN, as of ranks that cannot be compared,
    and ``examination`` shows where to.  Logs of a single ranker often do that: what a flatter curve leaves unexplained
    a steeper ranker takes over, and the next curve is flatter still.

    Ranks are compared also where no document was shown at two of them: right only if f can be, and a note says so.
    ``attraction`` is e^f/Σ e^f over the documents of its query that were shown, in the order of the strata of
    :func:`pooled_counts`, and so without a common scale: it is no chance of a click.

    Source: Ai et al. 2018, with the differences that :mod:`cfltr_core.propensity.dual_learning` names.

    Parameters
    ----------
    logs : ClickLog or sequence of ClickLog
        Each of one ranker whose pages do not change, all on the same lists: the losses need to know which documents
        stood on a page together.
    features : (n_docs, n_features)
    module : torch.nn.Module, or a function that makes one
        f, as for :func:`~cfltr_core.propensity.two_towers.two_towers`; None: f(x) = w·x.
    decay : float
        γ >= 0 of a penalty (γ/2)‖weights‖² per click in the ranker's loss, as for ``two_towers``.
    rounds : int
        At most as many.
    steps : int
        Steps of L-BFGS for the ranker in a round.
    seed : int

    Returns
    -------
    JointFit
        ``history`` holds the sum of the two losses, which need not fall.

    Raises
    ------
    ValueError
        For a log of pages that change, two documents of a page at one rank, logs on different lists, logs without
        clicks at two ranks; for features without a row for each document or that are not finite, a module of another
        shape, or settings out of range.
    TypeError
        For a ``module`` that is no network.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.dual_learning import dual_learning
    >>> user, rng, logs = cf.PositionBasedUser([1, 1/2, 1/3]), np.random.default_rng(0), []
    >>> for rank in ([1, 2, 3], [2, 3, 1]):  # two rankers, a log of each; A and C are relevant, B half of the time
    ...     page = cf.DeterministicPolicy(rank, [0, 3])
    ...     logs.append(cf.simulate_clicks(page, user, relevance=[1, 0.5, 1], sessions=[60_000], rng=rng))
    >>> fit = dual_learning(logs, np.eye(3))
    >>> fit.curve.round(2)
    array([1.  , 0.5 , 0.33])
    >>> fit.attraction.round(2)
    array([0.4, 0.2, 0.4])
    """
    checks.within(decay, 0, np.finfo(float).max, "decay", "expected γ of the penalty (γ/2)‖weights‖², >= 0")
    checks.positive_int(rounds, "rounds")
    checks.positive_int(steps, "steps")
    pages, counts = _Pages(logs), pooled_counts(logs)
    links = joint_links(counts, name="logs")
    documents = counts.document[counts.start[:-1]]  # one stratum each
    of = np.searchsorted(documents, pages.document)
    model = score_model(features, documents, module=module, seed=seed)
    clicked, n = links.clicks.astype(np.float64), counts.n_ranks
    free = np.flatnonzero(clicked)

    def ranker_loss(weight: FloatArray) -> Climbed:
        def negative(parameters: FloatArray) -> tuple[float, FloatArray]:
            value, by_row = pages.loss(model.of(parameters)[of], weight)
            size, by_size = model.penalty(parameters)
            slope = model.pulled_back(np.bincount(of, by_row, minlength=len(documents)).astype(np.float64))
            return -value - decay * size, -slope - decay * by_size

        return negative

    def examination_loss(weight: FloatArray) -> Climbed:
        def negative(bias: FloatArray) -> tuple[float, FloatArray]:
            value, by_row = pages.loss(bias[pages.place], weight)
            return -value, -np.bincount(pages.place, by_row, minlength=n).astype(np.float64)

        return negative

    parameters, bias = model.start(), np.zeros(n)
    history: list[float] = []
    moved, far, turn = np.inf, False, 0
    while turn < rounds:
        turn += 1
        by_bias, old = pages.weights(bias[pages.place]), bias
        parameters, ranker, _ = climb(ranker_loss(by_bias), parameters, steps=steps)
        by_score = pages.weights(model.of(parameters)[of])
        far = not (np.isfinite(by_score).all() and np.isfinite(ranker[-1]))
        if far:
            break
        bias, examination, _ = climb(examination_loss(by_score), bias, steps=RANK_STEPS)
        history.append(-float(ranker[-1] + examination[-1]))
        moved = float(np.ptp((bias - old)[free]))
        far = float(np.ptp(bias[free])) > np.log(FARTHEST)
        if far or moved < 1e-8:
            break
    component = np.arange(n) if far else None
    said: tuple[str, ...] = ()
    if far:
        said = (f"Diverged in round {turn}: the two losses drove each other apart. No estimate.",)
    elif moved > SETTLED:
        said = (f"Not settled: round {turn} still moved a ratio by {moved:.2g} of itself.",)
    theta = np.where(clicked > 0, np.exp(bias - bias[free[0]]), 0.0)
    return joint_fit(
        "dual learning",
        links,
        theta=theta,
        attraction=_page_shares(model.of(parameters), counts),
        history=np.array(history),
        assumption=f"the share of a document in its page is softmax(f(x)), with f {model.words}",
        component=component,
        notes=said,
        ranker=model.finish(parameters),
    )


def _page_shares(scores: FloatArray, counts: DisplayCounts) -> FloatArray:
    """e^f/Σ e^f over the strata of each query."""
    query = counts.query[counts.start[:-1]]
    new = np.append(True, np.diff(query) != 0)
    start, which = np.flatnonzero(new), np.cumsum(new) - 1
    mass = np.exp(scores - np.maximum.reduceat(scores, start)[which])
    return np.asarray(mass / np.add.reduceat(mass, start)[which])
