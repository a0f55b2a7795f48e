"""What every tool owes the audit. New adapters are picked up by themselves."""

from __future__ import annotations

import dataclasses
import gc
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import psutil
import pytest
from pydantic import SecretStr

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, ToolSpec, discover
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.masks import Mask, MaskKind
from domain.pictures import Picture
from domain.sizing import SizeRule
from preprocess.crop import fit_to_tool
from service.fake_servers.contract import FakeServer

Example = Callable[[str], Mapping[str, Any]]
Fake = Callable[..., FakeServer]
Served = tuple[Adapter, FakeServer]
FOUND = discover()
TOOLS = sorted(FOUND)
LOCAL = [t for t in TOOLS if t not in {"precomputed"} and not FOUND[t][0].remote]
REMOTE = [t for t in TOOLS if FOUND[t][0].remote]
SERVED = [t for t in TOOLS if getattr(FOUND[t][1], "FAKE", "")]
CHEAP = ["identity", "reencode", "uniform_harm", "group_harm", "precomputed"]


class Poisoned(Mapping[str, str]):
    """Attributes that nobody but a control may look at."""

    def __getitem__(self, key: str) -> str:
        raise AssertionError("the tool read the portrait's attributes")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the tool read the portrait's attributes")

    def __len__(self) -> int:
        raise AssertionError("the tool read the portrait's attributes")


@lru_cache
def picture(width: int = 64, height: int = 96) -> bytes:
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(0).integers(0, 40, (height, width, 3))
    ramp = np.stack(
        [x * 128 // width, y * 192 // height, (x + y) * 160 // (width + height)], axis=-1
    )
    return write_png(np.clip(ramp + noise, 0, 255).astype(np.uint8))


def own_size(rule: SizeRule) -> tuple[int, int]:
    """64x96, or what the audit would make of it for a tool that takes no such size."""
    plain = Picture(np.zeros((96, 64, 3), dtype=np.uint8))
    fitted = fit_to_tool(plain, None, rule).picture
    return fitted.width, fitted.height


def request_for(spec: ToolSpec, data: bytes | None = None, **changes: Any) -> EditRequest:
    width, height = own_size(spec.size)
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[height * 2 // 5 :] = 255
    base = EditRequest(
        item_id="one",
        task=spec.tasks[0],
        picture=picture(width, height) if data is None else data,
        width=width,
        height=height,
        seed=7,
        prompt="a plain background",
        mask=Mask(mask, MaskKind.LOWER_FACE),
        face_box=(width // 5, height // 5, width * 3 // 5, height * 3 // 5),
        original_name="one.png",
        attributes={"gender": "woman"},
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest, example: Example) -> Iterator[Adapter]:
    made = FOUND[request.param][1].build(example(request.param))
    yield made
    made.close()


@pytest.fixture(params=LOCAL)
def local_tool(request: pytest.FixtureRequest, example: Example) -> Iterator[Adapter]:
    made = FOUND[request.param][1].build(example(request.param))
    yield made
    made.close()


@pytest.fixture(params=SERVED)
def served(request: pytest.FixtureRequest, example: Example, fake: Fake) -> Iterator[Served]:
    """A tool and a fake server of its own to play tricks on it."""
    module = FOUND[request.param][1]
    server = fake(module.FAKE)  # type: ignore[attr-defined]
    settings = {**example(request.param), "base_url": server.url, "key": SecretStr(server.key)}
    made = module.build(settings)
    yield made, server
    made.close()


def test_the_tools_that_come_with_the_program_are_found() -> None:
    local = {*CHEAP, "inr", "style_transfer", "command", "super_resolution", "stable_diffusion"}
    hosted = {"openai_images", "stability", "gemini", "replicate", "bfl", "http_template"}
    assert local | hosted | {"webui", "comfyui", "mobile"} <= set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_spec_is_frozen_and_complete(name: str) -> None:
    spec = FOUND[name][0]
    assert spec.id == name
    assert spec.name.strip()
    assert spec.licence.strip()
    assert spec.tasks
    assert all(isinstance(task, Task) for task in spec.tasks)
    assert isinstance(spec.size, SizeRule)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.id = "other"  # type: ignore[misc]


def test_a_built_tool_says_which_version_it_is(tool: Adapter) -> None:
    assert tool.model.strip()
    assert tool.spec.id in TOOLS


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"picture": b"\x89PNG\r\n\x1a\nnot really"},
        {"picture": b""},
        {"picture": None},
        {"picture": picture(1, 1), "width": 1, "height": 1, "face_box": (0, 0, 1, 1)},
        {"picture": picture(2, 3), "width": 2, "height": 3, "face_box": None, "mask": None},
        {"seed": 2**63 + 11},
        {"seed": -1},
        {"face_box": (5000, 5000, 10, 10)},
        {"face_box": (-20, -20, 500, 500)},
        {"prompt": "\0; rm -rf {output} $(id) 'x'"},
        {"original_name": ""},
        {"original_name": "../../../etc/passwd"},
        {"mask": None},
    ],
    ids=str,
)
def test_no_request_makes_a_tool_raise(tool: Adapter, change: dict[str, Any]) -> None:
    outcome = tool.edit(request_for(tool.spec, **change))
    assert isinstance(outcome, Edited | Refused | Failed)
    if isinstance(outcome, Failed):
        assert outcome.reason.strip()
        assert "\n" not in outcome.reason


def test_a_result_has_the_size_that_was_sent(local_tool: Adapter) -> None:
    request = request_for(local_tool.spec)
    outcome = local_tool.edit(request)
    assert isinstance(outcome, Edited), outcome
    assert read_rgb(outcome.picture).shape == (request.height, request.width, 3)


def test_a_deterministic_tool_gives_the_same_bytes_again(tool: Adapter, example: Example) -> None:
    if not tool.spec.deterministic:
        pytest.skip(f"{tool.spec.id} does not claim to be deterministic")
    twin = FOUND[tool.spec.id][1].build(example(tool.spec.id))
    outcomes = [t.edit(request_for(tool.spec)) for t in (tool, tool, twin)]
    twin.close()
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_the_request_is_left_as_it_was(tool: Adapter) -> None:
    request = request_for(tool.spec)
    assert request.picture is not None
    assert request.mask is not None
    data = bytes(bytearray(request.picture))  # a copy, not the same object
    mask = request.mask.values.copy()
    tool.edit(request)
    assert request.picture == data
    assert np.array_equal(request.mask.values, mask)


def test_closing_twice_is_harmless(tool: Adapter) -> None:
    tool.close()
    tool.close()


def test_only_controls_may_know_whose_face_it_is(tool: Adapter) -> None:
    if tool.spec.control:
        pytest.skip("a control plants harms by attribute")
    outcome = tool.edit(request_for(tool.spec, attributes=Poisoned()))
    assert not (isinstance(outcome, Failed) and "attributes" in outcome.reason)


@pytest.mark.parametrize("name", CHEAP)
def test_memory_stays_flat_over_twenty_edits(name: str, example: Example) -> None:
    made = FOUND[name][1].build(example(name))
    request = request_for(
        made.spec,
        picture(512, 512),
        width=512,
        height=512,
        face_box=(100, 100, 300, 300),
        mask=None,
    )
    for _ in range(5):
        made.edit(request)
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(20):
        made.edit(request)
    gc.collect()
    grown = psutil.Process().memory_info().rss - before
    assert grown < 20_000_000  # one leaked result a call is 16 MB


@pytest.mark.parametrize("name", REMOTE)
def test_a_remote_tool_says_where_its_key_is_from_and_what_stands_in_for_it(name: str) -> None:
    spec, module = FOUND[name]
    assert getattr(module, "FAKE", ""), "a remote tool is tested against a fake server"
    assert spec.key_env is not None or not spec.key_needed
    assert spec.concurrency >= 1


def test_a_served_tool_brings_back_the_picture_and_says_what_it_sent(served: Served) -> None:
    tool, _ = served
    outcome = tool.edit(request_for(tool.spec))
    assert isinstance(outcome, Edited), outcome
    assert read_rgb(outcome.picture).size
    assert outcome.meta["sent"]


def test_neither_key_nor_picture_is_in_what_a_served_tool_reports(served: Served) -> None:
    tool, server = served
    server.next("ok", "refuse", "500", "html")
    for _ in range(4):
        outcome = tool.edit(request_for(tool.spec))
        said = getattr(outcome, "reason", "") or getattr(outcome, "text", "")
        told = json.dumps(dict(outcome.meta)) + said
        assert server.key not in told
        assert len(told) < 5000  # a picture of 64x96 noisy pixels is 20 kB at least


@pytest.mark.parametrize("trouble", ["429", "503", "truncated"])
def test_a_passing_fault_is_worth_another_try(served: Served, trouble: str) -> None:
    tool, server = served
    server.next(trouble)
    outcome = tool.edit(request_for(tool.spec))
    assert isinstance(outcome, Failed), outcome
    assert outcome.retryable
    assert isinstance(tool.edit(request_for(tool.spec)), Edited)


@pytest.mark.parametrize("trouble", ["html", "empty", "500"])
def test_an_answer_that_is_no_picture_is_a_failure_with_a_reason(
    served: Served, trouble: str
) -> None:
    tool, server = served
    server.next(trouble)
    outcome = tool.edit(request_for(tool.spec))
    assert isinstance(outcome, Failed), outcome
    assert outcome.reason.strip()
    assert not outcome.meta.get("stop")


def test_a_skewed_server_clock_is_noted(served: Served) -> None:
    tool, server = served
    server.next("skewed")
    outcome = tool.edit(request_for(tool.spec))
    assert isinstance(outcome, Edited), outcome
    assert outcome.meta["clock_skew_s"] == pytest.approx(600, abs=3)


def test_a_wrong_key_stops_the_run_and_is_not_repeated(served: Served, example: Example) -> None:
    tool, server = served
    if not tool.spec.key_needed:
        pytest.skip(f"{tool.spec.id} works without a key")
    wrong = {"base_url": server.url, "key": SecretStr("wrong-key-abcdefghijkl")}
    other = FOUND[tool.spec.id][1].build({**example(tool.spec.id), **wrong})
    outcome = other.edit(request_for(tool.spec))
    other.close()
    assert isinstance(outcome, Failed)
    assert outcome.meta["stop"] is True
    assert "abcdefgh" not in outcome.reason
