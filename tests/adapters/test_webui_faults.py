"""How a Stable Diffusion web UI fails, and what the audit is told. Each test names what of modules/api/api.py
or modules/processing.py of AUTOMATIC1111/stable-diffusion-webui it holds to."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from adapters.codec import write_png
from adapters.webui import WebuiTool, build
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer

Fake = Callable[..., FakeServer]
WIDTH, HEIGHT = 72, 96
PIXELS = np.random.default_rng(3).integers(20, 236, (HEIGHT, WIDTH, 3)).astype(np.uint8)
PICTURE = write_png(PIXELS)
MASK = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
MASK[24:72, 16:56] = 255
PASSWORD = "canary-password-7391"


def request(task: Task = Task.INPAINT_FACE, **changes: Any) -> EditRequest:
    made = EditRequest(
        "item-1", task, PICTURE, width=WIDTH, height=HEIGHT, seed=42, mask=Mask(MASK, MaskKind.FACE)
    )
    return replace(made, **changes)


@pytest.fixture
def server(fake: Fake) -> FakeServer:
    return fake("webui", key=PASSWORD, slow_s=3.0)


@pytest.fixture
def tool(server: FakeServer) -> Iterator[WebuiTool]:
    made = ask(server)
    yield made
    made.close()


def ask(server: FakeServer, **settings: Any) -> WebuiTool:
    given = {"base_url": server.url, "user": "anna", "key": SecretStr(PASSWORD)}
    made = build(given | settings)
    assert isinstance(made, WebuiTool)
    return made


def failed(outcome: EditOutcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def edited(outcome: EditOutcome) -> Edited:
    assert isinstance(outcome, Edited), outcome
    return outcome


def test_a_black_picture_behind_a_200_is_a_failure(tool: WebuiTool, server: FakeServer) -> None:
    server.next("black")
    outcome = failed(tool.edit(request()))
    assert "black" in outcome.reason
    assert "half-precision" in outcome.reason
    assert not outcome.retryable


def test_a_half_precision_nan_is_named_and_not_asked_for_again(
    tool: WebuiTool, server: FakeServer
) -> None:
    server.next("nans")
    outcome = failed(tool.edit(request()))
    assert "A tensor with all NaNs was produced in VAE" in outcome.reason
    assert not outcome.retryable


def test_a_picture_that_somebody_interrupted_is_not_taken_for_a_result(
    tool: WebuiTool, server: FakeServer
) -> None:
    # shared_state.py keeps `interrupted` until the next job begins; the picture comes with a 200
    server.next("interrupted")
    outcome = failed(tool.edit(request()))
    assert "Interrupt" in outcome.reason
    assert outcome.retryable
    assert isinstance(tool.edit(request()), Edited)


def test_an_unreadable_picture_fails_its_item_alone(tool: WebuiTool) -> None:
    outcome = failed(tool.edit(request(picture=b"\x89PNG\r\n\x1a\nnot really")))
    assert outcome.reason == "HTTP 500: Invalid encoded image"
    assert not outcome.retryable
    assert "stop" not in outcome.meta


def test_a_sampler_that_is_not_there_stops_the_run(server: FakeServer) -> None:
    tool = ask(server, sampler="Heunish")
    outcome = failed(tool.edit(request()))
    assert "Sampler not found" in outcome.reason
    assert outcome.meta["stop"] is True
    tool.close()


def test_a_field_of_the_wrong_type_stops_the_run_without_repeating_the_picture(
    tool: WebuiTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FastAPI's 422 repeats the value in `input`
    body = tool._body(request()) | {"mask": [base64.b64encode(PICTURE).decode()]}
    monkeypatch.setattr(tool, "_body", lambda _: body)
    outcome = failed(tool.edit(request()))
    assert outcome.reason == "HTTP 422: body.mask: Input has the wrong type"
    assert outcome.meta["stop"] is True


def test_a_web_ui_without_its_api_is_told_how_to_start(server: FakeServer) -> None:
    tool = ask(server, base_url=f"{server.url}/elsewhere")
    outcome = failed(tool.edit(request()))
    assert "--api" in outcome.reason
    assert outcome.meta["stop"] is True
    tool.close()


def test_out_of_memory_may_pass(tool: WebuiTool, server: FakeServer) -> None:
    server.next("oom")
    outcome = failed(tool.edit(request()))
    assert "OutOfMemoryError: CUDA out of memory" in outcome.reason
    assert outcome.retryable


@pytest.mark.parametrize(
    ("behaviour", "word", "retryable"),
    [
        ("no_images", "no picture", False),
        ("bad_base64", "base64", False),
        ("text", "no picture", False),
        ("html", "text/html", False),
        ("empty", "empty", False),
        ("truncated", "broke off", True),
        ("503", "503", True),
    ],
)
def test_an_answer_without_a_picture_says_what_came(
    tool: WebuiTool, server: FakeServer, behaviour: str, word: str, retryable: bool
) -> None:
    server.next(behaviour)
    outcome = failed(tool.edit(request()))
    assert word in outcome.reason
    assert outcome.retryable is retryable


def test_work_that_takes_too_long_is_interrupted_on_the_server(server: FakeServer) -> None:
    tool = ask(server, total_s=0.5)
    server.next("slow")
    outcome = failed(tool.edit(request()))
    assert outcome.retryable
    assert outcome.meta["maybe_billed"] is True
    assert (server.seen[-1].method, server.seen[-1].path) == ("POST", "/sdapi/v1/interrupt")
    tool.close()


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({"user": "anna", "key": "secret-word"}, "anna:secret-word"),
        ({"user": "", "key": "anna:secret-word"}, "anna:secret-word"),
        ({"user": "anna", "key": "anna:secret-word"}, "anna:secret-word"),
    ],
)
def test_the_login_is_basic_whichever_way_it_is_given(
    fake: Fake, settings: dict[str, str], header: str
) -> None:
    server = fake("webui", key="anna:secret-word")
    tool = ask(server, user=settings["user"], key=SecretStr(settings["key"]))
    edited(tool.edit(request()))
    expected = f"Basic {base64.b64encode(header.encode()).decode()}"
    assert {s.headers["authorization"] for s in server.seen} == {expected}
    tool.close()


def test_a_web_ui_without_a_login_gets_none(fake: Fake) -> None:
    server = fake("webui", key="")
    tool = build({"base_url": server.url})
    edited(tool.edit(request()))
    assert not any("authorization" in s.headers for s in server.seen)
    tool.close()


def test_a_password_without_a_user_is_a_mistake_told_without_it() -> None:
    with pytest.raises(LikenessError, match="'user'") as raised:
        build({"key": SecretStr(PASSWORD)})
    assert PASSWORD not in str(raised.value)


def test_a_wrong_password_stops_the_run(server: FakeServer) -> None:
    tool = ask(server, key=SecretStr("wrong-password-1"))
    outcome = failed(tool.edit(request()))
    assert "Incorrect username or password" in outcome.reason
    assert outcome.meta["stop"] is True
    tool.close()


def test_neither_password_nor_face_comes_back_in_an_error_that_repeats_them(
    tool: WebuiTool, server: FakeServer
) -> None:
    server.next("echo")
    outcome = failed(tool.edit(request()))
    told = outcome.reason + json.dumps(dict(outcome.meta))
    login = base64.b64encode(f"anna:{PASSWORD}".encode()).decode()
    face = base64.b64encode(PICTURE).decode()
    assert not [s for s in (PASSWORD, login, face[:60], face[100:160]) if s in told]
    assert PASSWORD not in repr(tool._settings)


def test_a_closed_tool_says_so(tool: WebuiTool) -> None:
    tool.close()
    assert failed(tool.edit(request())).reason == "the tool was closed"
