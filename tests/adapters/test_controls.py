"""The controls do exactly the harm that they announce, to exactly those they announce."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from adapters.codec import read_rgb, write_png
from adapters.contract import build
from domain.edits import Edited, EditRequest, Task
from domain.errors import LikenessError

BOX = (60, 60, 280, 280)


def portrait() -> np.ndarray:
    """Smooth shading with fine grain of one pixel: all its fine detail is known."""
    y, x = np.mgrid[:400, :400].astype(float)
    shade = 120 + 40 * np.sin(x / 90) + 30 * np.cos(y / 110)
    grain = np.random.default_rng(2).normal(0, 12, (400, 400))
    return np.repeat(np.clip(shade + grain, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def request(**attributes: str) -> EditRequest:
    return EditRequest(
        "a", Task.RETOUCH, write_png(portrait()), width=400, height=400, face_box=BOX,
        attributes=attributes,
    )  # fmt: skip


def edited(tool: str, settings: dict[str, object], **attributes: str) -> bytes:
    outcome = build(tool, settings).edit(request(**attributes))
    assert isinstance(outcome, Edited), outcome
    return outcome.picture


def detail_energy(pixels: np.ndarray) -> float:
    inner = pixels[90:310, 90:310, 0].astype(np.float64)
    return float((cv2.Laplacian(inner, cv2.CV_64F)[1:-1, 1:-1] ** 2).mean())


def test_identity_gives_the_very_bytes_back() -> None:
    assert edited("identity", {}) == request().picture


def test_reencode_is_a_jpeg_of_the_quality_asked_for() -> None:
    data = edited("reencode", {})
    assert data[:2] == b"\xff\xd8"
    fine = len(edited("reencode", {"quality": 98}))
    assert len(edited("reencode", {"quality": 40})) < len(data) < fine
    assert np.abs(read_rgb(data).astype(int) - portrait()).mean() < 4


@pytest.mark.parametrize("strength", [0.25, 0.5, 0.75])
def test_the_harm_takes_the_announced_share_of_detail(strength: float) -> None:
    harmed = read_rgb(edited("uniform_harm", {"strength": strength}))
    ratio = detail_energy(harmed) / detail_energy(portrait())
    assert math.log2(ratio) == pytest.approx(math.log2(1 - strength), abs=0.03)


def test_the_harm_stays_inside_the_face_box() -> None:
    harmed = read_rgb(edited("uniform_harm", {"strength": 0.9}))
    outside = np.ones((400, 400), dtype=bool)
    x, y, width, height = BOX
    outside[y : y + height, x : x + width] = False
    assert np.array_equal(harmed[outside], portrait()[outside])


def test_no_strength_is_no_harm() -> None:
    assert np.array_equal(read_rgb(edited("uniform_harm", {"strength": 0})), portrait())


def test_group_harm_falls_on_the_named_group_only() -> None:
    settings = {"attribute": "gender", "value": "woman"}
    original = request().picture
    assert edited("group_harm", settings, gender="man") == original
    assert edited("group_harm", settings) == original
    assert edited("group_harm", settings, gender="Woman ") == edited("uniform_harm", {})


@pytest.mark.parametrize(
    ("tool", "settings", "words"),
    [
        ("group_harm", {}, "tool 'group_harm': setting 'value' is missing"),
        ("uniform_harm", {"strenght": 1}, "unknown setting 'strenght'; did you mean 'strength'?"),
        ("uniform_harm", {"strength": 3}, "setting 'strength': Input should be less than or equal"),
        ("identity", {"a": 1}, "tool 'identity': unknown setting 'a'"),
    ],
)
def test_a_wrong_setting_is_named(tool: str, settings: dict[str, object], words: str) -> None:
    with pytest.raises(LikenessError) as caught:
        build(tool, settings)
    assert words in str(caught.value)
