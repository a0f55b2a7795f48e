"""A disk without room is told as 503 with Retry-After wherever a request meets it, never as a fault
of what was sent."""

from __future__ import annotations

import errno
from typing import Any

import pytest
import starlette.formparsers

from docs.soak.probing import comes_back


class FullDisk:
    """A temporary file on a disk without room."""

    _rolled = True

    def __init__(self, **_how: Any) -> None:
        self.close = lambda: None

    def write(self, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_pair_that_finds_no_room_is_to_come_again(
    start_service: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = start_service()
    monkeypatch.setattr(starlette.formparsers, "SpooledTemporaryFile", FullDisk)
    files = {"original": b"picture", "edited": b"picture"}
    answer = service.client.post("/v1/gate", files=files)
    assert comes_back(answer), answer.text
    assert answer.json()["detail"] == "the service's disk has no room"


def test_any_request_that_finds_no_room_is_to_come_again(start_service: Any) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    service = start_service(change=lambda app: app.add_api_route("/v1/full", full, name="full"))
    answer = service.client.get("/v1/full")
    assert comes_back(answer), answer.text
    assert service.client.get("/healthz").status_code == 200
