"""The status of a build says what the run recorded, and counts what is compared."""

from __future__ import annotations

from toy import Toy

from book_tools.book import Book
from book_tools.execution import times as machines
from book_tools.files import json_text, read_json
from book_tools.parameters import Parameters
from book_tools.site.status import status

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
    for words in (
        "the 0 verdicts with",
        "the 1 figures and the 1 recorded numbers",
        "Of the 0 kept tables",
    ):
        assert words in text
