"""Width, height and number of pictures from a file's header, before any decoder sees the file."""

from __future__ import annotations

from domain.errors import PictureRejected
from preprocess.limits import Limits

_MAX_CHUNKS = 200_000


def check_gif(data: bytes, limits: Limits) -> int:
    """Check a GIF's sizes and count its frames. Raises PictureRejected."""
    if len(data) < 13:
        raise PictureRejected("truncated GIF", "truncated")
    width, height = _le(data, 6, 2), _le(data, 8, 2)
    limits.check_size(width, height, "GIF")
    at = 13 + (3 << ((data[10] & 7) + 1) if data[10] & 0x80 else 0)
    frames = 0
    for _ in range(_MAX_CHUNKS):
        if at >= len(data):
            break
        kind = data[at]
        if kind == 0x2C and at + 10 <= len(data):
            frames += 1
            limits.check_frames(frames)
            w, h = _le(data, at + 5, 2), _le(data, at + 7, 2)
            if frames == 1:
                limits.check_size(max(width, w), max(height, h), "GIF")
            local = 3 << ((data[at + 9] & 7) + 1) if data[at + 9] & 0x80 else 0
            at = _skip_blocks(data, at + 11 + local)
        elif kind == 0x21:
            at = _skip_blocks(data, at + 2)
        else:
            break
    if not frames:
        raise PictureRejected("damaged GIF (no picture in it)", "damaged")
    return frames


def _skip_blocks(data: bytes, at: int) -> int:
    """Offset behind a chain of length-prefixed blocks; a chain of very many short ones ends early,
    since no encoder writes it and walking it takes seconds."""
    size, short = len(data), 0
    while at < size and data[at] and short < _MAX_CHUNKS:
        short += data[at] < 255
        at += data[at] + 1
    return at + 1


def check_webp(data: bytes, limits: Limits) -> int:
    """Check a WebP's canvas and the size of its first picture; the number of frames."""
    at, frames, seen = 12, 0, False
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data):
            break
        name, size = data[at : at + 4], _le(data, at + 4, 4)
        body = at + 8
        if name == b"VP8X" and len(data) >= body + 10:
            limits.check_size(_le(data, body + 4, 3) + 1, _le(data, body + 7, 3) + 1, "WebP")
            seen = True
        elif name in (b"VP8 ", b"VP8L"):
            limits.check_size(*_vp8_size(name, data[body : body + 10]), "WebP")
            frames, seen = max(frames, 1), True
        elif name == b"ANMF":
            frames += 1
            limits.check_frames(frames)
            limits.check_size(_le(data, body + 6, 3) + 1, _le(data, body + 9, 3) + 1, "WebP")
        at = body + size + (size & 1)
    if not seen or not frames:
        raise PictureRejected("damaged WebP (no picture in it)", "damaged")
    riff = _le(data, 4, 4) + 8
    if riff > len(data):
        raise PictureRejected(f"truncated WebP ({len(data)} of {riff} bytes)", "truncated")
    return frames


def _vp8_size(name: bytes, head: bytes) -> tuple[int, int]:
    if name == b"VP8L":
        bits = _le(head, 1, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _le(head, 6, 2) & 0x3FFF, _le(head, 8, 2) & 0x3FFF


def check_bmp(data: bytes, limits: Limits) -> None:
    """Check a BMP's size (a negative height means top to bottom)."""
    if _le(data, 14, 4) == 12:
        width, height = _le(data, 18, 2), _le(data, 20, 2)
    else:
        width = int.from_bytes(data[18:22], "little", signed=True)
        height = abs(int.from_bytes(data[22:26], "little", signed=True))
    limits.check_size(width, height, "BMP")


def check_jpeg2000(data: bytes, limits: Limits) -> bytes | None:
    """Check both size headers of a JPEG 2000 file; its ICC profile (ISO/IEC 15444-1 I.5.3.3)."""
    found = False
    box = data.find(b"ihdr", 0, 65536)
    if box >= 0:
        limits.check_size(_be(data, box + 8, 4), _be(data, box + 4, 4), "JPEG 2000")
    stream = data.find(b"\xff\x4f\xff\x51", 0, limits.max_metadata_bytes)
    if stream >= 0 and len(data) >= stream + 24:
        at = stream + 8
        width = _be(data, at, 4) - _be(data, at + 8, 4)
        height = _be(data, at + 4, 4) - _be(data, at + 12, 4)
        limits.check_size(width, height, "JPEG 2000")
        found = True
    if not found:
        raise PictureRejected("damaged JPEG 2000 (no codestream)", "damaged")
    colours = data.find(b"colr", 0, stream)
    size = _be(data, colours - 4, 4) if colours >= 4 else 0
    if size > 11 and data[colours + 4] == 2 and colours - 4 + size <= stream:
        return data[colours + 7 : colours - 4 + size]
    return None


def _le(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _be(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")
