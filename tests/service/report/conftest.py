"""The made-up run that every test of the report reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fixture"))

import synthetic_run

from service.report.model import RunData


@pytest.fixture(scope="session")
def run_data() -> RunData:
    """Twenty portraits of six heads, five tools."""
    return synthetic_run.build_run(limit=20)


@pytest.fixture(scope="session")
def specs() -> dict[str, object]:
    return dict(synthetic_run.SPECS)
