"""The frames of a figure with a knob reach the site, and the page of the figure says what they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from toy import FIGURE, Toy

from book_tools.book import Book
from book_tools.errors import BookError
from book_tools.site.pictures import FRAMES, write_pictures

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="{}" height="20"/></svg>'
LENGTHS = (30, 60, 75)
PAGE = (
    '<p><a href="#fig-toy">Fig. 91.1</a></p><figure class="align-default" id="fig-toy"><img alt="x" src="../a.svg"/>'
    "<figcaption><p>A bar.</p></figcaption></figure><figure id='other'></figure>"
)


def with_frames(toy: Toy) -> None:
    """Give the toy's figure a knob: three bars, of which the middle one is the figure."""
    folder = toy.done("91_alpha") / "figures"
    frames = []
    for index, length in enumerate(LENGTHS):
        name = "fig-toy.svg" if index == 1 else f"fig-toy.{index}.svg"
        (folder / name).write_text(SVG.format(length))
        alt = f"Bar chart with one bar of length {length}."
        frames.append({"text": f"{length} %", "fact": f"it is </script> {length} long", "alt": alt, "image": name})
    about = json.loads((folder / "fig-toy.json").read_text())
    about["slider"] = {"knob": "length of the bar", "start": 1, "frames": frames}
    (folder / "fig-toy.json").write_text(json.dumps(about))


# The same from a cell of the toy, before anybody looks whether files were changed by hand.
CELL = f"""
{FIGURE}
for index, length in ((0, {LENGTHS[0]}), (2, {LENGTHS[2]})):
    (folder / f"fig-toy.{{index}}.svg").write_text({SVG!r}.format(length))
about["slider"] = {{"knob": "length of the bar", "start": 1, "frames": [
    {{"text": f"{{length}} %", "fact": f"it is </script> {{length}} long",
     "alt": f"Bar chart with one bar of length {{length}}.", "image": name}}
    for length, name in zip({LENGTHS}, ("fig-toy.0.svg", "fig-toy.svg", "fig-toy.2.svg"))
]}}
_ = (folder / "fig-toy.json").write_text(json.dumps(about))
"""


def told_on(page: str) -> dict[str, Any]:
    (script,) = BeautifulSoup(page, "html.parser").select("figure#fig-toy + script.frames[type='application/json']")
    return dict(json.loads(script.get_text()))


def test_a_site_with_a_slider(executed: Toy) -> None:
    executed.chapter("91_alpha", CELL, "Text\n\nSee {numref}`fig-toy`.")
    result = executed.cli("book", "--scale", "smoke")
    assert result.returncode == 0, result.stdout
    html = executed.root / "_build" / "html"
    page = html / "chapters" / "91_alpha.html"
    told = told_on(page.read_text())
    assert (told["id"], told["knob"], told["start"]) == ("fig-toy", "length of the bar", 1)
    assert [frame["text"] for frame in told["frames"]] == [f"{length} %" for length in LENGTHS]
    assert [frame["fact"] for frame in told["frames"]] == [f"it is </script> {length} long" for length in LENGTHS]
    for frame, length in zip(told["frames"], LENGTHS, strict=True):
        assert frame["alt"] == f"Bar chart with one bar of length {length}."
        if length == LENGTHS[1]:
            assert frame["source"] is None, "the still is on the page"
        else:
            assert (page.parent / frame["source"]).resolve().read_text() == SVG.format(length)
    assert len(list((html / FRAMES).iterdir())) == 2
    soup = BeautifulSoup(page.read_text(), "html.parser")
    (image,) = soup.select("figure img")
    assert image["alt"] == "Bar chart with one bar of length 60.", "without scripts there is the still alone"
    assert soup.select("input[type=range]") == []
    assert any("sliders.js" in str(script.get("src")) for script in soup.select("script"))
    assert any("sliders.css" in str(link.get("href")) for link in soup.select("link"))
    # What a preview shows of the figure is the still.
    previews = (html / "previews" / "chapters" / "91_alpha.js").read_text()
    assert "fig-toy" in previews
    assert "frames" not in previews


def test_a_page_that_does_not_show_the_figure(executed: Toy, tmp_path: Path) -> None:
    with_frames(executed)
    page = tmp_path / "html" / "chapters" / "91_alpha.html"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE)
    (page.parent / "92_beta.html").write_text(PAGE)
    write_pictures(Book(executed.root), tmp_path / "html", Book(executed.root).chapters())
    assert told_on(page.read_text())["frames"][0]["source"] == f"../{FRAMES}/fig-toy.0.svg"
    assert page.read_text().endswith("</script>\n<figure id='other'></figure>")
    page.write_text(PAGE.replace('id="fig-toy"', ""))
    with pytest.raises(BookError, match=r"91_alpha.ipynb: fig-toy has a slider, but stands on the page as no figure"):
        write_pictures(Book(executed.root), tmp_path / "html", Book(executed.root).chapters())


def test_figures_without_a_knob_leave_the_page_alone(executed: Toy, tmp_path: Path) -> None:
    pages = [tmp_path / "chapters" / f"{name}.html" for name in ("91_alpha", "92_beta")]
    pages[0].parent.mkdir()
    for page in pages:
        page.write_text(PAGE)
    write_pictures(Book(executed.root), tmp_path, Book(executed.root).chapters())
    assert [page.read_text() for page in pages] == [PAGE, PAGE]
    assert list(tmp_path.glob("frames")) == []
