"""A disk that fills up ends a run in one clear line; nothing done by then is lost."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PLAN = """\
name: disk full
portraits: {{manifest: {manifest}, limit: 4}}
tools:
  - {{id: identity, name: copy}}
controls: false
workers: 1
"""


def run(
    plan: Path, out: Path, most_bytes: int | None, *more: str
) -> subprocess.CompletedProcess[str]:
    """An audit in which no file may grow over ``most_bytes``: what a full disk looks like."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", "audit", str(plan), "--out", str(out), *more],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=200, preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [200_000, 30_000], ids=["pictures", "ledger"])
def test_a_full_disk_is_one_clear_line_and_the_run_can_be_resumed(
    tmp_path: Path, most_bytes: int
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    full = run(plan, tmp_path / "out", most_bytes)
    assert full.returncode == 2, full.stdout
    assert "Traceback" not in full.stderr
    last = full.stderr.strip().splitlines()[-1]
    assert last.startswith("likeness: /") and "fault of the program" not in last
    assert "too large" in last or "full" in last or "disk I/O" in last
    again = run(plan, tmp_path / "out", None, "--resume")
    assert again.returncode == 0, again.stderr
    assert "4 measured" in again.stdout
