"""What every tool owes the audit. New adapters are picked up by themselves."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import psutil
import pytest

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, ToolSpec, discover
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.masks import Mask, MaskKind
from domain.sizing import SizeRule

FOUND = discover()
TOOLS = sorted(FOUND)
LOCAL = [t for t in TOOLS if t not in {"precomputed"}]
CHEAP = ["identity", "reencode", "uniform_harm", "group_harm", "precomputed"]


class Poisoned(Mapping[str, str]):
    """Attributes that nobody but a control may look at."""

    def __getitem__(self, key: str) -> str:
        raise AssertionError("the tool read the portrait's attributes")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the tool read the portrait's attributes")

    def __len__(self) -> int:
        raise AssertionError("the tool read the portrait's attributes")


def settings_of(tool: str) -> Mapping[str, Any]:
    """{} unless the adapter documents an example for this suite."""
    example: Mapping[str, Any] = getattr(FOUND[tool][1], "EXAMPLE", {})
    return example


def picture(width: int = 64, height: int = 96) -> bytes:
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(0).integers(0, 40, (height, width, 3))
    ramp = np.stack([x * 2, y * 2, x + y], axis=-1)
    return write_png(np.clip(ramp + noise, 0, 255).astype(np.uint8))


def request_for(spec: ToolSpec, data: bytes | None = None, **changes: Any) -> EditRequest:
    mask = np.zeros((96, 64), dtype=np.uint8)
    mask[40:] = 255
    base = EditRequest(
        item_id="one",
        task=spec.tasks[0],
        picture=picture() if data is None else data,
        width=64,
        height=96,
        seed=7,
        prompt="a plain background",
        mask=Mask(mask, MaskKind.LOWER_FACE),
        face_box=(12, 20, 40, 60),
        original_name="one.png",
        attributes={"gender": "woman"},
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    made = FOUND[request.param][1].build(settings_of(request.param))
    yield made
    made.close()


@pytest.fixture(params=LOCAL)
def local_tool(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    made = FOUND[request.param][1].build(settings_of(request.param))
    yield made
    made.close()


def test_the_tools_of_the_first_delivery_are_found() -> None:
    assert {*CHEAP, "inr", "style_transfer", "command"} <= set(TOOLS)


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
    outcome = local_tool.edit(request_for(local_tool.spec))
    assert isinstance(outcome, Edited), outcome
    assert read_rgb(outcome.picture).shape == (96, 64, 3)


def test_a_deterministic_tool_gives_the_same_bytes_again(tool: Adapter) -> None:
    if not tool.spec.deterministic:
        pytest.skip(f"{tool.spec.id} does not claim to be deterministic")
    twin = FOUND[tool.spec.id][1].build(settings_of(tool.spec.id))
    outcomes = [t.edit(request_for(tool.spec)) for t in (tool, tool, twin)]
    twin.close()
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_the_request_is_left_as_it_was(tool: Adapter) -> None:
    data = picture()
    request = request_for(tool.spec, bytes(data))
    assert request.mask is not None
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
def test_memory_stays_flat_over_twenty_edits(name: str) -> None:
    made = FOUND[name][1].build(settings_of(name))
    request = request_for(made.spec, picture(512, 512), face_box=(100, 100, 300, 300))
    for _ in range(5):
        made.edit(request)
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(20):
        made.edit(request)
    gc.collect()
    assert (
        psutil.Process().memory_info().rss - before < 20_000_000
    )  # one leaked result a call is 16 MB
