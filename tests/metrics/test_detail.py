"""PDL keeps the document's definition; relative detail does not depend on how light skin is."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import detail
from metrics.detail import relative_energy
from metrics.laplacian import LAPLACIAN_GAIN, noise_floor, pair_detail
from metrics.regions import NAMES, regions
from tests.metrics.portrait_pairs import (
    TONES,
    edited,
    figures,
    identical,
    rendered,
    tone,
    value,
    with_pixels,
)
from tests.metrics.skin_edits import bilateral, only_in
from tests.planted import PlantedEdit, blur, brightness, jpeg, noise


def measured(edit: PlantedEdit, name: str = "id02_base") -> dict:
    return figures(edited(rendered(name), edit), detail)


def test_pdl_is_the_difference_of_laplacian_variances_over_the_face() -> None:
    pair = edited(rendered("id02_base"), bilateral())
    face = regions(pair)["face"]
    kernel = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], np.float64)
    variances = []
    for crop in (pair.original_crop, pair.edited_crop):
        luma = crop.astype(np.float64) @ [0.299, 0.587, 0.114]
        response = cv2.filter2D(luma, cv2.CV_64F, kernel)[face.window]
        variances.append(response[face.mask > 0].var())
    found = figures(pair, detail)
    assert value(found, "pdl") == pytest.approx(abs(variances[0] - variances[1]), rel=1e-4)
    assert value(found, "pdl_signed") == pytest.approx(variances[0] - variances[1], rel=1e-4)


def test_regional_figures_are_those_of_plain_statistics_under_the_mask() -> None:
    pair = edited(rendered("id04_base"), blur(0.02))
    found, lumas = regions(pair), (pair.original_luma, pair.edited_luma)
    responses = [cv2.Laplacian(luma, cv2.CV_32F).astype(np.float64) for luma in lumas]
    for name, region in pair_detail(pair).regions.items():
        under = found[name].mask > 0
        one, other = (r[found[name].window][under] for r in responses)
        covariance = np.cov(one, other, bias=True)
        assert region.original == pytest.approx(covariance[0, 0], rel=1e-4)
        assert region.edited == pytest.approx(covariance[1, 1], rel=1e-4)
        assert region.covariance == pytest.approx(covariance[0, 1], rel=1e-4)
        levels = [luma[found[name].window][under].astype(np.float64).mean() for luma in lumas]
        assert [region.original_luma, region.edited_luma] == pytest.approx(levels, rel=1e-5)


def test_every_region_has_its_own_figure() -> None:
    found = measured(bilateral())
    assert {region for _, region in found} == set(NAMES)
    assert all(m.value is not None for m in found.values())


def test_an_identical_pair_has_lost_nothing_anywhere() -> None:
    found = figures(identical(rendered("id02_base")), detail)
    assert {m.value for m in found.values()} == {0.0}


def test_sharpening_is_a_gain_and_no_negative_loss() -> None:
    def sharpen(pixels: np.ndarray, points: np.ndarray) -> np.ndarray:
        return cv2.addWeighted(pixels, 2.0, cv2.GaussianBlur(pixels, (0, 0), 1.2), -1.0, 0)

    found = measured(sharpen)
    assert value(found, "pdl") > 0 > value(found, "pdl_signed")
    assert value(found, "detail_change") > 1


def test_raw_pdl_hides_on_dark_skin_what_relative_detail_shows() -> None:
    smooth, compress = bilateral(), jpeg(60)
    print()
    for name, edit in (("bilateral", smooth), ("JPEG 60", compress)):
        rows = [figures(edited(tone("id02", group), edit), detail) for group in TONES]
        pdl = [value(row, "pdl") for row in rows]
        skin = [value(row, "detail_change", "forehead") for row in rows]
        print(f"{name}: PDL {pdl[0]:.0f} on tone I, {pdl[-1]:.0f} on tone VI; "
              f"forehead log2 {skin[0]:+.2f}, {skin[-1]:+.2f}")  # fmt: skip
        assert pdl[0] > 2.5 * pdl[-1], "the raw figure falls with brightness"
        assert skin[-1] <= skin[0] + 0.05, "the relative figure does not"


def test_the_150_alarm_rings_for_light_skin_only() -> None:
    light, dark = (figures(edited(tone("id02", g), bilateral()), detail) for g in ("I", "VI"))
    assert value(light, "pdl") > 150 > value(dark, "pdl")


def test_dimming_alone_cuts_the_raw_variance_but_no_relative_detail() -> None:
    pair = edited(rendered("id02_base"), brightness(0.5))
    found = figures(pair, detail)
    assert value(found, "pdl_signed") > 200
    assert abs(value(found, "detail_change")) < 0.1


def test_the_same_blur_with_the_same_sensor_noise_measures_alike_bright_and_dim() -> None:
    face = rendered("id02_base")
    pixels, points = face.picture.pixels, face.points
    losses = []
    for factor in (1.0, 0.4):
        scene = [brightness(factor)(p, points) for p in (pixels, blur(0.004)(pixels, points))]
        before, after = (noise(3, seed)(p, points) for seed, p in enumerate(scene))
        pair = edited(with_pixels(face, before), lambda p, q, after=after: after)
        raw = figures(pair, detail)
        losses.append(value(raw, "detail_change"))
    assert losses[0] < -1
    assert losses[1] == pytest.approx(losses[0], abs=0.35)


def test_a_wiped_beard_shows_in_its_region_while_the_face_average_stays_mild() -> None:
    found = measured(only_in("beard", blur(0.02)), "id05_beard_full")
    assert value(found, "detail_change", "beard") < -3
    assert abs(value(found, "detail_change", "upper_face")) < 0.3
    assert value(found, "pdl", "beard") > 2 * value(found, "pdl")


def test_a_flat_original_has_no_detail_to_lose() -> None:
    face = rendered("id02_base")
    flat = with_pixels(face, np.full_like(face.picture.pixels, 120))
    found = figures(identical(flat), detail)
    change = found["detail_change", "face"]
    assert change.value is None and "no detail" in str(change.reason)
    assert value(found, "pdl") == 0.0


@given(sigma=st.floats(0.5, 12), seed=st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_the_noise_floor_finds_the_noise_that_was_put_in(sigma: float, seed: int) -> None:
    grain = np.random.default_rng(seed).normal(120, sigma, (200, 200)).astype(np.float32)
    floor = noise_floor(grain, np.ones((200, 200), np.uint8))
    assert floor == pytest.approx(LAPLACIAN_GAIN * sigma**2, rel=0.12)


@pytest.mark.parametrize("sigma", [0.4, 1.5, 4, 9, 18, 40])
def test_the_noise_floor_is_that_of_the_exact_median(sigma: float) -> None:
    grain = np.random.default_rng(7).normal(120, sigma, (300, 200)).astype(np.float32)
    kernel = np.outer([1, -2, 1], [1, -2, 1]).astype(np.float64)
    mask = np.zeros((300, 200), np.uint8)
    mask[20:280, 30:170] = 1
    response = np.abs(cv2.filter2D(grain.astype(np.float64), cv2.CV_64F, kernel))
    exact = 1.4826 * np.median(response[::2][mask[::2] > 0])
    assert noise_floor(grain, mask) == pytest.approx(LAPLACIAN_GAIN * exact**2 / 36, rel=0.005)


def test_edges_are_not_taken_for_noise() -> None:
    stripes = np.zeros((200, 200), np.float32)
    stripes[:, ::20] = 200
    assert noise_floor(stripes, np.ones((200, 200), np.uint8)) < 1


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 255))
def test_relative_energy_is_always_above_zero(variance: float, floor: float, luma: float) -> None:
    assert relative_energy(variance, floor, luma) > 0
