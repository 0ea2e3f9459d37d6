"""A worker of a cluster is asked first whether it computes the same as this machine."""

from pathlib import Path

import pytest

from cfltr_book.legacy import digests
from cfltr_book.legacy.cluster import problem_of_worker


def test_what_a_worker_must_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, probe = digests.package_digest(), tmp_path / "probe"
    probe.touch()
    for threads, pool, other, lost, problem in (
        (1, "1", code, probe, "None"),
        (1, "1", "0", probe, "has other code of the book's packages"),
        (1, "1", code, tmp_path / "else" / "probe", f"does not see {tmp_path / 'else'}"),
        (2, "1", code, probe, "has 2 threads and OMP_NUM_THREADS 1: expected 1 and 1"),
        (1, "2", code, probe, "has 1 threads and OMP_NUM_THREADS 2: expected 1 and 1"),
    ):
        monkeypatch.setenv("OMP_NUM_THREADS", pool)
        assert str(problem_of_worker(threads, code=other, probe=str(lost))).startswith(problem)
