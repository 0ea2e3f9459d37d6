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

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.bounds import Surrogate
from cfltr_core.learning.course import DeepMethod, DeepOptimizer, Plan, Rates, validation_pair
from cfltr_core.learning.module_training import train_module
from cfltr_core.learning.networks import DeepFit
from cfltr_core.learning.propdcg import curvature
from cfltr_core.learning.proprank import training_problem
from cfltr_core.ranking.rank_weight import RankWeight, dcg

if TYPE_CHECKING:
    import torch

#: How the network of Agarwal et al. 2018, §5.7, was trained; the network itself is ``two_layer(n_features)``.
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
    checks.arguments(fit_deep, locals())
    lam = metric or dcg()
    x, _, mass = training_problem(features, log, C=1.0)
    _no_jump(lam, int(np.diff(log.offsets).max()))
    if method == "majorise" and curvature(lam, int(np.diff(log.offsets).max())) == "convex":
        raise ValueError(f"method is 'majorise', but rank weight {lam.name!r} is convex and lies above its tangents: "
                         "choose 'direct'")  # fmt: skip
    plan = Plan(
        learning_rate=learning_rate, epochs=epochs, steps=steps, weight_decay=weight_decay,
        batch_documents=batch_documents, patience=patience, progress=progress, metric=lam, surrogate=surrogate,
        sigma=sigma, method=method, round_epochs=round_epochs, optimizer=optimizer,
    )  # fmt: skip
    judged = validation_pair(validation, x.shape[1], patience)
    return train_module(x, log, mass, module=module, plan=plan, validation=judged, device=device, seed=seed)


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
