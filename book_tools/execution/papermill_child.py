"""Execute one notebook with papermill, and stop as soon as the process that asked for it is gone.

A kernel that dies before it was ready is started again: its free ports are looked for before it binds them, so that
another program may take one in between, and no cell has run by then.

Run as a script by :mod:`book_tools.execution.execute`, with a pipe as standard input that nobody writes to: it ends
when the parent closes it or dies, however it dies.  Without that an orphan would go on computing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

GRACE_SECONDS = 5.0
KERNEL_STARTS = 3
# What jupyter_client says of a kernel that never came up; one that dies later is "Kernel died" alone.
NEVER_READY = "Kernel died before replying to kernel_info"


def _stop_with_parent() -> None:
    """Wait for the end of standard input, then interrupt; papermill takes its kernel down with it."""
    # The descriptor itself: a buffered reader's lock would be held when the interpreter shuts down.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(130)


def with_a_kernel(execute: Callable[[], None]) -> None:
    """Execute; and again, a few times, where the kernel did not come up."""
    for starts_left in reversed(range(KERNEL_STARTS)):
        try:
            execute()
        except RuntimeError as error:
            if NEVER_READY not in str(error) or not starts_left:
                raise
            print(f"{error}: trying again", file=sys.stderr)
        else:
            return


def main(source: str, target: str, working_folder: str, parameters: str, progress: str) -> int:
    """Execute ``source`` into ``target``, and write into ``progress`` how many cells ran; return 0 when all did."""
    # A process started in the background may have inherited a SIGINT that is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    import papermill  # type: ignore[import-untyped]
    from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]

    def execute() -> None:
        papermill.execute_notebook(
            source,
            target,
            parameters=json.loads(parameters),
            kernel_name="python3",
            cwd=working_folder,
            progress_bar={"file": stream, "bar_format": "{n_fmt} of {total_fmt}", "mininterval": 0.0},
            log_output=False,
        )

    try:
        with open(progress, "w", encoding="utf-8") as stream:
            with_a_kernel(execute)
    except PapermillExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
