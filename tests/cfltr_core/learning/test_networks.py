"""Networks and their files: scores against a loop, the same digits again, and no file of another kind."""

import json
from pathlib import Path

import numpy as np
import oracles
import pytest
import torch
from refusals import refuses
from torch import nn

from cfltr_core import two_layer
from cfltr_core.learning.networks import DeepFit
from cfltr_core.ranking.modules import built, dtype_of, flat, score

X = np.random.default_rng(0).normal(size=(20, 3))
HISTORY = {name: np.array([0.5, 1 / 3]) for name in ("objective", "validation", "rate", "steps")}


def fit_of(module: nn.Module) -> DeepFit:
    return DeepFit(module=module.eval(), history=HISTORY, steps=8, best_epoch=2, risk=-1 / 3, n_features=3)


def weights_of(module: nn.Module) -> dict[str, list]:
    return {name: value.tolist() for name, value in module.state_dict().items()}


@pytest.mark.oracle("networks.two_layer", "modules.built", "modules.score", "modules.dtype_of", "modules.flat")
@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu"])
def test_the_scores_are_those_of_the_formula(activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = built(lambda: two_layer(3, 4, activation=activation))
    assert dtype_of(net) == torch.float32
    assert built(net) is net
    expected = [oracles.network(x, weights_of(net), activation) for x in X.tolist()]
    np.testing.assert_allclose(score(net, X), expected, rtol=1e-5, atol=1e-6)
    assert dtype_of(net.double()) == torch.float64
    expected = [oracles.network(x, weights_of(net), activation) for x in X.tolist()]
    monkeypatch.setattr("cfltr_core.ranking.modules.ROWS", 7)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_allclose(score(net, frozen), expected, rtol=1e-12, atol=1e-14)
    column = net(torch.from_numpy(X))
    assert flat(column, 20).tolist() == flat(column[:, 0], 20).tolist()
    # Rows in other blocks may go another way through the processor's vector units: the last digit is theirs.
    np.testing.assert_allclose(score(net, X), flat(column, 20).detach().numpy(), rtol=1e-14)


@pytest.mark.oracle("networks.DeepFit.decision_function", "networks.DeepFit.weights", "networks.DeepFit.save",
                    "networks.DeepFit.load")  # fmt: skip
def test_a_fit_is_read_as_it_was_saved(tmp_path: Path) -> None:
    fit = fit_of(two_layer(3, 4, activation="tanh"))
    path = tmp_path / "new" / "fit.npz"
    before = torch.get_rng_state()
    fit.save(path)
    again = DeepFit.load(str(path))
    assert torch.equal(torch.get_rng_state(), before)
    assert again.decision_function(X).tolist() == fit.decision_function(X).tolist()
    expected = [oracles.network(x, {k: v.tolist() for k, v in again.weights.items()}, "tanh") for x in X.tolist()]
    np.testing.assert_allclose(fit.decision_function(X), expected, rtol=1e-5, atol=1e-6)
    assert (again.steps, again.best_epoch, again.risk, again.n_features) == (8, 2, -1 / 3, 3)
    assert {name: values.tolist() for name, values in again.history.items()} == {
        name: values.tolist() for name, values in HISTORY.items()
    }
    assert repr(again) == repr(fit) == "DeepFit(21 weights, epoch 2 of 2)"
    # What is given out is a copy.
    again.weights["2.bias"][:] = 9
    assert again.decision_function(X).tolist() == fit.decision_function(X).tolist()


def test_another_network_is_read_with_its_module(tmp_path: Path) -> None:
    fit = fit_of(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1, bias=False)))
    fit.save(tmp_path / "fit.npz")
    refuses("module is None, but fit.npz does not hold a two_layer: give the", DeepFit.load, tmp_path / "fit.npz")
    mine = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1, bias=False))
    was = weights_of(mine)
    for module in (mine, lambda: nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1, bias=False))):
        again = DeepFit.load(tmp_path / "fit.npz", module)
        assert again.decision_function(X).tolist() == fit.decision_function(X).tolist()
    assert weights_of(mine) == was
    refuses("module: has other weights than fit.npz (", DeepFit.load, tmp_path / "fit.npz", two_layer(3))


@pytest.mark.parametrize(
    "module",
    [
        two_layer(3, 4).double(),
        nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)),
        nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 1)),
        nn.Linear(3, 1),
    ],
)
def test_what_is_no_two_layer_is_not_taken_for_one(tmp_path: Path, module: nn.Module) -> None:
    fit = fit_of(module)
    fit.save(tmp_path / "fit.npz")
    refuses("module is None", DeepFit.load, tmp_path / "fit.npz")
    assert DeepFit.load(tmp_path / "fit.npz", module).decision_function(X).tolist() == fit.decision_function(X).tolist()


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    with pytest.raises(FileNotFoundError):
        DeepFit.load(path)
    fit_of(two_layer(3, 4)).save(path)
    with np.load(path) as arrays:
        kept = dict(arrays)
    about = json.loads(str(kept["about"]))
    bad: dict[str, bytes | dict[str, np.ndarray]] = {
        "text": b"{}",
        "half": path.read_bytes()[:300],
        "no history": {name: values for name, values in kept.items() if "history" not in name},
        "other format": {**kept, "about": np.array(json.dumps({**about, "format": "cfltr linear fit 1"}))},
        "an object": {**kept, "about": np.array([about], dtype=object)},
    }
    for name, content in bad.items():
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.savez(path, **content)
        with pytest.raises(ValueError, match=r"^path: fit\.npz is no fit that save\(\) wrote \(") as found:
            DeepFit.load(path)
        assert name != "other format" or "its format is 'cfltr linear fit 1'" in str(found.value)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match=r"disk full"):
        fit_of(two_layer(3, 4)).save(tmp_path / "fit.npz")
    assert list(tmp_path.iterdir()) == []


def test_messages() -> None:
    refuses("features: expected shape (n_docs, 3), got (2", fit_of(two_layer(3, 4)).decision_function, [[1.0, 2.0]] * 2)
    refuses("module is str: give a torch", built, "two_layer")
    refuses("module is a function that returns int: give", built, lambda: 3)
    for wrong in (torch.zeros(3), torch.zeros(4, 2), torch.zeros(1, 4), torch.zeros(())):
        refuses("module: returned shape (", flat, wrong, 4)
    refuses("module: returned tuple for 4 documents", flat, (torch.zeros(4),), 4)
