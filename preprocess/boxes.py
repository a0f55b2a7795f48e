"""Reading the boxes of HEIC and AVIF (ISO/IEC 14496-12, 23008-12) before decoding."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import PictureRejected
from preprocess.limits import Limits

_CONTAINERS = {b"meta", b"iprp", b"ipco", b"moov", b"trak", b"mdia", b"minf", b"stbl"}
_MAX_BOXES = 20_000
_TRANSFERS = {16: "PQ", 18: "HLG"}


@dataclass(slots=True)
class BoxFacts:
    """What the boxes say: ``code_points`` (primaries, transfer) of H.273, ``bits`` a channel."""

    has_meta: bool = False
    has_moov: bool = False
    boxes: int = 0
    code_points: tuple[int, int] | None = None
    bits: int = 8


def check_boxes(data: bytes, limits: Limits, name: str) -> BoxFacts:
    """Check every declared picture size, and the transfer curve.

    Raises PictureRejected: too large, HDR (PQ or HLG), damaged or empty container.
    """
    found = BoxFacts()
    _walk(data, 0, len(data), limits, found, name, 0)
    if not found.has_meta and not found.has_moov:
        raise PictureRejected(f"damaged or empty {name}", "damaged")
    if found.code_points and found.code_points[1] in _TRANSFERS:
        kind = _TRANSFERS[found.code_points[1]]
        raise PictureRejected(f"HDR ({kind}) image not supported", "hdr")
    return found


def _walk(
    data: bytes, at: int, end: int, limits: Limits, found: BoxFacts, name: str, depth: int
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
        if depth == 0 and at + size > end:
            raise PictureRejected(f"truncated {name} ({end} of {at + size} bytes)", "truncated")
        body, stop = at + head, min(at + size, end)
        if kind in _CONTAINERS:
            found.has_meta |= kind == b"meta"
            found.has_moov |= kind == b"moov"
            _walk(data, body + (4 if kind == b"meta" else 0), stop, limits, found, name, depth + 1)
        else:
            _property(data, kind, body, stop, limits, found, name)
        at += size


def _property(
    data: bytes, kind: bytes, body: int, stop: int, limits: Limits, found: BoxFacts, name: str
) -> None:
    if kind == b"ispe" and stop - body >= 12:
        width, height = (int.from_bytes(data[body + i : body + i + 4], "big") for i in (4, 8))
        limits.check_size(width, height, name)
    elif kind == b"colr" and data[body : body + 4] == b"nclx" and stop - body >= 8:
        numbers = (int.from_bytes(data[body + i : body + i + 2], "big") for i in (4, 6))
        found.code_points = found.code_points or (next(numbers), next(numbers))
    elif kind == b"pixi" and stop - body >= 6:
        found.bits = max(found.bits, min(data[body + 5], 16))
