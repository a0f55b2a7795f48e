"""Inpainting masks drawn from a face's 68 points: the background, the whole face, the lower face."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import JAW, Face
from domain.masks import Mask, MaskKind

HEAD_GROWTH = 1.55
"""From the face's hull to the head with ears and hair, about the nose base: most of it upwards."""
NECK_LENGTH = 1.0
"""Chin to where the shoulders begin, in inter-eye distances."""
SHOULDER_DROP = 2.2
SHOULDER_HALF_WIDTH = 3.6
"""Half the adult shoulder breadth with clothes (about 45 cm), in inter-eye distances (6.3 cm)."""


def make_mask(face: Face, kind: MaskKind) -> Mask:
    """The mask of one kind, at the size of the face's picture: 255 = edit here, 0 = leave alone.

    ``FACE`` is the hull of the 68 points with the forehead (as high above the brows as the nose is
    long: the classical equal thirds of the face). ``LOWER_FACE`` is its part below the nose base
    along the face's own axis, closed by the jaw line. ``BACKGROUND`` is everything but the person,
    whose head, neck and shoulders are estimated from body proportions: 68 points show no hair or
    clothes, so it leaves a generous rim around them, and still takes long or piled-up hair for
    background: where hair differs by group, read inpainting figures on the face, not on the hair.
    Hard edges, no values between.
    """
    height, width = face.picture.pixels.shape[:2]
    values = np.zeros((height, width), dtype=np.uint8)
    hull = _face_hull(face)
    if kind is MaskKind.BACKGROUND:
        values[:] = 255
        for shape in (_grown(hull, face.points[33], HEAD_GROWTH), _body(face)):
            _fill(values, shape, 0)
        return Mask(values, kind)
    _fill(values, hull, 255)
    if kind is MaskKind.LOWER_FACE:
        base, (_, down) = face.points[33], _axes(face)
        rows = (np.arange(height) - base[1])[:, None] * down[1]
        columns = (np.arange(width) - base[0])[None, :] * down[0]
        values[rows + columns < 0] = 0
    return Mask(values, kind)


def _axes(face: Face) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Unit vectors along the eyes (image left to right) and from the eyes to the chin."""
    left, right = face.eye_centres
    across = (right - left) / max(face.ied, 1e-9)
    down = np.array([-across[1], across[0]])
    if float(down @ (face.points[8] - left)) < 0:
        down = -down
    return across, down


def _face_hull(face: Face) -> npt.NDArray[np.float64]:
    """Jaw line and forehead as one convex outline, (n, 2)."""
    across, down = _axes(face)
    third = abs(float((face.points[33] - face.points[27]) @ down))
    brows = face.points[17:27]
    middle = brows.mean(axis=0)
    offset = (brows - middle) @ across
    reach = max(float(np.abs(offset).max()), 1e-9)
    # the hairline is an arch: full height in the middle, half of it above the temples
    height = third * (1 - 0.5 * (offset / reach) ** 2)
    forehead = brows - height[:, None] * down
    return np.vstack([face.points[JAW], forehead, face.points])


def _grown(
    outline: npt.NDArray[np.float64], centre: npt.NDArray[np.float64], factor: float
) -> npt.NDArray[np.float64]:
    return np.asarray(centre + factor * (outline - centre), dtype=np.float64)


def _body(face: Face) -> npt.NDArray[np.float64]:
    """Neck and shoulders down to far below the picture, as one convex outline."""
    across, down = _axes(face)
    chin, ied = face.points[8], face.ied
    side = SHOULDER_HALF_WIDTH * ied * across
    floor = down * float(sum(face.picture.pixels.shape[:2]))
    neck = [face.points[2], face.points[14], chin + NECK_LENGTH * ied * down]
    shoulders = [chin + SHOULDER_DROP * ied * down + sign * side for sign in (-1, 1)]
    return np.vstack([*neck, *shoulders, *(point + floor for point in shoulders)])


def _fill(values: npt.NDArray[np.uint8], outline: npt.NDArray[np.float64], value: int) -> None:
    limit = 4 * max(values.shape)
    corners = np.rint(np.clip(outline, -limit, limit)).astype(np.int32)
    cv2.fillConvexPoly(values, cv2.convexHull(corners), int(value))
