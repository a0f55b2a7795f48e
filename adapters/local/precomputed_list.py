"""The CSV of the precomputed tool: which result, refusal or failure belongs to which original."""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from domain.edits import Failed, Refused, Task
from domain.errors import LikenessError

NEEDED = ("original", "edited", "status")
OPTIONAL = ("reason", "task", "perturbation")
STATUSES = ("ok", "refused", "failed")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list; "" in ``task`` or ``perturbation`` is any task, and "none"."""

    edited: str
    status: str
    reason: str
    task: str
    perturbation: str


class ResultList:
    """Columns original, edited, status (ok, refused or failed) and, if wanted, reason, task and
    perturbation. ``original`` is the manifest's file name (or its last part, where that is unique),
    ``edited`` a file beside or below the CSV. Raises LikenessError for a list that cannot be used,
    naming file, line and column."""

    def __init__(self, path: Path) -> None:
        self._root = path.parent.resolve()
        self._rows: dict[str, list[Row]] = {}
        self._short: dict[str, set[str]] = {}
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                self._read(file.read(), path.name)
        except FileNotFoundError:
            raise LikenessError(f"tool 'precomputed': list '{path}' was not found") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise LikenessError(f"tool 'precomputed': list '{path}': {error}") from None
        if not self._rows:
            raise LikenessError(f"{path.name}: the list has no rows")

    def find(self, original: str, task: Task, perturbation: str) -> Path | Refused | Failed | None:
        """The result's file, its refusal or failure, or None where the list says nothing."""
        rows = self._rows.get(original, [])
        if not rows:
            full = self._short.get(PurePosixPath(original).name, set())
            rows = self._rows[next(iter(full))] if len(full) == 1 else []
        fits = [r for r in rows if r.perturbation == perturbation and r.task in ("", task.value)]
        if not fits:
            return None
        row = max(fits, key=lambda r: r.task != "")
        if row.status == "refused":
            return Refused("policy", "supplied", row.reason)
        if row.status == "failed":
            return Failed(row.reason or "supplied as failed, without a reason")
        return self._file(row.edited)

    def _file(self, edited: str) -> Path | Failed:
        path = (self._root / edited).resolve()
        if not path.is_relative_to(self._root):
            return Failed(f"'{edited}' leads outside the folder of the list")
        return path if path.is_file() else Failed(f"the listed result '{edited}' was not found")

    def _read(self, text: str, name: str) -> None:
        head = text.split("\n", 1)[0]
        mark = ";" if head.count(";") > head.count(",") else ","
        reader = csv.DictReader(text.splitlines(), delimiter=mark, strict=True)
        columns = [(column or "").strip() for column in reader.fieldnames or []]
        _check_columns(columns, name)
        reader.fieldnames = columns
        for cells in reader:
            row = {k: (v or "").strip() for k, v in cells.items() if k and not isinstance(v, list)}
            if any(row.values()):
                self._add(row, f"{name} line {reader.line_num}")

    def _add(self, cells: dict[str, str], where: str) -> None:
        row = Row(
            cells["edited"],
            cells["status"].lower(),
            cells.get("reason", ""),
            cells.get("task", ""),
            cells.get("perturbation", "") or "none",
        )
        original = cells["original"]
        if not original:
            raise LikenessError(f"{where}: 'original' is empty")
        if row.status not in STATUSES:
            raise LikenessError(f"{where}: {_unknown('status', row.status, STATUSES)}")
        if row.task and row.task not in [task.value for task in Task]:
            raise LikenessError(f"{where}: {_unknown('task', row.task, tuple(Task))}")
        if row.status == "ok" and not row.edited:
            raise LikenessError(f"{where}: 'edited' is empty though the status is ok")
        rows = self._rows.setdefault(original, [])
        if any((r.task, r.perturbation) == (row.task, row.perturbation) for r in rows):
            raise LikenessError(f"{where}: a second row for '{original}'")
        rows.append(row)
        self._short.setdefault(PurePosixPath(original).name, set()).add(original)


def _check_columns(columns: list[str], name: str) -> None:
    known = NEEDED + OPTIONAL
    for column in NEEDED:
        if column not in columns:
            strange = [c for c in columns if c not in known]
            near = difflib.get_close_matches(column, strange, n=1, cutoff=0.5)
            hint = (
                f"; is '{near[0]}' meant?"
                if near
                else f"; found: {', '.join(columns) or 'nothing'}"
            )
            raise LikenessError(f"{name} line 1: column '{column}' is missing{hint}")
    for column in columns:
        if column not in known and (near := difflib.get_close_matches(column, OPTIONAL, n=1)):
            raise LikenessError(f"{name} line 1: unknown column '{column}'; is '{near[0]}' meant?")


def _unknown(what: str, value: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    return f"unknown {what} '{value}'; {hint}"
