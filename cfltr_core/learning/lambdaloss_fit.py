"""Training scorers on clicks by LambdaLoss: a linear one in NumPy, a network in torch, trees by a custom objective.

All three follow :class:`cfltr_core.learning.lambda_pairs.LambdaLists`, whose gradient holds the ranks fixed.  The next
scores have other ranks, and there the loss is another function: it has jumps, and what falls along the gradient of one
piece may rise on the next.  A line search, as L-BFGS has, compares values across these jumps and stops where none is
better, and curvature from two pieces is that of neither.  So every scorer takes steps of a given size, Adam's, with the
ranks of each, and validation clicks say which of the weights to keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.course import Course, Plan, Rates, Validation, validation_pair
from cfltr_core.learning.lambda_pairs import Form, LambdaLists, Truncation, far_apart
from cfltr_core.learning.module_training import train_module
from cfltr_core.learning.networks import DeepFit
from cfltr_core.learning.proprank import training_problem
from cfltr_core.learning.sgd import optimizer_of
from cfltr_core.learning.torch_lists import ListBatch
from cfltr_core.ranking.linear import LinearRanker, names_of
from cfltr_core.ranking.rank_weight import dcg

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LambdaFit(LinearRanker):
    """A linear scorer f(x) = w · x learnt by LambdaLoss, and how it was learnt.

    ``history`` has one number for each epoch: ``objective``, the loss of all lists at the weights that the epoch found;
    ``validation``, the self-normalised risk on validation clicks after it, NaN without them; ``rate``, its learning
    rate; ``steps``, the steps taken so far.  ``weights`` are those after ``best_epoch``, ``risk`` is the least of
    ``validation``.  :func:`fit_lambdaloss` makes it.
    """

    history: Mapping[str, FloatArray]
    best_epoch: int
    risk: float
    FORMAT: ClassVar[str] = "cfltr lambda fit 1"
    KEPT: ClassVar[tuple[str, ...]] = ("history", "best_epoch", "risk")

    def __post_init__(self) -> None:
        super().__post_init__()
        # A file has null for what is not a number.
        history = {
            name: np.array([math.nan if value is None else value for value in values])
            for name, values in self.history.items()
        }
        checks.keep(self, history=history, risk=math.nan if self.risk is None else float(self.risk))

    def __repr__(self) -> str:
        return f"LambdaFit({len(self.weights)} weights, epoch {self.best_epoch} of {len(self.history['objective'])})"


def fit_lambdaloss(
    features: ArrayLike,
    log: ClickLog,
    *,
    cutoff: int | None = None,
    truncation: Truncation = "at_least_one",
    form: Form = "linear",
    sigma: float = 1.0,
    module: torch.nn.Module | Callable[[], torch.nn.Module] | None = None,
    learning_rate: Rates | None = None,
    weight_decay: float = 0.0,
    batch_documents: int = 1000,
    epochs: int | None = None,
    validation: tuple[ArrayLike, ClickLog] | None = None,
    patience: int | None = None,
    device: str = "cpu",
    seed: int | np.random.Generator | torch.Generator = 0,
    progress: bool | None = None,
) -> LambdaFit | DeepFit:
    """Learn to rank from clicks by LambdaLoss with the gains c_d = (1/n) Σ clicks/propensity over the n clicks.

    The propensities are those of the log: for policy-aware gains give ``policy_aware(log, exposure)``, where the
    exposure may be an estimate, or bounded from below so that no click weighs more than a cap.

    Source: Oosterhuis & de Rijke 2020, Eq. 6, whose gains are these up to one factor if all queries have equally many
    sessions; else a query counts by its sessions, as in the IPS estimate.

    Parameters
    ----------
    features, log
        As for :func:`cfltr_core.learning.proprank.fit_proprank`.
    cutoff, truncation, form, sigma
        As for :func:`cfltr_core.learning.lambda_loss.lambda_loss`.
    module : torch.nn.Module, or a function that makes one
        The scorer, as for :func:`cfltr_core.learning.deep.fit_deep`; without it f(x) = w · x, from w = 0, where all
        documents are tied.
    learning_rate : float or [(length, rate), …]
        Of Adam: a rate, or rates one after the other, each for some epochs; the last goes on.  Without a module it is
        that of w_j times the standard deviation of feature j, so that no unit of a feature matters, and 0.05 if none
        is given; with one 0.001.
    weight_decay : float
        γ ≥ 0 of (γ/2)‖θ‖², whose gradient is added to that of the loss.
    batch_documents : int
        About how many documents the lists of a batch have, for a module; w takes one step an epoch on all lists.
    epochs : int
        By default all lengths of ``learning_rate``, or 50 with a module and 100 without.
    validation : (features, log)
        Other queries and their clicks, with propensities as in ``log``.  After every epoch the risk Σ clicks · λ / p
        over Σ clicks / p is estimated on them, λ that of DCG with the ``cutoff``, and the weights of the epoch where it
        was least are returned.  Without: the last weights.
    patience, device, seed, progress
        As for :func:`cfltr_core.learning.deep.fit_deep`.  Without a module nothing is drawn.

    Returns
    -------
    LambdaFit, or with a module DeepFit

    Raises
    ------
    ValueError, TypeError
        As ``lambda_loss`` and ``fit_deep``.
    TrainingDiverged
        A RuntimeError, when scores or weights are not finite any more; its ``fit`` has the last that were good.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.EpsilonGreedyPolicy([1, 2, 3], [0, 3], epsilon=[0, 1]), cf.PositionBasedUser([1, 1/2])
    >>> log = cf.ClickLog(document=[0, 1, 2], rank=[1, 2, 2], impressions=[8, 4, 4], clicks=[8, 0, 2],
    ...                   propensity=[1, 1/2, 1/2], sessions=[8], offsets=[0, 3])
    >>> aware, x = cf.policy_aware(log, policy.exposure(user)), [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    >>> fit = cf.fit_lambdaloss(x, aware, cutoff=2, validation=(x, aware))
    >>> cf.ranks(fit.decision_function(x), [0, 3])[1], round(fit.risk, 3)  # B last, and −(1/log₂2 + 1/log₂3) / 2
    (np.float64(3.0), -0.815)
    >>> net = cf.fit_lambdaloss(x, aware, cutoff=2, module=lambda: cf.two_layer(2, hidden=4), learning_rate=0.1)
    >>> cf.ranks(net.decision_function(x), [0, 3])[1]
    np.float64(3.0)
    """
    x, clicked, mass = training_problem(features, log, C=1.0)
    gains = np.zeros(len(x))
    gains[clicked.documents] = mass
    settings: dict[str, Any] = {"cutoff": cutoff, "truncation": truncation, "form": form, "sigma": sigma}
    lists = LambdaLists(log.offsets, gains, **settings)
    if learning_rate is None:
        learning_rate = 0.05 if module is None else 1e-3
        epochs = (100 if module is None else 50) if epochs is None else epochs
    plan = Plan(
        learning_rate=learning_rate, epochs=epochs, weight_decay=weight_decay,
        batch_documents=batch_documents, patience=patience, progress=progress, metric=dcg(cutoff), sigma=sigma,
    )  # fmt: skip
    judged = validation_pair(validation, x.shape[1], patience)
    if module is None:
        fit: LambdaFit = _Linear(x, lists, plan, judged).run()
        return fit.named(names_of(features))

    def objective(batch: ListBatch, scores: torch.Tensor) -> tuple[float, torch.Tensor]:
        import torch

        cuts = np.append(np.unique(batch.start), len(batch.rows))
        found = LambdaLists(cuts, gains[batch.rows], **settings).loss(scores.detach().double().cpu().numpy())
        return found.value, torch.from_numpy(found.gradient).to(scores.device)

    return train_module(
        x, log, mass, module=module, plan=plan, validation=judged, device=device, seed=seed, objective=objective
    )


def lambda_objective(
    log: ClickLog,
    *,
    cutoff: int | None = None,
    truncation: Truncation = "at_least_one",
    form: Form = "linear",
    sigma: float = 1.0,
) -> Callable[[ArrayLike, Any], tuple[FloatArray, FloatArray]]:
    """LambdaLoss as a custom objective of boosted trees: scores ↦ (gradient, diagonal of the Hessian) in the scores.

    LightGBM takes it as the parameter ``objective`` of ``train``, XGBoost as ``obj``; neither is needed for it, and the
    second argument with which they call it, their data, is not used: rows are those of the log's lists.  A row without
    a click counts as unwanted, displayed or not.  Where the page never changes this was no better than LightGBM's own
    objective on the displayed rows (chapter 12).  The gains are
    Σ clicks/propensity · queries/sessions, so that the loss is a sum over queries, about as large as with labels 0, 1.

    Source: the loss of Oosterhuis & de Rijke 2020, Eq. 6, for the question that Agarwal et al. 2018, §6, leave open:
    whether models without a derivative, as trees are, can learn from such clicks.

    Parameters
    ----------
    log, cutoff, truncation, form, sigma
        As in :func:`fit_lambdaloss`.

    Raises
    ------
    ValueError
        As :func:`cfltr_core.learning.lambda_loss.lambda_loss`; for a log without clicks; from the objective, for scores
        of another number of documents.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.learning.lambdaloss_fit import lambda_objective
    >>> log = cf.ClickLog(document=[0, 2], rank=[1, 2], impressions=[8, 4], clicks=[8, 2], propensity=[1, 1/4],
    ...                   sessions=[8], offsets=[0, 3])
    >>> objective = lambda_objective(log, cutoff=2)  # lightgbm.train({"objective": objective, …}, data)
    >>> gradient, hessian = objective([0.0, 0.0, 0.0], None)
    >>> gradient.round(3), hessian.round(3)
    (array([-0.209,  0.418, -0.209]), array([0.313, 0.209, 0.313]))
    """
    checks.arguments(lambda_objective, locals())
    if log.n_clicks == 0:
        raise ValueError("log: there is no click in the log, so nothing can be learnt")
    n_docs = int(log.offsets[-1])
    gains = np.bincount(log.document, log.clicks * log.weights, n_docs) * (len(log.sessions) / log.n_sessions)
    lists = LambdaLists(log.offsets, gains, cutoff=cutoff, truncation=truncation, form=form, sigma=sigma)

    def objective(scores: ArrayLike, data: Any = None) -> tuple[FloatArray, FloatArray]:
        found = lists.loss(checks.finite_vector(scores, n_docs, "scores"), hessian=True)
        assert found.hessian is not None
        return found.gradient, found.hessian

    return objective


class _Linear(Course):
    """Adam on v = w · spread of the features, one step an epoch."""

    def __init__(self, x: NDArray[Any], lists: LambdaLists, plan: Plan, validation: Validation) -> None:
        self.x, self.lists = x, lists
        self.spread = np.std(x, axis=0, dtype=np.float64)
        # A constant feature ranks nothing: its weight stays 0, where rounding would let Adam move it.
        self.alive = self.spread > 1e-12 * np.abs(x).max(axis=0).astype(np.float64)
        self.spread[~self.alive] = 1.0
        self.v = np.zeros(x.shape[1])
        self.move = optimizer_of("adam", self.v)
        super().__init__(plan, validation)

    def copied(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(self.v / self.spread)

    def scored(self, x: NDArray[Any]) -> FloatArray:
        """w · x of each row; features of single precision are multiplied in it."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((x @ self.copied().astype(x.dtype)).astype(np.float64))

    def one_epoch(self) -> float:
        self.step += 1
        w, scores = self.copied(), self.scored(self.x)
        if not far_apart(scores, self.plan.sigma) < math.inf:
            raise self.diverged("scores")
        self.good, self.good_steps = w, self.step - 1
        found = self.lists.loss(scores)
        pull = found.gradient.astype(self.x.dtype) @ self.x + self.plan.weight_decay * w
        with np.errstate(over="ignore"):
            self.move(self.alive * pull / self.spread, self.step, self.plan.rate(self.epoch, self.step))
        return found.value

    def fit_of(self, weights: FloatArray, *, steps: int, **course: Any) -> LambdaFit:
        return LambdaFit(weights=weights, **course)  # a step is an epoch
