"""A face is found again wherever the tool put it, and an untouched pixel grid stays untouched."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.transform import SimilarityTransform

from domain.faces import Face
from domain.pictures import Picture
from metrics.affine import (
    IDENTITY,
    apply,
    compose,
    invert,
    magnification,
    resizing,
    scaling,
    shifting,
)
from metrics.refinement import _sample
from metrics.registration import MIRROR_ORDER, Grid, mirrored, register, umeyama
from preprocess.decode import open_picture
from tests import planted
from tests.metrics.portrait_pairs import find, rendered, with_pixels

BENIGN_ON_THE_SAME_GRID = (
    "jpeg 92", "jpeg 75", "jpeg 40", "half size and back", "gamma 0.8", "half brightness",
    "noise sigma 15", "blur 0.01 IED", "blur 0.02 IED",
)  # fmt: skip


@pytest.fixture(scope="module")
def face() -> Face:
    return rendered("id03_base")


@given(st.integers(4, 40), st.integers(4, 40), st.integers(1, 3))
def test_sampling_without_a_turn_gives_the_pixels_themselves(x: int, y: int, step: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (150, 140, 3), dtype=np.uint8)
    sampled = _sample(Picture(pixels), compose(shifting(x, y), resizing(step, step)), (20, 24))
    luma = cv2.cvtColor(pixels[y : y + 24 * step, x : x + 20 * step], cv2.COLOR_RGB2GRAY)
    assert np.array_equal(sampled, cv2.resize(luma, (20, 24), interpolation=cv2.INTER_AREA))


def moved(face: Face, matrix: np.ndarray, size: tuple[int, int] | None = None) -> Face:
    """The face found afresh in its picture after a known map of its pixels."""
    pixels = face.picture.pixels
    out = cv2.warpAffine(
        pixels, matrix, size or (pixels.shape[1], pixels.shape[0]),
        flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE,
    )  # fmt: skip
    return find(Picture(np.asarray(out, dtype=np.uint8)))


def error_px(matrix: np.ndarray, truth: np.ndarray, points: np.ndarray) -> float:
    return float(np.abs(apply(matrix, points) - apply(truth, points)).max())


@given(
    scale=st.floats(0.2, 5),
    angle=st.floats(-3.1, 3.1),
    shift=st.tuples(st.floats(-500, 500), st.floats(-500, 500)),
    seed=st.integers(0, 1000),
)
def test_a_similarity_of_points_is_recovered_exactly(
    scale: float, angle: float, shift: tuple[float, float], seed: int
) -> None:
    points = np.random.default_rng(seed).normal(0, 100, (41, 2))
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    truth = np.array([[c, -s, shift[0]], [s, c, shift[1]]])
    assert np.allclose(umeyama(points, apply(truth, points)), truth, atol=1e-6)


@given(seed=st.integers(0, 1000))
def test_noisy_points_give_the_same_similarity_as_scikit_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(0, 50, (41, 2)), rng.normal(0, 50, (41, 2))
    target += 1.5 * source  # without it the best fit may be a mirror image
    expected = SimilarityTransform.from_estimate(source, target)
    assert np.allclose(umeyama(source, target), expected.params[:2], atol=1e-8)


@given(seed=st.integers(0, 1000))
def test_an_inverse_undoes_and_a_composition_applies_in_turn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (np.column_stack([np.eye(2) * 2 + rng.uniform(-1, 1, (2, 2)), rng.normal(size=2)]) for _ in range(2))  # fmt: skip
    points = rng.normal(0, 10, (5, 2))
    assert np.allclose(apply(compose(one, other), points), apply(one, apply(other, points)))
    assert np.allclose(compose(invert(one), one), IDENTITY, atol=1e-9)


def test_the_small_maps_do_what_they_say() -> None:
    at = np.array([[0.0, 0.0]])
    assert apply(shifting(3, -2), at).tolist() == [[3, -2]]
    assert magnification(scaling(2, 8)) == pytest.approx(4)
    # halving a picture puts its first pixel between the first two of the larger one
    assert apply(invert(resizing(0.5, 0.5)), at).tolist() == [[0.5, 0.5]]


def test_points_that_coincide_give_a_shift() -> None:
    assert np.allclose(umeyama(np.ones((4, 2)), np.full((4, 2), 3.0)), shifting(2, 2))


def test_the_same_pixels_are_the_identity_exactly(face: Face) -> None:
    found = register(face, with_pixels(face, face.picture.pixels.copy()))
    assert found.grid is Grid.SAME and found.agreement == 1.0
    assert np.array_equal(found.matrix, IDENTITY)


@pytest.mark.parametrize("name", BENIGN_ON_THE_SAME_GRID)
def test_a_mere_re_save_is_never_resampled(face: Face, name: str) -> None:
    pixels = planted.BENIGN[name](face.picture.pixels, face.points)
    found = register(face, find(Picture(pixels)))
    assert found.grid is Grid.SAME
    assert found.agreement > 0.6


@pytest.mark.parametrize("name", planted.HARMFUL)
def test_a_harm_in_one_place_does_not_pull_the_grid(face: Face, name: str) -> None:
    pixels = planted.HARMFUL[name](face.picture.pixels, face.points)
    assert register(face, find(Picture(pixels))).grid is Grid.SAME


def test_a_crop_is_a_shift_by_whole_pixels(face: Face) -> None:
    pixels = np.ascontiguousarray(face.picture.pixels[37:, 11:700])
    found = register(face, find(Picture(pixels)))
    assert found.grid is Grid.SHIFTED
    assert np.array_equal(found.matrix, shifting(11, 37))


@pytest.mark.parametrize(
    ("scale", "degrees", "shift"),
    [(1.03, 0, (0, 0)), (1.0, 8, (0, 0)), (0.75, 0, (0.3, 0.2)), (1.3, -5, (20, 9)), (1, 0, (0.5, 0.5))],
)  # fmt: skip
def test_a_moved_face_is_registered_to_a_fraction_of_a_pixel(
    face: Face, scale: float, degrees: float, shift: tuple[float, float]
) -> None:
    centre = tuple(float(v) for v in face.points.mean(axis=0))
    forward = compose(shifting(*shift), cv2.getRotationMatrix2D(centre, degrees, scale))
    edited = moved(face, forward)
    found = register(face, edited)
    assert found.grid is Grid.RESAMPLED
    assert error_px(found.matrix, invert(forward), edited.points[17:]) < 0.3
    assert found.scale == pytest.approx(1 / scale, abs=0.003)


def test_landmarks_alone_would_be_off_by_more(face: Face) -> None:
    matrix = cv2.getRotationMatrix2D((360.0, 480.0), 8, 1.0)
    edited = moved(face, matrix)
    found = register(face, edited)
    inner = edited.points[17:]
    assert error_px(found.matrix, invert(matrix), inner) < error_px(
        found.landmarks, invert(matrix), inner
    )


def test_a_mirror_image_is_recognised(face: Face) -> None:
    flipped = find(Picture(np.ascontiguousarray(face.picture.pixels[:, ::-1])))
    found = register(face, flipped)
    assert found.mirrored and found.grid is Grid.SAME
    assert any("mirrored" in note for note in found.notes)


def test_mirroring_twice_gives_the_face_back(face: Face) -> None:
    twice = mirrored(mirrored(face))
    assert np.allclose(twice.points, face.points)
    assert np.array_equal(twice.picture.pixels, face.picture.pixels)
    assert sorted(MIRROR_ORDER) == list(range(68))
    left, right = mirrored(face).eye_centres
    assert left[0] < right[0]


def test_a_stretch_of_the_picture_is_taken_back_and_said(face: Face) -> None:
    wide = cv2.resize(face.picture.pixels, (960, 960), interpolation=cv2.INTER_CUBIC)
    found = register(face, find(Picture(wide)))
    assert found.stretch == pytest.approx(4 / 3)
    assert any("aspect ratio changed by the tool" in note for note in found.notes)
    x, y = (np.hypot(*found.matrix[:, i]) for i in (0, 1))
    assert y / x == pytest.approx(4 / 3, abs=0.01)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "grid", "scale"),
    [
        ("same_bytes", Grid.SAME, 1), ("same_look_exif6", Grid.SAME, 1),
        ("same_look_p3", Grid.SAME, 1), ("cmyk_same", Grid.SAME, 1), ("warmer", Grid.SAME, 1),
        ("lighter", Grid.SAME, 1), ("smooth_skin", Grid.SAME, 1),
        ("shift_5px", Grid.SHIFTED, 1), ("zoom_3pct", Grid.RESAMPLED, 1 / 1.03),
        ("square_1024", Grid.RESAMPLED, 592 / 1024), ("mirrored", Grid.SAME, 1),
    ],
)  # fmt: skip
def test_the_hard_pairs_are_registered_as_they_were_made(
    data_dir: Path, name: str, grid: Grid, scale: float
) -> None:
    folder = data_dir / "hard-images" / "pairs"
    original = find(open_picture(folder / "hopper_orig.jpg"))
    found = register(original, find(open_picture(folder / f"{name}_edit.jpg")))
    assert found.grid is grid
    assert found.scale == pytest.approx(scale, abs=0.002)
    assert found.mirrored == (name == "mirrored")
    if name == "shift_5px":
        assert found.shift == (-5, -3)
