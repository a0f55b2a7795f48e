"""Reading the boxes of HEIC and AVIF (ISO/IEC 14496-12, 23008-12) before decoding."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import PictureRejected
from preprocess.limits import Limits

_CONTAINERS = {b"meta", b"iprp", b"ipco", b"moov", b"trak", b"mdia", b"minf", b"stbl"}
_MAX_BOXES = 20_000
_TRANSFERS = {16: "PQ", 18: "HLG"}


@dataclass(slots=True)
class _Found:
    has_meta: bool = False
    has_moov: bool = False
    boxes: int = 0
    transfer: int = 0
    bits: int = 8


def check_boxes(data: bytes, limits: Limits, name: str) -> int:
    """Check every declared picture size, and the transfer curve; bits a channel come back.

    Raises PictureRejected: too large, HDR (PQ or HLG), damaged or empty container.
    """
    found = _Found()
    _walk(data, 0, len(data), limits, found, name, 0)
    if not found.has_meta and not found.has_moov:
        raise PictureRejected(f"damaged or empty {name}", "damaged")
    if found.transfer in _TRANSFERS:
        kind = _TRANSFERS[found.transfer]
        raise PictureRejected(f"HDR ({kind}) image not supported", "hdr")
    return found.bits


def _walk(
    data: bytes, at: int, end: int, limits: Limits, found: _Found, name: str, depth: int
) -> None:
    while at + 8 <= end:
        found.boxes += 1
        if found.boxes > _MAX_BOXES or depth > 12:
            raise PictureRejected(f"damaged {name} (too many boxes)", "damaged")
        size, kind, head = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], 8
        if size == 1:
            size, head = int.from_bytes(data[at + 8 : at + 16], "big"), 16
        elif size == 0:
            size = end - at
        if size < head:
            return
        body, stop = at + head, min(at + size, end)
        if kind in _CONTAINERS:
            found.has_meta |= kind == b"meta"
            found.has_moov |= kind == b"moov"
            _walk(data, body + (4 if kind == b"meta" else 0), stop, limits, found, name, depth + 1)
        else:
            _property(data, kind, body, stop, limits, found, name)
        at += size


def _property(
    data: bytes, kind: bytes, body: int, stop: int, limits: Limits, found: _Found, name: str
) -> None:
    if kind == b"ispe" and stop - body >= 12:
        width, height = (int.from_bytes(data[body + i : body + i + 4], "big") for i in (4, 8))
        limits.check_size(width, height, name)
    elif kind == b"colr" and data[body : body + 4] == b"nclx" and stop - body >= 8:
        transfer = int.from_bytes(data[body + 6 : body + 8], "big")
        found.transfer = found.transfer or transfer
    elif kind == b"pixi" and stop - body >= 6:
        found.bits = max(found.bits, min(data[body + 5], 16))
