"""Google's Gemini picture models, against a fake server that speaks their protocol."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from adapters import gemini
from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, build
from adapters.hosted.prompts import DEFAULT_PROMPTS
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from service.fake_servers.contract import FakeServer

Fake = Callable[..., FakeServer]
WIDTH, HEIGHT = 848, 1264
KEY = "AIza-canary-0123456789abcdef"
BUILT: list[Adapter] = []


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    while BUILT:
        BUILT.pop().close()


def picture_of(width: int, height: int) -> bytes:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], axis=-1)
    return write_png(pixels.astype(np.uint8))


PICTURE = picture_of(WIDTH, HEIGHT)


def request(**changes: Any) -> EditRequest:
    base = EditRequest(
        "a", Task.RETOUCH, PICTURE, width=WIDTH, height=HEIGHT, seed=7, prompt="clean it"
    )
    return dataclasses.replace(base, **changes)


def tool_at(server: FakeServer, **settings: Any) -> Adapter:
    at = {"base_url": server.url, "key": SecretStr(server.key)}
    BUILT.append(build("gemini", {**at, **settings}))
    return BUILT[-1]


def scripted(answer: Callable[[httpx.Request], httpx.Response]) -> Adapter:
    """The tool on a wire whose other end is ``answer``."""
    tool: Any = build("gemini", {"key": SecretStr(KEY)})
    BUILT.append(tool)

    def unread(asked: httpx.Request) -> httpx.Response:
        reply = answer(asked)
        body = httpx.ByteStream(reply.content)
        return httpx.Response(reply.status_code, headers=reply.headers, stream=body)

    tool._wire.close()
    tool._wire._own = httpx.Client(transport=httpx.MockTransport(unread))
    return BUILT[-1]


def played(fake: Fake, behaviour: str) -> Any:
    server = fake("gemini")
    server.next(behaviour)
    return tool_at(server).edit(request())


# -- what goes up --------------------------------------------------------------------------------


def test_the_key_goes_in_a_header_and_never_in_the_address(fake: Fake) -> None:
    server = fake("gemini")
    assert isinstance(tool_at(server).edit(request()), Edited)
    seen = server.seen[0]
    assert seen.headers["x-goog-api-key"] == server.key
    assert seen.query == {}
    assert server.key not in seen.path
    assert seen.path == "/v1beta/models/gemini-nano-banana-2.1:generateContent"


def test_bytes_go_up_and_come_down_untouched(fake: Fake) -> None:
    server = fake("gemini")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Edited)
    inline = server.seen[0].json()["contents"][0]["parts"][0]["inlineData"]
    assert inline["mimeType"] == "image/png"
    sent = base64.b64decode(inline["data"])
    assert hashlib.sha256(sent).hexdigest() == hashlib.sha256(PICTURE).hexdigest()
    made = server.desk.edit(PICTURE, size=(WIDTH, HEIGHT))
    assert hashlib.sha256(outcome.picture).hexdigest() == hashlib.sha256(made).hexdigest()


def test_shape_and_size_are_always_asked_for(fake: Fake) -> None:
    server = fake("gemini")
    outcome = tool_at(server).edit(request())
    body = server.seen[0].json()
    assert body["generationConfig"] == {
        "responseModalities": ["TEXT", "IMAGE"],
        "imageConfig": {"aspectRatio": "2:3", "imageSize": "1K"},
    }
    assert "safetySettings" not in body
    assert isinstance(outcome, Edited)
    assert read_rgb(outcome.picture).shape == (HEIGHT, WIDTH, 3)
    assert outcome.meta["sent"]["imageConfig"] == {"aspectRatio": "2:3", "imageSize": "1K"}
    assert "note" not in outcome.meta


def test_what_the_plan_sets_is_sent(fake: Fake) -> None:
    server = fake("gemini")
    tool = tool_at(
        server, image_size="2K", temperature=0.0, safety="BLOCK_ONLY_HIGH", words=False,
        model="gemini-3-pro-image",
    )  # fmt: skip
    outcome = tool.edit(request(width=2 * WIDTH, height=2 * HEIGHT))
    body = server.seen[0].json()
    assert body["generationConfig"]["responseModalities"] == ["IMAGE"]
    assert body["generationConfig"]["temperature"] == 0.0
    assert {rule["threshold"] for rule in body["safetySettings"]} == {"BLOCK_ONLY_HIGH"}
    assert len(body["safetySettings"]) == 4
    assert outcome.meta["model"] == "gemini-3-pro-image"
    assert outcome.meta["sent"]["safety"] == "BLOCK_ONLY_HIGH"
    assert (2048, 2048) in tool.spec.size.sizes
    assert isinstance(outcome, Edited)
    assert read_rgb(outcome.picture).shape == (2 * HEIGHT, 2 * WIDTH, 3)


@pytest.mark.parametrize("task", [Task.RETOUCH, Task.RESTYLE, Task.ENHANCE])
def test_each_task_has_its_own_prompt(fake: Fake, task: Task) -> None:
    server = fake("gemini")
    outcome = tool_at(server).edit(request(task=task, prompt=" "))
    assert isinstance(outcome, Edited)
    assert server.seen[0].json()["contents"][0]["parts"][1] == {"text": DEFAULT_PROMPTS[task]}
    assert outcome.meta["sent"]["prompt"] == DEFAULT_PROMPTS[task]


def test_it_has_no_mask_so_it_does_no_inpainting(fake: Fake) -> None:
    server = fake("gemini")
    outcome = tool_at(server).edit(request(task=Task.INPAINT_FACE))
    assert outcome == Failed("Gemini takes no mask, so it does no inpaint_face")
    assert gemini.SPEC.mask_support == "none"
    assert not gemini.SPEC.seedable
    assert server.seen == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"picture": None}, "the request has no picture"),
        ({"picture": b"GIF89a..."}, "Gemini takes PNG, JPEG and WebP pictures"),
        ({"width": WIDTH + 1}, "849x1264 is no size that Gemini makes at 1K"),
        ({"picture": b"\x89PNG\r\n\x1a\n" + bytes(15_000_000)}, "the request would be 20,"),
    ],
)
def test_what_gemini_would_turn_away_fails_before_anything_is_sent(
    fake: Fake, changes: dict[str, Any], reason: str
) -> None:
    server = fake("gemini")
    outcome = tool_at(server).edit(request(**changes))
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith(reason)
    assert server.seen == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "../x?key=1"}, "setting 'model'"),
        ({"image_size": "512"}, "setting 'image_size'"),
        ({"safety": "NONE"}, "setting 'safety'"),
        ({"seed": 1}, "unknown setting 'seed'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(LikenessError, match="tool 'gemini': ") as caught:
        build("gemini", settings)
    assert words in str(caught.value)


def test_a_price_is_given_where_one_was_found() -> None:
    prices = {}
    for size in ("1K", "2K", "4K"):
        BUILT.append(build("gemini", {"image_size": size}))
        prices[size] = BUILT[-1].spec.price
    assert prices["1K"] is not None
    assert prices["4K"] is not None
    assert (prices["1K"].of(1), prices["4K"].of(1)) == (0.0336, 0.1134)
    assert "2026" in prices["1K"].source
    assert prices["2K"] is None
    BUILT.append(build("gemini", {"model": "gemini-3-pro-image"}))
    assert BUILT[-1].spec.price is None


# -- what comes back -----------------------------------------------------------------------------


def test_an_edit_keeps_model_version_response_id_and_usage(fake: Fake) -> None:
    tool = tool_at(fake("gemini"))
    meta = tool.edit(request()).meta
    assert meta["model"] == "gemini-nano-banana-2.1"
    assert len(meta["request_id"]) == 22
    assert meta["returned"]["finishReason"] == "STOP"
    assert meta["returned"]["usageMetadata"]["candidatesTokenCount"] == 1120
    assert tool.model == "Google gemini-nano-banana-2.1"
    json.dumps(dict(meta))


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("refuse", "IMAGE_SAFETY"),
        ("image_safety", "IMAGE_SAFETY"),
        ("image_prohibited_content", "IMAGE_PROHIBITED_CONTENT"),
        ("image_recitation", "IMAGE_RECITATION"),
        ("image_other", "IMAGE_OTHER"),
        ("no_image", "NO_IMAGE"),
        ("safety", "SAFETY"),
        ("prohibited_content", "PROHIBITED_CONTENT"),
        ("recitation", "RECITATION"),
        ("blocklist", "BLOCKLIST"),
        ("spii", "SPII"),
    ],
)
def test_a_200_with_a_finish_reason_of_its_filters_is_a_refusal(
    fake: Fake, behaviour: str, code: str
) -> None:
    outcome = played(fake, behaviour)
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("output", code)
    assert outcome.meta["http_status"] == 200
    assert outcome.meta["model"] == "gemini-nano-banana-2.1"
    assert outcome.meta["returned"]["finishReason"] == code


def test_the_ratings_behind_a_refusal_are_kept(fake: Fake) -> None:
    ratings = played(fake, "safety").meta["returned"]["safetyRatings"]
    assert ratings[0]["category"] == "HARM_CATEGORY_SEXUALLY_EXPLICIT"
    assert ratings[0]["blocked"] is True


@pytest.mark.parametrize(
    "reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"]
)
def test_a_200_with_a_block_reason_is_a_refusal_of_the_input(fake: Fake, reason: str) -> None:
    outcome = played(fake, f"blocked_{reason.lower()}")
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("input", reason)


def test_an_answer_in_words_alone_is_a_refusal_with_the_words(fake: Fake) -> None:
    outcome = played(fake, "text_only")
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("output", "TEXT_ONLY")
    assert outcome.text == "I cannot edit pictures of real people in this way."


def test_a_picture_that_came_with_a_refusal_is_not_taken_for_an_edit() -> None:
    inline = {"mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}
    body = {
        "candidates": [
            {"content": {"parts": [{"inlineData": inline}]}, "finishReason": "IMAGE_SAFETY"}
        ]
    }
    outcome = scripted(lambda r: httpx.Response(200, json=body)).edit(request())
    assert isinstance(outcome, Refused)
    assert outcome.code == "IMAGE_SAFETY"


def test_a_stop_for_no_stated_reason_is_a_failure(fake: Fake) -> None:
    outcome = played(fake, "other")
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the answer holds no picture (finishReason OTHER)"
    assert not outcome.retryable


def test_an_answer_with_nothing_in_it_is_worth_another_try(fake: Fake) -> None:
    outcome = played(fake, "no_parts")
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.meta["maybe_billed"] is True


@pytest.mark.parametrize(
    "body", [{}, {"candidates": []}, {"candidates": ["x"]}, {"candidates": [{"content": 5}]}]
)
def test_an_answer_of_another_shape_is_a_failure(body: dict[str, Any]) -> None:
    outcome = scripted(lambda r: httpx.Response(200, json=body)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("the answer holds no picture")


@pytest.mark.parametrize("behaviour", ["thoughts", "several"])
def test_drafts_are_passed_over_and_the_last_picture_is_taken(fake: Fake, behaviour: str) -> None:
    outcome = played(fake, behaviour)
    assert isinstance(outcome, Edited)
    assert read_rgb(outcome.picture).shape == (HEIGHT, WIDTH, 3)  # a draft measures 64x64


def test_a_draft_alone_is_no_result() -> None:
    draft = {"mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}
    parts = [{"inlineData": draft, "thought": True}, {"text": "I would rather not."}]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    outcome = scripted(lambda r: httpx.Response(200, json=body)).edit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.text) == ("TEXT_ONLY", "I would rather not.")


def test_a_size_that_was_ignored_is_noted(fake: Fake) -> None:
    outcome = played(fake, "other_size")
    assert isinstance(outcome, Edited)
    assert outcome.meta["note"] == f"asked for {WIDTH}x{HEIGHT}, got {WIDTH // 2}x{HEIGHT // 2}"


def test_a_429_is_retryable_after_the_delay_in_its_retry_info(fake: Fake) -> None:
    outcome = played(fake, "429")
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.retry_after == 1.0
    assert outcome.reason.startswith("HTTP 429: RESOURCE_EXHAUSTED You exceeded")


@pytest.mark.parametrize(
    ("headers", "delay", "wait"),
    [
        ({}, "34.074824224s", 34.074824224),
        ({"retry-after": "5"}, None, 5.0),
        ({"retry-after-ms": "1500"}, None, 1.5),
        ({}, None, None),
    ],
)
def test_a_429_names_its_wait_in_the_body_or_a_header(
    headers: dict[str, str], delay: str | None, wait: float | None
) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Resource has been exhausted"}
    body = [{"error": {**error, "details": [info] if delay else []}}]  # some answers are a list
    outcome = scripted(lambda r: httpx.Response(429, headers=headers, json=body)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.retry_after == wait


@pytest.mark.parametrize("behaviour", ["429_per_day", "location"])
def test_a_spent_day_and_a_wrong_country_stop_the_run(fake: Fake, behaviour: str) -> None:
    outcome = played(fake, behaviour)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.meta["stop"] is True


def test_a_wrong_key_is_a_400_here_and_stops_the_run(fake: Fake) -> None:
    outcome = tool_at(fake("gemini"), key=SecretStr("AIza-wrong-abcdefgh")).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("HTTP 400: INVALID_ARGUMENT API key not valid")
    assert outcome.meta["stop"] is True


def test_a_model_that_is_not_there_stops_the_run(fake: Fake) -> None:
    outcome = tool_at(fake("gemini"), model="gemini-2.5-flash-image").edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("HTTP 404: NOT_FOUND")
    assert outcome.meta["stop"] is True


@pytest.mark.parametrize("behaviour", ["500", "503", "truncated"])
def test_a_passing_fault_is_retryable(fake: Fake, behaviour: str) -> None:
    outcome = played(fake, behaviour)
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "stop" not in outcome.meta


def test_an_answer_that_does_not_come_in_time_may_have_been_billed(fake: Fake) -> None:
    server = fake("gemini", slow_s=30.0)
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
        ("wrong_type", "the tool answered with application/pdf, no picture"),
    ],
)
def test_a_200_without_a_picture_is_a_failure_that_may_be_billed(
    fake: Fake, behaviour: str, reason: str
) -> None:
    outcome = played(fake, behaviour)
    assert isinstance(outcome, Failed)
    assert outcome.reason == reason
    assert outcome.meta["maybe_billed"] is True


# -- secrets and faces ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400, 403, 404, 429, 500])
def test_neither_the_key_nor_the_picture_gets_into_an_outcome(status: int) -> None:
    face = base64.b64encode(PICTURE).decode()
    said = f'Base64 decoding failed for "{face}" with key {KEY}'
    parts = [{"text": said}]
    body = {
        "error": {"status": "INVALID_ARGUMENT", "message": said},
        "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
        "modelVersion": KEY,
        "responseId": said,
        "usageMetadata": {KEY: said},
    }
    told = repr(scripted(lambda r: httpx.Response(status, json=body)).edit(request()))
    assert KEY not in told
    assert face[:100] not in told
    assert len(told) < 3000


def test_without_a_key_nothing_is_sent(fake: Fake) -> None:
    server = fake("gemini")
    outcome = tool_at(server, key=None).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.meta["stop"] is True
    assert server.seen == []


def test_a_closed_tool_says_so(fake: Fake) -> None:
    tool = tool_at(fake("gemini"))
    tool.close()
    tool.close()
    assert tool.edit(request()) == Failed("the tool was closed")


# -- the fake itself turns away what Gemini turns away -------------------------------------------

INLINE = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}}
ASK = {"contents": [{"parts": [INLINE, {"text": "a"}]}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "contents is not specified"),
        ({"contents": [{"parts": [{"text": "a"}]}]}, "An image is expected"),
        ({"contents": [{"parts": [INLINE]}]}, "must not be empty"),
        ({**ASK, "size": "1K"}, 'Unknown name "size"'),
        ({**ASK, "generationConfig": {"size": 1}}, "Unknown name \"size\" at 'generation_config'"),
        ({**ASK, "generationConfig": {"imageConfig": {"imageSize": "512"}}}, "image_size"),
        ({**ASK, "generationConfig": {"imageConfig": {"aspectRatio": "7:1"}}}, "aspect_ratio"),
        ({**ASK, "safetySettings": [{"threshold": "MOST"}]}, "safety_settings"),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "%"}}]}]},
            "Base64 decoding failed",
        ),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "text/plain", "data": ""}}]}]},
            "Unsupported MIME type",
        ),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}]},
            "Unable to process input image",
        ),
    ],
)
def test_the_fake_turns_away_what_gemini_turns_away(
    fake: Fake, body: dict[str, Any], words: str
) -> None:
    server = fake("gemini")
    address = f"{server.url}/v1beta/models/gemini-nano-banana-2.1:generateContent"
    reply = httpx.post(address, json=body, headers={"x-goog-api-key": server.key}, trust_env=False)
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert words in reply.json()["error"]["message"]


def test_the_fake_takes_both_spellings_and_shapes_by_the_picture(fake: Fake) -> None:
    server = fake("gemini")
    inline = {"mime_type": "image/png", "data": INLINE["inlineData"]["data"]}
    body = {"contents": [{"parts": [{"inline_data": inline}, {"text": "a"}]}]}
    address = f"{server.url}/v1beta/models/gemini-nano-banana-2.1:generateContent"
    reply = httpx.post(address, json=body, params={"key": server.key}, trust_env=False)
    part = reply.json()["candidates"][0]["content"]["parts"][-1]["inlineData"]
    assert read_rgb(base64.b64decode(part["data"])).shape == (HEIGHT, WIDTH, 3)
