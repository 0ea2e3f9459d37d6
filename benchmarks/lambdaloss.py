"""LambdaLoss with a cut-off, value and gradient: against plain NumPy, padded torch, rax and allRank where installed.

    python -m benchmarks.lambdaloss [--rax PYTHON] [--allrank PYTHON]

1,000 lists of 100 with a cut-off of 10: the pairs with at least one document in the first ten, gains on 30 % of the
documents.  The plain version is one NumPy block of (lists, k, list) pairs, as one would write it.  The padded one is
automatic differentiation through all (lists, list, list) pairs with a mask, "allRank-style padded torch": what allRank
does, written anew, not its code.  rax needs jax, which is no dependency of this package: ``--rax`` names a Python that
has it; its formula is that of ``beyond`` in the difference form, times the length of the list.  ``--allrank`` names a
Python with allRank and torch, and with gcsfs and torchvision, which its readers import; its formula is that of ``both``
in the difference form, with the gains of a list divided by its ideal DCG at the cut-off.

Values and gradients are compared first.  Then the three truncations and both forms, ragged lists, ties in every list,
and lists of a length where k × list and list × list part.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import best_of, peak_memory, table
from cfltr_core import lambda_loss
from cfltr_core.learning.lambda_pairs import LambdaLists

N_LISTS, N_DOCS, K = 1_000, 100, 10
LENGTHS = (1_000, 10_000, 100_000)
Result = tuple[float, np.ndarray]

RAX = """
import sys, time
import jax, jax.numpy as jnp, numpy as np, rax
data = np.load(sys.argv[1])
scores, labels = (jnp.asarray(data[k], dtype=jnp.float32) for k in ("scores", "labels"))
weigh = lambda s, y, **rest: rax.dcg2_lambdaweight(s, y, topn=int(data["k"]), gain_fn=lambda y: y, **rest)
loss = lambda s: rax.pairwise_logistic_loss(s, labels, lambdaweight_fn=weigh, reduce_fn=jnp.sum)
call = jax.jit(jax.value_and_grad(loss))
seconds = []
for _ in range(20):
    start = time.perf_counter()
    value, gradient = call(scores)
    gradient.block_until_ready()
    seconds.append(time.perf_counter() - start)
np.savez(sys.argv[2], value=value, gradient=gradient, seconds=min(seconds))
"""

ALLRANK = """
import sys, time
import numpy as np, torch
from allrank.models.losses.lambdaLoss import lambdaLoss
torch.set_num_threads(1)
data = np.load(sys.argv[1])
labels = torch.tensor(np.log2(1 + data["labels"]))  # its gains are 2^y - 1
seconds = []
for _ in range(3):
    scores = torch.tensor(data["scores"], requires_grad=True)
    start = time.perf_counter()
    value = lambdaLoss(scores, labels, weighing_scheme="ndcgLoss2_scheme", k=int(data["k"]))
    value.backward()
    seconds.append(time.perf_counter() - start)
np.savez(sys.argv[2], value=value.detach(), gradient=scores.grad, seconds=min(seconds))
"""


def pair_weights(k: int, n: int) -> np.ndarray:
    """δ of the rank difference for the upper document in the first k, (k, n); 0 unless the other is below."""
    m = np.arange(n) - np.arange(k)[:, None]
    safe = np.maximum(m, 1)
    return np.where(m > 0, 1 / np.log2(1 + safe) - 1 / np.log2(2 + safe), 0.0)


def plain(scores: np.ndarray, gains: np.ndarray, k: int) -> Result:
    """One block of (lists, k, list) pairs."""
    order = np.argsort(-scores, axis=1)
    s, g = np.take_along_axis(scores, order, axis=1), np.take_along_axis(gains, order, axis=1)
    w = pair_weights(k, scores.shape[1])
    x = np.maximum(s[:, :k, None] - s[:, None, :], 0)
    small = np.exp(-x)
    p = small / (1 + small)
    above, below = g[:, :k, None], g[:, None, :]
    loss = np.log1p(small)
    value = (w * (above * loss + below * (loss + x))).sum()
    force = w * (below * (1 - p) - above * p)
    ordered = -force.sum(axis=1)
    ordered[:, :k] += force.sum(axis=2)
    gradient = np.empty_like(scores)
    np.put_along_axis(gradient, order, ordered, axis=1)
    return float(value) / np.log(2), gradient.ravel() / np.log(2)


def padded_torch(scores: torch.Tensor, gains: torch.Tensor, k: int) -> Result:
    s = scores.clone().requires_grad_(True)
    n = s.shape[1]
    order = torch.argsort(s.detach(), dim=1, descending=True)
    sorted_s, g = s.gather(1, order), gains.gather(1, order)
    m = (torch.arange(n)[:, None] - torch.arange(n)).abs().clamp(min=1).to(s.dtype)
    w = 1 / torch.log2(1 + m) - 1 / torch.log2(2 + m)
    w = w * ((torch.arange(n)[:, None] < k) | (torch.arange(n) < k)) * (1 - torch.eye(n, dtype=s.dtype))
    gaps = sorted_s[:, :, None] - sorted_s[:, None, :]
    losses = torch.nn.functional.softplus(-gaps) / np.log(2)
    loss = (w * g[:, :, None] * losses).sum()
    loss.backward()
    return float(loss.detach()), s.grad.numpy().ravel()


def ours(scores: np.ndarray, gains: np.ndarray, offsets: np.ndarray, **given: object) -> Result:
    found = lambda_loss(scores, offsets, gains=gains, **given)
    return found.value, found.gradient


def kept(lists: LambdaLists, scores: np.ndarray) -> Result:
    found = lists.loss(scores)
    return found.value, found.gradient


def problem(n_lists: int, n_docs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = (n_lists, n_docs)
    return rng.normal(size=shape), (rng.random(shape) < 0.3) * rng.uniform(1, 10, size=shape)


def other_process(python: str, code: str, scores: np.ndarray, gains: np.ndarray) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, scores=scores, labels=gains, k=K)
        subprocess.run([python, "-c", code, str(given), str(answer)], check=True)
        return dict(np.load(answer))


def with_rax(python: str, scores: np.ndarray, gains: np.ndarray) -> float:
    found = other_process(python, RAX, scores, gains)
    unit = N_DOCS * np.log(2)
    offsets = np.arange(N_LISTS + 1) * N_DOCS
    value, gradient = ours(scores.ravel(), gains.ravel(), offsets, cutoff=K, truncation="beyond", form="difference")
    np.testing.assert_allclose(found["value"] / unit, value, rtol=1e-4)
    np.testing.assert_allclose(found["gradient"].ravel() / unit, gradient, atol=1e-4 * np.abs(gradient).max())
    return float(found["seconds"])


def with_allrank(python: str, scores: np.ndarray, gains: np.ndarray) -> float:
    found = other_process(python, ALLRANK, scores, gains)
    ideal = -np.sort(-gains, axis=1)[:, :K] @ (1 / np.log2(np.arange(2, K + 2)))
    offsets = np.arange(N_LISTS + 1) * N_DOCS
    shares = (gains / np.maximum(ideal, 1e-10)[:, None]).ravel()
    value, gradient = ours(scores.ravel(), shares, offsets, cutoff=K, truncation="both", form="difference")
    np.testing.assert_allclose(found["value"], value, rtol=1e-4)
    np.testing.assert_allclose(found["gradient"].ravel(), gradient, atol=1e-4 * np.abs(gradient).max())
    return float(found["seconds"])


def peers(rax: str | None, allrank: str | None) -> None:
    scores, gains = problem(N_LISTS, N_DOCS)
    offsets = np.arange(N_LISTS + 1) * N_DOCS
    flat, flat_gains = scores.ravel(), gains.ravel()
    lists = LambdaLists(offsets, flat_gains, cutoff=K)
    calls = {
        "plain NumPy block (lists, k, list)": partial(plain, scores, gains, K),
        "cfltr_core.lambda_loss": partial(ours, flat, flat_gains, offsets, cutoff=K),
        "the same lists again, as in a training": partial(kept, lists, flat),
        "allRank-style padded torch, float64": partial(padded_torch, torch.tensor(scores), torch.tensor(gains), K),
    }
    value, gradient = next(iter(calls.values()))()
    for call in calls.values():
        other, other_gradient = call()
        np.testing.assert_allclose(other, value, rtol=1e-10)
        np.testing.assert_allclose(other_gradient, gradient, rtol=1e-10, atol=1e-10)
    # In turn, so that what else the machine does falls on all of them.
    times = dict.fromkeys(calls, np.inf)
    for turn in range(7):
        for name, call in calls.items():
            if turn < 2 or "torch" not in name:
                times[name] = min(times[name], best_of(call, 3)[0])
    base = next(iter(times.values()))
    rows = [(name, seconds, seconds / base) for name, seconds in times.items()]
    if rax is not None:
        seconds = with_rax(rax, scores, gains)
        rows.append(("rax under jax.jit, float32, own process", seconds, seconds / base))
    if allrank is not None:
        seconds = with_allrank(allrank, scores, gains)
        rows.append(("allRank, float64, own process", seconds, seconds / base))
    print(f"{N_LISTS:,} lists of {N_DOCS}, cut-off {K}, value and gradient; equal values first")
    print(table(rows))
    if rax is None:
        print("  rax: not installed here; name a Python that has it with --rax")
    if allrank is None:
        print("  allRank: not installed here; name a Python that has it with --allrank")


def settings() -> None:
    scores, gains = problem(N_LISTS, N_DOCS)
    offsets = np.arange(N_LISTS + 1) * N_DOCS
    base, _ = best_of(partial(ours, scores.ravel(), gains.ravel(), offsets, cutoff=K), 5)
    rows = [("at_least_one, linear", base, 1.0)]
    rounded = np.round(scores, 1)  # some ten ties in each list
    for name, s, given in (
        ("both, linear", scores, {"truncation": "both"}),
        ("beyond, linear: all pairs", scores, {"truncation": "beyond"}),
        ("no cut-off: all pairs", scores, {"cutoff": None}),
        ("at_least_one, difference", scores, {"form": "difference"}),
        ("at_least_one, linear, with the Hessian", scores, {"hessian": True}),
        ("at_least_one, linear, ties", rounded, {}),
        ("at_least_one, difference, ties: all pairs", rounded, {"form": "difference"}),
    ):
        call = partial(ours, s.ravel(), gains.ravel(), offsets, **{"cutoff": K, **given})
        seconds, _ = best_of(call, 2)
        rows.append((name, seconds, seconds / base))
    print("the same lists, other settings")
    print(table(rows))
    rows, rng = [], np.random.default_rng(1)
    size = rng.integers(1, 2 * N_DOCS, N_LISTS)
    ragged = np.concatenate([[0], np.cumsum(size)])
    s, g = rng.normal(size=ragged[-1]), (rng.random(ragged[-1]) < 0.3) * 1.0
    seconds, _ = best_of(partial(ours, s, g, ragged, cutoff=K), 5)
    rows.append((f"{N_LISTS:,} lists of 1 to {2 * N_DOCS - 1}", seconds, seconds / base))
    for n in LENGTHS:
        s, g = problem(LENGTHS[-1] // n, n)
        call = partial(ours, s.ravel(), g.ravel(), np.arange(len(s) + 1) * n, cutoff=K)
        seconds, _ = best_of(call, 3)
        rows.append((f"{len(s)} of {n:,}, at most {peak_memory(call):.0f} MB", seconds, seconds / base))
    print(f"cut-off {K}, about 100,000 documents in other lists")
    print(table(rows))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rax", help="a Python in which rax is installed")
    parser.add_argument("--allrank", help="a Python in which allRank and torch are installed")
    torch.set_num_threads(1)
    given = parser.parse_args()
    peers(given.rax, given.allrank)
    settings()


if __name__ == "__main__":
    main()
