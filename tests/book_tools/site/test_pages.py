"""The pages of a built book: what a reader needs stands on them, once, and nothing else is published."""

import json
import re
from pathlib import Path

import pytest
import yaml
from colab_book import LENGTHS, ROW, SITE, SVG
from kept_text import same_as_kept
from toy import PAGES, REPOSITORY, Toy, seen

from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.execution import times as machines
from book_tools.files import json_text, read_json
from book_tools.parameters import Parameters
from book_tools.site import html
from book_tools.site.pictures import FRAMES, ROWS, WIDE, write_pictures
from book_tools.site.previews import FOLDER
from book_tools.site.sphinx_pages import chapter_of
from book_tools.site.stage import configuration
from book_tools.site.status import status


@pytest.mark.parametrize("name", ["91_alpha", "92_beta"])
def test_the_page_of_a_chapter(built: Toy, name: str) -> None:
    """Numbers, folds with their labels, captions, descriptions, links, copies and citations."""
    revision, page = built.git("rev-parse", "HEAD"), built.page(f"chapters/{name}")
    text = seen(page.article).replace(revision, "REVISION").replace(revision[:12], "REVISION")
    same_as_kept(PAGES / f"page_{name}.txt", re.sub(r"\b[0-9a-f]{20,}\b", "DIGEST", text))
    assert page.select_one('link[rel="canonical"]')["href"] == f"{SITE}chapters/{name}.html"
    # A summary holds phrases only, none of them a link: anything else is no valid HTML.
    assert not page.select("summary p, summary div, summary a")


def test_files_of_a_figure_lie_where_the_page_looks_for_them(built: Toy) -> None:
    site, page = built.root / "_build" / "html", built.page("chapters/91_alpha")

    def lies(place: object) -> str:
        return (site / "chapters" / str(place)).resolve().read_text()

    (source,), (link,) = page.select("figure#fig-toy > picture > source"), page.select("article figcaption a.download")
    assert (source["media"], lies(source["srcset"])) == (WIDE, ROW)
    assert lies(link["href"]) == "name,length\nbar,60.25\n"
    (script,) = page.select("figure#fig-toy + script.frames[type='application/json']")
    # The still is on the page.
    drawn = [frame["source"] and lies(frame["source"]) for frame in json.loads(script.get_text())["frames"]]
    assert drawn == [None if length == 60 else SVG.format(length) for length in LENGTHS]
    for name, address in (("script", "src"), ("link", "href")):
        assert any("sliders." in str(tag.get(address)) for tag in page.select(name))
    assert [len(list((site / folder).iterdir())) for folder in (FRAMES, ROWS)] == [2, 1]


def test_a_slider_without_its_figure_is_named_and_a_page_without_one_left_alone(built: Toy, tmp_path: Path) -> None:
    book, text = Book(built.root), "<p>x</p><figure id='other'></figure>"
    (tmp_path / "chapters").mkdir()
    for name in ("91_alpha", "92_beta"):
        (tmp_path / "chapters" / f"{name}.html").write_text(text)
    with pytest.raises(BookError, match=r"91_alpha.ipynb: fig-toy has a slider, but stands on the page as no figure"):
        write_pictures(book, tmp_path, book.select(["91"]))
    write_pictures(book, tmp_path, book.select(["92"]))
    assert (tmp_path / "chapters" / "92_beta.html").read_text() == text


@pytest.mark.parametrize(
    ("page", "number"),
    [("chapters/11_ips", 11), ("05_svm", 5), ("index", None), ("11_parts/overview", None), ("chapters/1st", None)],
)
def test_the_number_of_a_page_is_that_of_its_file(page: str, number: int | None) -> None:
    assert chapter_of(page) == number


def test_what_is_published_is_light_and_loads_what_it_needs(built: Toy) -> None:
    site = built.root / "_build" / "html"
    assert [path.name for path in (site / "_static" / "mathjax").glob("tex-*.js")] == ["tex-chtml.js"]
    assert [*site.rglob("*.map"), *site.glob("_sources"), *(built.root / "_build").glob(".*")] == []
    assert html.weight_problems(site) == []
    scripts = sorted((site / FOLDER).rglob("*.js"))
    assert scripts
    for script in scripts:
        page = site / script.relative_to(site / FOLDER).with_suffix(".html")
        assert "data-preview" in page.read_text()
        assert not re.search(r"frames|row\.svg", script.read_text()), "a preview is narrow and still"


def test_a_copy_that_is_not_the_published_one_says_so_on_every_page(built: Toy) -> None:
    for name in ("91_alpha", "92_beta", "scoreboard", "status"):
        (banner,) = built.page(f"chapters/{name}").select(".bd-header-announcement")
        assert "built at scale smoke, corpus yahoo-like: its" in " ".join(banner.get_text().split())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (Parameters("paper"), "at scale paper, corpus yahoo-like: its"),
        (Parameters(corpus="letor:a<b@2,drop=1+2"), "at scale ci, corpus letor:a&lt;b@2,drop=1+2: its"),
        (Parameters(seed=3), "at scale ci, corpus yahoo-like, seed 3: its"),
    ],
)
def test_what_the_notice_names(parameters: Parameters, words: str) -> None:
    path = REPOSITORY / "_config.yml"
    assert configuration(path, Parameters()) == path.read_text()
    changed = yaml.safe_load(configuration(path, parameters))
    assert words in changed["html"].pop("announcement")
    assert changed == yaml.safe_load(path.read_text()), "nothing else changes"


SMOKE = Parameters("smoke")


def test_it_says_where_each_chapter_ran_and_how_many_at_a_time(executed: Toy) -> None:
    book, here = Book(executed.root), machines.machine()
    recorded = read_json(book.times)
    assert {(about["machine"], about["jobs"]) for about in recorded.values()} == {(here, 2)}
    assert f"On {here}; 2 chapters at a time: 91, 92." in status(book, SMOKE)
    elsewhere = {"seconds": 1.0, "machine": "Elsewhere, 64 cores", "jobs": 1}
    book.times.write_text(json_text({**recorded, "92_beta": elsewhere}))
    text = status(book, SMOKE)
    assert f"On {here}; 2 chapters at a time: 91. On Elsewhere, 64 cores; one chapter at a time: 92." in text
    book.times.unlink()
    assert "chapters at a time" not in status(book, SMOKE)


def test_the_day_of_the_revision_and_what_is_compared(executed: Toy) -> None:
    book = Book(executed.root)
    manifest = read_json(book.manifest)
    assert "Revision: not under version control.\n" in status(book, SMOKE)
    executed.git("init", "--quiet")
    executed.git("commit", "--quiet", "--allow-empty", "-m", "x")
    known, day = executed.git("show", "-s", "--format=%H %cs").split()
    for revision, dirty, words in ((known, False, f" of {day}."), ("0" * 40, True, ", with uncommitted changes.")):
        book.manifest.write_text(json_text({**manifest, "revision": revision, "dirty": dirty}))
        assert f"Revision: {revision}{words}\n" in status(book, SMOKE)
    text = status(book, SMOKE)
    for words in ("the 0 verdicts with", "the 1 figures and the 1 recorded numbers", "Of the 0 kept tables"):
        assert words in text
