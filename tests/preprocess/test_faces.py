"""Faces are found, one is chosen by a rule, and a landmarker that broke is replaced."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path

import cv2
import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.faces import Face
from domain.pictures import Picture
from preprocess.candidates import Candidate, apart, choose, merge
from preprocess.decode import open_picture
from preprocess.face_notes import look_at, tilt_of, turn_of
from preprocess.faces import ENGINES, FaceFinder, place_of
from tests import planted


@pytest.fixture(scope="module")
def finders() -> dict[str, FaceFinder]:
    return {name: FaceFinder(name) for name in ENGINES}


@pytest.fixture(scope="module")
def portrait(samples_dir: Path) -> Picture:
    return open_picture(samples_dir / "portraits" / "images" / "id03_base.jpg")


def boxed(x: float, y: float, side: float) -> Candidate:
    return Candidate(np.zeros((68, 2)), (x, y, side, side))


def test_both_engines_see_one_face_in_the_same_place(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    faces = [finders[name].find(portrait).face for name in ENGINES]
    assert all(f is not None and f.count == 1 for f in faces)
    one, other = faces
    assert one is not None and other is not None
    inner = np.hypot(*(one.points[17:] - other.points[17:]).T) / one.ied
    assert inner.mean() < 0.06
    assert one.engine == "mediapipe" and other.engine == "dlib"


@pytest.mark.parametrize("name", ENGINES)
def test_the_same_picture_gives_the_same_points(
    finders: dict[str, FaceFinder], portrait: Picture, name: str
) -> None:
    first, second = finders[name].find(portrait).face, finders[name].find(portrait).face
    assert first is not None and second is not None
    assert np.array_equal(first.points, second.points)


@pytest.mark.parametrize("name", ENGINES)
def test_points_move_with_the_picture(
    finders: dict[str, FaceFinder], portrait: Picture, name: str
) -> None:
    cut = Picture(np.ascontiguousarray(portrait.pixels[40:, 24:]))
    whole, part = finders[name].find(portrait).face, finders[name].find(cut).face
    assert whole is not None and part is not None
    moved = np.hypot(*(part.points + np.array([24, 40]) - whole.points).T) / whole.ied
    assert moved.mean() < 0.02


def test_the_largest_face_is_taken_and_the_others_are_counted(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    small = cv2.resize(portrait.pixels, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    beside = np.full((portrait.height, small.shape[1], 3), 200, np.uint8)
    beside[: small.shape[0]] = small
    both = Picture(np.hstack([beside, portrait.pixels]))
    search = finders["mediapipe"].find(both)
    assert search.count == 2
    assert search.face is not None and search.face.box[0] > small.shape[1]
    assert "2 faces found, the largest was taken" in search.face.notes


def test_in_an_edited_picture_the_face_at_the_originals_place_is_taken(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    original = finders["mediapipe"].find(portrait).face
    assert original is not None
    twice = Picture(np.hstack([portrait.pixels, portrait.pixels]))
    found = finders["mediapipe"].find(twice, original).face
    assert found is not None and found.box[0] < portrait.width / 2
    right = finders["mediapipe"].find(twice, (0.75, 0.5)).face
    assert right is not None and right.box[0] > portrait.width


def test_the_choice_does_not_depend_on_the_order_in_which_faces_come() -> None:
    grid = [boxed(x, y, 100 + (x + y) % 7) for x in (0, 300, 600) for y in (0, 300)]
    for order in list(permutations(grid))[::24]:
        assert choose(order, 720, 420) is choose(grid, 720, 420)


def test_equal_faces_go_by_centre_then_by_left() -> None:
    left, middle, right = boxed(0, 100, 100), boxed(200, 100, 100), boxed(400, 100, 100)
    assert choose([right, left, middle], 500, 300) is middle
    assert choose([right, left], 500, 300) is left
    assert choose([middle, boxed(0, 0, 150)], 500, 300).box[2] == 150


@given(st.permutations([boxed(0, 0, 90), boxed(100, 0, 120), boxed(300, 40, 119)]))
def test_the_face_nearest_to_a_place_is_the_same_in_any_order(faces: list[Candidate]) -> None:
    assert choose(faces, 500, 300, [(0.72, 0.3)]).box[0] == 300


def test_a_face_seen_twice_is_one_face() -> None:
    assert len(merge([boxed(0, 0, 100)], [boxed(5, 5, 95), boxed(300, 0, 50)])) == 2


def test_place_is_a_fraction_of_the_picture(portrait: Picture) -> None:
    box = (portrait.width / 4, portrait.height / 4, portrait.width / 2, portrait.height / 2)
    assert place_of(Face(portrait, np.zeros((68, 2)), box, "none")) == (0.5, 0.5)


def test_a_landmarker_that_broke_is_replaced(
    portrait: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = FaceFinder("mediapipe")
    before = finder.find(portrait).face
    engine = finder._engine
    reader = engine._strict._reader  # type: ignore[attr-defined]
    monkeypatch.setattr(reader, "read", _broken)
    with pytest.raises(RuntimeError, match="poisoned"):
        finder.find(portrait)
    after = finder.find(portrait).face
    assert before is not None and after is not None
    assert np.array_equal(before.points, after.points)
    finder.close()
    assert finder.find(portrait).face is not None


def _broken(*_: object) -> None:
    raise RuntimeError("poisoned")


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(ValueError, match="'yunet'; known: mediapipe, dlib"):
        FaceFinder("yunet")


@pytest.mark.parametrize(("shape", "code"), [((1, 1, 3), "image_too_small"), ((79, 900, 3), "image_too_small"), ((80, 80, 3), "no_face")])  # fmt: skip
def test_small_and_empty_pictures_give_a_reason(
    finders: dict[str, FaceFinder], shape: tuple[int, int, int], code: str
) -> None:
    for finder in finders.values():
        search = finder.find(Picture(np.full(shape, 90, np.uint8)))
        assert search.face is None and search.code == code and search.reason


def test_a_face_too_small_to_measure_says_how_small(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    small = cv2.resize(portrait.pixels, (84, 112), interpolation=cv2.INTER_AREA)
    search = finders["mediapipe"].find(Picture(small.astype(np.uint8)))
    assert search.code == "face_too_small"
    assert search.reason == "face too small for measuring (eyes 17 px apart, 20 needed)"


def test_memory_stays_flat_over_many_pictures(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    finder, process = finders["mediapipe"], psutil.Process()
    for _ in range(20):
        finder.find(portrait)
    start = process.memory_info().rss
    for _ in range(80):
        finder.find(portrait)
    assert process.memory_info().rss - start < 8e6


def test_tilt_and_turn_are_read_from_the_points() -> None:
    points = np.zeros((68, 2))
    points[36:42], points[42:48] = (-50, 0), (50, 0)
    points[2], points[14], points[30] = (-80, 40), (80, 40), (0, 40)
    assert tilt_of(points) == 0 and turn_of(points) == pytest.approx(1)
    angle = np.radians(25)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    assert tilt_of(points @ turn) == pytest.approx(25)
    points[30] = (40, 40)
    assert turn_of(points) == pytest.approx(3)


def test_a_flat_drawing_is_told_from_skin(
    finders: dict[str, FaceFinder], portrait: Picture
) -> None:
    face = finders["mediapipe"].find(portrait).face
    assert face is not None
    skin = look_at(portrait, face.points)
    flat = look_at(Picture(np.full_like(portrait.pixels, 200)), face.points)
    assert skin is not None and flat is not None
    assert skin.flat < 0.05 and flat.flat == 1.0
    assert look_at(portrait, face.points + 5000) is None


@pytest.mark.slow
@pytest.mark.data
def test_nearly_every_fairface_adult_is_found(data_dir: Path) -> None:
    folder = data_dir / "faces" / "fairface-adults"
    finder = FaceFinder("mediapipe")
    with (folder / "manifest.csv").open(newline="", encoding="utf-8") as file:
        files = [row["file"] for row in csv.DictReader(file)]
    codes = [finder.find(open_picture(folder / name)).code for name in files]
    seen = sum(code != "no_face" for code in codes) / len(codes)
    measured = sum(code == "" for code in codes) / len(codes)
    print(f"FairFace adults: a face seen in {seen:.1%}, measured in {measured:.1%} of {len(codes)}")
    assert seen >= 0.96
    assert measured >= 0.94


def test_points_apart_do_not_count_framing_but_count_what_moved(portrait: Picture) -> None:
    points = np.random.default_rng(3).normal(0, 60, (68, 2))
    points[36:42], points[42:48] = (-50, 0), (50, 0)
    angle = np.radians(20)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    framed = points @ turn * 1.7 + [40, -9]
    assert apart(framed, points) == pytest.approx(np.zeros(68), abs=1e-9)
    points[8, 1] += 20
    assert apart(framed, points)[8] == pytest.approx(0.2)


@pytest.mark.data
def test_more_looks_settle_whether_noise_moved_the_points(data_dir: Path) -> None:
    picture = open_picture(data_dir / "faces" / "london" / "neutral" / "061_03.jpg")
    small = cv2.resize(picture.pixels, (1024, 1024), interpolation=cv2.INTER_AREA)
    finder = FaceFinder("mediapipe")
    original = finder.find(Picture(np.asarray(small, dtype=np.uint8))).face
    assert original is not None
    once, settled = [], []
    for seed in range(6):
        noisy = Picture(planted.noise(15, seed)(original.picture.pixels, original.points))
        by_place, by_face = finder.find(noisy, place_of(original)), finder.find(noisy, original)
        assert by_place.face is not None and by_face.face is not None
        once.append(apart(by_place.face.points, original.points).max())
        settled.append(apart(by_face.face.points, original.points).max())
    assert max(settled) < 0.08
    assert max(settled) <= max(once)
