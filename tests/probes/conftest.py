"""Fixtures of the probes' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from domain.errors import ExtraMissing
from probes import local_model


@pytest.fixture(scope="session")
def local_server() -> Iterator[local_model.LocalModel]:
    """The small real language model behind its server; without its packages that is said."""
    try:
        local_model.weights()
    except ExtraMissing as missing:
        pytest.skip(str(missing))
    with local_model.running() as model:
        yield model


@pytest.fixture(scope="session")
def smollm2(local_server: local_model.LocalModel) -> str:
    """Its address, ending in /v1."""
    return local_server.base_url
