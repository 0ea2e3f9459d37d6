"""The command line: ``python -m book_tools COMMAND``.

Exit codes: 0 done; 1 the book has a problem (a chapter raised, the build or a check failed); 2 the request
cannot be carried out and nothing was changed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from pkgutil import resolve_name

from book_tools.book import Book
from book_tools.errors import BookError, Interrupted, UsageError
from book_tools.parameters import Parameters

HERE = Path(__file__).resolve().parent.parent
# Written out, because the package that knows them takes a while to import; a test compares.
CORPORA = (
    "yahoo-like, istella-like, yahoo-like:mixed, istella-like:mixed, digits, or letor:<folder>[@<option>,…], a "
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
    options = vars(_parser().parse_args(arguments))
    book, function = Book(options.pop("root").resolve()), options.pop("function")
    if "corpus" in options:
        options["parameters"] = Parameters(*(options.pop(name) for name in ("scale", "corpus", "seed")))
    try:
        # A function is imported when its command is given, so that --help and small commands answer at once.
        resolve_name(function)(book, **options)
    except BookError as error:
        print("\n".join(error.problems), file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


def check(book: Book) -> None:
    """Check the files of the chapters, the registry of claims, the map of the book and the marks in the text."""
    from book_tools.colab.marks import check_marks
    from book_tools.execution.preflight import check_chapters, check_claims
    from book_tools.site.map import check_map

    chapters = book.chapters()
    check_chapters(chapters)
    check_map(book)
    check_claims()
    check_marks(book)
    print(f"check: {len(chapters)} chapters can be run")


def run(book: Book, parameters: Parameters, wanted: list[str], jobs: int, force: bool) -> None:
    """Execute the chapters that need it, and say where the notebooks of the ``wanted`` ones lie."""
    from book_tools.execution.execute import NOTEBOOK
    from book_tools.execution.run import run

    run(book, parameters, wanted, jobs, force)
    for chapter in book.select(wanted) if wanted else []:
        print(f"executed: {(book.folder_of(chapter) / NOTEBOOK).relative_to(book.root)}", flush=True)


def page(book: Book, parameters: Parameters, wanted: list[str], jobs: int, force: bool) -> None:
    """Execute the ``wanted`` chapters that need it, build their pages alone, and say where they lie."""
    from book_tools.site.build import build_page

    run(book, parameters, wanted, jobs, force)
    for chapter in book.select(wanted):
        print(f"page: {build_page(book, chapter).relative_to(book.root)}", flush=True)


def whole_book(book: Book, parameters: Parameters, jobs: int, force: bool) -> None:
    """Execute the chapters that need it, build the site, and report the verdicts that changed."""
    from book_tools.checks.verify import verdict_report
    from book_tools.site.build import build_site
    from book_tools.site.map import check_map

    check_map(book)
    run(book, parameters, [], jobs, force)
    build_site(book)
    print("\n".join(verdict_report(book)))


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 up")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    """Return the parser: each command has the function that carries it out, with its options as arguments."""
    parser = argparse.ArgumentParser(prog="python -m book_tools", description="Run, build and check the book.")
    parser.add_argument(
        "--root", type=Path, default=HERE, help="folder of the book (default: the one this package lies in)"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    default, written = Parameters(), "(default: %(default)s)"
    parents = (argparse.ArgumentParser(add_help=False) for _ in range(8))
    parameters, rerun, chapters, one, kept, tables, latex, colab = parents
    parameters.add_argument("--scale", default=default.scale, help=f"smoke, ci or paper {written}")
    parameters.add_argument("--corpus", default=default.corpus, help=f"{CORPORA} {written}")
    parameters.add_argument("--seed", type=int, default=default.seed, help=f"a whole number {written}")
    parameters.add_argument("--jobs", type=_positive, default=2, help=f"chapters or cells at a time {written}")
    rerun.add_argument("--force", action="store_true", help="run again what would be kept")
    chapters.add_argument(
        "--chapter", action="append", default=[], dest="wanted", metavar="NN", help="only this one, by number or name"
    )
    one.add_argument("--chapter", required=True, dest="wanted", metavar="NN", help="the chapter, by number or name")
    kept.add_argument("--tables", type=str.split, default=[], metavar="NAMES", help="only these, with spaces between")
    seeds = "at most so many seeds of each table (default: all)"
    kept.add_argument("--seeds", type=lambda text: _positive(text) if text else None, help=seeds)
    kept.add_argument("--go-on", action="store_true", help="compute only the seeds that a kept table lacks")
    kept.add_argument("--cluster", default="", metavar="ADDRESS", help="compute on this dask cluster, tcp://host:8786")
    tables.add_argument(
        "--experiment", type=str.split, default=[], dest="names", metavar="NAMES", help="only these, spaces between"
    )
    tables.add_argument("--anew", action="store_true", help="compute finished cells again, too")
    tables.add_argument("--check", action="store_true", help="compute all kept cells from nothing; write nothing")
    latex.add_argument("--latex", action="store_true", dest="latex_only", help="stop at the LaTeX, which needs no TeX")
    colab.add_argument("--scale", default="smoke", help=f"smoke, ci or paper {written}")
    colab.add_argument("--jobs", type=_positive, default=2, help=f"copies at a time {written}")
    colab.add_argument("--torch-index", default="", help="where pip may also look for torch")

    def add(name: str, function: str, text: str, *parents: argparse.ArgumentParser) -> None:
        added = commands.add_parser(name, help=text, description=text, parents=parents)
        added.set_defaults(function=f"book_tools.{function}")

    faulty = "non-zero exit when one is faulty"
    add("check", "cli:check", "check the chapters' files without running them")
    add("run", "cli:run", "execute the chapters that need it", parameters, rerun, chapters)
    add("book", "cli:whole_book", "run, then site, then report changed verdicts", parameters, rerun)
    add("page", "cli:page", "run one chapter, and build its page alone", parameters, rerun, chapters)
    add("paper", "execution.paper:paper", "compute a chapter's kept tables, or go on with them", parameters, one, kept)
    of_experiments = "compute the kept tables of a chapter's experiments"
    add("tables", "execution.tables:tables", of_experiments, parameters, one, tables)
    add("site", "site.build:build_site", "build the site from a complete run")
    add("pdf", "site.editions:make_pdf", "make a PDF from a complete run; needs TeX", latex)
    add("offline", "site.editions:make_offline", "pack the built site into one archive that works from a folder")
    changed = "check claims and numbers of the run; non-zero exit when they changed"
    add("verify", "checks.verify:verify", changed, chapters)
    add("markup", "checks.markup_check:check_markup", f"validate the HTML of every built page; {faulty}")
    add("browser", "checks.browser_check:check_in_browser", f"open every built page in a headless browser; {faulty}")
    add("colab-check", "checks.colab_check:check_copies", "run the chapters' copies as Colab would", colab, chapters)
    add("accept", "checks.verify:accept", "make the present run what later runs are compared with", chapters)
    return parser
