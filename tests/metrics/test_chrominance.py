"""Skin colour figures: what CSI sees, what it cannot, and when there is nothing to see."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from domain.faces import Face
from domain.pictures import Picture
from metrics import chrominance
from metrics.pair import FacePair
from metrics.skin import skin_region
from tests.metrics.portrait_pairs import edited, figures, rendered, tone, value, with_pixels
from tests.metrics.skin_edits import shift_lab
from tests.planted import Pixels, Points


def warmed(name: str = "id02_base") -> FacePair:
    return edited(rendered(name), shift_lab(d_l=2, d_a=3, d_b=4))


def to_grey(pixels: Pixels, points: Points) -> Pixels:
    return np.dstack([cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)] * 3)


def test_the_figures_are_those_of_the_mean_lab_over_the_skin() -> None:
    pair = warmed()
    skin = skin_region(pair)
    means = [
        rgb2lab(crop[skin.window])[skin.mask > 0].mean(axis=0)
        for crop in (pair.original_crop, pair.edited_crop)
    ]
    found = figures(pair, chrominance)
    change = means[1] - means[0]
    assert value(found, "csi") == pytest.approx(np.hypot(change[1], change[2]), abs=0.03)
    assert value(found, "delta_l") == pytest.approx(change[0], abs=0.03)
    assert value(found, "delta_e00") == pytest.approx(deltaE_ciede2000(*means), abs=0.03)
    angles = [np.degrees(np.arctan2(m[0] - 50, m[2])) for m in means]
    assert value(found, "delta_ita") == pytest.approx(angles[1] - angles[0], abs=0.1)


def test_warmer_skin_moves_the_hue_towards_yellow() -> None:
    found = figures(edited(rendered("id02_base"), shift_lab(d_b=6)), chrominance)
    assert value(found, "csi") == pytest.approx(6, abs=0.3)
    assert value(found, "delta_hue") > 5
    assert value(found, "delta_ita") < 0


@pytest.mark.parametrize("group", ["I", "III", "VI"])
def test_bleaching_escapes_csi_but_not_ciede2000(group: str) -> None:
    found = figures(edited(tone("id02", group), shift_lab(d_l=10)), chrominance)
    assert value(found, "csi") < 0.5
    assert value(found, "delta_e00") > 5
    assert value(found, "delta_l") == pytest.approx(10, abs=0.3)
    assert value(found, "delta_ita") > 5


def test_a_monochrome_edit_gives_the_chroma_loss_and_no_angles() -> None:
    face = rendered("id02_base")
    grey = with_pixels(face, to_grey(face.picture.pixels, face.points), monochrome=True)
    found = figures(FacePair(face, grey), chrominance)
    assert value(found, "csi") > 10
    note = found["csi", "face"].evidence["note"]
    assert note == "edit is monochrome; colour shift given as chroma loss"
    for metric in ("delta_ita", "delta_hue"):
        assert found[metric, "face"].reason == "edit is monochrome"


def test_a_monochrome_original_has_no_skin_colour_but_a_lightness() -> None:
    face = rendered("id02_base")
    grey = with_pixels(face, to_grey(face.picture.pixels, face.points), monochrome=True)
    found = figures(FacePair(grey, face), chrominance)
    assert value(found, "delta_l") == pytest.approx(0, abs=2)
    for metric in ("csi", "delta_e00", "delta_ita", "delta_hue"):
        assert "original is monochrome" in str(found[metric, "face"].reason)


def test_angles_are_missing_under_a_colour_cast_but_the_shift_is_not() -> None:
    face = rendered("id02_base")
    blue = with_pixels(face, shift_lab(d_b=-40)(face.picture.pixels, face.points))
    found = figures(FacePair(blue, face), chrominance)
    assert value(found, "csi") > 20
    assert "colour cast" in str(found["delta_ita", "face"].reason)


def test_transparent_skin_of_the_edit_is_left_out() -> None:
    face = rendered("id02_base")
    pixels = face.picture.pixels.copy()
    opaque = np.ones(pixels.shape[:2], np.bool_)
    opaque[:, : int(face.points[30, 0])] = False
    pixels[~opaque] = 255
    half = Face(Picture(pixels, opaque=opaque), face.points, face.box, face.engine)
    found = figures(FacePair(face, half), chrominance)
    assert found["csi", "face"].value in (None, 0.0)
