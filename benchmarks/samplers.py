"""Draws from a million weights in batches of 50 and of 4,096, against NumPy, PyTorch and SciPy.

    python -m benchmarks.samplers

Prints the time of a thousand batches and its ratio to this package's alias table; ``train_sgd`` draws 4,096 at a
time. First the laws are compared: the table's implied probabilities with the weights to 1e-12, and every sampler's
frequencies on ten categories with theirs to five standard errors. ``cumsum + searchsorted`` is the plain NumPy
alternative; it keeps its cumulative sum between batches, which ``Generator.choice`` and ``torch.multinomial`` cannot.
SciPy's urn is a table as well, but does not show the law that it implies. torch.multinomial takes at most 2^24
categories.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats.sampling import DiscreteAliasUrn

from benchmarks.timing import best_of, table
from cfltr_core.sampling import AliasTable

N, BATCHES = 1_000_000, (50, 4_096)


def samplers(weights: np.ndarray, seed: int) -> dict[str, tuple[Callable[[int], np.ndarray], int]]:
    """Name → (draw, batches that are timed together)."""
    law = weights / weights.sum()
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    alias, sums, tensor = AliasTable.build(weights), np.cumsum(law), torch.tensor(weights)
    with warnings.catch_warnings():  # it reports round-off when there are many categories
        warnings.simplefilter("ignore", RuntimeWarning)
        urn = DiscreteAliasUrn(law, random_state=np.random.default_rng(seed))
    last = len(law) - 1
    return {
        "cfltr_core AliasTable": (lambda size: alias.draw(size, rng), 1_000),
        "NumPy cumsum + searchsorted": (lambda size: np.minimum(np.searchsorted(sums, rng.random(size)), last), 1_000),
        "SciPy DiscreteAliasUrn": (lambda size: urn.rvs(size), 1_000),
        "NumPy Generator.choice(p)": (lambda size: rng.choice(len(law), size=size, p=law), 10),
        "torch.multinomial": (
            lambda size: torch.multinomial(tensor, size, replacement=True, generator=generator).numpy(),
            10,
        ),
    }


def same_law() -> None:
    """Every sampler's frequencies on ten categories, and the law that a large table implies."""
    weights = np.arange(1.0, 11.0)
    law = weights / weights.sum()
    draws = 200_000
    for name, (draw, _) in samplers(weights, 1).items():
        share = np.bincount(draw(draws), minlength=10) / draws
        assert np.all(np.abs(share - law) < 5 * np.sqrt(law * (1 - law) / draws)), name


def main() -> None:
    torch.set_num_threads(1)
    same_law()
    weights = 1 / np.random.default_rng(0).uniform(0.001, 1, N)
    built, alias = best_of(lambda: AliasTable.build(weights), repetitions=1)
    np.testing.assert_allclose(alias.probabilities(), weights / weights.sum(), rtol=0, atol=1e-12)
    print(f"{N:,} weights; laws equal. The alias table is built once, in {built:.2f} s")
    peers = samplers(weights, 0)
    for size in BATCHES:
        base, rows = 0.0, []
        for name, (draw, batches) in peers.items():

            def repeat(draw: Callable[[int], np.ndarray] = draw, batches: int = batches, size: int = size) -> None:
                for _ in range(batches):
                    draw(size)

            seconds, _ = best_of(repeat)
            base = base or seconds / batches
            rows.append((f"{name}, {batches:,} batches", 1_000 / batches * seconds, seconds / batches / base))
        print(f"1,000 batches of {size:,} draws (timed on as many as is said)")
        print(table(rows))


if __name__ == "__main__":
    main()
