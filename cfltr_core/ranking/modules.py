"""Networks as scorers: a ``torch.nn.Module`` that maps the features of documents to one score for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray

if TYPE_CHECKING:
    import torch

# Documents that are scored at once.
ROWS = 1 << 13


def built(module: Any) -> torch.nn.Module:
    """``module`` itself, or what it makes, after a check that this is a network."""
    from torch import nn

    net = module if isinstance(module, nn.Module) else module() if callable(module) else None
    if not isinstance(net, nn.Module):
        found = type(module).__name__ if net is None else f"a function that returns {type(net).__name__}"
        raise TypeError(f"module is {found}: give a torch.nn.Module, or a function that makes one")
    return net


def dtype_of(module: torch.nn.Module) -> torch.dtype:
    """The precision of the first weights of a module, in which it wants its features; single if it has none."""
    import torch

    return next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), torch.float32)


def score(module: torch.nn.Module, features: NDArray[Any]) -> FloatArray:
    """The scores of all documents, block by block, in double precision: the module must be in ``eval`` mode.

    Raises ValueError when the module returns another shape than (n_docs,) or (n_docs, 1).
    """
    import torch

    out = np.empty(len(features))
    weight = next(module.parameters(), torch.empty(0))
    kind = str(dtype_of(module)).removeprefix("torch.")
    with torch.no_grad():
        for i in range(0, len(features), ROWS):
            block = np.ascontiguousarray(features[i : i + ROWS], dtype=kind)
            # A copy where the array cannot be written: torch has no tensors of that kind.
            rows = torch.from_numpy(block if block.flags.writeable else block.copy()).to(weight.device)
            out[i : i + ROWS] = flat(module(rows), len(rows)).double().cpu().numpy()
    return out


def flat(scores: Any, n_docs: int) -> torch.Tensor:
    """``scores`` in the shape (n_docs,); ValueError unless they are one number for each document."""
    shape = tuple(getattr(scores, "shape", ()))
    if shape not in ((n_docs,), (n_docs, 1)):
        found = f"shape {shape}" if hasattr(scores, "shape") else type(scores).__name__
        raise ValueError(
            f"module: returned {found} for {n_docs} documents: it must map (n_docs, n_features) to one score for each "
            "document, (n_docs,) or (n_docs, 1)"
        )
    return scores.reshape(-1)  # type: ignore[no-any-return]
