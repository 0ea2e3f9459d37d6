"""A Sphinx extension: the search of the site lists pages that explain before names of the package.

The script that does it also shows of each page where the words stand.  The setting for it wants a path, and takes it
from the folder in which the builder was started.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

SCORER = Path(__file__).with_name("search_scorer.js")


def set_scorer(app: Sphinx, config: Config) -> None:
    """Name the script by its whole path."""
    config.html_search_scorer = str(SCORER)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set the scorer before the builder looks for it."""
    app.connect("config-inited", set_scorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
