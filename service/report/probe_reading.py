"""Reads report.json of a run of text probes back, so that an audit of pictures can show it too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from service.report.probe_json import PROBE_SCHEMA
from service.report.probe_view import probe_view

KEPT_PROBES = "probes.json"
"""The audit's own copy, from which a later ``--resume`` without ``--probes`` goes on."""


def read_probe_report(place: Path) -> dict[str, Any]:
    """The report of a run of probes. ``place`` is its file, or the folder in which it lies.

    Raises LikenessError for what is none, or is not whole.
    """
    path = place / "report.json" if place.is_dir() else place
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LikenessError(f"{path}: no such report of text probes") from None
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise LikenessError(f"{path}: not JSON, so no report of text probes") from None
    found = report.get("schema") if isinstance(report, dict) else None
    if found != PROBE_SCHEMA:
        said = f"its schema is {found!r}" if found else "it names no schema"
        raise LikenessError(f"{path}: not a report of text probes ({PROBE_SCHEMA}): {said}")
    try:
        probe_view(report)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise LikenessError(f"{path}: this report of text probes is not whole") from None
    found_report: dict[str, Any] = report
    return found_report
