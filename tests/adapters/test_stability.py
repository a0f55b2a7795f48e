"""Stability AI's Stable Image services, against a fake server that speaks their protocol."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from pydantic import SecretStr

from adapters import stability
from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, build
from adapters.hosted.prompts import DEFAULT_PROMPTS
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer

Fake = Callable[..., FakeServer]
WIDTH, HEIGHT = 160, 128
KEY = "sk-canary-0123456789abcdef"
BUILT: list[Adapter] = []


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    while BUILT:
        BUILT.pop().close()


def mask_of(width: int = WIDTH, height: int = HEIGHT) -> Mask:
    values = np.zeros((height, width), dtype=np.uint8)
    values[height // 2 :, : width // 3] = 255
    values[:5, -7:] = 128  # half strength is kept, not rounded
    return Mask(values, MaskKind.FACE)


def request(width: int = WIDTH, height: int = HEIGHT, **changes: Any) -> EditRequest:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x * y) % 251], axis=-1)
    base = EditRequest(
        "a", Task.INPAINT_FACE, write_png(pixels.astype(np.uint8)), width=width, height=height,
        seed=7, prompt="a grey wall", mask=mask_of(width, height),
    )  # fmt: skip
    return dataclasses.replace(base, **changes)


def tool_at(server: FakeServer, **settings: Any) -> Adapter:
    at = {"base_url": server.url, "key": SecretStr(server.key)}
    BUILT.append(build("stability", {**at, **settings}))
    return BUILT[-1]


def scripted(answer: Callable[[httpx.Request], httpx.Response]) -> Adapter:
    """The tool on a wire whose other end is ``answer``."""
    tool: Any = build("stability", {"key": SecretStr(KEY)})
    BUILT.append(tool)

    def unread(asked: httpx.Request) -> httpx.Response:
        reply = answer(asked)
        body = httpx.ByteStream(reply.content)
        return httpx.Response(reply.status_code, headers=reply.headers, stream=body)

    tool._wire.close()
    tool._wire._own = httpx.Client(transport=httpx.MockTransport(unread))
    return BUILT[-1]


# -- what goes up --------------------------------------------------------------------------------


def test_the_mask_edits_where_it_is_white(fake: Fake) -> None:
    server = fake("stability")
    asked = request()
    outcome = tool_at(server).edit(asked)
    assert isinstance(outcome, Edited)
    sent = Image.open(BytesIO(server.seen[0].files["mask"]))
    assert (sent.mode, sent.size) == ("L", (WIDTH, HEIGHT))
    assert asked.mask is not None
    assert np.array_equal(np.asarray(sent), asked.mask.values)
    moved = np.abs(read_rgb(outcome.picture).astype(int) - read_rgb(asked.picture)).max(axis=-1)
    assert moved[asked.mask.values == 0].max() <= 2  # a mask is no promise: a slight drift stays
    assert moved[asked.mask.values == 255].max() > 2


def test_the_mask_is_not_grown_unless_the_plan_says_so(fake: Fake) -> None:
    server = fake("stability")
    outcome = tool_at(server).edit(request())
    assert server.seen[0].fields["grow_mask"] == "0"
    assert outcome.meta["sent"]["grow_mask"] == "0"
    tool_at(server, grow_mask=12).edit(request())
    assert server.seen[1].fields["grow_mask"] == "12"


def test_bytes_go_up_and_come_down_untouched(fake: Fake) -> None:
    server = fake("stability")
    asked = request()
    outcome = tool_at(server).edit(asked)
    assert asked.picture is not None
    assert isinstance(outcome, Edited)
    seen = server.seen[0]
    wanted = hashlib.sha256(asked.picture).hexdigest()
    assert hashlib.sha256(seen.files["image"]).hexdigest() == wanted
    made = server.desk.edit(asked.picture, seen.files["mask"])
    assert hashlib.sha256(outcome.picture).hexdigest() == hashlib.sha256(made).hexdigest()


def test_the_form_holds_what_the_service_knows_and_the_key_lies_in_a_header(fake: Fake) -> None:
    server = fake("stability")
    outcome = tool_at(server, negative_prompt="text", style_preset="photographic").edit(request())
    seen = server.seen[0]
    assert seen.path == "/v2beta/stable-image/edit/inpaint"
    assert seen.headers["authorization"] == f"Bearer {server.key}"
    assert seen.headers["accept"] == "application/json"
    assert seen.fields == {
        "prompt": "a grey wall", "seed": "8", "output_format": "png", "grow_mask": "0",
        "negative_prompt": "text", "style_preset": "photographic",
    }  # fmt: skip
    assert seen.file_types == {"image": "image/png", "mask": "image/png"}
    assert outcome.meta["sent"] == {**seen.fields, "mask": True}


def test_restyling_goes_by_structure_without_a_mask(fake: Fake) -> None:
    server = fake("stability")
    outcome = tool_at(server).edit(request(task=Task.RESTYLE, prompt=""))
    assert isinstance(outcome, Edited)
    seen = server.seen[0]
    assert seen.path == "/v2beta/stable-image/control/structure"
    assert list(seen.files) == ["image"]
    assert seen.fields["control_strength"] == "0.7"
    assert seen.fields["prompt"] == DEFAULT_PROMPTS[Task.RESTYLE]
    assert "grow_mask" not in seen.fields


@pytest.mark.parametrize(
    ("seed", "sent"),
    [(0, 1), (7, 8), (-1, 4_294_967_294), (4_294_967_294, 1), (2**63 + 11, (2**63 + 11) % 4_294_967_294 + 1)],
)  # fmt: skip
def test_seed_0_would_mean_any_so_seeds_are_1_and_up(fake: Fake, seed: int, sent: int) -> None:
    server = fake("stability")
    outcome = tool_at(server).edit(request(seed=seed))
    assert isinstance(outcome, Edited)
    assert outcome.meta["sent"]["seed"] == str(sent)
    assert outcome.meta["returned"]["seed"] == sent


def test_the_limits_of_the_service_are_its_size_rule() -> None:
    rule = stability.SPEC.size
    assert rule.min_side == 64
    assert rule.max_side**2 == 9_437_184
    assert str(stability.SPEC.rate) == "150/10s"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mask": None}, "the request has no mask"),
        ({"mask": Mask(np.zeros((HEIGHT, WIDTH), np.uint8), MaskKind.FACE)}, "the mask is empty"),
        ({"mask": mask_of(WIDTH, HEIGHT - 1)}, "the mask is not of the picture's size"),
        ({"picture": None}, "the request has no picture"),
        ({"picture": b"GIF89a..."}, "Stability takes PNG, JPEG and WebP pictures"),
        ({"width": 63}, "63x128 is below the smallest side of 64 pixels"),
        ({"width": 4000, "height": 3000}, "4000x3000 is over 9,437,184 pixels"),
        ({"task": Task.RESTYLE, "width": 400}, "400x128 is longer than 2.5:1"),
        ({"prompt": "x" * 10_001}, "the prompt is over 10000 characters"),
        ({"picture": b"\x89PNG\r\n\x1a\n" + bytes(10_500_000)}, "the request would be over 10 MiB"),
    ],
)
def test_what_the_service_would_turn_away_fails_before_anything_is_sent(
    fake: Fake, changes: dict[str, Any], reason: str
) -> None:
    server = fake("stability")
    outcome = tool_at(server).edit(request(**changes))
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith(reason)
    assert server.seen == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grow_mask": 101}, "setting 'grow_mask'"),
        ({"control_strength": 1.5}, "setting 'control_strength'"),
        ({"grow_msk": 1}, "did you mean 'grow_mask'"),
        ({"output_format": "gif"}, "setting 'output_format'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(LikenessError, match="tool 'stability': ") as caught:
        build("stability", settings)
    assert words in str(caught.value)


def test_calls_side_by_side_do_not_mix(fake: Fake) -> None:
    server = fake("stability")
    tool = tool_at(server)
    asked = [request(WIDTH + 8 * n, HEIGHT, seed=n) for n in range(8)]
    with ThreadPoolExecutor(stability.SPEC.concurrency) as threads:
        outcomes = list(threads.map(tool.edit, asked))
    for one, outcome in zip(asked, outcomes, strict=True):
        assert isinstance(outcome, Edited)
        assert read_rgb(outcome.picture).shape == (one.height, one.width, 3)
        assert outcome.meta["returned"]["seed"] == one.seed + 1


# -- what comes back -----------------------------------------------------------------------------


def test_an_edit_keeps_request_id_seed_and_what_served_it(fake: Fake) -> None:
    tool = tool_at(fake("stability"))
    meta = tool.edit(request()).meta
    assert meta["http_status"] == 200
    assert meta["request_id"]
    assert meta["model"] == "v2beta/stable-image/edit/inpaint"
    assert meta["returned"] == {"finish_reason": "SUCCESS", "seed": 8}
    assert tool.model == "Stability AI v2beta stable-image"
    json.dumps(dict(meta))


@pytest.mark.parametrize("behaviour", ["refuse", "content_moderation"])
def test_a_403_content_moderation_is_a_refusal_of_the_input(fake: Fake, behaviour: str) -> None:
    server = fake("stability")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("input", "content_moderation")
    assert "content moderation" in outcome.text
    assert outcome.meta["request_id"]
    assert outcome.meta["sent"]["prompt"] == "a grey wall"
    assert "stop" not in outcome.meta


def test_a_200_content_filtered_is_a_refusal_and_its_blurred_picture_no_edit(fake: Fake) -> None:
    server = fake("stability")
    server.next("content_filtered")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("output", "CONTENT_FILTERED")
    assert outcome.meta["http_status"] == 200
    assert outcome.meta["maybe_billed"] is True


def test_an_answer_that_does_not_say_whether_it_was_filtered_is_not_trusted(fake: Fake) -> None:
    server = fake("stability")
    server.next("no_finish_reason")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the answer says nothing of whether its picture was filtered"
    assert outcome.meta["maybe_billed"] is True


@pytest.mark.parametrize("behaviour", ["forbidden", "payment_required"])
def test_no_right_and_no_credit_stop_the_run_and_are_no_refusal(fake: Fake, behaviour: str) -> None:
    server = fake("stability")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.meta["stop"] is True


def test_a_size_that_was_not_kept_is_noted(fake: Fake) -> None:
    server = fake("stability")
    server.next("four_megapixels")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Edited)
    assert outcome.meta["note"] == f"asked for {WIDTH}x{HEIGHT}, got 2048x2048"


def test_a_429_without_a_named_wait_is_the_minute_that_the_service_shuts_one_out(
    fake: Fake,
) -> None:
    server = fake("stability")
    server.next("429")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.retry_after == 60.0


@pytest.mark.parametrize(
    ("headers", "wait"), [({"retry-after": "3"}, 3.0), ({"x-ratelimit-reset": "12"}, 12.0)]
)
def test_a_429_that_names_a_wait_is_believed(headers: dict[str, str], wait: float) -> None:
    body = {"id": "x", "name": "rate_limit_exceeded", "errors": ["too many"]}
    outcome = scripted(lambda r: httpx.Response(429, headers=headers, json=body)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retry_after == wait


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_mistake_of_ours_is_not_retried(status: int) -> None:
    body = {"id": "abc", "name": "bad_request", "errors": ["some-field: is required", "more"]}
    outcome = scripted(lambda r: httpx.Response(status, json=body)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == f"HTTP {status}: bad_request: some-field: is required; more"
    assert not outcome.retryable
    assert outcome.meta["request_id"] == "abc"


@pytest.mark.parametrize("behaviour", ["500", "503", "truncated"])
def test_a_passing_fault_is_retryable(fake: Fake, behaviour: str) -> None:
    server = fake("stability")
    server.next(behaviour)
    tool = tool_at(server)
    outcome = tool.edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert isinstance(tool.edit(request()), Edited)


def test_an_answer_that_does_not_come_in_time_may_have_been_billed(fake: Fake) -> None:
    server = fake("stability", slow_s=30.0)
    server.next("slow")
    outcome = tool_at(server, timeout_s=0.2).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.meta["maybe_billed"] is True


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("html", "HTTP 200: the answer is not JSON (text/html)"),
        ("empty", "HTTP 200: the answer is empty"),
        ("bad_base64", "the answer's picture is not valid base64"),
        ("wrong_type", "the tool answered with application/json, no picture"),
    ],
)
def test_a_200_without_a_picture_is_a_failure_that_may_be_billed(
    fake: Fake, behaviour: str, reason: str
) -> None:
    server = fake("stability")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == reason
    assert outcome.meta["maybe_billed"] is True


# -- secrets and faces ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
@pytest.mark.parametrize("name", ["content_moderation", "bad_request"])
def test_neither_the_key_nor_the_picture_gets_into_an_outcome(status: int, name: str) -> None:
    asked = request()
    face = base64.b64encode(asked.picture or b"").decode()

    def echo(r: httpx.Request) -> httpx.Response:
        said = f"bad key {KEY} for {face}"
        body = {"id": KEY, "name": name, "errors": [said], "finish_reason": said, "seed": said}
        return httpx.Response(status, json=body)

    told = repr(scripted(echo).edit(asked))
    assert KEY not in told
    assert face[:100] not in told
    assert len(told) < 3000


def test_without_a_key_nothing_is_sent(fake: Fake) -> None:
    server = fake("stability")
    outcome = tool_at(server, key=None).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.meta["stop"] is True
    assert server.seen == []


def test_a_wrong_key_stops_the_run(fake: Fake) -> None:
    outcome = tool_at(fake("stability"), key=SecretStr("sk-wrong-abcdefgh")).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == "HTTP 401: unauthorized: missing or invalid API key"
    assert outcome.meta["stop"] is True


def test_a_closed_tool_says_so(fake: Fake) -> None:
    tool = tool_at(fake("stability"))
    tool.close()
    tool.close()
    assert tool.edit(request()) == Failed("the tool was closed")


# -- the fake itself turns away what the service turns away --------------------------------------


def post(server: FakeServer, **changes: Any) -> httpx.Response:
    asked = request()
    files: dict[str, Any] = {"image": ("a.png", asked.picture, "image/png")}
    if changes.pop("with_mask", True):
        files["mask"] = ("m.png", write_png(mask_of().values), "image/png")
    headers = {"authorization": f"Bearer {server.key}", **changes.pop("headers", {})}
    address = f"{server.url}/v2beta/stable-image/edit/inpaint"
    return httpx.post(
        address, headers=headers, data={"prompt": "a", **changes}, files=files, trust_env=False
    )


def test_the_fake_also_gives_bytes_with_its_word_in_headers(fake: Fake) -> None:
    reply = post(fake("stability"), headers={"accept": "image/*"}, seed="5")
    assert reply.headers["content-type"] == "image/png"
    assert (reply.headers["finish-reason"], reply.headers["seed"]) == ("SUCCESS", "5")
    assert read_rgb(reply.content).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": ""},
        {"grow_mask": "101"},
        {"seed": "4294967295"},
        {"seed": "many"},
        {"output_format": "gif"},
        {"with_mask": False},
        {"headers": {"accept": "text/html"}},
    ],
    ids=str,
)
def test_the_fake_turns_away_what_the_service_turns_away(
    fake: Fake, changes: dict[str, Any]
) -> None:
    reply = post(fake("stability"), **changes)
    assert reply.status_code == 400
    assert reply.json()["name"] == "bad_request"


def test_the_fake_grows_a_mask_by_5_pixels_when_nobody_says_otherwise(fake: Fake) -> None:
    server = fake("stability")
    sizes = []
    for grow in ({}, {"grow_mask": "0"}):
        reply = post(server, **grow, headers={"accept": "image/*"})
        moved = np.abs(read_rgb(reply.content).astype(int) - read_rgb(request().picture))
        sizes.append(int((moved.max(axis=-1) > 2).sum()))
    assert sizes[0] > sizes[1]
