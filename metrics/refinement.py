"""Pixel-level registration: inverse-compositional Lucas-Kanade on locally normalised luma.

After Baker and Matthews, "Lucas-Kanade 20 years on" (IJCV 2004), with four parameters (turn, scale,
shift). Luma is band-passed and divided by its local contrast, so that brightness, gamma and moderate
blur do not pull, and each pixel weighs as much as its surroundings still agree, so that a painted-over
mouth does not pull either.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import Face
from domain.pictures import Picture
from metrics.affine import (
    IDENTITY,
    Matrix,
    apply,
    compose,
    invert,
    magnification,
    resizing,
    shifting,
)

Plane: TypeAlias = npt.NDArray[np.float32]

SEARCH_IED = 120.0
"""Largest eye distance in pixels at which the search runs; pictures are shrunk by a whole factor."""
_MARGIN = 0.3
"""Border around brows, eyes, nose and mouth that is looked at too, in IED."""
_COARSE_STEPS, _FINE_STEPS = 6, 5
_STOP_PX = 0.02
_CLOSE = 0.8
"""Agreement below which the pictures may be more than a pixel apart: a coarse look comes first."""
_CONTRAST_FLOOR = 4.0
"""Local contrast (8-bit levels squared) below which differences are noise, not detail."""


class Matcher:
    """Compares an edited face with its original under any map of edited to original pixels."""

    def __init__(self, original: Face, edited: Face) -> None:
        self._edited = edited
        inner, ied = original.points[17:], original.ied
        border = _MARGIN * ied
        low = np.floor(inner.min(axis=0) - border)
        high = np.ceil(inner.max(axis=0) + border)
        step = max(math.ceil(ied / SEARCH_IED), 1)
        size = np.maximum((high - low) // step, 8)
        self._size = (int(size[0]), int(size[1]))
        self._to_picture = compose(shifting(*low), resizing(step, step))
        self._fine = _Template(_normalised(_sample(original.picture, self._to_picture, self._size)))
        self._coarse: _Template | None = None

    def agreement(self, matrix: Matrix) -> float:
        """Mean local correlation, -1..1, where edited pixels are mapped by ``matrix``."""
        return self._fine.agreement(self._warped(matrix), IDENTITY)

    def refine(self, matrix: Matrix) -> tuple[Matrix, float, float]:
        """A better map near ``matrix`` (or the same), the agreement before and after."""
        warped = self._warped(matrix)
        before = self._fine.agreement(warped, IDENTITY)
        step = IDENTITY
        if before < _CLOSE:
            if self._coarse is None:
                self._coarse = _Template(_half(self._fine.plane))
            step = self._coarse.search(_half(warped), step, _COARSE_STEPS)
            step = step * np.array([[1, 1, 2], [1, 1, 2]])
        step = self._fine.search(warped, step, _FINE_STEPS)
        after = self._fine.agreement(warped, step)
        if after <= before:
            return matrix, before, before
        # template pixel -> warped pixel -> picture pixel, carried over to the edited side
        back = compose(compose(self._to_picture, step), invert(self._to_picture))
        return compose(invert(back), matrix), before, after

    def _warped(self, matrix: Matrix) -> Plane:
        to_edited = compose(invert(matrix), self._to_picture)
        return _normalised(_sample(self._edited.picture, to_edited, self._size))


class _Template:
    """The original's normalised luma with everything that does not change between steps."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        height, width = plane.shape
        gx = cv2.Sobel(plane, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
        gy = cv2.Sobel(plane, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
        self._centre = ((width - 1) / 2, (height - 1) / 2)
        x = np.arange(width, dtype=np.float32)[None, :] - np.float32(self._centre[0])
        y = np.arange(height, dtype=np.float32)[:, None] - np.float32(self._centre[1])
        self._jacobian = np.stack([gx * x + gy * y, gy * x - gx * y, gx, gy]).reshape(4, -1)
        edge = max(2, round(0.06 * width))
        self._core = (slice(edge, height - edge), slice(edge, width - edge))
        self._inside = np.zeros_like(plane)
        self._inside[self._core] = 1.0
        self._own = np.ascontiguousarray(plane[self._core])
        self._own_energy = float(np.vdot(self._own, self._own))

    def agreement(self, warped: Plane, step: Matrix) -> float:
        moved = np.ascontiguousarray(self._move(warped, step)[self._core])
        energy = self._own_energy * float(np.vdot(moved, moved))
        return float(np.vdot(self._own, moved)) / float(np.sqrt(max(energy, 1e-9)))

    def search(self, warped: Plane, step: Matrix, steps: int) -> Matrix:
        """The step (2, 3), template pixel to warped pixel, after at most ``steps`` rounds."""
        weights = None
        for _ in range(steps):
            moved = self._move(warped, step)
            if weights is None:
                weights = self._weights(moved)
                weighted = self._jacobian * weights
                hessian = (weighted @ self._jacobian.T).astype(np.float64)
                hessian[np.diag_indices(4)] *= 1.0001
                hessian[np.diag_indices(4)] += 1e-6
            residual = (moved - self.plane).reshape(-1)
            a, b, tx, ty = np.linalg.solve(hessian, (weighted @ residual).astype(np.float64))
            cx, cy = self._centre
            update = np.array([[1 + a, -b, tx - a * cx + b * cy], [b, 1 + a, ty - b * cx - a * cy]])
            step = compose(step, invert(update))
            if abs(tx) + abs(ty) + (abs(a) + abs(b)) * cx < _STOP_PX:
                break
        return step

    def _weights(self, moved: Plane) -> Plane:
        local = cv2.blur(self.plane * moved, (11, 11))
        return np.asarray((np.clip(local, 0.02, 1.0) * self._inside).reshape(-1))

    @staticmethod
    def _move(warped: Plane, step: Matrix) -> Plane:
        if step is IDENTITY:
            return warped
        height, width = warped.shape
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return np.asarray(
            cv2.warpAffine(
                warped, step, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE
            )
        )


def _sample(picture: Picture, to_picture: Matrix, size: tuple[int, int]) -> Plane:
    """(h, w) float32 luma at the places that ``to_picture`` takes the grid's pixels to."""
    width, height = size
    corners = np.array([[0, 0], [width, 0], [0, height], [width, height]], dtype=float)
    reached = apply(to_picture, corners)
    low = np.clip(np.floor(reached.min(axis=0)).astype(int) - 4, 0, None)
    high = np.minimum(np.ceil(reached.max(axis=0)).astype(int) + 5, (picture.width, picture.height))
    if (high - low).min() < 2:
        return np.zeros((height, width), np.float32)
    part = picture.pixels[low[1] : high[1], low[0] : high[0]]
    luma = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY)
    pitch = magnification(to_picture)
    shrink = IDENTITY
    step = int(pitch + 1e-6)
    if step > 1:  # average first: sampling every second pixel would alias
        height_in, width_in = (n // step * step for n in luma.shape)
        luma = cv2.resize(
            luma[:height_in, :width_in],
            (width_in // step, height_in // step),
            interpolation=cv2.INTER_AREA,
        )
        shrink = resizing(1 / step, 1 / step)
    to_part = compose(shrink, compose(shifting(-low[0], -low[1]), to_picture))
    whole = _whole_shift(to_part)
    if whole is not None:
        x, y = whole
        if x >= 0 and y >= 0 and y + height <= luma.shape[0] and x + width <= luma.shape[1]:
            return np.asarray(luma[y : y + height, x : x + width], dtype=np.float32)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    out = cv2.warpAffine(
        luma.astype(np.float32), to_part, size, flags=flags, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(out)


def _whole_shift(matrix: Matrix) -> tuple[int, int] | None:
    """(x, y) of a map that only shifts by whole pixels, else None."""
    (a, b, x), (c, d, y) = matrix.tolist()
    plain = abs(a - 1) + abs(d - 1) + abs(b) + abs(c) < 1e-9
    near = abs(x - round(x)) + abs(y - round(y)) < 1e-6
    return (round(x), round(y)) if plain and near else None


def _normalised(luma: Plane) -> Plane:
    """Band-passed luma over its local contrast: unit variance wherever there is detail."""
    band = cv2.GaussianBlur(luma, (5, 5), 1.0) - cv2.blur(luma, (9, 9))
    contrast = cv2.blur(band * band, (15, 15))
    return np.asarray(band / np.sqrt(contrast + _CONTRAST_FLOOR), dtype=np.float32)


def _half(plane: Plane) -> Plane:
    """Half the size; the pixel centres of both grids are made to share the first one."""
    return np.ascontiguousarray(cv2.GaussianBlur(plane, (7, 7), 1.5)[::2, ::2])
