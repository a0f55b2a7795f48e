"""One measuring process of the gate's pool, as its owner sees it: ask, renew, end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import psutil

from preprocess.limits import Limits
from service.engine.gate_process import GateAnswer, Pair, receive, send, serve
from service.gate import ExitCode

GLANCE_S = 0.25
"""How often a waiting thread looks whether its pair is still wanted. An answer wakes it at once."""
START_S = 120.0
"""A process that is not ready by then is taken for dead: loading models takes seconds."""
STALL_S = 5
"""A process that takes or gives nothing of a message for so long is frozen: taken for dead."""
MB = 1024 * 1024


class Died(Exception):
    """The process ended before it answered."""


class TooSlow(Exception):
    """The pair's time is over."""


@dataclass(frozen=True, slots=True)
class Room:
    """What the pool may use. ``waiting`` pairs and ``waiting_bytes`` of pictures may queue;
    ``pair_s`` is the time one pair may take, ``abandoned_s`` what it may still take once nobody
    waits for it; a process is replaced after ``recycle`` pairs or above ``process_bytes``."""

    processes: int
    waiting: int = 32
    waiting_bytes: int = 256 * MB
    pair_s: float = 60.0
    abandoned_s: float = 2.0
    recycle: int = 5_000
    process_bytes: int = 1536 * MB


@dataclass(eq=False)
class _Running:
    process: SpawnProcess
    link: Connection
    pairs: int = 0

    def end(self) -> None:
        self.link.close()
        self.process.kill()  # at once: whoever ends it has no use for what it is doing
        self.process.join()
        self.process.close()


class Member:
    """Belongs to one thread. ``closing`` is set when the whole pool ends."""

    def __init__(self, models: Path, limits: Limits, room: Room, closing: threading.Event) -> None:
        self._models, self._limits, self._room, self._closing = models, limits, room, closing
        self._now: _Running | None = None
        self._next: _Running | None = None

    @property
    def pid(self) -> int | None:
        """The process that measures at the moment."""
        return self._now.process.pid if self._now else None

    def start(self) -> GateAnswer | None:
        """Be ready for a pair. None when it is; else the answer that says why it cannot be.
        Raises Died, OSError."""
        if self._now is not None and self._now.process.is_alive():
            return None
        self._end_now()
        running = self._spawn()
        try:
            self._wait(running.link, START_S, self._closing)
            answer = receive(running.link)
        except (TooSlow, EOFError, OSError, ValueError) as error:
            running.end()
            raise Died from error
        if answer.code is not ExitCode.PASS:
            running.end()
            return answer
        self._now = running
        return None

    def ask(self, pair: Pair, unwanted: threading.Event) -> GateAnswer:
        """Measure. Raises Died, TooSlow, and OSError where no process can be started; the process
        is gone then."""
        unready = self.start()
        if unready is not None:
            return unready
        running = self._now
        assert running is not None
        try:
            send(running.link, pair)
            self._wait(running.link, self._room.pair_s, unwanted)
            answer = receive(running.link)
        except (EOFError, OSError, ValueError) as error:  # gone, frozen, or babbling
            self._end_now()
            raise Died from error
        except TooSlow:
            self._end_now()
            raise
        running.pairs += 1
        return answer

    def renew(self) -> None:
        """Replace a process that has done its share or has grown. It works on until the new one is
        ready, so nobody waits for that."""
        running = self._now
        if running is None:
            return
        if self._next is None and (running.pairs >= self._room.recycle or self._has_grown(running)):
            with contextlib.suppress(OSError, Died):  # tried again after the next pair
                self._next = self._spawn()
        if self._next is not None and self._next.link.poll():
            fresh, self._next = self._next, None
            try:
                ready = receive(fresh.link).code is ExitCode.PASS
            except (EOFError, OSError, ValueError):
                ready = False
            if ready:
                self._end_now()
                self._now = fresh
            else:
                fresh.end()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._end_now()
        if self._next is not None:
            self._next.end()
            self._next = None

    def _end_now(self) -> None:
        if self._now is not None:
            self._now.end()
            self._now = None

    def _spawn(self) -> _Running:
        if self._closing.is_set():
            raise Died
        # spawn: a forked copy of a process with running threads can hang for ever
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, self._models, self._limits), daemon=True, name="gate"
        )
        try:
            process.start()
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()  # so that its end is the end of the pipe
        _bound(ours)
        return _Running(process, ours)

    def _wait(self, link: Connection, seconds: float, unwanted: threading.Event) -> None:
        """Until there is something to read. Raises TooSlow."""
        until = time.monotonic() + seconds
        while not link.poll(max(0.0, min(GLANCE_S, until - time.monotonic()))):
            now = time.monotonic()
            if unwanted.is_set() or self._closing.is_set():
                until = min(until, now + self._room.abandoned_s)
            if now >= until:
                raise TooSlow

    def _has_grown(self, running: _Running) -> bool:
        try:
            resident: int = psutil.Process(running.process.pid).memory_info().rss
        except psutil.Error:
            return False
        return resident > self._room.process_bytes


def _bound(link: Connection) -> None:
    """Let no write to, or read from, a frozen process last for ever: both then raise OSError."""
    seconds = struct.pack("ll", STALL_S, 0)
    # an option belongs to the socket, not to the descriptor: setting it on a copy sets it on both
    with socket.socket(fileno=os.dup(link.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
