"""A PostgreSQL of one's own that can be killed, frozen, stopped and started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.service.conftest import PostgresServer


def runs(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class Postgres:
    """The server, started again when its first process has died; until closed."""

    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer(folder)
        self._server.say("CREATE DATABASE soak")
        self.url = self._server.url("soak")
        self.starts = 1
        self._over, self._held = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            if not self._held.is_set() and not runs(self._server.pid):
                self._again()

    def _again(self) -> None:
        """Its other processes may take a moment to see that the first is gone."""
        while not self._over.is_set():
            with suppress(Exception):
                self._server.start()
                self.starts += 1
                return
            time.sleep(0.5)

    def kill(self) -> bool:
        """kill -9 of the first process. False: it is not there at this moment."""
        if not runs(self._server.pid):
            return False
        os.kill(self._server.pid, signal.SIGKILL)
        return True

    def kill_one(self) -> bool:
        """kill -9 of a process that serves a connection: the server then restarts itself."""
        with suppress(psutil.Error):
            for child in psutil.Process(self._server.pid).children():
                if " soak " in " ".join(child.cmdline()):
                    child.kill()
                    return True
        return False

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Stopped for as long as the block lasts."""
        self._held.set()
        self._server.stop()
        try:
            yield
        finally:
            self._again()
            self._held.clear()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All its processes stand still for as long as the block lasts."""
        top = psutil.Process(self._server.pid)
        there = [top, *top.children(recursive=True)]
        for process in there:
            with suppress(psutil.Error):
                process.suspend()
        try:
            yield
        finally:
            for process in reversed(there):
                with suppress(psutil.Error):
                    process.resume()

    def close(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()
        self._server.stop()
