"""A real service for the checks of this folder: ``likeness serve`` as its own process, on a free port,
with a home, a key and a log of its own, and somebody who watches its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

REPO = Path(__file__).resolve().parents[2]
SCOPES = ("submit", "read", "review", "admin")
LOOK_S = 0.1
_ADDRESS = re.compile(r"likeness: (http://\S+)/v1")


class RealServer:
    """Use as a context manager. ``url`` and ``key`` are for clients; ``log`` is what it wrote."""

    def __init__(self, home: Path, workers: int = 1) -> None:
        """Starts it; its home must be empty. Raises RuntimeError when it does not come up."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log = home / "serve.log"
        self._environment = {**os.environ, "LIKENESS_HOME": str(home), "OMP_NUM_THREADS": "1"}
        for name in (
            "LIKENESS_DATABASE",
            "LIKENESS_BLOBS",
            "LIKENESS_SECRET_FILE",
            "LIKENESS_TOKEN",
        ):
            self._environment.pop(name, None)
        scopes = [part for scope in SCOPES for part in ("--scope", scope)]
        made = self._run("keys", "add", "checks", *scopes)
        self.key = made.stdout.strip()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._line("serve", "--port", "0", "--workers", str(workers)),
                env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        self.url = self._address()
        self.memory = Memory(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process that was started still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it and the processes that it started."""
        self.memory.close()
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _line(self, *arguments: str) -> list[str]:
        return [str(Path(sys.executable).with_name("likeness")), *arguments]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._line(*arguments),
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )

    def _address(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := _ADDRESS.search(line):
                return found[1]
        raise RuntimeError(f"the service did not come up: {self.log.read_text('utf-8')[-500:]}")


class Memory:
    """The resident memory of a process and all its children, added up, looked at ten times a second.
    Pages that they share count once for each: the sum errs on the side of too much."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.peak = self.now()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._thread.start()

    def now(self) -> int:
        """Bytes at this moment, 0 when the process is gone."""
        total = 0
        try:
            family: Sequence[psutil.Process] = [
                self._process, *self._process.children(recursive=True)
            ]  # fmt: skip
        except psutil.Error:
            return 0
        for process in family:
            try:
                total += process.memory_info().rss
            except psutil.Error:  # ended this moment
                continue
        return total

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self.peak = max(self.peak, self.now())
