"""Surrogate bounds on the rank, loss and gradient in the scores, against plain NumPy, torch, rax and a sort.

    python -m benchmarks.bounds [--rax PYTHON]

First one clicked document in each of 1,000 lists of 100, with its inverse propensity: the hinge and the logistic form
against a plain rectangular NumPy version in float64 and float32 and against torch's automatic differentiation.  rax
needs jax, which is no dependency of this package: ``--rax`` names a Python that has it; it is timed in that process.

Then several clicked documents in each list: ``bound_loss`` as it chooses, pair by pair, sorted, and an independent
version that sorts all lists at once, at the list lengths of two public collections and far beyond.  Values and
gradients are compared first.  The last column is the choice against the best of the other three.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import best_of, table
from cfltr_core import bound_loss
from cfltr_core.learning import bounds

N_LISTS, N_DOCS = 1_000, 100
# With several clicks in each list: their lengths, documents in all, and how often each form is timed.
LENGTHS, IN_ALL, TURNS = (24, 100, 1_000, 10_000), 60_000, 25
Result = tuple[float, np.ndarray]

RAX = """
import sys, time
import jax, jax.numpy as jnp, numpy as np, rax
data = np.load(sys.argv[1])
scores, labels, weights = (jnp.asarray(data[k], dtype=jnp.float32) for k in ("scores", "labels", "weights"))
out = {}
for name, loss in (("hinge", rax.pairwise_hinge_loss), ("logistic", rax.pairwise_logistic_loss)):
    call = jax.jit(jax.value_and_grad(lambda s: loss(s, labels, weights=weights, reduce_fn=jnp.sum)))
    def run():
        value, gradient = call(scores)
        gradient.block_until_ready()
        return value, gradient
    run()
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        value, gradient = run()
        seconds.append(time.perf_counter() - start)
    out |= {name + "_value": value, name + "_gradient": gradient, name + "_seconds": min(seconds)}
np.savez(sys.argv[2], **out)
"""


def rectangular(kind: type, scores: np.ndarray, clicked: np.ndarray, weights: np.ndarray, form: str) -> Result:
    """Σ weight · S for one clicked document in each row, as one would write it."""
    s, w = scores.astype(kind), weights.astype(kind)
    rows = np.arange(len(s))
    gap = s[rows, clicked][:, None] - s
    if form == "hinge":
        z = 1 - gap
        value, slope = np.maximum(z, 0), (z > 0).astype(kind)
    else:
        value, slope = np.logaddexp(0, -gap) / np.log(kind(2)), 1 / (1 + np.exp(gap)) / np.log(kind(2))
    value[rows, clicked] = slope[rows, clicked] = 0
    gradient = slope * w[:, None]
    gradient[rows, clicked] = -gradient.sum(axis=1)
    return float((w * value.sum(axis=1)).sum()), gradient.ravel()


def with_torch(scores: torch.Tensor, clicked: torch.Tensor, weights: torch.Tensor, form: str) -> Result:
    s = scores.clone().requires_grad_(True)
    gap = s.gather(1, clicked[:, None]) - s
    pair = torch.relu(1 - gap) if form == "hinge" else torch.nn.functional.softplus(-gap) / np.log(2)
    others = torch.ones_like(pair).scatter(1, clicked[:, None], 0)
    loss = (weights * (pair * others).sum(dim=1)).sum()
    loss.backward()
    return float(loss.detach()), s.grad.numpy().ravel()


def by_pairs(
    scores: np.ndarray, offsets: np.ndarray, documents: np.ndarray, weights: np.ndarray, form: str = "hinge"
) -> Result:
    """This package's, without the 1 of the rank."""
    out = bound_loss(scores, offsets, documents=documents, weights=weights, surrogate=form)
    return out.value - float(weights.sum()), out.gradient


def by_sorting(scores: np.ndarray, offsets: np.ndarray, documents: np.ndarray, weights: np.ndarray) -> Result:
    """Σ weight · S of the hinge by two sorts, for all queries at once; each list is moved to a range of its own."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    moved = scores + query * (np.ptp(scores) + 2)
    order = np.argsort(moved)
    high, total = moved[order], np.concatenate([[0.0], np.cumsum(moved[order])])
    end = offsets[1:][query[documents]]
    first = np.searchsorted(high, moved[documents] - 1, side="right")
    k = end - first
    s = k * (1 - moved[documents]) + total[end] - total[first] - 1
    # On y pull the clicked documents of its list below s_y + 1: all below it, less those of the lists before.
    clicked = np.argsort(moved[documents])
    mass = np.concatenate([[0.0], np.cumsum(weights[clicked])])
    low = moved[documents][clicked]
    starts = np.searchsorted(query[documents][clicked], np.arange(len(offsets) - 1))
    gradient = mass[np.searchsorted(low, moved + 1, side="left")] - mass[starts[query]]
    gradient -= np.bincount(documents, weights * k, minlength=len(scores))
    return float((weights * s).sum()), gradient


def compare(
    title: str, calls: dict[str, Callable[[], Result]], close: dict[str, float]
) -> list[tuple[str, float, float]]:
    (name, first), *_ = calls.items()
    value, gradient = first()
    for label, call in calls.items():
        other, other_gradient = call()
        tol = close.get(label, 1e-10)
        np.testing.assert_allclose(other, value, rtol=tol)
        np.testing.assert_allclose(other_gradient, gradient, rtol=tol, atol=tol * np.abs(gradient).max())
    base, _ = best_of(first, 7)
    rows = [(name, base, 1.0)]
    for label in list(calls)[1:]:
        seconds, _ = best_of(calls[label], 7)
        rows.append((label, seconds, seconds / base))
    print(title)
    return rows


def one_click_each(rax: str | None) -> None:
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(N_LISTS, N_DOCS))
    clicked = rng.integers(N_DOCS, size=N_LISTS)
    weights = rng.uniform(1, 10, size=N_LISTS)
    offsets = np.arange(N_LISTS + 1) * N_DOCS
    documents, flat = offsets[:-1] + clicked, scores.ravel()
    found = {}
    if rax is not None:
        labels = np.zeros_like(scores)
        labels[np.arange(N_LISTS), clicked] = 1
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder) / "in.npz", Path(folder) / "out.npz"
            np.savez(given, scores=scores, labels=labels, weights=np.repeat(weights[:, None], N_DOCS, axis=1))
            subprocess.run([rax, "-c", RAX, str(given), str(answer)], check=True)
            found = dict(np.load(answer))
    tensors = {
        kind: (torch.tensor(scores, dtype=kind), torch.tensor(clicked), torch.tensor(weights, dtype=kind))
        for kind in (torch.float64, torch.float32)
    }
    for form in ("hinge", "logistic"):
        ours = partial(by_pairs, flat, offsets, documents, weights, form)
        calls: dict[str, Callable[[], Result]] = {f"cfltr_core.bound_loss, {form}": ours}
        close = {}
        for kind in (np.float64, np.float32):
            label = f"rectangular NumPy, {kind.__name__}"
            calls[label] = lambda kind=kind, form=form: rectangular(kind, scores, clicked, weights, form)
            close[label] = 1e-10 if kind is np.float64 else 1e-4
        for kind, given in tensors.items():
            label = f"torch autograd, {str(kind).removeprefix('torch.')}"
            calls[label] = lambda given=given, form=form: with_torch(*given, form)
            close[label] = 1e-10 if kind is torch.float64 else 1e-4
        rows = compare(f"{N_LISTS:,} lists of {N_DOCS}, one clicked document each; equal values first", calls, close)
        if found:
            # rax has the natural logarithm.
            unit = 1.0 if form == "hinge" else np.log(2)
            value, gradient = ours()
            np.testing.assert_allclose(found[f"{form}_value"] / unit, value, rtol=1e-4)
            there = found[f"{form}_gradient"].ravel() / unit
            np.testing.assert_allclose(there, gradient, rtol=1e-4, atol=1e-4 * np.abs(gradient).max())
            seconds = float(found[f"{form}_seconds"])
            rows.append(("rax under jax.jit, float32, own process", seconds, seconds / rows[0][1]))
        print(table(rows))


def chosen(many: int | None, *arguments: np.ndarray) -> Result:
    """:func:`by_pairs` with another :data:`cfltr_core.learning.bounds.MANY`, or with its own."""
    usual = bounds.MANY
    try:
        bounds.MANY = usual if many is None else many
        return by_pairs(*arguments)
    finally:
        bounds.MANY = usual


def several_clicks() -> None:
    print(f"several clicked documents in each list, processor time in ms; lists are sorted from {bounds.MANY} on")
    print(f"  {'lists':>7s} {'length':>7s} {'clicked':>7s} {'chosen':>9s} {'pairs':>9s} {'sorted':>9s} {'peer':>9s}  ×")
    rng = np.random.default_rng(1)
    for m in LENGTHS:
        n_lists = IN_ALL // m
        for n in sorted({1, 2, 4, 5, 6, 8, m // 4, m}):
            # Pair by pair, 10⁸ of them are some seconds.
            lists = max(1, min(n_lists, 10**8 // (n * m)))
            offsets = np.arange(lists + 1) * m
            scores = 2 * rng.normal(size=lists * m)
            clicked = [start + rng.choice(m, n, replace=False) for start in offsets[:-1]]
            documents = np.concatenate(clicked)
            weights = rng.uniform(1, 10, size=len(documents))
            given = (scores, offsets, documents, weights)
            calls = {
                "chosen": partial(chosen, None, *given),
                "pairs": partial(chosen, len(scores) + 1, *given),
                "sorted": partial(chosen, 1, *given),
                "peer": partial(by_sorting, *given),
            }
            value, gradient = calls["pairs"]()
            for call in calls.values():
                other, other_gradient = call()
                np.testing.assert_allclose(other, value, rtol=1e-9)
                np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
            # In turn, so that what else the machine does falls on all of them.
            times = dict.fromkeys(calls, np.inf)
            for turn in range(TURNS):
                for name, call in calls.items():
                    if turn > 2 and times[name] > 0.05:
                        continue
                    call()  # what another form left in the caches is not its own
                    start = time.process_time()
                    call()
                    times[name] = min(times[name], time.process_time() - start)
            best = min(seconds for name, seconds in times.items() if name != "chosen")
            row = " ".join(f"{1e3 * seconds:9.2f}" for seconds in times.values())
            print(f"  {lists:7,} {m:7,} {n:7,} {row} {times['chosen'] / best:5.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rax", help="a Python in which rax is installed")
    torch.set_num_threads(1)
    one_click_each(parser.parse_args().rax)
    several_clicks()


if __name__ == "__main__":
    main()
