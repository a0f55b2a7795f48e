"""What is wrong with a whole answer is said before any figure is taken."""

from __future__ import annotations

import numpy as np
import pytest

from domain.pictures import Picture
from service import pair_checks


def picture(width: int, height: int, value: int | None = None) -> Picture:
    if value is not None:
        return Picture(np.full((height, width, 3), value, np.uint8))
    rng = np.random.default_rng(0)
    return Picture(rng.integers(0, 255, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize(("level", "word"), [(0, "black"), (255, "white"), (90, "one-colour")])
def test_a_plain_picture_is_called_blank(level: int, word: str) -> None:
    assert f"plain {word}" in str(pair_checks.blank(picture(300, 300, level)))


def test_a_picture_with_content_is_not_blank() -> None:
    assert pair_checks.blank(picture(300, 300)) is None


def test_a_tiny_answer_is_named_with_its_size() -> None:
    said = pair_checks.too_small(picture(512, 512), picture(64, 80))
    assert said is not None and "64 x 80 px" in said
    assert pair_checks.too_small(picture(512, 512), picture(512, 512)) is None


def test_a_small_answer_to_a_small_original_is_no_fault_of_the_tool() -> None:
    assert pair_checks.too_small(picture(90, 90), picture(90, 90)) is None
