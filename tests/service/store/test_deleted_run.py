"""A real run over real portraits: once its batch is deleted, nothing that is left shows a face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from domain.errors import PictureRejected
from preprocess.decode import open_picture
from service.engine.worker import Bench, Worker
from service.store.artefacts import Artefacts
from service.store.database import Database
from service.store.erasure import erase
from service.store.jobs import Jobs
from service.store.service_tables import batch_items
from service.store.tables import items, measurements, metadata, portraits
from tests.service.engine.worker_bench import bench_at, portraits_batch
from tests.service.store.service_rows import submit

PLAN = """
name: to be deleted
tools:
  - {id: identity, name: copy}
  - {id: style_transfer, name: style}
controls: false
perturbations: [none, noise]
groups: [skin_tone]
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    database = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    database.migrate()
    yield bench_at(tmp_path, database)
    database.close()


def shows_a_picture(data: bytes) -> bool:
    if b"data:image" in data or b"_points" in data:
        return True
    try:
        open_picture(data)
    except PictureRejected:
        return False
    return True


@pytest.mark.slow
def test_nothing_that_is_left_shows_a_face_and_every_figure_is(
    bench: Bench, tmp_path: Path
) -> None:
    batch_id = portraits_batch(bench, 2)
    run_id = submit(bench.database, batch_id, plan=PLAN)
    Worker(bench).run(until_idle=True)
    job = Jobs(bench.database).get(run_id)
    assert job is not None and job["state"] == "done", job and job["error"]
    blobs = [p for p in tmp_path.glob("blobs/??/*") if p.is_file()]
    showing = {p.name for p in blobs if shows_a_picture(p.read_bytes())}
    figures = bench.database.rows(select(measurements))
    assert len(showing) > 8 and figures

    receipt = erase(bench.database, bench.blobs, batch_id, now=0.0, key_id="k")

    left = [p for p in tmp_path.glob("blobs/??/*") if p.is_file()]
    assert [p for p in left if shows_a_picture(p.read_bytes())] == []
    gone = {key for kind in receipt["deleted"].values() for key in kind.get("sha256", ())}
    assert gone == showing
    names = {row["name"] for row in Artefacts(bench.database, bench.blobs).list(run_id)}
    assert names == {
        "junit.xml", "manifest.json", "measurements.csv", "report.json", "review.csv",
    }  # fmt: skip
    assert bench.database.rows(select(measurements)) == figures
    assert receipt["deleted"]["landmarks"]["count"] == 2
    for column in (batch_items.c.blob, items.c.original, items.c.edited, items.c.mask):
        assert bench.database.rows(select(column).where(column.is_not(None))) == []
    assert not any(r["face"] for r in bench.database.rows(select(portraits.c.face)))
    everything = str([bench.database.rows(select(t)) for t in metadata.sorted_tables])
    assert "_points" not in everything
    assert "'points': [" not in everything
