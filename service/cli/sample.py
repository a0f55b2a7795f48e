"""``likeness sample``: a stratified, seeded sample of a manifest, as a manifest."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.errors import LikenessError, ManifestError, did_you_mean
from service.cli.escape import printable

if TYPE_CHECKING:
    from service.sampling import Sample

PATHS = ("file", "pair_base_file", "landmarks")
"""Columns that name files relative to the manifest."""
LISTED = 20
"""Short cells told one by one; --json has all."""


class Allocation(StrEnum):
    """How many each cell gets."""

    EQUAL = "equal"
    PROPORTIONAL = "proportional"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sample")(sample)


def sample(
    manifest: Annotated[Path, typer.Argument(help="The manifest to sample from, a CSV.")],
    *,
    n: Annotated[int, typer.Option("--n", min=1, max=1_000_000, help="Portraits wanted.")],
    strata: Annotated[str, typer.Option(help="Columns to balance over: gender,age_group,...")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same sample.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="CSV to write; else stdout.")] = None,
    allocation: Annotated[
        Allocation, typer.Option(help="The same number from each cell, or by the cells' people.")
    ] = Allocation.EQUAL,
    with_unknown: Annotated[
        bool, typer.Option("--with-unknown", help="Sample undeclared values too, as own cells.")
    ] = False,
    partners: Annotated[
        bool, typer.Option("--partners", help="Bring counterfactual partners, beyond --n.")
    ] = False,
    adversarial: Annotated[
        int, typer.Option(min=0, help="Portraits of the set 'adversarial' to add, kept apart.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Draw a stratified, seeded sample of portraits that ``likeness audit`` can read.

    Cells are all combinations of the strata's values. A cell that has too few people is filled with
    second pictures of them; what it still lacks is told, and not taken from other cells.
    Counterfactual partners (pair_base_file) are never drawn, only brought along by --partners.
    """
    from service.sampling import draw_sample

    columns, rows = read_rows(manifest)
    names = _strata(manifest, strata, columns)
    found = draw_sample(
        rows, names, n, seed=seed, allocation=allocation.value, with_unknown=with_unknown,
        partners=partners, adversarial=adversarial,
    )  # fmt: skip
    if not found.rows:
        raise LikenessError(f"{manifest}: no portrait could be sampled: {_why(found, names)}")
    chosen = [rows[i] for i in found.rows]
    target = out.parent if out else Path.cwd()
    text = as_csv(columns, [moved(r, manifest.parent, target) for r in chosen])
    if out is not None:
        _write(manifest, out, text)
    for line in _told(found, names, n, columns):
        print(printable(line), file=sys.stderr)
    if as_json:
        print(json.dumps(_answer(found, names, chosen, manifest, out, n, seed, allocation)))
    elif out is None:
        sys.stdout.write(text)


def read_rows(manifest: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Columns and rows of a manifest, checked as an audit checks it. Raises ManifestError."""
    from service.portraits import read_manifest

    read_manifest(manifest)
    text = manifest.read_text(encoding="utf-8-sig")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = [c for c in reader.fieldnames or [] if c]
    return columns, [{c: str(row.get(c) or "") for c in columns} for row in reader]


def _strata(manifest: Path, strata: str, columns: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(s.strip() for s in strata.split(",") if s.strip()))
    if not names:
        raise LikenessError("--strata: name at least one column, e.g. gender,skin_tone")
    for name in names:
        if name in ("file", "subject_id"):
            raise ManifestError(f"--strata: '{name}' tells portraits apart, it makes no strata")
        if name in columns or (name == "age_group" and "age" in columns):
            continue
        hint = did_you_mean(name, columns, 0.5)
        raise ManifestError(f"{manifest}: no column '{name}'{hint} (columns: {', '.join(columns)})")
    return names


def moved(row: Mapping[str, str], here: Path, there: Path) -> dict[str, str]:
    """The row with its relative paths made valid from another folder."""
    changed = dict(row)
    for name in PATHS:
        value = row.get(name, "").strip()
        if not value or Path(value).is_absolute():
            continue
        changed[name] = Path(os.path.relpath(here.resolve() / value, there.resolve())).as_posix()
    return changed


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """The same columns in the same order."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _write(manifest: Path, out: Path, text: str) -> None:
    from service.report.files import write_atomically

    if out.exists() and out.samefile(manifest):
        raise LikenessError(f"{out}: is the manifest itself; name another file")
    write_atomically(out, text.encode())


# What is told --------------------------------------------------------------------------------


def _label(names: Sequence[str], cell: Sequence[str]) -> str:
    return ", ".join(f"{n} {v}" for n, v in zip(names, cell, strict=True))


def _told(found: Sample, names: Sequence[str], n: int, columns: Sequence[str]) -> list[str]:
    lines = [f"sampled {found.main} of {n} portraits wanted, from {len(found.cells)} cells"]
    if "age_group" in names and "age_group" not in columns:
        lines.append("age_group: bands of 'age'; a plan's group 'age' is banded alike")
    short = sorted((c for c in found.cells if c.short), key=lambda c: (-c.short, c.cell))
    lines += [
        f"short by {c.short}: {_label(names, c.cell)} ({c.sampled} of {c.wanted}, people: {c.people})"
        for c in short[:LISTED]
    ]
    if len(short) > LISTED:
        rest = sum(c.short for c in short[LISTED:])
        lines.append(f"{len(short) - LISTED} more cells are short, by {rest} together (see --json)")
    repeats = sum(c.repeats for c in found.cells)
    if repeats:
        lines.append(f"{repeats} are further pictures of a person, in cells with too few people")
    lines += [
        f"not sampled, value not declared: {count} with {_label(names, cell)} (--with-unknown)"
        for cell, count in sorted(found.unknown.items())[:LISTED]
    ]
    if len(found.unknown) > LISTED:
        lines.append(f"{len(found.unknown) - LISTED} more cells of undeclared values (see --json)")
    if found.partners or found.partners_left:
        what = "brought along" if found.partners else "left behind (--partners brings them)"
        lines.append(
            f"counterfactual partners of them, {what}: {found.partners or found.partners_left}"
        )
    if found.adversarial or found.adversarial_left or found.adversarial_short:
        lines.append(
            f"adversarial set, kept apart: {found.adversarial} taken, {found.adversarial_left} left, "
            f"short by {found.adversarial_short}"
        )
    return lines


def _why(found: Sample, names: Sequence[str]) -> str:
    if found.unknown:
        return f"none declares all of {', '.join(names)} (--with-unknown samples them all the same)"
    return "all are counterfactual partners or of the adversarial set"


def _answer(
    found: Sample,
    names: Sequence[str],
    chosen: Sequence[Mapping[str, str]],
    manifest: Path,
    out: Path | None,
    n: int,
    seed: int,
    allocation: Allocation,
) -> dict[str, Any]:
    return {
        "manifest": str(manifest),
        "out": str(out) if out else None,
        "strata": list(names),
        "allocation": allocation.value,
        "seed": seed,
        "n": n,
        "sampled": found.main,
        "short": n - found.main,
        "cells": [
            {
                "cell": dict(zip(names, c.cell, strict=True)),
                "people": c.people,
                "wanted": c.wanted,
                "sampled": c.sampled,
                "repeats": c.repeats,
                "short": c.short,
            }
            for c in found.cells
        ],
        "unknown": [
            {"cell": dict(zip(names, cell, strict=True)), "portraits": count}
            for cell, count in sorted(found.unknown.items())
        ],
        "partners": {"taken": found.partners, "left": found.partners_left},
        "adversarial": {
            "taken": found.adversarial,
            "left": found.adversarial_left,
            "short": found.adversarial_short,
        },
        "files": [row["file"].strip() for row in chosen],
    }
