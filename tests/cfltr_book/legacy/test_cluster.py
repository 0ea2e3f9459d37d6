"""Where cells are computed: here, or on a cluster each of whose workers is asked first whether it is the same."""

from __future__ import annotations

import os
from pathlib import Path

import joblib
import pytest

from cfltr_book.legacy import digests
from cfltr_book.legacy.cluster import problem_of_worker, workers


def test_without_an_address_processes_of_this_machine_compute(tmp_path: Path) -> None:
    with workers(None, jobs=2, store=tmp_path, variables={}) as number:
        pids = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))
    assert number == 2
    assert os.getpid() not in pids
    with workers("", jobs=1, store=tmp_path, variables={}) as number:
        assert joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(2)) == [os.getpid()] * 2
    assert number == 1


def test_what_a_worker_must_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    probe = tmp_path / "store" / "probe"
    probe.parent.mkdir()
    probe.touch()
    code = digests.package_digest()
    assert problem_of_worker(1, code=code, probe=str(probe)) is None
    for threads, other, lost, said in (
        (1, "0", probe, "has other code of the book's packages; install there"),
        (1, code, tmp_path / "else" / "probe", f"does not see {tmp_path / 'else'}; work in a folder that all"),
        (
            2,
            code,
            probe,
            "has 2 threads and OMP_NUM_THREADS 1: expected 1 and 1, so that the number of workers changes",
        ),
    ):
        assert said in str(problem_of_worker(threads, code=other, probe=str(lost)))
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert "has 1 threads and OMP_NUM_THREADS not set" in str(problem_of_worker(1, code=code, probe=str(probe)))


def test_nobody_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("cfltr_book.legacy.cluster.PATIENCE", 1)
    refused = pytest.raises(ValueError, match=r"no scheduler with workers at 'tcp://127.0.0.1:9'.*dask worker ADDRESS")
    with refused, workers("tcp://127.0.0.1:9", jobs=1, store=tmp_path, variables={}):
        pass
