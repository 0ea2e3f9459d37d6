"""The look at the built pages finds what a strict build does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from book_tools.site.html import html_problems

GOOD = """<html><head><link rel="stylesheet" href="_static/a.css?digest=1"><link rel="canonical"
href="https://book.example/"></head><body><img src="_static/logo.svg" alt=""><article><h1 id="top">T</h1>
<p><img src="_static/logo.svg" alt="Bar chart with one bar of length 60."><a href="#top">up</a>
<a href="sub/two.html#there">on</a> <a href="https://elsewhere.example">out</a> <a href="mailto:a@b.example">m</a>
<a href="#"></a><code>{numref}`x`</code></p></article></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.css").write_text("a { background: url(b.png) } /* http://in.a.comment */")
    (tmp_path / "_static" / "logo.svg").write_text("<svg/>")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.html").write_text('<a name="there" href="../index.html">back</a>')
    (tmp_path / "index.html").write_text(GOOD)
    return tmp_path


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ('<img src="_static/logo.svg">', "image _static/logo.svg has no alternative text"),
        ('<img src="_static/logo.svg" alt="_images/a-long-name-of-a-file.svg">', "has no alternative text"),
        ('<img src="_static/logo.svg" alt="A bar chart.">', "is shorter than 20 characters"),
        ('<a href="three.html">x</a>', "link to three.html, which does not exist"),
        ('<picture><source srcset="no.svg"></picture>', "link to no.svg, which does not exist"),
        ('<picture><source srcset="//cdn.example/x.svg"></picture>', "<source> loads //cdn.example/x.svg"),
        ('<a href="../index.html">x</a>', "link to ../index.html, which does not exist"),
        ('<a href="#nowhere">x</a>', "link to #nowhere, but that page has no such anchor"),
        ('<a href="sub/two.html#nowhere">x</a>', "has no such anchor"),
        ('<script src="https://cdn.example/x.js"></script>', "<script> loads https://cdn.example/x.js"),
        ('<link rel="preload" href="https://cdn.example/f.woff2">', "<link> loads"),
        ("<style>@import 'https://cdn.example/x.css';</style>", "a style loads https://cdn.example/x.css"),
        ('<p style="background: url(//cdn.example/x.png)">x</p>', "a style loads //cdn.example/x.png"),
        ("<p>So {glue:text}`ratio` it is</p>", "unresolved markup 'So {glue:text}`ratio` it is'"),
        ('<span class="problematic">**x</span>', "unresolved markup '**x'"),
    ],
)
def test_what_is_wrong_with_a_page(site: Path, added: str, message: str) -> None:
    (site / "index.html").write_text(GOOD.replace("</article>", f"{added}</article>"))
    problems = html_problems(site)
    assert len(problems) == 1
    assert problems[0].startswith("index.html: ")
    assert message in problems[0]


def test_a_style_sheet_that_loads_from_another_host(site: Path) -> None:
    assert html_problems(site) == [], "a good site"
    (site / "_static" / "a.css").write_text('@font-face { src: url("https://cdn.example/f.woff2") }')
    assert html_problems(site) == ["_static/a.css: loads https://cdn.example/f.woff2 from another host"]
