"""Fixtures for tools on the other end of a wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from service.fake_servers.contract import FakeServer, start

PREPARE: dict[str, Callable[[Path], Mapping[str, Any]]] = {}
"""Settings of a tool's example that must be made first (a tiny model's files): tool id to a function
that fills the given empty folder and returns the settings."""


@pytest.fixture
def fake() -> Iterator[Callable[..., FakeServer]]:
    """``fake("openai", slow_s=0.5)`` starts that fake server; all end with the test."""
    running: list[FakeServer] = []

    def begin(name: str, **options: Any) -> FakeServer:
        running.append(start(name, **options))
        return running[-1]

    yield begin
    for server in running:
        server.close()
