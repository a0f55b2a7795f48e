"""Runs an audit on this machine: threads that call the tools, processes that measure meanwhile.

Tools that work here share as many threads as there are cores; one that works elsewhere has threads
of its own, since waiting for it takes no processor.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service import audit, finishing, runs
from service.engine.lane import Lane
from service.engine.pool import MeasuringPool
from service.engine.progress import Progress, Silent
from service.plans import LoadedPlan
from service.report.probe_reading import read_probe_report
from service.reviews import read_reviews
from service.store.ledger import CALLING, DONE, EDITED, PLANNED


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
    retry_failed: bool = False,
    machine: Machine,
    progress: Progress | None = None,
    reviews: Path | None = None,
    probes: Path | None = None,
) -> finishing.Finished:
    """The whole audit, from the plan to the report. Raises LikenessError when it cannot go on;
    what is done by then is in the ledger, and ``resume`` goes on from there, with ``retry_failed``
    also with the items that a tool had failed. ``reviews`` is a CSV of decisions that people made on
    the items of this run, ``probes`` the folder of a run of text probes to show in its report."""
    watch = progress or Silent()
    if probes is not None:
        read_probe_report(probes)
    if reviews is not None:
        read_reviews(reviews)  # a mistake in it is told before hours of work, not after
    run = runs.begin(loaded, out, resume, retry_failed, watch.say)
    try:
        run_steps(run, machine, watch, threading.Event())
        return finishing.finish(run, watch.say, reviews, probes)
    finally:
        run.ledger.close()


def run_steps(run: runs.Run, machine: Machine, watch: Progress, stop: threading.Event) -> None:
    """Every step from the portraits to the last figure; what is in the ledger already is not done
    again. Once ``stop`` is set, calls under way end and this returns with the rest undone."""
    with MeasuringPool(run, machine) as pool:
        _look(run, pool, watch, stop)
        if not stop.is_set():
            audit.plan_items(run)
            _work(run, pool, machine, watch, stop)


def _look(run: runs.Run, pool: MeasuringPool, watch: Progress, stop: threading.Event) -> None:
    todo = audit.unseen(run)
    if not todo:
        return
    watch.stage("portraits", len(todo))
    for row in pool.inspect(todo):
        run.ledger.add_portraits([row])
        watch.step("portraits")
        if stop.is_set():
            return


def _work(
    run: runs.Run, pool: MeasuringPool, machine: Machine, watch: Progress, stop: threading.Event
) -> None:
    """Tools edit in threads of their own; the main thread hands their results to the pool."""
    everything = run.ledger.items()
    edited = [i for i in everything if i["state"] == EDITED]
    todo = [i for i in everything if i["state"] in (PLANNED, CALLING)]
    watch.stage("edited", len(todo))
    watch.stage("measured", len(everything) - sum(i["state"] == DONE for i in everything))
    ready: queue.Queue[str | None] = queue.Queue()
    for item in edited:
        ready.put(item["item_id"])
    lanes = _lanes(run, todo, stop, watch)
    far = sum(lane.width for lane in lanes if lane.remote)
    with (
        ThreadPoolExecutor(machine.tools_at_once, thread_name_prefix="tool") as here,
        ThreadPoolExecutor(max(1, far), thread_name_prefix="remote") as elsewhere,
    ):
        jobs = [
            (elsewhere if lane.remote else here).submit(lane.work, ready.put)
            for lane in lanes
            for _ in range(lane.width)
        ]
        for job in jobs:
            job.add_done_callback(lambda _job: ready.put(None))
        try:
            pool.measure_all(ready, len(jobs), lambda: watch.step("measured"), stop)
        except BaseException:
            stop.set()  # a full disk or Ctrl-C: let each tool end its call, then stop
            if far:
                watch.say("stopping as soon as the calls under way have ended; they may be billed")
            raise
        for job in jobs:
            job.result()


def _lanes(
    run: runs.Run, todo: Sequence[Mapping[str, Any]], stop: threading.Event, watch: Progress
) -> list[Lane]:
    by_tool = {label: [i for i in todo if i["tool"] == label] for label in run.tools}
    return [Lane(run, label, work, stop, watch) for label, work in by_tool.items() if work]
