"""A killed audit goes on where it stood: nothing lost, nothing doubled, nothing different."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from service.store.ledger import Ledger

REPO = Path(__file__).resolve().parents[2]
PLAN = """\
name: resume test
portraits: {{manifest: {manifest}, limit: 6}}
tools:
  - id: command
    name: copier
    settings:
      argv: [{python}, {tool}, "{{input}}", "{{output}}"]
tasks: [retouch]
groups: [gender]
seed: 3
workers: 1
"""
TOOL = """\
import shutil, sys, time
with open({log!r}, "a") as log:
    log.write(sys.argv[1].rsplit("/", 1)[-1] + "\\n")
time.sleep(0.35)
shutil.copy(sys.argv[1], sys.argv[2])
"""


def likeness(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service.cli.main", *arguments]


def make_plan(folder: Path) -> tuple[Path, Path]:
    log = folder / "calls.log"
    tool = folder / "tool.py"
    tool.write_text(TOOL.format(log=str(log)))
    plan = folder / "plan.yaml"
    manifest = REPO / "samples" / "portraits" / "manifest.csv"
    plan.write_text(PLAN.format(manifest=manifest, python=sys.executable, tool=tool))
    return plan, log


def run(plan: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        likeness("audit", str(plan), "--out", str(out), "--json", *more),
        cwd=REPO, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip


def kill_9(process: subprocess.Popen[bytes]) -> None:
    """Kill the run alone, as the system would; its measuring processes must end by themselves."""
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert psutil.wait_procs(children, timeout=30)[1] == []


def wait_for_edits(out: Path, wanted: int) -> None:
    """Until so many items have come back from the tool."""
    file = out / "ledger.sqlite3"
    for _ in range(1200):
        time.sleep(0.1)
        if not file.exists():
            continue
        ledger = Ledger.at(file)
        done = sum(1 for i in ledger.items() if i["tool"] == "copier" and i["edited"])
        ledger.close()
        if done >= wanted:
            return
    pytest.fail("the audit made no progress")


@pytest.mark.slow
def test_kill_9_and_resume_give_the_figures_of_an_undisturbed_run(tmp_path: Path) -> None:
    plan, log = make_plan(tmp_path)
    undisturbed = run(plan, tmp_path / "whole")
    assert undisturbed.returncode == 0, undisturbed.stderr
    calls_whole = len(log.read_text().splitlines())
    log.write_text("")

    killed = subprocess.Popen(
        likeness("audit", str(plan), "--out", str(tmp_path / "killed")),
        cwd=REPO, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for_edits(tmp_path / "killed", 2)
    kill_9(killed)
    ledger = Ledger.at(tmp_path / "killed" / "ledger.sqlite3")
    finished = {i["item_id"] for i in ledger.items() if i["edited"]}
    before = {c["item_id"]: 0 for c in ledger.calls()}
    for call in ledger.calls():
        before[call["item_id"]] += 1
    ledger.close()
    assert finished, "the kill came before any item was finished"

    resumed = run(plan, tmp_path / "killed", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    whole = (tmp_path / "whole" / "measurements.csv").read_bytes()
    assert (tmp_path / "killed" / "measurements.csv").read_bytes() == whole

    ledger = Ledger.at(tmp_path / "killed" / "ledger.sqlite3")
    for item_id in finished:
        assert sum(c["item_id"] == item_id for c in ledger.calls()) == before[item_id]
    assert len({i["item_id"] for i in ledger.items()}) == len(ledger.items())
    ledger.close()
    # at most the one call that the kill cut off was made again
    assert len(log.read_text().splitlines()) - calls_whole in (0, 1)


@pytest.mark.slow
def test_a_folder_that_holds_a_run_is_not_written_over(tmp_path: Path) -> None:
    plan, _ = make_plan(tmp_path)
    assert run(plan, tmp_path / "out").returncode == 0
    again = run(plan, tmp_path / "out")
    assert again.returncode == 2
    assert "already holds a run; use --resume" in again.stderr
    plan.write_text(plan.read_text().replace("seed: 3", "seed: 4"))
    other = run(plan, tmp_path / "out", "--resume")
    assert other.returncode == 2 and "another plan" in other.stderr
    assert "Traceback" not in again.stderr + other.stderr


@pytest.mark.slow
def test_bad_portraits_and_dying_tools_are_outcomes_and_the_rest_goes_on(tmp_path: Path) -> None:
    portraits = REPO / "samples" / "portraits" / "images"
    good = sorted(portraits.glob("*_base.jpg"))[:2]
    (tmp_path / "noise.jpg").write_bytes(b"\xff\xd8 not a picture")
    rows = [
        f"{good[0]},s1,female", f"{good[1]},s2,male", "noise.jpg,s3,male", "absent.jpg,s4,female"
    ]  # fmt: skip
    (tmp_path / "manifest.csv").write_text("file,subject_id,gender\n" + "\n".join(rows) + "\n")
    (tmp_path / "plan.yaml").write_text(
        "name: bad input\n"
        "portraits: {manifest: manifest.csv}\n"
        "tools:\n"
        "  - {id: identity, name: fine}\n"
        f"  - {{id: command, name: dies, settings: {{argv: [{sys.executable}, -c, "
        "'import os; os.abort()', '{output}']}}\n"
        "controls: false\n"
    )
    done = run(tmp_path / "plan.yaml", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    outcomes = json.loads(done.stdout)["outcomes"]
    assert outcomes == {"measured": 2, "failed": 2, "original_unreadable": 4}
    ledger = Ledger.at(tmp_path / "out" / "ledger.sqlite3")
    reasons = {(i["portrait_id"], i["tool"]): i["reason"] for i in ledger.items()}
    ledger.close()
    assert "No such file" in reasons["absent.jpg", "fine"]
    assert reasons["noise.jpg", "fine"]
    assert reasons[str(good[0]), "dies"]
