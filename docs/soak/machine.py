"""What the processes of a service hold, and those that it left behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

MB = 1024 * 1024


def tree_mb(pid: int, without: list[int] | None = None) -> float:
    """Resident MB of a process and all under it; 0 where it is gone."""
    skip = set(without or [])
    with suppress(psutil.Error):
        top, total = psutil.Process(pid), 0.0
        waiting = [top]
        while waiting:
            one = waiting.pop()
            with suppress(psutil.Error):
                total += one.memory_info().rss / MB
                waiting += [p for p in one.children() if p.pid not in skip]
        return total
    return 0.0


def left_behind(home: Path) -> list[str]:
    """Processes whose environment names ``home``: what a service that was closed must not leave."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mine = process.environ().get("LIKENESS_HOME") == str(home)
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[-80:])
    return found
