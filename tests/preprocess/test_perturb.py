"""Each disturbance does exactly what its definition says, and does it the same way every time."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from domain.errors import LikenessError
from domain.faces import Face
from domain.pictures import Picture
from domain.plan import Perturbation
from preprocess.perturb import UPPER_FACE_ONLY, perturb

GREY = Picture(np.full((256, 256, 3), 128, dtype=np.uint8), sha256="ab")


def one_pixel(red: int, green: int, blue: int) -> Picture:
    return Picture(np.array([[[red, green, blue]]], dtype=np.uint8))


def with_face(picture: Picture, nose_row: float = 100.4) -> Face:
    points = np.zeros((68, 2))
    points[30] = [50, nose_row]
    return Face(picture, points, (0, 0, 1, 1), "test")


def test_none_is_the_picture_itself() -> None:
    assert perturb(GREY, None, "none") is GREY


def test_noise_has_a_sigma_of_five_percent_of_the_range_and_no_shift() -> None:
    noisy = perturb(GREY, None, "noise", 3, "a").pixels.astype(float) - 128
    assert noisy.std() == pytest.approx(0.05 * 255, rel=0.01)
    assert noisy.mean() == pytest.approx(0, abs=0.1)
    channels = np.corrcoef(noisy.reshape(-1, 3).T)
    assert np.abs(channels - np.eye(3)).max() < 0.02  # each channel has its own noise


def test_noise_depends_on_seed_and_portrait_and_on_nothing_else() -> None:
    first = perturb(GREY, None, "noise", 3, "a").pixels
    perturb(GREY, None, "noise", 9, "z")
    assert np.array_equal(first, perturb(GREY, None, "noise", 3, "a").pixels)
    for seed, portrait in ((4, "a"), (3, "b"), (3, "")):
        assert not np.array_equal(first, perturb(GREY, None, "noise", seed, portrait).pixels)


def test_the_crop_ends_with_the_row_of_the_nose_tip() -> None:
    picture = Picture(np.random.default_rng(0).integers(0, 256, (200, 90, 3), dtype=np.uint8))
    cropped = perturb(picture, with_face(picture), "crop_above_nose")
    assert np.array_equal(cropped.pixels, picture.pixels[:101])
    assert "crop_above_nose" in UPPER_FACE_ONLY


@pytest.mark.parametrize("nose_row", [-1.0, 200.0])
def test_the_crop_needs_a_nose_tip_in_the_picture(nose_row: float) -> None:
    picture = Picture(np.zeros((200, 90, 3), dtype=np.uint8))
    with pytest.raises(LikenessError, match="nose tip"):
        perturb(picture, with_face(picture, nose_row), "crop_above_nose")
    with pytest.raises(LikenessError, match="needs a face"):
        perturb(picture, None, "crop_above_nose")


def test_one_channels_distance_from_luma_changes_by_thirty_percent() -> None:
    # luma of (200, 100, 50) is 0.299*200 + 0.587*100 + 0.114*50 = 124.2
    pixel = one_pixel(200, 100, 50)
    assert perturb(pixel, None, "red_up").pixels.tolist() == [[[223, 100, 50]]]  # 124.2 + 98.54
    assert perturb(pixel, None, "red_down").pixels.tolist() == [[[177, 100, 50]]]  # 124.2 + 53.06
    assert perturb(pixel, None, "green_up").pixels.tolist() == [[[200, 93, 50]]]  # 124.2 - 31.46
    assert perturb(pixel, None, "green_down").pixels.tolist() == [[[200, 107, 50]]]
    assert perturb(pixel, None, "blue_up").pixels.tolist() == [[[200, 100, 28]]]  # 124.2 - 96.46
    assert perturb(pixel, None, "blue_down").pixels.tolist() == [[[200, 100, 72]]]


def test_saturation_is_clipped_not_wrapped() -> None:
    assert perturb(one_pixel(255, 0, 0), None, "red_up").pixels[0, 0, 0] == 255
    assert perturb(one_pixel(255, 255, 0), None, "blue_up").pixels[0, 0, 2] == 0


@pytest.mark.parametrize("name", [n for n in get_args(Perturbation) if n.endswith(("up", "down"))])
def test_a_grey_picture_has_no_saturation_to_change(name: Perturbation) -> None:
    assert np.array_equal(perturb(GREY, None, name).pixels, GREY.pixels)


def test_see_through_pixels_keep_their_white() -> None:
    opaque = np.ones((256, 256), dtype=bool)
    opaque[:10] = False
    pixels = GREY.pixels.copy()
    pixels[:10] = 255
    noisy = perturb(Picture(pixels, opaque=opaque), None, "noise", 1, "a")
    assert (noisy.pixels[:10] == 255).all()
    assert noisy.opaque is opaque


@pytest.mark.parametrize("name", get_args(Perturbation))
def test_the_picture_given_is_never_changed(name: Perturbation) -> None:
    picture = Picture(np.random.default_rng(0).integers(0, 256, (200, 90, 3), dtype=np.uint8))
    before = picture.pixels.copy()
    perturb(picture, with_face(picture), name, 1, "a")
    assert np.array_equal(picture.pixels, before)


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(LikenessError, match="unknown perturbation 'sepia'; known: none, noise"):
        perturb(GREY, None, "sepia")  # type: ignore[arg-type]
