"""Content-addressed pictures: in a local folder, or in any S3-type store by its URL.

A key is given back only once its bytes are safe: a killed process or a power cut leaves a whole
blob or none. Putting the same bytes twice, or from several processes at once, stores them once.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from domain.errors import LedgerError, StoreUnavailable
from service.store.blob_places import Folder, Place, Remote

_KEY = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Bytes by their sha256. Safe to use from several threads and processes. Every method raises
    StoreUnavailable where the store is gone, full or not let in to, LedgerError where the blob
    is; to try again after StoreUnavailable does no harm."""

    def __init__(self, url: str) -> None:
        """``url`` is a folder or a URL: ``s3://bucket/prefix``, where need be with
        ``?endpoint_url=http://host:port&region=NAME`` and as ``s3://KEY:SECRET@bucket``; a key
        that is not in the URL is looked for where Amazon's own tools look."""
        self.url = url
        local = "://" not in url or url.startswith("file://")
        self._place: Place = Folder(Path(url.removeprefix("file://"))) if local else Remote(url)
        self.name = self._place.name

    def put(self, data: bytes) -> str:
        """Store ``data``; return its key."""
        key = hashlib.sha256(data).hexdigest()
        self._put(key, io.BytesIO(data), len(data))
        return key

    def put_file(self, path: Path) -> str:
        """Store a file's bytes without holding them in memory; return their key. The file must
        not change meanwhile. Raises LedgerError where it cannot be read."""
        try:
            with path.open("rb") as source:
                key = hashlib.file_digest(source, "sha256").hexdigest()
                size = source.tell()
                source.seek(0)
                self._put(key, source, size)
        except OSError as error:
            raise LedgerError(f"{path.name}: cannot be read: {error.strerror or error}") from None
        return key

    def _put(self, key: str, source: BinaryIO, size: int) -> None:
        try:
            if self._place.size(key) != size:  # absent, or half of it from a disk that lied
                self._place.write(key, source, size)
        except LedgerError:
            raise
        except Exception as error:
            raise self._unavailable("cannot store a picture", error) from None

    def get(self, key: str) -> bytes:
        """The bytes of ``key``. Raises LedgerError when they are gone or not what they were."""
        data: bytes = self._told(key, self._place.read)
        if hashlib.sha256(data).hexdigest() != key:
            raise LedgerError(f"{self.name}: picture {key[:12]} is damaged (its hash differs)")
        return data

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The bytes of ``key`` to be read piece by piece; their hash is not checked."""
        found: AbstractContextManager[BinaryIO] = self._told(key, self._place.open)
        return found

    def exists(self, key: str) -> bool:
        """Whether it is stored."""
        return self._told(key, self._place.size) is not None

    def size(self, key: str) -> int:
        """How many bytes ``key`` has."""
        found: int | None = self._told(key, self._place.size)
        if found is None:
            raise self._gone(key)
        return found

    def delete(self, key: str) -> bool:
        """Delete it; returns whether it was there."""
        return bool(self._told(key, self._place.delete))

    def tidy(self, before: float) -> int:
        """Delete what writes that were killed before that time (seconds since 1970) left behind.
        Returns how many there were."""
        try:
            return self._place.tidy(before)
        except OSError as error:
            raise self._unavailable("cannot be tidied", error) from None

    def older(self, before: float) -> Iterator[str]:
        """Keys of the blobs that were stored before that time (seconds since 1970), a page in memory
        at a time. They may be deleted meanwhile. Putting bytes that are there does not make them
        younger."""
        try:
            yield from self._place.older(before)
        except Exception as error:
            raise self._unavailable("cannot be listed", error) from None

    def ping(self) -> None:
        """Raises StoreUnavailable where nothing can be stored now."""
        try:
            self._place.ping()
        except Exception as error:
            raise self._unavailable("cannot be reached", error) from None

    def _told(self, key: str, do: Any) -> Any:
        """``do`` of a key that is one (a name from outside could lead out of the folder)."""
        if not _KEY.fullmatch(key):
            raise LedgerError(f"{self.name}: not the key of a picture (64 hexadecimal digits)")
        try:
            return do(key)
        except FileNotFoundError:
            self.ping()  # the picture is gone, or the whole store
            raise self._gone(key) from None
        except Exception as error:
            raise self._unavailable(f"picture {key[:12]} cannot be read", error) from None

    def _gone(self, key: str) -> LedgerError:
        return LedgerError(f"{self.name}: picture {key[:12]} cannot be read: it is not there")

    def _unavailable(self, what: str, error: Exception) -> StoreUnavailable:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        line = self._place.hide(" ".join(str(said).split()))
        return StoreUnavailable(f"{self.name}: {what}: {line[:300]}")
