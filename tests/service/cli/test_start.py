"""``likeness`` as a process: what happens before any command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["adapters", "metrics", "probes", "domain", "preprocess"])
def test_a_package_of_the_same_name_stops_the_start_with_one_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('the stranger ran')")
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from service.cli.main import run; run()"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPO}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert f"the package '{name}' is not this product's" in line
