"""Reading a JPEG's markers before decoding: size, metadata, and whether all of it is there.

Decoders patch over damage (ITU-T T.81 leaves it open): a cut file comes back grey at the bottom or,
when progressive, softly whole. Both would be measured as harm done by a tool, so completeness is
established here from the markers, and libjpeg's own warnings are taken as errors by the decoder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median

from domain.errors import PictureRejected
from preprocess.limits import Limits

_MARKER = re.compile(rb"\xff[^\x00\xff]", re.DOTALL)
_ENDS_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_MAX_SEGMENTS = 20_000
_LOSSLESS = {0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF}
_PROGRESSIVE = {0xC2, 0xCA}
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_KEPT = _FRAMES | {0xC4, 0xCC, 0xDB, 0xDD, 0xDA, 0xEE}
_STANDALONE = frozenset(range(0xD0, 0xD9)) | {0x01}
_SCAN_BUDGET = 2000.0
"""Scans times megapixels: a progressive file of thousands of tiny scans costs one pass each."""


@dataclass(slots=True)
class JpegFile:
    """A JPEG after the walk over its markers.

    ``stream`` holds the parts that pixels depend on, without metadata or trailing data.
    ``luma_table`` are the 64 steps of the first quantisation table, ``adobe`` the transform of the
    Adobe marker (None without one), ``components`` their ids in order. ``exif`` and ``xmp`` are the
    first segment of each kind. ``complete_end`` tells whether the end marker was there.
    """

    width: int = 0
    height: int = 0
    components: tuple[int, ...] = ()
    precision: int = 8
    frame_marker: int = 0
    adobe: int | None = None
    exif: bytes | None = None
    xmp: bytes | None = None
    icc_parts: list[bytes] = field(default_factory=list)
    luma_table: tuple[int, ...] = ()
    complete_end: bool = False
    stray: int = 0
    scans: int = 0
    frames: int = 1
    stream: bytes = b""
    coverage: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def progressive(self) -> bool:
        """True for spectral selection or successive approximation (SOF2, SOF10)."""
        return self.frame_marker in _PROGRESSIVE

    def missing_scans(self) -> bool:
        """True when a component, a frequency or its last bits were never sent."""
        bands = range(64) if self.progressive else range(1)
        return any(self.coverage.get((c, k), 1) != 0 for c in self.components for k in bands)

    def icc(self) -> tuple[bytes | None, str | None]:
        """The profile joined from its numbered segments (ICC.1:2022 B.4), or why there is none."""
        if not self.icc_parts:
            return None, None
        parts = {p[0]: p[2:] for p in self.icc_parts if len(p) >= 2}
        total = self.icc_parts[0][1] if len(self.icc_parts[0]) >= 2 else 0
        if set(parts) != set(range(1, total + 1)):
            return None, "a segment of the profile is missing"
        return b"".join(parts[i] for i in sorted(parts)), None

    def quality(self) -> int:
        """IJG quality 1-100 that fits the luma table (libjpeg's table scaling, inverted)."""
        if len(self.luma_table) != 64:
            return 100
        # baseline tables are capped at 255
        pairs = zip(self.luma_table, _STANDARD_LUMA, strict=True)
        scales = [100.0 * step / standard for step, standard in pairs if step < 255]
        if not scales:
            return 1
        scale = median(scales)
        quality = 100 - scale / 2 if scale <= 100 else 5000 / scale
        return int(min(max(round(quality), 1), 100))


_STANDARD_LUMA = tuple(
    int(step)
    for step in """16 11 12 14 12 10 16 14 13 14 18 17 16 19 24 40 26 24 22 22 24 49 35 37 29 40 58 51 61 60 57 51
    56 55 64 72 92 78 64 68 87 69 55 56 80 109 81 87 95 98 103 104 103 62 77 113 121 112 100 120 92 101
    103 99""".split()
)
"""Table K.1 of ITU-T T.81 in zigzag order, as a DQT segment holds it."""


def read_jpeg(data: bytes, limits: Limits) -> JpegFile:
    """Walk the markers of the first picture in ``data``.

    Raises PictureRejected: too large, no image data, damaged header, truncated header, or a coding
    that the decoder lacks (lossless, 12 bit).
    """
    jpeg = JpegFile()
    kept: list[bytes] = [b"\xff\xd8"]
    at = 2
    for _ in range(_MAX_SEGMENTS):
        marker, start = _next_marker(data, at, jpeg)
        if marker is None:
            break
        if marker == 0xD9:
            jpeg.complete_end = True
            break
        if marker in _STANDALONE:
            at = start
            continue
        length = int.from_bytes(data[start : start + 2], "big")
        end = start + length
        if length < 2 or end > len(data):
            if jpeg.scans:
                break
            raise PictureRejected("damaged JPEG (a segment runs past the end)", "damaged")
        if marker in _KEPT or (marker == 0xE0 and data[start + 2 : start + 6] == b"JFIF"):
            kept.append(b"\xff" + bytes([marker]) + data[start:end])
        at = _segment(data, marker, start + 2, end, jpeg, limits)
        if marker == 0xDA:
            kept.append(data[end:at])
    else:
        raise PictureRejected("damaged JPEG (too many segments)", "damaged")
    kept.append(b"\xff\xd9")
    jpeg.stream = b"".join(kept)
    _require_picture(jpeg)
    return jpeg


def _next_marker(data: bytes, at: int, jpeg: JpegFile) -> tuple[int | None, int]:
    """The next marker byte and the offset behind it, skipping stray bytes as libjpeg does."""
    found = _MARKER.search(data, at)
    if found is None:
        return None, len(data)
    if found.start() > at:
        jpeg.stray += len(data[at : found.start()].strip(b"\xff"))
    return found[0][1], found.end()


def _segment(data: bytes, marker: int, body: int, end: int, jpeg: JpegFile, limits: Limits) -> int:
    """Take in one segment; the offset where the next marker is looked for."""
    if marker in _FRAMES:
        _frame(data[body:end], marker, jpeg, limits)
    elif marker == 0xDA:
        return _scan(data, body, end, jpeg)
    elif marker == 0xDB and not jpeg.luma_table:
        jpeg.luma_table = _table(data[body:end])
    elif marker == 0xE1:
        if data[body : body + 4] == b"Exif":
            jpeg.exif = data[body:end] if jpeg.exif is None else jpeg.exif
        elif data[body : body + 28] == b"http://ns.adobe.com/xap/1.0/" and jpeg.xmp is None:
            jpeg.xmp = data[body:end]
    elif marker == 0xE2:
        if data[body : body + 12] == b"ICC_PROFILE\0" and len(jpeg.icc_parts) < 255:
            jpeg.icc_parts.append(data[body + 12 : end])
        elif data[body : body + 4] == b"MPF\0":
            jpeg.frames = max(jpeg.frames, _mpf_pictures(data[body + 4 : end]))
    elif marker == 0xEE and data[body : body + 5] == b"Adobe" and end - body >= 12:
        jpeg.adobe = data[body + 11]
    return end


def _frame(body: bytes, marker: int, jpeg: JpegFile, limits: Limits) -> None:
    if jpeg.frame_marker:
        raise PictureRejected("damaged JPEG (two frame headers)", "damaged")
    if len(body) < 6 or len(body) < 6 + 3 * body[5]:
        raise PictureRejected("damaged JPEG (frame header cut)", "damaged")
    jpeg.frame_marker, jpeg.precision = marker, body[0]
    jpeg.height, jpeg.width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
    jpeg.components = tuple(body[6 + 3 * i] for i in range(body[5]))
    limits.check_size(jpeg.width, jpeg.height, "JPEG")
    if marker in _LOSSLESS:
        raise PictureRejected("lossless JPEG not supported", "not_supported")
    if jpeg.precision != 8:
        raise PictureRejected(f"{jpeg.precision}-bit JPEG not supported", "not_supported")
    if len(jpeg.components) not in (1, 3, 4):
        raise PictureRejected(f"damaged JPEG ({len(jpeg.components)} components)", "damaged")


def _scan(data: bytes, body: int, end: int, jpeg: JpegFile) -> int:
    """Note what a scan brings and find where its entropy-coded data end."""
    count = data[body] if body < end else 0
    if not jpeg.frame_marker or end - body < 4 + 2 * count:
        raise PictureRejected("damaged JPEG (scan before its frame, or scan header cut)", "damaged")
    jpeg.scans += 1
    budget = _SCAN_BUDGET / max(jpeg.width * jpeg.height / 1e6, 1.0)
    if jpeg.scans > min(budget, 1000):
        raise PictureRejected(f"damaged JPEG (more than {budget:.0f} scans)", "damaged")
    first, last, approximation = data[end - 3], min(data[end - 2], 63), data[end - 1] & 15
    if not jpeg.progressive:
        first, last, approximation = 0, 0, 0
    for i in range(count):
        component = data[body + 1 + 2 * i]
        for k in range(first, last + 1):
            jpeg.coverage[component, k] = approximation
    return _scan_end(data, end)


def _scan_end(data: bytes, start: int) -> int:
    """Offset of the first marker from ``start`` on that is no stuffed zero, fill byte or restart
    (T.81 B.1.1.2), or the end of ``data``."""
    found = _ENDS_SCAN.search(data, start)
    return len(data) if found is None else found.start()


def _table(body: bytes) -> tuple[int, ...]:
    if not body:
        return ()
    if body[0] >> 4:
        return tuple(int.from_bytes(body[i : i + 2], "big") for i in range(1, 129, 2))
    return tuple(body[1:65])


def _mpf_pictures(body: bytes) -> int:
    """Number of pictures that an MPF index (CIPA DC-007) declares, 1 when unreadable."""
    order = "little" if body[:2] == b"II" else "big"
    order_name: str = order

    def number(at: int, size: int) -> int:
        return int.from_bytes(body[at : at + size], "little" if order_name == "little" else "big")

    at = number(4, 4)
    for entry in range(at + 2, at + 2 + 12 * min(number(at, 2), 16), 12):
        if number(entry, 2) == 0xB001:
            return max(1, min(number(entry + 8, 4), 1000))
    return 1


def _require_picture(jpeg: JpegFile) -> None:
    if not jpeg.frame_marker or not jpeg.scans:
        if jpeg.complete_end and not jpeg.frame_marker:
            raise PictureRejected("JPEG without image data", "damaged")
        reason = "truncated image (0 rows)" if not jpeg.complete_end else "JPEG without image data"
        raise PictureRejected(reason, "truncated" if not jpeg.complete_end else "damaged")
