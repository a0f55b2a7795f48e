"""Reading a PNG's chunks: checksums, sizes, metadata, and a copy that holds only what pixels need.

Decoders get that copy, so compressed text is never unpacked by anyone (PNG, third edition, W3C 2025).
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

from domain.errors import PictureRejected
from preprocess.limits import Limits

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_MAX_CHUNKS = 200_000
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


@dataclass(slots=True)
class PngFile:
    """A PNG after the walk over its chunks. ``colour`` is its colour type, ``trns`` the raw chunk.

    ``stream`` is IHDR, PLTE, IDAT and IEND alone. ``icc_problem`` says why ``icc`` could not be had.
    """

    width: int = 0
    height: int = 0
    depth: int = 8
    colour: int = 0
    interlaced: bool = False
    palette: bytes = b""
    trns: bytes | None = None
    icc: bytes | None = None
    icc_problem: str | None = None
    code_points: tuple[int, int] | None = None
    exif: bytes | None = None
    xmp: bytes | None = None
    frames: int = 1
    stream: bytes = b""
    image_data: bytes = b""
    ended: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row as deflated, filter byte included (not interlaced)."""
        return 1 + (self.width * self.depth * CHANNELS[self.colour] + 7) // 8


def read_png(data: bytes, limits: Limits) -> PngFile:
    """Walk the chunks of ``data``. Raises PictureRejected naming the damage."""
    png = PngFile()
    kept: list[bytes] = [_SIGNATURE]
    idat: list[bytes] = []
    at, name = 8, b""
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data):
            break
        size, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if not png.width and name != b"IHDR":
            raise PictureRejected("damaged PNG (no IHDR at its start)", "damaged")
        end = at + 12 + size
        if end > len(data):
            _cut(png, [*idat, data[at + 8 :]] if name == b"IDAT" else idat)
            break
        body = data[at + 8 : at + 8 + size]
        _checksum(png, data, at, size, name)
        if name == b"IEND":
            png.ended = True
            break
        if name == b"IDAT":
            idat.append(body)
        else:
            _chunk(png, name, body, limits, started=bool(idat))
        if name in (b"IHDR", b"PLTE", b"IDAT"):
            kept.append(data[at:end])
        at = end
    else:
        raise PictureRejected("damaged PNG (too many chunks)", "damaged")
    _require_parts(png, bool(idat))
    png.image_data = b"".join(idat)
    png.stream = b"".join([*kept, b"\0\0\0\0IEND\xaeB`\x82"])
    return png


def _require_parts(png: PngFile, has_data: bool) -> None:
    if not png.width:
        raise PictureRejected("truncated PNG (no header)", "truncated")
    if not has_data:
        raise PictureRejected("PNG without image data", "damaged")
    if png.colour == 3 and not png.palette:
        raise PictureRejected("damaged PNG (palette missing)", "damaged")
    if not png.ended:
        png.warnings.append("The PNG's end chunk is missing; all pixels are there.")


def _checksum(png: PngFile, data: bytes, at: int, size: int, name: bytes) -> None:
    stored = int.from_bytes(data[at + 8 + size : at + 12 + size], "big")
    if zlib.crc32(memoryview(data)[at + 4 : at + 8 + size]) == stored:
        return
    if name in (b"IHDR", b"PLTE", b"IDAT", b"tRNS"):
        raise PictureRejected("damaged PNG (checksum)", "damaged")
    if name == b"iCCP":
        png.icc_problem = "checksum wrong"


def _cut(png: PngFile, idat: list[bytes]) -> None:
    """The file ends within a chunk: fatal unless every row is there already."""
    if not png.width:
        raise PictureRejected("truncated PNG (header cut)", "truncated")
    require_rows(png, b"".join(idat))


_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""First column, first row, column step, row step of the seven passes (PNG 8.1)."""


def require_rows(png: PngFile, packed: bytes) -> None:
    """Raise PictureRejected unless every row of the picture can be unpacked."""
    if not png.interlaced:
        rows = unpacked_size(packed, png.row_bytes * png.height) // png.row_bytes
        if rows < png.height:
            raise PictureRejected(f"truncated image ({rows} of {png.height} rows)", "truncated")
        return
    bits, wanted = png.depth * CHANNELS[png.colour], 0
    for column, row, across, down in _ADAM7:
        columns = -((column - png.width) // across)
        rows = -((row - png.height) // down)
        if columns > 0 and rows > 0:
            wanted += rows * (1 + (columns * bits + 7) // 8)
    if unpacked_size(packed, wanted) < wanted:
        raise PictureRejected("truncated image (interlaced PNG with passes missing)", "truncated")


def unpacked_size(packed: bytes, wanted: int) -> int:
    """How many bytes a zlib stream yields before it ends or breaks, counted up to ``wanted``."""
    engine, total, feed = zlib.decompressobj(), 0, packed
    try:
        while feed and total < wanted and not engine.eof:
            total += len(engine.decompress(feed, 1 << 20))
            feed = engine.unconsumed_tail
    except zlib.error:
        pass
    return min(total, wanted)


def _chunk(png: PngFile, name: bytes, body: bytes, limits: Limits, started: bool) -> None:
    if name == b"IHDR":
        _header(png, body, limits)
    elif name == b"PLTE" and not started:
        png.palette = body
    elif name == b"tRNS" and not started:
        png.trns = body
    elif name == b"iCCP":
        _profile(png, body, limits)
    elif name == b"cICP" and len(body) >= 2 and body[1] in (16, 18):
        kind = "PQ" if body[1] == 16 else "HLG"
        raise PictureRejected(f"HDR PNG ({kind}) not supported", "hdr")
    elif name == b"cICP" and len(body) >= 2:
        png.code_points = (body[0], body[1])
    elif name == b"eXIf" and png.exif is None:
        png.exif = body
    elif name == b"acTL" and len(body) >= 4:
        png.frames = max(1, int.from_bytes(body[:4], "big"))
    elif name in (b"tEXt", b"zTXt") and png.exif is None:
        png.exif = _raw_profile(body, name == b"zTXt")
    elif name == b"iTXt" and body[:18] == b"XML:com.adobe.xmp\0" and png.xmp is None:
        png.xmp = body[18:]


def _header(png: PngFile, body: bytes, limits: Limits) -> None:
    if png.width or len(body) != 13:
        raise PictureRejected("invalid PNG header", "damaged")
    png.width, png.height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
    png.depth, png.colour, png.interlaced = body[8], body[9], body[12] == 1
    limits.check_size(png.width, png.height, "PNG")
    if png.depth not in _DEPTHS.get(png.colour, ()) or body[10] or body[11] or body[12] > 1:
        raise PictureRejected("invalid PNG header", "damaged")


def _profile(png: PngFile, body: bytes, limits: Limits) -> None:
    name_end = body.find(b"\0", 0, 80)
    if name_end < 0 or png.icc is not None:
        png.icc_problem = "damaged chunk"
        return
    try:
        engine = zlib.decompressobj()
        profile = engine.decompress(body[name_end + 2 :], limits.max_metadata_bytes)
    except zlib.error:
        png.icc_problem = "cannot be unpacked"
        return
    if engine.eof:
        png.icc = profile
    else:
        png.icc_problem = "incomplete or too large"


_RAW_EXIF = re.compile(rb"Raw profile type (?:exif|APP1)\0", re.I)


def _raw_profile(body: bytes, packed: bool) -> bytes | None:
    """EXIF that ImageMagick writes as hexadecimal text; anything unreadable counts as absent."""
    start = _RAW_EXIF.match(body)
    if not start:
        return None
    text = body[start.end() :]
    if packed:
        try:
            text = zlib.decompressobj().decompress(text[1:], 1 << 18)
        except zlib.error:
            return None
    lines = text.split(b"\n", 3)
    digits = re.sub(rb"\s", b"", lines[3]) if len(lines) == 4 else b""
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))
    except ValueError:
        return None
