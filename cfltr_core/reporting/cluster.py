"""Where the cells of a long run are computed: in processes of this machine, or on a dask cluster at an address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cfltr_core.reporting import digests

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
    with client:
        _same_everywhere(client, store)
        client.run(os.environ.update, dict(variables))
        with parallel_config(backend="dask"):
            yield len(client.scheduler_info(n_workers=-1)["workers"])


def about_worker(probe: str) -> dict[str, Any]:
    """What must be the same on every worker: the code, the disk (whether ``probe`` is there), and one thread."""
    return {
        "code": digests.package_digest(),
        "disk": Path(probe).is_file(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
    }


def _same_everywhere(client: Any, store: Path) -> None:
    store.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=store, prefix="probe-") as probe:
        try:
            found = client.run(about_worker, probe.name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"cluster: a worker lacks {error.name}; install this package there, the same revision"
            ) from None
    here = digests.package_digest()
    threads = {name: worker["nthreads"] for name, worker in client.scheduler_info(n_workers=-1)["workers"].items()}
    for worker, about in sorted(found.items()):
        if about["code"] != here:
            raise ValueError(
                f"cluster: worker {worker} has other code of cfltr_core; install there the revision of here"
            )
        if not about["disk"]:
            raise ValueError(f"cluster: worker {worker} does not see {store}; work in a folder that all machines share")
        if about["threads"] != "1" or threads[worker] != 1:
            raise ValueError(
                f"cluster: worker {worker} has {threads[worker]} threads and OMP_NUM_THREADS {about['threads']}: "
                f"expected 1 and 1, so that the number of workers changes no digit; {START}"
            )
