"""The course of a training on clicks: epochs, learning rates, the best weights by validation, and how it may fail.

A linear scorer and a network take the same course; each says what an epoch is: ``lambdaloss_fit`` and
``module_training``.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.evaluation.estimators import self_normalised
from cfltr_core.learning.bounds import Surrogate
from cfltr_core.learning.proprank import training_problem
from cfltr_core.ranking.metrics import rank_weights
from cfltr_core.ranking.rank_weight import RankWeight

DeepMethod = Literal["direct", "majorise"]
DeepOptimizer = Literal["adam", "sgd"]
Rates = float | Sequence[tuple[int, float]]
Validation = tuple[NDArray[Any], ClickLog] | None


class TrainingDiverged(RuntimeError):
    """Scores or weights are not finite any more; ``fit`` has the weights before that happened."""

    def __init__(self, message: str, fit: Any) -> None:
        super().__init__(message)
        self.fit = fit


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train: the arguments of :func:`cfltr_core.learning.deep.fit_deep`, which are checked here.

    From them follow ``length``, in epochs or in steps, and ``rates``, each with the length that it has.
    """

    metric: RankWeight
    learning_rate: Rates
    weight_decay: float
    batch_documents: int
    patience: int | None
    progress: bool | None
    epochs: int | None = None
    steps: int | None = None
    sigma: float = 1.0
    surrogate: Surrogate = "hinge"
    method: DeepMethod = "direct"
    round_epochs: int = 1
    optimizer: DeepOptimizer = "adam"
    length: int = field(init=False)
    rates: tuple[tuple[float, float], ...] = field(init=False)

    def __post_init__(self) -> None:
        checks.fields(self)
        if self.epochs is not None and self.steps is not None:
            raise ValueError(f"epochs is {self.epochs} and steps is {self.steps}: give one of the two")
        given, usual, rates = self.learning_rate, 50, []
        if not isinstance(given, Sequence):
            rates = [(np.inf, checks.positive(given, "learning_rate"))]
        elif not given:
            raise ValueError("learning_rate: expected a rate, or (length, rate) one after the other, got none")
        else:
            for i, pair in enumerate(given):
                if not isinstance(pair, Sequence) or len(pair) != 2:
                    raise ValueError(f"learning_rate[{i}] is {pair!r}: expected (length, rate)")
                length = checks.positive_int(pair[0], f"learning_rate[{i}][0]")
                rates.append((length, checks.positive(pair[1], f"learning_rate[{i}][1]")))
            usual = int(sum(length for length, _ in rates))
        progress = sys.stderr.isatty() if self.progress is None else self.progress
        checks.keep(self, length=self.epochs or self.steps or usual, rates=tuple(rates), progress=progress)

    @property
    def by_steps(self) -> bool:
        """Whether the length is a number of steps."""
        return self.steps is not None

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


def validation_pair(given: Any, n_features: int, patience: int | None = None) -> tuple[NDArray[Any], ClickLog] | None:
    """Features and log of other queries, or None where none are ``given``; a ValueError for what does not match.

    They belong together and have ``n_features`` columns.  To stop after ``patience`` epochs one needs them.
    """
    checks.arguments(validation_pair, locals())
    if given is None:
        if patience is not None:
            raise ValueError("patience: there is no validation to watch; give validation=(features, log)")
        return None
    if not (isinstance(given, Sequence) and len(given) == 2 and isinstance(given[1], ClickLog)):
        raise ValueError("validation: expected (features, log) of other queries")
    try:
        x, _, _ = training_problem(given[0], given[1], C=1.0)
    except ValueError as error:
        raise ValueError(f"validation: {error}") from error
    if x.shape[1] != n_features:
        raise ValueError(f"validation: has {x.shape[1]} features, those to learn from are {n_features}")
    return x, given[1]


class Course(ABC):
    """One training by a ``plan``; whoever trains something says what an epoch, the weights and a fit are.

    ``good`` are the last weights that gave finite scores, after ``good_steps``.
    """

    def __init__(self, plan: Plan, validation: Validation) -> None:
        self.plan, self.validation = plan, validation
        self.history: dict[str, list[float]] = {"objective": [], "validation": [], "rate": [], "steps": []}
        self.epoch = self.step = self.good_steps = 0
        self.good = self.copied()

    @abstractmethod
    def one_epoch(self) -> float:
        """Take the steps of an epoch, and keep ``good``; the objective, at the weights that each step found."""

    @abstractmethod
    def copied(self) -> Any:
        """The weights as they are now: a copy, which training does not change."""

    @abstractmethod
    def scored(self, x: NDArray[Any]) -> FloatArray:
        """The scores of documents with these features."""

    @abstractmethod
    def fit_of(self, weights: Any, *, steps: int, **course: Any) -> Any:
        """What is returned, with ``weights`` and how the course went: its ``steps``, history, best_epoch and risk."""

    def run(self) -> Any:
        """Epoch after epoch, and the weights of the best, or of the last without validation.

        Raises :class:`TrainingDiverged`, a RuntimeError, when something is not finite any more.
        """
        plan, best, best_epoch, risk = self.plan, self.good, 0, math.inf
        while not plan.over(self.epoch, self.step):
            self.epoch += 1
            objective = self.one_epoch()
            estimate = self._estimate()
            now = (objective, estimate, plan.rate(self.epoch, self.step), self.step)
            for values, number in zip(self.history.values(), now, strict=True):
                values.append(number)
            if plan.progress:
                line = f"epoch {self.epoch}, step {self.step}: objective {objective:.6g}"
                line += "" if self.validation is None else f", validation {estimate:.6g}"
                print(f"\r{line}", end=" ", file=sys.stderr, flush=True)
            if self.validation is not None and estimate < risk:
                best, best_epoch, risk = self.copied(), self.epoch, estimate
            if plan.patience is not None and self.epoch - best_epoch >= plan.patience:
                break
        if plan.progress:
            print(file=sys.stderr)
        if self.validation is None:
            best, best_epoch, risk = self.copied(), self.epoch, math.nan
        return self._fit(best, self.step, best_epoch, risk)

    def diverged(self, what: str) -> TrainingDiverged:
        """The error, with a fit of the last good weights."""
        fit = self._fit(self.good, self.good_steps, len(self.history["steps"]), math.nan)
        return TrainingDiverged(
            f"{what} are not finite in epoch {self.epoch}, step {self.step}: lower learning_rate, or rescale the "
            "features; fit of this error has the last weights that were good",
            fit,
        )

    def _estimate(self) -> float:
        """The self-normalised risk on validation clicks; NaN without them."""
        if self.validation is None:
            return math.nan
        x, log = self.validation
        scores = self.scored(x)
        if not np.isfinite(scores).all():
            raise self.diverged("scores of the validation")
        return self_normalised(log, rank_weights(scores, log.offsets, metric=self.plan.metric)).value

    def _fit(self, weights: Any, steps: int, best_epoch: int, risk: float) -> Any:
        history = {name: np.array(values, dtype=np.float64) for name, values in self.history.items()}
        return self.fit_of(weights, history=history, steps=steps, best_epoch=best_epoch, risk=risk)
