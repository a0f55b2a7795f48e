"""Takes pictures into a batch: each through the decode gate, then its row, then its bytes.

The row comes first, so that whatever is in the blob store is named by some row, also when the
process is killed in between: the batch is then still ``receiving``, which no run may use and the
sweeper clears. Only ``finish`` makes it ``ready``.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from domain.errors import LedgerError
from service.intake.decoding import Judged
from service.intake.manifest import Row, Sent, match
from service.intake.names import Names
from service.store.batches import ACCEPTED, REJECTED, SKIPPED, Batches
from service.store.blobs import Blobs

_EXTRA = 2
"""Pictures that wait on disk for each one being decoded."""


class Gate(Protocol):
    """What judges pictures; several are asked at a time."""

    @property
    def processes(self) -> int:
        """Pictures that are decoded at a time."""
        ...

    def judge(self, path: Path) -> Judged:
        """The media type, or why it is no picture."""
        ...


@dataclass(frozen=True, slots=True)
class Received:
    """What came of a batch. ``without_row`` counts pictures that the manifest does not name."""

    accepted: int
    rejected: int
    skipped: int
    without_row: int


class Receiver:
    """One batch being received. Use as a context manager: what is not finished is taken back."""

    def __init__(self, batch_id: str, batches: Batches, blobs: Blobs, gate: Gate) -> None:
        self.batch_id = batch_id
        self._batches, self._blobs, self._gate = batches, blobs, gate
        self._names = Names()
        self._sent: list[Sent] = []
        self._own_rows: dict[int, Row] = {}
        self._pool = ThreadPoolExecutor(gate.processes + 1, thread_name_prefix="intake")
        self._room = threading.BoundedSemaphore((1 + _EXTRA) * gate.processes)
        self._jobs: list[Future[str]] = []
        self._finished = False
        self._seq = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        if not self._finished:
            with suppress(LedgerError):  # then the sweeper does it
                self._batches.discard(self.batch_id, self._blobs)

    @property
    def count(self) -> int:
        """Files taken so far, refused ones included."""
        return len(self._sent)

    def take(self, given: str, path: Path, size: int, row: Row | None = None) -> None:
        """A file at ``path``, which is deleted once it is dealt with. Waits while too many are under
        way. Raises what an earlier one failed with (StoreUnavailable)."""
        sent = self._enter(given, row)
        self._room.acquire()
        try:
            self._raise_failures()
            self._jobs.append(self._pool.submit(self._keep, sent, path, size))
        except BaseException:
            self._room.release()
            raise

    def refuse(
        self, given: str, size: int, code: str, reason: str, *, skipped: bool = False,
        row: Row | None = None,
    ) -> None:  # fmt: skip
        """A file of which it is known already that it is no picture to work with."""
        sent = self._enter(given, row)
        state = SKIPPED if skipped else REJECTED
        self._batches.add_item(
            _item(self.batch_id, sent, state) | {"bytes": size, "code": code, "reason": reason}
        )

    def finish(self, rows: Sequence[Row], name: str = "") -> Received:
        """All files are in: wait for them, tell the manifest's rows to them, make the batch ready.
        Raises StoreUnavailable; nothing of the batch stays then."""
        for job in self._jobs:
            job.result()
        found = match(rows, self._sent)
        attributes: dict[int, Mapping[str, str]] = {**found.attributes}
        for seq, own in self._own_rows.items():
            attributes[seq] = {**attributes.get(seq, {}), **own}
        faults = [
            _item(self.batch_id, self._numbered(name), REJECTED) | {"code": code, "reason": reason}
            for name, code, reason in found.faults
        ]
        counts = self._batches.make_ready(self.batch_id, name, attributes, faults)
        self._finished = True
        without = found.without_row if rows else 0
        return Received(counts[ACCEPTED], counts[REJECTED], counts[SKIPPED], without)

    def _enter(self, given: str, row: Row | None) -> Sent:
        sent = self._numbered(given)
        self._sent.append(sent)
        if row:
            self._own_rows[sent.seq] = row
        return sent

    def _numbered(self, given: str) -> Sent:
        self._seq += 1
        return Sent(self._seq, given, self._names.unique(given))

    def _raise_failures(self) -> None:
        done = [job for job in self._jobs if job.done()]
        self._jobs = [job for job in self._jobs if not job.done()]
        for job in done:
            job.result()

    def _keep(self, sent: Sent, path: Path, size: int) -> str:
        try:
            judged = self._gate.judge(path)
            row: dict[str, Any] = {"bytes": size}
            if not judged.accepted:
                row |= {"code": judged.code, "reason": judged.reason}
                self._batches.add_item(_item(self.batch_id, sent, REJECTED) | row)
                return REJECTED
            key = _hash_of(path)
            row |= {"blob": key, "media_type": judged.media_type}
            self._batches.add_item(_item(self.batch_id, sent, ACCEPTED) | row)
            self._blobs.put_file(path)
            return ACCEPTED
        finally:
            path.unlink(missing_ok=True)
            self._room.release()


def _item(batch_id: str, sent: Sent, state: str) -> dict[str, Any]:
    return {
        "batch_id": batch_id, "seq": sent.seq, "name": sent.name, "blob": None, "bytes": None,
        "media_type": None, "state": state, "code": None, "reason": None,
        "attributes": None,
    }  # fmt: skip


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
