"""What several wings of the pipeline use: problems that are listed together, and digests."""

from pathlib import Path

import pytest

from book_tools.errors import BookError, UsageError, for_each
from book_tools.files import digests_below


def test_one_error_lists_the_problems_of_all() -> None:
    def half(number: int) -> int:
        if number % 2:
            raise BookError(f"{number} is odd")
        return number // 2

    assert for_each([2, 4], half) == [1, 2]
    with pytest.raises(UsageError) as raised:
        for_each([1, 2, 3], half, UsageError, "2 problems")
    assert raised.value.problems == ("1 is odd", "3 is odd", "2 problems")


def test_a_digest_belongs_to_the_content_and_the_path(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name, text in (("a", "x"), ("below/b", "x"), ("below/c", "y"), ("below/stamp", "z")):
        (tmp_path / name).write_text(text)
    digests = digests_below(tmp_path, "stamp")
    assert list(digests) == ["a", "below/b", "below/c"]
    assert digests["a"] == digests["below/b"] != digests["below/c"]
