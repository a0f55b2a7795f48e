"""Asks a service for everything at once while something is broken, and judges each answer: right, or
503 with Retry-After. Anything else is a promise missed."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from docs.soak import rig
from docs.soak.rig import PROBLEM, Stand

PAUSE_S = 0.5
MOST_S = 100.0
"""An answer that takes longer is missed."""
MOST_RUNS = 3
"""Runs that one fault may begin: each is work."""
ITEMS = 12


@dataclass
class Seen:
    """Answers by request and status, the slowest, and what was accepted meanwhile."""

    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: float = 0.0
    batches: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def count(self, name: str, status: str, seconds: float) -> None:
        """Enter one answer."""
        self.statuses.setdefault(name, Counter())[status] += 1
        self.slowest = max(self.slowest, seconds)


class Prober:
    """``before`` is what there was before the fault: a batch, and a run that is done."""

    def __init__(self, there: Stand, number: int) -> None:
        self._there, self._number = there, number
        self.seen = Seen()
        self.batch_id, self.run_id = self._known()
        read = f"/v1/runs/{self.run_id}"
        self._readings = [read, f"{read}/measurements", f"{read}/items", f"{read}/report"]
        self._readings.append(f"/v1/batches/{self.batch_id}/items/1/picture")
        with there.plain() as client:
            self._right = {path: client.get(path).content for path in self._readings}

    def _known(self) -> tuple[str, str]:
        with self._there.client() as client, self._there.plain() as plain:
            batch_id = post_batch(plain, [self._next()]).json()["batch_id"]
            run = client.wait(client.start_run(batch_id, rig.PLAN).run_id)
        if run.state != "done":
            raise RuntimeError(f"a run without any fault is {run.state}: {run.error}")
        return batch_id, run.run_id

    def _next(self) -> int:
        self._number += 1
        return self._number

    def begin_run(self) -> str:
        """A run that will still be under way when the fault begins; returns once items have ended."""
        with self._there.client() as client, self._there.plain() as plain:
            batch = post_batch(plain, [self._next() for _ in range(ITEMS)]).json()
            run_id = client.start_run(batch["batch_id"], rig.PLAN).run_id
            rig.until(
                lambda: client.run(run_id).items.get("done", 0) >= 1, rig.START_S, "a first item"
            )
        self.seen.runs.append(run_id)
        return run_id

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask, from several threads, for as long as the block lasts."""
        over = threading.Event()
        asks: list[Callable[[httpx.Client], None]] = [self._send, self._start]
        asks += [lambda client, path=path: self._read(client, path) for path in self._readings]  # type: ignore[misc]
        asks += [self._health]
        threads = [threading.Thread(target=self._ask, args=(a, over)) for a in asks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _ask(self, ask: Callable[[httpx.Client], None], over: threading.Event) -> None:
        with self._there.plain(MOST_S) as client:
            while not over.is_set():
                try:
                    ask(client)
                except httpx.TransportError as error:
                    self.seen.missed.append(f"no answer: {type(error).__name__}: {error}")
                over.wait(PAUSE_S)

    def _answer(self, name: str, ask: Callable[[], httpx.Response]) -> httpx.Response | None:
        """A successful answer; None where the service said, in good form, to come back."""
        began = time.monotonic()
        answer = ask()
        self.seen.count(name, str(answer.status_code), time.monotonic() - began)
        if answer.is_success:
            return answer
        if not comes_back(answer):
            said = answer.text[:200]
            self.seen.missed.append(f"{name}: {answer.status_code} {said}")
        return None

    def _send(self, client: httpx.Client) -> None:
        made = self._answer("POST batches", lambda: post_batch(client, [self._next()]))
        if made is not None:
            if made.json()["accepted"] != 1:
                self.seen.missed.append(f"a good picture was not accepted: {made.json()['items']}")
            self.seen.batches.append(made.json()["batch_id"])

    def _start(self, client: httpx.Client) -> None:
        if len(self.seen.runs) > MOST_RUNS:
            return
        asked = {"batch_id": self.batch_id, "plan": rig.PLAN}
        made = self._answer(
            "POST runs", lambda: client.post("/v1/runs", json=asked, headers=once())
        )
        if made is not None:
            self.seen.runs.append(made.json()["run_id"])

    def _read(self, client: httpx.Client, path: str) -> None:
        name = "GET " + path.replace(self.run_id, "ID").replace(self.batch_id, "ID")
        read = self._answer(name, lambda: client.get(path))
        if read is not None and read.content != self._right[path]:
            self.seen.missed.append(f"{name}: another body than before the fault")

    def _health(self, client: httpx.Client) -> None:
        self._answer("GET /readyz", lambda: client.get("/readyz"))
        alive = self._answer("GET /healthz", lambda: client.get("/healthz"))
        if alive is None:
            self.seen.missed.append("/healthz said that the process is not alive")

    def recovered(self, seconds: float) -> float:
        """Seconds until a batch is taken again; then that all that was accepted is there and ends
        well."""
        began = time.monotonic()
        with self._there.plain() as client:
            rig.until(lambda: self._taken(client), seconds, "the service to recover by itself")
            took = time.monotonic() - began
            for batch_id in self.seen.batches:
                kept = client.get(f"/v1/batches/{batch_id}/items/1/picture")
                if kept.status_code != 200:
                    self.seen.missed.append(f"batch {batch_id} was accepted and is lost")
        with self._there.client() as patient:
            for run_id in self.seen.runs:
                self._ended(patient.wait(run_id))
        return took

    def _taken(self, client: httpx.Client) -> bool:
        try:
            return post_batch(client, [self._next()]).status_code == 201
        except httpx.TransportError:
            return False

    def _ended(self, run: Any) -> None:
        if run.state != "done" or set(run.outcomes) != {"measured"}:
            self.seen.missed.append(f"run {run.run_id}: {run.state}, {run.outcomes}: {run.error}")

    def facts(self) -> Mapping[str, Any]:
        """What was seen, for the line of JSON."""
        shown = {name: dict(counts) for name, counts in sorted(self.seen.statuses.items())}
        return {"slowest_s": round(self.seen.slowest, 1), "answers": shown}


def once() -> dict[str, str]:
    """A header for a request that is not to be done twice."""
    return {"Idempotency-Key": uuid.uuid4().hex}


def comes_back(answer: httpx.Response) -> bool:
    """Whether the answer is 503 with Retry-After, as a problem."""
    kind, retry = answer.headers.get("content-type", ""), answer.headers.get("retry-after", "")
    return answer.status_code == 503 and kind.startswith(PROBLEM) and retry.isdigit()


def post_batch(client: httpx.Client, numbers: list[int]) -> httpx.Response:
    """A batch of these pictures, with a group for each."""
    names = [f"p{n}.jpg" for n in numbers]
    files = [("files", (f"p{n}.jpg", rig.picture(n), "image/jpeg")) for n in numbers]
    data = {"manifest": rig.manifest(names)}
    return client.post("/v1/batches", files=files, data=data, headers=once())
