"""Masks cover what their names say, and nothing in between white and black."""

from __future__ import annotations

import numpy as np
import pytest

from domain.faces import Face
from domain.masks import MaskKind
from domain.pictures import Picture
from preprocess.masks import make_mask


def turned(points: np.ndarray, degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return (points - [200, 180]) @ turn + [200, 180]


def made_face(degrees: float = 0.0) -> Face:
    x, y, ied = 200.0, 180.0, 60.0
    points = np.full((68, 2), [x, y])
    angle = np.linspace(np.pi, 0, 17)
    points[0:17] = np.stack([x + 70 * np.cos(angle), y + 120 * np.sin(angle)], axis=1)
    points[17:27] = np.stack([np.linspace(x - 55, x + 55, 10), np.full(10, y - 25)], axis=1)
    points[27:31] = np.stack([np.full(4, x), np.linspace(y - 5, y + 40, 4)], axis=1)
    points[31:36] = np.stack([np.linspace(x - 15, x + 15, 5), np.full(5, y + 50)], axis=1)
    points[36:42], points[42:48] = [x - ied / 2, y], [x + ied / 2, y]
    points[48:68] = np.stack([np.linspace(x - 25, x + 25, 20), np.full(20, y + 80)], axis=1)
    picture = Picture(np.zeros((600, 400, 3), dtype=np.uint8))
    return Face(picture, turned(points, degrees), (130, 150, 140, 150), "test")


@pytest.mark.parametrize("kind", list(MaskKind))
@pytest.mark.parametrize("degrees", [0.0, 30.0, 90.0])
def test_a_mask_is_hard_and_has_the_pictures_size(kind: MaskKind, degrees: float) -> None:
    mask = make_mask(made_face(degrees), kind)
    assert mask.kind is kind
    assert mask.values.shape == (600, 400)
    assert set(np.unique(mask.values)) == {0, 255}


def at(values: np.ndarray, point: tuple[float, float]) -> int:
    return int(values[round(point[1]), round(point[0])])


def test_the_face_mask_reaches_from_the_forehead_to_the_chin() -> None:
    values = make_mask(made_face(), MaskKind.FACE).values
    assert at(values, (200, 115)) == 255  # forehead, well above the brows at 155
    assert at(values, (200, 298)) == 255  # chin
    assert at(values, (200, 80)) == 0  # hair
    assert at(values, (200, 310)) == 0  # neck


def test_the_lower_face_begins_at_the_nose_base_and_ends_at_the_jaw() -> None:
    values = make_mask(made_face(), MaskKind.LOWER_FACE).values
    assert at(values, (200, 228)) == 0
    assert at(values, (200, 232)) == 255
    assert at(values, (200, 298)) == 255
    assert at(values, (200, 304)) == 0
    assert not values[:230].any()


def test_the_lower_face_follows_a_tilted_head() -> None:
    face = made_face(30.0)
    values = make_mask(face, MaskKind.LOWER_FACE).values
    mouth, forehead = face.points[57], turned(np.array([[200.0, 130.0]]), 30.0)[0]
    assert at(values, tuple(mouth)) == 255
    assert at(values, tuple(forehead)) == 0
    straight = make_mask(made_face(), MaskKind.LOWER_FACE).values
    assert (values > 0).sum() == pytest.approx((straight > 0).sum(), rel=0.02)


def test_the_lower_face_is_part_of_the_face() -> None:
    face = made_face(12.0)
    lower, whole = (make_mask(face, k).values for k in (MaskKind.LOWER_FACE, MaskKind.FACE))
    assert not (lower & ~whole).any()


def test_the_background_leaves_head_neck_and_shoulders_alone() -> None:
    values = make_mask(made_face(), MaskKind.BACKGROUND).values
    for person in [(200, 180), (200, 85), (125, 180), (200, 345), (60, 500), (200, 599)]:
        assert at(values, person) == 0, person
    for behind in [(5, 5), (395, 5), (20, 250), (200, 5)]:
        assert at(values, behind) == 255, behind


def test_a_face_at_the_edge_of_the_picture_still_gets_its_masks() -> None:
    face = made_face()
    shifted = Face(face.picture, face.points - [190, 170], face.box, "test")
    for kind in MaskKind:
        assert make_mask(shifted, kind).values.any()
