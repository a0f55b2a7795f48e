"""A worker's bench over a database, a batch of rendered portraits, and steps of an audit that do as
they are told."""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from service import settings
from service.engine.local import Machine
from service.engine.worker import Bench
from service.limits import Limits
from service.model_offers import load_model_offers
from service.offers import load_offers
from service.store.blobs import Blobs
from service.store.database import Database
from tests.service.store.service_rows import make_batch

PORTRAITS = Path(__file__).resolve().parents[3] / "samples" / "portraits"
Steps = Callable[[Any, Any, Any, threading.Event], None]


def bench_at(home: Path, database: Database, tools: Path | None = None) -> Bench:
    """One measuring process; everything lies in ``home``."""
    return Bench(
        database,
        Blobs(str(home / "blobs")),
        load_offers(tools),
        Limits(),
        Machine(1, 1, settings.load().models),
        home / "work",
        load_model_offers(tools),
    )


def portraits_batch(bench: Bench, count: int) -> str:
    """The first ``count`` rendered portraits as a batch, with what their manifest says of them."""
    with (PORTRAITS / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[:count]
    pictures = [(r["file"], (PORTRAITS / r["file"]).read_bytes(), r) for r in rows]
    return make_batch(bench.database, bench.blobs, *pictures)


class Played:
    """Stands in for the steps of an audit: does what it is told, one call after the other."""

    def __init__(self) -> None:
        self.steps: list[Steps] = []
        self.runs: list[Any] = []

    def run_steps(self, run: Any, machine: Any, watch: Any, stop: threading.Event) -> None:
        self.runs.append(run)
        watch.stage("edited", 1)
        if self.steps:
            self.steps.pop(0)(run, machine, watch, stop)
        watch.step("edited")

    def finish(self, run: Any, say: Any) -> Any:
        say("writing")
        path = run.out / "report.json"
        path.write_bytes(b"{}")
        return SimpleNamespace(files={"report.json": path})
