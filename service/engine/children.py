"""Processes that work beside this one: started again when they die, gone when it goes.

Each holds the reading end of a pipe whose other end is here. When this process ends, in whatever
way, the pipe closes, and that is how a child learns of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import service

STEADY_S = 30.0
"""A child that lived this long is started again at once."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LOOK_S = 0.2
_ROOT = str(Path(service.__file__).resolve().parents[1])
_START = f"import sys; sys.path.append({_ROOT!r}); from service.cli.main import run; run()"


def command(*arguments: str) -> list[str]:
    """The command line that runs ``likeness`` with these arguments, as this process runs it."""
    return [sys.executable, "-P", "-c", _START, *arguments]


@dataclass
class _Child:
    place: str
    name: str = ""
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    next_at: float = 0.0
    pause: float = FIRST_PAUSE
    owes: list[str] = field(default_factory=list)


class Children:
    """``count`` children. ``line(name)`` is a child's command line; ``died(name)`` is told of each
    one that ended, again until it succeeds."""

    def __init__(
        self,
        count: int,
        line: Callable[[str], Sequence[str]],
        died: Callable[[str], object],
        say: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line, self._died, self._say, self._clock = line, died, say, clock
        self._children = [_Child(f"{os.getpid()}-{n}") for n in range(1, count + 1)]
        self._over = threading.Event()
        for child in self._children:
            self._start(child)
        self._thread = threading.Thread(target=self._watch, name="children", daemon=True)
        self._thread.start()

    def pids(self) -> list[int]:
        """The processes that live."""
        found = [child.process for child in self._children]
        return [p.pid for p in found if p is not None and p.poll() is None]

    def close(self, seconds: float) -> None:
        """Ask each to end, wait ``seconds`` for all together, then end those that are left."""
        self._over.set()
        self._thread.join()
        living = [c.process for c in self._children if c.process is not None]
        for process in living:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        ends = self._clock() + seconds
        for process in living:
            try:
                process.wait(max(0.1, ends - self._clock()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close(process)
        for child in self._children:
            child.owes.append(child.name)
            self._pay(child)

    def _start(self, child: _Child) -> None:
        child.began = self._clock()
        child.starts += 1  # a name of its own, or its predecessor's death could be told of it
        child.name = f"{child.place}-{child.starts}"
        # In a session of its own: Ctrl-C is for this process, which ends its children in order
        child.process = subprocess.Popen(  # noqa: S603 - our own program
            self._line(child.name), stdin=subprocess.PIPE, stderr=_log(), start_new_session=True
        )

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            for child in self._children:
                self._look(child)

    def _look(self, child: _Child) -> None:
        self._pay(child)
        if child.process is not None:
            status = child.process.poll()
            if status is None:
                return
            _close(child.process)
            child.process = None
            child.owes.append(child.name)
            steady = self._clock() - child.began >= STEADY_S
            child.next_at = self._clock() + (0.0 if steady else child.pause)
            child.pause = FIRST_PAUSE if steady else min(LONGEST_PAUSE, 2 * child.pause)
            self._say(f"worker {child.name} ended ({_status(status)}); another takes its place")
            self._pay(child)
        elif self._clock() >= child.next_at:
            self._start(child)

    def _pay(self, child: _Child) -> None:
        """Tell of a death. Where that cannot be written down now, try at the next look."""
        try:
            for name in child.owes:
                self._died(name)
            child.owes.clear()
        except Exception as error:
            if self._over.is_set():
                self._say(f"worker {child.name}: {error}")


def _log() -> int | None:
    """Where this process writes its log, which need not be descriptor 2 (``service.native``)."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # closed, or not a file at all
        return None


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _close(process: subprocess.Popen[bytes]) -> None:
    pipe = process.stdin
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()


def end_with_parent(end: Callable[[], object], seconds: float) -> None:
    """In a child: once its standard input closes, because whoever started it is gone, call ``end``
    and leave after ``seconds`` at the latest. Returns at once."""

    def wait() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock a thread must not hold at the end
            pass
        end()
        time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
