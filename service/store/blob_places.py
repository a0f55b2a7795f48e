"""Where blobs lie: a local folder, or a store that fsspec reaches. Errors are the system's own;
``Blobs`` makes them ours."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from uuid import uuid4

from domain.errors import ExtraMissing, LedgerError
from service.store import blob_ages

BLOCK = 1 << 20
PART = 8 << 20
"""A large blob goes to a remote store in parts of so many bytes, two at a time."""
CONNECT_S, READ_S = 5, 30


class Place(Protocol):
    """Keys are known to be keys here. ``name`` is fit to be shown."""

    name: str

    def size(self, key: str) -> int | None:
        """Bytes of the blob, None where it is absent."""

    def write(self, key: str, source: BinaryIO, size: int) -> None:
        """Store the rest of ``source`` whole, or not at all."""

    def read(self, key: str) -> bytes:
        """All bytes."""

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The bytes, piece by piece."""

    def delete(self, key: str) -> bool:
        """Whether there was one."""

    def tidy(self, before: float) -> int:
        """Remove remains of killed writes."""

    def older(self, before: float) -> Iterator[str]:
        """Keys of blobs stored before that time, however many there are."""

    def ping(self) -> None:
        """Raise where nothing can be stored."""

    def hide(self, text: str) -> str:
        """``text`` without secrets."""


class Folder:
    """A folder of this machine or of one that it mounts."""

    def __init__(self, root: Path) -> None:
        self.name = str(root)
        self._root = root
        self._aside = root / ".parts"
        self._was_there = root.is_dir()

    def _path(self, key: str) -> Path:
        return self._root / key[:2] / key

    def _make(self, folder: Path) -> None:
        """A folder that survives a power cut. A store that was there and is gone (not mounted any
        more) is not begun anew: that would hide the loss."""
        if folder.is_dir():
            self._was_there = True
            return
        if self._was_there and not self._root.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder is gone")
        folder.mkdir(parents=True, exist_ok=True)
        self._was_there = True
        for above in (folder.parent, folder.parent.parent):
            _sync_folder(above)

    def size(self, key: str) -> int | None:
        """Bytes of the blob, None where it is absent."""
        try:
            return self._path(key).stat().st_size
        except FileNotFoundError:
            if self._was_there and not self._root.is_dir():
                raise OSError(errno.ENOENT, "the folder is gone") from None
            return None

    def write(self, key: str, source: BinaryIO, size: int) -> None:
        """Written aside and made safe, then renamed: never half a blob under a good name."""
        target = self._path(key)
        self._make(self._aside)
        self._make(target.parent)
        part = self._aside / f"{key}.{uuid4().hex}"
        try:
            with part.open("xb") as sink:
                shutil.copyfileobj(source, sink, BLOCK)
                if sink.tell() != size:
                    raise OSError(errno.EIO, "the file changed while it was stored")
                sink.flush()
                os.fsync(sink.fileno())
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        _sync_folder(target.parent)

    def read(self, key: str) -> bytes:
        """All bytes."""
        return self._path(key).read_bytes()

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The bytes, piece by piece."""
        return self._path(key).open("rb")

    def delete(self, key: str) -> bool:
        """Whether there was one."""
        if self.size(key) is None:
            return False
        self._path(key).unlink(missing_ok=True)
        _sync_folder(self._path(key).parent)
        return True

    def tidy(self, before: float) -> int:
        """Remove remains of killed writes."""
        old = [p for p in self._aside.glob("*") if p.stat().st_mtime < before]
        for part in old:
            part.unlink(missing_ok=True)
        return len(old)

    def older(self, before: float) -> Iterator[str]:
        """By the time of their files."""
        return blob_ages.in_folder(self._root, before)

    def ping(self) -> None:
        """Write a little and delete it again: the only sure way to know."""
        self._make(self._aside)
        probe = self._aside / f"probe.{uuid4().hex}"
        try:
            with probe.open("xb") as sink:
                sink.write(b"\0" * 4096)
        finally:
            probe.unlink(missing_ok=True)

    def hide(self, text: str) -> str:
        """Nothing here is secret."""
        return text


def _sync_folder(folder: Path) -> None:
    """A new name in a folder survives a power cut only once the folder itself is on the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Remote:
    """An S3-type store, or any other that fsspec knows. A blob appears there whole or not at all:
    that is the store's own promise for one object."""

    def __init__(self, url: str) -> None:
        import fsspec

        self._secrets, options, plain = _taken_apart(url)
        self.name = plain
        try:
            self._fs: Any
            self._fs, root = fsspec.core.url_to_fs(plain, **options)
        except ImportError:
            raise ExtraMissing(
                f"{plain}: this kind of store needs the optional packages [server]"
            ) from None
        except ValueError as error:
            raise LedgerError(f"{plain}: is no address of a store: {error}") from None
        self._s3 = plain.startswith("s3://")
        self._root = str(root).rstrip("/")
        if self._s3:
            self._fs.retries = 2  # a store that is gone is told soon; the caller tries again

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key}"

    def size(self, key: str) -> int | None:
        """Bytes of the blob, None where it is absent."""
        self._fs.invalidate_cache()
        try:
            return int(self._fs.info(self._path(key))["size"])
        except FileNotFoundError:
            return None

    def write(self, key: str, source: BinaryIO, size: int) -> None:
        """In one request, or in parts that count only when the last is in."""
        path = self._path(key)
        if size <= 2 * PART:
            self._fs.pipe_file(path, source.read())
            return
        # Not fs.open: it finishes what it has when it is closed by an error, half a blob
        local = getattr(source, "name", None)
        if isinstance(local, str | os.PathLike) and self._s3:
            self._fs.put_file(str(local), path, chunksize=PART, max_concurrency=2)
        else:
            self._fs.pipe_file(path, source.read())

    def read(self, key: str) -> bytes:
        """All bytes."""
        data: bytes = self._fs.cat_file(self._path(key))
        return data

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The bytes, piece by piece."""
        found: AbstractContextManager[BinaryIO] = self._fs.open(self._path(key), "rb")
        return found

    def delete(self, key: str) -> bool:
        """Whether there was one."""
        if self.size(key) is None:
            return False
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(key))
        return True

    def tidy(self, before: float) -> int:
        """Nothing: parts of an upload that was cut off are the bucket's lifecycle rule's."""
        return 0

    def older(self, before: float) -> Iterator[str]:
        """By the store's own clock."""
        listed = blob_ages.in_bucket if self._s3 else blob_ages.elsewhere
        return listed(self._fs, self._root, before)

    def ping(self) -> None:
        """Ask for the bucket: an object that is missing says nothing of it."""
        if self._s3:
            self._fs.call_s3("head_bucket", Bucket=self._fs.split_path(self._root)[0])

    def hide(self, text: str) -> str:
        """``text`` without the key that the URL holds."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _taken_apart(url: str) -> tuple[list[str], dict[str, Any], str]:
    """Secrets, fsspec's options, and the URL without either."""
    parts = urlsplit(url)
    plain = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    if parts.scheme != "s3":
        return [], {}, plain
    query = dict(parse_qsl(parts.query))
    if unknown := set(query) - {"endpoint_url", "region"}:
        raise LedgerError(f"{plain}: nothing is known of '{sorted(unknown)[0]}' in a store's URL")
    options: dict[str, Any] = {
        "use_listings_cache": False,
        "config_kwargs": {
            "connect_timeout": CONNECT_S,
            "read_timeout": READ_S,
            "retries": {"max_attempts": 2, "mode": "standard"},
        },
    }
    if "endpoint_url" in query:
        options["endpoint_url"] = query["endpoint_url"]
    if "region" in query:
        options["client_kwargs"] = {"region_name": query["region"]}
    user, secret = unquote(parts.username or ""), unquote(parts.password or "")
    if user and secret:
        options |= {"key": user, "secret": secret}
    return [s for s in (secret, parts.password or "") if s], options, plain
