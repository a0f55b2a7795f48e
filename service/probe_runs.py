"""A probe run in a ledger: begun once, gone on with under the very same plan."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.errors import LedgerError, LikenessError
from service.probe_plans import LoadedProbePlan
from service.probing import Done, Run, inputs_of
from service.store.ledger import Ledger, now
from service.versions import OF_PROBES, versions_of

LEDGER = "ledger.sqlite3"


def ledger_in(out: Path) -> Ledger:
    """The ledger of the run in a folder. Raises LedgerError where it cannot be written."""
    try:
        return Ledger.at(out / LEDGER)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be written: {error.strerror or error}") from None


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Hold the folder until the block ends, or the process: two runs in one would ask everything
    twice. Raises LikenessError in one line where another process holds it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LikenessError(f"{out}: cannot be written: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LikenessError(f"{out}: another process runs a plan in this folder") from None
        yield
    finally:
        os.close(folder)


def begin(loaded: LoadedProbePlan, ledger: Ledger, where: object) -> Run:
    """Enter the run, or go on with the one that is there. Raises LedgerError, naming the place
    ``where``, when it holds a run of another plan."""
    row, inputs = ledger.run(), inputs_of(loaded)
    if row is None:
        row = {
            "run_id": ledger.run_id,
            "plan_sha256": loaded.sha256,
            "plan_text": loaded.text,
            "started": now(),
            "versions": versions_of(OF_PROBES),
            "inputs": inputs,
            "seconds": 0.0,
        }
        ledger.begin(row)
    check_same(loaded, row, where)
    changed = next((name for name in inputs if row["inputs"].get(name) != inputs[name]), None)
    if changed is not None:
        raise LedgerError(f"{where}: {changed} has changed since this run began")
    return Run(ledger.run_id, row["started"], row["seconds"])


def check_same(loaded: LoadedProbePlan, row: Mapping[str, Any], where: object) -> None:
    """Pass the row of a run of this very plan. Raises LedgerError otherwise."""
    if row["plan_sha256"] != loaded.sha256:
        raise LedgerError(
            f"{where}: holds a run of another plan (its text has changed); use another folder"
        )


def end(ledger: Ledger, done: Done) -> None:
    """Enter that the run has ended."""
    ledger.set_run(finished=done.run.finished, seconds=done.run.seconds)
