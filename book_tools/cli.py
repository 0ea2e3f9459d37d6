"""The command line: ``python -m book_tools COMMAND``.

Exit codes: 0 done; 1 the book has a problem (a chapter raised, the build or a check failed); 2 the request
cannot be carried out and nothing was changed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from book_tools.book import Book
from book_tools.errors import BookError, Interrupted, UsageError
from book_tools.parameters import Parameters, with_assignments

Command = Callable[[Book, argparse.Namespace], None]
HERE = Path(__file__).resolve().parent.parent
# Written out, because the package that knows them takes a while to import; a test compares.
CORPORA = (
    "yahoo-like, istella-like, yahoo-like:conflict, istella-like:conflict, digits, or letor:<folder>[@<option>,…], a "
    "folder of LETOR files below the one that the environment variable CFLTR_DATA names"
)
ON_WINDOWS = (
    "book_tools runs on Linux, macOS or WSL, not on Windows itself: open WSL ('wsl --install' sets it up), clone the "
    "repository there, and run this command again"
)


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command and return its exit code."""
    if sys.platform == "win32":
        print(ON_WINDOWS, file=sys.stderr)
        return UsageError.exit_code
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        command(Book(options.root.resolve()), options)
    except BookError as error:
        print("\n".join(error.problems), file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


# Each command imports what it needs, so that --help and small commands answer at once.


def _check(book: Book, options: argparse.Namespace) -> None:
    from book_tools.colab.marks import check_marks
    from book_tools.execution.preflight import check_chapters, check_claims, check_names
    from book_tools.site.map import check_map

    chapters = book.chapters()
    check_chapters(chapters)
    check_names(chapters)
    check_map(book)
    check_claims()
    check_marks(book)
    print(f"check: {len(chapters)} chapters can be run")


def _run(book: Book, options: argparse.Namespace) -> None:
    from book_tools.execution.execute import NOTEBOOK
    from book_tools.execution.run import run

    parameters = with_assignments(
        Parameters(), [f"seed={options.seed}", f"scale={options.scale}", f"corpus={options.corpus}"]
    )
    parameters = with_assignments(parameters, options.parameter)
    run(book, parameters, options.chapter, options.jobs, options.force)
    for chapter in book.select(options.chapter) if options.chapter else []:
        print(f"executed: {(book.folder_of(chapter) / NOTEBOOK).relative_to(book.root)}", flush=True)


def _page(book: Book, options: argparse.Namespace) -> None:
    from book_tools.site.build import build_page

    _run(book, options)
    for chapter in book.select(options.chapter):
        print(f"page: {build_page(book, chapter).relative_to(book.root)}", flush=True)


def _paper(book: Book, options: argparse.Namespace) -> None:
    from book_tools.execution.paper import paper

    parameters = with_assignments(
        Parameters(), [f"seed={options.seed}", f"scale={options.scale}", f"corpus={options.corpus}"]
    )
    paper(
        book,
        options.chapter,
        parameters,
        jobs=options.jobs,
        tables=options.tables.split(),
        seeds=options.seeds,
        go_on=options.go_on,
        cluster=options.cluster,
    )


def _tables(book: Book, options: argparse.Namespace) -> None:
    from book_tools.execution.tables import tables

    parameters = with_assignments(Parameters(), [f"scale={options.scale}", f"corpus={options.corpus}"])
    names = options.experiment.split()
    tables(book, options.chapter, parameters, names=names, jobs=options.jobs, anew=options.anew, check=options.check)


def _site(book: Book, options: argparse.Namespace) -> None:
    from book_tools.site.build import build_site

    build_site(book)


def _book(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.verify import verdict_report
    from book_tools.site.map import check_map

    check_map(book)
    _run(book, options)
    _site(book, options)
    print("\n".join(verdict_report(book)))


def _verify(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.verify import verify

    verify(book, options.chapter)


def _markup(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.markup_check import check_markup

    check_markup(book)


def _browser(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.browser_check import check_in_browser

    check_in_browser(book)


def _colab_check(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.colab_check import check_copies

    check_copies(book, options.scale, options.chapter or [], options.torch_index)


def _accept(book: Book, options: argparse.Namespace) -> None:
    from book_tools.checks.accept import accept

    accept(book)


def _pdf(book: Book, options: argparse.Namespace) -> None:
    from book_tools.site.editions import make_pdf

    make_pdf(book, latex_only=options.latex)


def _offline(book: Book, options: argparse.Namespace) -> None:
    from book_tools.site.editions import make_offline

    make_offline(book)


def _serve(book: Book, options: argparse.Namespace) -> None:
    from book_tools.site.serve import serve

    serve(book, options.port)


def _clean(book: Book, options: argparse.Namespace) -> None:
    shutil.rmtree(book.build, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m book_tools", description="Run, build and check the book.")
    parser.add_argument(
        "--root", type=Path, default=HERE, help="folder of the book (default: the one this package lies in)"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=command)
        return added

    add("check", _check, "check the chapters' files without running them")
    for name, command, text in (
        ("run", _run, "execute the chapters that need it"),
        ("book", _book, "run, then site, then report changed verdicts"),
        ("page", _page, "execute a chapter if it needs it, and build its page alone"),
    ):
        _add_run_options(add(name, command, text), with_chapters=name != "book")
    add_paper = add("paper", _paper, "compute a chapter's kept tables, or go on with them, and write them")
    _add_parameters(add_paper)
    add_paper.add_argument("--chapter", required=True, metavar="NN", help="the chapter, by number or name")
    add_paper.add_argument("--jobs", type=_positive, default=2, help="cells at a time (default: %(default)s)")
    add_paper.add_argument("--tables", default="", metavar="NAMES", help="only these tables, names with spaces between")
    add_paper.add_argument(
        "--seeds", type=_positive_or_all, default=None, help="at most so many seeds of each table (default: all)"
    )
    add_paper.add_argument(
        "--go-on",
        action="store_true",
        help="leave the seeds that a kept table holds as they are, and compute only those that it lacks",
    )
    add_paper.add_argument(
        "--cluster",
        default="",
        metavar="ADDRESS",
        help="compute on this dask cluster, as tcp://host:8786 (default: here)",
    )
    add_tables = add("tables", _tables, "compute the kept tables of a chapter's experiments, or go on with them")
    _add_parameters(add_tables)
    add_tables.add_argument("--chapter", required=True, metavar="NN", help="the chapter, by number or name")
    add_tables.add_argument("--jobs", type=_positive, default=2, help="cells at a time (default: %(default)s)")
    add_tables.add_argument("--experiment", default="", metavar="NAMES", help="only these, names with spaces between")
    add_tables.add_argument("--anew", action="store_true", help="compute finished cells again, too")
    add_tables.add_argument(
        "--check", action="store_true", help="compute all cells of kept tables from nothing; write nothing"
    )
    add("site", _site, "build the site from a complete run")
    pdf = add("pdf", _pdf, "make a PDF from a complete run; needs TeX")
    pdf.add_argument("--latex", action="store_true", help="stop at the LaTeX, which needs no TeX")
    add("offline", _offline, "pack the built site into one archive that works from a folder")
    add_verify = add("verify", _verify, "check claims and numbers of the run; non-zero exit when one changed")
    add_verify.add_argument("--chapter", action="append", metavar="NN", help="only this chapter, by number or name")
    add("markup", _markup, "validate the HTML of every built page; non-zero exit when one is faulty")
    add("browser", _browser, "open every built page in a headless browser; non-zero exit when one is faulty")
    colab = add("colab-check", _colab_check, "run the chapters' copies as Colab would, and compare what they compute")
    colab.add_argument("--scale", default="smoke", help="smoke, ci or paper (default: %(default)s)")
    colab.add_argument("--chapter", action="append", metavar="NN", help="only this chapter, by number or name")
    colab.add_argument("--torch-index", default="", help="where pip may also look for torch")
    add("accept", _accept, "make the verdicts and numbers of the present run what later runs are compared with")
    serve = add("serve", _serve, "serve the built site on this machine only")
    serve.add_argument("--port", type=int, default=8000, help="default: %(default)s; 0 chooses a free one")
    add("clean", _clean, "remove everything that was built")
    return parser


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    default = Parameters()
    parser.add_argument("--scale", default=default.scale, help="smoke, ci or paper (default: %(default)s)")
    parser.add_argument(
        "--corpus",
        default=default.corpus,
        help=f"{CORPORA} (default: %(default)s)",
    )
    parser.add_argument("--seed", default=str(default.seed), help="default: %(default)s")


def _add_run_options(parser: argparse.ArgumentParser, with_chapters: bool) -> None:
    _add_parameters(parser)
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set any parameter of the chapters; an unknown name is an error",
    )
    parser.add_argument("--jobs", type=_positive, default=2, help="chapters at a time (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="run again what would be kept")
    parser.set_defaults(chapter=[])
    if with_chapters:
        parser.add_argument("--chapter", action="append", metavar="NN", help="run only this chapter, by number or name")


def _positive_or_all(text: str) -> int | None:
    return _positive(text) if text else None


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 up")
    return int(text)
