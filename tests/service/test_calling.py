"""A tool is called, retried only where that is right, and every call is on record."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from adapters.contract import ToolSpec
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from preprocess.decode import encode_png, open_picture
from service import audit, calling, runs, secrets
from service.calling import Called
from service.measuring import Instrument
from service.pacing import Pacing
from service.plans import load_plan
from service.store.ledger import DONE, EDITED
from service.tool_calls import UNCHANGED
from tests.service.scripted import SPEC, Scripted, Time

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
    assert item["warnings"][-1] == "1", "what the adapter remarked is told with the item"


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


# Paid and remote tools ------------------------------------------------------------------------


def test_an_item_is_asked_for_as_often_as_the_plan_allows(run: runs.Run) -> None:
    tool = Scripted(Failed("busy", retryable=True))
    _, item, waits = call(run, tool, max_attempts=5)
    assert tool.calls == 5 and waits == [1.0, 2.0, 4.0, 8.0]
    assert item["outcome"] == "failed" and len(run.ledger.calls()) == 5


def test_a_wait_of_no_time_is_a_wait_that_was_named(run: runs.Run) -> None:
    fault = Failed("again", retryable=True, retry_after=0.0)
    assert call(run, Scripted(fault, Edited(b"x")))[2] == []


def test_a_wait_that_is_too_long_fails_the_item_at_once_and_says_so(run: runs.Run) -> None:
    tool = Scripted(Failed("HTTP 429: quota", retryable=True, retry_after=3600.0))
    _, item, waits = call(run, tool, max_wait_s=120.0)
    assert tool.calls == 1 and waits == []
    assert item["reason"] == (
        "the tool asks to wait 3600 s, more than max_wait_s 120: HTTP 429: quota"
    )


def test_a_stop_is_not_retried_even_where_the_failure_could_be(run: runs.Run) -> None:
    tool = Scripted(Failed("no credit", retryable=True, meta={"stop": True}))
    _, item, _ = call(run, tool)
    assert tool.calls == 1 and item["reason"] == "no credit"


def test_every_call_keeps_its_facts(run: runs.Run) -> None:
    busy = Failed("HTTP 503", retryable=True, meta={"http_status": 503, "request_id": "r1"})
    facts = {"model": "served 2026-05", "request_id": "r2", "cost": {"amount": 0.04}, "seed": 7}
    _, item, _ = call(run, Scripted(busy, Edited(b"x", facts)))
    first, second = run.ledger.calls()
    assert (first["model"], first["request_id"]) == ("scripted 1", "r1")
    assert first["meta"]["http_status"] == 503 and first["reason"] == "HTTP 503"
    assert (second["model"], second["request_id"]) == ("served 2026-05", "r2")
    assert second["meta"] == item["meta"] == facts
    assert item["model"] == "served 2026-05", "the server's word comes before the adapter's"
    assert first["seconds"] >= 0 and second["seconds"] == item["seconds"]
    assert [c["kind"] for c in (first, second)] == ["item", "item"]


def test_facts_that_are_no_json_are_kept_as_words(run: runs.Run) -> None:
    odd = {"path": Path("a"), "nan": float("nan"), "bytes": b"\x89PNG", 3: (1, 2)}
    _, item, _ = call(run, Scripted(Edited(b"x", odd)))  # type: ignore[arg-type]
    assert item["meta"] == {"path": "a", "nan": "nan", "bytes": "[data]", "3": [1, 2]}


def test_an_answer_that_is_none_of_the_three_fails_its_item(run: runs.Run) -> None:
    _, item, _ = call(run, Scripted(lambda _request: None))  # type: ignore[arg-type, return-value]
    assert item["reason"] == "the tool's adapter answered with NoneType"


@pytest.mark.parametrize(
    "answer",
    [
        Failed("bad key sk-canary-12345", meta={"sent": {"x-key": "sk-canary-12345"}}),
        Refused("input", "sk-canary-12345", "no, sk-canary-12345", {"sk-canary-12345": 1}),
        Edited(b"\x89PNG tEXt sk-canary-12345"),
        Edited(b"x", {"model": "sk-canary-12345", "request_id": "sk-canary-12345"}),
        Failed("busy sk-canary-12345", retryable=True),
    ],
    ids=["failure", "refusal", "picture", "facts", "retries"],
)
def test_no_key_reaches_the_ledger_or_the_pictures(
    run: runs.Run, monkeypatch: pytest.MonkeyPatch, answer: EditOutcome
) -> None:
    monkeypatch.setattr(secrets, "_known", set())
    secrets.remember("sk-canary-12345")
    call(run, Scripted(answer))
    written = [f for f in run.out.rglob("*") if f.is_file()]
    assert any(f.name == "ledger.sqlite3-wal" for f in written)
    assert [f.name for f in written if b"sk-canary" in f.read_bytes()] == []


def test_a_picture_that_echoes_the_key_is_a_failure_that_may_be_billed(
    run: runs.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_known", {"sk-canary-12345"})
    _, item, _ = call(run, Scripted(Edited(b"\x89PNG sk-canary-12345", {"request_id": "r"})))
    assert item["outcome"] == "failed" and "holds the key" in item["reason"]
    assert item["meta"] == {"request_id": "r", "maybe_billed": True}


def test_retries_cut_short_by_another_items_stop_say_both(run: runs.Run) -> None:
    time = Time()
    pacing = Pacing(wait=time.wait, clock=time.clock)
    pacing_stop = Failed("HTTP 402", meta={"stop": True})

    def answer(request: EditRequest) -> EditOutcome:
        pacing.heed(pacing_stop)  # as another thread of this tool would
        return Failed("busy", retryable=True)

    [item], [portrait] = run.ledger.items(), run.ledger.portraits()
    assert calling.call_tool(run, Scripted(answer), item, portrait, pacing) is Called.FINISHED
    assert run.ledger.items()[0]["reason"] == "busy; not sent: HTTP 402"


# The answer is what was sent ------------------------------------------------------------------


def measured(run: runs.Run, tool: Scripted, tool_spec: ToolSpec) -> dict[str, Any]:
    call(run, tool)
    object.__setattr__(run, "specs", {"tool": tool_spec})
    [item] = run.ledger.items()
    instrument = Instrument()
    audit.record(run, item["item_id"], audit.measure_item(instrument, run.blobs, item))
    instrument.close()
    return dict(run.ledger.items()[0])


def test_the_picture_that_was_sent_is_measured_as_usual_and_said_to_be_unchanged(
    run: runs.Run,
) -> None:
    item = measured(run, Scripted(lambda r: Edited(r.picture or b"")), SPEC)
    assert item["outcome"] == "measured" and item["warnings"][-1] == UNCHANGED


def test_the_same_pixels_in_another_file_are_unchanged_too(run: runs.Run) -> None:
    def saved_again(request: EditRequest) -> EditOutcome:
        pixels = open_picture(request.picture or b"").pixels
        sink = io.BytesIO()
        Image.fromarray(pixels).save(sink, "PNG", compress_level=9)
        return Edited(sink.getvalue())

    item = measured(run, Scripted(saved_again), SPEC)
    assert item["edited"] != item["original"]
    assert item["warnings"][-1] == UNCHANGED


def test_a_control_that_is_meant_to_change_nothing_is_not_warned_of(run: runs.Run) -> None:
    tool = Scripted(lambda r: Edited(r.picture or b""))
    item = measured(run, tool, replace(SPEC, control=True))
    assert item["outcome"] == "measured" and UNCHANGED not in item["warnings"]
