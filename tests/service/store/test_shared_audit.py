"""The same audit gives the same figures, byte for byte, in a file of its own, in a shared SQLite
database and in PostgreSQL."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from service import finishing, runs, settings
from service.engine.local import Machine, run_audit, run_steps
from service.engine.progress import Silent
from service.plans import LoadedPlan, load_plan
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.ledger import Ledger

REPO = Path(__file__).resolve().parents[3]
PLAN = """\
name: shared
portraits: {{manifest: {manifest}, limit: 3}}
tools: [{{id: identity, name: copy}}]
controls: false
workers: 1
"""


def shared(loaded: LoadedPlan, database: Database, run_id: str, folder: Path) -> bytes:
    """The audit as the service runs it; its measurements.csv."""
    out = folder / f"report_{run_id}"
    out.mkdir()
    blobs = Blobs(str(folder / "blobs"))
    run = runs.begin_in(loaded, Ledger(database, run_id), blobs, out)
    run_steps(run, machine(), Silent(), threading.Event())
    finishing.finish(run, lambda _text: None)
    return (out / "measurements.csv").read_bytes()


def machine() -> Machine:
    return Machine.this(settings.load().models, 1)


@pytest.mark.slow
def test_figures_are_the_same_in_every_database(tmp_path: Path, postgres: str) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    loaded = load_plan(plan)
    run_audit(loaded, tmp_path / "own", machine=machine())
    expected = (tmp_path / "own" / "measurements.csv").read_bytes()
    assert len(expected.splitlines()) > 30
    for name, url in (("sqlite", f"sqlite:///{tmp_path}/s.sqlite3"), ("postgresql", postgres)):
        with closing(Database(url)) as database:
            database.migrate()
            for run_id in ("r_1", "r_2"):
                folder = tmp_path / name
                folder.mkdir(exist_ok=True)
                assert shared(loaded, database, run_id, folder) == expected
