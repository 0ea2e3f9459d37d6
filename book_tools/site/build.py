"""Build the site from a finished run: stage, strict build, checks, and one rename into place."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from book_tools.book import Book, Chapter
from book_tools.colab.copies import FOLDER, READ_FOLDER, write_copies, write_reading_copies
from book_tools.colab.labels import read_labels
from book_tools.colab.repository import origin_of
from book_tools.errors import BookError
from book_tools.execution.state import exclusive, fresh_run
from book_tools.files import remove_tree, replace_tree
from book_tools.messages import builder_messages
from book_tools.site.access import mend_access
from book_tools.site.api import link_names
from book_tools.site.edition_links import copy_editions, current_editions
from book_tools.site.html import drop_unused, html_problems, weight_problems
from book_tools.site.page_heads import write_heads
from book_tools.site.pages import generated_pages, write_accompanying
from book_tools.site.pictures import write_pictures
from book_tools.site.previews import write_previews
from book_tools.site.stage import stage, stage_page

SCRATCH_PREFIX = ".site."


def build_site(book: Book) -> None:
    """Build ``_build/html`` from the run.

    When the run is missing, stale or partial nothing is touched.  From then on the previous site is gone
    until the new one is whole and has passed its checks: a failed build leaves no site, never an old one
    that could be taken for the new.
    """
    parameters = fresh_run(book, "the site is built from a complete run only; nothing was changed")
    with exclusive(book):
        for leftover in (*book.build.glob(f"{SCRATCH_PREFIX}*"), *book.build.glob(".*.old")):
            remove_tree(leftover)
        remove_tree(book.html)
        origin = origin_of(book)
        stage(book, generated_pages(book, parameters), origin, parameters)
        editions = current_editions(book)
        write_accompanying(book, parameters, editions)
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=book.build) as scratch:
            html = jupyter_book(book, Path(scratch))
            drop_unused(html)
            mend_access(html)
            link_names(html)
            write_previews(html)
            write_pictures(book, html, book.chapters())
            write_heads(book, html, origin)
            labels = read_labels(html)
            write_copies(book, labels, html / FOLDER, origin, parameters)
            write_reading_copies(book, labels, html / READ_FOLDER, origin, parameters)
            heavy = weight_problems(html)
            copy_editions(editions, html)
            problems = html_problems(html) + heavy
            if problems:
                raise BookError(*problems, f"no site: {len(problems)} problems on the built pages")
            replace_tree(html, book.html)
    print(f"site: {book.html.relative_to(book.root)}/index.html", flush=True)


def build_page(book: Book, chapter: Chapter) -> Path:
    """Build the page of one executed chapter alone, for its writer to look at, and return where it lies.

    Other pages are missing, so links, terms and citations that lead to them stay without a target, and no warning is an
    error.  The site is left as it is.
    """
    otherwise = "a page is built from a fresh run of its chapter only; nothing was changed"
    parameters = fresh_run(book, otherwise, [chapter.name])
    with exclusive(book):
        stage_page(book, chapter, origin_of(book), parameters)
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=book.build) as scratch:
            html = jupyter_book(book, Path(scratch), strict=False)
            mend_access(html)
            write_pictures(book, html, [chapter])
            replace_tree(html, book.build / "page")
    return book.build / "page" / f"{book.page_of(chapter)}.html"


def jupyter_book(book: Book, scratch: Path, builder: str = "html", strict: bool = True) -> Path:
    """Run a clean build into ``scratch`` and return the folder of what it made; if ``strict``, warnings are errors.

    Clean, because the builder reports a warning only for pages that it reads anew: a second, incremental
    build of a broken book would succeed.
    """
    command = [
        # The builder has no "-m" entry point, and the one on PATH may belong to another environment.
        *(sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"),
        *(("-W", "-n", "--keep-going", "-q") if strict else ("-q",)),
        *("--builder", builder),
        *("--path-output", str(scratch)),
        # The builder resolves these against its own idea of a source folder unless they are absolute.
        *("--config", str(book.stage / book.config.name)),
        *("--toc", str(book.stage / book.toc.name)),
        str(book.stage),
    ]
    # SOURCE_DATE_EPOCH would date the copyright line to its own year.
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        command,
        env=environment,
        # The extensions of this pipeline are no installed package: Python finds them where it is started.
        cwd=Path(__file__).resolve().parents[2],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    made = scratch / "_build" / builder
    if done.returncode != 0 or not made.is_dir():
        messages = builder_messages(done.stdout, book.stage)
        what = "site" if builder == "html" else builder
        raise BookError(messages, f"no {what}: the strict build failed; every warning is an error")
    return made
