"""Algebra of (2, 3) affine maps of the plane: x' = M[:, :2] x + M[:, 2]."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Points: TypeAlias = npt.NDArray[np.float64]
"""(n, 2): x then y, pixel centres at whole numbers."""
Matrix: TypeAlias = npt.NDArray[np.float64]
"""(2, 3)."""

IDENTITY: Matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
IDENTITY.flags.writeable = False


def apply(matrix: Matrix, points: Points) -> Points:
    """(n, 2) points moved by the map."""
    return np.asarray(points @ matrix[:, :2].T + matrix[:, 2])


def invert(matrix: Matrix) -> Matrix:
    """The map that undoes this one. Raises LinAlgError for a map that flattens the plane."""
    linear = np.linalg.inv(matrix[:, :2])
    return np.column_stack([linear, -linear @ matrix[:, 2]])


def compose(second: Matrix, first: Matrix) -> Matrix:
    """The map that applies ``first``, then ``second``."""
    linear = second[:, :2] @ first[:, :2]
    return np.column_stack([linear, second[:, :2] @ first[:, 2] + second[:, 2]])


def scaling(x: float, y: float) -> Matrix:
    """Scale both axes about the centre of pixel (0, 0)."""
    return np.array([[x, 0.0, 0.0], [0.0, y, 0.0]])


def shifting(x: float, y: float) -> Matrix:
    """Shift by (x, y) pixels."""
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y]])


def resizing(x: float, y: float) -> Matrix:
    """What resizing a picture by the factors x, y does to a place in it: pixel edges, not pixel
    centres, keep their share of the side."""
    return np.array([[x, 0.0, (x - 1) / 2], [0.0, y, (y - 1) / 2]])


def magnification(matrix: Matrix) -> float:
    """Length in the target of a unit length in the source (geometric mean of both axes)."""
    return float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
