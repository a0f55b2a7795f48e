"""The style net restyles whole pictures and gives them back at their size."""

from __future__ import annotations

import numpy as np
import pytest

from adapters.codec import read_rgb, write_png
from adapters.contract import build, discover
from domain.edits import Edited, EditRequest, Failed, Task
from domain.errors import LikenessError


def request(width: int, height: int) -> EditRequest:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], axis=-1)
    return EditRequest(
        "a", Task.RESTYLE, write_png(pixels.astype(np.uint8)), width=width, height=height
    )


@pytest.mark.parametrize("size", [(64, 48), (97, 131), (33, 32), (700, 40)])
def test_the_result_comes_back_at_the_size_sent(size: tuple[int, int]) -> None:
    outcome = build("style_transfer", {}).edit(request(*size))
    assert isinstance(outcome, Edited)
    assert read_rgb(outcome.picture).shape == (size[1], size[0], 3)


def test_strength_mixes_between_original_and_style() -> None:
    original = read_rgb(request(64, 64).picture).astype(float)
    shifts = []
    for strength in (0.0, 0.5, 1.0):
        outcome = build("style_transfer", {"style": 3, "strength": strength}).edit(request(64, 64))
        assert isinstance(outcome, Edited)
        shifts.append(np.abs(read_rgb(outcome.picture) - original).mean())
    assert shifts[0] == 0
    assert shifts[1] == pytest.approx(shifts[2] / 2, rel=0.05)


def test_styles_differ() -> None:
    results = {
        build("style_transfer", {"style": style}).edit(request(48, 48)).picture  # type: ignore[union-attr]
        for style in (0, 7, 25)
    }
    assert len(results) == 3


def test_a_picture_below_the_smallest_side_fails_with_its_size() -> None:
    outcome = build("style_transfer", {}).edit(request(31, 64))
    assert isinstance(outcome, Failed)
    assert outcome.reason == "31x64 is below the tool's smallest side of 32 px"
    assert discover()["style_transfer"][0].size.min_side == 32


def test_style_26_does_not_exist() -> None:
    with pytest.raises(LikenessError, match="setting 'style': Input should be less than or equal"):
        build("style_transfer", {"style": 26})


def test_a_closed_tool_says_so() -> None:
    tool = build("style_transfer", {})
    tool.close()
    assert tool.edit(request(48, 48)) == Failed("the tool was closed")
