"""LETOR collections from disk: SVMlight text to ragged data, with a cache, a report, and archives known by checksum.

It uses ``checks``, ``files`` and ``ragged`` of ``cfltr_core``, and is loaded only when ``load_corpus`` is asked for a
``letor:`` corpus.  Inside, ``reader`` stands on ``svmlight`` and ``folders``; ``archives`` stands alone.
"""

from cfltr_book.data.letor.archives import verify_archive
from cfltr_book.data.letor.reader import ReaderOptions, read_collection, read_svmlight

__all__ = ["ReaderOptions", "read_collection", "read_svmlight", "verify_archive"]
