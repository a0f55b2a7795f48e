"""A real service whose stores go away, in small: docs/soak/faults.py does the same for half a minute
each. Every answer meanwhile must be right or 503 with Retry-After, and everything goes on by itself."""

from __future__ import annotations

import pytest

from docs.soak.faults import Faults


@pytest.mark.slow
@pytest.mark.parametrize("name", ["disk full", "folder gone", "postgres stopped", "s3 gone"])
def test_what_is_gone_is_told_with_503_and_a_run_under_way_ends_well(name: str) -> None:
    faults = Faults(seconds=4.0, only=[name])
    faults.all()
    assert faults.missed == []
    facts = faults.facts[name]
    if "not_run" in facts:
        pytest.skip(facts["not_run"])
    assert facts["runs"] >= 1
    assert facts["answers"]["POST batches"]["503"] >= 1
    assert set(facts["answers"]["GET /healthz"]) == {"200"}
