"""Fit a picture to a tool's own sizes around the face: never a blanket resize, never a cut larynx."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.pictures import Picture
from domain.sizing import SizeRule

Box: TypeAlias = tuple[int, int, int, int]
"""(x, y, width, height) in whole pixels; covers x .. x + width - 1."""

LARYNX_REACH = 0.8
"""How far under the chin the larynx still shows in a frontal portrait, in inter-eye distances
(chin to laryngeal prominence about 5 cm, adult inter-pupillary distance about 6.3 cm)."""
LARYNX_SHARE = 0.35
"""The same reach as a share of the detector box's height, for when no points are known."""
FACE_SHARE = 0.6
"""A crop for a tool of fixed size leaves the grown face box at most this share of a side."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A picture at a size its tool takes natively.

    ``region`` is what was cut out, in pixels of the source; it reaches beyond the source where
    the edge was repeated. ``scale`` is fitted pixels per source pixel (1.0: not resampled).
    ``face_box`` is in pixels of ``picture``. ``notes`` are sentences about what was done.
    """

    picture: Picture
    face_box: Box
    scale: float
    region: Box
    notes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """All notes in one line; "" when the picture went in as it was."""
        return " ".join(self.notes)

    def to_fitted(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Map (n, 2) source points (pixel centres are whole numbers) into the fitted picture."""
        x, y, width, height = self.region
        size = np.array([self.picture.width / width, self.picture.height / height])
        return np.asarray((points + 0.5 - [x, y]) * size - 0.5, dtype=np.float64)


def grow_box(
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    share: float = 0.15,
    points: npt.NDArray[np.float64] | None = None,
) -> Box:
    """The face box with air around it, deep enough to hold jaw and larynx, inside the picture.

    Every edge of ``box`` (x, y, width, height) moves out by ``share`` of the box's side; with the
    68 ``points`` the box first takes in all of them, and its growth reaches the larynx along the
    face's own axis, so a tilted head keeps it too. Without points the reach is a share of the
    box's height. ``size`` is the picture's (width, height). At least one pixel a side comes back.
    Raises ValueError for figures that are not finite or a picture without pixels.
    """
    if not np.isfinite(box).all() or min(size) < 1:
        raise ValueError(f"box {box} in a picture of {size} is no face box")
    left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
    if points is not None:
        left, top = min(left, points[:, 0].min()), min(top, points[:, 1].min())
        right, bottom = max(right, points[:, 0].max()), max(bottom, points[:, 1].max())
    air_x, air_y = share * (right - left), share * (bottom - top)
    if points is None:
        reach = [left, bottom + LARYNX_SHARE * (bottom - top)]
    else:
        reach = _larynx(points).tolist()
    left, right = min(left - air_x, reach[0]), max(right + air_x, reach[0])
    top, bottom = min(top - air_y, reach[1]), max(bottom + air_y, reach[1])
    x0 = min(max(math.floor(left), 0), size[0] - 1)
    y0 = min(max(math.floor(top), 0), size[1] - 1)
    x1 = max(min(math.ceil(right), size[0]), x0 + 1)
    y1 = max(min(math.ceil(bottom), size[1]), y0 + 1)
    return x0, y0, x1 - x0, y1 - y0


def _larynx(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    eyes = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    ied = float(np.hypot(*(eyes[1] - eyes[0])))
    axis = points[8] - (eyes[0] + eyes[1]) / 2
    down = axis / max(float(np.hypot(*axis)), 1e-9)
    return np.asarray(points[8] + LARYNX_REACH * ied * down, dtype=np.float64)


def fit_to_tool(picture: Picture, face_box: Box | None, rule: SizeRule) -> Fitted:
    """Bring ``picture`` to a size that ``rule`` allows, with the (grown) ``face_box`` kept in.

    A tool of any size gets the picture untouched; a multiple is met by cropping up to one multiple
    off the sides away from the face, or by repeating the edge where that would cut the face box;
    a ``max_side`` by scaling the whole picture down. Exact sizes and aspects get a crop around the
    face: as near to the picture's own resolution as the face box with air around it allows.
    Scaling down averages areas; scaling up (cubic) is done only to reach a minimum, and said.
    Repeated edge pixels are marked not opaque, so that no figure is taken from them. ``None`` for
    the box means the picture's centre. Raises ValueError for a rule that no size can meet.
    """
    box = face_box or (picture.width // 2, picture.height // 2, 1, 1)
    if rule.sizes:
        targets = list(rule.sizes)
    elif rule.aspect is not None:
        targets = [_size_of_aspect(picture, box, rule)]
    else:
        region, target = _any_size(picture, box, rule)
        return _cut(picture, box, region, target)
    for width, height in targets:
        if width < 1 or height < 1:
            raise ValueError(f"a tool size of {width}x{height} has no pixels")
    crops = [(_around(picture, box, size), size) for size in targets]
    region, target = min(crops, key=lambda crop: _loss(picture, *crop))
    return _cut(picture, box, region, target)


def _limits(rule: SizeRule) -> tuple[int, int]:
    """Smallest and largest side that are multiples."""
    low = -(-rule.min_side // rule.multiple) * rule.multiple
    high = rule.max_side // rule.multiple * rule.multiple
    if high < low or low < 1:
        raise ValueError(
            f"no side is a multiple of {rule.multiple} within {rule.min_side}..{rule.max_side}"
        )
    return low, high


def _any_size(picture: Picture, box: Box, rule: SizeRule) -> tuple[Box, tuple[int, int]]:
    low, high = _limits(rule)
    width, height = picture.width, picture.height
    scale = min(1.0, high / max(width, height))
    if min(width, height) * scale < low:
        scale = min(low / min(width, height), max(1.0, high / max(width, height)))
    sides = [
        _side(own * scale, wanted * scale, low, high, rule.multiple)
        for own, wanted in ((width, box[2]), (height, box[3]))
    ]
    spans = [max(1, round(side / scale)) for side in sides]
    region = (
        _place(spans[0], width, box[0], box[2]),
        _place(spans[1], height, box[1], box[3]),
        spans[0],
        spans[1],
    )
    return region, (sides[0], sides[1])


def _side(length: float, face: float, low: int, high: int, multiple: int) -> int:
    """The allowed side nearest to ``length`` from below, unless the face needs the next one."""
    side = math.floor(round(length, 6) / multiple) * multiple
    if side < face - 1e-6:
        side += multiple
    return min(max(side, low), high)


def _size_of_aspect(picture: Picture, box: Box, rule: SizeRule) -> tuple[int, int]:
    """The largest allowed size of the rule's aspect that needs no scaling up."""
    aspect = rule.aspect or 1.0
    if not 0 < aspect < math.inf:
        raise ValueError(f"an aspect of {aspect} is no shape")
    low, high = _limits(rule)
    width = min(picture.width, picture.height * aspect)
    width = max(width, box[2], box[3] * aspect)
    wide = aspect >= 1
    ratio = aspect if wide else 1 / aspect
    step = rule.multiple
    long_side = min(math.floor((width if wide else width / aspect) / step) * step, high)
    short = round(long_side / ratio / step) * step
    if short < low:
        short = low
        long_side = min(max(round(low * ratio / step) * step, low), high)
    return (long_side, short) if wide else (short, long_side)


def _around(picture: Picture, box: Box, target: tuple[int, int]) -> Box:
    """A region of the target's aspect around the face: its own scale if the face has room in it."""
    aspect = target[0] / target[1]
    least = max(box[2], box[3] * aspect)
    most = min(picture.width, picture.height * aspect)
    width = max(least, min(most, max(target[0], least / FACE_SHARE)))
    span = (max(1, round(width)), max(1, round(width / aspect)))
    return (
        _place(span[0], picture.width, box[0], box[2]),
        _place(span[1], picture.height, box[1], box[3]),
        *span,
    )


def _place(span: int, length: int, face_start: int, face_span: int) -> int:
    """Where a window of ``span`` begins: centred on the face, inside the picture if it fits."""
    if span >= length:
        return (length - span) // 2
    return min(max(face_start + (face_span - span) // 2, 0), length - span)


def _loss(picture: Picture, region: Box, target: tuple[int, int]) -> tuple[float, float, float]:
    """Order among exact sizes: least invented edge, least scaling up, then most picture kept."""
    inside = _overlap(region[0], region[2], picture.width) * _overlap(
        region[1], region[3], picture.height
    )
    scale = target[0] / region[2]
    padded = 1 - inside / (region[2] * region[3])
    return round(padded, 3), round(max(scale, 1.0), 3), -inside * min(scale, 1.0) ** 2


def _overlap(start: int, span: int, length: int) -> int:
    return max(0, min(start + span, length) - max(start, 0))


def _cut(picture: Picture, box: Box, region: Box, target: tuple[int, int]) -> Fitted:
    x, y, width, height = region
    scale = target[0] / width
    face = _map_box(box, region, target)
    if (x, y) == (0, 0) and (width, height) == target == (picture.width, picture.height):
        return Fitted(picture, face, 1.0, region)
    pads = (
        max(-y, 0),
        max(y + height - picture.height, 0),
        max(-x, 0),
        max(x + width - picture.width, 0),
    )
    pixels = _window(picture.pixels, region, pads, cv2.BORDER_REPLICATE)
    opaque = picture.opaque
    if opaque is None and any(pads):
        opaque = np.ones(picture.pixels.shape[:2], dtype=np.bool_)
    solid = None
    if opaque is not None:
        solid = _window(opaque.astype(np.uint8) * 255, region, pads, cv2.BORDER_CONSTANT)
    if target != (width, height):
        way = cv2.INTER_AREA if scale <= 1 else cv2.INTER_CUBIC
        pixels = cv2.resize(pixels, target, interpolation=way)
        if solid is not None:  # a pixel with any see-through part in it is not opaque
            area = cv2.INTER_AREA if scale <= 1 else cv2.INTER_LINEAR
            solid = cv2.resize(solid, target, interpolation=area)
    fitted = replace(
        picture,
        pixels=np.ascontiguousarray(pixels),
        opaque=None if solid is None or bool((solid == 255).all()) else solid == 255,
        sha256="",
    )
    return Fitted(fitted, face, scale, region, _notes(picture, box, region, target, pads))


def _window(
    values: npt.NDArray[np.uint8], region: Box, pads: tuple[int, int, int, int], border: int
) -> npt.NDArray[np.uint8]:
    x, y, width, height = region
    inner = values[max(y, 0) : y + height, max(x, 0) : x + width]
    if not any(pads):
        return inner
    return np.asarray(cv2.copyMakeBorder(inner, *pads, borderType=border, value=0), dtype=np.uint8)


def _map_box(box: Box, region: Box, target: tuple[int, int]) -> Box:
    scales = target[0] / region[2], target[1] / region[3]
    x0 = min(max(math.floor((box[0] - region[0]) * scales[0] + 1e-9), 0), target[0] - 1)
    y0 = min(max(math.floor((box[1] - region[1]) * scales[1] + 1e-9), 0), target[1] - 1)
    x1 = math.ceil((box[0] + box[2] - region[0]) * scales[0] - 1e-9)
    y1 = math.ceil((box[1] + box[3] - region[1]) * scales[1] - 1e-9)
    return x0, y0, max(1, min(x1, target[0]) - x0), max(1, min(y1, target[1]) - y0)


def _notes(
    picture: Picture, box: Box, region: Box, target: tuple[int, int], pads: tuple[int, ...]
) -> tuple[str, ...]:
    x, y, width, height = region
    scale = target[0] / width
    notes = []
    if x > 0 or y > 0 or x + width < picture.width or y + height < picture.height:
        notes.append(
            f"Cropped {picture.width}x{picture.height} to {width}x{height} around the face."
        )
    if any(pads):
        notes.append("Edge pixels repeated: {} top, {} bottom, {} left, {} right.".format(*pads))
    if target != (width, height):
        word = "up" if scale > 1 else "down"
        notes.append(f"Scaled {word} {scale:.3f} x to {target[0]}x{target[1]}.")
    if box[2] > width or box[3] > height:
        notes.append("The grown face box does not fit into this tool's size and is cut.")
    return tuple(notes)
