"""The draws of SGD on a click log for a torch ``DataLoader``: any module, any optimizer, the same clicks.

The same seed draws the clicks that :func:`cfltr_core.learning.sgd.train_sgd` draws: a linear module of torch
takes its steps.  torch is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.learning.samplers import ClickSampler, QuerySampler, matched
from cfltr_core.ranking.ragged import document_index
from cfltr_core.sampling import term_draws

if TYPE_CHECKING:
    import torch
    from torch.utils.data import Sampler


def torch_sampler(
    sampler: ClickSampler | QuerySampler, *, steps: int, batch: int = 1, seed: int | np.random.Generator = 0
) -> Sampler[list[int]]:
    """A torch ``Sampler`` of ``steps`` steps: each is the list of the ``batch`` terms, or queries, that it draws.

    It goes with :class:`ClickLists` of the same sampler, into a ``DataLoader`` with ``batch_size=None``, since a step
    is a batch already.  Iterated a second time it draws on: with a seed, two passes over one sampler differ, and the
    first passes over two samplers are equal.

    Source: Jagerman & de Rijke 2020, §5.4, which sees CounterSample as a sampler for PyTorch.

    Parameters
    ----------
    sampler : ClickSampler or QuerySampler
        From :func:`cfltr_core.learning.samplers.click_sampler` or
        :func:`cfltr_core.learning.samplers.query_sampler`.
    steps : int
    batch : int
        Clicks, or queries, per step.
    seed : int or numpy.random.Generator

    Returns
    -------
    torch.utils.data.Sampler

    Raises
    ------
    ValueError
        For numbers that are no whole numbers >= 1, or a seed below 0.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader
    >>> import cfltr_core as cf
    >>> from cfltr_core.learning.torch_sampler import ClickLists, torch_sampler
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> sampler, features = cf.click_sampler(log, "countersample"), [[1.0, 0.2], [0.0, 0.5], [1.0, 0.7]]
    >>> lists = ClickLists(features, sampler)
    >>> net = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    >>> _ = torch.nn.init.zeros_(net.weight)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> for step in DataLoader(lists, batch_size=None, sampler=torch_sampler(sampler, steps=20, batch=4, seed=1)):
    ...     optimizer.zero_grad()
    ...     step.loss(net(step.rows)).backward()
    ...     optimizer.step()
    >>> path = cf.train_sgd(features, sampler, learning_rates=0.1, steps=20, batch=4, rng=np.random.default_rng(1))
    >>> bool(np.allclose(net.weight.detach(), path.last[-1, 0]))
    True
    """
    from torch.utils.data import Sampler

    checks.arguments(torch_sampler, locals())
    given = seed if isinstance(seed, np.random.Generator) else checks.positive_int(seed, "seed", least=0)
    rng = np.random.default_rng(given)  # a generator is taken as it is
    table = sampler.draws.table

    class Steps(Sampler[list[int]]):
        def __iter__(self) -> Iterator[list[int]]:
            left = steps
            for chunk in term_draws(table, (1, batch), rng):
                yield from chunk[:left].tolist()
                left -= len(chunk)
                if left <= 0:
                    return

        def __len__(self) -> int:
            return steps

    return Steps()


@dataclass(frozen=True, eq=False, repr=False)
class ClickStep:
    """What a step of SGD scores, and what its loss is.

    ``rows`` (n_rows, n_features) are the documents of its lists, list after list.  ``own`` (n_clicked,) is the place of
    each clicked document among them and ``factor`` (n_clicked,) what its loss is multiplied by; ``term`` and ``other``
    (n_pairs,) name the pairs of a clicked document and a document of its list.  :class:`ClickLists` makes it.
    """

    rows: torch.Tensor
    own: torch.Tensor
    factor: torch.Tensor
    term: torch.Tensor
    other: torch.Tensor

    def __repr__(self) -> str:
        return f"ClickStep({len(self.own)} clicked of {len(self.rows)} documents)"

    def loss(self, scores: torch.Tensor) -> torch.Tensor:
        """Σ_i factor_i · (1 + Σ_{y ≠ d_i} max(0, 1 − (s_{d_i} − s_y))), whose gradient is that of the step.

        ``scores`` are those of ``rows``, (n_rows,) or (n_rows, 1).

        Raises
        ------
        ValueError
            For another shape.
        """
        if tuple(scores.shape) not in ((len(self.rows),), (len(self.rows), 1)):
            raise ValueError(
                f"scores: expected one number for each of {len(self.rows)} documents, got shape {tuple(scores.shape)}"
            )
        s = scores.reshape(-1)
        # The pair of a document with itself is the 1 of the loss, and has no gradient.
        hinge = (1 - s[self.own][self.term] + s[self.other]).clamp(min=0)
        return (self.factor.to(s.dtype)[self.term] * hinge).sum()


class ClickLists:
    """A map-style data set for a ``DataLoader``: the indices of a step give its :class:`ClickStep`.

    Parameters
    ----------
    features : (n_docs, n_features) finite
        Rows are handed on in the precision that they have.
    sampler : ClickSampler or QuerySampler
        It knows the lists, the clicked documents and their factors.

    Raises
    ------
    ValueError
        For features that are not finite or do not match the lists of the sampler.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.learning.torch_sampler import ClickLists
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> lists = ClickLists([[1.0], [0.0], [0.5]], cf.click_sampler(log, "ips"))
    >>> step = lists[[0, 1]]  # a click on A and one on C, with the weights 1 and 3
    >>> step, step.factor
    (ClickStep(2 clicked of 6 documents), tensor([0.5000, 1.5000], dtype=torch.float64))
    >>> len(lists), step.loss(step.rows)  # (1 · (1 + 0 + ½) + 3 · (1 + 1½ + ½)) / 2
    (2, tensor(5.2500, dtype=torch.float64))
    """

    def __init__(self, features: ArrayLike, sampler: ClickSampler | QuerySampler) -> None:
        x = matched(features, sampler.offsets, "sampler.offsets")
        self.features = x
        self._draws = sampler.draws

    def __len__(self) -> int:
        """How many terms, or queries, there are to draw from."""
        return len(self._draws.start)

    def __getitem__(self, items: int | Sequence[int]) -> ClickStep:
        """The step that draws these terms, or queries; their scaled gradients are averaged.

        Raises IndexError for one that does not exist.
        """
        import torch

        drawn = np.atleast_1d(np.asarray(items, dtype=np.int64))
        if len(drawn) == 0 or drawn.min() < 0 or drawn.max() >= len(self):
            raise IndexError(f"items are {drawn.tolist()}: expected at least one of 0 … {len(self) - 1}")
        index, begin, width = self._draws.lists_of(drawn)
        item = np.repeat(np.arange(len(drawn)), np.diff(self._draws.first)[drawn])
        terms = document_index(drawn, self._draws.first)
        pairs = width[item]
        term = np.repeat(np.arange(len(terms)), pairs)
        other = np.arange(int(pairs.sum())) + np.repeat(begin[item] - (np.cumsum(pairs) - pairs), pairs)
        own, factor = self._draws.own[terms] + begin[item], self._draws.factor[terms] / len(drawn)
        return ClickStep(*map(torch.from_numpy, (self.features[index], own, factor, term, other)))
