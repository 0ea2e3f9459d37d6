"""The pages of a built book: what a reader needs stands on them, once, and nothing else is published."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from colab_book import LENGTHS, ROW, SITE, SVG
from toy import REPOSITORY, Toy

from book_tools.book import Book
from book_tools.colab.labels import read_labels
from book_tools.errors import BookError
from book_tools.parameters import Parameters
from book_tools.site import html
from book_tools.site.pictures import FRAMES, ROWS, WIDE, write_pictures
from book_tools.site.previews import FOLDER
from book_tools.site.sphinx_pages import chapter_of
from book_tools.site.stage import configuration


def test_a_figure_with_its_frames_its_row_its_data_and_its_description(built: Toy) -> None:
    site, page = built.root / "_build" / "html", built.page("chapters/91_alpha")

    def lies(place: object) -> str:
        return (site / "chapters" / str(place)).resolve().read_text()

    (source,), (image,) = page.select("figure#fig-toy > picture > source"), page.select("article figure img")
    assert (source["media"], lies(source["srcset"])) == (WIDE, ROW)
    assert image["alt"] == "Bar chart with one bar of length 60.", "without scripts there is the still alone"
    (link,) = page.select("article figcaption a.download")
    assert lies(link["href"]) == "name,length\nbar,60.25\n"
    (script,) = page.select("figure#fig-toy + script.frames[type='application/json']")
    about = json.loads(script.get_text())
    assert (about["id"], about["knob"], about["start"]) == ("fig-toy", "length of the bar", 1)
    for frame, length in zip(about["frames"], LENGTHS, strict=True):
        assert (frame["text"], frame["fact"]) == (f"{length} %", f"it is </script> {length} long")
        assert frame["alt"] == f"Bar chart with one bar of length {length}."
        # The still is on the page.
        assert (frame["source"] and lies(frame["source"])) == (None if length == 60 else SVG.format(length))
    for name, address in (("script", "src"), ("link", "href")):
        assert any("sliders." in str(tag.get(address)) for tag in page.select(name))
    assert [len(list((site / folder).iterdir())) for folder in (FRAMES, ROWS)] == [2, 1]
    text = " ".join(part.get_text() for part in page.select("article p, article .cell_output"))
    assert "Figure: a bar." not in text, "the caption for plain readers is dropped"
    assert 'scale = "smoke"' not in page.get_text(), "the injected parameters are not shown"


def test_a_slider_without_its_figure_is_named_and_a_page_without_one_left_alone(built: Toy, tmp_path: Path) -> None:
    book, text = Book(built.root), "<p>x</p><figure id='other'></figure>"
    (tmp_path / "chapters").mkdir()
    for name in ("91_alpha", "92_beta"):
        (tmp_path / "chapters" / f"{name}.html").write_text(text)
    with pytest.raises(BookError, match=r"91_alpha.ipynb: fig-toy has a slider, but stands on the page as no figure"):
        write_pictures(book, tmp_path, book.chapters())
    write_pictures(book, tmp_path, book.select(["92"]))
    assert (tmp_path / "chapters" / "92_beta.html").read_text() == text


def test_everything_has_the_number_of_its_chapter_whatever_its_place(built: Toy) -> None:
    labels = read_labels(Book(built.root).html)
    assert {name: target.text for name, target in (labels.numbered | labels.equations).items()} == {
        "thm-growth": "Theorem 91.1",
        "fig-toy": "Fig. 91.1",
        "ex-count": "Exercise 91.1",
        "thm-back": "Theorem 1",
        "eq-growth": "(91.1)",
        "eq-back": "(1)",
    }
    text = " ".join(built.page("chapters/91_alpha").get_text().split())
    assert "By Theorem 91.1, (91.1) and Fig. 91.1, the length is 60.25." in text
    assert "Solution to Exercise 91.1" in text
    assert built.page("chapters/91_alpha").h1.get_text().startswith("The chapter 91_alpha"), "not numbered twice"


@pytest.mark.parametrize(
    ("page", "number"),
    [("chapters/11_ips", 11), ("05_svm", 5), ("index", None), ("11_parts/overview", None), ("chapters/1st", None)],
)
def test_the_number_of_a_page_is_that_of_its_file(page: str, number: int | None) -> None:
    assert chapter_of(page) == number


def test_every_fold_is_the_same_element_under_its_label(built: Toy) -> None:
    folds = [
        fold for name in ("91_alpha", "92_beta") for fold in built.page(f"chapters/{name}").select("article details")
    ]
    labels = [" ".join(str(fold.summary.get_text(" ")).split()) for fold in folds]
    assert labels == [
        "Show code cell source",
        "Solution to Exercise 91.1",
        "Cite this chapter, or report an error",
        "Three, which is < 4 & > 2",
        "What you need",
        "Cite this chapter, or report an error",
    ]
    assert not any(fold.has_attr("open") for fold in folds)
    # A summary holds phrases only, none of them a link: anything else is no valid HTML.
    assert not any(fold.select("summary p, summary div, summary a") for fold in folds)
    solution, named = folds[1], folds[3]
    assert solution.select_one(".cell_output pre").get_text().strip() == "2"
    assert named.select_one(".cell_input pre").get_text() == "x = 3\nx\n", "the label is not said twice"
    assert named.select_one(".cell_output pre").get_text() == "3\n", "the output is folded too"
    assert not re.search(r"^ *- sphinx_togglebutton", (REPOSITORY / "_config.yml").read_text(), re.MULTILINE)


def test_heads_citations_and_downloads(built: Toy) -> None:
    page = built.page("chapters/91_alpha")
    assert page.select_one('link[rel="canonical"]')["href"] == f"{SITE}chapters/91_alpha.html"
    fold = page.select("article details")[-1]
    assert "@incollection{cfltr-91," in fold.get_text()
    assert fold.select_one('a[href*="issues/new"]') is not None
    (line,) = page.select("p.launch")
    assert [(link["href"], link.get_text()) for link in line.select("a")] == [
        ("https://colab.research.google.com/github/someone/toy-book/blob/colab/91_alpha.ipynb", "Open in Colab"),
        ("../colab/91_alpha.ipynb", "Notebook to run"),
        ("../read/91_alpha.ipynb", "Notebook to read"),
    ]


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
