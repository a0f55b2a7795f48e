"""OpenAI's image edits, against a fake server that turns away what OpenAI turns away."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from pydantic import SecretStr

from adapters import openai_images
from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter
from adapters.contract import build as build_tool
from adapters.hosted.prompts import DEFAULT_PROMPTS
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer

Fake = Callable[..., FakeServer]
SIDE = 816
KEY = "sk-canary-0123456789abcdef"
OLD = {"model": "gpt-image-1.5"}
BUILT: list[Adapter] = []


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    while BUILT:
        BUILT.pop().close()


def build(tool: str, settings: Mapping[str, Any]) -> Adapter:
    BUILT.append(build_tool(tool, settings))
    return BUILT[-1]


def mask_of(width: int, height: int) -> Mask:
    values = np.zeros((height, width), dtype=np.uint8)
    values[height // 2 :, : width // 3] = 255
    values[:5, -7:] = 128  # half strength is kept, not rounded
    return Mask(values, MaskKind.LOWER_FACE)


def request(width: int = SIDE, height: int = SIDE, **changes: Any) -> EditRequest:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x * y) % 251], axis=-1)
    base = EditRequest(
        "a", Task.INPAINT_LOWER_FACE, write_png(pixels.astype(np.uint8)), width=width,
        height=height, seed=7, prompt="a grey wall", mask=mask_of(width, height),
    )  # fmt: skip
    return dataclasses.replace(base, **changes)


def tool_at(server: FakeServer, **settings: Any) -> Adapter:
    at = {"base_url": server.url, "key": SecretStr(server.key)}
    return build("openai_images", {**at, **settings})


def scripted(answer: Callable[[httpx.Request], httpx.Response], **settings: Any) -> Any:
    """The tool on a wire whose other end is ``answer``."""
    at = {"base_url": "https://api.openai.com", "key": SecretStr(KEY)}
    tool: Any = build("openai_images", {**at, **settings})
    tool._wire.close()

    def unread(asked: httpx.Request) -> httpx.Response:
        reply = answer(asked)
        body = httpx.ByteStream(reply.content)
        return httpx.Response(reply.status_code, headers=reply.headers, stream=body)

    tool._wire._own = tool._wire._others = httpx.Client(transport=httpx.MockTransport(unread))
    return tool


def error(status: int, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return httpx.Response(status, headers=headers, json={"error": body})


# -- what goes up --------------------------------------------------------------------------------


def test_the_mask_edits_where_its_alpha_is_0(fake: Fake) -> None:
    server = fake("openai")
    asked = request()
    assert isinstance(tool_at(server).edit(asked), Edited)
    sent = Image.open(BytesIO(server.seen[0].files["mask"]))
    assert (sent.mode, sent.size) == ("RGBA", (SIDE, SIDE))
    assert asked.mask is not None
    inverted = np.invert(asked.mask.values)  # white = edit becomes transparent = edit
    assert np.array_equal(np.asarray(sent)[..., 3], inverted)


def test_the_result_changes_where_the_mask_is_white(fake: Fake) -> None:
    asked = request()
    outcome = tool_at(fake("openai")).edit(asked)
    assert isinstance(outcome, Edited)
    moved = np.abs(read_rgb(outcome.picture).astype(int) - read_rgb(asked.picture)).max(axis=-1)
    assert asked.mask is not None
    assert moved[asked.mask.values == 0].max() <= 2  # a mask is no promise: a slight drift stays
    assert moved[asked.mask.values == 255].max() > 2


def test_an_all_opaque_mask_that_would_edit_nothing_is_never_sent(fake: Fake) -> None:
    server = fake("openai")
    empty = Mask(np.zeros((SIDE, SIDE), dtype=np.uint8), MaskKind.FACE)
    outcome = tool_at(server).edit(request(mask=empty))
    assert outcome == Failed("the mask is empty: nothing would be edited")
    assert server.seen == []


def test_a_mask_of_4_mb_fails_before_anything_is_sent(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert openai_images.MASK_LIMIT == 4_000_000
    monkeypatch.setattr(openai_images, "MASK_LIMIT", 500)
    server = fake("openai")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason.endswith("bytes; OpenAI takes less than 4 MB")
    assert server.seen == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mask": None}, "the request has no mask"),
        ({"mask": mask_of(SIDE, SIDE - 16)}, "the mask is not of the picture's size"),
        ({"picture": None}, "the request has no picture"),
        ({"picture": b"GIF89a..."}, "OpenAI takes PNG, JPEG and WebP pictures"),
        ({"picture": b"\xff\xd8\xff\xe0 jpeg"}, "the mask is a PNG, so OpenAI wants the picture"),
        ({"width": SIDE + 1}, "817x816 is no size that gpt-image-2.5"),
        ({"width": 4096}, "4096x816 is no size that gpt-image-2.5"),
        ({"prompt": "x" * 32_001}, "the prompt is over 32000 characters"),
    ],
)
def test_what_openai_would_turn_away_fails_before_anything_is_sent(
    fake: Fake, changes: dict[str, Any], reason: str
) -> None:
    server = fake("openai")
    outcome = tool_at(server).edit(request(**changes))
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith(reason)
    assert server.seen == []


def test_bytes_go_up_and_come_down_untouched(fake: Fake) -> None:
    server = fake("openai")
    server.next("unchanged")
    asked = request()
    outcome = tool_at(server).edit(asked)
    assert asked.picture is not None
    assert isinstance(outcome, Edited)
    wanted = hashlib.sha256(asked.picture).hexdigest()
    assert hashlib.sha256(server.seen[0].files["image[]"]).hexdigest() == wanted
    assert hashlib.sha256(outcome.picture).hexdigest() == wanted


def test_nothing_is_left_for_the_server_to_choose_and_no_seed_is_sent(fake: Fake) -> None:
    server = fake("openai")
    outcome = tool_at(server).edit(request())
    fields = server.seen[0].fields
    assert fields == {
        "model": "gpt-image-2.5-sunburst-2026-09-08", "prompt": "a grey wall", "n": "1",
        "size": f"{SIDE}x{SIDE}", "quality": "medium", "background": "opaque",
        "output_format": "png",
    }  # fmt: skip
    assert outcome.meta["sent"] == {**fields, "mask": True}
    assert server.seen[0].file_types == {"image[]": "image/png", "mask": "image/png"}
    assert not openai_images.SPEC.seedable


@pytest.mark.parametrize("task", [Task.RETOUCH, Task.RESTYLE, Task.ENHANCE])
def test_an_unmasked_task_sends_no_mask_and_its_own_prompt(fake: Fake, task: Task) -> None:
    server = fake("openai")
    outcome = tool_at(server).edit(request(task=task, prompt=""))
    assert isinstance(outcome, Edited)
    assert list(server.seen[0].files) == ["image[]"]
    assert server.seen[0].fields["prompt"] == DEFAULT_PROMPTS[task]
    assert outcome.meta["sent"]["mask"] is False


@pytest.mark.parametrize("base", ["", "/v1"])
def test_the_address_may_end_in_v1_as_others_write_it(fake: Fake, base: str) -> None:
    server = fake("openai")
    tool = tool_at(server, base_url=server.url + base, organization="org-1", project="proj-1")
    assert isinstance(tool.edit(request()), Edited)
    seen = server.seen[0]
    assert seen.path == "/v1/images/edits"
    assert seen.headers["authorization"] == f"Bearer {server.key}"
    assert (seen.headers["openai-organization"], seen.headers["openai-project"]) == (
        "org-1",
        "proj-1",
    )


# -- models --------------------------------------------------------------------------------------


def test_faces_are_kept_with_high_fidelity_where_a_model_has_the_choice(fake: Fake) -> None:
    server = fake("openai")
    assert isinstance(tool_at(server, **OLD).edit(request(1024, 1024)), Edited)
    assert server.seen[0].fields["input_fidelity"] == "high"
    tool_at(server, **OLD, input_fidelity="low").edit(request(1024, 1024))
    assert server.seen[1].fields["input_fidelity"] == "low"


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("gpt-image-1.5", {(1024, 1024), (1536, 1024), (1024, 1536)}),
        ("gpt-image-1-mini", {(1024, 1024), (1536, 1024), (1024, 1536)}),
        ("dall-e-2", {(1024, 1024), (512, 512), (256, 256)}),
    ],
)
def test_the_model_decides_the_sizes(model: str, sizes: set[tuple[int, int]]) -> None:
    assert set(build("openai_images", {"model": model}).spec.size.sizes) == sizes


@pytest.mark.parametrize("model", ["gpt-image-2", "gpt-image-2.6-flare", "gpt-image-9"])
def test_newer_models_take_any_size_of_16s_between_their_limits(model: str) -> None:
    rule = build("openai_images", {"model": model}).spec.size
    assert (rule.multiple, rule.sizes) == (16, ())
    assert rule.min_side**2 >= 655_360
    assert rule.max_side**2 <= 2560 * 1440
    assert rule.max_side <= 3 * rule.min_side
    assert rule.min_side % 16 == rule.max_side % 16 == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "dall-e-3"}, "'dall-e-3' makes no edits; known: gpt-image-2.6"),
        ({"model": "gpt-image-2", "quality": "max"}, "gpt-image-2 does not know 'max'; it can be"),
        (
            {"input_fidelity": "high"},
            "gpt-image-2.5-sunburst-2026-09-08 does not know 'high'; it can be: left out",
        ),
        ({"model": "gpt-image-2", "background": "transparent"}, "it can be: auto, opaque"),
        ({"model": "dall-e-2", "quality": "high"}, "dall-e-2 does not know 'high'"),
        ({"background": "transparent", "output_format": "jpeg"}, "a JPEG is never transparent"),
        ({"n": 2}, "unknown setting 'n'"),
    ],
)
def test_a_setting_that_the_model_does_not_have_is_a_mistake_said_at_once(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(LikenessError, match="tool 'openai_images': ") as caught:
        build("openai_images", settings)
    assert words in str(caught.value)


def test_dall_e_rejects_rgb_so_the_picture_gets_an_alpha_that_hides_nothing(fake: Fake) -> None:
    server = fake("openai")
    asked = request(256, 256)
    outcome = tool_at(server, model="dall-e-2").edit(asked)
    assert isinstance(outcome, Edited), outcome
    sent = Image.open(BytesIO(server.seen[0].files["image"]))
    assert sent.mode == "RGBA"
    assert np.array_equal(np.asarray(sent)[..., :3], read_rgb(asked.picture))
    assert (np.asarray(sent)[..., 3] == 255).all()
    assert server.seen[0].fields == {
        "model": "dall-e-2", "prompt": "a grey wall", "n": "1", "size": "256x256",
        "response_format": "b64_json",
    }  # fmt: skip


def test_dall_e_takes_no_picture_that_is_not_square_and_none_without_a_mask(fake: Fake) -> None:
    server = fake("openai")
    tool = tool_at(server, model="dall-e-2")
    assert set(tool.spec.tasks) == set(openai_images.MASKED)
    outcome = tool.edit(request(512, 256))
    assert outcome == Failed("512x256 is no size that dall-e-2 makes")
    assert server.seen == []


def test_prices_are_given_where_openai_gives_one() -> None:
    price = build("openai_images", {"model": "gpt-image-2"}).spec.price
    assert price is not None
    assert price.of(1.0) == 0.053
    assert "2026" in price.source
    assert build("openai_images", {}).spec.price is None
    assert build("openai_images", {"model": "gpt-image-2", "quality": "auto"}).spec.price is None


# -- what comes back -----------------------------------------------------------------------------


def test_an_edit_keeps_request_id_usage_and_what_was_echoed(fake: Fake) -> None:
    outcome = tool_at(fake("openai")).edit(request())
    meta = outcome.meta
    assert meta["http_status"] == 200
    assert meta["request_id"].startswith("req_")
    assert meta["returned"]["size"] == f"{SIDE}x{SIDE}"
    assert meta["returned"]["usage"]["output_tokens"] > 0
    assert abs(meta["clock_skew_s"]) < 5
    json.dumps(dict(meta))


def test_the_model_that_an_answer_names_is_kept() -> None:
    body = {"data": [{"b64_json": base64.b64encode(request().picture or b"").decode()}]}
    tool = scripted(lambda r: httpx.Response(200, json={**body, "model": "gpt-image-x-2027"}))
    assert tool.edit(request()).meta["model"] == "gpt-image-x-2027"
    assert tool.model == "OpenAI gpt-image-2.5-sunburst-2026-09-08"


def test_a_size_that_was_ignored_is_noted(fake: Fake) -> None:
    server = fake("openai")
    server.next("other_size")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Edited)
    assert outcome.meta["note"] == f"asked for {SIDE}x{SIDE}, got {SIDE // 2}x{SIDE // 2}"


def test_a_200_with_the_unchanged_picture_is_noted(fake: Fake) -> None:
    server = fake("openai")
    server.next("unchanged")
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Edited)
    assert outcome.meta["note"] == "the tool sent back the very picture it was given"


@pytest.mark.parametrize(
    ("behaviour", "stage", "code"),
    [
        ("refuse", "input", "moderation_blocked"),
        ("moderation_blocked", "input", "moderation_blocked"),
        ("moderation_output", "output", "moderation_blocked"),
        ("moderation_plain", "policy", "moderation_blocked"),
        ("content_policy", "policy", "content_policy_violation"),
    ],
)
def test_a_400_moderation_blocked_is_a_refusal(
    fake: Fake, behaviour: str, stage: str, code: str
) -> None:
    server = fake("openai")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == (stage, code)
    assert "safety system" in outcome.text
    assert outcome.meta["request_id"].startswith("req_")
    assert outcome.meta["sent"]["prompt"] == "a grey wall"
    assert len(server.seen) == 1


def test_the_categories_of_a_refusal_are_kept(fake: Fake) -> None:
    server = fake("openai")
    server.next("moderation_output")
    meta = tool_at(server).edit(request()).meta
    assert meta["returned"] == {"moderation_stage": "output", "categories": ["sexual"]}
    assert meta["maybe_billed"] is True


def test_an_older_refusal_has_no_code_only_words() -> None:
    said = "Your request was rejected as a result of our safety system. "
    tool = scripted(lambda r: error(400, code=None, type="invalid_request_error", message=said))
    outcome = tool.edit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("policy", "safety_system")


@pytest.mark.parametrize("behaviour", ["insufficient_quota", "billing", "unverified"])
def test_no_credit_and_no_right_stop_the_run_and_are_not_retried(
    fake: Fake, behaviour: str
) -> None:
    server = fake("openai")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.retry_after is None
    assert outcome.meta["stop"] is True


@pytest.mark.parametrize(
    "body",
    [
        {"code": "model_not_found", "message": "The model does not exist", "param": None},
        {"code": "invalid_value", "message": "Value must be 'dall-e-2'.", "param": "model"},
    ],
)
def test_a_model_that_is_not_there_stops_the_run(body: dict[str, Any]) -> None:
    outcome = scripted(lambda r: error(400, **body)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.meta["stop"] is True


@pytest.mark.parametrize(
    ("headers", "message", "wait"),
    [
        ({"retry-after-ms": "250"}, "slow down", 0.25),
        ({"retry-after": "3"}, "slow down", 3.0),
        (
            {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"},
            "slow down",
            90.0,
        ),
        ({}, "Rate limit reached. Please try again in 1.2s.", 1.2),
        ({}, "slow down", None),
    ],
)
def test_a_429_is_retryable_after_the_wait_it_names(
    headers: dict[str, str], message: str, wait: float | None
) -> None:
    tool = scripted(lambda r: error(429, headers, code="rate_limit_exceeded", message=message))
    outcome = tool.edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert outcome.retry_after == wait
    assert "stop" not in outcome.meta


def test_the_servers_own_word_on_retrying_counts_more_than_its_status() -> None:
    tool = scripted(lambda r: error(429, {"x-should-retry": "false"}, message="no"))
    assert not tool.edit(request()).retryable


@pytest.mark.parametrize("behaviour", ["500", "503", "truncated"])
def test_a_passing_fault_is_retryable(fake: Fake, behaviour: str) -> None:
    server = fake("openai")
    server.next(behaviour)
    tool = tool_at(server)
    outcome = tool.edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert isinstance(tool.edit(request()), Edited)


def test_an_answer_that_does_not_come_in_time_may_have_been_billed(fake: Fake) -> None:
    server = fake("openai", slow_s=30.0)
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
        ("no_picture", "the answer holds no picture"),
    ],
)
def test_a_200_without_a_picture_is_a_failure_that_may_be_billed(
    fake: Fake, behaviour: str, reason: str
) -> None:
    server = fake("openai")
    server.next(behaviour)
    outcome = tool_at(server).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == reason
    assert outcome.meta["maybe_billed"] is True


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"b64_json": "%%%"}, "the answer's picture is not valid base64"),
        ({"b64_json": base64.b64encode(b"hello").decode()}, "no picture"),
        ({"b64_json": 7}, "the answer holds no picture"),
        ("nonsense", "the answer holds no picture"),
    ],
)
def test_what_is_no_picture_is_a_failure(item: Any, reason: str) -> None:
    outcome = scripted(lambda r: httpx.Response(200, json={"data": [item]})).edit(request())
    assert isinstance(outcome, Failed)
    assert reason in outcome.reason


def by_address(picture: httpx.Response) -> Callable[[httpx.Request], httpx.Response]:
    def answer(asked: httpx.Request) -> httpx.Response:
        if asked.method == "GET":
            assert "authorization" not in asked.headers
            return picture
        address = "https://files.example.com/img.png?sig=1"
        return httpx.Response(200, json={"data": [{"url": address}]})

    return answer


def test_a_result_by_address_is_fetched_at_once_and_without_the_key() -> None:
    data = request().picture or b""
    reply = httpx.Response(200, content=data, headers={"content-type": "image/png"})
    outcome = scripted(by_address(reply)).edit(request())
    assert isinstance(outcome, Edited)
    assert outcome.picture == data


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (httpx.Response(403, text="expired"), "the result's address has expired (HTTP 403)"),
        (
            httpx.Response(200, html="<p>Sign in</p>"),
            "the tool answered with text/html, no picture",
        ),
        (httpx.Response(200), "the tool answered with an empty body"),
    ],
)
def test_an_address_that_died_or_leads_to_a_web_page_is_a_failure(
    reply: httpx.Response, reason: str
) -> None:
    outcome = scripted(by_address(reply)).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == reason
    assert outcome.meta["maybe_billed"] is True


# -- secrets and faces ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
def test_neither_the_key_nor_the_picture_gets_into_an_outcome(status: int) -> None:
    asked = request()
    face = base64.b64encode(asked.picture or b"").decode()

    def echo(r: httpx.Request) -> httpx.Response:
        said = f"bad key {KEY} for data:image/png;base64,{face}"
        return error(status, code="moderation_blocked" if status == 400 else "x", message=said)

    told = repr(scripted(echo).edit(asked))
    assert KEY not in told
    assert face[:100] not in told
    assert len(told) < 3000


def test_a_refused_key_is_not_repeated_even_in_part(fake: Fake) -> None:
    server = fake("openai")
    outcome = tool_at(server, key=SecretStr("sk-wrong-abcdefghijklmnop")).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.reason == "HTTP 401: the key was refused (invalid_api_key)"
    assert outcome.meta["stop"] is True


def test_without_a_key_nothing_is_sent(fake: Fake) -> None:
    server = fake("openai")
    outcome = tool_at(server, key=None).edit(request())
    assert isinstance(outcome, Failed)
    assert outcome.meta["stop"] is True
    assert server.seen == []


def test_a_closed_tool_says_so(fake: Fake) -> None:
    tool = tool_at(fake("openai"))
    tool.close()
    tool.close()
    assert tool.edit(request()) == Failed("the tool was closed")
