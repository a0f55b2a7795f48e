"""Coherence tells what was there before from what was made up."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from metrics import detail, texture
from metrics.regions import NAMES, regions
from tests.metrics.portrait_pairs import edited, figures, rendered, value, with_pixels
from tests.metrics.skin_edits import bilateral
from tests.planted import blur_then_grain, noise


def test_coherence_is_the_covariance_over_the_originals_variance() -> None:
    pair = edited(rendered("id02_base"), bilateral())
    face = regions(pair)["face"]
    before, after = (
        cv2.Laplacian(luma, cv2.CV_64F)[face.window][face.mask > 0]
        for luma in (pair.original_luma.astype(float), pair.edited_luma.astype(float))
    )
    expected = np.cov(before, after, bias=True)[0, 1] / before.var()
    found = figures(pair, texture)
    assert value(found, "texture_coherence") == pytest.approx(expected, abs=1e-4)


def test_fake_grain_brings_the_energy_back_but_not_the_coherence() -> None:
    pair = edited(rendered("id02_base"), blur_then_grain())
    found = figures(pair, texture, detail)
    assert value(found, "texture_coherence") <= 0.1
    assert value(found, "pdl_signed") < 0, "raw detail says gain"


def test_sensor_noise_leaves_what_was_there() -> None:
    pair = edited(rendered("id02_base"), noise(15))
    assert value(figures(pair, texture), "texture_coherence") >= 0.95


def test_a_beautifier_lies_between_and_every_region_has_its_figure() -> None:
    found = figures(edited(rendered("id02_base"), bilateral()), texture)
    assert 0.4 < value(found, "texture_coherence") < 0.8
    assert value(found, "texture_coherence", "forehead") < 0.4
    assert {region for _, region in found} == set(NAMES)


def test_an_inverted_picture_has_no_coherence_to_speak_of() -> None:
    pair = edited(rendered("id02_base"), lambda pixels, points: 255 - pixels)
    assert value(figures(pair, texture), "texture_coherence") < 0.1


def test_without_detail_in_the_original_there_is_no_coherence() -> None:
    face = rendered("id02_base")
    flat = with_pixels(face, np.full_like(face.picture.pixels, 90))
    found = figures(edited(flat, noise(10)), texture)["texture_coherence", "face"]
    assert found.value is None and "no detail" in str(found.reason)
