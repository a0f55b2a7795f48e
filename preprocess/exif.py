"""Metadata with exiftool: what a file says about a person, and the same picture without it.

Web application firewalls refuse pictures for words in EXIF comments, phones write where and by whom
a picture was taken, and thumbnails show what was cropped away. Tags are told by name, never by value.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from domain.errors import LikenessError, PictureRejected
from preprocess.decode import encode_png, open_picture
from preprocess.exiftool_process import ExifToolProcess, write_private
from preprocess.formats import sniff
from preprocess.limits import DEFAULT_LIMITS, Limits

_HAZARD = re.compile(
    r"comment|gps|location|country|provincestate|sub-?location"
    r"|serialnumber|imageuniqueid|documentid|instanceid|owner|artist|creator(?!tool)|author|by-?line"
    r"|photographer|copyright|rights|credit|contact|caption|description|headline|title|subject"
    r"|keyword|person|regionname|hostcomputer|makernote|thumbnail(?:image)|preview(?:image)"
    r"|mpimage\d|embeddedimage|motionphotovideo|embeddedvideo|writer-?editor|instructions",
    re.IGNORECASE,
)
_CITY = re.compile("City")  # in capitals: opacity is no place
_HARMLESS_GROUPS = re.compile(r"^(?:ICC|File$|System$|ExifTool$|Composite$|PNG-?p?HYs)", re.I)
_HARMLESS_TAGS = re.compile(
    r"HandlerDescription|ProfileDescription|Subject(?:Distance|Area)|FocusLocation|MakerNoteVersion"
    r"|CopyrightFlag|Preview\w*(?:Size|Length|Start)|Thumbnail\w*(?:Offset|Length)"
)
_STRIPPED_IN_PLACE = {"image/jpeg", "image/png", "image/webp", "image/tiff"}
_RENDERING = ("--icc_profile:all", "--adobe:all")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What exiftool reads in a picture file.

    ``mime_type`` is of the content. ``orientation`` is IFD0's value or 1. ``colour_space`` is the
    EXIF value as text, "" when absent. ``hazards`` are the names of the tags that tell about a
    person or a place, as "group:tag", sorted.
    """

    mime_type: str
    orientation: int = 1
    colour_space: str = ""
    hazards: tuple[str, ...] = ()


class ExifTool:
    """A stay-open exiftool. Use as a context manager or call ``close``; one a thread.

    Raises LikenessError naming the cause when the program is absent or fails on a file.
    """

    def __init__(self, program: str | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self._process = ExifToolProcess(program)
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="likeness-exif-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove its folder."""
        self._process.close()
        self._folder.cleanup()

    def facts(self, source: Path | bytes) -> FileFacts:
        """Facts of one picture. Raises PictureRejected for what is no picture at all."""
        return self._facts(self._bytes(source))

    def normalise(self, source: Path | bytes) -> tuple[bytes, list[str]]:
        """The picture without metadata, looking the same, and the names of the hazards removed.

        JPEG, PNG, WebP and TIFF of one upright picture keep their coded pixels; whatever else
        (turned by EXIF, several pictures, formats that exiftool cannot write) comes back as an
        upright sRGB PNG. Colour profile and Adobe marker stay, since rendering needs them.
        Raises PictureRejected when it is no picture that the gate accepts.
        """
        data = self._bytes(source)
        picture = open_picture(data, self._limits)
        facts = self._facts(data)
        result: bytes | None = None
        if facts.mime_type in _STRIPPED_IN_PLACE and picture.facts.orientation == 1:
            several = picture.facts.frames > 1 and picture.facts.format != "JPEG"
            result = None if several else self._stripped(data)
        left = self._facts(result) if result is not None else None
        if result is None or left is None or left.hazards or left.orientation != 1:
            result = encode_png(picture)
        return result, list(facts.hazards)

    def _bytes(self, source: Path | bytes) -> bytes:
        if isinstance(source, bytes):
            return source
        try:
            self._limits.check_bytes(source.stat().st_size)
            return source.read_bytes()
        except OSError as error:
            raise PictureRejected(f"cannot be read: {error.strerror}", "unreadable") from error

    def _facts(self, data: bytes) -> FileFacts:
        tags = self._tags(data)
        mime = str(tags.get("File:MIMEType", ""))
        if not mime.startswith("image/"):
            raise PictureRejected(f"not an image: {mime or 'unknown content'}", "not_image")
        value = tags.get("IFD0:Orientation", 1)
        orientation = value if isinstance(value, int) and 1 <= value <= 8 else 1
        names = {name for name in tags if _is_hazard(name)}
        space = str(tags.get("ExifIFD:ColorSpace", ""))
        return FileFacts(mime, orientation, space, tuple(sorted(names)))

    def _tags(self, data: bytes) -> dict[str, Any]:
        """All tags as group:tag -> value; the file goes by a name of ours, never by its own."""
        sniff(
            data
        )  # exiftool knows hundreds of formats: only pictures that the gate takes reach it
        path = Path(self._folder.name) / "in.dat"
        write_private(path, data)
        try:
            answer = self._process.ask("-j", "-G1", "-s", "-n", "-a", str(path))
        finally:
            path.unlink(missing_ok=True)
        try:
            found = json.loads(answer)
        except ValueError as error:
            raise LikenessError("exiftool gave no readable answer") from error
        tags: dict[str, Any] = found[0]
        return tags

    def _stripped(self, data: bytes) -> bytes | None:
        """The file with all metadata deleted by exiftool, None when it refuses to write it."""
        source, target = (Path(self._folder.name) / name for name in ("in.dat", "out.dat"))
        target.unlink(missing_ok=True)
        write_private(source, data)
        delete = ("-all=", *_RENDERING, "-trailer:all=", "-CommonIFD0=")
        try:
            self._process.ask(*delete, "-o", str(target), str(source))
            return target.read_bytes() if target.exists() else None
        finally:
            source.unlink(missing_ok=True)
            target.unlink(missing_ok=True)


def _is_hazard(name: str) -> bool:
    group, _, tag = name.partition(":")
    if _HARMLESS_GROUPS.match(group) and tag != "Comment":
        return False
    told = _HAZARD.search(tag) or _CITY.search(tag) or group in ("GPS", "XMP-mwg-rs")
    return bool(told) and not _HARMLESS_TAGS.match(tag)
