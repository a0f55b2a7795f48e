"""One exiftool process kept open, asked many times, replaced when it dies or hangs.

Written on the plain protocol (``-stay_open True -@ -``, answers end in ``{ready1}``) and not on
PyExifTool, whose reader loops for ever when the process dies while answering: a hostile picture must
cost one answer and no more.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from domain.errors import LikenessError
from preprocess import programs

ANSWER_SECONDS = 30.0
_READY = b"{ready1}\n"
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """In the new process: end with its parent. A stay-open exiftool waits for ever otherwise, even
    when its input has been closed by the parent's death."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class ExifToolProcess:
    """Runs exiftool commands one after another. Not for sharing between threads.

    Raises LikenessError when the program is absent, cannot be started, dies or takes longer than
    ``seconds`` over one command; the next command then starts a new process.
    """

    def __init__(self, program: str | None = None, seconds: float = ANSWER_SECONDS) -> None:
        self._program, self._seconds = program, seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while one is running."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def ask(self, *arguments: str) -> bytes:
        """Standard output of one command. No argument may hold a line break."""
        if any("\n" in a or "\r" in a for a in arguments):
            raise ValueError("exiftool takes one argument a line")
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write("\n".join([*arguments, "-execute1", ""]).encode())
            process.stdin.flush()
            return self._answer(process)
        except OSError as error:
            self.close()
            raise LikenessError(f"exiftool stopped working ({error})") from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        program = self._program or str(programs.exiftool() or "")
        if not program:
            raise LikenessError(f"exiftool is not installed ({programs.EXIFTOOL_REMEDY})")
        command = [program, "-stay_open", "True", "-@", "-", "-common_args"]
        command += ["-charset", "filename=utf8", "-q", "-q", "-m"]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a fixed argument list, no shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                preexec_fn=_die_with_parent if _LIBC else None,  # noqa: PLW1509 - calls libc alone
            )
        except OSError as error:
            raise LikenessError(f"exiftool cannot be started: {error}") from error
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        answer, until = b"", time.monotonic() + self._seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not answer.endswith(_READY):
                if not selector.select(max(0.0, until - time.monotonic())):
                    self.close()
                    raise LikenessError(f"exiftool took longer than {self._seconds:g} s")
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    self.close()
                    raise LikenessError("exiftool died while reading this file")
                answer += chunk
        return answer[: -len(_READY)]

    def close(self) -> None:
        """End the process. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user may read: it may hold personal metadata."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
        file.write(data)
