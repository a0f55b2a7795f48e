"""Batches and runs put straight into a service's database, as uploads and workers would have."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert

from preprocess.decode import encode_png
from service.api.context import Context
from service.engine.materialise import file_name
from service.store.artefacts import Artefacts
from service.store.batches import new_batch_id
from service.store.events import instant
from service.store.jobs import Jobs, Lease, new_run_id
from service.store.ledger import EDITED, PLANNED, Ledger
from service.store.service_tables import batch_items, batches
from tests.service.scripted import picture

PLAN = "name: spring\ntools:\n  - {id: identity, name: copy}\ngroups: [gender]\nseed: 7\n"


def a_batch(
    context: Context,
    owner: str = "somebody",
    people: Sequence[Mapping[str, str]] = ({"gender": "female"}, {"gender": "male"}),
    state: str = "ready",
) -> str:
    """A batch with a picture of noise for each of ``people``, which are rows of its manifest."""
    batch_id = new_batch_id()
    batch = {
        "batch_id": batch_id, "created": instant(), "owner": owner, "name": "seeded",
        "state": state, "accepted": len(people), "rejected": 0, "expires": None,
    }  # fmt: skip
    rows = [
        {
            "batch_id": batch_id, "seq": seq, "name": person.get("file", f"p{seq}.png"),
            "blob": context.blobs.put(picture(seq)), "bytes": 10, "media_type": "image/png",
            "state": "accepted", "attributes": {"subject_id": f"s{seq}", **person},
        }
        for seq, person in enumerate(people)
    ]  # fmt: skip
    with context.database.begin() as link:
        link.execute(insert(batches), [batch])
        if rows:
            link.execute(insert(batch_items), rows)
    return batch_id


def a_run(context: Context, owner: str = "somebody", batch_id: str = "", plan: str = PLAN) -> str:
    """A run that waits for a worker."""
    batch_id = batch_id or a_batch(context, owner)
    run_id = new_run_id()
    Jobs(context.database).submit(run_id, batch_id, owner, "seeded", plan)
    return run_id


def lease(context: Context) -> Lease:
    """Take up the oldest run that waits."""
    found = Jobs(context.database).lease("test", 600)
    assert found is not None
    return found


def item_id(number: int) -> str:
    """Ids that do not come in the order planned."""
    return hashlib.sha256(f"item {number}".encode()).hexdigest()[:16]


def write_items(
    context: Context,
    run_id: str,
    count: int,
    *,
    people: Sequence[Mapping[str, str]] = ({"gender": "female"}, {"gender": "male"}),
) -> Ledger:
    """Plan ``count`` items of one tool, over portraits as a worker would name them."""
    ledger = Ledger(context.database, run_id)
    ledger.begin(
        {
            "plan_sha256": "", "plan_text": PLAN, "started": "2026-01-01T00:00:00+00:00",
            "versions": {}, "inputs": {}, "seconds": 0.0,
        }
    )  # fmt: skip
    names = [
        file_name({"seq": seq, "name": person.get("file", f"p{seq}.png")})
        for seq, person in enumerate(people)
    ]
    ledger.add_portraits(
        [
            {
                "portrait_id": name, "seq": seq, "subject_id": f"s{seq}",
                "attributes": {k: v for k, v in person.items() if k not in HIDDEN},
                "accepted": 1, "face_found": 1, "reason": None, "facts": {"ied": 61.5},
                "face": None, "warnings": [], "sha256": "",
            }
            for seq, (name, person) in enumerate(zip(names, people, strict=True))
        ]
    )  # fmt: skip
    ledger.add_items(
        [
            {
                "item_id": item_id(n), "seq": n, "portrait_id": names[n % len(names)],
                "tool": "copy", "tool_id": "identity", "control": n % 2, "task": "retouch",
                "perturbation": "none", "seed": n, "state": PLANNED, "outcome": None, "reason": None,
            }
            for n in range(count)
        ]
    )  # fmt: skip
    return ledger


HIDDEN = ("file", "pair_base_file", "varied_attribute")


def finish_item(ledger: Ledger, number: int, value: float | None = 97.5) -> None:
    """Give an item two figures, one of them in a region, and a health score."""
    missing = {"status": "not_measurable", "reason": "too small"}
    there = {"status": "measured", "reason": None}
    figures = [
        {
            "item_id": item_id(number), "metric": metric, "region": region, "position": position,
            "value": value, "unit": "%", **(there if value is not None else missing),
        }
        for position, (metric, region) in enumerate((("pdl", "mouth"), ("flrr", "face")))
    ]  # fmt: skip
    health = {
        "document": {
            "profile": "document", "score": value, "decision": "pass", "threshold": 85.0,
            "reasons": [] if value is not None else ["a part is missing"],
        }
    }  # fmt: skip
    row = {"outcome": "measured", "reason": None, "health": health}
    ledger.finish_item(item_id(number), row, figures)


def refuse_item(ledger: Ledger, number: int, reason: str = "the tool refused") -> None:
    """End an item without figures."""
    ledger.finish_item(item_id(number), {"outcome": "refused", "reason": reason}, [])


def give_pictures(context: Context, ledger: Ledger, number: int) -> dict[str, bytes]:
    """Original and edited picture of an item that is not measured yet."""
    made = {"original": picture(1), "edited": encode_png(_grey())}
    keys: dict[str, Any] = {name: context.blobs.put(data) for name, data in made.items()}
    call = ledger.begin_call(item_id(number), 1)
    ended = {"result": "edited", "seconds": 0.5, "model": "m1"}
    ledger.end_call(call, item_id(number), ended, {"state": EDITED, **keys})
    return made


def _grey() -> Any:
    import numpy as np

    return np.full((8, 8, 3), 128, dtype=np.uint8)


def finish_run(context: Context, held: Lease, files: Mapping[str, bytes]) -> None:
    """Store the files and end the run."""
    for name, content in files.items():
        Artefacts(context.database, context.blobs).put(held.run_id, name, content)
    Jobs(context.database).finish(held)
