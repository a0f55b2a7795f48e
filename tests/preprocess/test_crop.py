"""The face stays whole, from the forehead to the larynx, whatever size a tool takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.pictures import Picture
from domain.sizing import SizeRule
from preprocess.crop import LARYNX_REACH, fit_to_tool, grow_box


def noisy(width: int, height: int, opaque: np.ndarray | None = None) -> Picture:
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Picture(pixels, opaque=opaque)


def plain_face(x: float = 200.0, y: float = 200.0, ied: float = 60.0) -> np.ndarray:
    """68 points: eyes ``ied`` apart at height ``y``, chin two IED below them."""
    points = np.full((68, 2), [x, y + 0.6 * ied])
    angle = np.linspace(np.pi, 0, 17)
    points[0:17] = np.stack([x + 1.1 * ied * np.cos(angle), y + 2 * ied * np.sin(angle)], axis=1)
    points[17:27, 0], points[17:27, 1] = np.linspace(x - ied, x + ied, 10), y - 0.4 * ied
    points[36:42], points[42:48] = [x - ied / 2, y], [x + ied / 2, y]
    return points


def test_the_box_grows_by_fifteen_percent_of_its_side_on_every_edge() -> None:
    x, y, width, height = grow_box((200, 200, 100, 100), (1000, 1000))
    assert (x, y, width) == (185, 185, 130)
    assert y + height == 335  # deeper than 315: the larynx is a third of the box below the chin


def test_the_box_takes_in_jaw_and_larynx_when_the_points_are_known() -> None:
    points = plain_face()
    _, y, _, height = grow_box((170, 180, 60, 60), (500, 600), points=points)
    assert y + height >= points[8, 1] + LARYNX_REACH * 60


def test_a_tilted_head_keeps_its_larynx_too() -> None:
    points = plain_face()
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])  # lying on its side: the chin points sideways
    lying = (points - [200, 200]) @ turn + [250, 250]
    chin = lying[8]
    x, _, width, _ = grow_box((200, 200, 60, 60), (700, 500), points=lying)
    larynx = chin[0] + np.sign(chin[0] - 250) * LARYNX_REACH * 60
    assert x <= larynx <= x + width


def test_the_box_ends_at_the_picture() -> None:
    assert grow_box((-50, -50, 5000, 5000), (300, 200)) == (0, 0, 300, 200)
    assert grow_box((900, 900, 10, 10), (300, 200))[2:] == (1, 1)


def test_a_box_of_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="no face box"):
        grow_box((float("nan"), 0, 1, 1), (10, 10))


def test_a_tool_of_any_size_gets_the_picture_itself() -> None:
    picture = noisy(643, 481)
    fitted = fit_to_tool(picture, (100, 100, 200, 200), SizeRule())
    assert fitted.picture is picture
    assert fitted.face_box == (100, 100, 200, 200)
    assert fitted.note == ""


def test_a_multiple_is_met_by_cropping_away_from_the_face() -> None:
    picture = noisy(645, 487)
    fitted = fit_to_tool(picture, (400, 100, 245, 300), SizeRule(multiple=8))
    assert (fitted.picture.width, fitted.picture.height) == (640, 480)
    assert fitted.region[0] == 5  # the face touches the right edge, so the left is cropped
    x, y = fitted.region[:2]
    assert np.array_equal(fitted.picture.pixels, picture.pixels[y : y + 480, x : x + 640])
    assert "Cropped 645x487 to 640x480" in fitted.note


def test_a_multiple_repeats_the_edge_where_a_crop_would_cut_the_face() -> None:
    fitted = fit_to_tool(noisy(100, 96), (0, 0, 100, 96), SizeRule(multiple=16))
    assert (fitted.picture.width, fitted.picture.height) == (112, 96)
    assert "Edge pixels repeated: 0 top, 0 bottom, 6 left, 6 right." in fitted.note
    assert fitted.picture.opaque is not None
    assert not fitted.picture.opaque[:, :6].any()  # invented pixels enter no figure
    assert fitted.picture.opaque[:, 6:106].all()
    assert fitted.face_box == (6, 0, 100, 96)


def test_three_to_four_and_four_to_three_keep_the_larynx_in() -> None:
    points = plain_face(300, 260, 90)
    picture = noisy(600, 620)
    box = grow_box((230, 220, 140, 200), (600, 620), points=points)
    larynx = points[8] + [0, LARYNX_REACH * 90]
    for rule in (
        SizeRule(aspect=3 / 4, multiple=16, max_side=512),
        SizeRule(aspect=4 / 3, multiple=16, max_side=512),
        SizeRule(sizes=((640, 480), (480, 640))),
    ):
        fitted = fit_to_tool(picture, box, rule)
        at = fitted.to_fitted(np.array([larynx, points[0], points[16]]))
        assert (at >= -0.5).all()
        assert (at <= [fitted.picture.width - 0.5, fitted.picture.height - 0.5]).all()


def test_exact_sizes_pick_the_shape_of_the_picture_and_average_down() -> None:
    rule = SizeRule(sizes=((1024, 1024), (1536, 1024), (1024, 1536)))
    fitted = fit_to_tool(noisy(2000, 3000), (600, 500, 800, 1100), rule)
    assert (fitted.picture.width, fitted.picture.height) == (1024, 1536)
    assert fitted.scale < 1
    assert "Scaled down" in fitted.note


def test_a_small_face_in_a_big_picture_is_cropped_not_shrunk() -> None:
    fitted = fit_to_tool(noisy(3000, 2000), (1400, 900, 200, 240), SizeRule(sizes=((512, 512),)))
    assert fitted.scale == 1.0
    assert fitted.face_box == (156, 136, 200, 240)


def test_halving_averages_blocks() -> None:
    picture = noisy(400, 400)
    fitted = fit_to_tool(picture, (0, 0, 400, 400), SizeRule(sizes=((200, 200),)))
    blocks = picture.pixels.reshape(200, 2, 200, 2, 3).mean(axis=(1, 3))
    assert np.abs(fitted.picture.pixels - blocks).max() <= 0.5


def test_scaling_up_is_said() -> None:
    fitted = fit_to_tool(noisy(100, 80), (20, 20, 40, 40), SizeRule(min_side=160))
    assert (fitted.picture.width, fitted.picture.height) == (200, 160)
    assert "Scaled up 2.000 x" in fitted.note


def test_see_through_pixels_stay_see_through() -> None:
    opaque = np.ones((300, 300), dtype=bool)
    opaque[:, :30] = False
    fitted = fit_to_tool(noisy(300, 300, opaque), (50, 50, 200, 200), SizeRule(max_side=150))
    assert fitted.picture.opaque is not None
    assert not fitted.picture.opaque[:, :15].any()
    assert fitted.picture.opaque[:, 15:].all()


def test_an_extreme_shape_gets_a_side_that_the_tool_takes() -> None:
    rule = SizeRule(multiple=8, min_side=64, max_side=1024)
    fitted = fit_to_tool(noisy(5000, 11), (2000, 0, 11, 11), rule)
    assert (fitted.picture.width, fitted.picture.height) == (1024, 64)


def test_points_follow_the_face_into_the_fitted_picture() -> None:
    pixels = np.zeros((300, 400, 3), dtype=np.uint8)
    pixels[120:124, 200:204] = 255
    fitted = fit_to_tool(Picture(pixels), (150, 80, 120, 120), SizeRule(sizes=((100, 100),)))
    bright = fitted.picture.pixels[..., 0].astype(float)
    rows, columns = np.indices(bright.shape)
    centre = [(columns * bright).sum() / bright.sum(), (rows * bright).sum() / bright.sum()]
    assert fitted.to_fitted(np.array([[201.5, 121.5]]))[0] == pytest.approx(centre, abs=0.2)


def test_a_rule_that_no_size_meets_is_an_error() -> None:
    with pytest.raises(ValueError, match="no side is a multiple of 64"):
        fit_to_tool(noisy(50, 50), None, SizeRule(multiple=64, max_side=63))


RULES = st.one_of(
    st.builds(
        SizeRule,
        multiple=st.sampled_from([1, 2, 8, 16, 64]),
        min_side=st.integers(1, 200),
        max_side=st.integers(256, 900),
        aspect=st.sampled_from([None, None, 3 / 4, 4 / 3, 1.0, 16 / 9]),
    ),
    st.builds(
        SizeRule,
        sizes=st.lists(
            st.tuples(st.integers(16, 700), st.integers(16, 700)), min_size=1, max_size=3
        ).map(tuple),
    ),
)


@settings(max_examples=120, deadline=None)
@given(st.integers(1, 700), st.integers(1, 700), RULES, st.tuples(*[st.floats(0, 1)] * 4))
def test_every_fit_is_allowed_and_keeps_the_face_or_says_so(
    width: int, height: int, rule: SizeRule, place: tuple[float, float, float, float]
) -> None:
    x, y = int(place[0] * (width - 1)), int(place[1] * (height - 1))
    box = (x, y, max(1, int(place[2] * (width - x))), max(1, int(place[3] * (height - y))))
    fitted = fit_to_tool(Picture(np.zeros((height, width, 3), dtype=np.uint8)), box, rule)
    size = (fitted.picture.width, fitted.picture.height)
    if rule.sizes:
        assert size in rule.sizes
    else:
        assert all(side % rule.multiple == 0 for side in size)
        assert all(rule.min_side <= side <= rule.max_side for side in size)
    left, top, wide, high = fitted.region
    kept = left <= x and top <= y and left + wide >= x + box[2] and top + high >= y + box[3]
    assert kept or "is cut" in fitted.note
    fx, fy, fw, fh = fitted.face_box
    assert 0 <= fx <= fx + fw <= size[0]
    assert 0 <= fy <= fy + fh <= size[1]
    assert fw > 0
    assert fh > 0
