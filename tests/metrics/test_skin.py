"""The skin mask keeps every skin tone, and measured ITA says when it cannot be had."""

from __future__ import annotations

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest

from domain.faces import Face
from domain.pictures import Picture
from metrics.regions import find_regions
from metrics.skin import find_skin, ita_group, measured_ita
from tests.metrics.portrait_pairs import TONES, find, rendered, tone, with_pixels
from tests.metrics.skin_edits import shift_lab
from tests.planted import brightness

# The ten swatches of the Monk Skin Tone scale (Monk 2019), lightest first.
MONK = ["f6ede4", "f3e7db", "f7ead0", "eadaba", "d7bd96", "a07e56", "825c43", "604134", "3a312a", "292420"]  # fmt: skip


def painted(colour: str) -> Face:
    """A rendered face with all its pixels in one skin colour and a little grain."""
    face = rendered("id01_base")
    rgb = np.array([int(colour[i : i + 2], 16) for i in (0, 2, 4)], float)
    grain = np.random.default_rng(5).normal(0, 2, face.picture.pixels.shape)
    return with_pixels(face, np.clip(rgb + grain + 0.5, 0, 255).astype(np.uint8))


def skin_share(face: Face) -> float:
    pixels = face.picture.pixels
    found = find_regions(face.points, np.ones(pixels.shape[:2], np.bool_))
    luma = cv2.cvtColor(pixels.astype(np.float32), cv2.COLOR_RGB2GRAY)
    skin = find_skin(found, pixels, luma, face.points)
    assert skin.reason is None
    return skin.pixels / found["face"].pixels


def test_no_monk_tone_is_rejected_and_they_stay_in_order() -> None:
    angles = []
    for colour in MONK:
        found = measured_ita(painted(colour))
        assert found.ita is not None, (colour, found.reason)
        angles.append(found.ita)
    assert angles[4] > angles[5] > angles[6] > angles[7] > angles[8] > angles[9]
    assert min(angles[:5]) > max(angles[5:])


def test_every_tone_keeps_about_the_same_share_of_the_face_as_skin() -> None:
    for subject in ("id01", "id02"):
        shares = [skin_share(tone(subject, group)) for group in TONES]
        assert min(shares) > 0.6
        assert max(shares) - min(shares) < 0.08, shares


def test_measured_ita_is_near_the_manifest_and_groups_are_in_order(samples_dir: Path) -> None:
    with (samples_dir / "portraits" / "manifest.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if "glasses" not in row["file"]]
    rows = [row for row in rows if row["subject_id"] in ("id01", "id02", "id04", "id05", "id12")]
    errors, same = [], 0
    for row in rows:
        found = measured_ita(rendered(Path(row["file"]).stem))
        assert found.ita is not None
        errors.append(found.ita - float(row["measured_ita"]))
        same += found.group == f"measured ITA group {row['skin_tone']}"
    print(
        f"\nITA against the manifest: mean {np.mean(errors):+.1f}, worst {np.abs(errors).max():.1f}"
    )
    assert np.abs(errors).max() < 10
    assert abs(float(np.mean(errors))) < 4
    assert same >= 0.85 * len(rows)
    for subject in ("id01", "id02"):
        angles = [measured_ita(tone(subject, group)).ita or 0.0 for group in TONES]
        assert angles == sorted(angles, reverse=True)


@pytest.mark.parametrize(
    ("ita", "group"),
    [(80, "I"), (55.1, "I"), (55, "II"), (41, "III"), (28, "IV"), (10, "V"), (-30, "VI"), (-90, "VI")],
)  # fmt: skip
def test_the_cuts_between_groups(ita: float, group: str) -> None:
    assert ita_group(ita) == f"measured ITA group {group}"


def test_a_grey_picture_has_no_skin_tone() -> None:
    face = rendered("id01_base")
    grey = cv2.cvtColor(face.picture.pixels, cv2.COLOR_RGB2GRAY)
    found = measured_ita(with_pixels(face, np.dstack([grey] * 3), monochrome=True))
    assert found.ita is None and found.group is None
    assert found.reason == "original is monochrome"


def test_blue_light_gives_a_colour_cast_and_no_class() -> None:
    face = rendered("id01_base")
    blue = shift_lab(d_b=-40)(face.picture.pixels, face.points)
    found = measured_ita(with_pixels(face, blue))
    assert found.ita is None and "colour cast" in str(found.reason)


def test_a_picture_darkened_to_almost_nothing_is_too_dark() -> None:
    face = rendered("id02_base")
    found = measured_ita(with_pixels(face, brightness(0.05)(face.picture.pixels, face.points)))
    assert found.ita is None and "too dark to measure" in str(found.reason)


def test_side_light_shows_as_spread_between_the_cheeks() -> None:
    face = rendered("id02_base")
    ramp = np.linspace(1.0, 0.35, face.picture.width)[None, :, None]
    lit = np.rint(face.picture.pixels * ramp).astype(np.uint8)
    even, uneven = measured_ita(face), measured_ita(with_pixels(face, lit))
    assert even.spread is not None and uneven.spread is not None
    assert uneven.spread > even.spread + 10


def test_the_colour_of_a_surgical_mask_is_never_counted_as_skin(data_dir: Path) -> None:
    pixels = cv2.imread(str(data_dir / "hard-images" / "faces" / "occl_surgical_mask.jpg"))
    face = find(Picture(np.ascontiguousarray(pixels[:, :, ::-1])))
    found = find_regions(face.points, np.ones(pixels.shape[:2], np.bool_))
    luma = cv2.cvtColor(face.picture.pixels.astype(np.float32), cv2.COLOR_RGB2GRAY)
    skin = find_skin(found, face.picture.pixels, luma, face.points)
    rows = np.nonzero(skin.mask)[0] + skin.top
    assert rows.max() < face.points[33, 1]


def test_a_face_outside_its_picture_has_a_reason() -> None:
    face = rendered("id01_base")
    gone = Face(face.picture, face.points + 5000, face.box, face.engine)
    assert measured_ita(gone).ita is None
