"""The service keeps to its OpenAPI document whatever it is asked. ``docs/soak/fuzz.py`` asks for longer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_gets_an_answer_that_is_not_documented_or_a_5xx() -> None:
    line = [
        sys.executable,
        "docs/soak/fuzz.py",
        "--phases",
        "short",
        "--examples",
        "1",
        "--seed",
        "1",
    ]
    done = subprocess.run(line, cwd=REPO, capture_output=True, text=True, check=False, timeout=800)
    found = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert done.returncode == 0, f"{found.get('failures')}\n{done.stderr[-4000:]}"
    assert found["failures"] == [] and found["served_afterwards"]
    assert found["operations"] >= 30 and found["cases"] >= 500
