"""A measuring process that is killed takes no item with it."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path

import psutil
import pytest

from domain.measurements import Decision, Outcome
from service import audit, calling, runs, settings
from service.engine.local import Machine
from service.engine.pool import MeasuringPool
from service.plans import load_plan
from service.store.ledger import DONE, EDITED

REPO = Path(__file__).resolve().parents[3]
PLAN = """\
name: pool test
portraits: {{manifest: {manifest}, limit: 8}}
tools: [{{id: identity, name: copy}}]
controls: false
workers: 2
"""


def edited_run(folder: Path, pool_of: type[MeasuringPool]) -> tuple[runs.Run, MeasuringPool]:
    """A run whose items have all come back from the tool and wait to be measured."""
    plan = folder / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    run = runs.begin(load_plan(plan), folder / "out", resume=False)
    pool = pool_of(run, Machine.this(settings.load().models, 2))
    run.ledger.add_portraits(list(pool.inspect(audit.unseen(run))))
    audit.plan_items(run)
    adapter = runs.build_tool(run.loaded, run.tools["copy"])
    portraits = {row["portrait_id"]: row for row in run.ledger.portraits()}
    for item in run.ledger.items():
        called = calling.call_tool(run, adapter, item, portraits[item["portrait_id"]])
        assert called is calling.Called.MEASURABLE
    return run, pool


def kill_one_child(stop: threading.Event, killed: list[int]) -> None:
    """Kill -9 the first measuring process that is seen working."""
    while not stop.is_set() and not killed:
        for child in psutil.Process().children():
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                killed.append(child.pid)
                return
        time.sleep(0.01)


@pytest.mark.slow
def test_every_item_is_measured_although_a_process_was_killed(tmp_path: Path) -> None:
    run, pool = edited_run(tmp_path, MeasuringPool)
    ready: queue.Queue[str | None] = queue.Queue()
    for item in run.ledger.items(EDITED):
        ready.put(item["item_id"])
    ready.put(None)
    stop, killed, steps = threading.Event(), [], []
    killer = threading.Thread(target=kill_one_child, args=(stop, killed))
    killer.start()
    with pool:
        pool.measure_all(ready, 1, lambda: steps.append(1))
    stop.set()
    killer.join()
    assert killed, "no process was there to be killed"
    items = run.ledger.items(DONE)
    assert len(items) == len(steps) == 8
    assert {i["outcome"] for i in items} == {"measured"}
    figures = run.ledger.measurements()
    assert len({m["item_id"] for m in figures}) == 8
    run.ledger.close()


def test_a_pair_that_kills_its_process_twice_is_an_outcome_with_its_reason() -> None:
    result = audit.died("mediapipe")
    assert result.outcome is Outcome.NOT_MEASURABLE
    assert "measuring process died" in str(result.reason)
    assert all(h.decision is not Decision.PASS for h in result.health.values())
