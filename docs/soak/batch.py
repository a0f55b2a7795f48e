"""Two thousand pictures in one batch, one run over all of them: none is lost, and what it takes.

Run by ``make soak``: ``python docs/soak/batch.py [--pictures 2000]``. Prints one line of JSON; exits 1
when a promise is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.soak import rig
from service.client import LikenessClient
from service.client_upload import Upload

SIDE = 480
PLAN = """\
name: two thousand
tools: [{id: reencode, settings: {quality: 80}}]
controls: false
groups: [gender]
"""
MEMORY_MB = 2048


class Peak:
    """The most that the service and its workers hold at a time."""

    def __init__(self, there: rig.Stand) -> None:
        self._there, self._over = there, threading.Event()
        self.mb: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(1.0):
            for name, now in self._there.memory().items():
                self.mb[name] = max(self.mb[name], int(now))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """For as long as the block lasts."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


def send(client: LikenessClient, pictures: int) -> tuple[str, dict[str, Any], list[str]]:
    """The batch's id, figures, promises missed."""
    with tempfile.TemporaryDirectory() as name:
        files, total = [], 0
        for number in range(pictures):
            path = Path(name, f"p{number:05d}.jpg")
            total += path.write_bytes(rig.picture(number, SIDE))
            files.append(Upload("files", path.name, path))
        began = time.monotonic()
        listed = rig.manifest([f.name for f in files])
        batch = client.send_files(files, manifest=listed, name="two thousand")
        took = time.monotonic() - began
    items = list(client.batch_items(batch.batch_id))
    accepted = [i.name for i in items if i.state == "accepted"]
    missed = []
    if batch.accepted != pictures or sorted(accepted) != sorted(f.name for f in files):
        missed.append(f"{batch.accepted} of {pictures} pictures were accepted")
    facts = {"mb": round(total / 1e6), "seconds": round(took, 1), "per_s": round(pictures / took)}
    return batch.batch_id, facts, missed


def run(client: LikenessClient, batch_id: str, pictures: int) -> tuple[dict[str, Any], list[str]]:
    """One run over the batch, to its end."""
    began = time.monotonic()
    run_id = client.start_run(batch_id, PLAN).run_id
    ended = client.wait(run_id)
    took = time.monotonic() - began
    figures: dict[str, set[str]] = {}
    lines = 0
    for row in client.measurements(run_id):
        figures.setdefault(row["item_id"], set()).add(f"{row['metric']}/{row['region']}")
        lines += 1
    missed = []
    if ended.state != "done" or dict(ended.outcomes) != {"measured": pictures}:
        missed.append(f"the run is {ended.state} with {ended.outcomes}: {ended.error}")
    if len(figures) != pictures or len({frozenset(f) for f in figures.values()}) != 1:
        missed.append(f"{len(figures)} of {pictures} items have figures, or not all the same ones")
    if lines != sum(len(f) for f in figures.values()):
        missed.append("a figure is there twice")
    facts = {"seconds": round(took), "per_s": round(pictures / took, 1), "figures": lines}
    return facts | {"outcomes": dict(ended.outcomes)}, missed


def main() -> int:
    """The batch, the run, the peak of memory."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pictures", type=int, default=2000)
    asked.add_argument("--nice", type=int, default=0)
    chosen = asked.parse_args()
    rig.on_signals()
    with rig.folder() as folder, rig.stand(folder / "home", nice=chosen.nice) as there:
        peak = Peak(there)
        with peak.watched(), there.client() as client:
            batch_id, sent, missed = send(client, chosen.pictures)
            ran, more = run(client, batch_id, chosen.pictures)
        missed += [*more, *there.watch.wrong]
    if peak.mb["api_mb"] > MEMORY_MB:
        missed.append(f"the service held {peak.mb['api_mb']} MB, limit {MEMORY_MB}")
    facts = {
        "pictures": chosen.pictures,
        "side": SIDE,
        "sent": sent,
        "run": ran,
        "peak": dict(peak.mb),
    }
    return rig.finish("batch", facts, missed)


if __name__ == "__main__":
    sys.exit(main())
