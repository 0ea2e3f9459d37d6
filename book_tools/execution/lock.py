"""One run at a time: two would remove each other's scratch folders."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from book_tools.book import Book
from book_tools.errors import UsageError


@contextmanager
def exclusive(book: Book) -> Iterator[None]:
    """Hold the lock of ``book``; the system releases it when the process ends, however it ends."""
    book.run.mkdir(parents=True, exist_ok=True)
    with (book.run / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another run of this book is in progress; wait for it or stop it") from None
        yield
