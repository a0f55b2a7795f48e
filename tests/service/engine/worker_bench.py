"""A worker's bench over a database, and a batch of rendered portraits."""

from __future__ import annotations

import csv
from pathlib import Path

from service import settings
from service.engine.local import Machine
from service.engine.worker import Bench
from service.limits import Limits
from service.offers import load_offers
from service.store.blobs import Blobs
from service.store.database import Database
from tests.service.store.service_rows import make_batch

PORTRAITS = Path(__file__).resolve().parents[3] / "samples" / "portraits"


def bench_at(home: Path, database: Database, tools: Path | None = None) -> Bench:
    """One measuring process; everything lies in ``home``."""
    return Bench(
        database,
        Blobs(str(home / "blobs")),
        load_offers(tools),
        Limits(),
        Machine(1, 1, settings.load().models),
        home / "work",
    )


def portraits_batch(bench: Bench, count: int) -> str:
    """The first ``count`` rendered portraits as a batch, with what their manifest says of them."""
    with (PORTRAITS / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[:count]
    pictures = [(r["file"], (PORTRAITS / r["file"]).read_bytes(), r) for r in rows]
    return make_batch(bench.database, bench.blobs, *pictures)
