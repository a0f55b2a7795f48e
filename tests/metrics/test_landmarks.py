"""FLRR falls with what is lost of a face, and by nothing that a mere re-save does."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.signal import convolve2d

from domain.faces import Face
from domain.measurements import Measurement, Status
from domain.pictures import Picture
from metrics.affine import shifting
from metrics.landmarks import C2, RADIUS, SPECS, _patches, _structure, collapsed, measure
from metrics.pair import FacePair
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder
from tests import planted
from tests.metrics.portrait_pairs import identical, rendered, with_pixels

QUICK, DLIB = 12, 25
HARM_LIMITS = {
    "mouth painted over": (55, 76),
    "one eye gone": (88, 96),
    "brows gone": (86, 96),
    "nose smoothed away": (82, 98),
    "blur 0.08 IED": (60, 85),
}


@pytest.fixture(scope="module")
def face() -> Face:
    return rendered("id03_base")


def both(pair: FacePair) -> tuple[Measurement, Measurement]:
    flrr, nme = measure(pair)
    assert (flrr.metric, nme.metric) == ("flrr", "nme")
    return flrr, nme


def with_points(face: Face, points: np.ndarray) -> FacePair:
    return FacePair(face, replace(face, points=points))


def test_an_identical_pair_keeps_every_point_exactly(face: Face) -> None:
    flrr, nme = both(identical(face))
    assert (flrr.value, nme.value) == (100.0, 0.0)
    assert flrr.evidence["lost"] == [] and flrr.evidence["points_shown"] == 68


@pytest.mark.parametrize("count", [1, 5, 17])
def test_each_displaced_point_is_lost_and_named(face: Face, count: int) -> None:
    points = face.points.copy()
    points[:count, 0] -= (RADIUS + 0.02) * face.ied  # jaw points do not enter the registration
    flrr, nme = both(with_points(face, points))
    assert flrr.value == pytest.approx(100 * (68 - count) / 68)
    assert flrr.evidence["displaced"] == list(range(count))
    assert flrr.evidence["anatomy_gone"] == []
    assert nme.value == pytest.approx(100 * count * (RADIUS + 0.02) / 68)


def test_a_point_within_the_radius_is_kept(face: Face) -> None:
    points = face.points.copy()
    points[:17, 0] -= (RADIUS - 0.01) * face.ied
    assert both(with_points(face, points))[0].value == 100.0


def test_a_framing_change_of_the_points_is_not_a_displacement(face: Face) -> None:
    moved = face.points * 1.3 + [30, -12]
    flrr, nme = both(with_points(face, moved))
    assert nme.value == pytest.approx(0, abs=1e-9)
    assert flrr.evidence["displaced"] == []


def test_points_on_a_line_or_a_spot_are_a_collapse(face: Face) -> None:
    line = face.points * [1.0, 0.02]
    spot = face.points * 0.01 + face.points.mean(axis=0)
    assert collapsed(line, face.points) and collapsed(spot, face.points)
    assert not collapsed(face.points * 0.7, face.points)
    flrr, _ = both(with_points(face, line + np.array([0, 400])))
    assert (flrr.value, flrr.reason) == (0.0, "collapsed")


def test_anatomy_that_is_painted_over_is_lost_even_where_the_points_stay(face: Face) -> None:
    pixels = planted.HARMFUL["mouth painted over"](face.picture.pixels, face.points)
    flrr, nme = both(FacePair(face, with_pixels(face, pixels)))
    assert nme.value == 0.0
    gone = set(flrr.evidence["anatomy_gone"])
    assert len(gone & set(range(48, 68))) >= 16
    assert not gone & set(range(17, 48)) - set(range(31, 36))  # the nose base is close to the lips
    assert flrr.value == pytest.approx(100 * (68 - len(gone)) / 68)


def test_points_that_the_original_does_not_show_are_not_counted(face: Face) -> None:
    opaque = np.ones(face.picture.pixels.shape[:2], bool)
    opaque[: int(face.points[17:27, 1].max()) + 2] = False  # brows and above are transparent
    pixels = np.where(opaque[:, :, None], face.picture.pixels, 255).astype(np.uint8)
    clear = replace(face, picture=Picture(pixels, opaque=opaque))
    flrr, _ = both(FacePair(clear, clear))
    assert flrr.value == 100.0
    assert set(range(17, 27)) <= set(flrr.evidence["not_shown"])
    assert flrr.evidence["points_shown"] == 68 - len(flrr.evidence["not_shown"])


def test_an_original_without_any_structure_is_not_measurable(face: Face) -> None:
    flat = with_pixels(face, np.full_like(face.picture.pixels, 120))
    flrr, nme = both(FacePair(flat, flat))
    assert flrr.status is Status.NOT_MEASURABLE and flrr.value is None
    assert flrr.reason == "the original shows only 0 of 68 points"
    assert nme.value == 0.0


def test_a_face_cut_by_the_picture_is_measured_on_what_it_shows(face: Face) -> None:
    top = int(face.points[17:27, 1].max()) + 4
    cut = Picture(np.ascontiguousarray(face.picture.pixels[top:]))
    part = replace(face, picture=cut, points=face.points - [0, top])
    flrr, _ = both(FacePair(part, part))
    assert flrr.value == 100.0
    assert {19, 24} <= set(flrr.evidence["not_shown"])


def test_the_structure_term_is_that_of_ssim() -> None:
    rng = np.random.default_rng(1)
    one = rng.uniform(0, 255, (40, 40)).astype(np.float32)
    other = (0.6 * one + rng.normal(0, 30, one.shape)).astype(np.float32)
    window = np.full((9, 9), 1 / 81)
    mean = [convolve2d(p, window, mode="valid") for p in (one, other)]
    var = [convolve2d(p.astype(float) ** 2, window, mode="valid") - m**2 for p, m in zip((one, other), mean, strict=True)]  # fmt: skip
    cov = convolve2d(one.astype(float) * other, window, mode="valid") - mean[0] * mean[1]
    expected = (2 * cov + C2) / (var[0] + var[1] + C2)
    at = np.array([[4, 4], [20, 11], [35, 30]])
    found = _structure(_patches(one, at, 4), _patches(other, at, 4))
    assert found == pytest.approx(expected[at[:, 1] - 4, at[:, 0] - 4], abs=1e-4)


def test_dim_light_is_no_loss_on_any_skin_tone() -> None:
    for tone in ("I", "VI"):
        shade = rendered(f"id01_skin_tone_{tone}")
        dim = planted.brightness(0.5)(shade.picture.pixels, shade.points)
        assert both(FacePair(shade, with_pixels(shade, dim)))[0].value == 100.0


def test_the_same_harm_costs_every_skin_tone_about_the_same() -> None:
    values = []
    for tone in ("I", "III", "IV", "V", "VI"):
        shade = rendered(f"id01_skin_tone_{tone}")
        pixels = planted.HARMFUL["mouth painted over"](shade.picture.pixels, shade.points)
        values.append(both(FacePair(shade, with_pixels(shade, pixels)))[0].value)
    assert max(values) - min(values) <= 5


def test_a_shift_of_a_few_pixels_of_one_part_is_still_its_anatomy(face: Face) -> None:
    mouth = face.points[48:68]
    low, high = (mouth.min(axis=0) - 15).astype(int), (mouth.max(axis=0) + 15).astype(int)
    pixels = face.picture.pixels.copy()
    part = pixels[low[1] : high[1], low[0] : high[0]]
    matrix = shifting(0.02 * face.ied, 0.02 * face.ied)
    part[:] = cv2.warpAffine(
        part.copy(), matrix, part.shape[1::-1], borderMode=cv2.BORDER_REPLICATE
    )
    assert both(FacePair(face, with_pixels(face, pixels)))[0].value == 100.0


def test_the_alarm_lines_carry_their_source() -> None:
    flrr, nme = SPECS
    assert (flrr.threshold, flrr.perfect, flrr.unit) == (95.0, 100.0, "%")
    assert flrr.threshold_source
    assert nme.perfect == 0.0


def london_means(
    data_dir: Path, engine: str, faces: int | None, edits: dict[str, planted.PlantedEdit]
) -> dict[str, float]:
    """Mean FLRR of each edit over neutral London faces at 1024 px; a lost face counts as 0."""
    finder = FaceFinder(engine)
    folder = data_dir / "faces" / "london"
    with (folder / "manifest.csv").open(newline="", encoding="utf-8") as file:
        files = [r["file"] for r in csv.DictReader(file) if r["expression"] == "neutral"]
    assert len(files) == 102
    values: dict[str, list[float]] = defaultdict(list)
    for name in files if faces is None else files[:: len(files) // faces][:faces]:
        large = open_picture(folder / name).pixels
        small = cv2.resize(large, (1024, 1024), interpolation=cv2.INTER_AREA)
        original = finder.find(Picture(np.asarray(small, dtype=np.uint8))).face
        assert original is not None
        for label, edit in edits.items():
            pixels = edit(original.picture.pixels, original.points)
            found = finder.find(Picture(pixels), original).face
            value = measure(FacePair(original, found))[0].value if found else 0.0
            values[label].append(float(value or 0.0))
    means = {label: float(np.mean(v)) for label, v in values.items()}
    print(f"\nFLRR, {engine}, {len(values[label])} London faces at 1024 px: mean (lowest)")
    for label, mean in means.items():
        print(f"  {label:20s} {mean:6.2f} ({min(values[label]):.1f})")
    return means


def holds(means: dict[str, float], least: float, mouth_only: bool) -> None:
    for name in planted.BENIGN:
        if name in means:
            assert means[name] >= least, name
    for name, (low, high) in HARM_LIMITS.items():
        if name in means and (name == "mouth painted over" or not mouth_only):
            assert low <= means[name] <= high, name


@pytest.mark.data
def test_a_dozen_london_faces_lose_nothing_to_benign_edits_and_a_mouth_to_paint(
    data_dir: Path,
) -> None:
    quick = ("jpeg 75", "8 degrees", "75 % resize", "noise sigma 15")
    edits = {name: planted.BENIGN[name] for name in quick}
    edits["mouth painted over"] = planted.HARMFUL["mouth painted over"]
    holds(london_means(data_dir, "mediapipe", QUICK, edits), 99.5, mouth_only=True)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(900)
def test_all_london_faces_with_mediapipe(data_dir: Path) -> None:
    edits = {"identity": planted.identity, **planted.BENIGN, **planted.HARMFUL}
    means = london_means(data_dir, "mediapipe", None, edits)
    assert means["identity"] == 100.0
    holds(means, 99.5, mouth_only=False)


@pytest.mark.slow
@pytest.mark.data
def test_london_faces_with_dlib(data_dir: Path) -> None:
    edits = {"identity": planted.identity, **planted.BENIGN}
    edits["mouth painted over"] = planted.HARMFUL["mouth painted over"]
    means = london_means(data_dir, "dlib", DLIB, edits)
    assert means["identity"] == 100.0
    holds(means, 97.0, mouth_only=True)
