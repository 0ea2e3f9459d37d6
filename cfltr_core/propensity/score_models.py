"""Scores of documents from their features, as a function of a vector of parameters, and how to improve the vector.

Towers, dual learning and regression-EM all need the same three things of a scorer: f(x_d) of every shown document at
given parameters, the gradient of Σ_d g_d f(x_d) with respect to these, and what is kept in the end.  A linear scorer
and a network of torch give them alike.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.ranking.linear import LinearRanker
from cfltr_core.ranking.modules import built, flat

if TYPE_CHECKING:
    import torch

# Directions of the features with less of the variance than this, relative to the first, are rounding.
FLAT = 1e-10
# Steps of L-BFGS that are remembered.
MEMORY = 30


def shown_features(features: ArrayLike, documents: IntArray) -> FloatArray:
    """The rows of ``features`` (n_rows, n_features) of the given ``documents``, in double precision.

    Raises
    ------
    ValueError
        For features that are no table, lack a row, or are not finite in one of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.score_models import shown_features
    >>> shown_features([[1, 2], [3, 4], [5, 6]], np.array([0, 2]))
    array([[1., 2.],
           [5., 6.]])
    """
    table = checks.feature_matrix(features, finite=False)
    last = int(documents.max())
    if last >= len(table):
        raise ValueError(
            f"features: there are {len(table)} rows, but document {last} was shown: row d holds the features of "
            "document d, also of documents of other queries"
        )
    rows = table[documents].astype(np.float64)
    for row, column in np.argwhere(~np.isfinite(rows)):
        raise ValueError(
            f"features[{documents[row]}, {column}] is {rows[row, column]}: replace or drop non-finite values first"
        )
    return rows


class LinearScores:
    """f(x) = b + w·x, in coordinates in which the shown documents are uncorrelated: there few steps are needed.

    With x̃ the features in units of their standard deviation, from their means, and x̃ T uncorrelated, f = b + x̃ T u;
    the parameters are (b, u).  The penalty is that of w̃ = T u, so it does not depend on the units of the features.
    Directions that no document differs in are left out.

    Parameters
    ----------
    x : (n_docs, n_features)
    """

    def __init__(self, x: FloatArray) -> None:
        self.words = "linear in the features"
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread = np.where(spread > 1e-12 * (1 + abs(mean)), spread, np.inf)
        scaled = (x - mean) / spread
        power, axes = np.linalg.eigh(scaled.T @ scaled / len(x))
        kept = power > FLAT * max(float(power[-1]), FLAT)
        self.turn = axes[:, kept] / np.sqrt(power[kept])
        # A step along the slope by w̃, divided by the number of features, as a step in (b, u); b ranks nothing.
        self.pace = np.append(0.0, power[kept] / power.sum())
        self.design = np.column_stack([np.ones(len(x)), scaled @ self.turn])
        self.spread = spread

    def start(self) -> FloatArray:
        """(0, …, 0): all documents alike."""
        return np.zeros(self.design.shape[1])

    def of(self, parameters: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """f = b + x̃ T u, of the ``parameters`` (b, u), for all documents or for some ``rows`` of them."""
        return np.asarray((self.design if rows is None else self.design[rows]) @ parameters)

    def pulled_back(self, slope: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """(Σ_d g_d, Tᵀ Σ_d g_d x̃_d) with g = ``slope``, over all documents or the ``rows`` of the last call of f."""
        return np.asarray(slope @ (self.design if rows is None else self.design[rows]))

    def penalty(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """½‖T u‖² of the ``parameters`` (b, u), and its gradient (0, TᵀT u)."""
        w = self.turn @ parameters[1:]
        return 0.5 * float(w @ w), np.concatenate([[0.0], w @ self.turn])

    def finish(self, parameters: FloatArray) -> LinearRanker | None:
        """The ranker with w = T u in the units of the given features; ``parameters`` are (b, u), b ranks nothing."""
        return LinearRanker(self.turn @ parameters[1:] / self.spread)


class ModuleScores:
    """f of a network of torch, whose weights are the parameters; it computes in double precision and in ``eval`` mode.

    Parameters
    ----------
    x : (n_docs, n_features)
    module : torch.nn.Module
        From (n_docs, n_features) to (n_docs,) or (n_docs, 1).

    Raises
    ------
    ValueError
        For a module that returns another shape, or nothing that can be learnt.
    """

    def __init__(self, x: FloatArray, module: torch.nn.Module) -> None:
        import torch

        self.module, self.words = module, f"what {type(module).__name__} can make of the features"
        self.network = copy.deepcopy(module).double().cpu().eval()
        self.weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        if not self.weights:
            raise ValueError("module: has no weights to learn; give a network with parameters")
        self.rows = torch.from_numpy(x)
        self.pace = np.ones(len(self.start()))
        self.scores = self._run(self.start())

    def _run(self, parameters: FloatArray, rows: IntArray | None = None) -> torch.Tensor:
        import torch

        torch.nn.utils.vector_to_parameters(torch.from_numpy(np.array(parameters)), self.weights)
        given = self.rows if rows is None else self.rows[rows]
        return flat(self.network(given), len(given))

    def start(self) -> FloatArray:
        """The weights that the network came with, one after the other."""
        import torch

        return np.array(torch.nn.utils.parameters_to_vector(self.weights).detach().numpy())

    def of(self, parameters: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """The network's scores with ``parameters`` as weights, of all documents or of some ``rows`` of them."""
        self.scores = self._run(parameters, rows)
        return np.array(self.scores.detach().numpy())

    def pulled_back(self, slope: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Σ_d g_d ∇f(x_d), g = ``slope``, by back-propagation, over the ``rows`` that :meth:`of` was called for."""
        import torch

        found = torch.autograd.grad(
            self.scores, self.weights, torch.from_numpy(slope), retain_graph=True, allow_unused=True
        )
        parts = [
            np.zeros(w.numel()) if g is None else g.numpy().ravel() for g, w in zip(found, self.weights, strict=True)
        ]
        return np.concatenate(parts)

    def penalty(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """½‖weights‖² of all ``parameters``, and these."""
        return 0.5 * float(parameters @ parameters), parameters

    def finish(self, parameters: FloatArray) -> LinearRanker | None:
        """Leave ``parameters`` in the module that was given, in its own precision."""
        self._run(parameters)
        self.module.load_state_dict(self.network.state_dict())
        self.module.eval()
        return None


def score_model(
    features: ArrayLike, documents: IntArray, *, module: Any = None, seed: int = 0
) -> LinearScores | ModuleScores:
    """The scorer of ``documents`` by their rows of ``features``: linear, or the ``module``.

    ``module`` is a torch.nn.Module, which is trained where it is, or a function that makes one, which is called with
    torch's generator seeded by ``seed``; torch's own generator is left as it was.

    Raises
    ------
    ValueError
        For features as in :func:`shown_features`, a ``seed`` below 0, or a module of another shape.
    TypeError
        For a ``module`` that is no network.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.score_models import score_model
    >>> model = score_model([[1.0], [2.0], [4.0]], np.array([0, 2]))
    >>> model.of(np.array([0.5, 1.0]))  # of the two documents that are asked for, in units of their spread
    array([-0.5,  1.5])
    """
    checks.arguments(score_model, locals())
    rows = shown_features(features, documents)
    if module is None:
        return LinearScores(rows)
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ModuleScores(rows, built(module))


def climb(
    function: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, *, steps: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Maximise a smooth ``function``, which gives its value and gradient, by at most ``steps`` steps of L-BFGS.

    Returns
    -------
    argument : (n,)
    history : (steps taken + 1,)
        The value at ``start`` and after every step; it never falls.
    converged : bool
        False if the steps were used up.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.score_models import climb
    >>> x, history, converged = climb(lambda x: (-float((x - 3) @ (x - 3)), 6 - 2 * x), np.zeros(2), steps=50)
    >>> x.round(6), float(history[0]), converged
    (array([3., 3.]), -18.0, True)
    """
    from scipy.optimize import minimize

    def down(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = function(x)
        return -value, -gradient

    history = [function(start)[0]]
    found = minimize(
        down,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: history.append(-intermediate_result.fun),
        options={"maxiter": steps, "maxfun": 20 * steps, "maxcor": MEMORY, "ftol": 1e-14, "gtol": 1e-9},
    )
    return np.asarray(found.x, dtype=np.float64), np.array(history), found.status != 1
