"""Run one program for the command tool: no shell, a pared-down environment, an end in any case."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from adapters.guard import one_line

KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
STDERR_TAIL = 8192
"""Bytes of stderr kept: enough for the last line, however much a program writes."""
LONGEST_LINE = 2000
POLL_S = 0.1

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|.)")
_NAMED = r"(?:[\w-]*(?:key|token|secret|passw(?:or)?d|credential|signature)|authorization)"
_WRITTEN_SECRET = re.compile(
    rf"(?i)({_NAMED}[\"']?\s*[:=]\s*)(?:bearer\s+|basic\s+)?[\"']?[^\s\"',;]{{4,}}"
)
_SPOKEN_SECRET = re.compile(rf"(?i)((?:{_NAMED}|bearer|basic)\s+)(?=\S*\d)[^\s,;]{{4,}}")
_KEY_SHAPE = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|hf|xox[a-z]|r8|AKIA|AIza|eyJ)[-_]?[A-Za-z0-9_\-.]{12,}"
    r"|\b(?=[A-Za-z0-9+_\-]*\d)(?=[A-Za-z0-9+_\-]*[A-Za-z])[A-Za-z0-9+_\-]{28,}={0,2}"
)
_URL_LOGIN = re.compile(r"(\w+://)[^\s/@]+@")


@dataclass(frozen=True, slots=True)
class Ended:
    """``status`` is the exit status (negative: the signal). ``stopped`` says why it was ended from
    here, "" when it ended by itself. ``said`` is the last line of stderr, cleaned."""

    status: int
    stopped: str
    said: str


def run_program(
    argv: Sequence[str],
    *,
    scratch: Path,
    output: Path,
    cwd: str | None,
    pass_env: Iterable[str],
    timeout_s: float,
    max_output_bytes: int,
) -> Ended:
    """Run ``argv`` and wait; at the limit of time or output size its whole process group ends.

    The program sees PATH, HOME, language, time zone, the variables named in ``pass_env`` and
    TMPDIR (= ``scratch``). stdin is empty, stdout is dropped. Raises OSError when it cannot start.
    """
    shared = {
        name: os.environ[name] for name in (*KEPT_ENVIRONMENT, *pass_env) if name in os.environ
    }
    process = subprocess.Popen(  # noqa: S603 - an argument list of the user's own plan, no shell
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**shared, "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    assert process.stderr is not None
    tail = bytearray()
    reader = threading.Thread(target=_keep_tail, args=(process.stderr, tail), daemon=True)
    reader.start()
    try:
        stopped = _wait(process, output, timeout_s, max_output_bytes)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # and whatever it left in the background
        process.wait()
        reader.join(timeout=2)
    secrets = [shared[name] for name in pass_env if name in shared]
    heard = bytes(tail)
    if len(heard) == STDERR_TAIL:  # it may begin in the middle of a key, which none would know
        heard = heard.partition(b" ")[2]
    said = last_line(heard, secrets).replace(f"{scratch}/", "")
    return Ended(process.returncode, stopped, said)


def _wait(
    process: subprocess.Popen[bytes], output: Path, timeout_s: float, max_output_bytes: int
) -> str:
    ends = time.monotonic() + timeout_s
    while True:
        left = ends - time.monotonic()
        if left <= 0:
            return f"the program was stopped after its time limit of {timeout_s:g} s"
        try:
            process.wait(timeout=min(POLL_S, left))
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                if output.lstat().st_size > max_output_bytes:
                    return f"the program was stopped: its {{output}} grew over {max_output_bytes / 1e6:g} MB"
        else:
            return ""


def _keep_tail(pipe: IO[bytes], tail: bytearray) -> None:
    with suppress(OSError, ValueError), pipe:
        while block := os.read(pipe.fileno(), 65_536):
            tail += block
            del tail[:-STDERR_TAIL]


def last_line(stderr: bytes, secrets: Iterable[str] = ()) -> str:
    """The last line with words in it, at most 200 characters, nothing in it that looks like a key."""
    text = _ESCAPES.sub("", stderr.decode("utf-8", errors="replace"))
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    line = lines[-1][:LONGEST_LINE] if lines else ""
    for secret in sorted((s for s in secrets if len(s) >= 4), key=len, reverse=True):
        line = line.replace(secret, "[removed]")
    line = _URL_LOGIN.sub(r"\1[removed]@", line)
    for pattern in (_WRITTEN_SECRET, _SPOKEN_SECRET):
        line = pattern.sub(r"\1[removed]", line)
    return one_line(_KEY_SHAPE.sub("[removed]", line))
