"""Start the Chromium that looks at the pages, with nothing but this machine within its reach.

Chromium and its driver come from the system, in matching versions; nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from book_tools.errors import UsageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVERS = ("chromedriver", "chromium.chromedriver")
# Where some build machines keep a driver that is not on PATH.
DRIVER_FOLDER = "CHROMEWEBDRIVER"
REMEDY = "on Debian and Ubuntu: 'apt-get update && apt-get install chromium chromium-driver', as root"

FLAGS = (
    "--headless=new",
    # The pages are our own, and the sandbox does not start for root or in most containers.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    # The browser's own letters are no part of the page.
    "--disable-features=Translate,OptimizationHints,MediaRouter",
    # No name but the server's own address can be resolved: a page that needs another host shows it.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)

# Remarks by which the theme and the folding of solutions say that they work; anything else is a finding.
REMARK = re.compile(r'\S+ \d+:\d+ "\[PST\]: ')


def find_programs() -> tuple[str, str]:
    """Return the paths of the browser and of its driver, or raise with what to install."""
    folder = os.environ.get(DRIVER_FOLDER)
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), folder)))
    browser = next(filter(None, map(shutil.which, BROWSERS)), "")
    driver = next(filter(None, (shutil.which(name, path=path) for name in DRIVERS)), "")
    programs = {"Chromium": browser, "its driver (chromedriver)": driver}
    if missing := " and ".join(name for name, found in programs.items() if not found):
        raise UsageError(f"browser: {missing} not found on PATH; install both, {REMEDY}")
    return browser, driver


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Yield a headless Chromium with a fresh profile that keeps a log of its console and its requests."""
    browser, driver = find_programs()
    with tempfile.TemporaryDirectory(prefix="cfltr-browser-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={Path(profile) / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            chrome = Chrome(options=options, service=Service(executable_path=driver))
        except WebDriverException as error:
            said = (error.msg or "").strip().splitlines()[:1]
            raise UsageError(
                f"browser: {browser} did not start with {driver}: {' '.join(said) or 'no reason given'}; "
                f"install a matching pair, {REMEDY}"
            ) from None
        try:
            yield chrome
        finally:
            chrome.quit()


class _Silent(SimpleHTTPRequestHandler):
    """A handler that does not print every request."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve ``folder`` silently on a free port of the loopback address, and yield the address of its root."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def console_problems(browser: Chrome) -> Iterator[str]:
    """Yield every message of the console, whatever its level, except two scripts' remarks that all went well."""
    for entry in browser.get_log("browser"):  # type: ignore[no-untyped-call]
        if entry["level"] != "INFO" or not REMARK.match(entry["message"]):
            yield f"console {entry['level'].lower()}: {entry['message']}"
