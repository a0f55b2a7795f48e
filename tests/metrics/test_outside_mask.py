"""Drift where the tool was told not to touch, and strength where it was told to act."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from domain.faces import Face
from domain.masks import Mask, MaskKind
from domain.pictures import Picture
from metrics import edit_strength, outside_mask
from metrics.difference import CHANGED_LEVELS
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import edited, figures, identical, rendered, value, with_pixels

BOTH = (outside_mask, edit_strength)


def half_mask() -> Mask:
    """Edit the right half of a 720 x 960 portrait, leave the left half alone."""
    values = np.zeros((960, 720), np.uint8)
    values[:, 360:] = 255
    return Mask(values, MaskKind.BACKGROUND)


def masked(pixels: np.ndarray) -> FacePair:
    face = rendered("id01_base")
    return FacePair(face, with_pixels(face, pixels), half_mask())


def test_a_tool_that_keeps_to_its_mask_has_no_drift_and_shows_its_strength() -> None:
    pixels = rendered("id01_base").picture.pixels.copy()
    pixels[:, 360:] //= 2
    found = figures(masked(pixels), *BOTH)
    assert value(found, "outside_mask_drift") == 0.0
    assert value(found, "outside_mask_changed") == 0.0
    assert value(found, "edit_strength") > 10
    assert value(found, "edit_changed") > 0.95


def test_drift_is_the_mean_difference_in_levels() -> None:
    pixels = np.clip(rendered("id01_base").picture.pixels, 20, 235)
    face = with_pixels(rendered("id01_base"), pixels)
    moved = pixels.copy()
    moved[:, :360] += 7
    found = figures(FacePair(face, with_pixels(face, moved), half_mask()), *BOTH)
    assert value(found, "outside_mask_drift") == pytest.approx(7)
    assert value(found, "outside_mask_changed") == 1.0
    assert value(found, "edit_strength") == 0.0


def test_the_share_of_changed_pixels_counts_pixels() -> None:
    pixels = rendered("id01_base").picture.pixels.copy()
    pixels[:480, :360] = 255 - pixels[:480, :360] // 2
    share = value(figures(masked(pixels), *BOTH), "outside_mask_changed")
    assert share == pytest.approx(0.5, abs=0.02)


def test_rounding_does_not_count_as_change() -> None:
    pixels = np.clip(rendered("id01_base").picture.pixels, 20, 235)
    face = with_pixels(rendered("id01_base"), pixels)
    rounded = with_pixels(face, pixels + np.uint8(CHANGED_LEVELS))
    found = figures(FacePair(face, rounded, half_mask()), *BOTH)
    assert value(found, "outside_mask_changed") == 0.0
    assert value(found, "edit_changed") == 0.0


def test_without_a_mask_there_is_no_drift_but_a_reason() -> None:
    found = figures(identical(rendered("id01_base")), *BOTH)
    assert found["outside_mask_drift", "face"].reason == "the tool was given no mask"
    assert found["outside_mask_changed", "face"].value is None
    assert value(found, "edit_strength") == 0.0


def test_a_mask_that_protects_nothing_or_asks_for_nothing_says_so() -> None:
    face = rendered("id01_base")
    whole, nothing = (np.full((960, 720), level, np.uint8) for level in (255, 0))
    all_white = figures(identical(face, Mask(whole, MaskKind.FACE)), *BOTH)
    all_black = figures(identical(face, Mask(nothing, MaskKind.FACE)), *BOTH)
    assert "protects nothing" in str(all_white["outside_mask_drift", "face"].reason)
    assert "asks for nothing" in str(all_black["edit_strength", "face"].reason)


def test_a_result_of_another_size_is_compared_on_the_face() -> None:
    face = rendered("id01_base")
    small = cv2.resize(face.picture.pixels, (576, 768), interpolation=cv2.INTER_AREA)
    points = (face.points + 0.5) * 0.8 - 0.5
    shrunk = Face(Picture(np.ascontiguousarray(small)), points, face.box, face.engine)
    found = figures(FacePair(face, shrunk, half_mask()), *BOTH)
    assert value(found, "outside_mask_drift") < 2
    assert value(found, "edit_strength") < 1.5


def test_strength_is_the_mean_ciede2000_of_pixels() -> None:
    def tint(pixels: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.rint(pixels * [0.9, 1.0, 0.8]).astype(np.uint8)

    pair = edited(rendered("id02_base"), tint)
    labs = [rgb2lab(crop) for crop in (pair.original_crop, pair.edited_crop)]
    expected = deltaE_ciede2000(*labs).mean()
    found = figures(pair, edit_strength)
    assert value(found, "edit_strength") == pytest.approx(expected, rel=0.04)


def test_an_edit_done_half_as_strongly_measures_weaker() -> None:
    def mix(share: float) -> float:
        def lighten(pixels: np.ndarray, points: np.ndarray) -> np.ndarray:
            return np.rint(pixels + share * 0.3 * (255.0 - pixels)).astype(np.uint8)

        return value(
            figures(edited(rendered("id02_base"), lighten), edit_strength), "edit_strength"
        )

    assert 0.35 * mix(1.0) < mix(0.5) < 0.65 * mix(1.0)
