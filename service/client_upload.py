"""Bodies of uploads: a form with files, read from disk piece by piece and as often as it is sent."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError
from domain.portraits import Portrait

_PIECE = 1 << 18
MANIFEST = "manifest.csv"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in the field ``field``, called ``name``."""

    field: str
    name: str
    path: Path


class Form:
    """A ``multipart/form-data`` body (RFC 7578): fields first, then files. Call it for its bytes."""

    def __init__(
        self,
        fields: Mapping[str, str],
        files: Sequence[Upload],
        sent: Callable[[int], object] = lambda _count: None,
    ) -> None:
        """``sent`` is told how many files were handed over. Raises LikenessError for a file that is
        not there."""
        self._sent = sent
        self._boundary = f"likeness-{uuid.uuid4().hex}"
        self._fields, self._files = dict(fields), list(files)
        self._sizes = [size_of(file.path) for file in files]

    @property
    def headers(self) -> dict[str, str]:
        """Of the request."""
        length = sum(len(p) for p in self._around()) + sum(self._sizes)
        kind = f"multipart/form-data; boundary={self._boundary}"
        return {"Content-Type": kind, "Content-Length": str(length)}

    def __call__(self) -> Iterator[bytes]:
        """The body from its start. Raises LikenessError when a file has changed."""
        yield from (self._field(n, v) for n, v in self._fields.items())
        for number, (file, size) in enumerate(zip(self._files, self._sizes, strict=True), 1):
            yield self._head(file)
            yield from pieces(file.path, size)
            yield b"\r\n"
            self._sent(number)
        yield self._end()

    def _around(self) -> Iterator[bytes]:
        """Everything but the files' own bytes."""
        yield from (self._field(n, v) for n, v in self._fields.items())
        for file in self._files:
            yield self._head(file) + b"\r\n"
        yield self._end()

    def _field(self, name: str, value: str) -> bytes:
        head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        return (head + value + "\r\n").encode("utf-8", "surrogateescape")

    def _head(self, file: Upload) -> bytes:
        head = (
            f"--{self._boundary}\r\n"
            f'Content-Disposition: form-data; name="{file.field}"; filename="{quoted(file.name)}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        return head.encode("utf-8", "surrogateescape")

    def _end(self) -> bytes:
        return f"--{self._boundary}--\r\n".encode()


def quoted(name: str) -> str:
    """A file's name between quotes; a line's end in it would end the header."""
    kept = "".join(" " if c in "\r\n\0" else c for c in name)
    return kept.replace("\\", "\\\\").replace('"', '\\"')


def size_of(path: Path) -> int:
    """Bytes of a file. Raises LikenessError."""
    try:
        if not path.is_file():
            what = "a folder, not a file" if path.is_dir() else "no such file"
            raise LikenessError(f"{path}: {what}")
        return path.stat().st_size
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None


def pieces(path: Path, size: int) -> Iterator[bytes]:
    """The ``size`` bytes of a file. Raises LikenessError when it no longer has so many."""
    left = size
    try:
        with path.open("rb") as file:
            while left > 0 and (piece := file.read(min(_PIECE, left))):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    if left:
        raise LikenessError(f"{path}: was changed while it was sent")


def files_of(folder: Path) -> list[Upload]:
    """The files that make up a folder's batch: those that its manifest names and that are there, all
    that are not hidden where it has none. Raises LikenessError when there are none."""
    from service.portraits import read_manifest

    manifest = folder / MANIFEST
    if manifest.is_file():
        return files_named(read_manifest(manifest))
    if not folder.is_dir():
        raise LikenessError(f"{folder}: no such folder")
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    names = {p.relative_to(folder).as_posix(): p for p in found}
    kept = [Upload("files", n, p) for n, p in names.items() if not _hidden(n)]
    if not kept:
        raise LikenessError(f"{folder}: there are no files in it")
    return kept


def files_named(portraits: Iterable[Portrait]) -> list[Upload]:
    """The pictures of ``portraits`` that are there. The server tells of the others: it knows them
    from the manifest. Raises LikenessError when there are none."""
    portraits = list(portraits)
    kept = [Upload("files", p.portrait_id, p.path) for p in portraits if p.path.is_file()]
    if not kept:
        raise LikenessError(f"{portraits[0].path}: no such file, nor any other of the manifest's")
    return kept


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def manifest_of(portraits: Sequence[Portrait]) -> str:
    """A manifest of these portraits alone, with what concerns the persons and nothing about files."""
    more = ("pair_base_file", "varied_attribute")
    columns = dict.fromkeys(name for p in portraits for name in p.attributes)
    kept = [c for c in columns if c not in more]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["file", "subject_id", *kept, *more])
    for p in portraits:
        values = [p.attributes.get(c, "") for c in kept]
        writer.writerow([p.portrait_id, p.subject_id, *values, p.pair_base_file, p.varied_attribute])  # fmt: skip
    return out.getvalue()


def text_of(path: Path) -> str:
    """A manifest's text. Raises LikenessError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise LikenessError(f"{path}: cannot be read: {why}") from None
