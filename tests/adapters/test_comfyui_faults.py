"""How a job of ComfyUI goes wrong, and what the audit is told. Each test names what of server.py or
execution.py of Comfy-Org/ComfyUI it holds to."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from adapters.codec import write_png
from adapters.comfyui import ComfySettings, ComfyTool
from adapters.web_ui.comfyui_graph import load_graph
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer

PIXELS = np.random.default_rng(3).integers(20, 236, (96, 72, 3)).astype(np.uint8)
PICTURE = write_png(PIXELS)
MASK = Mask(np.full((96, 72), 255, dtype=np.uint8), MaskKind.FACE)
REQUEST = EditRequest("item-1", Task.INPAINT_FACE, PICTURE, width=72, height=96, seed=42, mask=MASK)
KEY = "canary-token-7391"
Make = Callable[..., ComfyTool]


@pytest.fixture
def server(fake: Callable[..., FakeServer]) -> FakeServer:
    return fake("comfyui", key=KEY)


@pytest.fixture
def graph(samples_dir: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((samples_dir / "comfyui_inpaint.json").read_text())
    return read


@pytest.fixture
def make(server: FakeServer, graph: dict[str, Any], tmp_path: Path) -> Iterator[Make]:
    """``make()`` builds the tool with the graph as it is by then; nobody really waits."""
    made: list[ComfyTool] = []

    def tool(**settings: Any) -> ComfyTool:
        file = tmp_path / "graph.json"
        file.write_text(json.dumps(graph))
        given = {"base_url": server.url, "key": SecretStr(KEY), "graph": str(file)} | settings
        checked = ComfySettings.model_validate(given)
        made.append(ComfyTool(checked, load_graph(str(file), {}), lambda _: None))
        return made[-1]

    yield tool
    for one in made:
        one.close()


def failed(outcome: EditOutcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def paths(server: FakeServer) -> list[str]:
    return [f"{s.method} {s.path}" for s in server.seen]


def test_a_checkpoint_that_is_not_there_is_named_with_its_node_and_stops_the_run(
    make: Make, graph: dict[str, Any]
) -> None:
    # execution.py, validate_inputs: value_not_in_list
    graph["1"]["inputs"]["ckpt_name"] = "dreamshaper_8.safetensors"
    outcome = failed(make().edit(REQUEST))
    assert "node 1 (CheckpointLoaderSimple): Value not in list" in outcome.reason
    assert "'dreamshaper_8.safetensors' not in" in outcome.reason
    assert outcome.meta["stop"] is True
    assert not outcome.retryable


def test_a_node_that_is_not_installed_is_named_and_stops_the_run(
    make: Make, graph: dict[str, Any]
) -> None:
    # execution.py, validate_prompt: missing_node_type, with no node_errors
    graph["10"] = {"class_type": "FaceDetailer", "inputs": {}, "_meta": {"title": "Face Detailer"}}
    outcome = failed(make().edit(REQUEST))
    assert "Node 'Face Detailer' not found" in outcome.reason
    assert outcome.meta["stop"] is True


def test_a_picture_that_the_server_lost_fails_its_item_alone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = make()
    monkeypatch.setattr(tool, "_upload", lambda *_: "likeness/gone.png")
    outcome = failed(tool.edit(REQUEST))
    assert "Invalid image file: likeness/gone.png" in outcome.reason
    assert "stop" not in outcome.meta


def test_an_output_that_is_left_out_of_a_queued_graph_is_a_failure(
    make: Make, graph: dict[str, Any], server: FakeServer
) -> None:
    # execution.py, validate_prompt: with another good output the bad one is ignored under a 200
    graph["20"] = {"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}}
    graph["7"]["inputs"]["sampler_name"] = "no such sampler"
    outcome = failed(make().edit(REQUEST))
    assert "node 7 (KSampler)" in outcome.reason
    assert outcome.meta["stop"] is True
    assert "GET /view" not in paths(server)


def test_a_node_that_breaks_is_named_with_its_exception(make: Make, server: FakeServer) -> None:
    # execution.py, handle_execution_error
    server.next("broken")
    outcome = failed(make().edit(REQUEST))
    assert outcome.reason.startswith("node 7 (KSampler) broke: RuntimeError: mat1 and mat2 shapes")
    assert not outcome.retryable
    assert "current_inputs" not in str(outcome.meta)


def test_out_of_memory_may_pass(make: Make, server: FakeServer) -> None:
    server.next("oom")
    outcome = failed(make().edit(REQUEST))
    assert "torch.OutOfMemoryError" in outcome.reason
    assert outcome.retryable


def test_a_job_that_somebody_stopped_is_not_a_result(make: Make, server: FakeServer) -> None:
    server.next("interrupted")
    outcome = failed(make().edit(REQUEST))
    assert outcome.reason == "the job was stopped on the server, at node 7 (KSampler)"
    assert outcome.retryable


def test_a_job_that_a_restart_forgot_is_not_waited_for(make: Make, server: FakeServer) -> None:
    # server.py: {} of an unknown job and of one at work are the same; only the queue tells them apart
    server.next("lost")
    outcome = failed(make().edit(REQUEST))
    assert "restarted" in outcome.reason
    assert outcome.retryable
    assert outcome.meta["maybe_billed"] is True
    assert paths(server).count("GET /queue") == 1


def test_a_job_past_its_time_is_stopped_by_name(make: Make, server: FakeServer) -> None:
    server.next("stuck")
    outcome = failed(make(total_s=30).edit(REQUEST))
    assert outcome.reason == "not done after 30 s; called off"
    assert outcome.meta["maybe_billed"] is True
    job = outcome.meta["request_id"]
    assert server.seen[-1].path == "/interrupt"
    assert server.seen[-1].json() == {"prompt_id": job}
    assert {"delete": [job]} in [s.json() for s in server.seen if s.method == "POST"]


def test_a_job_that_waits_behind_others_is_taken_out_and_theirs_goes_on(
    make: Make, server: FakeServer
) -> None:
    # older servers stop whatever runs, whoever's it is
    server.next("waiting")
    failed(make(total_s=30).edit(REQUEST))
    assert "POST /queue" in paths(server)
    assert "POST /interrupt" not in paths(server)


def test_a_poll_that_meets_an_overloaded_proxy_does_not_throw_the_job_away(
    make: Make, server: FakeServer
) -> None:
    server.next("history_503")
    assert isinstance(make().edit(REQUEST), Edited)
    assert paths(server).count("POST /prompt") == 1


def test_a_result_that_breaks_off_is_fetched_again_and_not_made_again(
    make: Make, server: FakeServer
) -> None:
    server.next("view_truncated")
    assert isinstance(make().edit(REQUEST), Edited)
    assert paths(server).count("GET /view") == 2
    assert paths(server).count("POST /prompt") == 1


@pytest.mark.parametrize(
    ("behaviour", "word", "retryable"),
    [
        ("no_output", "without a picture at node 9 (SaveImage)", False),
        ("gone", "gone from the server", True),
        ("black", "half-precision overflow", False),
        ("view_html", "text/html", False),
        ("view_empty", "empty", False),
        ("html", "names no job (text/html)", False),
        ("empty", "names no job", False),
        ("truncated", "broke off", True),
        ("503", "HTTP 503", True),
        ("429", "HTTP 429", True),
    ],
)
def test_an_end_without_a_picture_says_what_came(
    make: Make, server: FakeServer, behaviour: str, word: str, retryable: bool
) -> None:
    server.next(behaviour)
    outcome = failed(make().edit(REQUEST))
    assert word in outcome.reason
    assert outcome.retryable is retryable
    assert "stop" not in outcome.meta


def test_neither_token_nor_face_comes_back_in_an_error_that_repeats_them(
    make: Make, server: FakeServer
) -> None:
    server.next("echo")
    tool = make()
    outcome = failed(tool.edit(REQUEST))
    told = outcome.reason + json.dumps(dict(outcome.meta))
    assert "node 7 (KSampler) broke" in told
    assert not [secret for secret in (KEY, PICTURE.hex()[:60]) if secret in told]
    assert KEY not in repr(tool._settings)


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("plain-token", "Bearer plain-token"),
        ("anna:word", f"Basic {base64.b64encode(b'anna:word').decode()}"),
    ],
)
def test_a_key_is_for_the_proxy_in_front(
    fake: Callable[..., FakeServer], make: Make, key: str, header: str
) -> None:
    server = fake("comfyui", key="")
    assert isinstance(make(base_url=server.url, key=SecretStr(key)).edit(REQUEST), Edited)
    assert {s.headers["authorization"] for s in server.seen} == {header}


def test_a_wrong_key_stops_the_run_before_a_face_is_sent(make: Make, server: FakeServer) -> None:
    outcome = failed(make(key=SecretStr("wrong-token")).edit(REQUEST))
    assert "401" in outcome.reason
    assert outcome.meta["stop"] is True
    assert paths(server) == ["GET /system_stats"]


def test_a_closed_tool_says_so(make: Make) -> None:
    tool = make()
    tool.close()
    assert failed(tool.edit(REQUEST)).reason == "the tool was closed"
