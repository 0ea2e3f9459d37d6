"""Look at the built site in a browser of this machine."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from book_tools.book import Book
from book_tools.errors import UsageError


def serve(book: Book, port: int) -> None:
    """Serve the built site on the loopback address until interrupted."""
    if not (book.html / "index.html").is_file():
        raise UsageError("no site to serve; build it with 'make book'")
    handler = partial(SimpleHTTPRequestHandler, directory=str(book.html))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; choose another port") from None
    with server:
        print(f"serving on port {server.server_address[1]} of this machine; Ctrl-C ends it", flush=True)
        server.serve_forever()
