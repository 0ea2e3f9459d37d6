"""The copies of the chapters: what stands in them, and how pages and readers find them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from colab_book import ADDRESS, GLUE, SITE, TITLED
from nbformat import validator
from nbformat.v4 import reads
from toy import FIGURE, RECORD, REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.copies import copy_of
from book_tools.colab.labels import read_labels
from book_tools.colab.repository import VARIABLE, Origin, install_source, origin_of
from book_tools.messages import PARSER
from book_tools.parameters import Parameters

COLAB = "https://colab.research.google.com"


def copy_in(toy: Toy, name: str = "91_alpha") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((toy.root / "_build" / "html" / "colab" / f"{name}.ipynb").read_text())
    return content


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def page_of(toy: Toy, name: str = "91_alpha") -> str:
    return (toy.root / "_build" / "html" / "chapters" / f"{name}.html").read_text()


def test_the_copy_of_a_chapter(built: Toy) -> None:
    git = subprocess.run(
        ["git", "-C", str(built.root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    revision = git.stdout.strip()
    notebook = copy_in(built)
    validator.validate(reads(json.dumps(notebook)))  # type: ignore[no-untyped-call]
    page = f"{SITE}chapters/91_alpha.html"
    cells = notebook["cells"]
    assert [source_of(cell) for cell in cells] == [
        f"# The chapter 91_alpha\n\n*A copy of [a page of the book]({page}), to be run and changed; "
        f"made from revision {revision}. What is marked † was found by the run of the page (scale smoke, corpus "
        "yahoo-like, seed 0); with other settings your cells find other numbers.*\n\nIt says hello.",
        "# @title Install the package of the book, where it is missing\nimport importlib.util\n\n"
        'if importlib.util.find_spec("cfltr_book") is None:\n'
        f'    %pip install -q "cfltr-core[chapters] @ git+{ADDRESS}@{revision}"\n    importlib.invalidate_caches()\n\n'
        "import json\nimport os\n\n# The numbers that the figures have in the book; their captions begin with them.\n"
        'os.environ["CFLTR_FIGURE_NUMBERS"] = json.dumps({\n    "fig-toy": "Fig. 91.1"\n})',
        'scale = "smoke"\ncorpus = "yahoo-like"\nseed = 0',
        f"# @title Code of Fig. 91.1\n{FIGURE.strip()}",
        (RECORD + "from IPython.display import display" + GLUE).strip(),
        "Text\n\n> **Theorem 91.1 (Growth).**\n>\n> It grows:\n>\n> $$ y = x \\tag{91.1} $$\n\n"
        f"By [Theorem 91.1]({page}#thm-growth), [(91.1)]({page}#equation-eq-growth) and [Fig. 91.1]({page}#fig-toy), "
        f"the length is 60.25†.\nSo Doe *et al.* [[2018]({SITE}chapters/references.html#id2)]. "
        f"Go [on]({SITE}chapters/92_beta.html).\n\n**Exercise 91.1.**\n\nCount.\n\n**Solution to Exercise 91.1.**",
        "# @title Solution\n1 + 1",
        "Text\n\nThe end.",
    ]
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    kept = [cell["metadata"] for cell in cells if cell["cell_type"] == "code"]
    assert kept == [folded, {"tags": ["parameters"]}, folded, {}, folded]
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in cells)
    assert "Theorem 91.1" in page_of(built, "92_beta"), "the number is that of the site"
    assert f"[Theorem 91.1]({page}#thm-growth)" in source_of(copy_in(built, "92_beta")["cells"][-1])


def test_the_copy_of_a_chapter_with_kept_tables_begins_small(built: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    book = Book(built.root)
    labels, origin = read_labels(book.html), origin_of(book)

    def made(number: str, parameters: Parameters) -> tuple[str, list[str]]:
        (chapter,) = book.select([number])
        cells = copy_of(book, chapter, labels, origin, parameters).cells
        (settings,) = (cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
        return cells[0].source, settings.splitlines()

    large = Parameters(scale="ci", corpus="digits", seed=3)
    text, lines = made("91", large)
    assert "at scale" not in text
    assert "(scale ci, corpus digits, seed 3)" in text, "the settings to which its marked numbers belong"
    assert lines == ['scale = "ci"', 'corpus = "digits"', "seed = 3"]
    text, (hint, *lines) = made("92", large)
    assert "The page was made at scale ci; these cells begin at scale smoke. Long experiments, whose" in text
    assert "†" not in text, "this chapter quotes no number"
    assert hint == '# A quick start. The page was made at scale "ci": put that here, and wait some minutes.'
    assert lines == ['scale = "smoke"', 'corpus = "digits"', "seed = 3"]
    # A site that is itself small has nothing to explain.
    small = Parameters(scale="smoke")
    text, lines = made("92", small)
    assert "at scale" not in text
    assert lines == ['scale = "smoke"', 'corpus = "yahoo-like"', "seed = 0"]


def test_a_fold_says_the_same_on_the_page_and_in_the_copy(built: Toy) -> None:
    content = BeautifulSoup(page_of(built, "92_beta"), PARSER)
    (fold,) = content.select("article details.hide")
    (label,) = fold.select("summary")
    # Words only: a paragraph in a summary is no valid HTML, and an aria-label would be read in their place.
    assert str(label) == "<summary>Three, which is &lt; 4 &amp; &gt; 2</summary>"
    assert fold.select_one(".cell_input pre").get_text() == "x = 3\nx\n", "the label is not said twice"
    assert fold.select_one(".cell_output pre").get_text() == "3\n", "the output is folded too"
    (cell,) = (cell for cell in copy_in(built, "92_beta")["cells"] if "x = 3" in source_of(cell))
    assert source_of(cell) == TITLED
    assert cell["metadata"] == {"cellView": "form", "jupyter": {"outputs_hidden": True, "source_hidden": True}}
    # Without a title of its own a fold has the builder's two, of which the style shows one.
    (label,) = BeautifulSoup(page_of(built), PARSER).select("article details.hide > summary")
    words = [(part.name, part["class"], part.get_text()) for part in label.children]
    assert words == [
        ("span", ["collapsed"], "Show code cell source"),
        ("span", ["expanded"], "Hide code cell source"),
    ]


def test_the_page_leads_to_its_copy_and_to_colab(built: Toy) -> None:
    (line,) = re.findall(r'<p class="launch">(.*?)</p>', page_of(built))
    assert line == (
        f'<a href="{COLAB}/github/someone/toy-book/blob/colab/91_alpha.ipynb">Open in Colab</a>'
        ' · <a href="../colab/91_alpha.ipynb" download>Notebook to run</a>, without outputs'
        ' · <a href="../read/91_alpha.ipynb" download>Notebook to read</a>, with the outputs of this page'
    )


def test_changes_that_no_revision_holds_are_not_passed_off_as_one(built: Toy, tmp_path: Path) -> None:
    shutil.copytree(built.root, tmp_path / "copy", symlinks=True)
    changed = Toy.at(tmp_path / "copy")
    changed.chapter("92_beta", "x = 4\nx")
    assert changed.cli("book", "--scale", "smoke", CFLTR_REPOSITORY="").returncode == 0
    text = json.dumps(copy_in(changed))
    assert "uncommitted changes on top of revision" in text
    assert "%pip" not in text
    assert "Open in Colab" not in page_of(changed)
    assert "Notebook to run" in page_of(changed)
    assert re.search(
        r"`pip install '\.\[chapters\]'` in the clone .*, with its changes on top of revision [0-9a-f]{12},", text
    )
    refused = changed.cli("colab-check")
    assert refused.returncode == 2
    assert "built from changes that no revision holds" in refused.stdout


def test_without_a_repository_there_is_no_button_and_no_link(executed: Toy) -> None:
    result = executed.cli("site", CFLTR_REPOSITORY="")
    assert result.returncode == 0, result.stdout
    text = json.dumps(copy_in(executed))
    assert "no public repository is known" in text
    # This book is under no version control; a clone is named with its revision.
    assert "run `pip install '.[chapters]'` in the clone of the book that made this copy, and start" in text
    source = install_source(Origin(None, "0123456789abcdef", False), ("logs",))
    assert "`pip install '.[chapters,logs]'` in the clone" in source
    assert "at that revision (`git checkout 0123456789ab`)" in source
    compile(source, "cell", "exec")
    assert "](" not in text
    assert "See Fig. 91.1." in text
    assert "colab.research" not in page_of(executed)
    assert '<a href="../colab/91_alpha.ipynb" download>' in page_of(executed)


def test_what_a_copy_cannot_show_leaves_no_site(executed: Toy) -> None:
    executed.chapter("92_beta", "x = 3", "Text\n\nPress {kbd}`Enter`.")
    assert executed.cli("run", "--scale", "smoke").returncode == 0
    result = executed.cli("site")
    assert result.returncode == 1
    assert "92_beta.ipynb, cell 3: the role {kbd} has no counterpart in a plain notebook" in result.stdout
    assert not (executed.root / "_build" / "html").exists()


def test_a_message_about_a_page_counts_the_lines_of_the_chapter(executed: Toy) -> None:
    path = executed.chapter("92_beta", "x = 3")
    content = json.loads(path.read_text())
    content["cells"][0]["source"] += "\n\nSee {numref}`fig-nowhere`."
    path.write_text(json.dumps(content))
    assert executed.cli("run", "--scale", "smoke").returncode == 0
    assert "chapters/92_beta.ipynb, cell 0, line 5: WARNING" in executed.cli("site").stdout


def test_publishing_puts_the_copies_on_a_branch_of_their_own(built: Toy, tmp_path: Path) -> None:
    book, origin = tmp_path / "book", tmp_path / "origin.git"
    shutil.copytree(built.root, book, symlinks=True)
    shutil.copy(REPOSITORY / "Makefile", book)
    subprocess.run(["git", "init", "--quiet", "--bare", str(origin)], check=True)
    subprocess.run(["git", "-C", str(book), "remote", "set-url", "origin", str(origin)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}

    def publish() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "publish"], cwd=book, env=environment, capture_output=True, text=True, check=False
        )

    for _ in range(2):
        done = publish()
        assert done.returncode == 0, done.stderr

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(origin), *arguments], capture_output=True, text=True, check=True).stdout

    assert git("branch", "--format=%(refname:short)").split() == ["colab"]
    assert git("ls-tree", "--name-only", "colab").split() == ["91_alpha.ipynb", "92_beta.ipynb"]
    assert git("rev-list", "--count", "colab").strip() == "1"
    published = git("show", "colab:91_alpha.ipynb")
    assert published == (built.root / "_build" / "html" / "colab" / "91_alpha.ipynb").read_text()
    shutil.rmtree(book / "_build")
    empty = publish()
    assert empty.returncode == 2
    assert "no copies to publish; run 'make book'" in empty.stderr
