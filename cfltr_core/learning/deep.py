"""Deep PropDCG: any network that scores documents, trained on clicks by stochastic gradients of the bound of Eq. 7.

With a network f, S_t = Σ_{y ≠ t} max(1 − (f(x_t) − f(x_y)), 0) over the list of a clicked document t, and
c_t = (1/n) Σ clicks/p, as in SVM PropDCG with C = 1,

    F(θ) = Σ_t c_t λ(1 + S_t).

A step takes some whole lists, a batch, and follows the gradient of (number of batches) · Σ_{t in batch} c_t λ(1 + S_t),
whose mean over the batches of an epoch is that of F.  Lists without a click have no part in F and are left out.

``method="majorise"`` follows the surrogate Σ_t c_t λ′(1 + S⁰_t) S_t instead, with S⁰ at the weights where its round of
epochs began.  A concave λ lies below its tangent, so that up to a constant this lies above F and touches it there, as
in the convex-concave procedure; it is no longer convex in θ.  Source: Agarwal et al. 2018, §4.2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.bounds import Surrogate
from cfltr_core.learning.descent import DeepMethod, DeepOptimizer, Objective, Plan, TrainingDiverged, train
from cfltr_core.learning.networks import DeepFit, built, dtype_of, score
from cfltr_core.learning.propdcg import curvature
from cfltr_core.learning.proprank import training_problem
from cfltr_core.learning.torch_lists import TorchLists
from cfltr_core.ranking.rank_weight import RankWeight, dcg

if TYPE_CHECKING:
    import torch

Rates = float | Sequence[tuple[int, float]]
# How the network of Agarwal et al. 2018, §5.7, was trained; the network itself is ``two_layer(n_features)``.
AGARWAL_DEEP: Mapping[str, Any] = MappingProxyType(
    {
        "optimizer": "adam",
        "learning_rate": ((300, 1e-6), (200, 1e-7), (250, 1e-8)),
        "weight_decay": 1e-6,
        "batch_documents": 1000,
    }
)


def fit_deep(
    features: ArrayLike,
    log: ClickLog,
    *,
    module: torch.nn.Module | Callable[[], torch.nn.Module],
    metric: RankWeight | None = None,
    surrogate: Surrogate = "hinge",
    sigma: float = 1.0,
    method: DeepMethod = "direct",
    round_epochs: int = 5,
    optimizer: DeepOptimizer = "adam",
    learning_rate: Rates = 1e-3,
    weight_decay: float = 0.0,
    batch_documents: int = 1000,
    epochs: int | None = None,
    steps: int | None = None,
    validation: tuple[ArrayLike, ClickLog] | None = None,
    patience: int | None = None,
    device: str = "cpu",
    seed: int | np.random.Generator | torch.Generator = 0,
    progress: bool | None = None,
) -> DeepFit:
    """Deep PropDCG: minimise (1/n) Σ clicks/p · λ(1 + Σ_y max(1 − (f(x_d) − f(x_y)), 0)) over the weights of f.

    Source: Agarwal et al. 2018, §4.2 and Eq. 8.

    Parameters
    ----------
    features, log
        As for :func:`cfltr_core.learning.proprank.fit_proprank`; the network gets rows in the precision of its weights.
    module : torch.nn.Module, or a function that makes one
        f, from (n_docs, n_features) to (n_docs,) or (n_docs, 1).  A function is called with torch's generator seeded by
        ``seed``.  A network is trained where it is: it begins with its weights and is left with those of the fit.
    metric : RankWeight
        λ with a derivative; DCG if none is given.  With a cut-off λ(1 + S) has no gradient beyond it, where a bound on
        the rank is at first: such a λ is refused.
    surrogate, sigma
        The bound on the rank, as for :func:`cfltr_core.learning.bounds.bound_loss`.
    method : "direct" or "majorise"
        Gradients of F itself, or of its majoriser, which needs a λ that is concave or linear.
    round_epochs : int
        How many epochs ``"majorise"`` keeps the weights c_t λ′(1 + S_t).
    optimizer : "adam" or "sgd"
        With torch's usual settings.
    learning_rate : float or [(length, rate), …]
        A rate, or rates one after the other; the last goes on.  Lengths count epochs, or steps if ``steps`` is given.
    weight_decay : float
        γ ≥ 0 of (γ/2)‖θ‖², whose gradient is added to that of F: 1/C of the SVM.
    batch_documents : int
        About how many documents the lists of a batch have together.
    epochs, steps : int
        When to stop, by one of the two; by default after all lengths of ``learning_rate``, or 50 epochs.
    validation : (features, log)
        Other queries and their clicks.  After every epoch the risk Σ clicks · λ / p divided by Σ clicks / p is
        estimated on them, and the weights of the epoch where it was least are returned.  Without: the last weights.
    patience : int
        Stop after as many epochs without a smaller risk.
    device : str
        "cpu", "cuda" or "cuda:1", …
    seed : int, numpy.random.Generator or torch.Generator
        Of the order of the lists, of what ``module`` draws when it is made, and of what it draws when it is trained.
        torch's own generator is left as it was.  Same seed, same digits, on a CPU with the same number of threads.
    progress : bool
        One line on stderr that moves; by default only if stderr is a terminal.

    Returns
    -------
    DeepFit

    Raises
    ------
    ValueError
        As ``fit_proprank``; for settings out of range, a λ without a derivative or with a jump, a module that returns
        another shape or numbers that are not finite, a ``validation`` that does not match, a device that is not there.
    TypeError
        For a ``module`` that is no network, a ``seed`` that is none.
    TrainingDiverged
        A RuntimeError, when scores, the objective or weights are not finite any more: it names epoch and step, and
        its ``fit`` has the last weights that were good; so has the ``module``.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> x = [[-2.0], [0.0], [2.0]]  # A and C are clicked: no linear scorer has both of them above B
    >>> net = lambda: cf.two_layer(1, hidden=16)
    >>> fit = cf.fit_deep(x, log, module=net, learning_rate=0.1, epochs=60, validation=(x, log))
    >>> cf.ranks(fit.decision_function(x), [0, 3]).tolist()[1], round(fit.risk, 3)  # −(1/log₂2 + 1/log₂3) / 2
    (3.0, -0.815)
    >>> {name: w.shape for name, w in fit.weights.items()}
    {'0.weight': (16, 1), '0.bias': (16,), '2.weight': (1, 16), '2.bias': (1,)}
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(f"{folder}/fit.npz")
    ...     again = type(fit).load(f"{folder}/fit.npz")
    >>> again.decision_function(x).tolist() == fit.decision_function(x).tolist()
    True
    >>> paper = cf.fit_deep(x, log, module=net, **{**cf.AGARWAL_DEEP, "learning_rate": [(3, 1e-6), (2, 1e-7)]})
    >>> paper.history["rate"]
    array([1.e-06, 1.e-06, 1.e-06, 1.e-07, 1.e-07])
    """
    lam = dcg() if metric is None else metric
    x, clicked, mass = training_problem(features, log, C=1.0)
    if not np.isfinite(mass).all():
        raise ValueError(f"log: the propensity of document {clicked.documents[~np.isfinite(mass)][0]} is 0, but it was "
                         "clicked, so it can be examined: correct the examination curve")  # fmt: skip
    _no_jump(lam, int(np.diff(log.offsets).max()))
    checks.one_of(surrogate, "surrogate", ("hinge", "logistic"))
    checks.positive(sigma, "sigma")
    checks.one_of(method, "method", ("direct", "majorise"))
    checks.positive_int(round_epochs, "round_epochs")
    checks.one_of(optimizer, "optimizer", ("adam", "sgd"))
    checks.within(weight_decay, 0, np.finfo(float).max, "weight_decay", "expected γ of the penalty (γ/2)‖θ‖², >= 0")
    checks.positive_int(batch_documents, "batch_documents")
    if method == "majorise" and curvature(lam, int(np.diff(log.offsets).max())) == "convex":
        raise ValueError(f"method is 'majorise', but rank weight {lam.name!r} is convex and lies above its tangents: "
                         "choose 'direct'")  # fmt: skip
    length, by_steps, rates = training_length(learning_rate, epochs, steps)
    judged = None if validation is None else validation_pair(validation, x.shape[1])
    if patience is not None:
        checks.positive_int(patience, "patience")
        if judged is None:
            raise ValueError("patience: there is no validation to watch; give validation=(features, log)")
    plan = Plan(
        length=length, by_steps=by_steps, rates=rates, metric=lam, surrogate=surrogate, sigma=sigma, method=method,
        round_epochs=round_epochs, optimizer=optimizer, weight_decay=weight_decay, batch_documents=batch_documents,
        patience=patience, progress=sys.stderr.isatty() if progress is None else progress,
    )  # fmt: skip
    return train_module(x, log, mass, module=module, plan=plan, validation=judged, device=device, seed=seed)


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


@dataclass(frozen=True, eq=False, repr=False)
class DeepSelection:
    """The chosen ``fit``, the ``settings`` that it was trained with, and the ``estimates`` of the risk for each of all.

    The fit is a :class:`cfltr_core.learning.networks.DeepFit`, or what another learner gives.  :func:`select_deep`
    makes it.
    """

    fit: Any
    settings: Mapping[str, Any]
    estimates: FloatArray

    def __repr__(self) -> str:
        return f"DeepSelection({dict(self.settings)} of {len(self.estimates)} settings)"


def select_deep(
    features: ArrayLike,
    log: ClickLog,
    *,
    grid: Sequence[Mapping[str, Any]],
    validation: tuple[ArrayLike, ClickLog],
    learner: Callable[..., Any] | None = None,
    **fixed: Any,
) -> DeepSelection:
    """The settings with the least Σ clicks · λ / p divided by Σ clicks / p on *validation clicks*; labels play no part.

    Source: Agarwal et al. 2018, §5.1, where C of the SVM is chosen so; their network was not tuned (§5.7).

    Parameters
    ----------
    features, log, validation
        As for :func:`fit_deep`.
    grid : one mapping or more
        Arguments of :func:`fit_deep` by name, tried in this order; of equal estimates the first is chosen.
    learner : callable
        What fits instead of :func:`fit_deep`, such as :func:`cfltr_core.learning.lambdaloss_fit.fit_lambdaloss`: it is
        called like ``fit_deep``, with its own arguments from ``grid`` and ``fixed``, and its fits have a ``risk``.
    fixed
        Arguments of :func:`fit_deep` that are the same in all; ``seed`` among them is a whole number, so that all
        settings have the same.

    Returns
    -------
    DeepSelection
        A training that diverged has the estimate ∞.

    Raises
    ------
    ValueError, TypeError
        As :func:`fit_deep`; for an empty ``grid``.
    TrainingDiverged
        That of the last training, if all diverged.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> x = [[-2.0], [0.0], [2.0]]  # A and C are clicked: no linear scorer has both of them above B
    >>> grid = [{"module": lambda h=h: cf.two_layer(1, hidden=h)} for h in (1, 16)]
    >>> chosen = cf.select_deep(x, log, grid=grid, validation=(x, log), learning_rate=0.1, epochs=60)
    >>> chosen.estimates.round(3), round(chosen.fit.risk, 3)
    (array([-0.75 , -0.815]), -0.815)
    """
    if len(grid) == 0:
        raise ValueError("grid: expected at least one mapping with arguments of fit_deep")
    if not isinstance(fixed.get("seed", 0), (int, np.integer)):
        raise TypeError("seed: a generator would give each of the settings another one; give a whole number")
    estimates = np.full(len(grid), np.inf)
    fits: dict[int, Any] = {}
    failure: TrainingDiverged | None = None
    for i, settings in enumerate(grid):
        try:
            fits[i] = (learner or fit_deep)(features, log, validation=validation, **{**fixed, **settings})
            estimates[i] = fits[i].risk
        except TrainingDiverged as error:
            failure = error
    if failure is not None and not fits:
        raise failure
    best = int(np.argmin(estimates))
    return DeepSelection(fits[best], grid[best], estimates)


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


def validation_pair(given: Any, n_features: int) -> tuple[NDArray[Any], ClickLog]:
    """Features and log of other queries; a ValueError unless they belong together and have ``n_features`` columns."""
    if not (isinstance(given, Sequence) and len(given) == 2 and isinstance(given[1], ClickLog)):
        raise ValueError("validation: expected (features, log) of other queries")
    try:
        x, _, _ = training_problem(given[0], given[1], C=1.0)
    except ValueError as error:
        raise ValueError(f"validation: {error}") from error
    if x.shape[1] != n_features:
        raise ValueError(f"validation: has {x.shape[1]} features, those to learn from are {n_features}")
    return x, given[1]


def _no_jump(metric: RankWeight, longest: int) -> None:
    """A ValueError for a λ without a derivative, or one that rises where its derivative does not say so."""
    rank = np.arange(1.0, 4 * max(17, longest))
    slope, rise = metric.slope(rank), np.diff(metric(rank))
    most = np.maximum(np.maximum(slope[1:], slope[:-1]), metric.slope(rank[:-1] + 0.5))
    jumps = (rise > 2 * most) & (rise > 1e-9 * np.ptp(metric(rank)))
    if jumps.any():
        k = int(np.argmax(jumps)) + 1
        raise ValueError(
            f"metric: {metric.name} jumps between ranks {k} and {k + 1}, where its derivative does not see it: a "
            "document beyond would have no gradient and never come back; learn a cut-off DCG with "
            f"fit_lambdaloss(…, cutoff={k}), or give a metric without a cut-off"
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
