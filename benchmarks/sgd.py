"""SGD on the clicks of 1,000 queries: a grid of learning rates, and PyTorch.

    python -m benchmarks.sgd

Prints times and ratios, with 60 features and with 700.

- The grid of 20 learning rates trained together, against 20 runs of one rate each, with one click a step, for each
  optimizer, drawn with replacement and without.
- One rate, against what is usual in torch: a DataLoader with one item for each click, lists padded to a rectangle, the
  hinge rank, automatic differentiation and torch's optimizer, on the same clicks in the same order; with batches of 1
  and of 50.  Beside it the DataLoader of ``torch_sampler``, which has the lists of a step without padding.

Final weights are compared first, in double precision, to 1e-9.  Adam and Adagrad are compared to 1e-6: where a feature
is the same in a whole list, the gradient of torch is not 0 but a rounding error, and they magnify what is small.  A
feature that is the same in every list drawn teaches nothing: of both its weight is below 1e-4.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from benchmarks.timing import best_of, table
from cfltr_book import load_corpus
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    PositionBasedUser,
    click_sampler,
    draw_sessions,
    fit_linear_ranker,
    power_examination,
    simulate_clicks,
    train_sgd,
)
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.learning.samplers import ClickSampler
from cfltr_core.learning.torch_sampler import ClickLists, torch_sampler
from cfltr_core.sampling import term_draws

QUERIES, CLICKS, STEPS, WIDE = 1_000, 200_000, 2_000, 700
RATES = np.geomspace(1e-6, 1e-2, 20)
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}


class Clicks(Dataset):
    """One item per click: the candidates of its list, the place of the clicked one, the factor of its gradient."""

    def __init__(self, x: torch.Tensor, offsets: np.ndarray, document: np.ndarray, scale: np.ndarray) -> None:
        query = np.searchsorted(offsets, document, side="right") - 1
        self.x, self.start, self.stop = x, offsets[query].tolist(), offsets[query + 1].tolist()
        self.document, self.scale = document.tolist(), scale.tolist()

    def __len__(self) -> int:
        return len(self.document)

    def __getitem__(self, t: int) -> tuple[torch.Tensor, int, float]:
        start = self.start[t]
        return self.x[start : self.stop[t]], self.document[t] - start, self.scale[t]


def padded(items: list[tuple[torch.Tensor, int, float]]) -> tuple[torch.Tensor, ...]:
    """Lists as a rectangle, (clicks, longest, features), and where a list has ended."""
    lists, own, scale = zip(*items, strict=True)
    width = torch.tensor([len(rows) for rows in lists])
    rows = pad_sequence(lists, batch_first=True)
    there = torch.arange(rows.shape[1])[None, :] < width[:, None]
    return rows, torch.tensor(own), torch.tensor(scale, dtype=rows.dtype), there


def with_torch(clicks: Clicks, n_features: int, rate: float, batch: int, optimizer: str = "sgd") -> np.ndarray:
    """SGD with autograd: the last weights."""
    w = torch.zeros(n_features, dtype=torch.float64, requires_grad=True)
    moves = OPTIMIZERS[optimizer]([w], lr=rate)
    for rows, own, scale, there in DataLoader(clicks, batch_size=batch, shuffle=False, collate_fn=padded):
        scores = rows @ w
        mine = scores.gather(1, own[:, None])
        loss = (scale * (torch.relu(1 - (mine - scores)) * there).sum(dim=1)).mean()
        moves.zero_grad()
        loss.backward()
        moves.step()
    return w.detach().numpy()


def with_sampler(lists: ClickLists, sampler: ClickSampler, steps: int, rate: float, batch: int) -> np.ndarray:
    """The same with the samplers of this package."""
    w = torch.zeros(lists.features.shape[1], dtype=torch.float64, requires_grad=True)
    moves = torch.optim.SGD([w], lr=rate)
    draws = torch_sampler(sampler, steps=steps, batch=batch, seed=1)
    for step in DataLoader(lists, batch_size=None, sampler=draws):
        moves.zero_grad()
        step.loss(step.rows @ w).backward()
        moves.step()
    return w.detach().numpy()


def clicked(width: int | None) -> tuple[np.ndarray, ClickLog]:
    """Features of 1,000 queries, those of the corpus or ``width`` more that say nothing, and 200,000 clicks."""
    rng = np.random.default_rng(0)
    train = load_corpus("yahoo-like", "ci", seed=0).train.subset(range(QUERIES))
    user = PositionBasedUser(power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
    policy = DeterministicPolicy.rank_by(
        train.features @ fit_linear_ranker(train, 0.02, rng=rng).weights, train.offsets, rng=rng
    )
    sessions = draw_sessions(
        sessions_for_clicks(policy, user, n_clicks=CLICKS, relevance=train.binary), QUERIES, rng=rng
    )
    log = simulate_clicks(policy, user, relevance=train.binary, sessions=sessions, rng=rng)
    x = train.features.astype(np.float64)
    if width is not None:
        x = np.hstack([x, rng.normal(size=(len(x), width - x.shape[1]))])
    return x, log


def compare(x: np.ndarray, log: ClickLog) -> None:
    """One table of the grid, one of torch."""
    sampler = click_sampler(log, "ips")

    def train(rates: np.ndarray, chosen: ClickSampler = sampler, steps: int = STEPS, **more: object) -> np.ndarray:
        rng = np.random.default_rng(1)
        return train_sgd(x, chosen, learning_rates=rates, steps=steps, rng=rng, **more).last[0, 0]

    def singles(**more: object) -> np.ndarray:
        return np.concatenate([train(rate[None], **more) for rate in RATES])

    print(f"{STEPS:,} steps on lists of {x.shape[0] / QUERIES:.0f} documents × {x.shape[1]} features; weights equal")
    ways = [(name, {"optimizer": name}) for name in OPTIMIZERS]
    ways.append(("sgd, no replacement", {"chosen": click_sampler(log, "ips", replacement=False)}))
    rows = []
    for name, way in ways:
        np.testing.assert_allclose(train(RATES, **way), singles(**way), rtol=1e-9, atol=1e-12)
        base, _ = best_of(partial(train, RATES, **way))
        each, _ = best_of(partial(singles, **way), repetitions=3)
        rows += [(f"{name}: grid of {len(RATES)} rates, one run", base, 1.0), ("  20 single runs", each, each / base)]
    print(table(rows))

    lists, one, rows = ClickLists(x, sampler), RATES[[10]], []
    for batch in (1, 50):
        steps = STEPS if batch == 1 else STEPS // 10
        draws = np.concatenate([*_first(sampler, batch, steps)]).ravel()
        clicks = Clicks(torch.tensor(x), log.offsets, sampler.document[draws], sampler.factor[draws])
        drawn = np.unique(np.searchsorted(log.offsets, sampler.document[draws], side="right") - 1)
        taught = np.any([np.ptp(x[slice(*log.offsets[q : q + 2])], axis=0) > 0 for q in drawn], axis=0)
        ours = partial(train, one, steps=steps, batch=batch)
        usual = partial(with_torch, clicks, x.shape[1], float(one[0]), batch)
        loader = partial(with_sampler, lists, sampler, steps, float(one[0]), batch)
        for name, rtol, atol in (("sgd", 1e-9, 1e-12), ("adam", 1e-6, 1e-6), ("adagrad", 1e-6, 1e-6)):
            found = with_torch(clicks, x.shape[1], float(one[0]), batch, name)
            mine = ours(optimizer=name)[0]
            np.testing.assert_allclose(mine[taught], found[taught], rtol=rtol, atol=atol)
            assert max(np.abs(w[~taught]).max(initial=0.0) for w in (mine, found)) < 1e-4
        np.testing.assert_allclose(ours()[0], loader(), rtol=1e-9, atol=1e-12)
        base, _ = best_of(ours)
        theirs, _ = best_of(usual, repetitions=2)
        served, _ = best_of(loader, repetitions=2)
        rows += [
            (f"batch {batch}, {steps} steps, one rate", base, 1.0),
            ("  torch DataLoader + autograd", theirs, theirs / base),
            ("  torch_sampler + autograd", served, served / base),
        ]
    print(table(rows))


def _first(sampler: ClickSampler, batch: int, steps: int) -> list[np.ndarray]:
    """The clicks that train_sgd draws in its first steps."""
    out: list[np.ndarray] = []
    for chunk in term_draws(sampler.table, (1, batch), np.random.default_rng(1)):
        out.append(chunk[: steps - sum(len(part) for part in out)])
        if sum(len(part) for part in out) >= steps:
            return out
    return out


def main() -> None:
    torch.set_num_threads(1)
    for width in (None, WIDE):
        compare(*clicked(width))


if __name__ == "__main__":
    main()
