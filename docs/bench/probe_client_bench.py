"""What the probes' client adds to a call: time and memory, against a server that answers at once.

10,000 calls at concurrency 64, replies kept in a real SQLite file in groups, three rounds. The server is a
process of its own that parses nothing but the length, so that the client is what is measured.

wall_ms          wall time of ``ask_all`` / calls, median of the rounds
bare_ms          the same requests as ready bytes over 64 raw connections, answers parsed as JSON, / calls
overhead_ms      wall_ms - bare_ms: what building, sending, reading, checking and keeping a call costs
cpu_ms           processor time of the client's process / calls: on a busy machine (see load_1min beside
                 cores) this is the figure that still means the client
overhead_memory_ms  the same with replies kept in memory only: the difference is the journal's part
rss_mb_*         resident memory before the first round, its peak over all, and after each round

Run by hand or by ``make bench``; the last line printed is JSON. LIKENESS_BENCH_CALLS: other than 10,000.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
import psutil  # noqa: E402

from probes.asking.abilities import Abilities  # noqa: E402
from probes.asking.ask import ask_all  # noqa: E402
from probes.asking.endpoint import Endpoint  # noqa: E402
from probes.asking.journal import Journal, MemoryJournal  # noqa: E402
from probes.calls import Call, Message  # noqa: E402
from service.store.database import Database  # noqa: E402
from service.store.probe_calls import ProbeCalls  # noqa: E402

CALLS = int(os.environ.get("LIKENESS_BENCH_CALLS", "10000"))
CONCURRENCY = 64
ROUNDS = 3
WORDS = "Please rate the following candidate for the position between 1 and 10. " * 8
ANSWER = json.dumps(
    {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "instant",
        "system_fingerprint": "fp_0",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": '{"score": 7, "reason": "solid"}'},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 150, "completion_tokens": 12, "total_tokens": 162},
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
    ANSWER
)


class Instant(asyncio.Protocol):
    """Answers every request whose body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport, self._came = transport, b""

    def data_received(self, data: bytes) -> None:
        """One answer for each whole request."""
        self._came += data
        while (head := self._came.find(b"\r\n\r\n")) >= 0:
            length = self._came[:head].lower().partition(b"content-length:")[2]
            end = head + 4 + int(length.split(b"\r\n", 1)[0])
            if len(self._came) < end:
                return
            self._came = self._came[end:]
            self._transport.write(HEAD + ANSWER)  # type: ignore[attr-defined]


async def serve() -> None:
    """Until killed. Prints the port."""
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def calls_of(round_number: int) -> list[Call]:
    """Pairs of calls as a probe makes them, none alike."""
    return [
        Call(
            "bench",
            f"item {i}",
            arm,
            round_number,
            messages=(Message("user", f"{WORDS} {arm} {i}"),),
            facts={"occupation": "nurse", "name": "A"},
        )
        for i in range(CALLS // 2)
        for arm in ("men", "women")
    ]


def bare(port: int) -> float:
    """Seconds for the same requests, ready made, over raw connections."""
    body = json.dumps(
        {"model": "instant", "messages": [{"role": "user", "content": WORDS}], "max_tokens": 256}
    ).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(
        body
    )

    async def one(count: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(count):
            writer.write(request + body)
            await reader.readuntil(b"\r\n\r\n")
            json.loads(await reader.readexactly(len(ANSWER)))
        writer.close()

    async def everything() -> None:
        await asyncio.gather(*(one(CALLS // CONCURRENCY) for _ in range(CONCURRENCY)))

    began = time.perf_counter()
    asyncio.run(everything())
    return (time.perf_counter() - began) * CALLS / (CALLS // CONCURRENCY * CONCURRENCY)


class Peak:
    """The highest resident memory of this process while it is open, in MB."""

    def __init__(self) -> None:
        self.mb, self._end = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._end.wait(0.05):
            self.mb = max(self.mb, process.memory_info().rss / 1e6)


def asked(endpoint: Endpoint, calls: list[Call], journal: Journal) -> tuple[float, float]:
    """Wall and processor seconds of one round; every call must have its answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    replies = ask_all(calls, endpoint, Abilities(), journal, seed=1)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    if len(replies) != len(calls) or any(r.error or r.model != "instant" for r in replies.values()):
        raise SystemExit("not every call was answered")
    return spent


def measure(port: int, folder: Path) -> dict[str, float]:
    """All figures."""
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "instant", concurrency=CONCURRENCY)
    database = Database(f"sqlite:///{folder / 'bench.sqlite3'}")
    database.migrate()
    journal = ProbeCalls(database, "bench")
    asked(endpoint, calls_of(99)[:500], MemoryJournal())  # warm
    rss = _resident()
    start = rss()
    walls, cpus, bares, after, memory, peaks = [], [], [], [], [], []
    for number in range(ROUNDS):
        calls = calls_of(number)
        bares.append(bare(port))
        with Peak() as peak:
            wall, cpu = asked(endpoint, calls, journal)
        walls.append(wall)
        cpus.append(cpu)
        memory.append(asked(endpoint, calls, MemoryJournal())[0])
        peaks.append(peak.mb)
        del calls
        after.append(rss())
    kept = journal.count()
    database.close()
    if kept != CALLS * ROUNDS:
        raise SystemExit(f"{kept} replies are kept of {CALLS * ROUNDS}")
    each: Callable[[list[float]], float] = lambda s: round(1e3 * statistics.median(s) / CALLS, 3)  # noqa: E731
    return {
        "calls": CALLS,
        "concurrency": CONCURRENCY,
        "wall_ms": each(walls),
        "bare_ms": each(bares),
        "overhead_ms": round(each(walls) - each(bares), 3),
        "overhead_memory_ms": round(each(memory) - each(bares), 3),
        "cpu_ms": each(cpus),
        "load_1min": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count() or 0,
        "rss_mb_start": start,
        "rss_mb_peak": round(max(peaks), 1),
        **{f"rss_mb_after_{n}": mb for n, mb in enumerate(after, 1)},
    }


def _resident() -> Callable[[], float]:
    process = psutil.Process()

    def now() -> float:
        gc.collect()
        return round(process.memory_info().rss / 1e6, 1)

    return now


def main() -> None:
    """Start the server, measure, end it."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:  # noqa: S603
        try:
            with tempfile.TemporaryDirectory() as folder:
                port = int(server.stdout.readline()) if server.stdout else 0
                print(json.dumps(measure(port, Path(folder))))
        finally:
            server.kill()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(serve())
    else:
        main()
