"""Reading a ZIP of pictures without trusting it: every entry gets an outcome and a reason.

Nothing is unpacked to disk. Entries, unpacked bytes and ratio are capped; links, nested archives,
".." and absolute paths are refused; encrypted, damaged and overlapping archives are refused whole.
"""

from __future__ import annotations

import io
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from domain.errors import PictureRejected
from preprocess.formats import sniff
from preprocess.limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What one archive may ask. ``max_ratio`` counts only for entries over ``ratio_from`` bytes."""

    max_bytes: int = 2 * 1024**3
    max_entries: int = 2000
    max_unpacked: int = 4 * 1024**3
    max_ratio: float = 100.0
    ratio_from: int = 1024 * 1024
    picture: Limits = DEFAULT_LIMITS


DEFAULT_ARCHIVE_LIMITS = ArchiveLimits()


class EntryOutcome(StrEnum):
    """What became of one entry of an archive."""

    ACCEPT = "accept"
    SKIP = "skip"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One entry. ``name`` is clean and unique within the archive; ``original_name`` is the name as
    stored (to be escaped before it is shown). ``data`` is there exactly when it is accepted: the
    bytes look like a picture, but they have not been decoded yet. ``code`` is a stable word for why
    it was not."""

    name: str
    original_name: str
    outcome: EntryOutcome
    reason: str | None = None
    data: bytes | None = None
    code: str | None = None


class Archive:
    """An open archive that has passed the checks of the whole; made by ``open_archive``."""

    def __init__(self, stream: BinaryIO, file: zipfile.ZipFile, limits: ArchiveLimits) -> None:
        self._stream, self._file, self._limits = stream, file, limits

    def entries(self) -> Iterator[ArchiveEntry]:
        """Every entry but folders, in the archive's order, one in memory at a time; once only."""
        taken: set[str] = set()
        with self._stream, self._file as file:
            for info in file.infolist():
                original = _stored_name(info)
                if info.is_dir() or original.endswith(("/", "\\")):
                    continue
                outcome, reason, data, code = _read_entry(file, info, original, self._limits)
                name = _unique(clean_name(original), taken)
                yield ArchiveEntry(name, original, outcome, reason, data, code)


def open_archive(source: Path | bytes, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS) -> Archive:
    """Check a ZIP as a whole. Raises PictureRejected naming the archive's fault."""
    try:
        stream: BinaryIO = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    except OSError as error:
        raise PictureRejected(f"cannot be read: {error.strerror}", "unreadable") from error
    try:
        _check_directory(stream, limits)
        archive = zipfile.ZipFile(stream)
        _check_whole(archive.infolist(), limits)
    except PictureRejected:
        stream.close()
        raise
    except Exception as error:  # zipfile raises many kinds on crafted directories
        stream.close()
        raise PictureRejected("damaged or incomplete archive", "damaged") from error
    return Archive(stream, archive, limits)


def _check_directory(stream: BinaryIO, limits: ArchiveLimits) -> None:
    """Sizes from the end record (APPNOTE 4.3.16) before the directory is read into memory."""
    size = stream.seek(0, io.SEEK_END)
    if not size:
        raise PictureRejected("empty file", "empty")
    if size > limits.max_bytes:
        raise PictureRejected(
            f"archive too large, limit {limits.max_bytes / 1e6:.0f} MB", "too_large"
        )
    stream.seek(0)
    if stream.read(2) != b"PK":
        raise PictureRejected("not a ZIP archive", "not_archive")
    stream.seek(max(0, size - 65_557))
    tail = stream.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) < at + 22:
        raise PictureRejected("damaged or incomplete archive", "damaged")
    count = int.from_bytes(tail[at + 10 : at + 12], "little")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if count > limits.max_entries or length > limits.max_entries * 1024:
        raise PictureRejected(
            f"too many files in the archive: {count}, limit {limits.max_entries}", "too_many"
        )


def _check_whole(infos: list[zipfile.ZipInfo], limits: ArchiveLimits) -> None:
    files = [i for i in infos if not i.is_dir()]
    if not files:
        raise PictureRejected("archive contains no images", "no_images")
    if len(infos) > limits.max_entries:
        raise PictureRejected(
            f"too many files in the archive: {len(infos)}, limit {limits.max_entries}", "too_many"
        )
    if any(i.flag_bits & 0x1 for i in files):
        raise PictureRejected("archive is password protected", "encrypted")
    end = -1
    for info in sorted(files, key=lambda i: i.header_offset):
        if info.header_offset < end:
            raise PictureRejected("overlapping entries in the archive", "overlapping")
        end = info.header_offset + 30 + info.compress_size
    if sum(i.file_size for i in files) > limits.max_unpacked:
        raise PictureRejected(
            f"archive unpacks to more than {limits.max_unpacked / 1e9:.0f} GB", "too_large"
        )


_Result = tuple[EntryOutcome, str | None, bytes | None, str | None]
_PICTURE_NAME = re.compile(
    r"\.(?:jpe?g|jfif|png|apng|webp|tiff?|gif|bmp|hei[cf]|avifs?|jp2|j2k|jxl|mpo)$", re.IGNORECASE
)
_SIDE_FILES = {".ds_store", "thumbs.db", "desktop.ini", "ehthumbs.db"}
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def _read_entry(
    file: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, limits: ArchiveLimits
) -> _Result:
    fault = _fault(info, name, limits)
    if fault is not None:
        return fault
    try:
        with file.open(info) as stream:
            data = stream.read(info.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        kind = "checksum error" if "CRC" in str(error) else "damaged entry"
        return EntryOutcome.REJECT, kind, None, "damaged"
    except Exception as error:  # a crafted entry must not stop the others
        reason = f"cannot be unpacked ({type(error).__name__})"
        return EntryOutcome.REJECT, reason, None, "damaged"
    return _judge(data, name)


def _fault(info: zipfile.ZipInfo, name: str, limits: ArchiveLimits) -> _Result | None:
    """What can be told from the directory alone, before anything is unpacked."""
    parts = re.split(r"[/\\]", name)
    if parts[0] == "__MACOSX" or parts[-1].startswith("._") or parts[-1].lower() in _SIDE_FILES:
        return EntryOutcome.SKIP, "side file of macOS or Windows", None, "side_file"
    reason = code = None
    if stat.S_ISLNK(info.external_attr >> 16):
        reason, code = "link in archive", "link"
    elif ".." in parts or name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        reason, code = "unsafe path", "unsafe_path"
    elif info.compress_type not in _METHODS:
        reason, code = "compression method not supported", "not_accepted"
    elif info.file_size == 0:
        reason, code = "empty file", "empty"
    elif info.file_size > limits.picture.max_bytes:
        reason = f"file too large, limit {limits.picture.max_bytes / 1e6:.0f} MB"
        code = "too_large"
    elif info.file_size > max(limits.ratio_from, limits.max_ratio * info.compress_size):
        reason = f"expands too much ({info.file_size / max(info.compress_size, 1):.0f} to 1)"
        code = "expands"
    return None if reason is None else (EntryOutcome.REJECT, reason, None, code)


def _judge(data: bytes, name: str) -> _Result:
    """Accept what looks like a picture; other files are skipped, broken pictures rejected."""
    try:
        sniff(data)
    except PictureRejected as error:
        if error.code == "archive":
            return EntryOutcome.SKIP, "nested archive not opened", None, "archive"
        if not _PICTURE_NAME.search(name):
            return EntryOutcome.SKIP, "not an image", None, "not_image"
        return EntryOutcome.REJECT, error.reason, None, error.code
    return EntryOutcome.ACCEPT, None, data, None


_BOX_DRAWING = re.compile("[\u2500-\u257f\u2580-\u259f]")
_HALF_KANA = re.compile("[\uff61-\uff9f]")


def _stored_name(info: zipfile.ZipInfo) -> str:
    """The name as meant. Without the UTF-8 flag it should be code page 437 (APPNOTE appendix D), but
    packers write UTF-8 or their own page: Shift-JIS is told by table corners in the 437 reading."""
    name = info.orig_filename if "\0" not in info.orig_filename else info.filename
    if info.flag_bits & 0x800 or name.isascii():
        return name
    raw = name.encode("cp437", "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = raw.decode("cp932")
    except UnicodeDecodeError:
        return name
    return text if _BOX_DRAWING.search(name) and not _HALF_KANA.search(text) else name


_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.|$)", re.IGNORECASE)
_NAME_BYTES = 120


def clean_name(text: str, default: str = "picture") -> str:
    """A file name from outside made safe to store: one path component, no control, bidirectional,
    shell, URL or HTML characters, at most 120 bytes with its ending kept, never empty or reserved.
    """
    name = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    name = "".join(_clean_character(c) for c in name)
    name = re.sub(r"^[.\s~-]+", lambda m: "_" if m[0].strip(" .\t") else "", name).rstrip(" .")
    if not name.strip("_ "):
        return default
    if _RESERVED.match(name):
        name = f"_{name}"
    return _shortened(name)


def _clean_character(c: str) -> str:
    if c == "\u200d":  # joins emoji into one
        return c
    category = unicodedata.category(c)
    if category[0] == "C" or category in ("Zl", "Zp"):
        return ""
    if category == "Zs":
        return " "
    if c.isascii() and not c.isalnum() and c not in "._-()+,@# ~":
        return "_"
    return c


def _shortened(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending.encode()) > 12:
        stem, dot, ending = name, "", ""
    room = _NAME_BYTES - len((dot + ending).encode())
    cut = stem.encode()[:room].decode("utf-8", "ignore")
    # a cut may end in a space or a dot that was inside the name before
    return (cut + dot + ending).rstrip(" .")


def _unique(name: str, taken: set[str]) -> str:
    """``name``, numbered when a file system could take it for one that is there already."""
    stem, dot, ending = name.rpartition(".")
    if not dot:
        stem, ending = name, ""
    candidate, number = name, 1
    while (key := unicodedata.normalize("NFC", candidate).casefold()) in taken:
        number += 1
        candidate = f"{stem} ({number}){dot}{ending}"
    taken.add(key)
    return candidate
