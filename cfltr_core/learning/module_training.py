"""How any network is made, tried on some documents and trained by a plan, with its own generators and device.

The objective and the two gradients are those of ``deep``, unless another objective is given.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.course import Course, Plan, Validation
from cfltr_core.learning.networks import DeepFit
from cfltr_core.learning.torch_lists import ListBatch, TorchLists, list_sums
from cfltr_core.ranking.modules import built, dtype_of, flat, score

if TYPE_CHECKING:
    import torch

# A batch and its scores, to its part of the objective and the gradient in the scores.
Objective = Callable[[ListBatch, "torch.Tensor"], "tuple[float, torch.Tensor]"]


def train_module(
    features: NDArray[Any],
    log: ClickLog,
    mass: FloatArray,
    *,
    module: torch.nn.Module | Callable[[], torch.nn.Module],
    plan: Plan,
    validation: Validation,
    device: str = "cpu",
    seed: int | np.random.Generator | torch.Generator = 0,
    objective: Objective | None = None,
) -> DeepFit:
    """Make the network, try it on some documents and train it by a ``plan``; the other arguments are checked already.

    ``mass`` are the c_t of the clicked documents, in increasing order; ``objective`` replaces the bound of
    :func:`fit_deep`: it maps a batch and its scores to its part of the objective and the gradient in the scores.
    """
    place = _device(str(device))
    with _generators(_seed(seed), place) as rng:
        net = built(module).to(place)
        _try_out(net, features)
        lists = TorchLists(log.offsets, np.unique(log.document[log.clicks > 0]))
        fit: DeepFit = _Network(net, plan, features, lists, mass, validation, rng, objective).run()
        return fit


class _Network(Course):
    """A network, and what it learns from; ``mass`` are the c_t of the ``lists``."""

    def __init__(
        self,
        net: torch.nn.Module,
        plan: Plan,
        x: NDArray[Any],
        lists: TorchLists,
        mass: FloatArray,
        validation: Validation,
        rng: np.random.Generator,
        objective: Objective | None,
    ) -> None:
        import torch

        self.net, self.x, self.lists, self.mass, self.rng, self.objective = net, x, lists, mass, rng, objective
        self.place, self.dtype = next(net.parameters()).device, dtype_of(net)
        self.on_device = None if self.place.type == "cpu" else torch.tensor(x, dtype=self.dtype, device=self.place)
        self.fixed: FloatArray | None = None
        super().__init__(plan, validation)
        weights = [p for p in net.parameters() if p.requires_grad]
        kind: Any = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
        self.descent = kind(weights, lr=plan.rate(1, 1), weight_decay=plan.weight_decay)

    def copied(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().clone() for name, value in self.net.state_dict().items()}

    def scored(self, x: NDArray[Any]) -> FloatArray:
        return score(self.net.eval(), x)

    def one_epoch(self) -> float:
        """A step for each batch; F, summed over the batches, each at the weights that it found."""
        import torch

        if self.plan.method == "majorise" and (self.epoch - 1) % self.plan.round_epochs == 0:
            self.fixed = self.fixed_prices()
        self.net.train()
        order = self.rng.permutation(self.lists.queries)
        batches = list(self.lists.batches(order, self.plan.batch_documents))
        values = []
        for batch in batches:
            self.step += 1
            self.descent.param_groups[0]["lr"] = self.plan.rate(self.epoch, self.step)
            self.descent.zero_grad()
            scores = self.scores(batch.rows)
            # No sum of the batch is larger; NaN does not get past this either.
            if not math.isfinite(2.0 * len(batch.rows) * float(scores.detach().double().abs().max())):
                raise self.diverged("scores")
            for name, kept in self.net.state_dict().items():
                self.good[name].copy_(kept)
            self.good_steps = self.step - 1
            value, gradient = self.gradient(batch, scores)
            values.append(value)
            scores.backward((gradient * len(batches)).to(scores.dtype))  # type: ignore[no-untyped-call]
            self.descent.step()
            if self.plan.by_steps and self.plan.over(self.epoch, self.step):
                break
        if not all(bool(torch.isfinite(p).all()) for p in self.net.parameters()):
            raise self.diverged("weights")
        return float(np.mean(values)) * len(batches)

    def scores(self, rows: IntArray) -> torch.Tensor:
        """The scores of these documents, with what automatic differentiation needs."""
        import torch

        if self.on_device is not None:
            block = self.on_device.index_select(0, torch.from_numpy(rows).to(self.place))
        else:
            block = torch.from_numpy(np.take(self.x, rows, axis=0)).to(self.dtype)
        return flat(self.net(block), len(rows))

    def gradient(self, batch: ListBatch, scores: torch.Tensor) -> tuple[float, torch.Tensor]:
        """The part of a batch in F, and the gradient in its scores, of F or with fixed prices of the majoriser."""
        if self.objective is not None:
            return self.objective(batch, scores)
        mass, lam = self.mass[batch.terms], self.plan.metric

        def price(part: slice | IntArray, total: FloatArray) -> FloatArray:
            return mass[part] * lam.slope(1.0 + total) if self.fixed is None else self.fixed[batch.terms[part]]

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

    def fit_of(self, weights: dict[str, torch.Tensor], *, steps: int, **course: Any) -> DeepFit:
        """A copy of the network with ``weights``, which the network itself has too from now on."""
        self.net.load_state_dict(weights)
        self.net.eval()
        for p in self.net.parameters():
            p.grad = None
        return DeepFit(module=copy.deepcopy(self.net), n_features=self.x.shape[1], steps=steps, **course)


def _device(name: str) -> torch.device:
    import torch

    there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if name not in (there if len(there) == 1 else [*there, "cuda"]):
        raise ValueError(f"device is {name!r}: what this machine has is {', '.join(map(repr, there))}")
    return torch.device(name)


def _seed(seed: Any) -> int:
    import torch

    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**63 - 1, (1,), generator=seed, device=seed.device))
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed is {type(seed).__name__}: give a whole number, or a generator of NumPy or torch")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}: expected a whole number from 0 to 2⁶³ − 1")
    return int(seed)


@contextmanager
def _generators(seed: int, place: torch.device) -> Iterator[np.random.Generator]:
    """Torch's own generators, seeded as long as this lasts, and one of NumPy's."""
    import torch

    gpu = [] if place.type == "cpu" else [torch.cuda.current_device() if place.index is None else place.index]
    strict, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=gpu):
        torch.default_generator.manual_seed(seed)
        try:
            if gpu:
                # Sums on a GPU are in no fixed order unless one asks.
                torch.use_deterministic_algorithms(True, warn_only=True)
                with torch.cuda.device(gpu[0]):
                    torch.cuda.manual_seed(seed)
            yield np.random.default_rng(seed)
        finally:
            if gpu:
                torch.use_deterministic_algorithms(strict, warn_only=warns)


def _try_out(net: torch.nn.Module, x: NDArray[Any]) -> None:
    """Let the network score a few documents, so that what cannot be trained is told before any work."""
    if not any(p.requires_grad for p in net.parameters()):
        raise ValueError("module: has no weights that could be learnt")
    few = x[:8]
    kind = np.dtype(str(dtype_of(net)).removeprefix("torch."))
    if x.dtype.itemsize > kind.itemsize and len(x):
        big = max(float(x.max()), -float(x.min()))
        if big > float(np.finfo(kind).max):
            raise ValueError(f"features: {big:g} is too large for the {kind} of the module: cap or rescale them")
    training = net.training
    try:
        scores = score(net.eval(), few)
    except RuntimeError as error:
        raise ValueError(f"module: could not score features of shape {few.shape} ({error})") from error
    net.train(training)
    if not np.isfinite(scores).all():
        d = int(np.argmin(np.isfinite(scores)))
        raise ValueError(f"module: the score of document {d} is {scores[d]} before any training: its weights are unfit")
