"""Content-addressed pictures through fsspec: a local folder now, any S3-type store by its URL."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import uuid4

import fsspec

from domain.errors import LedgerError


class Blobs:
    """Bytes by their sha256. Writing the same bytes twice stores them once."""

    def __init__(self, url: str) -> None:
        """``url`` is a folder or an fsspec URL (``s3://bucket/prefix``)."""
        self.url = url
        filesystem, root = fsspec.core.url_to_fs(url, auto_mkdir=True)
        self._fs: Any = filesystem
        self._root = str(root).rstrip("/")

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key}"

    def put(self, data: bytes) -> str:
        """Store ``data``; return its key. Raises LedgerError when it cannot be stored whole."""
        key = hashlib.sha256(data).hexdigest()
        path = self._path(key)
        if self._fs.exists(path):
            return key
        # A killed write must leave no half blob under a good name: write aside, then rename.
        aside = f"{path}.{uuid4().hex}.part"
        try:
            with self._fs.open(aside, "wb") as sink:
                sink.write(data)
            self._fs.mv(aside, path)
        except OSError as error:
            raise LedgerError(
                f"{self._root}: cannot store a picture: {error.strerror or error}"
            ) from None
        return key

    def get(self, key: str) -> bytes:
        """The bytes of ``key``. Raises LedgerError when they are gone or not what they were."""
        try:
            with self._fs.open(self._path(key), "rb") as source:
                data: bytes = source.read()
        except OSError as error:
            raise LedgerError(f"{self._root}: picture {key[:12]} cannot be read: {error}") from None
        if hashlib.sha256(data).hexdigest() != key:
            raise LedgerError(f"{self._root}: picture {key[:12]} is damaged (its hash differs)")
        return data
