"""Fixtures every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import hypothesis
import pytest

from preprocess import models
from service import settings

# the same cases at every run: a test that fails once in a while teaches people to look away
hypothesis.settings.register_profile("steady", derandomize=True)
hypothesis.settings.load_profile("steady")
REPO = Path(__file__).resolve().parents[1]
cv2.setNumThreads(1)
models.configure(settings.load().models)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: with several workers, one that begins last is waited for alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of shared data; its absence is said, not hidden."""
    folder = Path(os.environ.get("LIKENESS_DATA", REPO.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"data folder {folder} is absent; set LIKENESS_DATA to run this test")
    return folder


@pytest.fixture(scope="session")
def samples_dir() -> Path:
    return REPO / "samples"


@pytest.fixture
def fake() -> Iterator[Callable[..., Any]]:
    """``fake("openai", slow_s=0.5)`` starts that fake server; all end with the test."""
    from service.fake_servers.contract import start

    running: list[Any] = []

    def begin(name: str, **options: Any) -> Any:
        running.append(start(name, **options))
        return running[-1]

    yield begin
    for server in running:
        server.close()
