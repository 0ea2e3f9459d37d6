"""A figure of two panels has its row on a wide page, and its column everywhere else."""

from __future__ import annotations

from bs4 import BeautifulSoup
from toy import FIGURE, Toy

from book_tools.site.pictures import ROWS, WIDE

ROW = '<svg xmlns="http://www.w3.org/2000/svg" width="180" height="20"/>'
CELL = f"""
{FIGURE}
_ = (folder / "fig-toy.row.svg").write_text({ROW!r})
"""


def test_a_site_with_a_row(executed: Toy) -> None:
    executed.chapter("91_alpha", CELL, "Text\n\nSee {numref}`fig-toy`.")
    result = executed.cli("book", "--scale", "smoke")
    assert result.returncode == 0, result.stdout
    html = executed.root / "_build" / "html"
    page = html / "chapters" / "91_alpha.html"
    soup = BeautifulSoup(page.read_text(), "html.parser")
    (source,) = soup.select("figure#fig-toy > picture > source")
    assert source["media"] == WIDE
    assert (page.parent / str(source["srcset"])).resolve().read_text() == ROW
    (image,) = soup.select("figure#fig-toy > picture > img")
    assert image["alt"] == "Bar chart with one bar of length 60."
    assert [path.name for path in (html / ROWS).iterdir()] == ["fig-toy.row.svg"]
    # A preview is narrow.
    assert "row" not in (html / "previews" / "chapters" / "91_alpha.js").read_text()


def test_a_site_without(executed: Toy) -> None:
    assert executed.cli("book", "--scale", "smoke").returncode == 0
    assert not (executed.root / "_build" / "html" / ROWS).exists()
