"""The decode gate in processes of its own: a picture that crashes or hangs its decoder takes the
process with it, not the service, and gets a reason of its own."""

from __future__ import annotations

import multiprocessing
import os
import queue
import resource
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from preprocess.limits import Limits
from service import settings

OTHER = "application/octet-stream"
MEMORY = 4 * 1024**3
"""Bytes of addresses that one decoding process may have."""
_START_S = 120.0
"""A new process loads its libraries first; on a machine under load that takes its time."""

MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WebP": "image/webp",
    "TIFF": "image/tiff",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "HEIC": "image/heic",
    "AVIF": "image/avif",
    "JPEG 2000": "image/jp2",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What the gate says of a file: its media type when it is a picture, else a code and a reason."""

    media_type: str = ""
    code: str = ""
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether it is a picture that the service can work with."""
        return not self.code


DIED = Judged(code="damaged", reason="damaged image (it crashed its decoder)")
SLOW = Judged(code="too_slow", reason="image takes too long to decode")


class Decoders:
    """Processes that decode pictures by their paths, made when the first is asked for. Safe in
    threads; as many as ``processes`` pictures are decoded at a time."""

    def __init__(self, limits: Limits, processes: int = 0, seconds: float = 60.0) -> None:
        """``seconds`` is what one picture may take. ``processes`` 0: one a core."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        self._limits, self._seconds = limits, seconds
        self.processes = processes or cores
        self._idle: queue.Queue[_Decoder | None] = queue.Queue()
        self._closed = threading.Event()
        for _ in range(self.processes):
            self._idle.put(None)

    def judge(self, path: Path) -> Judged:
        """Decode the file at ``path``; never raises for what is in it."""
        decoder = self._idle.get()
        try:
            if decoder is None or not decoder.alive:
                decoder = _Decoder(self._limits)
            try:
                found = decoder.judge(path, self._seconds)
            except (EOFError, OSError):
                found = DIED
            if found in (DIED, SLOW):
                decoder.end()
                decoder = None
            return found
        finally:
            if decoder is not None and self._closed.is_set():
                decoder.end()
                decoder = None
            self._idle.put(decoder)

    def close(self) -> None:
        """End the processes; one at work ends with its picture."""
        self._closed.set()
        while True:
            try:
                decoder = self._idle.get_nowait()
            except queue.Empty:
                break
            if decoder is not None:
                decoder.end()
        for _ in range(self.processes):
            self._idle.put(None)


class _Decoder:
    """One process and the pipe to it."""

    def __init__(self, limits: Limits) -> None:
        # spawn: a forked copy of a process with running threads can hang for ever
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(far, limits), daemon=True, name="decoder"
        )
        self._process.start()
        far.close()
        self._started = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.is_alive()

    def judge(self, path: Path, seconds: float) -> Judged:
        """Ask it. Raises EOFError or OSError when it has died."""
        if not self._started:
            if not self._pipe.poll(_START_S):
                return SLOW
            self._pipe.recv()
            self._started = True
        self._pipe.send(str(path))
        if not self._pipe.poll(seconds):
            return SLOW
        found: Judged = self._pipe.recv()
        return found

    def end(self) -> None:
        """End the process at once."""
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, limits: Limits) -> None:
    """In the new process: decode until the pipe is closed."""
    settings.pin_threads()
    import cv2

    from domain.errors import PictureRejected
    from preprocess.decode import open_picture
    from service.native import silence_native_chatter

    silence_native_chatter()
    cv2.setNumThreads(1)
    # a file that wants more gets MemoryError, which the gate turns into a reason
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    try:
        pipe.send("ready")
        while True:
            path = Path(pipe.recv())
            try:
                kind = open_picture(path, limits).facts.format
                judged = Judged(media_type=MEDIA_TYPES.get(kind, OTHER))
            except PictureRejected as error:
                judged = Judged(code=error.code, reason=error.reason)
            pipe.send(judged)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the service has gone
