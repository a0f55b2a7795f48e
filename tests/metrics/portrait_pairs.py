"""Real and rendered faces as pairs for the tests of the pixel metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from domain.errors import ModelMissing
from domain.faces import Face
from domain.masks import Mask
from domain.measurements import FACE_REGION, Measurement
from domain.pictures import DecodeFacts, Picture
from metrics.pair import FacePair
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder

Pixels = npt.NDArray[np.uint8]
RENDERS = Path(__file__).resolve().parents[2] / "samples" / "portraits" / "images"
TONES = ("I", "II", "III", "IV", "V", "VI")
BASE_TONE = {"id01": "II", "id02": "III"}


@cache
def _finder() -> FaceFinder:
    try:
        return FaceFinder()
    except ModelMissing as error:
        pytest.skip(str(error))


def find(picture: Picture) -> Face:
    """The face of a picture that is known to show one."""
    face = _finder().find(picture).face
    assert face is not None
    return face


@cache
def rendered(name: str) -> Face:
    """A rendered portrait of samples/, such as "id01_skin_tone_VI"."""
    return find(open_picture(RENDERS / f"{name}.jpg"))


def tone(subject: str, group: str) -> Face:
    """One step of the full skin-tone sweep of id01 or id02."""
    base = BASE_TONE[subject] == group
    return rendered(f"{subject}_base" if base else f"{subject}_skin_tone_{group}")


def london(data_dir: Path, stem: str) -> Face:
    """A London portrait at 1024 px."""
    picture = open_picture(data_dir / "faces" / "london" / "neutral" / f"{stem}.jpg")
    pixels = cv2.resize(picture.pixels, (1024, 1024), interpolation=cv2.INTER_AREA)
    return find(Picture(np.asarray(pixels, dtype=np.uint8)))


def with_pixels(face: Face, pixels: Pixels, monochrome: bool = False) -> Face:
    """The same face, its picture edited but nothing moved."""
    facts = DecodeFacts(format="memory", monochrome=monochrome)
    return Face(Picture(pixels, facts), face.points, face.box, face.engine)


def edited(face: Face, edit: Callable[[Pixels, npt.NDArray[np.float64]], Pixels]) -> FacePair:
    """A pair whose edit moved nothing."""
    return FacePair(face, with_pixels(face, edit(face.picture.pixels, face.points)))


def identical(face: Face, mask: Mask | None = None) -> FacePair:
    return FacePair(face, with_pixels(face, face.picture.pixels.copy()), mask)


def figures(pair: FacePair, *modules: ModuleType) -> dict[tuple[str, str], Measurement]:
    """Measurements by (metric, region)."""
    return {(m.metric, m.region): m for module in modules for m in module.measure(pair)}


def value(
    found: dict[tuple[str, str], Measurement], metric: str, region: str = FACE_REGION
) -> float:
    """A measured figure; fails with the reason where there is none."""
    one = found[metric, region]
    assert one.value is not None, one.reason
    return one.value
