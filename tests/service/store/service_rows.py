"""A batch and a job as tests need them."""

from __future__ import annotations

from typing import Any

from service.store.batches import ACCEPTED, Batches
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.jobs import Jobs, new_run_id

OWNER = "k_one"
PLAN = "name: a run\ntools: [{id: identity, name: copy}]\ncontrols: false\n"


def make_batch(
    database: Database, blobs: Blobs | None = None, *pictures: tuple[str, bytes, dict[str, str]]
) -> str:
    """A batch that is ready, with pictures as (name, bytes, attributes)."""
    batches = Batches(database)
    batch_id = batches.create(OWNER, 1_000_000.0, None)
    attributes = {}
    for seq, (name, content, row) in enumerate(pictures, 1):
        assert blobs is not None
        item: dict[str, Any] = {
            "batch_id": batch_id, "seq": seq, "name": name, "blob": blobs.put(content),
            "bytes": len(content), "media_type": "image/png", "state": ACCEPTED, "code": None,
            "reason": None, "attributes": None,
        }  # fmt: skip
        batches.add_item(item)
        attributes[seq] = row
    batches.make_ready(batch_id, "a batch", attributes, [])
    return batch_id


def submit(
    database: Database,
    batch_id: str | None = None,
    *,
    plan: str = PLAN,
    owner: str = OWNER,
    webhook: str | None = None,
) -> str:
    """A run in the queue."""
    run_id = new_run_id()
    batch_id = batch_id or make_batch(database)
    Jobs(database).submit(run_id, batch_id, owner, "a run", plan, webhook)
    return run_id
