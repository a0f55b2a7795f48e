"""Regions of a face as pixel masks, drawn from the 68 points of the original on the crop's grid.

Every length is in inter-eye distances (IED) along the face's own axes, so that a tilted head has
tilted regions. The jaw line is a smooth curve (Catmull-Rom) through the 17 jaw points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import JAW, LEFT_EYE, OUTER_LIPS, RIGHT_EYE
from metrics.per_pair import once_per_pair

if TYPE_CHECKING:
    from metrics.pair import FacePair

Points = npt.NDArray[np.floating[Any]]
ByteMask = npt.NDArray[np.uint8]

FACE = "face"
NAMES = (
    "face",
    "upper_face",
    "lower_face",
    "beard",
    "eye_sockets",
    "cheeks",
    "forehead",
    "larynx",
)
"""Every region, the whole face first."""

LABELS = {
    "face": "the face",
    "upper_face": "the upper face",
    "lower_face": "the lower face",
    "beard": "the beard area",
    "eye_sockets": "the eye sockets",
    "cheeks": "the cheeks",
    "forehead": "the forehead",
    "larynx": "the larynx strip under the chin",
}

MIN_PIXELS = 150
"""Below this many pixels a region's figures are mostly chance."""
MIN_VISIBLE = 0.6
"""Share of a region that must lie inside both pictures."""
MIN_IED = 8.0
MAX_EXTENT = 12.0
FOREHEAD_HEIGHT = 0.62
"""Forehead height over the brows, as a share of the distance from brows to nose base: two thirds
of the classical third, so that the mask ends below most hairlines."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """One region on the crop: ``mask`` (h, w) uint8 0/1 lies at rows ``top``.. and columns
    ``left``.. of the crop. ``reason`` says why it cannot be measured, else None."""

    name: str
    top: int
    left: int
    mask: ByteMask
    pixels: int
    reason: str | None = None

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the crop that the mask covers."""
        height, width = self.mask.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


@dataclass(frozen=True, slots=True)
class FaceFrame:
    """The face's own axes: origin between the eyes, x along the eye line, y towards the chin."""

    origin: Points
    along: Points
    down: Points
    ied: float

    def place(self, xy: Points) -> Points:
        """(n, 2) positions in IED to (n, 2) pixels of the crop."""
        return self.origin + self.ied * (xy[:, :1] * self.along + xy[:, 1:] * self.down)

    def locate(self, points: Points) -> Points:
        """(n, 2) pixels of the crop to positions in IED."""
        offset = (points - self.origin) / self.ied
        return np.column_stack([offset @ self.along, offset @ self.down])


def face_frame(points: Points) -> FaceFrame:
    """The axes of a face from its (68, 2) points. Raises ValueError where the eyes coincide."""
    right, left = points[RIGHT_EYE].mean(axis=0), points[LEFT_EYE].mean(axis=0)
    ied = float(np.hypot(*(left - right)))
    if not ied > 0:
        raise ValueError("the two eye centres coincide")
    along = (left - right) / ied
    return FaceFrame((left + right) / 2, along, np.array([-along[1], along[0]]), ied)


def _curve_weights(count: int, steps: int) -> npt.NDArray[np.float64]:
    """(m, count) weights of a Catmull-Rom curve through ``count`` points, ``steps`` a segment."""
    rows = []
    for segment in range(count - 1):
        around = np.clip(np.arange(segment - 1, segment + 3), 0, count - 1)
        for t in np.arange(steps) / steps:
            basis = 0.5 * np.array(
                [
                    -t + 2 * t**2 - t**3,
                    2 - 5 * t**2 + 3 * t**3,
                    t + 4 * t**2 - 3 * t**3,
                    -(t**2) + t**3,
                ]
            )
            row = np.zeros(count)
            np.add.at(row, around, basis)
            rows.append(row)
    rows.append(np.eye(count)[-1])
    return np.array(rows)


_JAW_WEIGHTS = _curve_weights(17, 6)
_TURN = np.linspace(0.0, np.pi, 33)[1:-1]
_CIRCLE = np.column_stack(
    [np.cos(np.linspace(0, 2 * np.pi, 40)), np.sin(np.linspace(0, 2 * np.pi, 40))]
)


def jaw_curve(points: Points) -> Points:
    """The smooth jaw line from ear to ear: (97, 2) points."""
    return np.asarray(_JAW_WEIGHTS @ points[JAW])


def face_outline(points: Points) -> Points:
    """Closed outline (n, 2) of the face: the jaw curve and an elliptic arc over the forehead."""
    frame = face_frame(points)
    at = frame.locate(points)
    right, left = at[0], at[16]
    brows = float(at[[19, 21, 22, 24], 1].mean())
    top = brows - FOREHEAD_HEIGHT * max(float(at[33, 1]) - brows, 0.1)
    share = (1 - np.cos(_TURN)) / 2
    base = left + share[:, None] * (right - left)
    arc = np.column_stack(
        [base[:, 0], base[:, 1] + (top - (right[1] + left[1]) / 2) * np.sin(_TURN) ** 0.8]
    )
    return np.vstack([jaw_curve(points), frame.place(arc)])


def _shapes(points: Points) -> dict[str, tuple[list[Points], bool]]:
    """Polygons of each region, and whether they are cut to the face outline."""
    frame = face_frame(points)
    at = frame.locate(points)
    nose_base, brows = float(at[33, 1]), float(at[17:27, 1].mean())
    eyes = [at[RIGHT_EYE].mean(axis=0), at[LEFT_EYE].mean(axis=0)]
    wide = MAX_EXTENT

    def band(y0: float, y1: float, half: float = wide, x: float = 0.0) -> Points:
        return np.array([[x - half, y0], [x + half, y0], [x + half, y1], [x - half, y1]])

    def ellipses(below: float, a: float, b: float) -> list[Points]:
        return [frame.place(_CIRCLE * [a, b] + eye + [0.0, below]) for eye in eyes]

    chin = at[8]
    return {
        "upper_face": ([frame.place(band(-wide, nose_base))], True),
        "lower_face": ([frame.place(band(nose_base, wide))], True),
        "eye_sockets": (ellipses(0.0, 0.36, 0.22), True),
        "cheeks": (ellipses(0.66, 0.25, 0.20), True),
        "forehead": ([frame.place(band(-wide, brows - 0.10))], True),
        "larynx": ([frame.place(band(chin[1] + 0.12, chin[1] + 0.70, 0.35, chin[0]))], False),
    }


def draw(shape: tuple[int, int], polygons: list[Points], offset: Points) -> ByteMask:
    """Fill polygons (pixels of the crop) on a (h, w) canvas whose corner lies at ``offset``."""
    mask = np.zeros(shape, np.uint8)
    for polygon in polygons:
        limited = np.clip((polygon - offset) * 16, -(2**26), 2**26)
        cv2.fillPoly(mask, [np.rint(limited).astype(np.int32)], 1, shift=4)
    return mask


@once_per_pair
def regions(pair: FacePair) -> dict[str, Region]:
    """Every region of NAMES on the pair's crop, cached; regions of no use carry their reason."""
    return find_regions(pair.points, pair.valid)


def find_regions(points: Points, valid: npt.NDArray[np.bool_]) -> dict[str, Region]:
    """Regions from (68, 2) points in the crop and the crop's (h, w) mask of real pixels."""
    try:
        frame = face_frame(points)
    except ValueError as error:
        return _none(str(error))
    if frame.ied < MIN_IED:
        return _none(f"the face is too small ({frame.ied:.0f} px between the eyes)")
    outline = face_outline(points)
    shapes = _shapes(points)
    low = np.floor(np.minimum(outline.min(axis=0), shapes["larynx"][0][0].min(axis=0)))
    high = np.ceil(np.maximum(outline.max(axis=0), shapes["larynx"][0][0].max(axis=0)))
    extent = high - low + 1
    if not (np.isfinite(extent).all() and (extent <= MAX_EXTENT * frame.ied).all()):
        return _none("the landmarks are not those of a face")
    canvas = (int(extent[1]), int(extent[0]))
    face = draw(canvas, [outline], low)
    drawn = {FACE: face}
    for name, (polygons, cut) in shapes.items():
        mask = draw(canvas, polygons, low)
        drawn[name] = cv2.bitwise_and(mask, face) if cut else mask
    lips = draw(canvas, [points[OUTER_LIPS]], low)
    drawn["beard"] = cv2.bitwise_and(drawn["lower_face"], 1 - lips)
    seen = _seen(valid, canvas, low)
    return {name: _finish(name, drawn[name], seen, low) for name in NAMES}


def _none(reason: str) -> dict[str, Region]:
    nothing = np.zeros((0, 0), np.uint8)
    return {name: Region(name, 0, 0, nothing, 0, reason) for name in NAMES}


def _seen(valid: npt.NDArray[np.bool_], canvas: tuple[int, int], low: Points) -> ByteMask | None:
    """The canvas's pixels that both pictures show, less a rim of one pixel that a 3 x 3 filter would
    look past; None when that is all of them."""
    height, width = valid.shape
    x0, y0 = int(low[0]), int(low[1])
    x1, y1 = x0 + canvas[1], y0 + canvas[0]
    inside = valid[max(y0, 0) : max(y1, 0), max(x0, 0) : max(x1, 0)]
    if x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height and inside.all():
        return None
    seen = np.zeros(canvas, np.uint8)
    rows, columns = max(-y0, 0), max(-x0, 0)
    seen[rows : rows + inside.shape[0], columns : columns + inside.shape[1]] = inside
    inner: ByteMask = cv2.erode(seen, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_REPLICATE)
    return inner


def _finish(name: str, mask: ByteMask, seen: ByteMask | None, low: Points) -> Region:
    """Cut a drawn mask to what is seen, trim it to its bounding box and say whether it is enough."""
    nominal = cv2.countNonZero(mask)
    if seen is not None:
        mask = cv2.bitwise_and(mask, seen)
    pixels = cv2.countNonZero(mask)
    label = LABELS[name]
    reason = None
    if nominal < MIN_PIXELS:
        reason = f"too few pixels for {label} ({nominal} px, {MIN_PIXELS} needed)"
    elif pixels < MIN_VISIBLE * nominal:
        share = 100.0 * pixels / nominal
        reason = f"too little of {label} is inside both pictures ({share:.0f} %)"
    if pixels == 0:
        return Region(name, 0, 0, np.zeros((0, 0), np.uint8), 0, reason)
    x, y, width, height = cv2.boundingRect(mask)
    trimmed = np.ascontiguousarray(mask[y : y + height, x : x + width])
    return Region(name, y + int(low[1]), x + int(low[0]), trimmed, pixels, reason)
