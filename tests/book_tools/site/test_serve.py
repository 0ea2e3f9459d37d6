"""The site is served to this machine only."""

from __future__ import annotations

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
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[3])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == b"the site"
        server.terminate()


def test_without_a_site_there_is_nothing_to_serve(toy: Toy) -> None:
    result = toy.cli("serve")
    assert result.returncode == 2
    assert "no site to serve; build it with 'make book'" in result.stdout
