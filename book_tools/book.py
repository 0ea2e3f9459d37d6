"""Where everything of a book lies, and which pages its table of contents names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml
from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

from book_tools.errors import BookError, Problems, UsageError, for_each

# What chapters import: the methods, and what a chapter leans on besides.
PACKAGES = ("cfltr_core", "cfltr_book")
# Pages that the pipeline writes while staging; they have no source file.
API = ("index", "ranking", "clicks", "data", "evaluation", "propensity", "logs", "learning", "reporting")
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


class Book:
    """The paths of one book; everything the pipeline writes lies under ``_build``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Jupyter Book's configuration, and the table of contents.
        self.config = root / "_config.yml"
        self.toc = root / "_toc.yml"
        # What the chapters import, and what that reads files with; a change in them makes every run stale.
        self.packages = tuple(root / name for name in PACKAGES)
        # Everything that is made; safe to remove at any time.
        self.build = root / "_build"
        # What executing the chapters produced: one folder per finished chapter, each put there by a single rename, and
        # scratch folders of chapters in progress, of which leftovers are removed at the next start.
        self.run = self.build / "run"
        self.executed = self.run / "chapters"
        self.partial = self.run / ".partial"
        # What was run, with which versions; and, kept apart from everything that is compared, how long each chapter
        # took, on which machine, and how many were executed at a time.
        self.manifest = self.run / "manifest.json"
        self.times = self.run / "times.json"
        # The Jupyter Book source made from a run, and the finished site.
        self.stage = self.build / "stage"
        self.html = self.build / "html"
        # The verdicts of the last accepted runs; the package ships them, so that a chapter shows them anywhere.
        self.verdicts = root / "cfltr_book" / "claims" / "verdicts.csv"
        # How closely the committed numbers must be met, with reasons.
        self.tolerances = root / "tests" / "reference" / "tolerances.yml"

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

    def page_of(self, chapter: Chapter) -> str:
        """The page of a chapter, as the table of contents names it."""
        return chapter.source.relative_to(self.root).with_suffix("").as_posix()

    def folder_of(self, chapter: Chapter) -> Path:
        """Where the artefacts of an executed chapter lie."""
        return self.executed / chapter.name

    def pages(self) -> list[str]:
        """Return every page of the table of contents, root first, as written there (without an ending)."""
        try:
            return list(parse_toc_yaml(self.toc))
        except FileNotFoundError:
            raise UsageError(f"{self.toc.name}: not found in {self.root}; is --root right?") from None
        except (yaml.YAMLError, MalformedError) as error:
            raise UsageError(f"{self.toc.name}: {error}") from None

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
        sources = for_each(self.pages(), self.source_of, UsageError)
        chapters = [Chapter(source) for source in sources if source is not None and source.suffix == ".ipynb"]
        Problems(
            f"{self.toc.name}: two chapters are called {name}; file names must differ"
            for name, times in sorted(Counter(chapter.name for chapter in chapters).items())
            if times > 1
        ).raise_any(UsageError)
        return chapters

    def select(self, wanted: list[str]) -> list[Chapter]:
        """Return the chapters named by number (3 is 03) or by name, or all of them when ``wanted`` is empty."""
        chapters = self.chapters()
        if not wanted:
            return chapters
        wanted = [name.zfill(2) if name.isdecimal() else name for name in wanted]
        known = {key for chapter in chapters for key in (chapter.number, chapter.name)}
        listed = ", ".join(chapter.name for chapter in chapters) or "nothing: it lists no chapter"
        Problems(
            f"--chapter {name}: not in {self.toc.name}; choose from {listed}" for name in wanted if name not in known
        ).raise_any(UsageError)
        return [chapter for chapter in chapters if {chapter.number, chapter.name} & set(wanted)]
