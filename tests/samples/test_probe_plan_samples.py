"""Every sample of a probe plan is one that can be run."""

from __future__ import annotations

from pathlib import Path

from service.probe_endpoint import unasked
from service.probe_estimate import reckon
from service.probe_plans import load_probe_plan


def test_every_sample_loads_and_has_calls_to_make(samples_dir: Path) -> None:
    plans = sorted((samples_dir / "probes").glob("*.yaml"))
    assert plans
    for path in plans:
        loaded = load_probe_plan(path)
        assert reckon(loaded, unasked(loaded)).left.calls > 0, path
