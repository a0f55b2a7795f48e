"""Hostile uploads to a real service, one in thirty of those that ``docs/soak/hostile.py`` sends, and
every bomb: right answers, bounded memory, and a service that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]
MOST_MB = 2048


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_hostile_uploads_get_the_answers_of_their_manifest_in_bounded_memory(
    data_dir: Path,
) -> None:
    line = [sys.executable, "docs/soak/hostile.py", "--every", "30"]
    done = subprocess.run(line, cwd=REPO, capture_output=True, text=True, check=False, timeout=800)
    found = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert found, done.stderr[-4000:]
    assert found["wrong"] == [] and found["left_over"] == []
    assert found["uploads"] >= 80
    assert found["peak_mb"] < MOST_MB
    assert not [status for status in found["answers"] if status.split()[-1] >= "500"]
    assert done.returncode == 0, done.stderr[-4000:]
