"""A run of text probes under a lease: the steps of ``service.probing`` in the shared database."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.calls import Call, Reply
from service import probe_runs
from service.engine.leases import Patience, PatientLedger
from service.engine.watching import Shown
from service.model_offers import ModelOffers
from service.probe_endpoint import opened
from service.probing import Steps, Stopped, Ways, run_probes
from service.store.database import Database
from service.store.probe_calls import ProbeCalls

Row = Mapping[str, Any]


class PatientCalls(ProbeCalls):
    """A journal that waits for a database that is gone: a reply that was paid for is not lost to it.
    Entering one twice leaves one."""

    def __init__(self, database: Database, run_id: str, patience: Patience) -> None:
        super().__init__(database, run_id)
        self._patience = patience

    def known(self, keys: Iterable[str]) -> Mapping[str, Reply]:
        """As ``ProbeCalls.known``."""
        wanted = list(keys)
        return self._patience.of(lambda: ProbeCalls.known(self, wanted))

    def keep(self, entries: Sequence[tuple[str, Call, Reply]]) -> None:
        """As ``ProbeCalls.keep``."""
        self._patience.of(lambda: ProbeCalls.keep(self, entries))


def ask(
    row: Row, folder: Path, held: Database, patience: Patience, models: ModelOffers,
    shown: Shown, stop: threading.Event,
) -> dict[str, Path] | None:  # fmt: skip
    """Ask what the run ``row`` has not had answered, and write its files into ``folder``; None when
    it was stopped. Raises LikenessError when the model cannot be asked, LeaseLost."""
    loaded = models.read(row["plan_text"], folder)
    ledger = PatientLedger(held, row["run_id"], patience)
    journal = PatientCalls(held, row["run_id"], patience)
    with opened(loaded, shown.say) as endpoint:
        this = probe_runs.begin(loaded, ledger, row["run_id"])
        ways = Ways(stopping=stop.is_set, progress=Steps(shown), say=shown.say)
        try:
            done = run_probes(loaded, endpoint, journal, this, ways)
        except Stopped:
            return None
    if done.faults:
        shown.say("; ".join(done.faults))
    files = {name: folder / "out" / name for name in done.files}
    (folder / "out").mkdir(exist_ok=True)
    for name, path in files.items():
        path.write_bytes(done.files[name])
    probe_runs.end(ledger, done)
    return files
