"""Lays a batch out as a run reads it: a manifest, the pictures it asks for and the plan, in a folder
of this machine that nobody else can read and that is gone when the run ends."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.errors import LikenessError, ManifestError, StoreUnavailable
from service import runs
from service.controls import control_tools
from service.offers import MANIFEST, PLAN, Offers
from service.plans import LoadedPlan
from service.portraits import BOOKKEEPING, REQUIRED
from service.store.blobs import Blobs

PREFIX = "run-"
LONGEST_NAME = 40
BASE = "pair_base_file"
_LATER = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)
_LOCK = "in-use"
_PLAIN = re.compile(
    r"(?!\d{5}-)(?!(?i:out)/)(?:[A-Za-z0-9][A-Za-z0-9_ -]{0,59}/){0,3}"
    r"[A-Za-z0-9][A-Za-z0-9_ .-]{0,99}\.[A-Za-z0-9]{1,5}"
)
"""Letters, digits and little else; folders without a dot and files with one, so that no file stands
where a folder must be; never like a name made here, nor in the folder of the run's own files."""
_OURS = frozenset({MANIFEST, str(PLAN)})
Row = Mapping[str, Any]


@contextmanager
def private_folder(work: Path, run_id: str) -> Iterator[Path]:
    """A folder for one run under ``work``, readable by this user alone, removed at the end. What a
    process that was killed has left is removed by ``sweep``."""
    with _disk_trouble(work):
        work.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{run_id}-", dir=work))
    held = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep(work: Path) -> int:
    """Remove the folders of processes that are gone: there are faces in them. Returns how many."""
    gone = 0
    for folder in work.glob(f"{PREFIX}*") if work.is_dir() else ():
        try:
            held = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue  # being made or removed this moment
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            gone += 1
        except OSError:
            pass  # its process lives
        finally:
            os.close(held)
    return gone


def lay_out(
    folder: Path, text: str, items: Sequence[Row], offers: Offers, blobs: Blobs
) -> LoadedPlan:
    """Write plan, manifest and the pictures that the plan asks for into ``folder``. ``items`` are
    the batch's accepted ones. Raises LikenessError; StoreUnavailable when a disk is full or the
    blobs cannot be reached."""
    loaded = plan_over(folder, text, items, offers)
    wanted = {portrait.portrait_id for portrait in runs.chosen_portraits(loaded)}
    for item in items:
        name = file_name(item)
        if name in wanted:
            content = blobs.get(item["blob"])
            with _disk_trouble(folder):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
    return loaded


def plan_over(folder: Path, text: str, items: Sequence[Row], offers: Offers) -> LoadedPlan:
    """Write plan and manifest into ``folder``, without any picture."""
    loaded = offers.read(text, folder)
    if not items:
        raise ManifestError("the batch has no accepted picture")
    with _disk_trouble(folder):
        (folder / PLAN).write_text(text, encoding="utf-8", newline="")
        (folder / MANIFEST).write_text(manifest_text(items), encoding="utf-8", newline="")
    return loaded


def check(text: str, items: Sequence[Row], offers: Offers) -> LoadedPlan:
    """Whether the plan can be run over these items of a batch, asked before it is put into the
    queue. Raises LikenessError, a line a mistake."""
    with tempfile.TemporaryDirectory(prefix="likeness-check-") as name:
        folder = Path(name)
        try:
            loaded = plan_over(folder, text, items, offers)
            portraits = runs.chosen_portraits(loaded)
            if loaded.plan.controls:
                control_tools(loaded.plan, portraits)
        except LikenessError as error:
            raise type(error)(without_folder(str(error), folder)) from None
        return loaded


def without_folder(text: str, folder: Path) -> str:
    """``text`` with files of ``folder`` by their names alone: where it lies concerns nobody."""
    return text.replace(f"{folder}{os.sep}", "").replace(str(folder), "the run's folder")


def file_name(item: Row) -> str:
    """What a picture is called in the run: as the batch calls it, so that the same portraits give
    the same items here and at the command line; where that is no plain name, its number and what
    can be kept. It can be nothing else than a file of the folder, nor a formula in a spreadsheet."""
    name = str(item["name"])
    if _PLAIN.fullmatch(name) and name.casefold() not in _OURS:
        return name
    kept = re.sub(r"[^\w.-]+", "_", name.replace("\\", "/").rpartition("/")[2])
    return f"{item['seq']:05d}-{kept[-LONGEST_NAME:].lstrip('.')}"


def manifest_text(items: Sequence[Row]) -> str:
    """The batch as a manifest, in its order: always the same text for the same batch. A picture
    without ``subject_id`` is a person of its own."""
    files = {str(item["name"]): file_name(item) for item in items}
    rows = [_row(item, files) for item in items]
    columns = dict.fromkeys([*REQUIRED, *(name for row in rows for name in row)])
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(item: Row, files: Mapping[str, str]) -> dict[str, str]:
    given = {str(k): str(v).replace("\0", "") for k, v in (item["attributes"] or {}).items() if k}
    kept = {
        k: v for k, v in sorted(given.items()) if k not in BOOKKEEPING or k == "varied_attribute"
    }
    row = {
        "file": file_name(item),
        "subject_id": given.get("subject_id") or file_name(item),
        **kept,
    }
    if given.get(BASE):
        row[BASE] = files.get(given[BASE], given[BASE])
    return row


@contextmanager
def _disk_trouble(place: Path) -> Iterator[None]:
    """A disk that is full now may have room later: the run waits for it."""
    try:
        yield
    except OSError as error:
        what = f"the worker's folder {place.name} cannot be written: {error.strerror or error}"
        kind = StoreUnavailable if error.errno in _LATER else LikenessError
        raise kind(what) from None
