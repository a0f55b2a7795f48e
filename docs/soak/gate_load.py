"""The gate over HTTP: how much it adds to the bare measurement, and what it carries for ten minutes.

Run by ``make soak``: ``python docs/soak/gate_load.py [--pairs 200] [--seconds 600]``. Both times of
the first part are taken in turn within one run, pair by pair at 1024 px on one thread, because only
their ratio says anything on a machine that others use as well. Prints one line of JSON; exits 1 when
a promise is missed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.soak import rig  # noqa: I001 - pins the threads before OpenCV starts its own
import cv2
import httpx

from docs.soak.pictures import portraits
from preprocess import models
from service import settings
from service.measuring import Instrument
from service.native import keep_freed_memory, silence_native_chatter

SIDE = 1024
PICTURES = 24
CLIENTS = 4
"""The stated load: so many callers, each with its next pair as soon as it has its answer."""
CROWD = 80
RATIO = 1.3
GROWTH, SLACK_MB = 1.25, 64
"""How much memory may grow over the load: caches fill, a leak goes on."""


@dataclass(frozen=True)
class Body:
    """A pair as it goes over the wire, and its bare pictures."""

    original: bytes
    edited: bytes
    content: bytes
    headers: dict[str, str]


def make_pairs() -> list[Body]:
    """Portraits at 1024 px (JPEG 95), each with a lightly smoothed, re-encoded edit (JPEG 85)."""
    found = []
    for pixels in portraits(SIDE)[:PICTURES]:
        edit = cv2.bilateralFilter(pixels, 7, 30, 5)
        original = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
        edited = cv2.imencode(".jpg", edit, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes()
        mark = uuid.uuid4().hex
        request = httpx.Request(
            "POST", "http://x/", headers={"Content-Type": f"multipart/form-data; boundary={mark}"},
            files={"original": ("o.jpg", original), "edited": ("e.jpg", edited)},
        )  # fmt: skip
        headers = {"Content-Type": request.headers["content-type"]}
        found.append(Body(original, edited, request.read(), headers))
    return found


def figures(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    cuts = quantiles(seconds, n=100)
    return {"p50_ms": round(1e3 * median(seconds), 1), "p99_ms": round(1e3 * cuts[98], 1)}


def in_turn(there: rig.Stand, pairs: list[Body], rounds: int) -> dict[str, Any]:
    """Bare and over HTTP, pair by pair."""
    instrument, bare, gate = Instrument(), list[float](), list[float]()
    with there.plain() as client:
        for number in range(-PICTURES, rounds):
            pair = pairs[number % len(pairs)]
            began = time.perf_counter()
            instrument.measure_files(pair.original, pair.edited)
            between = time.perf_counter()
            answer = client.post("/v1/gate", content=pair.content, headers=pair.headers)
            ended = time.perf_counter()
            if answer.status_code != 200:
                raise RuntimeError(f"the gate answered {answer.status_code}")
            if number >= 0:  # before that everything warms up
                bare.append(between - began)
                gate.append(ended - between)
    ratio = median(gate) / median(bare)
    added = median(g - b for g, b in zip(gate, bare, strict=True))
    return {
        "pairs": rounds, "bare": figures(bare), "gate": figures(gate), "ratio": round(ratio, 3),
        "added_ms": round(1e3 * added, 1),
    }  # fmt: skip


@dataclass
class Load:
    """What many callers at a time were answered."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    different: int = 0
    first: dict[int, bytes] = field(default_factory=dict)


def load(there: rig.Stand, pairs: list[Body], callers: int, seconds: float, patient: bool) -> Load:
    """``callers`` in a closed loop. A ``patient`` one waits as long as an answer 503 asks."""
    found, lock, numbers = Load(), threading.Lock(), count()
    together = threading.Barrier(callers)

    def call() -> None:
        with there.plain() as client:
            together.wait()
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                number = next(numbers) % len(pairs)
                pair, began = pairs[number], time.perf_counter()
                status, retry = "no answer", 0.0
                with suppress(httpx.TransportError):
                    answer = client.post("/v1/gate", content=pair.content, headers=pair.headers)
                    status, retry = str(answer.status_code), _retry(answer)
                took = time.perf_counter() - began
                with lock:
                    found.statuses[status] += 1
                    if status == "200":
                        found.seconds.append(took)
                        same = found.first.setdefault(number, answer.content) == answer.content
                        found.different += not same
                if patient and status == "503":
                    time.sleep(min(retry, 2.0))

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _retry(answer: httpx.Response) -> float:
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isdigit() else 0.0


def sustained(there: rig.Stand, pairs: list[Body], seconds: float) -> tuple[Any, list[str]]:
    """The stated load, with the memory before and after."""
    load(there, pairs, CLIENTS, min(20.0, seconds / 4), patient=False)
    start = there.memory()["api_mb"]
    found = load(there, pairs, CLIENTS, seconds, patient=False)
    end = there.memory()["api_mb"]
    facts = {
        "callers": CLIENTS, "seconds": seconds, "answers": dict(found.statuses),
        "per_s": round(len(found.seconds) / seconds, 2), **figures(found.seconds),
        "mb_start": start, "mb_end": end,
    }  # fmt: skip
    missed = []
    if set(found.statuses) != {"200"}:
        missed.append(f"not every pair was answered under the stated load: {facts['answers']}")
    if found.different:
        missed.append(f"{found.different} answers differ from others about the same pair")
    if end > GROWTH * start + SLACK_MB:
        missed.append(f"memory grew from {start} to {end} MB")
    return facts, missed


def beyond(there: rig.Stand, pairs: list[Body], seconds: float) -> tuple[Any, list[str]]:
    """More callers than there is room for: an answer, or 503 with Retry-After."""
    found = load(there, pairs, CROWD, seconds, patient=True)
    facts = {"callers": CROWD, "answers": dict(found.statuses), **figures(found.seconds)}
    strange = set(found.statuses) - {"200", "503"}
    missed = [f"beyond the load: {facts['answers']}"] if strange else []
    return facts, missed


def main() -> int:
    """Latency, load, overload."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pairs", type=int, default=200)
    asked.add_argument("--seconds", type=float, default=600.0)
    chosen = asked.parse_args()
    rig.on_signals()
    silence_native_chatter()
    keep_freed_memory()
    cv2.setNumThreads(1)
    models.configure(settings.load().models)
    pairs = make_pairs()
    with rig.folder() as folder, rig.stand(folder) as there:
        alone = in_turn(there, pairs, chosen.pairs)
        under, missed = sustained(there, pairs, chosen.seconds)
        crowd, more = beyond(there, pairs, min(20.0, chosen.seconds / 4))
        missed += [*more, *there.watch.wrong]
    if alone["ratio"] > RATIO:
        missed.append(f"the gate takes {alone['ratio']} x the bare time, target {RATIO}")
    return rig.finish("gate", {"alone": alone, "load": under, "beyond": crowd}, missed)


if __name__ == "__main__":
    sys.exit(main())
