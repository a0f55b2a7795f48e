"""Known answers for what happens at a mask's edge."""

from __future__ import annotations

import numpy as np
import pytest

from adapters.diffusion.compositing import (
    composite,
    drift,
    edge_figures,
    pad_to_multiple,
    seam_step,
)


def flat(level: int, side: int = 12) -> np.ndarray:
    return np.full((side, side, 3), level, dtype=np.uint8)


def right_half(side: int = 12) -> np.ndarray:
    mask = np.zeros((side, side), dtype=np.uint8)
    mask[:, side // 2 :] = 255
    return mask


@pytest.mark.parametrize(
    ("size", "padded"), [((8, 16), (8, 16)), ((9, 15), (16, 16)), ((1, 1), (8, 8))]
)
def test_sides_are_brought_to_the_next_multiple(
    size: tuple[int, int], padded: tuple[int, int]
) -> None:
    assert pad_to_multiple(np.zeros((*size, 3), np.uint8), 8, 1).shape[:2] == padded
    assert pad_to_multiple(np.zeros((*size, 3), np.uint8), 8, 20).shape[:2] == (24, 24)


def test_padding_repeats_the_edge_and_a_cut_undoes_it() -> None:
    pixels = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    padded = pad_to_multiple(pixels, 8, 8)
    assert np.array_equal(padded[:5, :6], pixels)
    assert (padded[:5, 6:] == pixels[:, -1:]).all()
    assert (padded[5:] == padded[4]).all()


def test_the_seam_fades_inward_in_known_steps_and_protects_to_the_edge() -> None:
    mixed = composite(flat(0), flat(100), right_half(), seam=3)
    assert mixed[5, :, 0].tolist() == [0] * 6 + [25, 50, 75, 100, 100, 100]
    hard = composite(flat(0), flat(100), right_half(), seam=0)
    assert hard[5, :, 0].tolist() == [0] * 6 + [100] * 6


def test_a_mask_that_is_white_all_over_gives_the_painted_picture() -> None:
    whole = np.full((12, 12), 255, dtype=np.uint8)
    assert np.array_equal(composite(flat(0), flat(100), whole, seam=8), flat(100))
    assert edge_figures(flat(0), flat(100), flat(100), whole) == {}


def test_a_grey_mask_mixes_in_proportion() -> None:
    grey = np.full((12, 12), 51, dtype=np.uint8)  # a fifth
    assert np.array_equal(composite(flat(0), flat(100), grey, seam=0), flat(20))


def test_drift_counts_only_what_is_protected() -> None:
    painted = flat(100)
    painted[:3, :6] = 110  # a quarter of the protected half, 10 levels off
    painted[3, :6, 0] = 102  # two levels: noise, not a change
    found = drift(flat(100), painted, right_half())
    assert found is not None
    assert found.changed == pytest.approx(3 / 12)
    assert found.most == 10
    assert found.mean == pytest.approx((3 * 10 + 2 / 3) / 12)
    assert drift(flat(100), flat(0), np.full((12, 12), 255, np.uint8)) is None


def test_a_seam_is_the_step_across_the_edge_and_nothing_else() -> None:
    picture = flat(10)
    picture[:, 6:] = 40
    picture[:, 9:] = 200  # a step inside the mask is none of the seam's
    assert seam_step(picture, right_half()) == 30
    assert seam_step(flat(10), right_half()) == 0
    assert seam_step(picture, np.zeros((12, 12), np.uint8)) is None


def test_the_figures_hold_the_seam_before_and_after() -> None:
    painted = flat(90)
    result = composite(flat(30), painted, right_half(), seam=5)
    figures = edge_figures(flat(30), painted, result, right_half())
    assert figures == {
        "raw_drift": {"mean": 60.0, "max": 60, "changed_share": 1.0},
        "seam": {"original": 0.0, "raw": 0.0, "result": 10.0},
    }
