"""What stands in docstrings of the optional extra ``logs`` is tried where the extra is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ibis") else ["cfltr_core/clicks/event*.py"]
