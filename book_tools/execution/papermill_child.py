"""Execute one notebook with papermill, and stop as soon as the process that asked for it is gone.

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

GRACE_SECONDS = 5.0


def _stop_with_parent() -> None:
    """Wait for the end of standard input, then interrupt; papermill takes its kernel down with it."""
    # The descriptor itself: a buffered reader's lock would be held when the interpreter shuts down.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(130)


def main(source: str, target: str, working_folder: str, parameters: str) -> int:
    """Execute ``source`` into ``target``; return 0 when every cell ran."""
    # A process started in the background may have inherited a SIGINT that is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    import papermill  # type: ignore[import-untyped]
    from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]

    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=json.loads(parameters),
            kernel_name="python3",
            cwd=working_folder,
            progress_bar=False,
            log_output=False,
        )
    except PapermillExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
