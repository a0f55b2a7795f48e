"""Which format a file is, judged by its content alone, and which formats are let in.

The list is explicit: whatever is not named in ``Format`` never reaches a decoder.
"""

from __future__ import annotations

import re
from enum import StrEnum

from domain.errors import PictureRejected


class Format(StrEnum):
    """The formats that the gate decodes."""

    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    TIFF = "TIFF"
    GIF = "GIF"
    BMP = "BMP"
    HEIC = "HEIC"
    AVIF = "AVIF"
    JPEG2000 = "JPEG 2000"


ACCEPTED = "JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, JPEG 2000"

_AVIF_BRANDS = {b"avif", b"avis"}
_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"mif2"}
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\xff\xd8", Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"GIF87a", Format.GIF),
    (b"GIF89a", Format.GIF),
    (b"II*\0", Format.TIFF),
    (b"MM\0*", Format.TIFF),
    (b"II+\0", Format.TIFF),
    (b"MM\0+", Format.TIFF),
    (b"\0\0\0\x0cjP  \r\n\x87\n", Format.JPEG2000),
    (b"\xff\x4f\xff\x51", Format.JPEG2000),
)
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"\xff\x0a", "JPEG XL not supported", "jpeg_xl"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL not supported", "jpeg_xl"),
    (b"%PDF", "PDF, not an image", "pdf"),
    (b"PK\x03\x04", "ZIP archive sent as an image", "archive"),
    (b"PK\x05\x06", "ZIP archive sent as an image", "archive"),
    (b"\x1f\x8b", "gzip archive sent as an image", "archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive sent as an image", "archive"),
    (b"Rar!\x1a\x07", "RAR archive sent as an image", "archive"),
    (b"\x1a\x45\xdf\xa3", "video, not an image", "video"),
    (b"\0\0\x01\xba", "video, not an image", "video"),
    (b"FLV\x01", "video, not an image", "video"),
    (b"MZ", "not an image: a Windows program", "not_image"),
    (b"\x7fELF", "not an image: a program", "not_image"),
    (b"8BPS", f"format PSD not accepted ({ACCEPTED})", "not_accepted"),
    (b"BPG\xfb", f"format BPG not accepted ({ACCEPTED})", "not_accepted"),
    (b"SIMPLE  =", f"format FITS not accepted ({ACCEPTED})", "not_accepted"),
    (b"%!PS", f"format PostScript not accepted ({ACCEPTED})", "not_accepted"),
    (b"\x76\x2f\x31\x01", f"format OpenEXR not accepted ({ACCEPTED})", "not_accepted"),
    (b"#?RADIANCE", f"format Radiance HDR not accepted ({ACCEPTED})", "not_accepted"),
    (b"\0\0\x01\0", f"format ICO not accepted ({ACCEPTED})", "not_accepted"),
    (b"\x89PNG", "not a valid PNG (damaged by text-mode transfer)", "damaged"),
    (b"IIU\0", f"format JPEG XR not accepted ({ACCEPTED})", "not_accepted"),
)


def sniff(data: bytes) -> Format:
    """The format of ``data`` by its first bytes.

    Raises PictureRejected naming what the file is instead when it is none of the accepted ones.
    """
    if not data:
        raise PictureRejected("empty file", "empty")
    for start, found in _STARTS:
        if data.startswith(start):
            return found
    if data[:4] == b"RIFF":
        return _riff(data)
    if data[4:8] == b"ftyp":
        return _iso_media(data)
    if _is_bmp(data):
        return Format.BMP
    for start, reason, code in _FOREIGN:
        if data.startswith(start):
            raise PictureRejected(reason, code)
    raise _unknown(data)


def _riff(data: bytes) -> Format:
    if data[8:12] == b"WEBP":
        return Format.WEBP
    if data[8:12] == b"AVI ":
        raise PictureRejected("video, not an image", "video")
    raise PictureRejected("not an image: RIFF data of another kind", "not_image")


def _iso_media(data: bytes) -> Format:
    """HEIC or AVIF by the brands of the ``ftyp`` box; films share the container."""
    size = min(max(int.from_bytes(data[:4], "big"), 16), 256)
    major = data[8:12]
    brands = {major, *(data[i : i + 4] for i in range(16, size, 4))}
    if major in _AVIF_BRANDS:
        return Format.AVIF
    if major in _HEIC_BRANDS:
        return Format.AVIF if major[:3] in {b"mif", b"msf"} and _only_avif(brands) else Format.HEIC
    if major == b"crx ":
        raise PictureRejected(f"format CR3 (raw) not accepted ({ACCEPTED})", "not_accepted")
    if brands & _AVIF_BRANDS:
        return Format.AVIF
    if brands & _HEIC_BRANDS:
        return Format.HEIC
    raise PictureRejected("video, not an image", "video")


def _only_avif(brands: set[bytes]) -> bool:
    return bool(brands & _AVIF_BRANDS) and not brands & {b"heic", b"heix", b"hevc", b"hevx"}


def _is_bmp(data: bytes) -> bool:
    header = int.from_bytes(data[14:18], "little")
    return data[:2] == b"BM" and header in {12, 16, 40, 52, 56, 64, 108, 124}


_NETPBM = re.compile(rb"P[1-7]\s")
_DAMAGED_PNG = re.compile(rb".?PNG[\r\n\x1a]{2,4}|\x89PNG", re.DOTALL)


def _unknown(data: bytes) -> PictureRejected:
    """What a file that no signature fits looks like, said in words."""
    if _NETPBM.match(data):
        return PictureRejected(f"format Netpbm not accepted ({ACCEPTED})", "not_accepted")
    if _DAMAGED_PNG.match(data[:12]):
        return PictureRejected("not a valid PNG (damaged by text-mode transfer)", "damaged")
    jpeg = data.find(b"\xff\xd8\xff", 0, 64)
    if jpeg > 0:
        return PictureRejected(f"not a valid JPEG ({jpeg} stray bytes before the start)", "damaged")
    if data[:2] == b"--" and b"content-disposition" in data[:1024].lower():
        return PictureRejected("not an image: multipart text", "not_image")
    text = _as_text(data[:4096])
    if text is not None:
        return _text(text)
    tga = data[-18:-2] == b"TRUEVISION-XFILE" or _is_tga(data)
    reason = f"format TGA not accepted ({ACCEPTED})" if tga else "not an image"
    return PictureRejected(reason, "not_accepted" if tga else "not_image")


def _as_text(head: bytes) -> str | None:
    """``head`` as text in lower case, or None when it holds control bytes."""
    control = sum(b < 32 and b not in (9, 10, 12, 13, 27) for b in head[:512])
    if control or len(head) < 4:
        return None
    return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").lower()


def _text(text: str) -> PictureRejected:
    if "<svg" in text:
        return PictureRejected("SVG not accepted", "svg")
    if text.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in text[:1024]:
        return PictureRejected("not an image: looks like HTML", "html")
    if text.startswith("<"):
        return PictureRejected("not an image: looks like XML", "not_image")
    if text.startswith("data:"):
        return PictureRejected("not an image: text (data URL)", "not_image")
    if text.startswith(("{", "[")):
        return PictureRejected("not an image: looks like JSON", "not_image")
    return PictureRejected("not an image: looks like text", "not_image")


def _is_tga(data: bytes) -> bool:
    """TGA has no signature: judged by the fields of its header that must agree."""
    if len(data) < 18:
        return False
    maps, kind, depth = data[1], data[2], data[16]
    fits = maps in (0, 1) and kind in (1, 2, 3, 9, 10, 11) and depth in (8, 15, 16, 24, 32)
    width, height = int.from_bytes(data[12:14], "little"), int.from_bytes(data[14:16], "little")
    return fits and 0 < width < 20000 and 0 < height < 20000
