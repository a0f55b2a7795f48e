"""Finding out by the picture alone whether a tool worked on a scaled-down copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from adapters.codec import read_rgb
from adapters.phone.detail import LEAST, Detail, fine_detail
from domain.pictures import Picture, RgbPixels
from domain.sizing import SizeRule
from preprocess.crop import fit_to_tool, grow_box
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder
from service.phone_agent import nv21
from service.phone_agent.beautify import Strengths
from service.phone_agent.sdk import HIGH, LOW, Frame, Sdk
from tests.adapters.phone_portraits import portrait

Box = tuple[int, int, int, int]


def scaled(pixels: RgbPixels, scale: float, back: int) -> RgbPixels:
    size = (pixels.shape[1], pixels.shape[0])
    small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, size, interpolation=back), np.uint8)


def sharpened(pixels: RgbPixels) -> RgbPixels:
    wide = pixels.astype(np.float32)
    return np.clip(2 * wide - cv2.GaussianBlur(wide, (0, 0), 1.2), 0, 255).astype(np.uint8)


def grained(pixels: RgbPixels) -> RgbPixels:
    grain = np.random.default_rng(0).normal(0, 3, pixels.shape)
    return np.clip(pixels + grain, 0, 255).astype(np.uint8)


def jpeg(pixels: RgbPixels, quality: int) -> RgbPixels:
    _, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


@pytest.fixture(scope="module")
def sent() -> RgbPixels:
    return read_rgb(portrait(720, 960))


FACE: Box = (170, 210, 380, 560)


def test_the_same_picture_keeps_everything(sent: RgbPixels) -> None:
    assert fine_detail(sent, sent.copy(), FACE).kept == 1.0


@pytest.mark.parametrize(
    "back", [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_LANCZOS4]
)
def test_half_the_size_keeps_nothing_whatever_interpolates_it_back(
    sent: RgbPixels, back: int
) -> None:
    assert fine_detail(sent, scaled(sent, 0.5, back), FACE).lost


@pytest.mark.parametrize("cover_up", [sharpened, grained], ids=["sharpened", "grain added"])
def test_a_sharpener_or_added_grain_does_not_hide_it(
    sent: RgbPixels, cover_up: Callable[[RgbPixels], RgbPixels]
) -> None:
    assert fine_detail(sent, cover_up(scaled(sent, 0.5, cv2.INTER_CUBIC)), FACE).lost


@pytest.mark.parametrize(
    "honest",
    [
        sharpened,
        lambda p: jpeg(p, 90),
        lambda p: np.clip(p * 0.8 + 30, 0, 255).astype(np.uint8),
        lambda p: np.roll(p, 3, axis=1),
        lambda p: cv2.bilateralFilter(p, 5, 15, 2),
    ],
    ids=["sharpened", "JPEG 90", "lightened", "moved by 3 px", "bilateral filter everywhere"],
)
def test_honest_changes_are_no_false_alarm(
    sent: RgbPixels, honest: Callable[[RgbPixels], RgbPixels]
) -> None:
    assert not fine_detail(sent, np.ascontiguousarray(honest(sent)), FACE).lost


def test_a_face_smoothed_to_nothing_is_no_alarm_because_it_is_not_looked_at(
    sent: RgbPixels,
) -> None:
    x, y, w, h = FACE
    got = sent.copy()
    got[y : y + h, x : x + w] = cv2.GaussianBlur(got, (0, 0), 4)[y : y + h, x : x + w]
    assert fine_detail(sent, got, FACE) == Detail(1.0, "beside the face")


def test_a_face_that_fills_the_picture_is_judged_at_its_clearest_edges(sent: RgbPixels) -> None:
    whole = (0, 0, 720, 960)
    assert fine_detail(sent, sent, whole) == Detail(1.0, "at the clearest edges")
    assert fine_detail(sent, scaled(sent, 0.5, cv2.INTER_CUBIC), whole).lost


def test_a_picture_without_fine_detail_cannot_be_judged() -> None:
    flat = np.full((512, 384, 3), 120, np.uint8)
    assert fine_detail(flat, flat, None) == Detail(None)
    assert not Detail(None).lost
    assert fine_detail(flat[:20, :20], flat[:20, :20], None).kept is None


@pytest.mark.slow
def test_on_london_faces_there_is_no_false_alarm_and_no_low_power_picture_is_missed(
    data_dir: Path,
) -> None:
    sdk, finder = Sdk(HIGH), FaceFinder()
    kept: dict[str, list[float | None]] = {"high": [], "strongest": [], "low": [], "hidden": []}
    for path in sorted((data_dir / "faces/london/neutral").glob("*.jpg"))[::17]:
        picture, box = _framed(open_picture(path), finder)
        frame = Frame(nv21.pack(picture.pixels), picture.width, picture.height)
        for name, mode, strengths in (
            ("high", HIGH, Strengths()),
            ("strongest", HIGH, Strengths(1, 1, 1, 1)),
            ("low", LOW, Strengths()),
        ):
            done = sdk.edit(frame, mode, strengths).frame
            got = nv21.unpack(done.data, done.width, done.height)
            kept[name].append(fine_detail(picture.pixels, got, box).kept)
        kept["hidden"].append(fine_detail(picture.pixels, sharpened(grained(got)), box).kept)
    sdk.close()
    finder.close()
    assert len(kept["high"]) >= 6
    for name in ("high", "strongest"):
        assert min(k for k in kept[name] if k is not None) > 2 * LEAST, name
    for name in ("low", "hidden"):
        assert max(k if k is not None else 1.0 for k in kept[name]) < 0.5 * LEAST, name


def _framed(picture: Picture, finder: FaceFinder) -> tuple[Picture, Box]:
    face = finder.find(picture).face
    assert face is not None
    box = grow_box(face.box, (picture.width, picture.height), points=face.points)
    fitted = fit_to_tool(picture, box, SizeRule(multiple=16, max_side=1024, aspect=3 / 4))
    return fitted.picture, fitted.face_box
