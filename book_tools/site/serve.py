"""Look at the built site in a browser of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from book_tools.book import Book
from book_tools.errors import UsageError

LOOPBACK = "127.0.0.1"


def serve(book: Book, port: int) -> None:
    """Serve the built site on the loopback address until interrupted."""
    if not (book.html / "index.html").is_file():
        raise UsageError("no site to serve; build it with 'make book'")
    handler = partial(SimpleHTTPRequestHandler, directory=str(book.html))
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), handler)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; choose another port") from None
    with server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/"
        print(f"{address} shows the site, on this machine only; Ctrl-C ends it", flush=True)
        server.serve_forever()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve ``folder`` silently on a free port of the loopback address, and yield the address of its root."""
    with ThreadingHTTPServer((LOOPBACK, 0), partial(_Silent, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Silent(SimpleHTTPRequestHandler):
    """A handler that does not print every request."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
