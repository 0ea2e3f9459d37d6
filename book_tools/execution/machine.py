"""On which machine chapters were executed, and how many at a time: beside their times, and compared by nothing."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """Return this machine in words: system, processor, cores that it gives to this process, memory; and no name."""
    parts = [f"{platform.system()} ({platform.machine()})", _processor(), f"{_cores()} cores", _memory()]
    return ", ".join(filter(None, parts))


def _processor() -> str:
    """The model as Linux names it, or what Python knows."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return " ".join((found[1] if found else platform.processor()).split())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    except (AttributeError, ValueError, OSError):
        return ""
