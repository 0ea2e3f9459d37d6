"""SGD on the clicks of 1,000 queries, one click a step: a grid of learning rates, and PyTorch.

    python -m benchmarks.sgd

Prints the time of one step and its ratio.  The grid of 20 learning rates trained together is compared with 20 runs of
one rate each; one run of one rate with a DataLoader of batch size 1, the hinge rank of the click and autograd, on the
same clicks in the same order.  Final weights are compared first, in double precision, to 1e-9.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.timing import best_of, table
from cfltr_core import (
    DeterministicPolicy,
    PositionBasedUser,
    click_sampler,
    draw_sessions,
    fit_linear_ranker,
    load_corpus,
    power_examination,
    sessions_for_clicks,
    simulate_clicks,
    train_sgd,
)

QUERIES, CLICKS, STEPS = 1_000, 200_000, 2_000
RATES = np.geomspace(1e-6, 1e-2, 20)


class Clicks(Dataset):
    """One item per step: the candidates of the click, the place of the clicked one, the factor of its gradient."""

    def __init__(self, x: torch.Tensor, offsets: np.ndarray, document: np.ndarray, scale: np.ndarray) -> None:
        query = np.searchsorted(offsets, document, side="right") - 1
        self.x, self.start, self.stop = x, offsets[query].tolist(), offsets[query + 1].tolist()
        self.document, self.scale = document.tolist(), scale.tolist()

    def __len__(self) -> int:
        return len(self.document)

    def __getitem__(self, t: int) -> tuple[torch.Tensor, int, float]:
        start = self.start[t]
        return self.x[start : self.stop[t]], self.document[t] - start, self.scale[t]


def with_torch(clicks: Clicks, n_features: int, rate: float) -> np.ndarray:
    """IPS-SGD with autograd: the last weights."""
    w = torch.zeros(n_features, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=rate)
    for rows, own, scale in DataLoader(clicks, batch_size=1, shuffle=False):
        scores = rows[0] @ w
        loss = scale[0] * (torch.relu(1 - (scores[own[0]] - scores)).sum() - 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return w.detach().numpy()


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    train = load_corpus("yahoo-like", "ci", seed=0).train.subset(range(QUERIES))
    user = PositionBasedUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
    policy = DeterministicPolicy.rank_by(
        train.features @ fit_linear_ranker(train, 0.02, rng=rng).weights, train.offsets, rng=rng
    )
    sessions = draw_sessions(
        sessions_for_clicks(policy, user, n_clicks=CLICKS, relevance=train.binary), QUERIES, rng=rng
    )
    sampler = click_sampler(simulate_clicks(policy, user, relevance=train.binary, sessions=sessions, rng=rng), "ips")
    x = train.features.astype(np.float64)

    def grid(rates: np.ndarray) -> np.ndarray:
        return train_sgd(x, sampler, learning_rates=rates, steps=STEPS, rng=np.random.default_rng(1)).last[0, 0]

    def singles() -> np.ndarray:
        return np.concatenate([grid(rate[None]) for rate in RATES])

    drawn = sampler.table.draw(4096, np.random.default_rng(1))[:STEPS]  # the clicks that train_sgd draws
    clicks = Clicks(torch.tensor(x), train.offsets, sampler.document[drawn], sampler.factor[drawn])
    one = RATES[10]

    def autograd() -> np.ndarray:
        return with_torch(clicks, x.shape[1], float(one))

    np.testing.assert_allclose(grid(RATES), singles(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grid(RATES[[10]])[0], autograd(), rtol=1e-9, atol=1e-12)
    base, _ = best_of(lambda: grid(RATES))
    each, _ = best_of(singles, repetitions=3)
    single, _ = best_of(lambda: grid(RATES[[10]]))
    torch_, _ = best_of(autograd, repetitions=3)
    print(f"{STEPS:,} steps on lists of {x.shape[0] / QUERIES:.0f} documents × {x.shape[1]} features; weights equal")
    print(table([(f"grid of {len(RATES)} learning rates, one run", base, 1.0), ("20 single runs", each, each / base)]))
    print(table([("one learning rate", single, 1.0), ("torch DataLoader + autograd", torch_, torch_ / single)]))


if __name__ == "__main__":
    main()
