"""One picture through one tool: the audit's own request, one call, and what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import cv2
import numpy as np
import pytest

import adapters.contract
from adapters.codec import read_rgb, write_png
from adapters.contract import ToolSpec
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.plan import ToolChoice
from domain.sizing import SizeRule
from domain.tools import Price
from preprocess.decode import encode_jpeg
from service import audit, calling, runs, tool_check
from service.fake_servers.contract import start
from service.measuring import Instrument
from service.plans import load_plan
from service.tool_check import Answer, Ready

REPO = Path(__file__).resolve().parents[2]
SPEC = ToolSpec(
    id="scripted", name="scripted", tasks=(Task.RETOUCH, Task.INPAINT_BACKGROUND),
    size=SizeRule(multiple=64, max_side=512), mask_support="advisory",
)  # fmt: skip
Script = Callable[[EditRequest], EditOutcome]


class Scripted:
    """A tool that answers as it is told, and keeps what it was asked."""

    model = "scripted 1"

    def __init__(self, spec: ToolSpec, script: Script) -> None:
        self.spec, self.script = spec, script
        self.seen: list[EditRequest] = []
        self.closed = 0

    def edit(self, request: EditRequest) -> EditOutcome:
        self.seen.append(request)
        return self.script(request)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scripted]]:
    """Puts a scripted tool among the known ones."""
    real = adapters.contract.discover()

    def make(script: Script, spec: ToolSpec = SPEC) -> Scripted:
        made = Scripted(spec, script)
        module = SimpleNamespace(SPEC=spec, build=lambda settings: made)
        monkeypatch.setattr(
            adapters.contract, "discover", lambda: real | {spec.id: (spec, cast(Any, module))}
        )
        return made

    yield make


def check(task: Task | None = None, name: str = "scripted", **settings: Any) -> Answer:
    choice = ToolChoice(id=name, settings=settings)
    loaded = tool_check.plan_of_one(choice)
    with tool_check.ready(loaded, choice, tool_check.sample_picture(), task) as one:
        return tool_check.call(one)


def with_inside_and_outside(request: EditRequest) -> EditOutcome:
    """Repaints the mask and, against the rules, the top quarter of the protected pixels."""
    assert request.mask is not None
    pixels = read_rgb(request.picture).copy()
    pixels[request.mask.values > 0] = 0
    rows = np.flatnonzero((request.mask.values == 0).any(axis=1))
    protected = request.mask.values == 0
    protected[rows[len(rows) // 4] :] = False
    pixels[protected] = 255 - pixels[protected]
    return Edited(write_png(pixels))


def test_the_request_is_the_one_an_audit_would_build(
    tool: Callable[..., Scripted], tmp_path: Path
) -> None:
    scripted = tool(lambda r: Edited(r.picture or b""))
    check(Task.INPAINT_BACKGROUND)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: the same\ncontrols: false\ntasks: [inpaint_background]\n"
        "tools: [{id: scripted}]\n"
        f"portraits: {{manifest: {REPO}/samples/portraits/manifest.csv, where: "
        "{subject_id: [id02], varied_attribute: [none]}}\n"
    )
    run = runs.begin(load_plan(plan), tmp_path / "out", resume=False)
    instrument = Instrument()
    run.ledger.add_portraits([audit.inspect(instrument, *audit.unseen(run)[0])])
    instrument.close()
    audit.plan_items(run)
    wanted, _ = calling.prepare(run, run.ledger.items()[0], run.ledger.portraits()[0])
    run.ledger.close()
    (sent,) = scripted.seen
    assert sent.picture == wanted.picture
    assert (sent.width, sent.height) == (wanted.width, wanted.height) == (384, 512)
    assert sent.face_box == wanted.face_box and sent.task == wanted.task
    assert sent.mask is not None and wanted.mask is not None
    assert np.array_equal(sent.mask.values, wanted.mask.values)


def test_what_the_mask_did_is_told_inside_and_outside(tool: Callable[..., Scripted]) -> None:
    tool(with_inside_and_outside)
    answer = check(Task.INPAINT_BACKGROUND)
    assert answer.outcome == "edited" and answer.unchanged is False
    assert answer.inside_changed is not None and answer.inside_changed > 0.95
    assert answer.outside_changed is not None and 0.05 < answer.outside_changed < 0.5
    assert answer.outside_drift is not None and answer.outside_drift > 1


def test_a_picture_that_comes_back_unchanged_is_told(tool: Callable[..., Scripted]) -> None:
    tool(lambda r: Edited(write_png(read_rgb(r.picture))))
    answer = check()
    assert answer.unchanged is True and answer.inside_changed == 0.0
    assert answer.flrr == 100.0 and answer.face == "measured"


def test_another_size_is_told_and_not_compared(tool: Callable[..., Scripted]) -> None:
    def half(request: EditRequest) -> EditOutcome:
        pixels = read_rgb(request.picture)
        return Edited(encode_jpeg(cv2.resize(pixels, None, fx=0.5, fy=0.5), 90))  # type: ignore[arg-type]

    tool(half)
    answer = check()
    assert answer.size == (192, 256) and answer.media_type == "image/jpeg"
    assert answer.not_compared == "the answer is 192x256, not 384x512"
    assert answer.inside_changed is None


def test_an_answer_that_is_no_picture_is_told_with_its_reason(
    tool: Callable[..., Scripted],
) -> None:
    tool(lambda r: Edited(b"<html>busy</html>"))
    answer = check()
    assert answer.outcome == "edited" and answer.unreadable
    assert answer.size is None and answer.unchanged is None


def test_a_refusal_keeps_stage_code_and_text_and_its_facts(tool: Callable[..., Scripted]) -> None:
    meta = {"request_id": "req_1", "model": "m-2", "clock_skew_s": -42.0, "http_status": 400}
    tool(lambda r: Refused("input", "moderation_blocked", "no faces", meta))
    answer = check()
    assert (answer.outcome, answer.stage, answer.code, answer.text) == (
        "refused", "input", "moderation_blocked", "no faces",
    )  # fmt: skip
    assert answer.model == "m-2" and answer.meta == meta and answer.picture is None


def test_a_fault_is_one_call_and_no_more(tool: Callable[..., Scripted]) -> None:
    scripted = tool(lambda r: Failed("busy", retryable=True, retry_after=3.0))
    answer = check()
    assert len(scripted.seen) == 1 and scripted.closed >= 1
    assert (answer.outcome, answer.text) == ("failed", "busy")
    assert answer.retryable is True and answer.retry_after == 3.0


def test_a_tool_that_breaks_its_contract_is_a_failure_not_a_fault_of_ours(
    tool: Callable[..., Scripted],
) -> None:
    def raises(request: EditRequest) -> EditOutcome:
        raise RuntimeError("boom")

    tool(raises)
    assert "RuntimeError: boom" in check().text


def test_no_picture_and_no_folder_stay_behind(
    tool: Callable[..., Scripted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stored: list[str] = []

    def look(request: EditRequest) -> EditOutcome:
        stored.extend(p.name for p in tmp_path.rglob("*") if p.is_file())
        return Edited(request.picture or b"")

    tool(look)
    check()
    assert {"manifest.csv", "ledger.sqlite3"} <= set(stored)
    assert {n.partition("-")[0] for n in stored} <= {"manifest.csv", "ledger.sqlite3"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "task", "said"),
    [
        ("scriptet", None, "unknown tool 'scriptet'; did you mean 'scripted'?"),
        ("scripted", Task.RESTYLE, "does not do 'restyle'; it does: retouch, inpaint_background"),
    ],
)
def test_what_cannot_be_tried_is_said_in_one_line(
    tool: Callable[..., Scripted], name: str, task: Task | None, said: str
) -> None:
    tool(lambda r: Edited(b""))
    with pytest.raises(LikenessError) as error:
        check(task, name)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert "tool check" not in str(error.value)


def test_a_picture_without_a_face_is_not_sent(
    tool: Callable[..., Scripted], tmp_path: Path
) -> None:
    scripted = tool(lambda r: Edited(b""))
    blank = tmp_path / "wall.png"
    blank.write_bytes(write_png(np.full((300, 300, 3), 127, np.uint8)))
    choice = ToolChoice(id="scripted")
    with (
        pytest.raises(LikenessError, match=r"wall\.png: shows no face to audit"),
        tool_check.ready(tool_check.plan_of_one(choice), choice, blank),
    ):
        pass
    assert scripted.seen == []


def test_no_sample_portrait_is_said_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tool_check, "SAMPLES", tmp_path)
    with pytest.raises(LikenessError, match="--picture FILE"):
        tool_check.sample_picture()


def test_a_plans_own_portrait_keeps_its_name_for_tools_that_look_results_up(
    tool: Callable[..., Scripted], tmp_path: Path
) -> None:
    scripted = tool(lambda r: Edited(r.picture or b""))
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: p\ntools: [{id: scripted, name: mine, prompt: soften}]\n"
        f"portraits: {{manifest: {REPO}/samples/portraits/manifest.csv}}\n"
    )
    loaded = load_plan(plan)
    with pytest.raises(LikenessError, match="no tool is called 'mien'; did you mean 'mine'"):
        tool_check.choice_in(loaded, "mien")
    choice = tool_check.choice_in(loaded, "mine")
    with tool_check.ready(loaded, choice, tool_check.sample_picture()) as one:
        tool_check.call(one)
    (sent,) = scripted.seen
    assert sent.original_name == "images/id02_base.jpg" and sent.prompt == "soften"
    assert sent.attributes["gender"] == "feminine-presenting"


def test_a_hosted_tool_is_asked_with_its_key_and_the_key_is_told_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with start("openai") as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        answer = check(Task.INPAINT_FACE, "openai_images", base_url=server.url)
        server.next("moderation_blocked")
        refused = check(Task.INPAINT_FACE, "openai_images", base_url=server.url)
        key, calls = server.key, len(server.seen)
    assert calls == 2
    assert answer.outcome == "edited" and answer.meta["request_id"]
    assert answer.outside_changed is not None
    assert (refused.outcome, refused.code) == ("refused", "moderation_blocked")
    assert key not in repr(answer.meta) and key not in repr(refused)


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LikenessError, match="environment variable OPENAI_API_KEY is not set"):
        check(name="openai_images")


@pytest.mark.parametrize(
    ("price", "remote", "known"),
    [(Price(0.04, source="list"), True, 0.04), (None, True, None), (None, False, 0.0)],
)
def test_the_price_is_known_before_anything_is_sent(
    tool: Callable[..., Scripted], price: Price | None, remote: bool, known: float | None
) -> None:
    spec = ToolSpec(id="scripted", name="s", tasks=(Task.RETOUCH,), remote=remote, price=price)
    scripted = tool(lambda r: Edited(b""), spec)
    choice = ToolChoice(id="scripted")
    one: Ready
    with tool_check.ready(
        tool_check.plan_of_one(choice), choice, tool_check.sample_picture()
    ) as one:
        assert (one.price.per_call if one.price else None) == known
        assert one.destination.remote is remote
        assert scripted.seen == []


def test_nothing_a_tool_says_can_hold_the_key(
    tool: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "canary-key-7f3a9c"
    monkeypatch.setenv("SCRIPTED_KEY", canary)
    spec = ToolSpec(id="scripted", name="s", tasks=(Task.RETOUCH,), key_env="SCRIPTED_KEY")
    meta: Mapping[str, Any] = {"note": f"Bearer {canary}", "sent": {"auth": [canary]}}
    tool(lambda r: Refused("policy", canary, f"bad key {canary}", meta), spec)
    assert canary not in repr(check())
