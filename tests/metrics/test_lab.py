"""Lab and CIEDE2000 agree with the published data and with an independent library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skimage.color import deltaE_ciede2000, rgb2lab

from metrics.lab import LabColour, angle_change, ciede2000, mean_lab, rgb_to_lab

# Sharma, Wu and Dalal 2005, table 1: L*, a*, b* of both colours and their difference.
SHARMA = np.array(
    [
        [50.0000, 2.6772, -79.7751, 50.0000, 0.0000, -82.7485, 2.0425],
        [50.0000, 3.1571, -77.2803, 50.0000, 0.0000, -82.7485, 2.8615],
        [50.0000, 2.8361, -74.0200, 50.0000, 0.0000, -82.7485, 3.4412],
        [50.0000, -1.3802, -84.2814, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, -1.1848, -84.8006, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, -0.9009, -85.5211, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, 0.0000, 0.0000, 50.0000, -1.0000, 2.0000, 2.3669],
        [50.0000, -1.0000, 2.0000, 50.0000, 0.0000, 0.0000, 2.3669],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0009, 7.1792],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0010, 7.1792],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0011, 7.2195],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0012, 7.2195],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0009, -2.4900, 4.8045],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0010, -2.4900, 4.8045],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0011, -2.4900, 4.7461],
        [50.0000, 2.5000, 0.0000, 50.0000, 0.0000, -2.5000, 4.3065],
        [50.0000, 2.5000, 0.0000, 73.0000, 25.0000, -18.0000, 27.1492],
        [50.0000, 2.5000, 0.0000, 61.0000, -5.0000, 29.0000, 22.8977],
        [50.0000, 2.5000, 0.0000, 56.0000, -27.0000, -3.0000, 31.9030],
        [50.0000, 2.5000, 0.0000, 58.0000, 24.0000, 15.0000, 19.4535],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.1736, 0.5854, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.2972, 0.0000, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 1.8634, 0.5757, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.2592, 0.3350, 1.0000],
        [60.2574, -34.0099, 36.2677, 60.4626, -34.1751, 39.4387, 1.2644],
        [63.0109, -31.0961, -5.8663, 62.8187, -29.7946, -4.0864, 1.2630],
        [61.2901, 3.7196, -5.3901, 61.4292, 2.2480, -4.9620, 1.8731],
        [35.0831, -44.1164, 3.7933, 35.0232, -40.0716, 1.5901, 1.8645],
        [22.7233, 20.0904, -46.6940, 23.0331, 14.9730, -42.5619, 2.0373],
        [36.4612, 47.8580, 18.3852, 36.2715, 50.5065, 21.2231, 1.4146],
        [90.8027, -2.0831, 1.4410, 91.1528, -1.6435, 0.0447, 1.4441],
        [90.9257, -0.5406, -0.9208, 88.6381, -0.8985, -0.7239, 1.5381],
        [6.7747, -0.2908, -2.4247, 5.8714, -0.0985, -2.2286, 0.6377],
        [2.0776, 0.0795, -1.1350, 0.9033, -0.0636, -0.5514, 0.9082],
    ]
)
LAB = st.tuples(st.floats(0, 100), st.floats(-90, 90), st.floats(-90, 90))


def test_all_34_published_pairs_are_reproduced_to_four_digits() -> None:
    assert len(SHARMA) == 34
    for first, second in ((SHARMA[:, :3], SHARMA[:, 3:6]), (SHARMA[:, 3:6], SHARMA[:, :3])):
        worst = np.abs(ciede2000(first, second) - SHARMA[:, 6]).max()
        assert worst <= 1e-4, worst


def test_lab_equals_scikit_image_over_the_whole_colour_cube() -> None:
    steps = np.array([0, 1, 2, 5, 11, 12, 40, 41, 90, 128, 200, 254, 255], np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    cube = np.ascontiguousarray(cube)
    assert np.abs(rgb_to_lab(cube) - rgb2lab(cube)).max() <= 1e-3


def test_the_mean_colour_is_the_mean_of_every_pixels_lab() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (5000, 3), dtype=np.uint8)
    expected = rgb2lab(pixels[None])[0].mean(axis=0)
    assert mean_lab(pixels).as_array() == pytest.approx(expected, abs=1e-3)


def test_a_single_black_pixel_has_a_colour() -> None:
    assert mean_lab(np.zeros((1, 3), np.uint8)).as_array() == pytest.approx([0, 0, 0], abs=1e-4)


def test_a_mean_of_no_pixels_is_an_error_and_no_colour() -> None:
    with pytest.raises(ValueError, match="n >= 1"):
        mean_lab(np.zeros((0, 3), np.uint8))


@given(LAB, LAB)
def test_ciede2000_agrees_with_scikit_image_and_is_symmetric(
    one: tuple[float, float, float], two: tuple[float, float, float]
) -> None:
    first, second = np.array(one), np.array(two)
    hues = np.degrees(np.arctan2([first[2], second[2]], [first[1], second[1]]))
    assume(abs(abs(angle_change(*hues)) - 180) > 20)  # at opposite hues the standard itself jumps
    got = float(ciede2000(first, second))
    assert got == pytest.approx(float(ciede2000(second, first)), abs=1e-9)
    assert got == pytest.approx(float(deltaE_ciede2000(first, second)), abs=1e-6)


@given(LAB)
def test_a_colour_does_not_differ_from_itself(colour: tuple[float, float, float]) -> None:
    assert float(ciede2000(np.array(colour), np.array(colour))) == 0.0


def test_the_typology_angle_and_hue_of_known_colours() -> None:
    assert LabColour(60.0, 10.0, 10.0).ita == pytest.approx(45.0)
    assert LabColour(40.0, 10.0, 10.0).ita == pytest.approx(-45.0)
    assert LabColour(50.0, 0.0, 20.0).hue == pytest.approx(90.0)


def test_angles_change_the_short_way_round() -> None:
    assert angle_change(170.0, -170.0) == pytest.approx(20.0)
    assert angle_change(-170.0, 170.0) == pytest.approx(-20.0)
    assert angle_change(12.5, 12.5) == 0.0
