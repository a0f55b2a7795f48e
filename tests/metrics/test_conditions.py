"""Pictures that limit the figures are named; good portraits are not."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from domain.pictures import Picture
from metrics.conditions import blockiness, edit_warnings, original_warnings
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import TONES, edited, find, london, rendered, tone, with_pixels
from tests.planted import Pixels, Points, brightness, jpeg, noise

HARD = {
    "upscaled_from_60px.jpg": "soft original",
    "motion_blur.jpg": "soft original",
    "noise_iso.jpg": "noisy original",
    "low_contrast_fog.jpg": "low contrast original",
    "dark_8pct.jpg": "too dark",
    "overexposed.jpg": "of the face is clipped",
    "occl_black_bar_eyes.jpg": "eyes not visible",
    "occl_sunglasses.jpg": "eyes not visible",
    "occl_surgical_mask.jpg": "lower face covered",
}


def read(path: Path) -> Picture:
    return Picture(np.ascontiguousarray(cv2.imread(str(path))[:, :, ::-1]))


@pytest.mark.parametrize(("name", "words"), HARD.items(), ids=HARD)
def test_a_hard_original_is_named(name: str, words: str, data_dir: Path) -> None:
    face = find(read(data_dir / "hard-images" / "faces" / name))
    assert words in " ".join(original_warnings(FacePair(face, face)))


def test_a_printing_screen_is_a_periodic_pattern() -> None:
    def screen(pixels: Pixels, points: Points) -> Pixels:
        y, x = np.indices(pixels.shape[:2])
        dots = np.sin(np.pi * (x + y) / 4) * np.sin(np.pi * (x - y) / 4)
        return np.clip(pixels + 30 * dots[..., None], 0, 255).astype(np.uint8)

    face = rendered("id02_base")
    printed = with_pixels(face, screen(face.picture.pixels, face.points))
    assert "periodic pattern" in " ".join(original_warnings(FacePair(printed, printed)))


def test_no_rendered_tone_gets_a_warning() -> None:
    for group in TONES:
        face = tone("id01", group)
        assert original_warnings(FacePair(face, face)) + edit_warnings(FacePair(face, face)) == []


def test_good_photographs_get_no_warning(data_dir: Path) -> None:
    for stem in ("001_03", "025_03", "042_03", "130_03"):
        face = london(data_dir, stem)
        assert original_warnings(FacePair(face, face)) == [], stem


def test_a_heavily_compressed_edit_is_named_and_a_light_resave_is_not(data_dir: Path) -> None:
    folder = data_dir / "hard-images" / "pairs"
    original = find(read(folder / "kodim04_orig.jpg"))
    blocked = find(read(folder / "jpeg_q25_edit.jpg"))
    assert any("heavily compressed edit" in w for w in edit_warnings(FacePair(original, blocked)))
    assert edit_warnings(edited(rendered("id02_base"), jpeg(75))) == []


def test_a_heavily_compressed_original_is_named() -> None:
    face = rendered("id02_base")
    blocked = with_pixels(face, jpeg(15)(face.picture.pixels, face.points))
    assert "heavily compressed original" in " ".join(original_warnings(FacePair(blocked, blocked)))


def test_bleaching_and_noise_of_the_edit_are_named() -> None:
    face = rendered("id02_skin_tone_I")
    assert "clipped to white" in " ".join(edit_warnings(edited(face, brightness(2.2))))
    assert "noisy edit" in " ".join(edit_warnings(edited(face, noise(15))))


def test_block_edges_are_found_at_any_offset() -> None:
    face = rendered("id02_base")
    pixels = jpeg(15)(face.picture.pixels, face.points)
    moved = np.ascontiguousarray(np.roll(pixels, (3, 5), axis=(0, 1)))
    assert blockiness(face) < 1.2 < 2 < blockiness(with_pixels(face, moved))
