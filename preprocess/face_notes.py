"""What a reader must know about a face before its figures are read: sentences, and one refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import LEFT_EYE, RIGHT_EYE
from domain.pictures import Picture

Points: TypeAlias = npt.NDArray[np.float64]

TILT_NOTED = 15.0
"""Degrees."""
TILT_REFUSED = 60.0
"""Degrees; a face lying down is not an upright portrait, and its points are not reliable."""
TURN_NOTED = 2.5
"""Ratio of the two halves of the face, nose tip to cheek."""
FLAT_NOTED = 0.15
"""Share of the face that is exactly one colour; over 435 portraits of five sets it was 0.03 at most."""
FLAT_REFUSED = 0.75
"""A drawn smiley is at 0.86, a face under a plain surgical mask at 0.58."""
CLIPPED_NOTED = 0.10
DARK_NOTED = 25.0
"""Median luma of the face, 0..255; the darkest of the 435 portraits was at 28."""
CONTRAST_NOTED = 25.0
"""Luma between the 5th and 95th percentile of the face; the flattest of the 435 was at 33."""
EYES_COVERED = 0.30
"""Bright end of the brighter eye region over the bright end of the face; 0.34 at least in the 435."""
_LOOKED_AT = 40
"""Pixels across the face that the statistics look at."""
_LUMA = np.array([0.299, 0.587, 0.114])
_CODE = np.array([65536, 256, 1])


@dataclass(frozen=True, slots=True)
class FaceLook:
    """Simple statistics of the pixels inside the outline of the points.

    ``flat`` and ``clipped`` are shares 0..1, ``luma`` and ``contrast`` levels 0..255, ``eyes`` a
    ratio, ``bluish`` true when the face is bluer than it is red, as no skin is in white light.
    """

    flat: float
    clipped: float
    luma: float
    contrast: float
    eyes: float
    bluish: bool


def look_at(picture: Picture, points: Points) -> FaceLook | None:
    """The statistics, or None where hardly a pixel of the face lies inside the picture."""
    size = np.array([picture.width, picture.height])
    low = np.clip(np.floor(points.min(axis=0)).astype(int), 0, size)
    high = np.clip(np.ceil(points.max(axis=0)).astype(int) + 1, 0, size)
    step = max(int((high - low).max()) // _LOOKED_AT, 1)
    part = picture.pixels[low[1] : high[1] : step, low[0] : high[0] : step]
    if min(part.shape[:2]) < 4:
        return None
    placed = (points - low) / step
    mask = np.zeros(part.shape[:2], np.uint8)
    cv2.fillConvexPoly(mask, cv2.convexHull(placed.round().astype(np.int32)), 1)
    inside = part[mask > 0].astype(np.int64)
    if len(inside) < 50:
        return None
    luma = np.sort(inside @ _LUMA)
    codes = np.sort(inside @ _CODE)
    starts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    longest = np.diff(starts, prepend=0, append=len(codes)).max()
    p5, p50, p70, p95 = (_at(luma, share) for share in (0.05, 0.5, 0.7, 0.95))
    eyes = []
    for eye in (RIGHT_EYE, LEFT_EYE):
        a = np.maximum(np.floor(placed[eye].min(axis=0) - 1).astype(int), 0)
        b = np.ceil(placed[eye].max(axis=0) + 2).astype(int)
        region = part[a[1] : max(b[1], 0), a[0] : max(b[0], 0)] @ _LUMA
        if region.size:
            eyes.append(_at(np.sort(region, axis=None), 0.9) / max(p70, 1.0))
    red, blue = (_at(np.sort(inside[:, channel]), 0.5) for channel in (0, 2))
    return FaceLook(
        flat=float(longest / len(codes)),
        clipped=np.count_nonzero(np.minimum(np.minimum(*inside.T[:2]), inside[:, 2]) >= 250)
        / len(inside),
        luma=p50,
        contrast=p95 - p5,
        eyes=max(eyes, default=1.0),
        bluish=blue > red + 2,
    )


def _at(ordered: npt.NDArray[Any], share: float) -> float:
    """Quantile of sorted values, between two of them in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * (place - below)


def tilt_of(points: Points) -> float:
    """Turn of the line through both eye centres, in degrees, clockwise on the screen."""
    dx, dy = points[LEFT_EYE].mean(axis=0) - points[RIGHT_EYE].mean(axis=0)
    return float(np.degrees(np.arctan2(dy, dx)))


def turn_of(points: Points) -> float:
    """Ratio (>= 1) of the wider half of the face to the narrower: 1 seen straight from the front."""
    axis = points[LEFT_EYE].mean(axis=0) - points[RIGHT_EYE].mean(axis=0)
    axis = axis / max(float(np.hypot(*axis)), 1e-9)
    right = float((points[30] - points[2]) @ axis)
    left = float((points[14] - points[30]) @ axis)
    narrow, wide = sorted((abs(right), abs(left)))
    return wide / max(narrow, 1e-9) if right > 0 and left > 0 else float("inf")


def points_outside(points: Points, width: int, height: int) -> int:
    """How many of the points lie outside a picture of that size."""
    return int(((points < -0.5) | (points > np.array([width, height]) - 0.5)).any(axis=1).sum())


def place_notes(points: Points, width: int, height: int) -> list[str]:
    """Sentences on tilt, turn and the picture's border."""
    notes = []
    tilt = tilt_of(points)
    if abs(tilt) >= TILT_NOTED:
        notes.append(f"head tilt {abs(tilt):.0f} degrees")
    if turn_of(points) >= TURN_NOTED:
        notes.append("head turned to the side")
    outside = points_outside(points, width, height)
    border = 0.01 * min(width, height)
    close = ((points < border) | (points > np.array([width, height]) - 1 - border)).any(axis=1)
    if outside:
        notes.append(f"face cut by the picture's edge: {outside} of 68 points lie outside")
    elif close.any():
        notes.append("face touches the border")
    return notes


def look_notes(look: FaceLook) -> list[str]:
    """Sentences on light, cover and colour."""
    notes = []
    if look.flat >= FLAT_NOTED:
        notes.append(
            f"{100 * look.flat:.0f} % of the face is one flat colour: covered, painted over or lost in shadow"
        )
    if look.eyes <= EYES_COVERED:
        notes.append("eyes not visible: covered or in deep shadow")
    if look.clipped >= CLIPPED_NOTED:
        notes.append(f"{100 * look.clipped:.0f} % of the face is clipped to white")
    if look.luma <= DARK_NOTED:
        notes.append(f"very dark face (median luma {look.luma:.0f} of 255)")
    elif look.contrast <= CONTRAST_NOTED:
        notes.append(f"low contrast face (luma spans {look.contrast:.0f} of 255 levels)")
    if look.bluish:
        notes.append("strong colour cast: the face is bluer than it is red")
    return notes
