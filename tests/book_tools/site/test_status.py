"""The status of a build says what the run recorded, and counts what is compared."""

from __future__ import annotations

import re
import subprocess

import pytest
from toy import Toy

from book_tools.book import Book
from book_tools.execution import times as machines
from book_tools.files import json_text, read_json
from book_tools.parameters import Parameters
from book_tools.site.status import status

SMOKE = Parameters("smoke")


def test_it_says_where_each_chapter_ran_and_how_many_at_a_time(executed: Toy) -> None:
    book = Book(executed.root)
    recorded = read_json(book.times)
    here = {"machine": machines.machine(), "jobs": 2}
    assert {name: about.items() >= here.items() for name, about in recorded.items()} == {
        "91_alpha": True,
        "92_beta": True,
    }
    assert f"On {here['machine']}; 2 chapters at a time: 91, 92." in status(book, SMOKE)
    elsewhere = {"seconds": 1.0, "machine": "Elsewhere, 64 cores", "jobs": 1}
    book.times.write_text(json_text({**recorded, "92_beta": elsewhere}))
    text = status(book, SMOKE)
    assert f"On {here['machine']}; 2 chapters at a time: 91. On Elsewhere, 64 cores; one chapter at a time: 92." in text
    book.times.unlink()
    assert "chapters at a time" not in status(book, SMOKE)


def test_a_machine_in_words_has_no_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    words = machines.machine()
    assert re.fullmatch(r"\w+ \([\w-]+\), .*\b\d+ cores, \d+ GiB of memory", words)
    monkeypatch.setattr(machines.platform, "node", lambda: pytest.fail("the name of the host is nobody's business"))
    assert machines.machine() == words
    monkeypatch.setattr(machines, "CPUINFO", machines.Path("/nowhere"))
    monkeypatch.setattr(machines.platform, "processor", lambda: "")
    assert ", , " not in machines.machine()


def test_the_day_of_the_revision_and_what_is_compared(executed: Toy) -> None:
    book = Book(executed.root)
    assert "Revision: not under version control.\n" in status(book, SMOKE)
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "x"]):
        name = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        subprocess.run(["git", "-C", str(executed.root), *name, *command], check=True)
    shown = subprocess.run(
        ["git", "-C", str(executed.root), "show", "-s", "--format=%H %cs"], capture_output=True, text=True, check=True
    )
    revision, day = shown.stdout.split()
    manifest = read_json(book.manifest)
    book.manifest.write_text(json_text({**manifest, "revision": revision, "dirty": False}))
    text = status(book, SMOKE)
    assert f"Revision: {revision} of {day}.\n" in text
    assert text == status(book, SMOKE)
    book.manifest.write_text(json_text({**manifest, "revision": "0" * 40, "dirty": True}))
    assert f"Revision: {'0' * 40}, with uncommitted changes.\n" in status(book, SMOKE)
    assert "the 0 verdicts with" in text
    assert "the data of the 1 figures and the 1 recorded numbers" in text
    assert "Of the 0 kept tables" in text
    assert "| sum over the chapters |" in text
