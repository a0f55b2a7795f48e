"""Facial proportions from the 68 points: what the tool lengthened, narrowed or opened.

Ratios and angles do not change with the picture's size, place or (once the eyes are level) turn, so
each is compared as it is between the original and the registered edited face. Fourteen of them also
give one signed index along the axis that separates the declared genders of a sample of portraits;
docs/proportions.md derives it. It describes shapes in a sample and is read only as a difference
within a pair: it is never used to guess anyone's gender.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import acos, degrees

import numpy as np
import numpy.typing as npt

from domain.faces import LEFT_BROW, LEFT_EYE, RIGHT_BROW, RIGHT_EYE
from domain.measurements import Measurement
from metrics.affine import Points
from metrics.contract import Direction, MetricSpec
from metrics.landmarks import collapsed
from metrics.pair import FacePair

RATIOS = (
    "jaw_width", "jaw_width_upper", "jaw_angle", "chin_angle", "brow_to_eye", "brow_gap",
    "eye_opening", "nose_width", "nose_length", "philtrum", "lips", "chin_height", "mouth_width",
    "face_width",
)  # fmt: skip
"""Order of the fourteen figures of ``proportions``; docs/proportions.md says how each is taken."""
TURNED_LIMIT = 2.5
"""Ratio of the face's two halves from which it is turned too far for widths to mean anything."""

_REPORTED = {
    "jaw_angle": ("jaw angle", "jaw made wider or narrower in its angle"),
    "jaw_width": ("jaw width / face width", "jaw made wider or narrower"),
    "brow_to_eye": ("brow-to-eye distance / inter-eye distance", "brows moved"),
    "eye_opening": ("eye opening, height / width", "eyes opened or narrowed"),
    "nose_width": ("nose width / inter-eye distance", "nose made wider or narrower"),
}

SPECS: tuple[MetricSpec, ...] = (
    *(
        MetricSpec(
            id=name,
            name=f"relative change of {words}",
            unit="%",
            low=-100.0,
            high=None,
            direction=Direction.SIGNED,
            perfect=0.0,
            reference="68-point geometry; docs/proportions.md",
            margin=3.0,
            harm=harm,
        )
        for name, (words, harm) in _REPORTED.items()
    ),
    MetricSpec(
        id="proportions_axis",
        name="shift along the feminine-masculine axis of the sample",
        unit="SD",
        low=None,
        high=None,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference="logistic axis over 14 ratios, docs/proportions.md; above 0: towards the masculine end",
        margin=0.25,
        harm="facial proportions moved along the feminine-masculine axis of the sample",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """``means``, ``sds`` and ``coefficients`` are (14,) in the order of ``RATIOS``; the index is
    ``((ratios - means) / sds) @ coefficients``, whose standard deviation in the sample is 1."""

    means: npt.NDArray[np.float64]
    sds: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]

    def shift(self, original: npt.NDArray[np.float64], edited: npt.NDArray[np.float64]) -> float:
        """How far the edited ratios (14,) lie from the original's along the axis, in SD."""
        return float(((edited - original) / self.sds) @ self.coefficients)


@cache
def axis() -> Axis:
    """The axis of data/proportions_axis.json, made by docs/derivations/proportions_axis.py."""
    text = resources.files("metrics").joinpath("data/proportions_axis.json").read_text()
    data = json.loads(text)
    if tuple(data["ratios"]) != RATIOS:
        raise ValueError("data/proportions_axis.json is of other ratios: run its derivation again")
    return Axis(*(np.array(data[k]) for k in ("means", "sds", "coefficients")))


def measure(pair: FacePair) -> list[Measurement]:
    """The five signed relative changes in % and ``proportions_axis`` in SD."""
    reason = _unmeasurable(pair)
    if reason:
        return [Measurement.missing(s.id, s.unit, reason) for s in SPECS]
    original, edited = proportions(pair.points), proportions(pair.landmark_points)
    change = 100.0 * (edited / original - 1.0)
    results = [
        Measurement(
            name, float(change[RATIOS.index(name)]), "%", evidence=_both(original, edited, name)
        )
        for name in _REPORTED
    ]
    return [*results, Measurement("proportions_axis", axis().shift(original, edited), "SD")]


def proportions(points: Points) -> npt.NDArray[np.float64]:
    """(14,) ratios and angles (degrees) of (68, 2) points, in the order of ``RATIOS``."""
    p = _on_plane(points)  # a handful of numbers: plain arithmetic is ten times faster than arrays
    right, left = _mean(p[RIGHT_EYE]), _mean(p[LEFT_EYE])
    ied = _distance(right, left)
    down = 1j * (left - right) / ied
    face = _distance(p[0], p[16])
    from_brows = right - _mean(p[RIGHT_BROW]) + left - _mean(p[LEFT_BROW])
    figures = {
        "jaw_width": _distance(p[5], p[11]) / face,
        "jaw_width_upper": _distance(p[3], p[13]) / face,
        "jaw_angle": (_angle(p[2], p[5], p[8]) + _angle(p[14], p[11], p[8])) / 2,
        "chin_angle": _angle(p[6], p[8], p[10]),
        "brow_to_eye": _dot(from_brows, down) / (2 * ied),
        "brow_gap": _distance(p[21], p[22]) / ied,
        "eye_opening": (_opening(p[RIGHT_EYE]) + _opening(p[LEFT_EYE])) / 2,
        "nose_width": _distance(p[31], p[35]) / ied,
        "nose_length": _distance(p[27], p[33]) / ied,
        "philtrum": _distance(p[33], p[51]) / ied,
        "lips": _distance(p[51], p[57]) / ied,
        "chin_height": _distance(p[57], p[8]) / ied,
        "mouth_width": _distance(p[48], p[54]) / ied,
        "face_width": face / ied,
    }
    return np.array([figures[name] for name in RATIOS])


MOST_OUTSIDE = 4
"""Points of 68 that may lie outside the picture (the ends of a wide jaw line)."""


def _unmeasurable(pair: FacePair) -> str | None:
    if collapsed(pair.landmark_points, pair.points):
        return "the edited face's points are collapsed"
    picture = pair.original.picture
    outside = (pair.original.points < -0.5) | (
        pair.original.points > (picture.width - 0.5, picture.height - 0.5)
    )
    if outside.any(axis=1).sum() > MOST_OUTSIDE:
        return f"the face is cut: {int(outside.any(axis=1).sum())} points lie outside the picture"
    for whose, points in (("original", pair.points), ("edited face", pair.landmark_points)):
        p = _on_plane(points)
        narrow, wide = sorted((_half(p, 2), _half(p, 14)))
        if wide > TURNED_LIMIT * narrow:
            return f"{whose} turned to the side: widths and angles are foreshortened"
    return None


def _on_plane(points: Points) -> list[complex]:
    """(n, 2) points as x + iy."""
    return [complex(x, y) for x, y in points.tolist()]


def _mean(points: list[complex]) -> complex:
    return sum(points) / len(points)


def _dot(a: complex, b: complex) -> float:
    return a.real * b.real + a.imag * b.imag


def _half(p: list[complex], cheek: int) -> float:
    """Width of one half of the face along the eyes' line, nose tip to cheek, >= 0."""
    across = _mean(p[LEFT_EYE]) - _mean(p[RIGHT_EYE])
    side = 1.0 if cheek > 8 else -1.0
    return max(_dot(p[cheek] - p[30], across) * side, 0.0)


def _distance(a: complex, b: complex) -> float:
    return max(abs(a - b), 1e-9)


def _angle(before: complex, corner: complex, after: complex) -> float:
    """Degrees at the middle one of three points."""
    cosine = _dot(before - corner, after - corner)
    cosine /= _distance(before, corner) * _distance(after, corner)
    return degrees(acos(min(max(cosine, -1.0), 1.0)))


def _opening(eye: list[complex]) -> float:
    """Height over width of one eye of six points."""
    height = (_distance(eye[1], eye[5]) + _distance(eye[2], eye[4])) / 2
    return height / _distance(eye[0], eye[3])


def _both(
    original: npt.NDArray[np.float64], edited: npt.NDArray[np.float64], name: str
) -> dict[str, float]:
    i = RATIOS.index(name)
    return {"original": round(float(original[i]), 4), "edited": round(float(edited[i]), 4)}
