"""Reads a multipart upload as it arrives: every file goes to a file of its own, in bounded memory.

Names in it are data: files on disk are numbered. Limits hold while bytes come in, not afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from domain.errors import LikenessError

_DISPOSITION = "content-disposition"
_MAX_HEADERS = 16
_MAX_HEADER = 32 * 1024


class BrokenUpload(LikenessError):
    """The upload as a whole cannot be read, or asks for more than it may. ``too_large`` tells the
    second from the first."""

    def __init__(self, reason: str, too_large: bool = False) -> None:
        super().__init__(reason)
        self.too_large = too_large


@dataclass(frozen=True, slots=True)
class PartLimits:
    """``file_bytes`` of one file, ``field_bytes`` of a manifest or another field, ``parts`` of one
    upload, ``total_bytes`` of all of it as it is sent."""

    file_bytes: int
    field_bytes: int
    parts: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """One part, whole. ``path`` is where a file's bytes lie (the reader's to delete), ``data`` what
    a field holds. ``size`` counts all its bytes; a file over the limit has them counted, not kept,
    and ``path`` is None."""

    field: str
    filename: str | None
    size: int
    path: Path | None = None
    data: bytes = b""


@dataclass(slots=True)
class _Open:
    headers: dict[str, str] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None
    path: Path | None = None
    sink: BinaryIO | None = None
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    limit: int = 0


class PartReader:
    """Feed it the body piece by piece; ``finish`` when it has ended, ``close`` whatever happens."""

    def __init__(
        self,
        content_type: str,
        folder: Path,
        limits: PartLimits,
        files: Sequence[str],
        larger: Mapping[str, int] | None = None,
    ) -> None:
        """``files`` are the fields whose parts go to disk, into ``folder``; those in ``larger`` too,
        each with a limit of its own. Raises BrokenUpload."""
        _kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not 0 < len(boundary) <= 200:
            raise BrokenUpload("multipart upload without a boundary")
        self._folder, self._limits = folder, limits
        self._files = dict.fromkeys(files, limits.file_bytes) | dict(larger or {})
        self._done: list[Part] = []
        self._count = self._total = 0
        self._open: _Open | None = None
        self._header, self._value = bytearray(), bytearray()
        self._ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._headers_finished,
                    "on_end": self._whole,
                },
                max_header_count=_MAX_HEADERS,
                max_header_size=_MAX_HEADER,
            )
        except MultipartParseError as error:
            raise BrokenUpload(f"multipart upload cannot be read: {error}") from None

    def feed(self, piece: bytes) -> list[Part]:
        """The parts that ``piece`` completes. Raises BrokenUpload."""
        self._total += len(piece)
        if self._total > self._limits.total_bytes:
            limit = self._limits.total_bytes / 1e6
            raise BrokenUpload(f"upload too large, limit {limit:.0f} MB", too_large=True)
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise BrokenUpload(f"multipart upload cannot be read: {error}") from None
        done, self._done = self._done, []
        return done

    def finish(self) -> None:
        """The body has ended. Raises BrokenUpload when its own end is missing."""
        if not self._ended:
            raise BrokenUpload("multipart upload ends in the middle")

    def close(self) -> None:
        """Let go of a part that was cut off."""
        if self._open is not None and self._open.sink is not None:
            self._open.sink.close()

    # -- called by the parser ------------------------------------------------------------------

    def _begin(self) -> None:
        self._count += 1
        if self._count > self._limits.parts:
            raise BrokenUpload(
                f"more than {self._limits.parts} parts in one upload", too_large=True
            )
        self._open = _Open()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        assert self._open is not None
        name = self._header.decode("latin-1").strip().lower()
        self._open.headers[name] = self._value.decode("latin-1")
        self._header.clear()
        self._value.clear()

    def _headers_finished(self) -> None:
        part = self._open
        assert part is not None
        kind, options = parse_options_header(part.headers.get(_DISPOSITION, ""))
        name = options.get(b"name")
        if kind != b"form-data" or name is None:
            raise BrokenUpload("a part of the upload has no name")
        part.name = _text(name)
        filename = options.get(b"filename")
        part.filename = None if filename is None else _text(filename)
        if part.name in self._files:
            part.limit = self._files[part.name]
            part.path = self._folder / f"part-{self._count:06d}"
            part.sink = part.path.open("wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._open
        assert part is not None
        part.size += end - start
        if part.sink is None:
            if part.size > self._limits.field_bytes:
                limit = self._limits.field_bytes
                raise BrokenUpload(f"a field of the upload is over {limit} bytes", too_large=True)
            part.kept += data[start:end]
        elif part.size <= part.limit:
            part.sink.write(data[start:end])

    def _end(self) -> None:
        part = self._open
        assert part is not None
        self._open = None
        path = part.path
        if part.sink is not None:
            part.sink.close()
        if path is not None and part.size > part.limit:
            path.unlink()
            path = None
        self._done.append(Part(part.name, part.filename, part.size, path, bytes(part.kept)))

    def _whole(self) -> None:
        self._ended = True


def _text(value: bytes) -> str:
    """Browsers and curl send UTF-8; of anything else the bytes that are none become signs."""
    return value.decode("utf-8", "replace")
