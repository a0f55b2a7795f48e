"""Logs of the service: one JSON object a line on stderr, fit for a machine to read.

A line names the request by its id, method, route template and status. Bodies, keys, query strings,
file names and addresses with ids in them are not in it.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from service import secrets

LOGGER = logging.getLogger("likeness.service")


class JsonLines(logging.Formatter):
    """``{"at", "level", "message", ...}``; what a caller gave as ``extra={"facts": {...}}`` beside."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": secrets.hide_keys(record.getMessage()),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            line |= facts
        return json.dumps(line, ensure_ascii=True, default=str)


class Lines(logging.StreamHandler[Any]):
    """To a stream that may be a file on a full disk: a line that cannot be written is lost, without
    the complaint, with the record in it, that the standard handler would write instead."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Leave it."""


def configure(level: int = logging.INFO) -> None:
    """Send the service's own log, and the server's warnings, to stderr as JSON lines."""
    handler = Lines(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("likeness", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if name == "likeness" else logging.WARNING)


def where(error: BaseException) -> list[str]:
    """The frames of a fault, innermost last, without its message, which may quote what was sent."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames]
