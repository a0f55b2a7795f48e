"""The gate over HTTP against the bare instrument, as ratios within one run.

A real server with two measuring processes and its callers share this machine. Bare measurements and
requests take turns, so that noise meets both. The last line printed is JSON:
bare_ms          median of Instrument.measure_files on the 1024 px pairs, alone
p50_over_bare    median over the pairs of: one request / the bare measurement just before it
at               by number of callers n, who ask again as soon as they are answered:
  p50, p99_over_bare   time to answer / the same percentile of min(n, 2) bare processes at full
                       speed, times n / min(n, 2), since the rest wait in the queue
  rate_over_bare       requests a second / measurements a second of those bare processes
  requests_per_s
failed           requests that were not answered with 200
rss_mb_start, _end   resident memory of the server's processes after a warm-up and at the end
pairs            requests answered between the two
LIKENESS_BENCH_SECONDS sets the seconds of a turn (5), LIKENESS_BENCH_ROUNDS the turns at each number
of callers (5), LIKENESS_BENCH_PAIRS the requests that memory is watched over (2000).
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from multiprocessing.connection import Connection
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(Path(__file__).parent)]
from service import settings  # noqa: E402

settings.pin_threads()
import cv2  # noqa: E402
import psutil  # noqa: E402
from bench import make_pairs  # noqa: E402

from preprocess import models  # noqa: E402
from service.measuring import Instrument  # noqa: E402
from service.native import keep_freed_memory, silence_native_chatter  # noqa: E402

SECONDS = float(os.environ.get("LIKENESS_BENCH_SECONDS", "5"))
PAIRS = int(os.environ.get("LIKENESS_BENCH_PAIRS", "2000"))
ROUNDS = int(os.environ.get("LIKENESS_BENCH_ROUNDS", "5"))
CALLERS = (1, 2, 4, 8)
CORES = 2
BOUNDARY = "a-boundary-that-no-picture-holds"
HEADERS = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
Bytes = tuple[bytes, bytes]


def serve(link: Connection, home: Path) -> None:
    """The service as it is run, on a free port of loopback, open to this machine."""
    import socket

    import uvicorn

    from service.api import context
    from service.api.app import create_app
    from service.api.protocol import server_config

    base = settings.server()
    place = settings.Server(
        home,
        f"sqlite:///{home / 's.sqlite3'}",
        str(home / "blobs"),
        home / "secret.key",
        base.hosts,
    )
    app = create_app(context.build(place, open_access=True))
    door = socket.create_server(("127.0.0.1", 0), backlog=128)
    link.send(door.getsockname()[1])
    uvicorn.Server(server_config(app)).run(sockets=[door])


def body_of(pair: Bytes) -> bytes:
    """The pair as a multipart form."""
    parts = []
    for name, content in zip(("original", "edited"), pair, strict=True):
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="f.jpg"'
        parts += [f"{head}\r\n\r\n".encode(), content, b"\r\n"]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


class Caller:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, body: bytes) -> tuple[int, float]:
        """(status, seconds); status 0 where the connection broke."""
        began = time.perf_counter()
        try:
            self._link.request("POST", "/v1/gate", body, HEADERS)
            answer = self._link.getresponse()
            answer.read()
            status = answer.status
        except OSError:
            self._link.close()
            status = 0
        return status, time.perf_counter() - began


def in_turn(
    port: int, pairs: list[Bytes], instrument: Instrument
) -> tuple[list[float], list[float]]:
    """Bare and requested seconds of each pair, one after the other, so that noise meets both."""
    caller, bare, asked = Caller(port), [], []
    for pair in pairs:
        began = time.perf_counter()
        instrument.measure_files(*pair)
        bare.append(time.perf_counter() - began)
        asked.append(caller.ask(body_of(pair))[1])
    return bare, asked


def load(port: int, bodies: list[bytes], callers: int) -> list[tuple[int, float]]:
    """So many callers, each asking again as soon as it is answered, for SECONDS."""
    done: list[tuple[int, float]] = []
    end = time.perf_counter() + SECONDS

    def work(first: int) -> None:
        caller, n = Caller(port), first
        while time.perf_counter() < end:
            done.append(caller.ask(bodies[n % len(bodies)]))
            n += 1

    threads = [threading.Thread(target=work, args=(5 * n,)) for n in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def resident(pid: int) -> float:
    """MB of a process and its children."""
    server = psutil.Process(pid)
    return sum(p.memory_info().rss for p in (server, *server.children(recursive=True))) / 1e6


def spin(link: Connection, pairs: list[Bytes]) -> None:
    """A bare measuring process: told for how long, it answers with the seconds of each pair."""
    _prepare()
    instrument, n = Instrument(), 0
    instrument.measure_files(*pairs[0])
    link.send([])
    while (seconds := link.recv()) is not None:
        done, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            instrument.measure_files(*pairs[n % len(pairs)])
            done.append(time.perf_counter() - began)
            n += 1
        link.send(done)


class Crew:
    """Bare processes, idle until told."""

    def __init__(self, pairs: list[Bytes]) -> None:
        context = multiprocessing.get_context("spawn")
        self._links = []
        for _ in range(CORES):
            link, other = context.Pipe()
            context.Process(target=spin, args=(other, pairs), daemon=True).start()
            link.recv()
            self._links.append(link)

    def work(self, processes: int) -> list[float]:
        """The seconds of every pair that so many processes measured in SECONDS."""
        links = self._links[:processes]
        for link in links:
            link.send(SECONDS)
        return [took for link in links for took in link.recv()]


def percentile(times: list[float], share: float) -> float:
    """The value below which ``share`` of the times lie."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def rounds(port: int, pairs: list[Bytes], pid: int) -> dict[str, object]:
    """All figures."""
    instrument, crew, bodies = Instrument(), Crew(pairs), [body_of(p) for p in pairs]
    in_turn(port, pairs[:4], instrument)
    load(port, bodies, 4)  # both processes warm, and memory at its level
    start, answered, failed = resident(pid), 0, 0
    bare: list[float] = []
    asked: list[float] = []
    at: dict[int, list[dict[str, float]]] = defaultdict(list)
    while len(at[1]) < ROUNDS or answered < PAIRS:
        one, other = in_turn(port, pairs, instrument)
        bare, asked = bare + one, asked + other
        for callers in CALLERS:
            alone, done = crew.work(min(callers, CORES)), load(port, bodies, callers)
            times = [seconds for status, seconds in done if status == 200]
            answered, failed = answered + len(times), failed + len(done) - len(times)
            at[callers].append(_against(times, alone, callers / min(callers, CORES)))
    ratio = statistics.median(a / b for a, b in zip(asked, bare, strict=True))
    return {
        "bare_ms": round(1000 * statistics.median(bare), 1),
        "p50_over_bare": round(ratio, 3),
        "at": {
            n: {k: round(statistics.median(f[k] for f in found), 2) for k in found[0]}
            for n, found in at.items()
        },
        "failed": failed,
        "rss_mb_start": round(start),
        "rss_mb_end": round(resident(pid)),
        "pairs": answered,
    }


def _against(times: list[float], alone: list[float], queue: float) -> dict[str, float]:
    return {
        "p50_over_bare": percentile(times, 0.5) / (percentile(alone, 0.5) * queue),
        "p99_over_bare": percentile(times, 0.99) / (percentile(alone, 0.99) * queue),
        "rate_over_bare": len(times) / len(alone),
        "requests_per_s": len(times) / SECONDS,
    }


def _prepare() -> None:
    cv2.setNumThreads(1)
    keep_freed_memory()
    silence_native_chatter()
    models.configure(settings.load().models)


def main() -> None:
    """Start the server, measure, print."""
    _prepare()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(a.read_bytes(), b.read_bytes()) for a, b in make_pairs(Path(folder))]
        link, other = context.Pipe()
        server = context.Process(target=serve, args=(other, Path(folder) / "home"))
        server.start()
        try:
            answer = rounds(link.recv(), pairs, server.pid or 0)
        finally:
            server.terminate()
            server.join()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
