"""The pull variant for device farms: nothing can connect to the phone, so this side listens, the phone
asks for work (long poll) and brings the results. One phone, one job at a time.

    GET  /v1/device/next?wait=30        200 the job {id, kind, parameters} or 204, nothing to do
    GET  /v1/device/jobs/{id}/picture   the picture of an edit
    POST /v1/device/jobs/{id}/result    the answer: body and headers as POST /v1/edits gives them,
                                        its status in X-Edit-Status

The phone presents ``Authorization: Bearer TOKEN`` and names itself with X-Device-Id. A phone that
asks again before it brought a result has lost its job and is given it again.
"""

from __future__ import annotations

import hmac
import json
import queue
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx

from adapters.guard import EditEnded, one_line
from adapters.over_http.wire import Reply
from domain.edits import Failed
from domain.errors import LikenessError

LONGEST_POLL_S = 60.0
_IDLE_S = 90
"""Seconds without a byte after which a phone's connection is dropped."""


@dataclass(eq=False)
class Job:
    """One piece of work for the phone."""

    kind: str
    parameters: str
    picture: bytes
    media_type: str
    id: str = field(default_factory=lambda: uuid4().hex)
    taken: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    answer: Reply | None = None


class PullHost:
    """Listens, hands out jobs, takes results."""

    def __init__(self, listen: str, token: str, *, device: str = "", max_bytes: int) -> None:
        """``listen`` is "address:port", port 0 any free one. ``device`` is the only device id that
        is served; "" takes the first that asks. Raises LikenessError when it cannot listen."""
        address, _, port = listen.rpartition(":")
        if not address or not port.isdigit():
            raise LikenessError(f"pull: '{listen}' is no address:port such as 127.0.0.1:8643")
        self.token, self.device, self.max_bytes = token, device, max_bytes
        self._waiting: queue.Queue[Job] = queue.Queue()
        self._jobs: dict[str, Job] = {}
        self._lock, self._closed = threading.Lock(), threading.Event()
        try:
            self._server = _Server((address, int(port)), self)
        except OSError as error:
            raise LikenessError(f"pull: cannot listen at {listen}: {error.strerror}") from None
        self.url = f"http://{address}:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def call(self, job: Job, *, wait_s: float, total_s: float) -> Reply:
        """Have the phone do ``job``. Raises EditEnded(Failed) when none asked for work within
        ``wait_s``, or no result came within ``total_s``."""
        began = time.monotonic()
        self._jobs[job.id] = job
        self._waiting.put(job)
        try:
            if not job.taken.wait(wait_s):
                raise EditEnded(
                    Failed(f"no device asked for work at {self.url} within {wait_s:g} s", True)
                )
            if not job.done.wait(max(total_s - (time.monotonic() - began), 0)):
                reason = f"the device took the job and brought no result within {total_s:g} s"
                raise EditEnded(Failed(reason, retryable=True))
        finally:
            self._jobs.pop(job.id, None)
        if job.answer is None:
            raise EditEnded(Failed("the tool was closed"))
        return job.answer

    def claim(self, device: str) -> bool:
        """Whether ``device`` is the one that is served."""
        with self._lock:
            self.device = self.device or device
            return self.device == device

    def next(self, wait_s: float) -> Job | None:
        """The lost job, else the next one that is still wanted, None after ``wait_s`` without."""
        with self._lock:
            lost = [j for j in self._jobs.values() if j.taken.is_set() and not j.done.is_set()]
        if lost:
            return lost[0]
        until = time.monotonic() + min(wait_s, LONGEST_POLL_S)
        while not self._closed.is_set() and time.monotonic() < until:
            try:
                job = self._waiting.get(timeout=min(0.2, max(until - time.monotonic(), 0.001)))
            except queue.Empty:
                continue
            if job.id in self._jobs:
                job.taken.set()
                return job
        return None

    def job(self, job_id: str) -> Job | None:
        """A job that is in somebody's hands."""
        return self._jobs.get(job_id)

    def close(self) -> None:
        """Stop listening. May come twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        for job in list(self._jobs.values()):
            job.taken.set()
            job.done.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_SHARED: dict[tuple[str, str, str], tuple[PullHost, int]] = {}
_SHARING = threading.Lock()


def share(listen: str, token: str, device: str, max_bytes: int) -> PullHost:
    """A host for tools of one plan that use one phone: the same settings get the same one, except at
    port 0. Each is to be handed back with ``release``. Raises LikenessError as PullHost."""
    key = (listen, token, device)
    with _SHARING:
        if key in _SHARED and not listen.endswith(":0"):
            host, users = _SHARED[key]
            _SHARED[key] = (host, users + 1)
            return host
        host = PullHost(listen, token, device=device, max_bytes=max_bytes)
        if not listen.endswith(":0"):
            _SHARED[key] = (host, 1)
        return host


def release(host: PullHost) -> None:
    """The last user's release closes the host."""
    with _SHARING:
        for key, (shared, users) in _SHARED.items():
            if shared is host:
                if users > 1:
                    _SHARED[key] = (host, users - 1)
                    return
                del _SHARED[key]
                break
    host.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], host: PullHost) -> None:
        self.host = host
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A phone that went away in mid-sentence is no news: its job is given out again."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: addresses and job ids are nobody's business."""

    def do_GET(self) -> None:
        """A phone asks for work, or for its picture."""
        if not self._known():
            return
        host, parts = self.server.host, urlsplit(self.path)
        if parts.path == "/v1/device/next":
            job = host.next(_seconds(parse_qs(parts.query).get("wait", ["30"])[0]))
            if job is None:
                self._send(204)
                return
            said = {"id": job.id, "kind": job.kind, "parameters": job.parameters}
            self._send(200, json.dumps(said).encode(), "application/json")
            return
        job = self._job(parts.path, "picture")
        if job is not None:
            self._send(200, job.picture, job.media_type)

    def do_POST(self) -> None:
        """A phone brings a result."""
        if not self._known():
            return
        size = self.headers.get("content-length", "")
        if not size.isdigit() or int(size) > self.server.host.max_bytes:
            self.close_connection = True
            self._send(413 if size.isdigit() else 411)
            return
        body = self.rfile.read(int(size))
        job = self._job(urlsplit(self.path).path, "result")
        if job is None:
            return
        status = self.headers.get("x-edit-status", "200")
        if len(body) != int(size) or not status.isdigit():
            self._send(400)
            return
        headers = httpx.Headers(list(self.headers.items()))
        job.answer = Reply(int(status), headers, body, 0.0, None, self.server.host.device)
        job.done.set()
        self._send(204)

    def _known(self) -> bool:
        said = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        host = self.server.host
        if not hmac.compare_digest(said.encode(), host.token.encode()):
            self.close_connection = True
            self._send(401)
            return False
        if not host.claim(one_line(self.headers.get("x-device-id") or "unnamed", 100)):
            self.close_connection = True
            self._send(409, b"another device is at work for this tool")
            return False
        return True

    def _job(self, path: str, what: str) -> Job | None:
        parts = path.split("/")
        job = None
        if len(parts) == 6 and parts[1:4] == ["v1", "device", "jobs"] and parts[5] == what:
            job = self.server.host.job(parts[4])
        if job is None:
            self._send(404)
        return job

    def _send(self, status: int, body: bytes = b"", media_type: str = "text/plain") -> None:
        self.send_response_only(status)
        if status != 204:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _seconds(text: str) -> float:
    try:
        return max(0.0, min(float(text), LONGEST_POLL_S))
    except ValueError:
        return 30.0
