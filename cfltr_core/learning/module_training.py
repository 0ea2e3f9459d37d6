"""How any network is made, tried on some documents and trained by a plan, with its own generators and device.

:func:`cfltr_core.learning.deep.fit_deep` and :func:`cfltr_core.learning.lambdaloss_fit.fit_lambdaloss` check their
arguments here, too, where both take the same: how long to train, and the queries to choose by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.descent import Objective, Plan, train
from cfltr_core.learning.networks import DeepFit, built, dtype_of, score
from cfltr_core.learning.proprank import training_problem
from cfltr_core.learning.torch_lists import TorchLists

if TYPE_CHECKING:
    import torch

Rates = float | Sequence[tuple[int, float]]


def training_length(
    learning_rate: Rates, epochs: int | None, steps: int | None
) -> tuple[int, bool, tuple[tuple[float, float], ...]]:
    """How long, whether that counts steps, and the rates with the length of each; a ValueError for what is neither."""
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
    return given[0][1] if given else usual, steps is not None, rates


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


def train_module(
    features: NDArray[Any],
    log: ClickLog,
    mass: FloatArray,
    *,
    module: torch.nn.Module | Callable[[], torch.nn.Module],
    plan: Plan,
    validation: tuple[NDArray[Any], ClickLog] | None,
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
        return train(
            net, plan, features=features, lists=lists, mass=mass, validation=validation, rng=rng, objective=objective
        )


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
