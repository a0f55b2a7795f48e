"""A tool is called, retried only where that is right, and every call is on record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from preprocess.decode import encode_png
from service import audit, calling, runs
from service.calling import Called
from service.measuring import Instrument
from service.pacing import Pacing
from service.plans import load_plan
from service.store.ledger import DONE, EDITED
from tests.service.scripted import Scripted, Time

REPO = Path(__file__).resolve().parents[2]
PLAN = """\
name: calling test
portraits: {{manifest: {manifest}, limit: 1}}
tools: [{{id: identity, name: tool}}]
controls: false
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    begun = runs.begin(load_plan(plan), tmp_path / "out", resume=False)
    instrument = Instrument()
    begun.ledger.add_portraits([audit.inspect(instrument, *audit.unseen(begun)[0])])
    instrument.close()
    audit.plan_items(begun)
    yield begun
    begun.ledger.close()


def call(run: runs.Run, tool: Scripted, **limits: Any) -> tuple[bool, dict[str, Any], list[float]]:
    """Called with the longest jitter there is."""
    time = Time()
    pacing = Pacing(**limits, wait=time.wait, clock=time.clock, chance=lambda: 1.0)
    [item] = run.ledger.items()
    [portrait] = run.ledger.portraits()
    called = calling.call_tool(run, tool, item, portrait, pacing)
    return called is Called.MEASURABLE, dict(run.ledger.items()[0]), time.waits


def test_an_answer_is_stored_and_waits_to_be_measured(run: runs.Run) -> None:
    measurable, item, _ = call(run, Scripted(lambda r: Edited(r.picture or b"", {"note": 1})))
    assert measurable and item["state"] == EDITED
    assert item["original"] == item["edited"]
    assert item["model"] == "scripted 1" and item["meta"] == {"note": 1}


def test_a_passing_fault_is_tried_again_with_growing_waits(run: runs.Run) -> None:
    fault = Failed("busy", retryable=True)
    measurable, item, waits = call(run, Scripted(fault, fault, Edited(b"x")))
    assert measurable and item["attempts"] == 3
    assert waits == [1.0, 2.0]
    assert [c["result"] for c in run.ledger.calls()] == ["failed", "failed", "edited"]


def test_the_tools_own_time_to_wait_is_kept(run: runs.Run) -> None:
    fault = Failed("slow down", retryable=True, retry_after=7.5)
    waits = call(run, Scripted(fault, Edited(b"x")))[2]
    assert waits == [7.5 + 0.75], "a tenth of jitter at most, never less than was asked"


def test_a_fault_that_stays_ends_as_failed_with_its_reason(run: runs.Run) -> None:
    measurable, item, waits = call(run, Scripted(Failed("busy", retryable=True)))
    assert not measurable and item["state"] == DONE
    assert (item["outcome"], item["reason"]) == ("failed", "busy")
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (Refused("input", "moderation_blocked", "no"), "refused", "input: moderation_blocked no"),
        (Failed("broken"), "failed", "broken"),
        (Edited(b""), "failed", "the tool answered with an empty body"),
    ],
)
def test_what_is_final_is_never_tried_again(
    run: runs.Run, answer: EditOutcome, outcome: str, reason: str
) -> None:
    tool = Scripted(answer)
    measurable, item, waits = call(run, tool)
    assert not measurable and tool.calls == 1 and waits == []
    assert (item["outcome"], item["reason"]) == (outcome, reason)


def test_an_adapter_that_breaks_its_contract_fails_its_item_alone(run: runs.Run) -> None:
    def raises(request: EditRequest) -> EditOutcome:
        raise RuntimeError("boom")

    _, item, _ = call(run, Scripted(raises))
    assert item["outcome"] == "failed" and "RuntimeError: boom" in item["reason"]


def test_a_tool_that_kills_the_process_is_given_up_after_three_times(run: runs.Run) -> None:
    [item] = run.ledger.items()
    for attempt in (1, 2, 3):
        run.ledger.begin_call(item["item_id"], attempt)
    tool = Scripted(Edited(b"x"))
    _, after, _ = call(run, tool)
    assert tool.calls == 0
    assert after["outcome"] == "failed" and "died 3 times" in after["reason"]


def test_what_is_sent_is_upright_without_metadata_and_names_its_face(run: runs.Run) -> None:
    seen: list[EditRequest] = []

    def look(request: EditRequest) -> EditOutcome:
        seen.append(request)
        return Edited(request.picture or b"")

    call(run, Scripted(look))
    [request] = seen
    assert request.picture is not None and request.picture.startswith(b"\x89PNG")
    assert b"eXIf" not in request.picture and b"iCCP" not in request.picture
    assert (request.width, request.height) == (720, 960)
    assert request.face_box is not None and request.original_name == "images/id01_base.jpg"


def test_a_group_that_nobody_declares_is_refused_before_any_call(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    text = PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv")
    plan.write_text(text + "groups: [gendr]\n")
    with pytest.raises(LikenessError, match="no portrait declares 'gendr'; did you mean 'gender'"):
        runs.begin(load_plan(plan), tmp_path / "out", resume=False)
    assert not (tmp_path / "out").exists()


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(manifest=REPO / "samples" / "portraits" / "manifest.csv"))
    with pytest.raises(LikenessError, match="holds no run to resume"):
        runs.begin(load_plan(plan), tmp_path / "out", resume=True)


def test_a_program_named_in_a_plan_runs_in_the_plans_folder(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    manifest = REPO / "samples" / "portraits" / "manifest.csv"
    tool = f"{{id: command, name: t, settings: {{argv: [{sys.executable}, t.py, '{{input}}', '{{output}}']}}}}"
    text = PLAN.format(manifest=manifest).replace("{id: identity, name: tool}", tool)
    (tmp_path / "t.py").write_text("import shutil, sys; shutil.copy(*sys.argv[1:])")
    plan.write_text(text)
    loaded = load_plan(plan)
    adapter = runs.build_tool(loaded, loaded.plan.tools[0])
    png = encode_png(np.zeros((32, 32, 3), np.uint8))
    answer = adapter.edit(EditRequest("i", Task.RETOUCH, png, width=32, height=32))
    assert isinstance(answer, Edited) and answer.picture == png
