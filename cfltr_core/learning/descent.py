"""The course of a training on clicks: epochs of batches, learning rates, the best weights, and how it may fail.

The objective and the two gradients are those of ``deep``.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.evaluation.estimators import self_normalised
from cfltr_core.learning.bounds import Surrogate
from cfltr_core.learning.networks import DeepFit, dtype_of, flat, score
from cfltr_core.learning.torch_lists import ListBatch, TorchLists, list_sums
from cfltr_core.ranking.metrics import rank_weights
from cfltr_core.ranking.rank_weight import RankWeight

if TYPE_CHECKING:
    import torch

DeepMethod = Literal["direct", "majorise"]
DeepOptimizer = Literal["adam", "sgd"]
# A batch and its scores, to its part of the objective and the gradient in the scores.
Objective = Callable[[ListBatch, "torch.Tensor"], "tuple[float, torch.Tensor]"]


class TrainingDiverged(RuntimeError):
    """Scores or weights are not finite any more; ``fit`` has the weights before that happened."""

    def __init__(self, message: str, fit: Any) -> None:
        super().__init__(message)
        self.fit = fit


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train: ``length`` epochs, or steps if ``by_steps``, at ``rates``, each with the length that it has.

    The other fields are the arguments of :func:`cfltr_core.learning.deep.fit_deep`, checked.
    """

    length: int
    by_steps: bool
    rates: tuple[tuple[float, float], ...]
    metric: RankWeight
    surrogate: Surrogate
    sigma: float
    method: DeepMethod
    round_epochs: int
    optimizer: DeepOptimizer
    weight_decay: float
    batch_documents: int
    patience: int | None
    progress: bool

    def rate(self, epoch: int, step: int) -> float:
        """The learning rate of a step; both are counted from 1, and the last rate goes on."""
        left = step if self.by_steps else epoch
        for length, rate in self.rates:
            if left <= length:
                return rate
            left -= int(length)
        return self.rates[-1][1]

    def over(self, epoch: int, step: int) -> bool:
        """Whether these epochs, or these steps, are all."""
        return (step if self.by_steps else epoch) >= self.length


def train(
    net: torch.nn.Module,
    plan: Plan,
    *,
    features: NDArray[Any],
    lists: TorchLists,
    mass: FloatArray,
    validation: tuple[NDArray[Any], ClickLog] | None,
    rng: np.random.Generator,
    objective: Objective | None = None,
) -> DeepFit:
    """Train ``net`` where it is, with checked arguments, and return the fit; ``mass`` are the c_t of the ``lists``.

    An ``objective`` takes the place of the bound of ``deep``: it maps a batch and its scores to its part of the
    objective and the gradient in the scores.

    Raises :class:`TrainingDiverged`, a RuntimeError, when something is not finite any more.
    """
    return _Course(net, plan, features, lists, mass, validation, rng, objective).run()


class _Course:
    """One training: the network, what it learns from, and the last weights that gave finite scores."""

    def __init__(
        self,
        net: torch.nn.Module,
        plan: Plan,
        x: NDArray[Any],
        lists: TorchLists,
        mass: FloatArray,
        validation: tuple[NDArray[Any], ClickLog] | None,
        rng: np.random.Generator,
        objective: Objective | None,
    ) -> None:
        self.net, self.plan, self.x, self.lists, self.mass, self.judged = net, plan, x, lists, mass, validation
        self.rng, self.objective = rng, objective
        self.place, self.dtype = next(net.parameters()).device, dtype_of(net)
        self.on_device = None if self.place.type == "cpu" else self.moved()
        self.good = self.copied()
        self.history: dict[str, list[float]] = {"objective": [], "validation": [], "rate": [], "steps": []}
        self.epoch = self.step = self.good_steps = 0

    def moved(self) -> torch.Tensor:
        """All features on the device, at once: a GPU would wait for each batch."""
        import torch

        out = torch.empty(self.x.shape, dtype=self.dtype, device=self.place)
        for i in range(0, len(self.x), 1 << 16):
            out[i : i + (1 << 16)] = torch.tensor(self.x[i : i + (1 << 16)], dtype=self.dtype)
        return out

    def copied(self) -> dict[str, torch.Tensor]:
        """The weights as they are now: a copy, which training does not change."""
        return {name: value.detach().clone() for name, value in self.net.state_dict().items()}

    def run(self) -> DeepFit:
        """Epoch after epoch, and the weights of the best, or of the last without validation."""
        import torch

        plan = self.plan
        kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
        weights = [p for p in self.net.parameters() if p.requires_grad]
        descent: torch.optim.Optimizer = kind(weights, lr=plan.rate(1, 1), weight_decay=plan.weight_decay)
        best, best_epoch, risk = self.good, 0, math.inf
        fixed = None
        while not plan.over(self.epoch, self.step):
            if plan.method == "majorise" and self.epoch % plan.round_epochs == 0:
                fixed = self.fixed_prices()
            self.epoch += 1
            objective = self.one_epoch(descent, fixed)
            estimate = self.estimate()
            now = (objective, estimate, plan.rate(self.epoch, self.step), self.step)
            for values, number in zip(self.history.values(), now, strict=True):
                values.append(number)
            if plan.progress:
                line = f"epoch {self.epoch}, step {self.step}: objective {objective:.6g}"
                line += "" if self.judged is None else f", validation {estimate:.6g}"
                print(f"\r{line}", end=" ", file=sys.stderr, flush=True)
            if self.judged is not None and estimate < risk:
                best, best_epoch, risk = self.copied(), self.epoch, estimate
            if plan.patience is not None and self.epoch - best_epoch >= plan.patience:
                break
        if plan.progress:
            print(file=sys.stderr)
        if self.judged is None:
            best, best_epoch, risk = self.copied(), self.epoch, math.nan
        return self.answer(best, self.step, best_epoch, risk)

    def one_epoch(self, descent: torch.optim.Optimizer, fixed: FloatArray | None) -> float:
        """A step for each batch; F, summed over the batches, each at the weights that it found."""
        self.net.train()
        order = self.rng.permutation(self.lists.queries)
        batches = list(self.lists.batches(order, self.plan.batch_documents))
        values = []
        for batch in batches:
            self.step += 1
            descent.param_groups[0]["lr"] = self.plan.rate(self.epoch, self.step)
            descent.zero_grad()
            scores = self.scores(batch.rows)
            # No sum of the batch is larger; NaN does not get past this either.
            if not math.isfinite(2.0 * len(batch.rows) * float(scores.detach().double().abs().max())):
                raise self.diverged("scores")
            self.keep()
            value, gradient = self.gradient(batch, scores, fixed)
            values.append(value)
            scores.backward((gradient * len(batches)).to(scores.dtype))  # type: ignore[no-untyped-call]
            descent.step()
            if self.plan.by_steps and self.plan.over(self.epoch, self.step):
                break
        return float(np.mean(values)) * len(batches)

    def scores(self, rows: IntArray) -> torch.Tensor:
        """The scores of these documents, with what automatic differentiation needs."""
        import torch

        if self.on_device is not None:
            block = self.on_device.index_select(0, torch.from_numpy(rows).to(self.place))
        else:
            block = torch.from_numpy(np.take(self.x, rows, axis=0)).to(self.dtype)
        return flat(self.net(block), len(rows))

    def gradient(self, batch: ListBatch, scores: torch.Tensor, fixed: FloatArray | None) -> tuple[float, torch.Tensor]:
        """The part of a batch in F, and the gradient in its scores, of F or with ``fixed`` prices of the majoriser."""
        if self.objective is not None:
            return self.objective(batch, scores)
        mass, lam = self.mass[batch.terms], self.plan.metric

        def price(part: slice | IntArray, total: FloatArray) -> FloatArray:
            return mass[part] * lam.slope(1.0 + total) if fixed is None else fixed[batch.terms[part]]

        sums, gradient = list_sums(scores, batch, price, surrogate=self.plan.surrogate, sigma=self.plan.sigma)
        return float(mass @ lam(1.0 + sums)), gradient

    def fixed_prices(self) -> FloatArray:
        """c_t λ′(1 + S_t) of every term at the present weights, in the order of the terms."""
        import torch

        prices = np.empty(len(self.mass))
        self.net.eval()
        with torch.no_grad():
            for batch in self.lists.batches(self.lists.queries, self.plan.batch_documents):

                def price(part: slice | IntArray, total: FloatArray, terms: IntArray = batch.terms) -> FloatArray:
                    prices[terms[part]] = self.mass[terms[part]] * self.plan.metric.slope(1.0 + total)
                    return prices[terms[part]]

                scores = self.scores(batch.rows)
                list_sums(scores, batch, price, surrogate=self.plan.surrogate, sigma=self.plan.sigma)
        return prices

    def keep(self) -> None:
        """Copy the weights, which have just given finite scores, over those that were kept before."""
        for name, value in self.net.state_dict().items():
            self.good[name].copy_(value)
        self.good_steps = self.step - 1

    def estimate(self) -> float:
        """The self-normalised risk on validation clicks; NaN without them.  The weights must be finite."""
        import torch

        if not all(bool(torch.isfinite(p).all()) for p in self.net.parameters()):
            raise self.diverged("weights")
        if self.judged is None:
            return math.nan
        x, log = self.judged
        scores = score(self.net.eval(), x)
        if not np.isfinite(scores).all():
            raise self.diverged("scores of the validation")
        return self_normalised(log, rank_weights(scores, log.offsets, metric=self.plan.metric)).value

    def answer(self, weights: dict[str, torch.Tensor], steps: int, best_epoch: int, risk: float) -> DeepFit:
        """The network with ``weights``, and a copy of it as a fit."""
        self.net.load_state_dict(weights)
        self.net.eval()
        for p in self.net.parameters():
            p.grad = None
        history = {name: np.array(values, dtype=np.float64) for name, values in self.history.items()}
        return DeepFit(
            module=copy.deepcopy(self.net), history=history, steps=steps, best_epoch=best_epoch, risk=risk,
            n_features=self.x.shape[1],
        )  # fmt: skip

    def diverged(self, what: str) -> TrainingDiverged:
        """The error, with a fit of the last good weights, which the network has too from now on."""
        fit = self.answer(self.good, self.good_steps, len(self.history["steps"]), math.nan)
        return TrainingDiverged(
            f"{what} are not finite in epoch {self.epoch}, step {self.step}: lower learning_rate, or rescale the "
            "features; fit of this error has the last weights that were good",
            fit,
        )
