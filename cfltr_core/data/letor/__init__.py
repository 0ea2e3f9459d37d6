"""LETOR collections from disk: SVMlight text to ragged data, with a cache, a report, and archives known by checksum.

Apart from ``cfltr_core``, because the book does not teach how files are read.  Dependencies run one way: this package
uses ``checks``, ``files`` and ``ragged`` of ``cfltr_core``, which loads it only when ``load_corpus`` is asked for a
``letor:`` corpus.  Inside, ``reader`` stands on ``svmlight`` and ``folders``; ``archives`` stands alone.
"""

from cfltr_core.data.letor.archives import verify_archive
from cfltr_core.data.letor.reader import ReaderOptions, read_collection, read_svmlight

__all__ = ["ReaderOptions", "read_collection", "read_svmlight", "verify_archive"]
