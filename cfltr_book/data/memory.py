"""Corpora in memory: those that were loaded last, up to a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict

from cfltr_book.data.corpora import load_corpus
from cfltr_book.data.scales import Corpus
from cfltr_core import checks

# The corpora loaded last stay in memory while their features together take at most this many bytes.
KEPT_BYTES = 2**30
_kept: OrderedDict[tuple[str, str, int], Corpus] = OrderedDict()
_kept_lock = threading.Lock()


def remembered_corpus(corpus: str, scale: str, *, seed: int) -> Corpus:
    """:func:`cfltr_book.data.corpora.load_corpus`, from memory where it is there.

    The corpora loaded last are kept, all together up to 1 GiB, and shared: never write into them.

    Raises
    ------
    ValueError
        For a negative seed, and as ``load_corpus``.

    Examples
    --------
    >>> from cfltr_book.data.memory import remembered_corpus
    >>> remembered_corpus("digits", "smoke", seed=3) is remembered_corpus("digits", "smoke", seed=3)
    True
    """
    key = (corpus, scale, checks.positive_int(seed, "seed", least=0))
    with _kept_lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
        # One that is larger than all may be makes room before the next is made: both would be in memory.
        _make_room(0)
    found = load_corpus(corpus, scale, seed=key[2])
    with _kept_lock:
        _kept[key] = found
        _make_room(1)
    return found


def _make_room(least: int) -> None:
    """Forget the corpora asked for longest ago, but for the ``least`` last ones, until the others may stay."""
    while len(_kept) > least and sum(map(_bytes, _kept.values())) > KEPT_BYTES:
        _kept.popitem(last=False)


def _bytes(corpus: Corpus) -> int:
    return corpus.train.features.nbytes + corpus.validation.features.nbytes + corpus.test.features.nbytes
