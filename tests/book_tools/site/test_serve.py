"""The site is served to this machine only."""

from __future__ import annotations

import re
import subprocess
import urllib.request

from toy import REPOSITORY, Toy


def test_the_site_is_served_on_the_loopback_address(toy: Toy) -> None:
    html = toy.root / "_build" / "html"
    html.mkdir(parents=True)
    (html / "index.html").write_text("the site")
    with subprocess.Popen(
        toy.command("serve", "--port", "0"),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
            with urllib.request.urlopen(address) as answer:
                assert answer.read() == b"the site"
        finally:
            # Otherwise a failure above would wait for the server for ever.
            server.terminate()


def test_without_a_site_there_is_nothing_to_serve(toy: Toy) -> None:
    result = toy.cli("serve")
    assert result.returncode == 2
    assert "no site to serve; build it with 'make book'" in result.stdout
