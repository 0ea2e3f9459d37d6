"""The course of a training on clicks: epochs, learning rates, the best weights by validation, and how it may fail.

A linear scorer and a network take the same course; each says what an epoch is: ``lambdaloss_fit`` and
``module_training``.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
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
    """How to train: ``length`` epochs, or steps if ``by_steps``, at ``rates``, each with the length that it has.

    The others are the arguments of :func:`cfltr_core.learning.deep.fit_deep`; :func:`planned` checks them and makes it.
    """

    length: int
    by_steps: bool
    rates: tuple[tuple[float, float], ...]
    metric: RankWeight
    weight_decay: float
    batch_documents: int
    patience: int | None
    progress: bool
    sigma: float = 1.0
    surrogate: Surrogate = "hinge"
    method: DeepMethod = "direct"
    round_epochs: int = 1
    optimizer: DeepOptimizer = "adam"

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


def planned(
    *,
    learning_rate: Rates,
    epochs: int | None,
    steps: int | None,
    weight_decay: float,
    batch_documents: int,
    patience: int | None,
    progress: bool | None,
    **others: Any,
) -> Plan:
    """The plan of these arguments of a learner; a ValueError for one that is out of range."""
    checks.within(weight_decay, 0, np.finfo(float).max, "weight_decay", "expected γ of the penalty (γ/2)‖θ‖², >= 0")
    checks.positive_int(batch_documents, "batch_documents")
    if epochs is not None and steps is not None:
        raise ValueError(f"epochs is {epochs} and steps is {steps}: give one of the two")
    given = [(name, n) for name, n in (("epochs", epochs), ("steps", steps)) if n is not None]
    for name, n in given:
        checks.positive_int(n, name)
    rates: tuple[tuple[float, float], ...]
    if isinstance(learning_rate, Sequence):
        for i, pair in enumerate(learning_rate):
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(f"learning_rate[{i}] is {pair!r}: expected (length, rate)")
        if not learning_rate:
            raise ValueError("learning_rate: expected a rate, or (length, rate) one after the other, got none")
        rates = tuple(
            (checks.positive_int(length, f"learning_rate[{i}][0]"), checks.positive(rate, f"learning_rate[{i}][1]"))
            for i, (length, rate) in enumerate(learning_rate)
        )
        usual = int(sum(length for length, _ in rates))
    else:
        rates, usual = ((np.inf, checks.positive(learning_rate, "learning_rate")),), 50
    return Plan(
        length=given[0][1] if given else usual,
        by_steps=steps is not None,
        rates=rates,
        weight_decay=weight_decay,
        batch_documents=batch_documents,
        patience=patience,
        progress=sys.stderr.isatty() if progress is None else progress,
        **others,
    )


def validation_pair(given: Any, n_features: int, patience: int | None = None) -> tuple[NDArray[Any], ClickLog] | None:
    """Features and log of other queries, or None where none are ``given``; a ValueError for what does not match.

    They belong together and have ``n_features`` columns.  To stop after ``patience`` epochs one needs them.
    """
    if patience is not None:
        checks.positive_int(patience, "patience")
        if given is None:
            raise ValueError("patience: there is no validation to watch; give validation=(features, log)")
    if given is None:
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
    def fit_of(self, weights: Any, history: dict[str, FloatArray], steps: int, best_epoch: int, risk: float) -> Any:
        """What is returned, with ``weights``."""

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
        return self.fit_of(weights, history, steps, best_epoch, risk)
