"""Every row of the hard pictures' group `faces`: a face as said, or none with its reason."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from preprocess.decode import open_picture
from preprocess.faces import FaceFinder, FaceSearch

pytestmark = pytest.mark.data
REPO = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("LIKENESS_DATA", REPO.parent / "shared" / "data")) / "hard-images"

COUNTS = {"multi_2_side_by_side": 2, "multi_6_grid": 6, "multi_big_and_tiny": 2}
REASONS = {
    "none_coffee": "no face found",
    "none_flat_grey": "no face found",
    "none_hats_faces_pareidolia": "no face found",
    "nonhuman_cat": "no face found",
    "nonhuman_smiley": "no human face",
    "whole_image_32px": "image too small for measuring (26 px",
    "half_face_left": "face cut by the picture's edge",
    "pixel_rot90": "no upright face (rotated by",
    "pixel_rot180": "no upright face (one is seen when turned by 180 degrees)",
    "profile_camera": "face too small",
    "tiny_face_40px_in_2000": "no face found",
    "halftone_print": "no face found",
}
NOTES = {
    "blue_light": "strong colour cast",
    "dark_8pct": "very dark face",
    "fills_frame": "face cut by the picture's edge",
    "half_shadow": "face found only at a second look",
    "low_contrast_fog": "low contrast face",
    "multi_2_side_by_side": "2 faces found, the largest was taken",
    "multi_6_grid": "6 faces found, the largest was taken",
    "multi_big_and_tiny": "2 faces found, the largest was taken",
    "nonhuman_statue": "face found only at a second look",
    "occl_black_bar_eyes": "one flat colour: covered",
    "occl_sunglasses": "eyes not visible",
    "occl_surgical_mask": "one flat colour: covered",
    "overexposed": "clipped to white",
    "pixel_rot30": "head tilt",
}


def rows() -> list[dict[str, str]]:
    manifest = FOLDER / "manifest.csv"
    if not manifest.is_file():
        return []
    with manifest.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["group"] == "faces"]


@pytest.fixture(scope="module")
def finder() -> FaceFinder:
    return FaceFinder("mediapipe")


@pytest.mark.parametrize("row", rows(), ids=lambda row: Path(row["file"]).stem)
def test_each_hard_face_is_found_or_refused_as_said(
    row: dict[str, str], data_dir: Path, finder: FaceFinder
) -> None:
    name = Path(row["file"]).stem
    search = finder.find(open_picture(data_dir / "hard-images" / row["file"]), thorough=True)
    if row["action"] == "accept":
        assert search.face is not None, search.reason
        assert search.count == COUNTS.get(name, 1)
    elif row["action"] == "reject":
        assert search.face is None
    else:
        assert search.face is None or search.face.notes
    _says(search, name)


def _says(search: FaceSearch, name: str) -> None:
    if search.face is None:
        assert search.code and search.reason is not None
        assert search.reason.startswith(REASONS[name])
    elif name in NOTES:
        assert any(NOTES[name] in note for note in search.face.notes), search.face.notes


def test_the_six_equal_faces_give_the_same_choice_every_time(
    data_dir: Path, finder: FaceFinder
) -> None:
    picture = open_picture(data_dir / "hard-images" / "faces" / "multi_6_grid.jpg")
    boxes = {f.box for _ in range(3) if (f := finder.find(picture).face) is not None}
    assert len(boxes) == 1


def test_the_rows_are_all_there() -> None:
    if FOLDER.is_dir():
        assert len(rows()) == 34
