"""What the soak scripts share: the service under a supervisor as systemd or compose would keep it,
pictures with bytes of their own, a PostgreSQL that can be killed, and one line of JSON at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["left_behind", "manifest", "picture", "tree_mb"]
REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
from service import settings  # noqa: E402

settings.pin_threads()
import httpx  # noqa: E402
import psutil  # noqa: E402

from docs.soak.machine import left_behind, tree_mb  # noqa: E402
from docs.soak.pictures import manifest, picture  # noqa: E402
from service.client import LikenessClient, Patience  # noqa: E402
from service.engine.children import command  # noqa: E402
from service.store.api_keys import SCOPES, ApiKeys  # noqa: E402
from service.store.database import Database  # noqa: E402

TOOL = "logged copy"
PLAN = f"""\
name: soak
tools: [{{id: {TOOL}}}]
controls: false
groups: [gender]
"""
PROBLEM = "application/problem+json"
START_S = 120.0


class Supervised:
    """A process that is started again whenever it ends, until closed."""

    def __init__(
        self, line: list[str], env: Mapping[str, str], log: Path, pause_s: float = 0.3
    ) -> None:
        self._line, self._env, self._log, self._pause_s = line, dict(env), log, pause_s
        self._over = threading.Event()
        self.starts = 0
        self.process = self._start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._line, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            if self.process.poll() is not None and not self._over.wait(self._pause_s):
                self.process = self._start()

    def kill(self) -> bool:
        """kill -9. False: it is not running at this moment."""
        if self.process.poll() is not None:
            return False
        self.process.kill()
        return True

    def close(self) -> None:
        """End it in order; by force after half a minute."""
        self._over.set()
        self._thread.join()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Stand:
    """A service that runs; ``calls`` is where the tool writes of its calls."""

    home: Path
    url: str
    token: str
    env: dict[str, str]
    serve: Supervised
    calls: Path
    workers: list[Supervised] = field(default_factory=list)
    watch: Watch = field(default_factory=lambda: Watch())  # noqa: PLW0108 - defined below

    @property
    def database(self) -> str:
        """The database's URL."""
        return self.env["LIKENESS_DATABASE"]

    def client(self, wait_s: float = 600.0) -> LikenessClient:
        """A client that tries for a long time; its answers go past ``watch``."""
        patience = Patience(wait_s=wait_s, longest_s=3.0)
        return LikenessClient(
            self.url, self.token, patience=patience, transport=Watched(self.watch)
        )

    def plain(self, timeout: float = 120.0) -> httpx.Client:
        """A client that asks once."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, transport=Watched(self.watch)
        )

    def children(self) -> list[psutil.Process]:
        """The worker processes that ``likeness serve`` started."""
        with suppress(psutil.Error):
            found = psutil.Process(self.serve.process.pid).children()
            return [p for p in found if "--with-parent" in p.cmdline()]
        return []

    def memory(self) -> dict[str, float]:
        """Resident MB now of the service, and of its workers, with the processes under them."""
        mine = [p.pid for p in self.children()]
        api = tree_mb(self.serve.process.pid, without=mine)
        work = sum(tree_mb(p) for p in [*mine, *(w.process.pid for w in self.workers)])
        return {"api_mb": round(api), "workers_mb": round(work)}


class Watch:
    """What a server answered. ``wrong`` are answers that no fault excuses."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def saw(self, request: httpx.Request, answer: httpx.Response | None) -> None:
        """Enter one answer; None for a connection that broke."""
        with self._lock:
            self.statuses[str(answer.status_code) if answer else "no answer"] += 1
            if answer is None or answer.status_code < 500:
                return
            kind = answer.headers.get("content-type", "")
            retry = answer.headers.get("retry-after", "")
            if answer.status_code != 503 or not retry.isdigit() or not kind.startswith(PROBLEM):
                said = f"{answer.status_code} {kind} Retry-After={retry!r}"
                self.wrong.append(f"{request.method} {request.url.path}: {said}")


class Watched(httpx.HTTPTransport):
    """Passes requests on and tells ``watch`` of the answers."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch_ = watch

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As HTTPTransport's."""
        try:
            answer = super().handle_request(request)
        except httpx.TransportError:
            self._watch_.saw(request, None)
            raise
        self._watch_.saw(request, answer)
        return answer


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def stand(
    home: Path,
    *,
    database: str | None = None,
    blobs: str | None = None,
    inside: int = 1,
    beside: int = 0,
    calls: Path | None = None,
    call_s: float = 0.1,
    nice: int = 0,
) -> Iterator[Stand]:
    """``likeness serve`` with ``inside`` workers of its own and ``beside`` supervised ones. Raises
    TimeoutError when it does not come up."""
    calls = calls or home / "calls.log"
    env = _environment(home, database, blobs, calls, call_s)
    port = free_port()
    before = ["nice", "-n", str(nice)] if nice else []
    serve = [*before, *command("serve", "--port", str(port), "--workers", str(inside))]
    worker = [*before, *command("worker")]
    with ExitStack() as ends:
        token = _token(env["LIKENESS_DATABASE"])
        api = Supervised(serve, env, home / "serve.log")
        ends.callback(api.close)
        there = Stand(home, f"http://127.0.0.1:{port}", token, env, api, calls)
        for number in range(beside):
            there.workers.append(Supervised(worker, env, home / f"worker{number}.log"))
            ends.callback(there.workers[-1].close)
        until(lambda: alive(there), START_S, "the service to come up")
        yield there


def _environment(
    home: Path, database: str | None, blobs: str | None, calls: Path, call_s: float
) -> dict[str, str]:
    """What the processes see: nothing of the caller's own LIKENESS_*, and one ready-made tool."""
    home.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, str(REPO / "docs" / "soak" / "logged_copy.py")]
    argv += ["{input}", "{output}", str(calls), str(call_s)]
    tools = home / "tools.yaml"
    tools.write_text(
        json.dumps({"tools": [{"name": TOOL, "id": "command", "settings": {"argv": argv}}]})
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LIKENESS_")}
    return kept | {
        "LIKENESS_HOME": str(home),
        "LIKENESS_DATABASE": database or f"sqlite:///{home / 'service.sqlite3'}",
        "LIKENESS_BLOBS": blobs or str(home / "blobs"),
        "LIKENESS_MODELS": str(settings.load().models),
        "LIKENESS_TOOLS": str(tools),
    }


def _token(url: str) -> str:
    database = Database(url)
    try:
        database.migrate()
        return ApiKeys(database).add("soak", SCOPES)[1]
    finally:
        database.close()


def alive(there: Stand) -> bool:
    """Whether the service answers."""
    with suppress(httpx.TransportError):
        return httpx.get(f"{there.url}/healthz", timeout=5, trust_env=False).status_code == 200
    return False


def until(true: Callable[[], object], seconds: float, what: str) -> None:
    """Wait. Raises TimeoutError."""
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.1)


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder with a short name, since sockets lie in it."""
    found = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        yield found
    finally:
        shutil.rmtree(found, ignore_errors=True)


def finish(name: str, facts: Mapping[str, Any], missed: list[str]) -> int:
    """Print the line; the exit status."""
    print(json.dumps({"soak": name, **facts, "missed": missed}), flush=True)
    return 1 if missed else 0


def on_signals() -> None:
    """Let SIGTERM unwind, so that everything that was started is ended."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
