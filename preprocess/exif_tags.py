"""The two facts of EXIF that decide pixels, read straight from the TIFF structure.

Orientation is taken from IFD0 alone (the thumbnail's IFD1 has one of its own, which is a trap) and
only when it is a SHORT of 1-8, as Exif 2.32 section 4.6.4 A demands. A parser of all tags would only
add ways to fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ORIENTATION, _EXIF_IFD, _INTEROP_IFD, _COLOUR_SPACE = 0x0112, 0x8769, 0xA005, 0xA001
_SHORT, _LONG, _ASCII = 3, 4, 2
_MAX_ENTRIES = 1000
UNREADABLE = "EXIF unreadable: no rotation applied."


@dataclass(frozen=True, slots=True)
class ExifFacts:
    """``orientation`` 1-8, ``adobe_rgb`` True when the camera says so, ``warnings`` sentences."""

    orientation: int = 1
    adobe_rgb: bool = False
    warnings: tuple[str, ...] = ()


class _Ifd:
    """Bounds-checked access to the entries of one image file directory."""

    def __init__(self, block: bytes, order: str, offset: int) -> None:
        self.block, self.order = block, "little" if order == "II" else "big"
        self.entries: dict[int, tuple[int, int, bytes]] = {}
        count = self.number(offset, 2)
        for at in range(offset + 2, offset + 2 + 12 * min(count, _MAX_ENTRIES), 12):
            entry = block[at : at + 12]
            if len(entry) < 12:
                raise ValueError("directory runs past the block")
            tag, kind, size = self.number(at, 2), self.number(at + 2, 2), self.number(at + 4, 4)
            self.entries.setdefault(tag, (kind, size, entry[8:12]))

    def number(self, at: int, size: int) -> int:
        raw = self.block[at : at + size]
        if at < 0 or len(raw) < size:
            raise ValueError("offset outside the block")
        return int.from_bytes(raw, "little" if self.order == "little" else "big")

    def value(self, tag: int, kinds: tuple[int, ...]) -> int | None:
        """A single SHORT or LONG value, None when absent or of another type."""
        kind, size, raw = self.entries.get(tag, (0, 0, b""))
        if kind not in kinds or size != 1:
            return None
        width = 2 if kind == _SHORT else 4
        return int.from_bytes(raw[:width], "little" if self.order == "little" else "big")


def read_exif(block: bytes) -> ExifFacts:
    """Facts of an EXIF block, with or without the ``Exif\\0\\0`` prefix. Never raises."""
    if block[:4] == b"Exif":
        block = block[6:]
    order = block[:2].decode("latin-1")
    if order not in ("II", "MM") or len(block) < 8:
        return ExifFacts(warnings=(UNREADABLE,))
    try:
        little = "little" if order == "II" else "big"
        ifd0 = _Ifd(
            block, order, int.from_bytes(block[4:8], "little" if little == "little" else "big")
        )
    except ValueError:
        return ExifFacts(warnings=(UNREADABLE,))
    orientation, warnings = _orientation(ifd0)
    return ExifFacts(orientation, _says_adobe_rgb(ifd0, block, order), warnings)


def _orientation(ifd: _Ifd) -> tuple[int, tuple[str, ...]]:
    if _ORIENTATION not in ifd.entries:
        return 1, ()
    value = ifd.value(_ORIENTATION, (_SHORT,))
    if value is None:
        return 1, ("EXIF orientation has the wrong type and was ignored.",)
    if not 1 <= value <= 8:
        return 1, (f"EXIF orientation {value} lies outside 1-8 and was ignored.",)
    return value, ()


def _says_adobe_rgb(ifd0: _Ifd, block: bytes, order: str) -> bool:
    """ColorSpace 65535 with InteropIndex R03 (DCF 2.0), or ColorSpace 2 as some cameras write."""
    try:
        at = ifd0.value(_EXIF_IFD, (_LONG,))
        if at is None:
            return False
        exif = _Ifd(block, order, at)
        space = exif.value(_COLOUR_SPACE, (_SHORT,))
        if space == 2:
            return True
        at = exif.value(_INTEROP_IFD, (_LONG,))
        if space != 0xFFFF or at is None:
            return False
        kind, _, raw = _Ifd(block, order, at).entries.get(1, (0, 0, b""))
        return kind == _ASCII and raw[:3] == b"R03"
    except ValueError:
        return False


_XMP_ORIENTATION = re.compile(rb"tiff:Orientation(?:=[\"']|>)\s*([2-8])")


def xmp_orientation_warning(xmp: bytes) -> tuple[str, ...]:
    """The rule for XMP: its orientation is never applied (as in browsers), only mentioned."""
    found = _XMP_ORIENTATION.search(xmp[:262144])
    if not found:
        return ()
    return (f"XMP says orientation {found[1].decode()}, EXIF does not: XMP is not followed.",)
