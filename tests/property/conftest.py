"""Hypothesis with a fixed sequence of examples: the same run everywhere, nothing stored."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("book", derandomize=True, deadline=None, database=None, max_examples=200, print_blob=False)
settings.load_profile("book")
