"""A database and a blob store with batches, and runs on them that left pictures behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from service.store.artefacts import Artefacts
from service.store.batches import ACCEPTED, Batches, iso
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.jobs import DONE, Jobs, new_run_id
from service.store.ledger import Ledger
from service.store.service_tables import events, jobs
from service.store.tables import items, measurements, portraits

START = 1_800_000_000.0
DAY = 86_400.0
POINTS = {"points": [[1.0, 2.0]] * 68, "box": [0, 0, 9, 9]}
REPORT = b"<html>a face</html>"


class World:
    """What tests do with a service's stores, by the day."""

    def __init__(self, url: str, folder: Path) -> None:
        self.database = Database(url)
        self.database.migrate()
        self.blobs = Blobs(str(folder / "blobs"))
        self.batches = Batches(self.database)
        self.folder = folder

    def kept(self) -> set[bytes]:
        """The content of every blob."""
        return {p.read_bytes() for p in self.folder.glob("blobs/??/*") if p.is_file()}

    def batch(self, *pictures: bytes, day: float = 0, ready: bool = True, owner: str = "k1") -> str:
        """A batch that was sent on that day."""
        batch_id = self.batches.create(owner, START + day * DAY, None)
        for seq, data in enumerate(pictures, 1):
            row: dict[str, Any] = {
                "batch_id": batch_id, "seq": seq, "name": f"{seq}.png", "bytes": len(data),
                "blob": self.blobs.put(data), "media_type": "image/png", "state": ACCEPTED,
                "code": None, "reason": None, "attributes": None,
            }  # fmt: skip
            self.batches.add_item(row)
        if ready:
            self.batches.make_ready(batch_id, "named", {1: {"gender": "x"}}, [])
        return batch_id

    def run(
        self,
        batch_id: str,
        original: bytes,
        *,
        edited: bytes = b"edited",
        mask: bytes = b"mask",
        report: bytes = REPORT,
        day: float = 0,
        over: bool = True,
    ) -> str:
        """A run that ended on that day, with an item, its pictures, points, figure and report."""
        run_id = new_run_id()
        Jobs(self.database).submit(run_id, batch_id, "k1", "r", "name: r")
        ledger = Ledger(self.database, run_id)
        ledger.begin(
            {
                "plan_sha256": "", "plan_text": "", "started": "", "versions": {}, "inputs": {},
                "seconds": 0.0,
            }
        )  # fmt: skip
        ledger.add_portraits([_portrait()])
        pictures = {"original": original, "edited": edited, "mask": mask}
        keys = {name: self.blobs.put(data) for name, data in pictures.items()}
        ledger.add_items([_item() | keys])
        ledger.finish_item("i1", {"outcome": "measured"}, [_figure()])
        files = Artefacts(self.database, self.blobs)
        files.put(run_id, "report.html", report)
        files.put(run_id, "report.json", b'{"figures": 1}')
        with self.database.begin() as link:
            at = iso(START + day * DAY)
            link.execute(insert(events).values(run_id=run_id, at=at, kind="done", data={}))
            if over:
                ended = update(jobs).where(jobs.c.run_id == run_id)
                link.execute(ended.values(state=DONE, finished=at))
        return run_id

    def row(self, table: Any, run_id: str) -> Mapping[str, Any]:
        """The run's only row of a table."""
        (row,) = self.database.rows(select(table).where(table.c.run_id == run_id))
        return row

    def shows_a_face(self, run_id: str) -> list[str]:
        """What is left in the ledger that shows or describes one."""
        item, portrait = self.row(items, run_id), self.row(portraits, run_id)
        left = [name for name in ("original", "edited", "mask", "evidence") if item[name]]
        names = [a["name"] for a in Artefacts(self.database, self.blobs).list(run_id)]
        face = ["face"] if portrait["face"] else []
        return left + face + [n for n in names if n == "report.html"]

    def figure(self, run_id: str) -> float:
        """The figure that was measured."""
        return float(self.row(measurements, run_id)["value"])


def _portrait() -> dict[str, Any]:
    return {
        "portrait_id": "p1", "seq": 0, "subject_id": "s1", "attributes": {"gender": "x"},
        "accepted": 1, "face_found": 1, "reason": None, "facts": {"ied_px": 60.0}, "face": POINTS,
        "warnings": [], "sha256": "",
    }  # fmt: skip


def _item() -> dict[str, Any]:
    return {
        "item_id": "i1", "seq": 0, "portrait_id": "p1", "tool": "t", "tool_id": "t", "control": 0,
        "task": "retouch", "perturbation": "none", "seed": 1, "state": "edited",
        "evidence": {"original_points": POINTS["points"]},
    }  # fmt: skip


def _figure() -> dict[str, Any]:
    return {
        "item_id": "i1", "metric": "flrr", "region": "face", "position": 0, "value": 97.5,
        "unit": "%", "status": "measured", "reason": None,
    }  # fmt: skip
