"""Training on the clicks of 1,000 lists of 100 documents, against all n × n pairs of padded lists in torch.

    python -m benchmarks.deep

The peer does what is usual: lists stand in a rectangle, the hinge of every pair of a list is computed, those of
documents without a click get the weight 0, and automatic differentiation goes back through all of it.  Compared are the
loss with its gradient in the scores, and epochs of training with the same batches in the same order, for a linear
scorer and for the network of the paper.  Values, and weights after two epochs, are compared first, in double precision
to 1e-9; times are those of single precision.  Below the loss stands what its largest tensors hold.  The last row of an
epoch is the peer with a loss that has no pairs: the network, Adam and the batches alone, less than which no loss can
make it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from benchmarks.timing import best_of, table
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    PositionBasedUser,
    dcg,
    fit_deep,
    power_examination,
    simulate_clicks,
    two_layer,
)
from cfltr_core.learning.torch_lists import TorchLists, list_sums

QUERIES, LENGTH, FEATURES, RATE = 1_000, 100, 60, 1e-3


def clicks(rng: np.random.Generator) -> tuple[np.ndarray, ClickLog]:
    """Features of all documents, and ten sessions of each query on a page of random order."""
    offsets = np.arange(QUERIES + 1) * LENGTH
    x = rng.normal(size=(QUERIES * LENGTH, FEATURES)).astype(np.float32)
    relevance = (x[:, 0] + np.abs(x[:, 1]) > 1.5).astype(np.float64)
    policy = DeterministicPolicy.rank_by(rng.normal(size=len(x)), offsets, rng=rng)
    user = PositionBasedUser(power_examination(1.0), epsilon_minus=0.1)
    return x, simulate_clicks(policy, user, relevance=relevance, sessions=[10] * QUERIES, rng=rng)


def padded_loss(scores: torch.Tensor, mass: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Σ mass · λ(1 + Σ hinge) of lists in rows, (n_lists, longest); ``there`` is 0 where a list has ended."""
    hinge = (1 - (scores[:, :, None] - scores[:, None, :])).clamp(min=0)
    other = there[:, :, None] * there[:, None, :] * (1 - torch.eye(scores.shape[1], dtype=scores.dtype))
    rank = 1 + (hinge * other).sum(dim=2)
    return (mass * (-1 / torch.log2(1 + rank))).sum()


def no_pairs(scores: torch.Tensor, mass: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """A loss that costs nothing."""
    return (mass * scores * there).sum()


def padded_training(
    make: partial[nn.Module],
    x: np.ndarray,
    mass: np.ndarray,
    batch: int,
    epochs: int,
    loss_of: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor] = padded_loss,
) -> nn.Module:
    """Adam on batches of ``batch`` documents, in the order of ``fit_deep`` with the seed 0."""
    torch.manual_seed(0)
    net = make()
    dtype = next(net.parameters()).dtype
    order = np.random.default_rng(0)
    rows = torch.from_numpy(x).to(dtype).reshape(QUERIES, LENGTH, FEATURES)
    weights = torch.from_numpy(mass).to(dtype).reshape(QUERIES, LENGTH)
    clicked = np.flatnonzero(mass.reshape(QUERIES, LENGTH).sum(axis=1))
    descent = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(epochs):
        parts = np.split(order.permutation(clicked), range(batch // LENGTH, len(clicked), batch // LENGTH))
        for part in map(torch.from_numpy, parts):
            descent.zero_grad()
            scores = net(rows[part].reshape(-1, FEATURES)).reshape(len(part), LENGTH)
            loss = loss_of(scores, weights[part], torch.ones(scores.shape, dtype=dtype))
            (loss * len(parts)).backward()
            descent.step()
    return net


def ours(make: partial[nn.Module], x: np.ndarray, log: ClickLog, batch: int, epochs: int) -> nn.Module:
    return fit_deep(
        x, log, module=make, learning_rate=RATE, batch_documents=batch, epochs=epochs, seed=0, progress=False
    ).module


def loss_alone(log: ClickLog, mass: np.ndarray) -> None:
    """Value and gradient in the scores, all lists at once."""
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=len(mass)))
    lists = TorchLists(log.offsets, np.flatnonzero(mass))
    (batch,) = lists.batches(np.arange(QUERIES)[np.isin(np.arange(QUERIES), lists.queries)], len(mass))
    c = mass[lists.documents[batch.terms]]

    def flat(dtype: torch.dtype) -> tuple[float, np.ndarray]:
        given = scores.to(dtype)[torch.from_numpy(batch.rows)]
        sums, pull = list_sums(given, batch, lambda part, total: c[part] * dcg().slope(1 + total))
        gradient = np.zeros(len(mass))
        gradient[batch.rows] = pull.numpy()
        return float(c @ dcg()(1 + sums)), gradient

    def padded(dtype: torch.dtype) -> tuple[float, np.ndarray]:
        given = scores.to(dtype).reshape(QUERIES, LENGTH).requires_grad_()
        value = padded_loss(given, torch.from_numpy(mass).to(dtype).reshape(QUERIES, LENGTH), torch.ones_like(given))
        value.backward()
        return value.item(), given.grad.numpy().ravel()

    for here, there in zip(flat(torch.float64), padded(torch.float64), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-15)
    base, _ = best_of(partial(flat, torch.float32))
    peer, _ = best_of(partial(padded, torch.float32))
    print("the loss and its gradient, all lists at once")
    print(table([("pairs of the clicked documents", base, 1.0), ("padded n × n, autograd", peer, peer / base)]))
    pairs = len(batch.terms) * LENGTH
    print(f"  pairs: {pairs:,} of {QUERIES * LENGTH**2:,}")


def main() -> None:
    torch.set_num_threads(1)
    x, log = clicks(np.random.default_rng(0))
    mass = np.bincount(log.document, log.mass, minlength=len(x))
    print(f"{log.n_clicks:,} clicks on {np.count_nonzero(mass):,} of {len(x):,} documents, {FEATURES} features")
    loss_alone(log, mass)
    networks = {"linear": partial(nn.Linear, FEATURES, 1), "two_layer, 200": partial(two_layer, FEATURES)}
    for name, make in networks.items():
        in_double = partial(lambda m: m().double(), make)
        for batch in (1_000, 10_000, QUERIES * LENGTH):
            pair = [ours(in_double, x, log, batch, 2), padded_training(in_double, x, mass, batch, 2)]
            for mine, theirs in zip(*(net.parameters() for net in pair), strict=True):
                np.testing.assert_allclose(mine.detach(), theirs.detach(), rtol=1e-7, atol=1e-9)
            base, _ = best_of(partial(ours, make, x, log, batch, 1), 3)
            peer, _ = best_of(partial(padded_training, make, x, mass, batch, 1), 3)
            print(f"an epoch of {name}, batches of {batch:,} documents")
            free, _ = best_of(partial(padded_training, make, x, mass, batch, 1, no_pairs), 3)
            rows = [("fit_deep", base, 1.0), ("padded n × n, autograd", peer, peer / base)]
            print(table([*rows, ("the same without its pairs", free, free / base)]))


if __name__ == "__main__":
    main()
