"""A stranger adds a tool as one file in a package of his own; an audit takes it like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]
ONE_FILE = '''
"""Flattens the picture towards its mean, and will not touch small ones."""

import io

import numpy as np
from PIL import Image

from adapters.contract import ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from domain.edits import Edited, Refused, Task
from domain.sizing import SizeRule

SPEC = ToolSpec("flatten", "A made-up tool", (Task.RETOUCH,), SizeRule(max_side=512), licence="CC0-1.0")


class FlattenSettings(Settings):
    amount: float = 0.2


class Flatten:
    spec, model = SPEC, "flatten 1.0"

    def __init__(self, amount):
        self.amount = amount

    @failures_are_answers
    def edit(self, request):
        pixels = np.asarray(Image.open(io.BytesIO(request.picture)).convert("RGB"), float)
        if min(pixels.shape[:2]) < 100:
            return Refused("input", "too_small")
        flat = pixels + self.amount * (pixels.mean((0, 1)) - pixels)
        file = io.BytesIO()
        Image.fromarray(np.uint8(np.round(flat))).save(file, "PNG")
        return Edited(file.getvalue())

    def close(self):
        pass


def build(settings):
    return Flatten(read_settings(FlattenSettings, settings, SPEC.id).amount)
'''
PLAN = """\
name: a made-up tool
portraits: {{manifest: {manifest}, limit: 2}}
tools: [{{id: flatten, settings: {{amount: 0.3}}}}]
controls: false
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the one file is installed as a package with an entry point."""
    site = tmp_path / "site"
    info = site / "likeness_flatten-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "likeness_flatten.py").write_text(ONE_FILE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: likeness-flatten\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[likeness.adapters]\nflatten = likeness_flatten\n")
    return {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}


def likeness(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", *arguments],
        cwd=REPO, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_one_file_with_an_entry_point_is_listed_and_audited(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    listed = likeness(installed, "tools", "--json")
    assert "flatten" in [json.loads(line)["id"] for line in listed.stdout.splitlines()]
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    done = likeness(installed, "audit", str(plan), "--out", str(tmp_path / "out"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"measured": 2}
    assert "flatten" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
