"""A fake server for a test, and pictures to send it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
import pytest

from service.fake_servers.contract import FakeServer, start


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


@pytest.fixture(scope="session")
def picture() -> bytes:
    """A noisy 64x96 PNG, so that softening it shows."""
    pixels = np.random.default_rng(0).integers(60, 200, (96, 64, 3), dtype=np.uint8)
    return bytes(cv2.imencode(".png", pixels)[1].tobytes())
