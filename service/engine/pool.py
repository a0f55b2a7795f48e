"""Processes that measure, each with its own models. One that dies takes no other item with it."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from domain.measurements import PairResult
from domain.plan import AuditPlan
from domain.portraits import Portrait
from service import audit, settings
from service.measuring import Instrument
from service.native import keep_freed_memory, silence_native_chatter
from service.runs import Run
from service.store.blobs import Blobs

_instrument: Instrument | None = None
_blobs: Blobs | None = None


class Size(Protocol):
    """What the pool needs to know of a machine."""

    @property
    def workers(self) -> int:
        """Measuring processes."""
        ...

    @property
    def models(self) -> Path:
        """Folder of model files."""
        ...


def _start(plan: AuditPlan, models_dir: Path, blobs: str) -> None:
    """In a new process: threads pinned, models loaded once."""
    global _instrument, _blobs  # noqa: PLW0603 - a process pool has no other place for state
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings.pin_threads()
    silence_native_chatter()
    keep_freed_memory()
    import cv2

    from preprocess import models

    cv2.setNumThreads(1)
    models.configure(models_dir)
    _instrument = Instrument(plan.engine, plan.profile, plan.min_score, plan.extra_metrics)
    _blobs = Blobs(blobs)


def _end_with_parent() -> None:
    """A pool's process waits for work for ever; without this, kill -9 of the run leaves orphans."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _inspect(seq: int, portrait: Portrait) -> dict[str, Any]:
    assert _instrument is not None
    return audit.inspect(_instrument, seq, portrait)


def _measure(item: Mapping[str, Any]) -> PairResult:
    assert _instrument is not None and _blobs is not None
    return audit.measure_item(_instrument, _blobs, item)


def _work(item: Mapping[str, Any]) -> dict[str, Any]:
    """What a process needs to know of an item to measure it: little, since it is pickled."""
    return {name: item[name] for name in ("original", "edited", "mask", "task", "perturbation")}


class MeasuringPool:
    """A process pool for one run. Use as a context manager."""

    def __init__(self, run: Run, size: Size) -> None:
        self._run = run
        self._size = size
        self._pool = self._fresh()

    def _fresh(self, workers: int | None = None) -> ProcessPoolExecutor:
        plan = self._run.plan
        # spawn: a forked copy of a process with running threads can hang for ever
        return ProcessPoolExecutor(
            workers or plan.workers or self._size.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(plan, self._size.models, self._run.blobs.url),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def inspect(self, todo: Sequence[tuple[int, Portrait]]) -> Iterator[dict[str, Any]]:
        """Look at portraits; rows come back in the order given."""
        jobs = [self._pool.submit(_inspect, seq, portrait) for seq, portrait in todo]
        for job, (seq, portrait) in zip(jobs, todo, strict=True):
            try:
                yield job.result()
            except BrokenProcessPool:
                yield self._inspect_alone(seq, portrait)

    def _inspect_alone(self, seq: int, portrait: Portrait) -> dict[str, Any]:
        with self._fresh(1) as alone:
            try:
                return alone.submit(_inspect, seq, portrait).result()
            except BrokenProcessPool:
                return audit.unreadable(seq, portrait, "the process died while reading this file")

    def measure_all(
        self,
        ready: queue.Queue[str | None],
        producers: int,
        step: Callable[[], object],
        stop: threading.Event | None = None,
    ) -> None:
        """Measure items as their ids arrive, until ``producers`` Nones have come and all is done.
        Once ``stop`` is set, only what has been begun is ended."""
        flying: dict[Future[PairResult], str] = {}
        open_producers = producers
        while open_producers or flying or not ready.empty():
            try:
                item_id = ready.get(timeout=0.05 if flying else 0.5)
            except queue.Empty:
                item_id = ""
            if item_id is None:
                open_producers -= 1
            elif item_id and not (stop is not None and stop.is_set()):
                flying[self._submit(item_id)] = item_id
            full = len(flying) >= 4 * self._size.workers
            done, _ = wait(flying, timeout=None if full else 0, return_when=FIRST_COMPLETED)
            broken = [job for job in done if isinstance(job.exception(), BrokenProcessPool)]
            if broken:
                self._after_death(flying, step)
                continue
            for job in done:
                audit.record(self._run, flying.pop(job), job.result())
                step()

    def _submit(self, item_id: str) -> Future[PairResult]:
        try:
            return self._pool.submit(_measure, _work(self._run.ledger.item(item_id)))
        except BrokenProcessPool as error:
            failed: Future[PairResult] = Future()
            failed.set_exception(error)
            return failed

    def _after_death(
        self, flying: dict[Future[PairResult], str], step: Callable[[], object]
    ) -> None:
        """A process died and broke the pool: measure each pair in flight alone, to find the one."""
        suspects = list(flying.values())
        flying.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for item_id in suspects:
            item = self._run.ledger.item(item_id)
            with self._fresh(1) as alone:
                try:
                    result = alone.submit(_measure, _work(item)).result()
                except BrokenProcessPool:
                    result = audit.died(self._run.plan.engine)
            audit.record(self._run, item_id, result)
            step()
        self._pool = self._fresh()
