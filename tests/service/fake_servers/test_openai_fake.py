"""The pretended OpenAI takes what the maker's reference documents and refuses what it refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import cv2
import httpx
import numpy as np
import numpy.typing as npt
import pytest

from service.fake_servers.contract import FakeServer
from service.fake_servers.desk import decode, encode

Fake = Callable[..., FakeServer]
PIXELS = np.random.default_rng(1).integers(40, 220, (1024, 1024, 3), dtype=np.uint8)
SQUARE = encode(PIXELS, "jpg")
SMALL = encode(PIXELS[:96, :64])


def rgba(alpha: npt.NDArray[np.uint8]) -> bytes:
    return encode(np.dstack([np.zeros((*alpha.shape, 3), np.uint8), alpha]))


def half_mask(height: int = 96, width: int = 64) -> bytes:
    alpha = np.full((height, width), 255, np.uint8)
    alpha[height // 2 :] = 0
    return rgba(alpha)


def post(server: FakeServer, *, key: str | None = None, **changes: Any) -> httpx.Response:
    """A good call unless changed: ``files`` and ``data`` replace or, with None, remove a part."""
    files: dict[str, Any] = {"image": ("a.png", SMALL, "image/png")}
    data: dict[str, Any] = {"prompt": "a plain background", "model": "gpt-image-1"}
    for given, parts in (
        (changes.get("files", {}), files),
        (changes.get("data", {}), data),
    ):
        parts.update(given)
    with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
        return client.post(
            f"{server.url}/v1/images/edits",
            files={k: v for k, v in files.items() if v is not None},
            data={k: v for k, v in data.items() if v is not None},
            headers={"authorization": f"Bearer {key or server.key}"},
        )


def picture_of(answer: httpx.Response) -> npt.NDArray[np.uint8]:
    assert answer.status_code == 200, answer.json()["error"]
    return decode(base64.b64decode(answer.json()["data"][0]["b64_json"]))


def error_of(answer: httpx.Response) -> dict[str, Any]:
    error: dict[str, Any] = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    return error


def test_an_edit_comes_back_as_base64_with_usage_and_the_parameters_echoed(fake: Fake) -> None:
    server = fake("openai")
    answer = post(server, data={"quality": "low", "size": "1024x1024"})
    body = answer.json()
    assert picture_of(answer).shape == (1024, 1024, 3)
    assert set(body["data"][0]) == {"b64_json"}
    assert (body["size"], body["quality"], body["output_format"]) == ("1024x1024", "low", "png")
    assert body["usage"]["output_tokens"] == 272  # the maker's price page
    assert body["usage"]["total_tokens"] == sum(
        body["usage"][k] for k in ("input_tokens", "output_tokens")
    )


def test_every_answer_names_its_request_and_the_limits(fake: Fake) -> None:
    server = fake("openai")
    for answer in (
        post(server),
        post(server, key="wrong-key-wrong-key"),
        post(server, data={"n": "0"}),
    ):
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["openai-processing-ms"].isdecimal()
        assert answer.headers["x-ratelimit-limit-requests"] == "5"


def test_it_edits_where_the_masks_alpha_is_zero(fake: Fake) -> None:
    server = fake("openai")
    mask = half_mask(1024, 1024)
    answer = post(
        server,
        files={"image": ("a.jpg", SQUARE, "image/jpeg"), "mask": ("m.png", mask, "image/png")},
    )
    change = np.abs(picture_of(answer).astype(int) - decode(SQUARE))
    assert change[:500].max() <= 2
    assert change[524:].mean() > 10


def test_an_all_opaque_mask_edits_nothing(fake: Fake) -> None:
    mask = rgba(np.full((1024, 1024), 255, np.uint8))
    answer = post(
        fake("openai"),
        files={"image": ("a.jpg", SQUARE, "image/jpeg"), "mask": ("m.png", mask, "image/png")},
    )
    assert np.abs(picture_of(answer).astype(int) - decode(SQUARE)).max() <= 2


def test_half_transparent_is_not_edited(fake: Fake) -> None:
    mask = rgba(np.full((1024, 1024), 1, np.uint8))
    answer = post(
        fake("openai"),
        files={"image": ("a.jpg", SQUARE, "image/jpeg"), "mask": ("m.png", mask, "image/png")},
    )
    assert np.abs(picture_of(answer).astype(int) - decode(SQUARE)).max() <= 2


def test_size_auto_takes_the_nearest_shape(fake: Fake) -> None:
    answer = post(fake("openai"))  # 64 wide, 96 high
    assert answer.json()["size"] == "1024x1536"
    assert picture_of(answer).shape == (1536, 1024, 3)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"mask": ("m.png", encode(PIXELS[:96, :64]), "image/png")}, "missing alpha channel"),
        ({"mask": ("m.png", encode(PIXELS[:96, :64, 0]), "image/png")}, "missing alpha channel"),
        ({"mask": ("m.png", half_mask(64, 96), "image/png")}, "does not match image size"),
        ({"mask": ("m.jpg", encode(PIXELS[:96, :64], "jpg"), "image/jpeg")}, "must be a PNG"),
        ({"mask": ("m.png", half_mask() + b"\0" * 4_000_000, "image/png")}, "less than 4 MB"),
        ({"mask": ("m.png", b"\x89PNG\r\n\x1a\nbroken", "image/png")}, "cannot be read"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_wrong_mask_is_rejected(fake: Fake, files: dict[str, Any], says: str) -> None:
    answer = post(fake("openai"), files=files)
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "invalid_mask_image_format"
    assert says in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"files": {"image": None, "mask": ("m.png", half_mask(), "image/png")}}, "image", "missing_required_parameter"),
        ({"data": {"prompt": None}}, "prompt", "missing_required_parameter"),
        ({"data": {"prompt": "x" * 32_001}}, "prompt", "string_above_max_length"),
        ({"files": {"image": ("a.png", SMALL, "application/octet-stream")}}, "image", "unsupported_file_mimetype"),
        ({"files": {"image": ("a.png", b"no picture", "image/png")}}, "image", "invalid_image_file"),
        ({"files": {"image": ("a.png", SMALL + b"\0" * 50_000_000, "image/png")}}, "image", "invalid_image_file"),
        ({"data": {"size": "64x96"}}, "size", "invalid_value"),
        ({"data": {"quality": "xhigh"}}, "quality", "invalid_value"),
        ({"data": {"n": "11"}}, "n", "invalid_value"),
        ({"data": {"output_format": "gif"}}, "output_format", "invalid_value"),
        ({"data": {"seed": "7"}}, "seed", "unknown_parameter"),
        ({"data": {"response_format": "b64_json"}}, "response_format", "unknown_parameter"),
        ({"data": {"model": "gpt-image-9"}}, "model", "model_not_found"),
        ({"data": {"model": "gpt-image-2", "input_fidelity": "high"}}, "input_fidelity", "invalid_input_fidelity_model"),
        ({"data": {"model": "gpt-image-1-mini", "input_fidelity": "high"}}, "input_fidelity", "invalid_value"),
        ({"data": {"model": "gpt-image-2", "size": "1000x1000"}}, "size", "invalid_value"),
        ({"data": {"background": "transparent", "output_format": "jpeg"}}, "background", "invalid_value"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_what_the_maker_turns_away_is_turned_away(
    fake: Fake, changes: dict[str, Any], param: str, code: str
) -> None:
    answer = post(fake("openai"), **changes)
    assert answer.status_code == 400
    assert (error_of(answer)["param"], error_of(answer)["code"]) == (param, code)


def test_json_instead_of_a_form_is_turned_away(fake: Fake) -> None:
    server = fake("openai")
    answer = httpx.post(
        f"{server.url}/v1/images/edits",
        json={"prompt": "x", "image": "data"},
        headers={"authorization": f"Bearer {server.key}"},
        trust_env=False,
        verify=False,
    )
    assert answer.status_code == 400
    assert "expected multipart/form-data" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("picture", "says"),
    [
        (encode(PIXELS[:64, :64]), "got RGB"),
        (rgba(np.zeros((96, 64), np.uint8)), "must be square"),
        (encode(PIXELS[:64, :64, 0]), ""),
    ],
)
def test_dalle_wants_a_square_picture_that_is_not_rgb(
    fake: Fake, picture: bytes, says: str
) -> None:
    height, width = decode(picture).shape[:2]
    answer = post(
        fake("openai"),
        files={
            "image": ("a.png", picture, "image/png"),
            "mask": ("m.png", half_mask(height, width), "image/png"),
        },
        data={"model": "dall-e-2", "response_format": "b64_json", "size": "256x256"},
    )
    if says:
        assert says in error_of(answer)["message"]
    else:
        assert picture_of(answer).shape == (256, 256, 3)
        assert set(answer.json()) == {"created", "data"}


def test_dalle_gives_an_address_that_can_die(fake: Fake) -> None:
    server = fake("openai")
    grey = encode(PIXELS[:64, :64, 0])
    call: dict[str, Any] = {
        "files": {
            "image": ("a.png", grey, "image/png"),
            "mask": ("m.png", half_mask(64, 64), "image/png"),
        },
        "data": {"model": "dall-e-2"},
    }
    server.next("ok", "expired_url")
    alive = post(server, **call).json()["data"][0]["url"]
    assert httpx.get(alive, trust_env=False, verify=False).headers["content-type"] == "image/png"
    dead = post(server, **call).json()["data"][0]["url"]
    assert httpx.get(dead, trust_env=False, verify=False).status_code == 403


@pytest.mark.parametrize(
    ("behaviour", "status", "code", "stage"),
    [
        ("refuse", 400, "moderation_blocked", "input"),
        ("moderation_blocked", 400, "moderation_blocked", "input"),
        ("moderation_output", 400, "moderation_blocked", "output"),
        ("moderation_plain", 400, "moderation_blocked", None),
        ("content_policy", 400, "content_policy_violation", None),
        ("insufficient_quota", 429, "insufficient_quota", None),
        ("billing", 400, "billing_hard_limit_reached", None),
        ("unverified", 403, None, None),
        ("429", 429, "rate_limit_exceeded", None),
        ("500", 500, None, None),
        ("503", 503, None, None),
    ],
)
def test_each_refusal_and_fault_has_the_makers_shape(
    fake: Fake, behaviour: str, status: int, code: str | None, stage: str | None
) -> None:
    server = fake("openai")
    server.next(behaviour)
    answer = post(server)
    assert answer.status_code == status
    assert error_of(answer)["code"] == code
    assert error_of(answer).get("moderation_details", {}).get("moderation_stage") == stage


def test_a_429_names_its_wait_in_headers_or_only_in_its_sentence(fake: Fake) -> None:
    server = fake("openai")
    server.next("429", "429_sentence")
    named, said = post(server), post(server)
    assert (named.headers["retry-after"], named.headers["retry-after-ms"]) == ("1", "1000")
    assert "retry-after" not in said.headers
    assert "try again in 1s" in error_of(said)["message"]


def test_a_wrong_key_is_echoed_in_part_as_the_maker_does(fake: Fake) -> None:
    answer = post(fake("openai"), key="sk-abcdefghijklmnop")
    assert answer.status_code == 401
    assert error_of(answer)["code"] == "invalid_api_key"
    assert "sk-abcde" in error_of(answer)["message"]
    assert "fghijklm" not in answer.text


def test_no_key_is_a_401_of_its_own_wording(fake: Fake) -> None:
    server = fake("openai")
    answer = httpx.post(f"{server.url}/v1/images/edits", trust_env=False, verify=False)
    assert answer.status_code == 401
    assert "didn't provide" in error_of(answer)["message"]


def test_a_200_may_hold_an_unchanged_picture_another_size_or_none(fake: Fake) -> None:
    server = fake("openai")
    server.next("unchanged", "other_size", "no_picture")
    assert base64.b64decode(post(server).json()["data"][0]["b64_json"]) == SMALL
    assert picture_of(post(server, data={"size": "1024x1024"})).shape == (512, 512, 3)
    assert post(server).json()["data"] == []


def test_newer_models_take_free_sizes_and_more_qualities(fake: Fake) -> None:
    answer = post(
        fake("openai"),
        data={"model": "gpt-image-2.5-flare", "size": "816x1024", "quality": "xhigh"},
    )
    assert picture_of(answer).shape == (1024, 816, 3)


def test_several_pictures_go_up_as_a_list(fake: Fake) -> None:
    server = fake("openai")
    answer = httpx.post(
        f"{server.url}/v1/images/edits",
        files=[("image[]", ("a.png", SMALL, "image/png")), ("image[]", ("b.png", SMALL, "image/png"))],
        data={"prompt": "both", "n": "2", "output_format": "webp"},
        headers={"authorization": f"Bearer {server.key}"},
        trust_env=False, verify=False,
    )  # fmt: skip
    assert len(answer.json()["data"]) == 2
    assert set(server.seen[-1].files) == {"image[]", "image[]#2"}
    assert base64.b64decode(answer.json()["data"][0]["b64_json"])[8:12] == b"WEBP"


def test_nothing_it_says_repeats_the_picture(fake: Fake) -> None:
    server = fake("openai")
    wrong = post(server, files={"image": ("a.png", SMALL, "text/plain")})
    assert base64.b64encode(SMALL[100:160]).decode() not in json.dumps(wrong.json())
    assert cv2.imdecode(np.frombuffer(wrong.content, np.uint8), cv2.IMREAD_COLOR) is None
