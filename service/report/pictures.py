"""Face crops for the diagnosis: original, edited laid over it, and their difference, made small.

All three lie on one grid of ``SIDE`` x ``SIDE`` pixels: the edited picture is registered to the
original by the similarity of the stable points 27-67 (Umeyama 1991), so that a tool which crops or
scales is compared on the face.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from domain.errors import PictureRejected
from domain.faces import STABLE
from domain.pictures import RgbPixels
from preprocess.decode import encode_jpeg, open_picture
from service.report.model import ItemRow, RunData
from service.report.tables import worst_first

Points = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

SIDE = 288
"""Pixels of an embedded crop's side."""
FINE = 3 * SIDE // 2
"""Differences are computed at this side and averaged down, so that lost fine detail shows."""
DIFFERENCE_SIDE = 144
DIFFERENCE_CEILING = 40.0
"""CIE76 difference shown at full strength; some seventeen times a just noticeable one (2.3)."""
MAX_ITEMS = 400
MAX_BYTES = 12_000_000
QUALITY = 76


def evidence_points(evidence: Mapping[str, Any], key: str) -> Points | None:
    """(68, 2) points of ``evidence[key]``, None where they are absent or not 68 finite pairs."""
    raw = evidence.get(key)
    if raw is None:
        return None
    try:
        points = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return points if points.shape == (68, 2) and bool(np.isfinite(points).all()) else None


def retained_flags(evidence: Mapping[str, Any]) -> list[bool] | None:
    """68 flags, False for a point that is displaced or whose anatomy is gone; None where unknown.

    Read from ``retained`` (68 flags), else from ``lost`` (numbers of points) or ``collapsed``.
    """
    flags = evidence.get("retained")
    if flags is not None and len(flags) == 68:
        return [bool(f) for f in flags]
    if evidence.get("collapsed"):
        return [False] * 68
    lost = evidence.get("lost")
    return None if lost is None else [i not in set(lost) for i in range(68)]


def _scaled(evidence: Mapping[str, Any], which: str, size: tuple[int, int]) -> Points | None:
    """Points of one picture in its own pixels; the instrument may have measured a copy of another
    size (``original_size``, ``edited_size``), an unstretched one for example."""
    points = evidence_points(evidence, f"{which}_points")
    measured = evidence.get(f"{which}_size")
    if points is None or not measured:
        return points
    ratio = np.array([size[0] / measured[0], size[1] / measured[1]], dtype=np.float64)
    scaled: Points = (points + 0.5) * ratio - 0.5
    return scaled


def similarity(source: Points, target: Points) -> Matrix:
    """(2, 3) similarity that takes ``source`` points to ``target`` with least squares (Umeyama 1991).

    Points crowded on one spot give a pure shift.
    """
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    spread = float((a**2).sum())
    if spread < 1e-9:
        turn, scale = np.eye(2), 1.0
    else:
        u, d, vt = np.linalg.svd(b.T @ a)
        flip = np.diag([1.0, float(np.sign(np.linalg.det(u @ vt)) or 1.0)])
        turn = u @ flip @ vt
        scale = float((d * flip.diagonal()).sum()) / spread
    linear = scale * turn
    return np.column_stack([linear, target.mean(axis=0) - linear @ source.mean(axis=0)])


def move(matrix: Matrix, points: Points) -> Points:
    """(n, 2) points through a (2, 3) matrix."""
    return points @ matrix[:, :2].T + matrix[:, 2]


def crop_square(
    points: Points | None, box: Any, size: tuple[int, int]
) -> tuple[float, float, float]:
    """(left, top, side) in pixels of a square round the face with forehead and chin; the whole
    picture (``size`` is width, height) where neither points nor a box are known."""
    if points is not None:
        low, high = points.min(axis=0), points.max(axis=0)
        width, height = high - low
        side = max(1.45 * width, 1.78 * height, 8.0)
        centre = (low[0] + width / 2, low[1] + height * 0.36)
    elif box is not None and len(box) == 4:
        side = 1.35 * max(float(box[2]), float(box[3]), 8.0)
        centre = (float(box[0]) + float(box[2]) / 2, float(box[1]) + float(box[3]) / 2)
    else:
        side = float(max(size))
        centre = (size[0] / 2, size[1] / 2)
    return centre[0] - side / 2, centre[1] - side / 2, side


@dataclass(frozen=True, eq=False)
class Trio:
    """Original and edited crop ((n, n, 3) uint8), ``difference`` (n, n) float32 CIE76, both faces'
    points in the grid, and ``aligned``: how the edited picture was laid over the original."""

    original: RgbPixels
    edited: RgbPixels | None
    difference: npt.NDArray[np.float32] | None
    original_points: Points | None
    edited_points: Points | None
    aligned: str


def make_trio(
    original: RgbPixels, edited: RgbPixels | None, evidence: Mapping[str, Any], side: int
) -> Trio:
    """Crop and register one pair on a grid of ``side`` pixels."""
    height, width = original.shape[:2]
    points = _scaled(evidence, "original", (width, height))
    left, top, extent = crop_square(points, evidence.get("face_box"), (width, height))
    scale = side / extent
    to_grid = np.array([[scale, 0, -left * scale], [0, scale, -top * scale]])
    shown = None if points is None else move(to_grid, points)
    first, known = _warp(original, to_grid, side)
    if edited is None:
        return Trio(first, None, None, shown, None, "no edited picture")
    after = _scaled(evidence, "edited", (edited.shape[1], edited.shape[0]))
    if points is not None and after is not None:
        register = similarity(after[STABLE], points[STABLE])
        aligned = "registered on eyes, nose and mouth"
    else:
        sx, sy = width / edited.shape[1], height / edited.shape[0]
        register = np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2]])
        aligned = "laid over by size: no face to register on"
    whole = _compose(to_grid, register)
    second, covered = _warp(edited, whole, side)
    difference = colour_difference(first, second)
    difference[~(known & covered)] = 0
    moved = None if after is None else move(whole, after)
    return Trio(first, second, difference, shown, moved, aligned)


def _compose(outer: Matrix, inner: Matrix) -> Matrix:
    linear = outer[:, :2] @ inner[:, :2]
    return np.column_stack([linear, outer[:, :2] @ inner[:, 2] + outer[:, 2]])


def _warp(pixels: RgbPixels, matrix: Matrix, side: int) -> tuple[RgbPixels, npt.NDArray[np.bool_]]:
    """``pixels`` on the grid, and where the picture covers it. Shrinks by areas first: no aliasing."""
    factor = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
    if 0 < factor < 0.7:
        height, width = pixels.shape[:2]
        small = (max(1, round(width * factor)), max(1, round(height * factor)))
        sx, sy = width / small[0], height / small[1]
        pixels = cv2.resize(pixels, small, interpolation=cv2.INTER_AREA)
        matrix = _compose(matrix, np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2]]))
    out = cv2.warpAffine(
        pixels, matrix, (side, side), flags=cv2.INTER_LINEAR, borderValue=(236, 234, 230)
    )
    solid = np.full(pixels.shape[:2], 255, np.uint8)
    cover = cv2.warpAffine(solid, matrix, (side, side), flags=cv2.INTER_NEAREST, borderValue=0)
    return np.ascontiguousarray(out, dtype=np.uint8), cover > 0


def colour_difference(first: RgbPixels, second: RgbPixels) -> npt.NDArray[np.float32]:
    """(h, w) float32 CIE76 difference, for pictures only: figures come from the metrics."""
    a = cv2.cvtColor(first.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    b = cv2.cvtColor(second.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    squares = cv2.transform(cv2.pow(a - b, 2), np.ones((1, 3), np.float32))
    return np.asarray(cv2.sqrt(squares), dtype=np.float32)


@dataclass(frozen=True)
class Embedded:
    """``pictures`` are data addresses by number; ``items`` maps an item to what is drawn for it."""

    pictures: tuple[str, ...]
    items: Mapping[str, dict[str, Any]]
    problems: Mapping[str, str]


def embed(data: RunData, limit: int = MAX_ITEMS, budget: int = MAX_BYTES) -> Embedded:
    """Crops of the worst items of every tool, taken in turns, until ``limit`` items or ``budget`` bytes.

    A picture that cannot be loaded is a problem of its item, with the reason; the others go on.
    """
    store = _Store(data)
    for item in sorted(
        _in_turns(worst_first(data), limit), key=lambda i: (i.original or "", i.item_id)
    ):
        if store.bytes >= budget:
            store.problems[item.item_id] = "the report has reached its size limit"
            continue
        store.add(item)
    return Embedded(tuple(store.pictures), store.items, store.problems)


def _in_turns(items: Iterable[ItemRow], limit: int) -> list[ItemRow]:
    """The first of every tool, then the second of every tool, ...; controls after the tools."""
    queues: dict[tuple[bool, str], list[ItemRow]] = {}
    for item in items:
        if item.original is not None:
            queues.setdefault((item.control, item.tool), []).append(item)
    tools = [q for (control, _), q in sorted(queues.items()) if not control]
    controls = [q for (control, _), q in sorted(queues.items()) if control]
    chosen: list[ItemRow] = []
    for group in (tools, controls):
        for turn in range(max((len(q) for q in group), default=0)):
            chosen.extend(q[turn] for q in group if turn < len(q))
    return chosen[:limit]


class _Store:
    """Collects encoded crops; one crop that several items share is kept once."""

    def __init__(self, data: RunData) -> None:
        self.pictures: list[str] = []
        self.items: dict[str, dict[str, Any]] = {}
        self.problems: dict[str, str] = {}
        self.bytes = 0
        self._index: dict[str, int] = {}
        self._open = lru_cache(maxsize=2)(lambda key: open_picture(data.load_picture(key)).pixels)

    def add(self, item: ItemRow) -> None:
        try:
            original = self._open(item.original)
            edited = None if item.edited is None else self._open(item.edited)
        except (PictureRejected, OSError, KeyError) as error:
            self.problems[item.item_id] = f"picture cannot be shown: {error}"
            return
        trio = make_trio(original, edited, item.evidence, FINE)
        entry: dict[str, Any] = {"o": self._keep(_reduce(trio.original)), "how": trio.aligned}
        if trio.edited is not None and trio.difference is not None:
            entry["e"] = self._keep(_reduce(trio.edited))
            entry["d"] = self._keep(_as_grey(trio.difference))
        entry["op"] = _flat(trio.original_points)
        entry["ep"] = _flat(trio.edited_points)
        entry["kept"] = _letters(retained_flags(item.evidence))
        self.items[item.item_id] = entry

    def _keep(self, pixels: RgbPixels) -> int:
        uri = "data:image/jpeg;base64," + base64.b64encode(encode_jpeg(pixels, QUALITY)).decode()
        if uri not in self._index:
            self._index[uri] = len(self.pictures)
            self.pictures.append(uri)
            self.bytes += len(uri)
        return self._index[uri]


def _reduce(pixels: RgbPixels) -> RgbPixels:
    small = cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(small, dtype=np.uint8)


def _as_grey(difference: npt.NDArray[np.float32]) -> RgbPixels:
    """Difference as three equal channels, 255 at ``DIFFERENCE_CEILING``; a square root keeps faint ones."""
    share = np.sqrt(np.clip(difference / DIFFERENCE_CEILING, 0, 1))
    small = cv2.resize(share, (DIFFERENCE_SIDE, DIFFERENCE_SIDE), interpolation=cv2.INTER_AREA)
    grey = np.round(255 * small).astype(np.uint8)
    return np.ascontiguousarray(np.repeat(grey[:, :, None], 3, axis=2))


def _flat(points: Points | None) -> list[float] | None:
    """Points as x, y, x, y ... in a square of side 1000, whole numbers: short in the file."""
    return None if points is None else [int(v) for v in np.round(points * 1000 / FINE).ravel()]


def _letters(retained: Sequence[bool] | None) -> str | None:
    return None if retained is None else "".join("1" if r else "0" for r in retained)
