"""A batch in one ZIP: its pictures, one in memory at a time, and its manifest."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.errors import ManifestError
from preprocess.archive import ArchiveEntry, ArchiveLimits, EntryOutcome, open_archive

MANIFEST = "manifest.csv"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the archive. ``path`` is there exactly when it looks like a picture; ``skipped``
    tells what was never meant as one from what was refused."""

    name: str
    size: int = 0
    path: Path | None = None
    code: str = ""
    reason: str = ""
    skipped: bool = False


def entries(archive: Path, folder: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """Every entry but folders and the manifest, unpacked into ``folder`` under numbers. Raises
    PictureRejected, before the first of them, for an archive that is refused whole."""
    opened = open_archive(archive, limits)
    manifest = _manifest_entry(archive)
    return _entries(opened.entries(), folder, manifest)


def _entries(found: Iterator[ArchiveEntry], folder: Path, manifest: str | None) -> Iterator[Entry]:
    for number, entry in enumerate(found):
        name = entry.original_name
        if entry.outcome is not EntryOutcome.ACCEPT or entry.data is None:
            if name != manifest:
                skipped = entry.outcome is EntryOutcome.SKIP
                yield Entry(name, 0, None, entry.code or "", entry.reason or "", skipped)
            continue
        path = folder / f"entry-{number:06d}"
        path.write_bytes(entry.data)
        yield Entry(name, len(entry.data), path)


def manifest_in(archive: Path, limit: int) -> bytes | None:
    """The manifest that lies in an archive which ``entries`` let pass, None where there is none.
    Raises ManifestError for one that cannot be unpacked within ``limit`` bytes."""
    name = _manifest_entry(archive)
    if name is None:
        return None
    too_large = ManifestError(f"manifest: larger than {limit} bytes")
    try:
        with zipfile.ZipFile(archive) as file, file.open(name) as stream:
            if file.getinfo(name).file_size > limit:
                raise too_large
            data = stream.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError):
        raise ManifestError("manifest: cannot be unpacked") from None
    if len(data) > limit:
        raise too_large
    return data


def _manifest_entry(archive: Path) -> str | None:
    """The name of the manifest that lies least deep; of several there, the first."""
    with zipfile.ZipFile(archive) as file:
        found = [i.filename for i in file.infolist() if _is_manifest(i.filename)]
    return min(found, key=lambda name: name.count("/"), default=None)


def _is_manifest(name: str) -> bool:
    parts = name.split("/")
    return parts[-1].lower() == MANIFEST and parts[0] != "__MACOSX" and ".." not in parts
