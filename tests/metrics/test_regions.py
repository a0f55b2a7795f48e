"""Regions lie where anatomy says, follow the face, and say why they cannot be measured."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.regions import NAMES, Region, face_frame, find_regions, jaw_curve
from tests.metrics.portrait_pairs import rendered


def full(region: Region, shape: tuple[int, int]) -> np.ndarray:
    canvas = np.zeros(shape, bool)
    canvas[region.window] = region.mask > 0
    return canvas


@pytest.fixture(scope="module")
def shape() -> tuple[int, int]:
    return rendered("id01_base").picture.pixels.shape[:2]


@pytest.fixture(scope="module")
def masks(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    found = find_regions(rendered("id01_base").points, np.ones(shape, bool))
    assert {name: found[name].reason for name in NAMES} == dict.fromkeys(NAMES)
    return {name: full(found[name], shape) for name in NAMES}


def test_upper_and_lower_face_make_up_the_face(masks: dict[str, np.ndarray]) -> None:
    assert np.array_equal(masks["upper_face"] | masks["lower_face"], masks["face"])
    shared = (masks["upper_face"] & masks["lower_face"]).sum()
    assert shared <= 0.01 * masks["face"].sum()


def test_the_beard_area_is_the_lower_face_without_the_lips(masks: dict[str, np.ndarray]) -> None:
    points = rendered("id01_base").points
    assert not (masks["beard"] & ~masks["lower_face"]).any()
    x, y = points[[51, 57]].mean(axis=0).astype(int)
    assert masks["lower_face"][y, x] and not masks["beard"][y, x]


def test_each_part_holds_the_points_that_name_it(masks: dict[str, np.ndarray]) -> None:
    points = rendered("id01_base").points
    frame = face_frame(points)

    def at(name: str, place: np.ndarray) -> bool:
        x, y = np.rint(place).astype(int)
        return bool(masks[name][y, x])

    assert at("eye_sockets", points[36:42].mean(axis=0))
    assert at("upper_face", points[28]) and not at("lower_face", points[28])
    assert at("forehead", points[[21, 22]].mean(axis=0) - 0.35 * frame.ied * frame.down)
    assert at("larynx", points[8] + 0.4 * frame.ied * frame.down)
    assert not masks["larynx"][masks["face"]].any()
    assert at("cheeks", points[36:42].mean(axis=0) + 0.66 * frame.ied * frame.down)


def test_the_jaw_line_is_a_smooth_curve_through_the_jaw_points() -> None:
    points = rendered("id01_base").points
    curve = jaw_curve(points)
    for point in points[:17]:
        assert np.hypot(*(curve - point).T).min() < 1e-9
    steps = np.diff(curve, axis=0)
    angles = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    assert np.abs(np.diff(angles)).max() < np.radians(25)


def test_a_tilted_face_has_tilted_regions_of_the_same_size() -> None:
    points = rendered("id01_base").points
    turn = np.radians(25)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    middle = np.array([360.0, 480.0])
    seen = np.ones((1600, 1600), bool)
    straight = find_regions(points + 400, seen)
    tilted = find_regions((points - middle) @ matrix.T + middle + 400, seen)
    for name in NAMES:
        assert tilted[name].pixels == pytest.approx(straight[name].pixels, rel=0.02)


def test_a_region_outside_the_picture_says_so_and_is_not_zero() -> None:
    points = rendered("id01_base").points
    chin = int(points[8, 1])
    found = find_regions(points, np.ones((chin + 5, 720), bool))
    assert found["face"].reason is None
    expected = "too little of the larynx strip under the chin is inside both pictures (0 %)"
    assert found["larynx"].reason == expected


def test_a_face_of_a_few_pixels_is_too_small() -> None:
    points = rendered("id01_base").points / 12
    found = find_regions(points, np.ones((80, 60), bool))
    assert str(found["cheeks"].reason).startswith("too few pixels for the cheeks")


@pytest.mark.parametrize("points", [np.zeros((68, 2)), np.full((68, 2), np.nan)])
def test_points_that_are_no_face_give_reasons(points: np.ndarray) -> None:
    found = find_regions(points, np.ones((50, 50), bool))
    assert all(region.reason for region in found.values())


def test_points_flung_far_apart_are_not_drawn() -> None:
    points = rendered("id01_base").points.copy()
    points[8] = (5e5, 5e5)
    found = find_regions(points, np.ones((960, 720), bool))
    assert found["face"].reason == "the landmarks are not those of a face"
