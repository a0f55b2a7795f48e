"""The simulated audits of ``make validity``, fewer of them: a broken promise would show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "docs" / "validity" / "statistics_bench.py"


@pytest.mark.slow
def test_the_verdicts_keep_their_promises_over_simulated_audits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = importlib.util.spec_from_file_location("statistics_bench", BENCH)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "statistics_bench", bench)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(bench)
    broken = [f"{p.text}: {p.share:.3f}" for p in bench.promises(200) if not p.kept]
    assert not broken, broken
