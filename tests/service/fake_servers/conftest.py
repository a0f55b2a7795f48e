"""Pictures to send to a fake server."""

from __future__ import annotations

import cv2
import numpy as np
import pytest


@pytest.fixture(scope="session")
def picture() -> bytes:
    """A noisy 64x96 PNG, so that softening it shows."""
    pixels = np.random.default_rng(0).integers(60, 200, (96, 64, 3), dtype=np.uint8)
    return bytes(cv2.imencode(".png", pixels)[1].tobytes())
