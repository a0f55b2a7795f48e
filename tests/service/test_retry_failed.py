"""Items that their tool had failed are asked for again; all others keep what they have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import adapters.contract
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused
from domain.errors import LikenessError
from service import runs
from service.cli.main import build_app
from service.engine.lane import Lane
from service.engine.progress import Silent
from service.store.ledger import DONE, EDITED, PLANNED
from tests.service.scripted import SPEC, Scripted, begin, picture, write_plan


class Module:
    """A tool that can be swapped between two runs. Its spec needs a key."""

    tool = Scripted(Edited(b"x"))

    @classmethod
    def build(cls, settings: Any) -> Scripted:
        return cls.tool


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(adapters.contract, "discover", lambda: {"scripted": (SPEC, Module)})
    yield write_plan(tmp_path, "[{id: scripted, name: tool}]", count=4)


def answers(request: EditRequest) -> EditOutcome:
    """Fails p0 and p3, refuses p1, edits p2."""
    if request.original_name == "p1.png":
        return Refused("input", "blocked", "no")
    return Edited(picture(9)) if request.original_name == "p2.png" else Failed("out of memory")


def work(run: runs.Run, tool: Scripted) -> None:
    monkey = Module.tool
    Module.tool = tool
    todo = run.ledger.items(PLANNED)
    Lane(run, "tool", todo, threading.Event(), Silent()).work(lambda _item: None)
    Module.tool = monkey


def test_failed_items_alone_are_asked_for_again_and_their_earlier_calls_stay(plan: Path) -> None:
    run = begin(plan)
    work(run, Scripted(answers))
    before = {i["portrait_id"]: i for i in run.ledger.items()}
    run.ledger.set_run(finished="2026-05-01T10:00:00+00:00")
    run.ledger.close()

    said: list[str] = []
    run = begin(plan, resume=True, retry_failed=True, say=said.append)
    assert said == ["failed items that go back to their tools: 2"]
    assert run.ledger.count() == {PLANNED: 2, DONE: 1, EDITED: 1}
    row = run.ledger.run()
    assert row is not None and row["finished"] is None, "the run is not complete any more"
    tool = Scripted(Edited(picture(7), {"model": "m"}))
    work(run, tool)
    after = {i["portrait_id"]: i for i in run.ledger.items()}
    calls = run.ledger.calls()
    run.ledger.close()

    assert tool.calls == 2
    assert after["p1.png"] == before["p1.png"] and after["p2.png"] == before["p2.png"]
    for name in ("p0.png", "p3.png"):
        assert (after[name]["state"], after[name]["reason"]) == (EDITED, None)
        mine = [c for c in calls if c["item_id"] == after[name]["item_id"]]
        assert [c["result"] for c in mine] == ["failed", "edited"]
        assert [c["attempt"] for c in mine] == [1, 2] and after[name]["attempts"] == 2


def test_items_that_were_not_sent_are_sent_once_the_cause_is_mended(plan: Path) -> None:
    run = begin(plan)
    work(run, Scripted(Failed("HTTP 401", meta={"stop": True})))
    assert [i["reason"] for i in run.ledger.items()] == ["HTTP 401", *["not sent: HTTP 401"] * 3]
    run.ledger.close()
    run = begin(plan, resume=True, retry_failed=True)
    work(run, Scripted(Edited(b"x")))
    assert {i["state"] for i in run.ledger.items()} == {EDITED}
    run.ledger.close()


def test_resuming_without_it_leaves_failed_items_as_they_are(plan: Path) -> None:
    run = begin(plan)
    work(run, Scripted(answers))
    run.ledger.close()
    run = begin(plan, resume=True)
    assert run.ledger.items(PLANNED) == []
    run.ledger.close()


def test_a_finished_run_is_reported_again_without_a_key_and_retried_only_with_one(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(plan)
    work(run, Scripted(answers))
    for item in run.ledger.items(EDITED):
        run.ledger.finish_item(item["item_id"], {"outcome": "measured"}, [])
    run.ledger.close()
    needs = adapters.contract.ToolSpec(
        "scripted", "s", SPEC.tasks, key_env="SCRIPTED_KEY", key_needed=True
    )
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    monkeypatch.setattr(adapters.contract, "discover", lambda: {"scripted": (needs, Module)})
    begin(plan, resume=True).ledger.close()
    with pytest.raises(LikenessError, match="variable SCRIPTED_KEY is not set"):
        begin(plan, resume=True, retry_failed=True)
    run = begin(plan, resume=True)
    assert [i["outcome"] for i in run.ledger.items()].count("failed") == 2, "nothing was lost"
    run.ledger.close()


def test_without_a_run_to_resume_it_is_a_slip(plan: Path) -> None:
    arguments = ["audit", str(plan), "--out", str(plan.parent / "out"), "--retry-failed"]
    done = CliRunner().invoke(build_app(), arguments)
    assert isinstance(done.exception, LikenessError)
    assert str(done.exception).startswith("--retry-failed goes on with a run that is there")
    assert not (plan.parent / "out").exists()
