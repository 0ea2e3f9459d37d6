"""Entry point of ``python -m book_tools``."""

import sys

from book_tools.cli import main

sys.exit(main())
