"""``python -m cfltr_core [FOLDER]``: the claims of the book, with the verdicts recorded below FOLDER."""

import sys

from cfltr_core.reporting.claims import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
