"""The settings of a network, chosen by the clicks on queries that it did not learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.deep import fit_deep
from cfltr_core.learning.descent import TrainingDiverged


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
        chosen = {name: "a function" if callable(value) else value for name, value in self.settings.items()}
        return f"DeepSelection({chosen} of {len(self.estimates)} settings)"


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
