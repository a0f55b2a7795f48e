"""A log that cannot be written, because the disk is full, costs lines of the log and nothing else."""

from __future__ import annotations

import errno
import io
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from service.api import logs
from service.cli.worker import say


class Full(io.StringIO):
    """A file on a disk without room."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def full_log(monkeypatch: pytest.MonkeyPatch) -> Any:
    """stderr on a disk without room."""
    monkeypatch.setattr(sys, "stderr", Full())
    return sys.stderr


def test_a_worker_that_cannot_write_its_log_works_on(full_log: Any) -> None:
    say("run r_1: begun, attempt 1")


def test_a_service_that_cannot_write_its_log_answers_and_repeats_no_record(
    full_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("likeness", "uvicorn")
    before = {n: (logging.getLogger(n).handlers, logging.getLogger(n).propagate) for n in names}
    levels = {n: logging.getLogger(n).level for n in names}
    complaints: list[Any] = []
    monkeypatch.setattr(
        logging.Handler, "handleError", lambda _self, record: complaints.append(record)
    )
    try:
        logs.configure()
        logs.LOGGER.info("request", extra={"facts": {"status": 200}})
    finally:
        for name in names:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = before[name]
            logger.setLevel(levels[name])
    assert complaints == []


def test_a_closed_log_ends_no_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = (tmp_path / "log").open("w")
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    say("run r_1: done")
