"""Runs an audit on this machine: a thread a tool, a pool of processes that measures meanwhile."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service import audit, calling, finishing, runs
from service.engine.pool import MeasuringPool
from service.plans import LoadedPlan
from service.reviews import read_reviews
from service.store.ledger import CALLING, DONE, EDITED, PLANNED

Item = Mapping[str, Any]


class Progress(Protocol):
    """What a watcher of a run is told."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def step(self, name: str) -> None:
        """One step of the stage ``name`` is done."""

    def say(self, text: str) -> None:
        """Something worth a line."""


class Silent:
    """A watcher that watches nothing."""

    def stage(self, name: str, total: int) -> None:
        """Nothing."""

    def step(self, name: str) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Machine:
    """``workers`` measuring processes and ``tools_at_once`` tool threads; ``models`` is the folder
    of model files, handed to every process."""

    workers: int
    tools_at_once: int
    models: Path

    @classmethod
    def this(cls, models: Path, workers: int | None = None) -> Machine:
        """This machine: as many processes and tool threads as it has cores for us."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        return cls(workers or cores, max(1, cores), models)


def run_audit(
    loaded: LoadedPlan,
    out: Path,
    *,
    resume: bool = False,
    machine: Machine,
    progress: Progress | None = None,
    reviews: Path | None = None,
) -> finishing.Finished:
    """The whole audit, from the plan to the report. Raises LikenessError when it cannot go on;
    what is done by then is in the ledger, and ``resume`` goes on from there. ``reviews`` is a CSV
    of decisions that people made on the items of this run."""
    watch = progress or Silent()
    if reviews is not None:
        read_reviews(reviews)  # a mistake in it is told before hours of work, not after
    run = runs.begin(loaded, out, resume)
    try:
        with MeasuringPool(run, machine) as pool:
            _look(run, pool, watch)
            audit.plan_items(run)
            _work(run, pool, machine, watch)
        return finishing.finish(run, watch.say, reviews)
    finally:
        run.ledger.close()


def _look(run: runs.Run, pool: MeasuringPool, watch: Progress) -> None:
    todo = audit.unseen(run)
    if not todo:
        return
    watch.stage("portraits", len(todo))
    for row in pool.inspect(todo):
        run.ledger.add_portraits([row])
        watch.step("portraits")


def _work(run: runs.Run, pool: MeasuringPool, machine: Machine, watch: Progress) -> None:
    """Tools edit in threads of their own; the main thread hands their results to the pool."""
    everything = run.ledger.items()
    edited = [i for i in everything if i["state"] == EDITED]
    todo = [i for i in everything if i["state"] in (PLANNED, CALLING)]
    watch.stage("edited", len(todo))
    watch.stage("measured", len(everything) - sum(i["state"] == DONE for i in everything))
    ready: queue.Queue[str | None] = queue.Queue()
    for item in edited:
        ready.put(item["item_id"])
    stop = threading.Event()
    with ThreadPoolExecutor(machine.tools_at_once, thread_name_prefix="tool") as threads:
        jobs = [
            threads.submit(_edit_all, run, label, [i for i in todo if i["tool"] == label],
                           ready.put, stop, watch)
            for label in run.tools
        ]  # fmt: skip
        for job in jobs:
            job.add_done_callback(lambda _job: ready.put(None))
        try:
            pool.measure_all(ready, len(jobs), lambda: watch.step("measured"))
        except BaseException:
            stop.set()  # a full disk or Ctrl-C: let each tool end its call, then stop
            raise
        for job in jobs:
            job.result()


def _edit_all(
    run: runs.Run,
    label: str,
    todo: Sequence[Item],
    ready: Callable[[str], object],
    stop: threading.Event,
    watch: Progress,
) -> None:
    """One tool, one item after the other. A tool that cannot even be built fails its items."""
    if not todo:
        return
    portraits = {row["portrait_id"]: row for row in run.ledger.portraits()}
    adapter, why = calling.try_build(run, label)
    if adapter is None:
        watch.say(f"{label}: {why}")
    try:
        for item in todo:
            if stop.is_set():
                return
            if adapter is None:
                calling.give_up(run, item, f"the tool could not be started: {why}")
            elif calling.call_tool(run, adapter, item, portraits[item["portrait_id"]], stop.wait):
                watch.step("edited")
                ready(item["item_id"])
                continue
            watch.step("edited")
            watch.step("measured")
    finally:
        if adapter is not None:
            adapter.close()
