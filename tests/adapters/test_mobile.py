"""The phone tool against the reference agent: the quality mode, the frame, the colours, the error tree."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from adapters import mobile
from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter
from adapters.phone.answers import THROTTLED
from adapters.phone.nv21 import to_nv21
from domain.edits import Edited, EditOutcome, Failed, Refused
from domain.errors import LikenessError
from domain.pictures import Picture
from domain.sizing import SizeRule
from preprocess.crop import LARYNX_REACH, fit_to_tool, grow_box
from service.fake_servers.contract import FakeServer
from service.phone_agent import agent, faults, thermal
from service.phone_agent.agent import PhoneAgent
from service.phone_agent.sdk import Frame, Sdk
from tests.adapters.phone_portraits import SIZE, portrait, request

Fake = Callable[..., FakeServer]


@pytest.fixture
def phone(fake: Fake) -> FakeServer:
    return fake("phone")


@pytest.fixture
def build(phone: FakeServer) -> Iterator[Callable[..., Adapter]]:
    made: list[Adapter] = []

    def begin(**settings: Any) -> Adapter:
        made.append(mobile.build({"base_url": phone.url, "key": SecretStr(phone.key), **settings}))
        return made[-1]

    yield begin
    for tool in made:
        tool.close()


def edits_of(phone: FakeServer) -> list[Mapping[str, Any]]:
    return [json.loads(s.fields["parameters"]) for s in phone.seen if s.path == "/v1/edits"]


def why(outcome: EditOutcome) -> str:
    assert isinstance(outcome, Failed), type(outcome)
    return outcome.reason


# --- the quality mode ---------------------------------------------------------------------------


def test_trap_the_default_mode_is_low_power_so_high_accuracy_is_set_with_every_edit(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    first, second = tool.edit(request()), tool.edit(request())
    assert [e["quality_mode"] for e in edits_of(phone)] == ["HIGH_ACCURACY"] * 2
    for outcome in (first, second):
        assert isinstance(outcome, Edited), outcome.meta
        assert outcome.meta["returned"]["quality_mode"] == "HIGH_ACCURACY"
        assert outcome.meta["returned"]["working_size"] == "384x512"
        assert outcome.meta["fine_detail_kept"] > 0.8


def test_the_mode_that_is_set_is_asked_of_the_device_once_and_again_when_something_changed(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    for play in ("ok", "ok", "new_model", "ok"):
        phone.next(play)
        assert isinstance(tool.edit(request()), Edited)
    asked = [s.path for s in phone.seen]
    edit, able = "/v1/edits", "/v1/capabilities"
    assert asked == [able, edit, able, edit, edit, able, edit]


def test_trap_an_answer_in_low_power_is_no_result_of_the_tool(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    phone.next("low_power")
    outcome = build().edit(request())
    assert why(outcome).startswith("the device answered in LOW_POWER, not in HIGH_ACCURACY")
    assert not outcome.retryable
    assert outcome.meta["returned"]["quality_mode"] == "LOW_POWER"


def test_trap_scaling_down_in_silence_is_seen_in_the_picture_whatever_the_device_says(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    phone.next("lies")
    outcome = build().edit(request())
    assert "says HIGH_ACCURACY, but the picture looks scaled down inside" in why(outcome)
    assert outcome.meta["returned"]["quality_mode"] == "HIGH_ACCURACY"
    assert outcome.meta["fine_detail_kept"] < 0.15


@pytest.mark.parametrize("play", ["low_power", "lies"])
def test_who_wants_the_low_power_picture_gets_it_with_a_note(
    phone: FakeServer, build: Callable[..., Adapter], play: str
) -> None:
    phone.next(play)
    outcome = build(require_high_accuracy=False).edit(request())
    assert isinstance(outcome, Edited)
    assert outcome.meta["note"].startswith("the device ")


def test_the_low_power_mode_can_be_the_thing_that_is_audited(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    outcome = build(quality_mode="LOW_POWER").edit(request())
    assert isinstance(outcome, Edited), outcome
    assert outcome.meta["fine_detail_kept"] < 0.15
    assert outcome.meta["returned"]["working_size"] == "192x256"
    assert "note" not in outcome.meta


@pytest.mark.parametrize("transport", ["png", "nv21"])
def test_a_picture_that_comes_back_smaller_is_told(
    build: Callable[..., Adapter], monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    small = Frame(to_nv21(read_rgb(portrait(192, 256))), 192, 256)
    usual = Sdk._work
    monkeypatch.setattr(Sdk, "_work", lambda *a: (small, *usual(*a)[1:]))
    said = "the picture came back at 192x256, not at 384x512"
    assert why(build(transport=transport).edit(request())) == said
    low = build(transport=transport, quality_mode="LOW_POWER").edit(request())
    assert isinstance(low, Edited)
    assert said in low.meta["note"]
    assert read_rgb(low.picture).shape == (256, 192, 3)


def test_a_header_that_promises_millions_of_pixels_is_not_decoded_here(
    build: Callable[..., Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">2I5B", 9000, 9000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    monkeypatch.setattr(agent, "_png", lambda frame: bomb)
    outcome = build().edit(request())
    assert why(outcome) == "the picture came back at 9000x9000, not at 384x512"


def test_a_hot_device_that_slows_down_is_waited_for(
    build: Callable[..., Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thermal.Load, "state", lambda self: "severe")
    outcome = build().edit(request())
    assert "answered in LOW_POWER, not in HIGH_ACCURACY (thermal state severe)" in why(outcome)
    assert (outcome.retryable, outcome.retry_after) == (True, 30.0)
    assert frozenset(thermal.STATES[thermal.THROTTLES :]) == THROTTLED


def test_a_mode_or_format_or_parameter_that_the_device_lacks_is_told_when_the_tool_is_built(
    build: Callable[..., Adapter],
) -> None:
    for settings, said in (
        ({"quality_mode": "ULTRA"}, "no quality mode ULTRA; it has HIGH_ACCURACY, LOW_POWER"),
        ({"parameters": {"smoth": 0.5}}, "no parameter 'smoth'; did you mean 'smooth'"),
        ({"parameters": {"smooth": 3}}, "parameter 'smooth' takes 0 to 1"),
        ({"key": SecretStr("another-token")}, "does not take this token"),
        ({"base_url": "http://127.0.0.1:9"}, "cannot be reached"),
        ({"adb": True}, "one way to the phone is needed"),
    ):
        with pytest.raises(LikenessError, match=said) as error:
            build(**settings)
        assert "\n" not in str(error.value)


def test_parameters_reach_the_sdk_and_change_the_picture(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    none = {"smooth": 0.0, "whiten": 0.0, "eyes": 0.0, "jaw": 0.0}
    plain, strong = (build(parameters=p).edit(request()) for p in (none, none | {"smooth": 1.0}))
    assert isinstance(plain, Edited)
    assert isinstance(strong, Edited)
    before = read_rgb(portrait()).astype(int)
    assert np.abs(read_rgb(plain.picture) - before).mean() < 0.5
    face = (slice(200, 300), slice(150, 230))
    assert np.abs(read_rgb(strong.picture) - before)[face].mean() > 2
    assert edits_of(phone)[1]["parameters"]["smooth"] == 1.0


# --- the frame ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(375, 500), (384, 510), (392, 520)])
def test_trap_sides_that_are_no_multiple_of_16_are_never_sent(
    phone: FakeServer, build: Callable[..., Adapter], size: tuple[int, int]
) -> None:
    outcome = build().edit(request(portrait(*size)))
    assert why(outcome) == f"{size[0]}x{size[1]} is not sent: sides must be multiples of 16"
    assert edits_of(phone) == []


def test_frames_of_another_shape_or_too_small_are_never_sent(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    assert "only 4:3 and 3:4 frames go" in why(tool.edit(request(portrait(512, 512))))
    assert "sides of 64 to 4096 go" in why(tool.edit(request(portrait(48, 64))))
    assert edits_of(phone) == []


@pytest.mark.parametrize(("frame", "aspect"), [("3:4", 0.75), ("4:3", 4 / 3)])
def test_the_tool_asks_for_4_to_3_frames_in_multiples_of_16(
    build: Callable[..., Adapter], frame: str, aspect: float
) -> None:
    tool = build(frame=frame, max_side=1024)
    assert tool.spec.size == SizeRule(multiple=16, min_side=64, max_side=1024, aspect=aspect)


@pytest.mark.parametrize("size", [(1350, 1350), (900, 2000), (2000, 900), (701, 1003)])
@pytest.mark.parametrize("frame", ["3:4", "4:3"])
def test_trap_a_4_to_3_frame_keeps_the_larynx_of_a_tall_neck(
    build: Callable[..., Adapter], size: tuple[int, int], frame: str
) -> None:
    rule = build(frame=frame).spec.size
    width, height = size
    ied = height / 12
    centre, eyes = width / 2, height * 0.45
    points = np.full((68, 2), [centre, eyes + 0.6 * ied])
    points[36:42], points[42:48] = [centre - ied / 2, eyes], [centre + ied / 2, eyes]
    points[8] = [centre, eyes + 2 * ied]
    larynx = np.array([[centre, eyes + (2 + LARYNX_REACH) * ied]])
    box = grow_box((centre - ied, eyes - ied, 2 * ied, 3 * ied), size, points=points)
    fitted = fit_to_tool(Picture(np.zeros((height, width, 3), np.uint8)), box, rule)
    got = fitted.picture
    assert got.width % 16 == got.height % 16 == 0
    assert abs(min(got.width, got.height) - 0.75 * max(got.width, got.height)) <= 8
    x, y = fitted.to_fitted(larynx)[0]
    assert 0 <= x < got.width
    assert 0 <= y < got.height


# --- the colours --------------------------------------------------------------------------------


def test_trap_the_agent_makes_green_chroma_noise_of_sizes_that_are_no_multiple_of_16(
    phone: FakeServer,
) -> None:
    def greenness(width: int, height: int) -> tuple[float, float]:
        pixels = read_rgb(portrait(width, height))
        said = {"colour_format": "nv21", "width": width, "height": height,
                "quality_mode": "HIGH_ACCURACY", "parameters": {"whiten": 0.0}}  # fmt: skip
        reply = httpx.post(
            f"{phone.url}/v1/edits",
            files={
                "parameters": (None, json.dumps(said)),
                "picture": ("frame", to_nv21(pixels), "application/x-nv21"),
            },
            headers={"Authorization": f"Bearer {phone.key}"},
            timeout=30,
        )
        assert reply.status_code == 200, reply.status_code
        luma = np.frombuffer(reply.content[: width * height], np.uint8).reshape(height, width)
        pairs = np.frombuffer(reply.content[width * height :], np.uint8).reshape(-1, width // 2, 2)
        wide = pairs.repeat(2, 0).repeat(2, 1)
        back = cv2.cvtColor(np.dstack([luma, wide]), cv2.COLOR_YCrCb2RGB).astype(float)
        green = back[..., 1] - back[..., [0, 2]].mean(axis=-1)
        was = pixels[..., 1] - pixels[..., [0, 2]].astype(float).mean(axis=-1)
        return float((green - was).mean()), float(np.abs(green - was).mean())

    right, right_noise = greenness(384, 512)
    wrong, wrong_noise = greenness(390, 520)
    assert abs(right) < 2
    assert wrong > 10
    assert wrong_noise > 5 * right_noise


@pytest.mark.parametrize("transport", ["png", "nv21"])
def test_the_error_of_the_colour_format_alone_is_recorded_beside_the_result(
    phone: FakeServer, build: Callable[..., Adapter], transport: str
) -> None:
    none = {"smooth": 0.0, "whiten": 0.0, "eyes": 0.0, "jaw": 0.0}
    outcome = build(transport=transport, parameters=none).edit(request())
    assert isinstance(outcome, Edited)
    change = np.abs(read_rgb(outcome.picture).astype(int) - read_rgb(portrait())).mean(axis=(0, 1))
    alone = outcome.meta["colour_format_error"]
    # a tool that does nothing leaves the colour format's own error and the agent's rounding
    assert change == pytest.approx([alone["red"], alone["green"], alone["blue"]], abs=0.4)


def test_an_nv21_frame_comes_back_as_a_picture_and_is_said_to_have_been_one(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    outcome = build(transport="nv21").edit(request())
    assert isinstance(outcome, Edited)
    assert read_rgb(outcome.picture).shape == (512, 384, 3)
    assert "converted from NV21" in outcome.meta["note"]
    assert edits_of(phone)[0] | {"request_id": ""} == {
        "quality_mode": "HIGH_ACCURACY", "colour_format": "nv21", "parameters": {},
        "request_id": "", "width": 384, "height": 512,
    }  # fmt: skip


def test_a_png_goes_up_and_comes_down_untouched(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    outcome = build().edit(request())
    assert isinstance(outcome, Edited)
    assert phone.seen[1].files["picture"] == portrait()
    assert outcome.picture.startswith(b"\x89PNG")


# --- what is recorded ---------------------------------------------------------------------------


def test_thermal_state_sdk_version_and_model_hash_are_recorded_with_every_call(
    build: Callable[..., Adapter],
) -> None:
    tool = build()
    outcome = tool.edit(request())
    returned = outcome.meta["returned"]
    assert returned["thermal_before"] == returned["thermal_after"] == "none"
    assert returned["sdk_version"] == "2.4.1"
    assert len(returned["model_hash"]) == 64
    assert int(returned["sdk_ms"]) >= 0
    assert outcome.meta["model"] == tool.model
    assert returned["model_hash"][:12] in tool.model
    assert outcome.meta["request_id"] == outcome.meta["sent"]["request_id"]


def test_a_model_that_changes_during_the_run_is_in_the_model_string(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    before = tool.edit(request()).meta["returned"]["model_hash"]
    phone.next("new_model")
    outcome = tool.edit(request())
    after = outcome.meta["returned"]["model_hash"]
    assert before != after
    assert outcome.meta["model"].endswith(
        f"model {after[:12]} (was {before[:12]} when this run began)"
    )


def test_a_flat_picture_cannot_be_checked_and_a_picture_without_a_face_is_told(
    build: Callable[..., Adapter],
) -> None:
    flat = write_png(np.full((SIZE[1], SIZE[0], 3), 128, np.uint8))
    outcome = build().edit(request(flat))
    assert isinstance(outcome, Edited)
    assert outcome.meta["fine_detail_kept"] is None
    assert "too little fine detail" in outcome.meta["note"]
    assert "the SDK found no face" in outcome.meta["note"]


# --- the error tree -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("play", "wait"),
    [("busy", 1), ("locked", 5), ("thermal", 30), ("low_battery", 300), ("sdk_crashed", 2)],
)
def test_a_devices_trouble_is_worth_another_try_after_the_time_it_names(
    phone: FakeServer, build: Callable[..., Adapter], play: str, wait: float
) -> None:
    phone.next(play)
    outcome = build().edit(request())
    assert why(outcome).startswith("the device: ")
    assert outcome.retryable
    assert outcome.retry_after == wait


@pytest.mark.parametrize("play", ["bad_size", "unknown_parameter", "out_of_range", "bad_picture"])
def test_a_mistake_in_the_call_is_never_sent_again(
    phone: FakeServer, build: Callable[..., Adapter], play: str
) -> None:
    phone.next(play)
    outcome = build().edit(request())
    assert play in why(outcome)
    assert not outcome.retryable


def test_a_picture_the_sdk_will_not_edit_is_a_refusal(fake: Fake) -> None:
    phone = fake("phone", refuse=lambda picture: picture == portrait())
    tool = mobile.build({"base_url": phone.url, "key": SecretStr(phone.key)})
    outcome = tool.edit(request())
    other = tool.edit(request(portrait(240, 320)))
    tool.close()
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("input", "refused")
    assert isinstance(other, Edited)


def test_a_device_that_is_lost_three_times_running_ends_the_run(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    phone.next("device_lost", "device_lost", "ok", "device_lost", "device_lost", "device_lost")
    stops = [bool(tool.edit(request()).meta.get("stop")) for _ in range(6)]
    assert stops == [False] * 5 + [True]


def test_an_agent_that_is_gone_is_a_failure_and_after_three_calls_the_end(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    tool = build()
    phone.close()
    outcomes = [tool.edit(request()) for _ in range(3)]
    assert all("cannot be reached" in why(outcome) for outcome in outcomes)
    assert [bool(o.meta.get("stop")) for o in outcomes] == [False, False, True]


def test_what_comes_back_is_named_when_it_is_no_picture(
    phone: FakeServer, build: Callable[..., Adapter]
) -> None:
    phone.next("html")
    assert "text/html, no picture" in why(build().edit(request()))


def test_the_token_is_in_no_reason_even_when_the_server_repeats_it(
    phone: FakeServer, build: Callable[..., Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        faults.FAULTS,  # type: ignore[arg-type]
        "bad_size",
        faults.Fault(400, "call", f"Authorization: Bearer {phone.key}"),
    )
    phone.next("bad_size")
    reason = why(build().edit(request()))
    assert phone.key not in reason
    assert "[key]" in reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contract": "2.0"}, "speaks contract 2.0; known: 1.x"),
        ({"model_hash": None}, "cannot be read \\(model_hash\\)"),
        ({"sides_multiple": 0}, "cannot be read \\(sides_multiple\\)"),
        ({"colour_formats": ["nv21"]}, "does not take png frames"),
    ],
)
def test_an_agent_that_speaks_another_contract_is_told_in_one_line(
    build: Callable[..., Adapter],
    monkeypatch: pytest.MonkeyPatch,
    change: Mapping[str, Any],
    said: str,
) -> None:
    usual = PhoneAgent.capabilities
    monkeypatch.setattr(PhoneAgent, "capabilities", lambda self: usual(self) | change)
    with pytest.raises(LikenessError, match=said):
        build()
