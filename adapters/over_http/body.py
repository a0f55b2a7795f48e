"""Reads the body of an answer: bounded before it is unpacked and while it is."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import httpx

ACCEPTED = "gzip, deflate"
"""What is asked for. Others unpack without a bound on what one piece may become."""
_GZIP_OR_ZLIB = 47


class TooLarge(Exception):
    """The body, packed or unpacked, is beyond the limit."""


class Unreadable(Exception):
    """The body cannot be unpacked; the text says why."""


def read_body(response: httpx.Response, limit: int, between: Callable[[], None]) -> bytes:
    """The unpacked body, at most ``limit`` bytes of it held at any time. ``between`` is called
    before each piece and may raise.

    Raises TooLarge, Unreadable, and whatever httpx raises.
    """
    packing = [e.strip() for e in response.headers.get("content-encoding", "").lower().split(",")]
    packing = [e for e in packing if e not in ("", "identity")]
    if len(packing) > 1 or not {"gzip", "x-gzip", "deflate"}.issuperset(packing):
        raise Unreadable(f"packed as '{', '.join(packing)[:40]}', which was not asked for")
    unpack = _Unpacker(limit) if packing else None
    pieces, size = [], 0
    for raw in response.iter_raw():
        between()
        piece = raw if unpack is None else unpack.feed(raw)
        size += len(piece)
        if size > limit:
            raise TooLarge
        pieces.append(piece)
    if unpack is not None:
        unpack.finish()
    return b"".join(pieces)


class _Unpacker:
    """gzip (of one member or several) or zlib, never more than ``limit`` + 1 bytes a piece."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inner = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def feed(self, raw: bytes) -> bytes:
        """What ``raw`` unpacks to. Raises TooLarge or Unreadable."""
        found: list[bytes] = []
        size = 0
        try:
            while raw:
                if self._inner.eof:
                    self._inner = zlib.decompressobj(_GZIP_OR_ZLIB)
                self._begun = True
                piece = self._inner.decompress(raw, self._limit + 1 - size)
                size += len(piece)
                if size > self._limit:
                    raise TooLarge
                found.append(piece)
                raw = self._inner.unused_data
        except zlib.error as error:
            raise Unreadable(f"it is not what it was said to be packed as ({error})") from None
        return b"".join(found)

    def finish(self) -> None:
        """Raises Unreadable when the end is missing."""
        if self._begun and not self._inner.eof:
            raise Unreadable("its end is missing")
