"""Where the cells of a long run are computed: in processes of this machine, or on a dask cluster at an address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cfltr_book.legacy import digests

# Seconds until the scheduler at an address must have answered, and a first worker must be there.
PATIENCE = 30
START = "start each with 'OMP_NUM_THREADS=1 dask worker ADDRESS --nthreads 1'"


@contextmanager
def workers(address: str | None, *, jobs: int, store: Path, variables: Mapping[str, str]) -> Iterator[int]:
    """Let joblib compute on ``jobs`` processes here, or on the cluster at ``address``; yields how many workers.

    A cluster's workers read and write the same ``store``, on a disk that all machines share, so that a worker that
    dies loses only the cell that it was at; ``variables`` are set in their environment.  Each must have this very
    package and one thread: then a cell gives the same numbers there as here.

    Raises
    ------
    ValueError
        Before any cell: when dask is not installed, nobody answers at ``address``, or a worker has other code, another
        disk or several threads.  The message names the worker and the remedy.
    """
    from joblib import parallel_config

    if not address:
        with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            yield jobs
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("cluster: dask is not installed here; pip install 'distributed' (make setup has it)") from None
    try:
        client: Any = Client(address, timeout=PATIENCE)  # type: ignore[no-untyped-call]
        client.wait_for_workers(1, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(
            f"cluster: no scheduler with workers at {address!r} ({type(error).__name__}: {error}); start one with "
            f"'dask scheduler', and its workers; {START}"
        ) from None
    store.mkdir(parents=True, exist_ok=True)
    with client, NamedTemporaryFile(dir=store, prefix="probe-") as probe:
        _prepare(client, probe.name, variables)
        with parallel_config(backend="dask"):
            yield len(client.scheduler_info(n_workers=-1)["workers"])


def problem_of_worker(threads: int, *, code: str, probe: str) -> str | None:
    """What is not the same on the worker that asks: the ``code``, the disk (where ``probe`` lies), or one thread."""
    if digests.package_digest() != code:
        return "has other code of the book's packages; install there the revision of here"
    if not Path(probe).is_file():
        return f"does not see {Path(probe).parent}; work in a folder that all machines share"
    pool = os.environ.get("OMP_NUM_THREADS", "not set")
    if threads != 1 or pool != "1":
        return (
            f"has {threads} threads and OMP_NUM_THREADS {pool}: expected 1 and 1, so that the number of workers "
            f"changes no digit; {START}"
        )
    return None


def _prepare(client: Any, probe: str, variables: Mapping[str, str]) -> None:
    """Check and set up every worker: those that are there, and those that join or are started again later."""
    from distributed import WorkerPlugin

    code, module = digests.package_digest(), __name__

    class Prepared(WorkerPlugin):
        """Of this function, so that it travels whole: a worker may lack this package, which is to be said."""

        name = "cfltr"

        def setup(self, worker: Any) -> None:
            try:
                there = import_module(module)
            except ImportError as error:
                problem: str | None = f"lacks {error.name}; install this package there, the same revision"
            else:
                problem = there.problem_of_worker(worker.state.nthreads, code=code, probe=probe)
            if problem:
                raise ValueError(f"cluster: worker {worker.address} {problem}")
            os.environ.update(variables)

    client.register_plugin(Prepared())
