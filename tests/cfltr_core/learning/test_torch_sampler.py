"""The draws of SGD in a DataLoader: the same clicks, the same steps, any module."""

import math
import re

import numpy as np
import oracles
import pytest
import torch
from ragged_logs import CLICKS, DOCUMENT, PROPENSITY, clicks_in
from refusals import refuses
from small_logs import CUTS, X
from small_logs import LOG as SMALL
from torch.utils.data import DataLoader, Sampler

from cfltr_core import click_sampler, query_sampler, train_sgd
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.learning.torch_sampler import ClickLists, ClickStep, torch_sampler

OFFSETS = [0, 4, 5, 12, 17, 20]
FEATURES = np.random.default_rng(1).normal(size=(20, 6))
LOG = clicks_in(OFFSETS)
SAMPLERS: dict[str, ClickSampler | QuerySampler] = {
    "biased": click_sampler(LOG, "biased"),
    "ips": click_sampler(LOG, "ips"),
    "ips, no replacement": click_sampler(LOG, "ips", replacement=False),
    "countersample": click_sampler(LOG, "countersample"),
    "queries": query_sampler(LOG, gradient_bounds_of=FEATURES),
}
OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adagrad": torch.optim.Adagrad,
}


def linear() -> torch.nn.Linear:
    net = torch.nn.Linear(6, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(net.weight)
    return net


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_linear_module_takes_the_steps_of_train_sgd(name: str, optimizer: str, batch: int) -> None:
    sampler, rate, record = SAMPLERS[name], 0.02, [1, 2, 10, 60]
    path = train_sgd(
        FEATURES, sampler, learning_rates=rate, steps=60, rng=np.random.default_rng(4), batch=batch,
        optimizer=optimizer, record=record,
    )  # fmt: skip
    net = linear()
    moves = OPTIMIZERS[optimizer](net.parameters(), lr=rate)
    steps = torch_sampler(sampler, steps=60, batch=batch, seed=4)
    found, scored = [], 0
    for step, part in enumerate(DataLoader(ClickLists(FEATURES, sampler), batch_size=None, sampler=steps), start=1):
        assert isinstance(part, ClickStep)
        moves.zero_grad()
        part.loss(net(part.rows)).backward()
        moves.step()
        scored += len(part.rows)
        if step in record:
            found.append(net.weight.detach().numpy()[0].copy())
    np.testing.assert_allclose(found, path.last[:, 0, 0], rtol=1e-6, atol=1e-9)
    assert scored == path.documents[-1, 0]


@pytest.mark.oracle("torch_sampler.ClickStep.loss")
def test_the_loss_of_a_step() -> None:
    w = np.random.default_rng(2).normal(size=6)
    clicked = [t for t, c in enumerate(CLICKS) if c]
    lists = ClickLists(FEATURES, SAMPLERS["ips"])
    for drawn in ([0], [3], [2, 2, 6], [6, 0, 4]):
        step = lists[drawn]
        scores = torch.tensor(step.rows.numpy() @ w, requires_grad=True)
        loss = step.loss(scores)
        loss.backward()
        documents = [DOCUMENT[clicked[t]] for t in drawn]
        wanted = [
            oracles.hinge_risk(FEATURES.tolist(), OFFSETS, d, w.tolist()) / PROPENSITY[clicked[t]]
            for d, t in zip(documents, drawn, strict=True)
        ]
        assert math.isclose(loss.item(), math.fsum(wanted) / len(drawn), rel_tol=1e-12)
        gradient = sum(
            np.array(oracles.hinge_gradient(FEATURES.tolist(), OFFSETS, d, w.tolist())) / PROPENSITY[clicked[t]]
            for d, t in zip(documents, drawn, strict=True)
        )
        assert scores.grad is not None
        np.testing.assert_allclose(step.rows.numpy().T @ scores.grad.numpy(), gradient / len(drawn), rtol=1e-9)
        torch.testing.assert_close(step.loss(scores[:, None]), loss)
    single = lists[3]
    torch.testing.assert_close(single.rows, lists[[3]].rows)
    assert len(lists) == len(clicked)
    assert repr(lists[[0, 1]]).startswith("ClickStep(2 clicked of ")
    assert ClickLists(FEATURES.astype(np.float32), SAMPLERS["ips"])[0].rows.dtype == torch.float32


@pytest.mark.oracle("torch_sampler.ClickLists.__len__", "torch_sampler.ClickStep.loss")
def test_the_loss_of_whole_queries() -> None:
    w = np.random.default_rng(2).normal(size=6)
    lists = ClickLists(FEATURES, SAMPLERS["queries"])
    assert len(lists) == len(OFFSETS) - 1
    law = oracles.query_law(FEATURES.tolist(), OFFSETS, DOCUMENT, CLICKS, PROPENSITY)
    mass = [c / p / sum(CLICKS) for c, p in zip(CLICKS, PROPENSITY, strict=True)]
    for drawn in ([0], [2], [3, 0, 3]):
        step = lists[drawn]
        wanted = 0.0
        for q in drawn:
            for d, m in zip(DOCUMENT, mass, strict=True):
                if OFFSETS[q] <= d < OFFSETS[q + 1]:
                    risk = oracles.hinge_risk(FEATURES.tolist(), OFFSETS, d, w.tolist())
                    wanted += m * risk * math.fsum(law) / law[q] / len(drawn)
        found = step.loss(torch.tensor(step.rows.numpy() @ w)).item()
        assert math.isclose(found, wanted, rel_tol=1e-12)
        assert len(step.rows) == sum(OFFSETS[q + 1] - OFFSETS[q] for q in drawn)


@pytest.mark.oracle("torch_sampler.torch_sampler")
def test_what_a_sampler_draws() -> None:
    clicked = [c for c in CLICKS if c]
    steps = torch_sampler(SAMPLERS["ips, no replacement"], steps=17, batch=3, seed=6)
    assert isinstance(steps, Sampler)
    assert len(steps) == 17
    first, second = list(steps), list(steps)
    assert first == [row[0] for row in oracles.dealt(clicked, 1, 3, 17, 6)]
    assert second != first  # a second pass draws on
    again = torch_sampler(SAMPLERS["ips, no replacement"], steps=17, batch=3, seed=np.random.default_rng(6))
    assert [list(again), list(again)] == [first, second]
    for name, sampler in SAMPLERS.items():
        many = torch_sampler(sampler, steps=5_000, seed=1)  # more than are drawn at once
        assert [len(row) for row in many] == [1] * 5_000, name
        assert list(torch_sampler(sampler, steps=7, seed=1)) == list(torch_sampler(sampler, steps=5_000, seed=1))[:7]


SAMPLER = click_sampler(SMALL, "ips")


def test_there_is_no_such_step() -> None:
    lists = ClickLists(X, SAMPLER)
    for items in ([0, 3], -1, []):
        with pytest.raises(IndexError, match=rf"^items are {re.escape(str(np.atleast_1d(items).tolist()))}: expected"):
            lists[items]
    refuses("scores: expected one number for each of 2 documents, got shape (3,)", lists[0].loss, torch.zeros(3))


def test_whole_numbers_as_features_become_double_precision() -> None:
    assert ClickLists(X.astype(int), SAMPLER)[0].rows.dtype == torch.float64
    assert SAMPLER.offsets.tolist() == CUTS
