"""From an audit to people and back: what they exclude leaves the statistics, no tool is called again."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.report.probe_files import write_probe_files
from service.report.probe_model import ProbeRun
from service.store.ledger import Ledger

REPO = Path(__file__).resolve().parents[2]
PLAN = """\
name: review loop
portraits: {manifest: m.csv}
tools: [{id: identity, name: fine}]
controls: false
"""


def audit(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service.cli.main", "audit", str(folder / "plan.yaml")]
    return subprocess.run(
        [*command, "--out", str(folder / "out"), "--json", *more],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_reviews_and_text_probes_come_into_a_finished_run_and_are_kept(tmp_path: Path) -> None:
    pictures = sorted((REPO / "samples" / "portraits" / "images").glob("*_base.jpg"))[:4]
    lines = [
        f"{p},s{k},{'mw'[k % 2]},{'adversarial' if k == 3 else ''}" for k, p in enumerate(pictures)
    ]
    (tmp_path / "m.csv").write_text("file,subject_id,gender,set\n" + "\n".join(lines) + "\n")
    (tmp_path / "plan.yaml").write_text(PLAN)
    probes = ProbeRun(
        "p1", "Release 7", "", "2026-11-30T01:00:00+00:00", "2026-11-30T01:01:00+00:00", 60.0, 0, 0.05,
        "", {}, "https://llm.example/v1", "model-x", {}, (), notices=("Asked on a Monday.",),
    )  # fmt: skip
    write_probe_files(probes, tmp_path / "probes")
    first = answer(audit(tmp_path, "--probes", str(tmp_path / "probes")))
    assert first["standings"] == {"main": 3, "adversarial": 1}
    out = tmp_path / "out"
    with (out / "measurements.csv").open() as file:
        standing = {r["item_id"]: r["standing"] for r in csv.DictReader(file)}
    chosen = next(i for i, s in standing.items() if s == "main")
    reviews = tmp_path / "r.csv"
    reviews.write_text(f"item_id,reviewer,decision,reason\n{chosen},ann,exclude,not the person\n")
    with_reviews = answer(audit(tmp_path, "--resume", "--reviews", str(reviews)))
    assert with_reviews["standings"] == {"main": 2, "excluded_3": 1, "adversarial": 1}
    assert answer(audit(tmp_path, "--resume"))["standings"] == with_reviews["standings"]
    report = json.loads((out / "report.json").read_text())
    assert report["cleaning"]["items"]["excluded_3"] == 1
    assert report["probes"]["run"]["name"] == "Release 7"
    assert "Asked on a Monday." in (out / "report.html").read_text()
    ledger = Ledger.at(out / "ledger.sqlite3")
    assert len(ledger.calls()) == 4
    ledger.close()
    reviews.write_text("item_id,reviewer,decision,reason\nnone,ann,keep,\n")
    refused = audit(tmp_path, "--resume", "--reviews", str(reviews))
    assert refused.returncode == 2
    assert "this run has no item 'none'" in refused.stderr
