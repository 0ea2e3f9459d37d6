"""Where everything of a book lies, and which pages its table of contents names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from book_tools.errors import BookError, UsageError

# What chapters import: the methods, and what a chapter leans on besides.
PACKAGES = ("cfltr_core", "cfltr_book")
# Pages that the pipeline writes while staging; they have no source file.
API = ("index", "ranking", "clicks", "data", "evaluation", "propensity", "learning", "reporting")
GENERATED = (
    *("chapters/architecture", "chapters/papers_size", "chapters/scoreboard", "chapters/status"),
    *(f"api/{name}" for name in API),
)


@dataclass(frozen=True)
class Chapter:
    """One executable chapter: ``chapters/NN_snake_case.ipynb``."""

    source: Path

    @property
    def name(self) -> str:
        """The file name without its ending, for example ``01_clicks_are_biased``."""
        return self.source.stem

    @property
    def number(self) -> str:
        """The stable number in front of the name, for example ``01``."""
        return self.name.partition("_")[0]


@dataclass(frozen=True)
class Book:
    """The paths of one book; everything the pipeline writes lies under ``_build``."""

    root: Path

    @property
    def config(self) -> Path:
        """Jupyter Book's configuration."""
        return self.root / "_config.yml"

    @property
    def toc(self) -> Path:
        """The table of contents."""
        return self.root / "_toc.yml"

    @property
    def packages(self) -> tuple[Path, ...]:
        """What the chapters import, and what that reads files with; a change in them makes every run stale."""
        return tuple(self.root / name for name in PACKAGES)

    @property
    def build(self) -> Path:
        """Everything that is made; safe to remove at any time."""
        return self.root / "_build"

    @property
    def run(self) -> Path:
        """What executing the chapters produced."""
        return self.build / "run"

    @property
    def executed(self) -> Path:
        """One folder per finished chapter, each put there by a single rename."""
        return self.run / "chapters"

    @property
    def partial(self) -> Path:
        """Scratch folders of chapters in progress; leftovers are removed at the next start."""
        return self.run / ".partial"

    @property
    def manifest(self) -> Path:
        """What was run, with which versions."""
        return self.run / "manifest.json"

    @property
    def timings(self) -> Path:
        """Wall-clock seconds, kept apart from everything that is compared."""
        return self.run / "timings.json"

    @property
    def machines(self) -> Path:
        """On which machine each chapter was executed, and how many at a time; kept apart likewise."""
        return self.run / "machines.json"

    @property
    def stage(self) -> Path:
        """The Jupyter Book source made from a run."""
        return self.build / "stage"

    @property
    def html(self) -> Path:
        """The finished site."""
        return self.build / "html"

    def reference(self, scale: str) -> Path:
        """The committed numbers that a run at ``scale`` is compared with."""
        return self.root / "tests" / "reference" / scale

    def tables(self, chapter: Chapter) -> Path:
        """The kept tables of the chapter's experiments, which ``tables`` writes; the package ships them."""
        return self.root / "cfltr_book" / "kept" / chapter.number

    def kept(self, chapter: Chapter) -> Path:
        """The kept tables of a chapter whose cells define its experiments; ``paper`` writes them."""
        return self.root / "tests" / "reference" / "kept" / chapter.number

    def store(self, chapter: Chapter) -> Path:
        """The finished cells of the chapter's kept tables, so that an interrupted ``paper`` goes on."""
        return self.build / "kept" / chapter.number

    @property
    def verdicts(self) -> Path:
        """The verdicts of the last accepted runs; the package ships them, so that a chapter shows them anywhere."""
        return self.root / "cfltr_book" / "claims" / "verdicts.csv"

    @property
    def tolerances(self) -> Path:
        """How closely the committed numbers must be met, with reasons."""
        return self.root / "tests" / "reference" / "tolerances.yml"

    def folder_of(self, chapter: Chapter) -> Path:
        """Where the artefacts of an executed chapter lie."""
        return self.executed / chapter.name

    def pages(self) -> list[str]:
        """Return every page of the table of contents, root first, as written there (without an ending)."""
        try:
            toc = yaml.safe_load(self.toc.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"{self.toc.name}: not found in {self.root}; is --root right?") from None
        except yaml.YAMLError as error:
            raise UsageError(f"{self.toc.name}: not valid YAML: {error}") from None
        if not isinstance(toc, dict) or "root" not in toc:
            raise UsageError(f"{self.toc.name}: expected a mapping with 'root'; see the jb-book format")
        return [str(toc["root"]), *_files_in({key: toc[key] for key in toc if key != "root"})]

    def source_of(self, page: str) -> Path | None:
        """Return the source file of a page, or None when the pipeline generates it; raise when missing."""
        for ending in ("", ".ipynb", ".md"):
            path = self.root / f"{page}{ending}"
            if path.is_file():
                return path
        if page in GENERATED:
            return None
        raise BookError(
            f"{self.toc.name}: {page} has neither {page}.ipynb nor {page}.md; "
            "add the file or take the entry out of the table of contents"
        )

    def chapters(self) -> list[Chapter]:
        """Return the executable chapters in the order of the table of contents."""
        chapters: list[Chapter] = []
        problems: list[str] = []
        for page in self.pages():
            try:
                source = self.source_of(page)
            except BookError as error:
                problems.extend(error.problems)
                continue
            if source is not None and source.suffix == ".ipynb":
                chapters.append(Chapter(source))
        names = [chapter.name for chapter in chapters]
        problems += [
            f"{self.toc.name}: two chapters are called {name}; file names must differ"
            for name in sorted({name for name in names if names.count(name) > 1})
        ]
        if problems:
            raise UsageError(*problems)
        return chapters

    def select(self, wanted: list[str]) -> list[Chapter]:
        """Return the chapters named by number (3 is 03) or by name, or all of them when ``wanted`` is empty."""
        chapters = self.chapters()
        if not wanted:
            return chapters
        wanted = [name.zfill(2) if name.isdecimal() else name for name in wanted]
        known = {key for chapter in chapters for key in (chapter.number, chapter.name)}
        listed = ", ".join(chapter.name for chapter in chapters) or "nothing: it lists no chapter"
        problems = [
            f"--chapter {name}: not in {self.toc.name}; choose from {listed}" for name in wanted if name not in known
        ]
        if problems:
            raise UsageError(*problems)
        return [chapter for chapter in chapters if {chapter.number, chapter.name} & set(wanted)]


def _files_in(node: Any) -> Iterator[str]:
    """Yield the ``file`` entries below a node of the table of contents, in reading order."""
    if isinstance(node, list):
        for item in node:
            yield from _files_in(item)
    elif isinstance(node, dict):
        if "file" in node:
            yield str(node["file"])
        for key, value in node.items():
            if key != "file":
                yield from _files_in(value)
