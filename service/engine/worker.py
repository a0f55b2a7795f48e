"""A worker: takes a run from the queue, does it under a lease, and leaves it whole for the next one
whenever it is killed.

What a run has done is in the ledger and the blob store alone, so any worker can go on with it. A
database or blob store that is gone is waited for: it is never a reason for a run to fail.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import LikenessError, StoreUnavailable
from service import finishing, runs, secrets, webhooks
from service.engine import materialise, probe_job
from service.engine.leases import Heart, HeldDatabase, Patience, PatientBlobs, PatientLedger, pauses
from service.engine.local import Machine, run_steps
from service.engine.watching import Shown
from service.limits import Limits
from service.model_offers import ModelOffers
from service.offers import Offers
from service.reviews import KEPT_AS
from service.store.artefacts import Artefacts
from service.store.batches import ACCEPTED, READY, Batches
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.events import Events
from service.store.jobs import CANCELLED, DONE, FAILED, PROBES, Jobs, Lease, LeaseLost

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a worker works with. ``work`` is a folder of this machine for runs under way."""

    database: Database
    blobs: Blobs
    offers: Offers
    limits: Limits
    machine: Machine
    work: Path
    models: ModelOffers


def worker_name(pid: int | None = None) -> str:
    """What the worker of that process (this one) is called: the machine and the process."""
    return f"{socket.gethostname()[:60]}-{pid or os.getpid()}"


class Worker:
    """One job at a time. ``stop`` may be called from any thread or from a signal's handler."""

    def __init__(
        self,
        bench: Bench,
        name: str | None = None,
        say: Callable[[str], object] = lambda _text: None,
        poll_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``say`` is told what is worth a line of the worker's own log."""
        self.name = name or worker_name()
        self._bench, self._say, self._poll_s, self._clock = bench, say, poll_s, clock
        self._jobs = Jobs(bench.database)
        self._over = threading.Event()
        self._heart: Heart | None = None

    def stop(self) -> None:
        """End soon: calls under way end, and the job goes back to the queue as it stands."""
        self._over.set()
        if self._heart is not None:
            self._heart.stop.set()

    def run(self, until_idle: bool = False) -> None:
        """Work until stopped, or until the queue is empty."""
        if gone := materialise.sweep(self._bench.work):
            self._say(f"folders of workers that died, removed: {gone}")
        waits, seconds, back = pauses(), self._bench.limits.job_lease_s, -math.inf
        while not self._over.is_set():
            try:
                lease = self._jobs.lease(self.name, seconds, self._clock() > back + seconds / 3)
            except StoreUnavailable as error:
                self._say(f"waiting for the store: {error}")
                self._over.wait(next(waits))
                # leases ran out while nobody could renew them: their holders come first
                back = self._clock()
                continue
            waits = pauses()
            if lease is not None:
                self._take(lease)
            elif until_idle:
                return
            else:
                self._over.wait(self._poll_s)

    def _take(self, lease: Lease) -> None:
        self._say(f"run {lease.run_id}: begun, attempt {lease.row['attempts']}")
        job = _Job(self._bench, self._jobs, lease, self._over, self._say)
        self._heart = job.heart
        try:
            state = job.work()
        finally:
            self._heart = None
            job.heart.close()
        self._say(f"run {lease.run_id}: {state}")


def _passes(error: Exception) -> bool:
    """Whether it is a store that is gone or a disk that is full: the same step may succeed later."""
    full = isinstance(error, OSError) and error.errno in _FULL
    return full or isinstance(error, StoreUnavailable)


class _Job:
    """One leased run, from its batch to its end in whatever state."""

    def __init__(
        self,
        bench: Bench,
        jobs: Jobs,
        lease: Lease,
        over: threading.Event,
        say: Callable[[str], object],
    ) -> None:
        self._bench, self._jobs, self._lease, self._over, self._say = bench, jobs, lease, over, say
        self._patience = Patience(over, say)
        self._folder, self._showing = Path(), threading.Lock()
        self._shown = Shown(self._progressed, self._clean)
        self._events = Events(HeldDatabase(bench.database, lease))
        self.heart = Heart(jobs, lease, bench.limits.job_lease_s, self._show)

    def work(self) -> str:
        """Returns what became of the job, a word or two for the log."""
        for pause in pauses():
            try:
                return self._attempt()
            except LeaseLost:
                return "taken over by another worker"
            except Exception as error:
                if not _passes(error):
                    return self._settle(FAILED, self._cause(error))
                self._say(f"run {self._lease.run_id}: waiting for the store: {error}")
                if self._over.wait(pause):
                    return self._give_back()
        raise AssertionError("pauses never end")

    def _cause(self, error: Exception) -> str:
        """A fault of ours ends this run, not the worker."""
        if isinstance(error, LikenessError):
            return self._clean(secrets.hide_keys(str(error)))
        said = secrets.scrub_text(f"{type(error).__name__}: {error}".splitlines()[0])
        return f"a fault of the program ({self._clean(said)})"

    def _attempt(self) -> str:
        stop, row = self.heart.fresh_stop(), self._lease.row
        if self._over.is_set():
            return self._give_back()
        if row["cancel_requested"]:
            return self._settle(CANCELLED)
        if row["attempts"] > self._bench.limits.job_attempts:
            deaths = row["attempts"] - 1
            return self._settle(FAILED, f"{deaths} workers died on this run without getting on")
        with materialise.private_folder(self._bench.work, self._lease.run_id) as folder:
            self._folder = folder
            files = self._work_in(folder, stop)
            if files is None:
                return self._ended_early()
            self._keep(files)
        return self._settle(DONE)

    def _work_in(self, folder: Path, stop: threading.Event) -> Mapping[str, Path] | None:
        """The run's files, made in ``folder``; None when it was stopped."""
        held = HeldDatabase(self._bench.database, self._lease)
        try:
            if self._lease.row["kind"] == PROBES:
                models, row = self._bench.models, self._lease.row
                return probe_job.ask(row, folder, held, self._patience, models, self._shown, stop)
            done = self._audit(folder, held, stop)
            return None if done is None else done.files
        except (OSError, LikenessError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, OSError) and cause.errno in _FULL:
                why = f"the worker's folder cannot be written: {cause.strerror}"
                raise StoreUnavailable(why) from None
            raise

    def _audit(
        self, folder: Path, held: HeldDatabase, stop: threading.Event
    ) -> finishing.Finished | None:
        """The steps of an audit in the shared ledger; None when it was stopped."""
        bench, row = self._bench, self._lease.row
        ledger = PatientLedger(held, row["run_id"], self._patience)
        blobs = PatientBlobs(bench.blobs.url, self._patience)
        loaded = materialise.lay_out(folder, row["plan_text"], self._items(), bench.offers, blobs)
        out = folder / "out"
        run = runs.begin_in(loaded, ledger, blobs, out, self._shown.say, bench.offers.resolve)
        run_steps(run, bench.machine, self._shown, stop)
        if stop.is_set():
            return None
        out.mkdir()
        if reviews := Artefacts(bench.database, blobs).read(row["run_id"], KEPT_AS):
            (out / KEPT_AS).write_bytes(reviews)
        return finishing.finish(run, self._shown.say)

    def _items(self) -> list[Mapping[str, Any]]:
        batch_id = self._lease.row["batch_id"]
        batches = Batches(self._bench.database)
        batch = self._patience.of(lambda: batches.get(batch_id))
        if batch is None or batch["state"] != READY:
            raise LikenessError(f"batch {batch_id} is {batch['state'] if batch else 'gone'}")
        return [*self._patience.of(lambda: batches.items(batch_id, state=ACCEPTED))]

    def _keep(self, files: Mapping[str, Path]) -> None:
        held = HeldDatabase(self._bench.database, self._lease)
        artefacts = Artefacts(held, self._bench.blobs)
        for name, path in files.items():
            content = path.read_bytes()
            self._patience.of(lambda n=name, c=content: artefacts.put(self._lease.run_id, n, c))  # type: ignore[misc]

    def _ended_early(self) -> str:
        if self.heart.lost:
            return "taken over by another worker"
        return self._settle(CANCELLED) if self.heart.cancelled else self._give_back()

    def _give_back(self) -> str:
        try:
            self._jobs.release(self._lease)
        except StoreUnavailable:
            return "left as it is; its lease runs out by itself"
        return "given back to the queue"

    def _settle(self, state: str, reason: str = "") -> str:
        """End the job. On a second try, after the answer to the first was lost, the lease is gone
        because the first got through."""
        delivery = webhooks.message_of(self._lease.row, state, reason or None)
        jobs, lease = self._jobs, self._lease
        steps: dict[str, Callable[[], None]] = {
            DONE: lambda: jobs.finish(lease, delivery),
            FAILED: lambda: jobs.fail(lease, reason, delivery),
            CANCELLED: lambda: jobs.stopped(lease, delivery),
        }
        try:
            self._patience.of(self._show)
            self._patience.of(steps[state])
        except LeaseLost:
            pass
        except StoreUnavailable:
            return "left as it is; its lease runs out by itself"
        return f"{state}: {reason}" if reason else state

    def _show(self) -> None:
        """Write down how far the run is; one thread at a time, or a note would be told twice. Raises
        StoreUnavailable and LeaseLost."""
        with self._showing:
            if (new := self._shown.stages()) is not None:
                self._jobs.progress(self._lease, new[1])
                self._shown.stages_shown(new[0])
            while (note := self._shown.note()) is not None:
                self._events.append(self._lease.run_id, "note", {"text": note})
                self._shown.note_shown()

    def _progressed(self) -> None:
        self.heart.progressed()

    def _clean(self, text: str) -> str:
        return materialise.without_folder(text, self._folder) if self._folder.name else text
