"""The reference phone agent: its contract, its traps, and a beautify pipeline that does what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
import yaml
from starlette.testclient import TestClient

from adapters.phone.pull import Job as HostJob
from adapters.phone.pull import PullHost
from domain.errors import LikenessError
from domain.faces import Face
from domain.pictures import Picture
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder
from service.phone_agent import beautify, main, nv21, routes
from service.phone_agent.agent import Answer, PhoneAgent, failed
from service.phone_agent.beautify import Strengths
from service.phone_agent.faults import FAULTS, CallEnded
from service.phone_agent.sdk import HIGH, LOW, Frame, Sdk
from service.phone_agent.thermal import STATES, Load, Script, thermal

REPO = Path(__file__).resolve().parents[2]
SAMPLE = REPO / "samples/phone_agent"
PORTRAITS = REPO / "samples/portraits/images"
TONES = ("I", "III", "IV", "V", "VI")
SIZE = (384, 512)


def pixels_of(name: str, size: tuple[int, int] = SIZE) -> np.ndarray:
    pixels = open_picture(PORTRAITS / name).pixels
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def png(pixels: np.ndarray) -> bytes:
    return bytes(cv2.imencode(".png", pixels[..., ::-1])[1].tobytes())


@pytest.fixture(scope="module")
def finder() -> Iterator[FaceFinder]:
    made = FaceFinder()
    yield made
    made.close()


@pytest.fixture(scope="module")
def face(finder: FaceFinder) -> Face:
    found = finder.find(Picture(pixels_of("id01_beard_stubble.jpg"))).face
    assert found is not None
    return found


@pytest.fixture(scope="module")
def agent() -> Iterator[PhoneAgent]:
    made = PhoneAgent(Sdk())
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(agent: PhoneAgent) -> Iterator[TestClient]:
    with TestClient(routes.app(agent, "token")) as made:
        made.headers["Authorization"] = "Bearer token"
        yield made


@pytest.fixture(scope="module")
def contract() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.safe_load((SAMPLE / "openapi.yaml").read_text("utf-8"))
    return loaded


def post(client: TestClient, said: Any = None, body: bytes | None = None, **changes: Any) -> Any:
    parameters = said if isinstance(said, str) else json.dumps(said or {})
    data = png(pixels_of("id01_base.jpg")) if body is None else body
    files = {
        "parameters": (None, parameters),
        "picture": ("p", data, changes.pop("media_type", "image/png")),
    }
    return client.post("/v1/edits", files=files, **changes)


# --- the contract -------------------------------------------------------------------------------


def mistakes(value: Any, schema: Mapping[str, Any], contract: Mapping[str, Any]) -> list[str]:
    """Where ``value`` is not what ``schema`` says, for the part of JSON Schema that the file uses."""
    if "$ref" in schema:
        found: Any = contract
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return mistakes(value, found, contract)
    kinds = {
        "object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
        "number": int | float,
    }  # fmt: skip
    wrong = []
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return [f"{value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{value!r} is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        wrong.append(f"{value!r} does not match {schema['pattern']}")
    wrong += [f"{name} is missing" for name in schema.get("required", []) if name not in value]
    if isinstance(value, dict):
        for name, inner in value.items():
            own = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if own is False:
                wrong.append(f"{name} is not in the contract")
            elif isinstance(own, dict):
                wrong += mistakes(inner, own, contract)
    if isinstance(value, list):
        for inner in value:
            wrong += mistakes(inner, schema.get("items", {}), contract)
    return wrong


def test_capabilities_are_what_the_contract_says(
    client: TestClient, contract: Mapping[str, Any]
) -> None:
    schema = contract["components"]["schemas"]["Capabilities"]
    able = client.get("/v1/capabilities").json()
    assert mistakes(able, schema, contract) == []
    assert set(able) == set(schema["properties"])
    assert mistakes({**able, "thermal_state": "warm"}, schema, contract) != []
    assert able["quality_mode"] == "LOW_POWER"


def test_an_edit_answers_with_the_headers_of_the_contract(
    client: TestClient, contract: Mapping[str, Any]
) -> None:
    reply = post(client, {"quality_mode": HIGH, "request_id": "r7"})
    assert reply.status_code == 200
    headers = contract["components"]["responses"]["Edited"]["headers"]
    for name, rule in headers.items():
        assert name in reply.headers, name
        assert mistakes(reply.headers[name], rule["schema"], contract) == []
    assert reply.headers["x-request-id"] == "r7"
    assert client.get("/v1/capabilities").json()["quality_mode"] == HIGH


@pytest.mark.parametrize("code", FAULTS)
def test_every_fault_is_a_problem_of_the_contract(code: str, contract: Mapping[str, Any]) -> None:
    answer = failed(CallEnded(code))
    schema = contract["components"]["schemas"]["Problem"]
    problem = json.loads(answer.body)
    assert mistakes(problem, schema, contract) == []
    assert str(answer.status) in contract["paths"]["/v1/edits"]["post"]["responses"]
    assert code in schema["description"]
    assert ("Retry-After" in answer.headers) == problem["retryable"]
    if problem["kind"] != "device":
        assert not problem["retryable"]


def test_the_paths_of_the_contract_are_the_agents_and_the_hosts(
    agent: PhoneAgent, contract: Mapping[str, Any]
) -> None:
    served = {route.path for route in routes.app(agent).routes}  # type: ignore[attr-defined]
    pull = {path for path in contract["paths"] if path.startswith("/v1/device/")}
    assert set(contract["paths"]) == served | pull
    assert len(pull) == 3


def test_the_picture_may_be_the_bare_body_with_the_parameters_in_a_header(
    client: TestClient,
) -> None:
    pixels = pixels_of("id01_base.jpg")
    said = {"colour_format": "nv21", "width": SIZE[0], "height": SIZE[1], "quality_mode": HIGH}
    reply = client.post(
        "/v1/edits",
        content=nv21.pack(pixels),
        headers={"Content-Type": "application/x-nv21", "X-Edit-Parameters": json.dumps(said)},
    )
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/x-nv21"
    assert len(reply.content) == SIZE[0] * SIZE[1] * 3 // 2


@pytest.mark.parametrize(
    ("said", "options", "code"),
    [
        ("{nonsense", {}, "bad_parameters"),
        ("[1]", {}, "bad_parameters"),
        ({"parameters": [1]}, {}, "bad_parameters"),
        ({"qualty_mode": HIGH}, {}, "unknown_parameter"),
        ({"quality_mode": "ULTRA"}, {}, "unknown_quality_mode"),
        ({"parameters": {"glow": 1}}, {}, "unknown_parameter"),
        ({"parameters": {"smooth": 1.5}}, {}, "out_of_range"),
        ({"parameters": {"smooth": True}}, {}, "out_of_range"),
        ({"parameters": {"smooth": "much"}}, {}, "out_of_range"),
        ({"colour_format": "jpeg"}, {}, "unsupported_format"),
        ({}, {"media_type": "image/gif"}, "unsupported_format"),
        ({}, {"body": b"no picture"}, "bad_picture"),
        ({}, {"body": b""}, "bad_picture"),
        ({"colour_format": "nv21"}, {"media_type": "application/x-nv21"}, "bad_size"),
        ({}, {"headers": {"Authorization": "Bearer no"}}, "unauthorized"),
    ],
)
def test_a_mistake_in_a_call_is_told(
    client: TestClient, said: Any, options: dict[str, Any], code: str
) -> None:
    reply = post(client, said, **options)
    assert reply.json()["code"] == code
    assert reply.json()["kind"] == "call"
    assert reply.status_code == FAULTS[code].status


@pytest.mark.parametrize("size", [(512, 512), (48, 64), (384, 640)])
def test_frames_of_another_shape_are_turned_away(client: TestClient, size: tuple[int, int]) -> None:
    reply = post(client, {}, png(pixels_of("id01_base.jpg", size)))
    assert reply.json()["code"] == "bad_size"


def test_a_form_without_a_picture_is_told(client: TestClient) -> None:
    reply = client.post("/v1/edits", files={"parameters": (None, "{}")})
    assert reply.json()["code"] == "bad_parameters"


# --- the device ---------------------------------------------------------------------------------


def frame_of(pixels: np.ndarray) -> Frame:
    return Frame(nv21.pack(pixels), pixels.shape[1], pixels.shape[0])


@pytest.fixture
def sdk() -> Iterator[Callable[..., Sdk]]:
    made: list[Sdk] = []

    def begin(*arguments: Any, **options: Any) -> Sdk:
        made.append(Sdk(*arguments, **options))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_the_default_mode_scales_down_in_silence(sdk: Callable[..., Sdk]) -> None:
    report = sdk().edit(frame_of(pixels_of("id01_base.jpg")), None, Strengths())
    assert (report.mode, report.working) == (LOW, (192, 256))
    assert (report.frame.width, report.frame.height) == SIZE


def test_a_liar_says_high_accuracy_and_gives_the_low_power_picture(
    sdk: Callable[..., Sdk],
) -> None:
    frame = frame_of(pixels_of("id01_base.jpg"))
    honest = sdk().edit(frame, LOW, Strengths())
    lie = sdk(lies=True).edit(frame, HIGH, Strengths())
    assert (lie.mode, lie.working) == (HIGH, SIZE)
    assert lie.frame == honest.frame


def test_the_same_frame_gives_the_same_bytes_again(sdk: Callable[..., Sdk]) -> None:
    frame = frame_of(pixels_of("id01_base.jpg"))
    one, two = sdk(), sdk()
    results = [s.edit(frame, HIGH, Strengths()).frame.data for s in (one, one, two)]
    assert results[0] == results[1] == results[2]
    assert one.model_hash == two.model_hash


def test_warmth_rises_with_work_and_falls_with_time() -> None:
    now = [0.0]
    phone = Load(clock=lambda: now[0])
    seen = [phone.state()]
    for _ in range(10):
        phone.work(100)
        seen.append(phone.state())
    assert seen == sorted(seen, key=STATES.index)
    assert seen[0] == "none"
    assert seen[-1] == "critical"
    now[0] = 600.0
    assert phone.state() == "none"


def test_a_severe_state_throttles_and_a_critical_one_refuses(sdk: Callable[..., Sdk]) -> None:
    frame = frame_of(pixels_of("id01_base.jpg"))
    hot = sdk(HIGH, thermal=Script(["severe", "critical", "none"]))
    report = hot.edit(frame, HIGH, Strengths())
    assert (report.mode, report.thermal_before, report.thermal_after) == (LOW, "severe", "critical")
    with pytest.raises(CallEnded) as end:
        hot.edit(frame, HIGH, Strengths())
    assert end.value.code == "thermal"
    assert hot.edit(frame, HIGH, Strengths()).mode == HIGH


def test_heat_is_written_as_load_or_as_states() -> None:
    assert isinstance(thermal("load:4"), Load)
    assert thermal("none, severe").state() == "none"
    for text, said in (("load:much", "no number"), ("none,warm", "no state 'warm'")):
        with pytest.raises(LikenessError, match=said):
            thermal(text)


def test_a_second_edit_at_once_is_told_busy(agent: PhoneAgent, monkeypatch: Any) -> None:
    started, go_on = threading.Event(), threading.Event()
    usual = agent.sdk.edit

    def slow(*arguments: Any) -> Any:
        started.set()
        go_on.wait(20)
        return usual(*arguments)

    monkeypatch.setattr(agent.sdk, "edit", slow)
    job = agent.read("{}", png(pixels_of("id01_base.jpg")), "image/png")
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(agent.work(job)))
    thread.start()
    assert started.wait(20)
    second = agent.work(job)
    go_on.set()
    thread.join(20)
    assert (second.status, second.headers["Retry-After"]) == (409, "1")
    assert answers[0].status == 200


def test_an_sdk_that_crashes_is_an_answer_without_its_inner_words(
    agent: PhoneAgent, monkeypatch: Any
) -> None:
    def crash(*_: Any) -> None:
        raise RuntimeError("private words")

    monkeypatch.setattr(agent.sdk, "edit", crash)
    answer = agent.work(agent.read("{}", png(pixels_of("id01_base.jpg")), "image/png"))
    assert answer.status == 500
    assert json.loads(answer.body)["detail"] == "RuntimeError"


# --- the pipeline -------------------------------------------------------------------------------


def test_no_strength_at_all_leaves_the_picture_as_it_is(face: Face) -> None:
    pixels = face.picture.pixels
    assert np.array_equal(beautify.beautify(pixels, face.points, Strengths(0, 0, 0, 0)), pixels)
    assert np.array_equal(beautify.beautify(pixels, None, Strengths()), pixels)


def cheek(face: Face) -> tuple[slice, slice]:
    x, y = (face.points[2] + face.points[31]) / 2
    reach = round(0.2 * face.ied)
    return slice(round(y) - reach, round(y) + reach), slice(round(x) - reach, round(x) + reach)


def roughness(pixels: np.ndarray) -> float:
    return float(cv2.Laplacian(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), cv2.CV_64F).var())


def test_smoothing_takes_stubble_and_keeps_eyes_and_background(face: Face) -> None:
    pixels = face.picture.pixels
    done = beautify.beautify(pixels, face.points, Strengths(1, 0, 0, 0))
    assert roughness(done[cheek(face)]) < 0.6 * roughness(pixels[cheek(face)])
    x0, y0 = face.points[36:48].min(axis=0).round().astype(int)
    x1, y1 = face.points[36:48].max(axis=0).round().astype(int)
    assert roughness(done[y0:y1, x0:x1]) > 0.6 * roughness(pixels[y0:y1, x0:x1])
    assert np.array_equal(done[:40, :40], pixels[:40, :40])


def test_whitening_lifts_the_skin_more_with_strength_and_nothing_beside_it(face: Face) -> None:
    pixels = face.picture.pixels
    levels = []
    for strength in (0.0, 0.3, 1.0):
        done = beautify.beautify(pixels, face.points, Strengths(0, strength, 0, 0))
        levels.append(done[cheek(face)].mean())
        assert np.array_equal(done[:40, :40], pixels[:40, :40])
    assert levels[0] < levels[1] - 3 < levels[2] - 6


@pytest.mark.parametrize("what", ["eyes", "jaw"])
def test_the_warps_do_to_the_landmarks_what_they_are_named_for(
    finder: FaceFinder, what: str
) -> None:
    found = finder.find(Picture(pixels_of("id01_base.jpg", (720, 960)))).face
    assert found is not None

    def figures(face: Face) -> tuple[float, float]:
        p = face.points
        opening = np.hypot(*(p[37] - p[41])) + np.hypot(*(p[44] - p[46]))
        return float(opening / face.ied), float(np.hypot(*(p[4] - p[12])) / face.ied)

    strengths = Strengths(0, 0, **{"eyes": 0.0, "jaw": 0.0, what: 0.7})
    done = beautify.beautify(found.picture.pixels, found.points, strengths)
    after = finder.find(Picture(done)).face
    assert after is not None
    (eyes, jaw), (eyes_after, jaw_after) = figures(found), figures(after)
    if what == "eyes":
        assert eyes_after > 1.05 * eyes
        assert jaw_after == pytest.approx(jaw, rel=0.03)
    else:
        assert jaw_after < 0.97 * jaw
        assert eyes_after == pytest.approx(eyes, rel=0.1)  # a slim face misleads the finder


@pytest.mark.parametrize("tone", TONES)
def test_the_skin_of_every_tone_is_found_by_its_own_colour(finder: FaceFinder, tone: str) -> None:
    found = finder.find(Picture(pixels_of(f"id01_skin_tone_{tone}.jpg"))).face
    assert found is not None
    mask = beautify.skin_mask(found.picture.pixels, found.points)
    assert mask[cheek(found)].mean() > 0.5
    assert mask[:30].mean() < 0.02
    eye = found.points[36:42].mean(axis=0).round().astype(int)
    assert mask[eye[1], eye[0]] < 0.2


# --- as a program -------------------------------------------------------------------------------


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SAMPLE / "agent.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=30)


def test_the_sample_runs_as_a_program_of_its_own() -> None:
    process = started("--port", "0", "--fail", "low_battery")
    assert process.stdout is not None
    try:
        url = process.stdout.readline().split()[-1]
        assert httpx.get(f"{url}/v1/ping", timeout=30).json() == {"ok": True, "contract": "1.0"}
        body = {"picture": ("p", png(pixels_of("id01_base.jpg")), "image/png")}
        codes = [
            httpx.post(f"{url}/v1/edits", files=body, timeout=60).status_code for _ in range(2)
        ]
        assert codes == [503, 200]
    finally:
        ended(process)


def test_the_sample_asks_a_host_for_work(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("shared-token\n", encoding="utf-8")
    host = PullHost("127.0.0.1:0", "shared-token", max_bytes=10_000_000)
    process = started("--pull", host.url, "--token-file", str(tmp_path / "token"))
    try:
        able = host.call(HostJob("capabilities", "{}", b"", ""), wait_s=60, total_s=90)
        assert able.json()["contract"] == "1.0"
        said = json.dumps({"quality_mode": HIGH})
        edit = HostJob("edit", said, png(pixels_of("id01_base.jpg")), "image/png")
        done = host.call(edit, wait_s=60, total_s=90)
        assert (done.status, done.headers["x-quality-mode"]) == (200, HIGH)
        assert host.device == "reference"
    finally:
        ended(process)
        host.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail", "explode"], "--fail: no 'explode'; known: ok, low_power"),
        (["--thermal", "warm"], "--thermal: no state 'warm'"),
        (["--token-file", "no/such/file"], "No such file"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
