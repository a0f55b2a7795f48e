"""The check for CUDA machines: its arithmetic, and what it says where there is no CUDA."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "docker" / "gpu_check.sh"), "--steps", "1", "--pictures", "2", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""},
    )


@pytest.mark.slow  # a process of its own that imports torch and diffusers
def test_without_cuda_the_cpu_is_measured_and_exit_status_2_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", "found.json")
    assert done.returncode == 2, done.stderr
    assert "no CUDA device here" in done.stdout
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [(r["device"], r["batch"], r["outcome"]) for r in rows] == [
        ("cpu", 1, "edited"),
        ("cpu", 4, "edited"),
    ]
    assert rows[0]["repeats"] is True
    assert rows[0]["images_per_s"] > 0
    assert rows[1]["worst_off"] <= 1


def test_a_missing_package_is_told_in_one_line(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -S "$@"\n')  # no site-packages
    bare.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "docker" / "gpu_check.sh")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHON": str(bare)},
    )
    assert done.returncode == 1
    assert "lacks the packages: torch diffusers" in done.stderr


def test_agreement_has_known_answers() -> None:
    from docker.gpu_check import _agreement

    one, other = np.zeros((4, 4, 3)), np.zeros((4, 4, 3))
    assert _agreement([one], [other]) == (0.0, 0.0, None)
    other[0, 0, 0] = 24
    mean, worst, psnr = _agreement([one], [other])
    assert (mean, worst) == (0.5, 24.0)
    assert psnr == pytest.approx(10 * np.log10(255**2 / 12))
