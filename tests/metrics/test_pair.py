"""Both faces of a pair stand on one grid, at one scale, with the same loss."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from domain.faces import Face
from domain.pictures import Picture
from metrics.affine import IDENTITY, compose, invert, resizing
from metrics.pair import REFERENCE_IED, FacePair, luma_of
from metrics.registration import Grid
from metrics.resampling import KEEP, resample
from preprocess.decode import open_picture
from tests import planted
from tests.metrics.portrait_pairs import find, identical, london, rendered, with_pixels


@pytest.fixture(scope="module")
def face() -> Face:
    return rendered("id03_base")


def energy_ratio(pair: FacePair) -> float:
    """Laplacian variance of the inner face, edited over original."""
    low, high = pair.points[17:].min(axis=0).astype(int), pair.points.max(axis=0).astype(int)
    face = (slice(low[1], high[1]), slice(low[0], high[0]))
    one, other = (
        cv2.Laplacian(p, cv2.CV_32F)[face] for p in (pair.original_luma, pair.edited_luma)
    )
    return float(other.var() / one.var())


def zoomed(face: Face, scale: float) -> Face:
    centre = tuple(float(v) for v in face.points.mean(axis=0))
    matrix = cv2.getRotationMatrix2D(centre, 0, scale)
    size = (face.picture.width, face.picture.height)
    out = cv2.warpAffine(face.picture.pixels, matrix, size, flags=cv2.INTER_CUBIC)
    return find(Picture(np.asarray(out, dtype=np.uint8)))


def test_an_identical_pair_is_identical_to_the_last_bit(face: Face) -> None:
    pair = identical(face)
    assert np.array_equal(pair.original_crop, pair.edited_crop)
    assert np.array_equal(pair.original_luma, pair.edited_luma)
    assert np.array_equal(pair.points, pair.edited_points)
    assert np.array_equal(pair.points, pair.landmark_points)
    assert pair.valid.all() and pair.registration.grid is Grid.SAME


@pytest.mark.parametrize("height", [1, 63, 64, 65, 200])
def test_luma_is_the_weighted_sum_of_the_channels(height: int) -> None:
    pixels = np.random.default_rng(height).integers(0, 256, (height, 70, 3), dtype=np.uint8)
    expected = pixels.astype(np.float64) @ [0.299, 0.587, 0.114]
    for part, known in ((pixels, expected), (pixels[:, 5:60], expected[:, 5:60])):
        assert luma_of(part) == pytest.approx(known, abs=1e-4)


def test_all_planes_of_a_pair_have_one_shape(face: Face) -> None:
    pair = identical(face)
    shape = pair.original_crop.shape[:2]
    assert pair.edited_crop.shape == (*shape, 3) == pair.original_crop.shape
    assert pair.original_luma.shape == pair.edited_luma.shape == pair.valid.shape == shape
    assert pair.original_crop.dtype == np.uint8 and pair.original_luma.dtype == np.float32


def test_the_crop_holds_the_face_and_the_strip_under_the_chin(face: Face) -> None:
    pair = identical(face)
    height, width = pair.valid.shape
    assert (pair.points >= 0).all() and (pair.points < (width, height)).all()
    assert height - pair.points[8, 1] > 0.6 * pair.ied
    x, y, w, h = pair.rectangle
    assert np.array_equal(pair.original_crop, face.picture.pixels[y : y + h, x : x + w])


def test_a_large_face_is_shrunk_to_the_working_scale_and_a_small_one_left_alone(
    data_dir: Path,
) -> None:
    picture = open_picture(data_dir / "faces" / "london" / "neutral" / "001_03.jpg")
    pixels = cv2.resize(picture.pixels, None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC)
    large, small = find(Picture(pixels)), london(data_dir, "001_03")
    assert large.ied > REFERENCE_IED
    assert identical(large).ied == pytest.approx(REFERENCE_IED, rel=0.002)
    assert identical(small).scale == 1 and identical(small).ied == small.ied


def test_points_stay_on_their_pixels_when_the_crop_is_shrunk(face: Face) -> None:
    pair = identical(face)
    pair.__dict__["size"] = (pair.rectangle[2] // 2, pair.rectangle[3] // 2)
    marked = face.picture.pixels.copy()
    x, y = np.round(face.points[30]).astype(int)
    marked[y - 3 : y + 4, x - 3 : x + 4] = (255, 0, 255)
    pair.__dict__["original"] = with_pixels(face, marked)
    spot = (pair.original_crop.astype(int) @ [1, -2, 1]) > 300
    centre = np.argwhere(spot).mean(axis=0)[::-1]
    assert np.abs(centre - pair.points[30]).max() < 0.6


@pytest.mark.parametrize("scale", [1.03, 0.8, 1.6])
def test_resampling_does_not_pass_for_a_loss_of_detail(face: Face, scale: float) -> None:
    pair = FacePair(face, zoomed(face, scale))
    assert pair.registration.grid is Grid.RESAMPLED
    assert pair.scale == pytest.approx(KEEP * min(1, scale), abs=0.002)
    lost_by_the_tool = 0.25 if scale < 1 else 0.08
    assert abs(energy_ratio(pair) - 1) < lost_by_the_tool


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("shift_5px", 0.95), ("zoom_3pct", 0.8), ("square_1024", 0.8)])  # fmt: skip
def test_a_moved_hard_pair_keeps_its_texture(data_dir: Path, name: str, least: float) -> None:
    folder = data_dir / "hard-images" / "pairs"
    original = find(open_picture(folder / "hopper_orig.jpg"))
    ratio = energy_ratio(FacePair(original, find(open_picture(folder / f"{name}_edit.jpg"))))
    assert least <= ratio <= 1.1


def test_registered_points_lie_where_the_original_has_them(face: Face) -> None:
    pair = FacePair(face, zoomed(face, 1.2))
    off = np.hypot(*(pair.edited_points - pair.points).T) / pair.ied
    assert off.mean() < 0.015


def test_what_the_edited_picture_does_not_show_is_not_valid(face: Face) -> None:
    x, _, width, _ = identical(face).rectangle
    pixels = np.ascontiguousarray(face.picture.pixels[:, : x + width - 20])
    pair = FacePair(face, find(Picture(pixels)))
    assert not pair.valid[:, -19:].any() and pair.valid[:, :-21].all()
    assert not pair.edited_crop[:, -19:].any()


def test_transparent_pixels_are_not_valid(face: Face) -> None:
    opaque = np.ones(face.picture.pixels.shape[:2], bool)
    x, y, _, _ = identical(face).rectangle
    opaque[y : y + 10, x : x + 30] = False
    clear = Face(Picture(face.picture.pixels, opaque=opaque), face.points, face.box, face.engine)
    for pair in (FacePair(face, clear), FacePair(clear, face)):
        assert not pair.valid[:10, :30].any()
        assert pair.valid[10:].all() and pair.valid[:, 30:].all()


def test_the_notes_say_what_was_done(face: Face) -> None:
    notes = FacePair(face, zoomed(face, 1.2)).notes
    assert any("both pictures were resampled" in note for note in notes)
    assert identical(face).notes == ()


@pytest.mark.data
def test_another_person_is_noted(data_dir: Path) -> None:
    folder = data_dir / "hard-images" / "pairs"
    original = find(open_picture(folder / "hopper_orig.jpg"))
    pair = FacePair(original, find(open_picture(folder / "other_person_edit.jpg")))
    assert any("another person, or redrawn" in note for note in pair.notes)


def test_luma_is_bt601_unrounded() -> None:
    pixels = np.array([[[255, 0, 0], [0, 255, 0], [10, 20, 30]]], np.uint8)
    assert luma_of(pixels)[0] == pytest.approx([76.245, 149.685, 18.15], abs=1e-3)


def test_a_place_outside_the_picture_is_black_and_not_seen() -> None:
    picture = Picture(np.full((20, 20, 3), 200, np.uint8))
    pixels, seen = resample(picture, compose(IDENTITY, invert(resizing(0.5, 0.5))), (20, 20))
    assert seen[:9, :9].all() and not seen[11:].any() and not seen[:, 11:].any()
    assert (pixels[:9, :9] == 200).all() and not pixels[12:].any()
    _, nowhere = resample(picture, np.array([[1.0, 0, 900], [0, 1.0, 900]]), (5, 5))
    assert not nowhere.any()


def test_a_brighter_copy_keeps_its_grid(face: Face) -> None:
    pixels = planted.gamma(0.8)(face.picture.pixels, face.points)
    pair = FacePair(face, find(Picture(pixels)))
    assert np.array_equal(pair.edited_crop, planted.gamma(0.8)(pair.original_crop, pair.points))
