"""Black Forest Labs: submitted, polled where the answer says, fetched at once."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from adapters.bfl import EXAMPLE, Bfl, BflSettings, build
from adapters.codec import write_png
from adapters.guard import read_settings
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer, start

MASK = np.zeros((96, 64), np.uint8)
MASK[50:80, 10:50] = 255
MASK[49, 10:50] = 77
PICTURE = write_png(np.random.default_rng(5).integers(0, 256, (96, 64, 3), dtype=np.uint8))


def ask(task: Task = Task.INPAINT_FACE, **changes: Any) -> EditRequest:
    base: dict[str, Any] = {"width": 64, "height": 96, "seed": 2**31 + 5, "prompt": "a plain wall"}
    mask = Mask(MASK, MaskKind.FACE)
    return EditRequest("one", task, **({"picture": PICTURE, "mask": mask} | base | changes))


class Bench:
    """The tool, its pretended server, and the waits it asked for."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self._open: list[Bfl] = []

    def tool(self, **changes: Any) -> Bfl:
        given = {**EXAMPLE, "base_url": self.server.url, "key": SecretStr(self.server.key)}
        settings = read_settings(BflSettings, given | changes, "bfl")
        self._open.append(Bfl(settings, self.waits.append))
        return self._open[-1]

    def edit(self, behaviour: str, request: EditRequest | None = None, **changes: Any) -> Any:
        self.server.next(behaviour)
        return self.tool(**changes).edit(request or ask())

    def sent(self) -> dict[str, Any]:
        body: dict[str, Any] = next(s for s in self.server.seen if s.method == "POST").json()
        return body

    def paths(self) -> list[str]:
        return [f"{s.method} {s.path}" for s in self.server.seen]

    def close(self) -> None:
        for tool in self._open:
            tool.close()


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with start("bfl") as running:
        yield running


@pytest.fixture
def bench(server: FakeServer) -> Iterator[Bench]:
    server.seen.clear()
    made = Bench(server)
    yield made
    made.close()


# What is sent


def test_the_picture_goes_up_and_the_result_comes_down_byte_for_byte(bench: Bench) -> None:
    outcome = bench.edit("ok")
    assert isinstance(outcome, Edited)
    up = base64.b64decode(bench.sent()["image"], validate=True)
    assert hashlib.sha256(up).digest() == hashlib.sha256(PICTURE).digest()
    assert outcome.picture == bench.server.desk.edit(PICTURE, write_png(MASK))


def test_the_golden_mask_is_black_and_white_and_edits_white(bench: Bench) -> None:
    bench.edit("ok")
    sent = base64.b64decode(bench.sent()["mask"])
    pixels = cv2.imdecode(np.frombuffer(sent, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, MASK)


def test_what_is_asked_for_is_sent_in_full_and_recorded(bench: Bench) -> None:
    outcome = bench.edit("ok", steps=20, guidance=30.5, safety_tolerance=1)
    body = bench.sent()
    told = {name: value for name, value in body.items() if name not in ("image", "mask")}
    assert told == {
        "prompt": "a plain wall",
        "seed": 5,
        "safety_tolerance": 1,
        "output_format": "png",
        "steps": 20,
        "guidance": 30.5,
        "prompt_upsampling": False,
    }
    assert outcome.meta["sent"] == told
    assert bench.server.seen[0].headers["x-key"] == bench.server.key


def test_kontext_takes_no_mask_and_is_asked_for_the_pictures_shape(bench: Bench) -> None:
    tool = bench.tool(model="flux-kontext-pro")
    outcome = tool.edit(ask(Task.RETOUCH, mask=None))
    assert isinstance(outcome, Edited)
    assert bench.sent()["aspect_ratio"] == "2:3"
    assert base64.b64decode(bench.sent()["input_image"]) == PICTURE
    assert not {"mask", "steps", "guidance"} & set(bench.sent())
    assert (tool.spec.mask_support, tool.spec.tasks[0]) == ("none", Task.RETOUCH)


def test_kontext_answers_at_a_size_of_its_own_which_is_noted(bench: Bench) -> None:
    outcome = bench.edit("ok", ask(Task.RETOUCH), model="flux-kontext-max")
    assert outcome.meta["note"].startswith("asked for 64x96, got ")


def test_flux_2_is_asked_for_the_pictures_size(bench: Bench) -> None:
    outcome = bench.edit("ok", ask(Task.RESTYLE, prompt=""), model="flux-2-pro")
    assert isinstance(outcome, Edited)
    assert (bench.sent()["width"], bench.sent()["height"]) == (64, 96)
    assert "watercolour" in bench.sent()["prompt"]
    assert "note" not in outcome.meta


def test_size_ignored_by_the_server_is_noted(bench: Bench) -> None:
    assert bench.edit("other_size").meta["note"] == "asked for 64x96, got 32x48"


# Following


def test_result_urls_die_so_the_poll_that_sees_ready_is_followed_by_the_fetch(
    bench: Bench,
) -> None:
    bench.edit("ok")
    assert bench.paths() == [
        "POST /v1/flux-pro-1.0-fill",
        "GET /v1/get_result",
        "GET /v1/get_result",
        f"GET {bench.server.seen[-1].path}",
    ]
    assert bench.server.seen[-1].path.startswith("/delivery/")
    assert bench.waits == [0.05]


def test_the_signed_address_is_fetched_without_the_key(bench: Bench) -> None:
    bench.edit("ok")
    assert "x-key" not in bench.server.seen[-1].headers
    assert bench.server.seen[-1].query["sig"] == "c2lnbmF0dXJl"


def test_an_expired_signature_is_a_clear_failure_that_may_be_billed(bench: Bench) -> None:
    outcome = bench.edit("expired")
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the result's address has expired (HTTP 403)"
    assert (outcome.retryable, outcome.meta["maybe_billed"]) == (False, True)
    assert outcome.meta["request_id"]
    assert "stop" not in outcome.meta


def on_other_hosts(tool: Bfl, bodies: list[bytes]) -> list[httpx.Request]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(bodies.pop(0)))

    tool._wire._others.close()
    tool._wire._others = httpx.Client(transport=httpx.MockTransport(answer))
    return seen


def test_the_polling_url_is_used_as_given_on_another_region_with_the_key(bench: Bench) -> None:
    tool = bench.tool()
    ready = {"status": "Ready", "result": {"sample": "https://delivery-eu1.bfl.ai/x.png?sig=a"}}
    seen = on_other_hosts(tool, [json.dumps(ready).encode(), PICTURE])
    bench.server.next("region")
    outcome = tool.edit(ask())
    assert isinstance(outcome, Edited)
    assert outcome.picture == PICTURE
    assert [r.url.host for r in seen] == ["api.eu1.bfl.ai", "delivery-eu1.bfl.ai"]
    assert ["x-key" in r.headers for r in seen] == [True, False]


def test_a_polling_url_on_somebody_elses_host_gets_no_key(bench: Bench) -> None:
    tool = bench.tool()
    seen = on_other_hosts(tool, [b'{"status": "Error"}'])
    bench.server.next("foreign")
    assert isinstance(tool.edit(ask()), Failed)
    assert seen[0].url.host == "flux.example.com"
    assert bench.server.key not in str(seen[0].headers.raw)


def test_polls_that_fail_in_passing_do_not_give_up_a_paid_task(bench: Bench) -> None:
    assert isinstance(bench.edit("poll_trouble"), Edited)
    assert len([p for p in bench.paths() if p.startswith("POST")]) == 1


def test_a_task_that_never_ends_fails_when_its_time_is_up(bench: Bench) -> None:
    outcome = bench.edit("stuck", total_s=20)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the task was not finished after 20 s"
    assert outcome.meta["maybe_billed"] is True
    assert sum(bench.waits) <= 20


def test_cost_sizes_seed_and_id_are_kept(bench: Bench) -> None:
    outcome = bench.edit("ok")
    assert outcome.meta["cost"] == {"amount": 0.05, "currency": "USD"}
    assert outcome.meta["returned"]["seed"] == 42
    assert outcome.meta["returned"]["input_mp"] == 0.01
    assert len(outcome.meta["request_id"]) == 32
    assert outcome.meta["model"] == "BFL flux-pro-1.0-fill"


# Refusals and failures


@pytest.mark.parametrize(
    ("behaviour", "stage", "code"),
    [
        ("refuse", "input", "Request Moderated"),
        ("request_moderated", "input", "Request Moderated"),
        ("moderated_at_once", "input", "Request Moderated"),
        ("content_moderated", "output", "Content Moderated"),
    ],
)
def test_request_moderated_is_about_the_input_and_content_moderated_about_the_output(
    bench: Bench, behaviour: str, stage: str, code: str
) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == (stage, code)
    assert outcome.text == "Derivative Works Filter"
    assert "cost" not in outcome.meta  # moderated requests are not charged
    assert outcome.meta["sent"]["safety_tolerance"] == 2


@pytest.mark.parametrize(
    ("behaviour", "told", "again"),
    [
        ("error", "the task ended with Error: error: CUDA error", False),
        ("task_not_found", "the task ended with Task not found", True),
        ("no_sample", "names no picture", False),
        ("no_polling_url", "names no polling_url", False),
        ("web_page", "text/html, no picture", False),
    ],
)
def test_other_ends_are_failures_that_may_be_billed(
    bench: Bench, behaviour: str, told: str, again: bool
) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert outcome.retryable is again
    assert outcome.meta["maybe_billed"] is True


def test_24_tasks_at_once_are_the_limit_and_a_429_is_tried_again(bench: Bench) -> None:
    outcome = bench.edit("too_many")
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "24 active tasks" in outcome.reason
    assert bench.tool().spec.concurrency < 24
    assert bench.tool(model="flux-kontext-max").spec.concurrency < 6


@pytest.mark.parametrize(
    ("behaviour", "changes", "told"),
    [
        ("no_credit", {}, "HTTP 402: Insufficient credits"),
        ("ok", {"key": SecretStr("wrong-key-abcdef")}, "HTTP 403: Not authenticated"),
    ],
)
def test_no_credit_and_a_wrong_key_stop_the_run(
    bench: Bench, behaviour: str, changes: dict[str, Any], told: str
) -> None:
    outcome = bench.edit(behaviour, **changes)
    assert isinstance(outcome, Failed)
    assert outcome.reason == told
    assert outcome.meta["stop"] is True


def test_a_validation_error_names_the_field_and_not_the_picture(bench: Bench) -> None:
    outcome = bench.edit("ok", ask(Task.RESTYLE, width=65), model="flux-2-pro")
    assert isinstance(outcome, Failed)
    assert "body.width: Input should be a multiple of 16" in outcome.reason
    assert not outcome.retryable


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"picture": None}, "no picture"),
        ({"mask": None}, "no mask"),
        ({"mask": Mask(np.zeros((96, 64), np.uint8), MaskKind.FACE)}, "the mask is empty"),
        ({"mask": Mask(np.ones((8, 8), np.uint8), MaskKind.FACE)}, "not of the picture's size"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(bench: Bench, changes: dict[str, Any], told: str) -> None:
    outcome = bench.tool().edit(ask(**changes))
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert bench.server.seen == []


def test_neither_key_nor_face_is_in_any_outcome(bench: Bench) -> None:
    face = base64.b64encode(PICTURE).decode()
    for behaviour in ("ok", "refuse", "error", "expired", "500", "html", "no_credit"):
        outcome = bench.edit(behaviour)
        told = repr((getattr(outcome, "reason", ""), getattr(outcome, "text", "")))
        told += json.dumps(outcome.meta)
        assert bench.server.key not in told
        assert face[:60] not in told


# Settings


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "flux-dev"}, "setting 'model'"),
        ({"steps": 10}, "setting 'steps'"),
        ({"guidance": 1.0}, "setting 'guidance'"),
        ({"safety_tolerance": 7}, "setting 'safety_tolerance'"),
        ({"model": "flux-2-pro", "safety_tolerance": 6}, "goes up to 5"),
        ({"model": "flux-kontext-pro", "steps": 20}, "'flux-kontext-pro' does not know it"),
        ({"poll_hosts": ["*"]}, "'*' is no host"),
        ({"poll_hosts": ["*.ai"]}, "'*.ai' is no host"),
        ({"poll_hosts": ["https://api.bfl.ai"]}, "is no host"),
        ({"saftey_tolerance": 2}, "did you mean 'safety_tolerance'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(LikenessError) as caught:
        build(changes)
    assert str(caught.value).startswith("tool 'bfl': ")
    assert told in str(caught.value)


def test_prices_are_those_of_the_endpoint_with_their_source(bench: Bench) -> None:
    fill = bench.tool().spec.price
    flux_2 = bench.tool(model="flux-2-pro").spec.price
    assert fill is not None
    assert flux_2 is not None
    assert fill.of(1.0) == 0.05
    assert flux_2.of(1.0) == pytest.approx(0.045)  # "1MP I2I"
    assert fill.source.startswith("black-forest-labs/skills")


def test_without_a_key_nothing_is_sent(bench: Bench) -> None:
    outcome = bench.tool(key=None).edit(ask())
    assert isinstance(outcome, Failed)
    assert "BFL_API_KEY" in outcome.reason
    assert bench.server.seen == []


def test_a_closed_tool_says_so(bench: Bench) -> None:
    tool = bench.tool()
    tool.close()
    assert tool.edit(ask()) == Failed("the tool was closed")
