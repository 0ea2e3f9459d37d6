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

So *how* the losses are lowered decides where they end.  Of some pages, drawn anew for each step, both gradients are
taken at the same f and g, and both f and g move a little.  Were one loss minimised to its end before the other moves,
a ranker that is quick to explain what a flat curve leaves over would drive the two apart.

Source: Ai et al. 2018, "Unbiased Learning to Rank with Unbiased Propensity Estimation": losses, and joint steps on a
batch of pages.  Here the steps have one length and a momentum (Polyak 1964), and the numbers that they pass through in
their second half are averaged (Polyak & Juditsky 1992), which takes out what the draws of pages did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_single_display
from cfltr_core.propensity.joint_fits import JointFit, joint_fit, joint_links
from cfltr_core.propensity.score_models import score_model
from cfltr_core.propensity.strata import DisplayCounts, display_counts

# A ratio of examinations beyond this, or below its inverse, is no estimate any more.
FARTHEST = 1e4
# Averages of the last two quarters of the steps whose ratios differ by more than this part have not settled.
SETTLED = 0.05
# The part of the last step that the next one repeats.
MOMENTUM = 0.8


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
        origin=apart.origin,
    )


class _Pages:
    """A row for each page with a click: ``document``, −1 where there is none, and ``clicks`` at each rank, from 0."""

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
        period = np.zeros_like(counts.query) if counts.period is None else counts.period
        page = np.unique(np.stack([counts.query, period]), axis=1, return_inverse=True)[1].ravel()
        table = np.full((2, int(page.max()) + 1, counts.n_ranks), -1)
        table[:, page, counts.rank - 1] = counts.document, counts.clicks
        hidden = np.flatnonzero(table[0, page, counts.rank - 1] != counts.document)
        if len(hidden):
            below = table[0, page[hidden[0]], counts.rank[hidden[0]] - 1]
            raise ValueError(
                f"logs: documents {counts.document[hidden[0]]} and {below} of query {counts.query[hidden[0]]} both "
                f"stood at rank {counts.rank[hidden[0]]}: their pages changed; count each ranker alone"
            )
        table[:, :, (table[1] <= 0).all(axis=0)] = -1  # a rank that was never clicked is none of the page
        self.document, clicks = table[:, (table[1] > 0).any(axis=1)]
        self.clicks = np.maximum(clicks, 0).astype(np.float64)


def _loss(values: FloatArray, clicks: FloatArray, given: FloatArray) -> tuple[float, FloatArray]:
    """−Σ w log softmax(v) over the pages, and the slope of its negative by the ``values`` v, −∞ where nothing stands.

    w are the ``clicks``, each times e^{u₁ − u}, u the ``given`` numbers and u₁ that of the top of its page.
    """
    top = np.argmax(np.isfinite(values), axis=1)[:, None]
    weight = clicks * np.exp(np.where(clicks > 0, np.take_along_axis(given, top, axis=1) - given, 0.0))
    v = values - values.max(axis=1, keepdims=True)
    mass = np.exp(v)
    total, whole = mass.sum(axis=1, keepdims=True), weight.sum(axis=1, keepdims=True)
    return float((whole * np.log(total)).sum() - weight[clicks > 0] @ v[clicks > 0]), weight - whole * mass / total


def dual_learning(
    logs: ClickLog | Sequence[ClickLog],
    features: ArrayLike,
    *,
    rng: np.random.Generator,
    module: Any = None,
    decay: float = 0.0,
    steps: int = 500,
    batch: int = 256,
    learning_rate: float = 1.0,
) -> JointFit:
    """A ranker and the examination, each learnt from clicks that the other weights, by joint steps on both losses.

    From f = 0 and g = 0, every step looks at a ``batch`` of the pages with a click and moves the ranker's weights w and
    g at once down the slopes of both losses, a click of the batch:

        v ← 0.8 v − learning_rate · ∇_w (ranker's loss) / d,   w ← w + v,

    alike for g without the d, which is the number of features: those are taken in units of their standard deviation,
    so that a document has length √d, and f does not outrun g.  The result is the mean of the second half of the steps.

    The fit says plainly if the two did not settle; if they ran away, ``curve`` is NaN, as of ranks that cannot be
    compared, and ``examination`` shows where to.  Ranks are compared also where no document was shown at two of them:
    right only if f can be, and a note says so.  ``attraction`` is e^f/Σ e^f over the documents of its query that were
    shown, in the order of the strata of :func:`pooled_counts`, and so without a common scale: it is no chance of a
    click.

    Source: Ai et al. 2018, with the differences that :mod:`cfltr_core.propensity.dual_learning` names.

    Parameters
    ----------
    logs : ClickLog or sequence of ClickLog
        Each of one ranker whose pages do not change, all on the same lists: the losses need to know which documents
        stood on a page together.
    features : (n_docs, n_features)
    rng : numpy.random.Generator
        Draws the pages of each step, and torch's seed where a ``module`` is made.
    module : torch.nn.Module, or a function that makes one
        f, as for :func:`~cfltr_core.propensity.towers.two_towers`, with steps of length ``learning_rate`` in its
        weights; None: f(x) = w·x.
    decay : float
        γ >= 0 of a penalty (γ/2)‖weights‖² per click in the ranker's loss, as for ``two_towers``.
    steps : int
        At least 4.
    batch : int
        Pages of a step, drawn without repetition; all pages, if there are no more.
    learning_rate : float
        > 0.

    Returns
    -------
    JointFit
        ``history`` holds the sum of the two losses before each step, on its batch, which need not fall.

    Raises
    ------
    ValueError
        For a log of pages that change, two documents of a page at one rank, logs on different lists, logs without
        clicks at two ranks; for features without a row for each document or that are not finite, a module of another
        shape, or settings out of range.
    TypeError
        For a ``module`` that is no network, or an ``rng`` that is no generator.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.dual_learning import dual_learning
    >>> user, rng, logs = cf.PositionBasedUser([1, 1/2, 1/3]), np.random.default_rng(0), []
    >>> for rank in ([1, 2, 3], [2, 3, 1]):  # two rankers, a log of each; A and C are relevant, B half of the time
    ...     page = cf.DeterministicPolicy(rank, [0, 3])
    ...     logs.append(cf.simulate_clicks(page, user, relevance=[1, 0.5, 1], sessions=[60_000], rng=rng))
    >>> fit = dual_learning(logs, np.eye(3), rng=rng)
    >>> fit.curve.round(2)
    array([1.  , 0.5 , 0.33])
    >>> fit.attraction.round(2)
    array([0.4, 0.2, 0.4])
    """
    checks.arguments(dual_learning, locals())
    checks.positive_int(steps, "steps", least=4)
    pages, counts = _Pages(logs), pooled_counts(logs)
    links = joint_links(counts, name="logs")
    documents = counts.document[counts.start[:-1]]  # one stratum each
    model = score_model(features, documents, module=module, seed=int(rng.integers(1 << 31)))
    row = np.searchsorted(documents, pages.document)
    # The ranker's weights, then g; what they have of the last steps; and their sums in the last two quarters.
    n, at = counts.n_ranks, model.start()
    weights, pace = np.append(at, np.zeros(n)), learning_rate * np.append(model.pace, np.ones(n))
    speed, late, history, far = np.zeros(len(weights)), np.zeros((2, len(weights))), [0.0] * 0, False
    for step in range(steps):
        few = batch < len(row)
        some = rng.choice(len(row), batch, replace=False) if few else np.arange(len(row))
        there, clicks = pages.document[some] >= 0, pages.clicks[some]
        rows, parameters = row[some][there], weights[:-n]
        f, g = np.full(there.shape, -np.inf), np.where(there, weights[-n:], -np.inf)
        f[there] = model.of(parameters, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            (ranker, by_score), (examination, by_bias) = _loss(f, clicks, g), _loss(g, clicks, f)
        up = np.append(model.pulled_back(by_score[there], rows), by_bias.sum(axis=0)) / clicks.sum()
        up[:-n] -= decay * model.penalty(parameters)[1]
        speed = MOMENTUM * speed + pace * up
        weights = weights + speed
        history.append((ranker + examination) / clicks.sum())
        far = not np.isfinite(weights).all() or float(np.ptp(weights[-n:])) > np.log(FARTHEST)
        if far:
            break
        if step >= steps // 2:
            late[int(step >= 3 * steps // 4)] += weights
    notes: tuple[str, ...] = ()
    if far:
        notes = (f"Diverged in step {len(history)}: the two losses drove each other apart. No estimate.",)
    else:
        weights = late.sum(axis=0) / (steps - steps // 2)
        third, fourth = late[:, -n:] / [[3 * steps // 4 - steps // 2], [steps - 3 * steps // 4]]
        moved = float(np.ptp((fourth - third)[links.clicks > 0]))
        if moved > SETTLED:
            notes = (f"Not settled: the last quarter of {steps} steps moved a ratio by {moved:.2g} of itself.",)
    parameters, bias = weights[:-n], weights[-n:]
    return joint_fit(
        "dual learning",
        links,
        theta=np.where(links.clicks > 0, np.exp(bias - bias[np.argmax(links.clicks > 0)]), 0.0),
        attraction=_page_shares(model.of(parameters), counts),
        history=np.array(history),
        assumption=f"the share of a document in its page is softmax(f(x)), with f {model.words}",
        component=np.arange(n) if far else None,
        notes=notes,
        ranker=model.finish(parameters),
    )


def _page_shares(scores: FloatArray, counts: DisplayCounts) -> FloatArray:
    """e^f/Σ e^f over the strata of each query."""
    query = counts.query[counts.start[:-1]]
    new = np.append(True, np.diff(query) != 0)
    start, which = np.flatnonzero(new), np.cumsum(new) - 1
    mass = np.exp(scores - np.maximum.reduceat(scores, start)[which])
    return np.asarray(mass / np.add.reduceat(mass, start)[which])
