"""Networks that score documents: made, kept in a file without pickle, and read again."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.files import whole_file
from cfltr_core.ranking.modules import built, score

if TYPE_CHECKING:
    import torch

Activation = Literal["sigmoid", "tanh", "relu"]
ACTIVATIONS: dict[str, str] = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "ReLU"}
HISTORY = ("objective", "validation", "rate", "steps")


def two_layer(n_features: int, hidden: int = 200, *, activation: Activation = "sigmoid") -> torch.nn.Sequential:
    """A network with one hidden layer, f(x) = b + Σ_h v_h · a(u_h · x + c_h), in single precision.

    Source: Agarwal et al. 2018, §5.7, "a simple two-layer neural network with 200 hidden units and sigmoid activation".

    Parameters
    ----------
    n_features : int
        Length of x.
    hidden : int
        Number of hidden units.
    activation : "sigmoid", "tanh" or "relu"
        a.

    Returns
    -------
    torch.nn.Sequential
        With torch's initial weights, from torch's own generator.  To have the same weights again, give
        :func:`cfltr_core.learning.deep.fit_deep` a function that makes the network, and a seed.

    Raises
    ------
    ValueError
        For numbers that are no whole number from 1, or an unknown ``activation``.

    Examples
    --------
    >>> import torch
    >>> import cfltr_core as cf
    >>> net = cf.two_layer(3, hidden=5)
    >>> net(torch.zeros(4, 3)).shape, sum(p.numel() for p in net.parameters())  # 3 · 5 + 5 + 5 + 1 weights
    (torch.Size([4, 1]), 26)
    """
    checks.arguments(two_layer, locals())
    from torch import nn

    return nn.Sequential(nn.Linear(n_features, hidden), getattr(nn, ACTIVATIONS[activation])(), nn.Linear(hidden, 1))


def _described(module: torch.nn.Module) -> dict[str, Any] | None:
    """The arguments of the :func:`two_layer` that would make such a module; None if none would."""
    from torch import nn

    parts = list(module.children()) if type(module) is nn.Sequential else []
    if [type(part) for part in parts[::2]] != [nn.Linear, nn.Linear] or len(parts) != 3:
        return None
    names = [name for name, kind in ACTIVATIONS.items() if type(parts[1]) is getattr(nn, kind)]
    first, last = parts[0], parts[2]
    if not names or last.out_features != 1 or first.bias is None or last.bias is None:
        return None
    if any(p.dtype != first.weight.dtype or str(p.dtype) != "torch.float32" for p in module.parameters()):
        return None
    return {"n_features": first.in_features, "hidden": first.out_features, "activation": names[0]}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DeepFit:
    """A learnt network f, by which documents are ranked, largest first, and how it was learnt.

    ``module`` is a copy of the network, with the weights of ``best_epoch``, ready to score.  ``history`` has one number
    for each epoch: ``objective``, Σ_t c_t λ(1 + S_t) over the batches of the epoch, each at the weights that it found;
    ``validation``, the self-normalised estimate of the risk on validation clicks after the epoch, NaN without them;
    ``rate``, the last learning rate; ``steps``, the steps taken so far.  ``risk`` is the least of ``validation``.
    ``steps`` are those of the whole training, ``n_features`` the length of x.
    :func:`cfltr_core.learning.deep.fit_deep` makes it.
    """

    module: torch.nn.Module
    history: Mapping[str, FloatArray]
    steps: int
    best_epoch: int
    risk: float
    n_features: int
    FORMAT: ClassVar[str] = "cfltr deep fit 1"

    def __repr__(self) -> str:
        size = sum(w.size for w in self.weights.values())
        return f"DeepFit({size} weights, epoch {self.best_epoch} of {len(self.history['objective'])})"

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """The weights of the network by their names in torch, as copies."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.module.state_dict().items()}

    def decision_function(self, features: ArrayLike) -> FloatArray:
        """f of each row of ``features`` (n_docs, n_features), float64 of shape (n_docs,).

        Raises
        ------
        ValueError
            For features of another width, or values that are no finite numbers.
        """
        x = checks.feature_matrix(features, self.n_features, finite=False)
        return checks.finite_scores(score(self.module, x), x)

    def save(self, path: str | Path) -> None:
        """Keep the fit at ``path`` as NumPy's .npz, whole or not at all; :meth:`load` gives the same digits."""
        about = {
            "format": self.FORMAT, "two_layer": _described(self.module), "steps": self.steps,
            "best_epoch": self.best_epoch, "n_features": self.n_features,
        }  # fmt: skip
        arrays: dict[str, Any] = {"about": np.array(json.dumps(about)), "risk": np.array(self.risk)}
        arrays |= {f"history {name}": values for name, values in self.history.items()}
        arrays |= {f"weight {name}": values for name, values in self.weights.items()}
        with whole_file(Path(path)) as stream:
            np.savez(stream, **arrays)

    @classmethod
    def load(cls, path: str | Path, module: torch.nn.Module | Callable[[], torch.nn.Module] | None = None) -> Self:
        """Read what :meth:`save` wrote to ``path``; nothing in the file is executed.

        ``module`` is a network like the one that was saved, or a function that makes one; it gets the weights of the
        file.  A :func:`two_layer` is made anew without it.

        Raises
        ------
        FileNotFoundError
            No such file.
        ValueError
            For a file that is not one of ours, or a ``module`` that is missing or has other weights.
        """
        file = Path(path)
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                kept = {name: arrays[name] for name in arrays.files}
            about = json.loads(str(kept["about"]))
            if about["format"] != cls.FORMAT:
                raise ValueError(f"its format is {about['format']!r}, not {cls.FORMAT!r}")
            beside = {name: about[name] for name in ("steps", "best_epoch", "n_features")}
            history = {name: kept[f"history {name}"] for name in HISTORY}
            risk = float(kept["risk"])
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, TypeError, OSError, AttributeError, zipfile.BadZipFile) as error:
            raise ValueError(f"path: {file.name} is no fit that save() wrote ({error}); give one") from error
        weights = {name.removeprefix("weight "): value for name, value in kept.items() if name.startswith("weight ")}
        if module is None and about["two_layer"] is None:
            raise ValueError(f"module is None, but {file.name} does not hold a two_layer: give the network it was")
        import torch

        with torch.random.fork_rng(devices=[]):  # initial weights are drawn, and overwritten
            net = two_layer(**about["two_layer"]) if module is None else copy.deepcopy(built(module))
        try:
            net.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        except RuntimeError as error:
            raise ValueError(f"module: has other weights than {file.name} ({error})") from error
        return cls(module=net.eval(), history=history, risk=risk, **beside)
