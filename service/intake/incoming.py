"""A batch on its way in: as a multipart upload, as one ZIP, or as a list of addresses.

Each file counts by itself. Only what is wrong with the envelope (a broken upload, archive or
manifest, or more than is allowed) ends the whole of it, and then nothing of it stays.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError, StoreUnavailable
from service.intake.manifest import Row, read_rows
from service.intake.names import stored_name
from service.intake.parts import BrokenUpload, Part, PartLimits, PartReader
from service.intake.receiving import Gate, Received, Receiver
from service.intake.url_list import FetchLimits, Wanted, fetch_all
from service.intake.zip_file import entries, manifest_in
from service.limits import Limits
from service.store.batches import Batches
from service.store.blobs import Blobs
from service.store.database import Database

FILES = ("files", "files[]", "file")
ARCHIVE, MANIFEST, NAME = "archive", "manifest", "name"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)
_PIECE = 1 << 20


class NoPictures(LikenessError):
    """The envelope is whole, and there is nothing in it."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What receives: ``folder`` is private to this one batch, ``allowed`` are hosts that the
    operator trusts although they lie inside."""

    database: Database
    blobs: Blobs
    limits: Limits
    gate: Gate
    folder: Path
    allowed: Collection[str] = ()

    def multipart(self, batch_id: str, content_type: str, pieces: Iterable[bytes]) -> Received:
        """Files in the fields ``files``, ZIPs in ``archive``, beside them ``manifest`` and ``name``.

        Raises BrokenUpload, PictureRejected (an archive), ManifestError, NoPictures."""
        limits = PartLimits(
            self.limits.max_file_bytes,
            self.limits.max_manifest_bytes,
            self.limits.max_items + self.limits.max_form_fields,
            self.limits.max_batch_bytes,
        )
        with self._receiver(batch_id) as receiver:
            form = _Form(self, receiver)
            reader = PartReader(
                content_type, self.folder, limits, FILES, {ARCHIVE: self.limits.max_batch_bytes}
            )
            try:
                for piece in pieces:
                    for part in reader.feed(piece):
                        form.take(part)
                reader.finish()
            finally:
                reader.close()
            return form.finish()

    def archive(self, batch_id: str, pieces: Iterable[bytes], name: str) -> Received:
        """One ZIP, perhaps with its manifest in it. Raises as ``multipart``."""
        path = self.folder / "upload.zip"
        with self._receiver(batch_id) as receiver:
            with path.open("wb") as sink:
                for piece in pieces:
                    sink.write(piece)
            rows = self.take_archive(receiver, path)
            return self.finish(receiver, rows, name)

    def urls(
        self, batch_id: str, wanted: Sequence[Wanted], manifest: str | None, name: str
    ) -> Received:
        """Pictures to be fetched. Raises as ``multipart``."""
        limits = FetchLimits(
            self.limits.max_url_bytes,
            self.limits.url_timeout_s,
            self.limits.max_batch_bytes,
            self.limits.urls_timeout_s,
            self.limits.urls_at_once,
            self.allowed,
        )
        with self._receiver(batch_id) as receiver:
            rows = self.rows_of(manifest.encode()) if manifest is not None else []
            own = [entry.row() for entry in wanted]
            found = fetch_all(wanted, self.folder, limits)
            for entry, row in zip(found, own, strict=True):
                called = entry.wanted.called
                if entry.path is None:
                    receiver.refuse(called, entry.size, entry.code, entry.reason, row=row)
                else:
                    receiver.take(called, entry.path, entry.size, row)
            return self.finish(receiver, rows, name)

    # -- parts of it ---------------------------------------------------------------------------

    def take_archive(self, receiver: Receiver, path: Path) -> list[Row]:
        """Every file of the ZIP at ``path``, which is deleted. Returns the rows of its manifest."""
        try:
            found = entries(path, self.folder, self.limits.archives())
            data = manifest_in(path, self.limits.max_manifest_bytes)
            rows = [] if data is None else self.rows_of(data)
            for entry in found:
                self.room_for_one_more(receiver)
                if entry.path is None:
                    receiver.refuse(
                        entry.name, entry.size, entry.code, entry.reason, skipped=entry.skipped
                    )
                else:
                    receiver.take(entry.name, entry.path, entry.size)
        finally:
            path.unlink(missing_ok=True)
        return rows

    def room_for_one_more(self, receiver: Receiver) -> None:
        """Raises BrokenUpload when the batch has as many files as it may."""
        if receiver.count >= self.limits.max_items:
            said = f"more than {self.limits.max_items} files in one batch"
            raise BrokenUpload(said, too_large=True)

    def rows_of(self, manifest: bytes) -> list[Row]:
        """The rows of a manifest. Raises ManifestError."""
        return read_rows(manifest, self.limits.max_items)

    def finish(self, receiver: Receiver, rows: Sequence[Row], name: str) -> Received:
        """All is in. Raises NoPictures where that is nothing."""
        if not receiver.count:
            raise NoPictures("no picture was sent")
        called = stored_name(name, self.limits.max_name_bytes) if name.strip() else ""
        return receiver.finish(rows, called)

    @contextmanager
    def _receiver(self, batch_id: str) -> Iterator[Receiver]:
        try:
            with Receiver(batch_id, Batches(self.database), self.blobs, self.gate) as receiver:
                yield receiver
        except OSError as error:
            if error.errno in _FULL:
                raise StoreUnavailable(f"no room for an upload: {error.strerror}") from None
            raise


class _Form:
    """The parts of a multipart upload, in whatever order they come."""

    def __init__(self, desk: Desk, receiver: Receiver) -> None:
        self._desk, self._receiver = desk, receiver
        self._name = ""
        self._rows: list[Row] | None = None
        self._archived: list[Row] = []
        self._seen: set[str] = set()

    def take(self, part: Part) -> None:
        """One part that is whole."""
        if part.field in FILES:
            self._file(part)
        elif part.field == ARCHIVE and part.path is not None:
            self._archived += self._desk.take_archive(self._receiver, part.path)
        elif part.field in (MANIFEST, NAME) and part.field not in self._seen:
            self._seen.add(part.field)
            if part.field == NAME:
                self._name = part.data.decode("utf-8", "replace")
            elif part.data.strip():
                self._rows = self._desk.rows_of(part.data)
        else:
            known = ", ".join((FILES[0], ARCHIVE, MANIFEST, NAME))
            twice = part.field in self._seen
            what = "comes twice" if twice else f"is not known (known: {known})"
            raise BrokenUpload(f"field '{stored_name(part.field, 40)}' {what}")

    def _file(self, part: Part) -> None:
        if part.path is None:
            limit = self._desk.limits.max_file_bytes / 1e6
            reason = f"file too large, limit {limit:.0f} MB"
            self._desk.room_for_one_more(self._receiver)
            self._receiver.refuse(part.filename or "", part.size, "too_large", reason)
        elif not part.filename and not part.size:
            part.path.unlink()  # what a browser sends for a field in which nothing was chosen
        else:
            self._desk.room_for_one_more(self._receiver)
            self._receiver.take(part.filename or "", part.path, part.size)

    def finish(self) -> Received:
        """The upload has ended."""
        rows = self._archived if self._rows is None else self._rows
        return self._desk.finish(self._receiver, rows, self._name)
