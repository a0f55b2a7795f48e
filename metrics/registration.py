"""Where the edited face lies on the original: similarity of the stable points, then the pixels.

Landmarks wobble by 0.5-1 px on a mere re-save, while fine texture needs a tenth of a pixel. So the
landmarks' transform (Umeyama, "Least-squares estimation of transformation parameters between two
point patterns", PAMI 1991) only starts a search in the pixels (metrics.refinement), and a grid that
the tool did not touch is recognised and never resampled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from domain.faces import STABLE, Face
from metrics.affine import (
    IDENTITY,
    Matrix,
    Points,
    apply,
    compose,
    invert,
    magnification,
    scaling,
    shifting,
)
from metrics.refinement import Matcher

SNAP_PX = 0.25
"""A transform this close to a whole-pixel shift, everywhere on the face, is that shift."""
MAX_REFINEMENT = 0.08
"""Furthest, in IED, that the pixels may move a point away from where the landmarks put it."""
PLAIN_GAIN = 0.15
"""An untouched grid is given up only for a transform that explains this share of the disagreement."""
UNLIKE = 0.5
"""Agreement below which the mirror image is tried too."""
MIRROR_GAIN = 0.2
"""By how much the mirror image must agree better to be believed."""
MIRROR_ORDER = (
    *range(16, -1, -1), *range(26, 16, -1), 27, 28, 29, 30, 35, 34, 33, 32, 31,
    45, 44, 43, 42, 47, 46, 39, 38, 37, 36, 41, 40,
    *range(54, 47, -1), *range(59, 54, -1), *range(64, 59, -1), 67, 66, 65,
)  # fmt: skip
"""The point of the 68 that stands where each one stands in the mirror."""
STRETCH = 0.02
"""Least relative change of the aspect ratio that counts as one."""


class Grid(StrEnum):
    """How the edited pixels come onto the original's grid."""

    SAME = "same"
    """Nothing moved: pixel by pixel."""
    SHIFTED = "shifted"
    """Moved by whole pixels: a slice."""
    RESAMPLED = "resampled"


@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """The map of edited pixels onto the original's pixels.

    ``matrix`` is (2, 3); ``grid`` says whether pixels are kept or resampled; ``agreement`` is the
    mean local correlation of the band-passed luma under it, -1..1 (1: the same detail in the same
    place). ``landmarks`` is the map that the stable points alone give. ``stretch`` is the change of the aspect ratio (width / height) that was taken back,
    1 where there was none. ``mirrored``: the edited picture is the mirror image, and ``matrix``
    starts from it flipped back. ``notes`` are full sentences.
    """

    matrix: Matrix
    grid: Grid
    agreement: float
    landmarks: Matrix
    stretch: float = 1.0
    mirrored: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def scale(self) -> float:
        """Original pixels an edited pixel covers (geometric mean of both axes)."""
        return magnification(self.matrix)

    @property
    def angle(self) -> float:
        """Turn from edited to original in degrees, clockwise on the screen."""
        return float(np.degrees(np.arctan2(self.matrix[1, 0], self.matrix[0, 0])))

    @property
    def shift(self) -> tuple[float, float]:
        """Original minus edited pixels, of the edited picture's origin."""
        return float(self.matrix[0, 2]), float(self.matrix[1, 2])

    def apply(self, points: Points) -> Points:
        """(n, 2) points of the edited picture in pixels of the original."""
        return apply(self.matrix, points)

    def inverse(self) -> Matrix:
        """(2, 3) map of original pixels onto edited pixels."""
        return invert(self.matrix)


def umeyama(source: Points, target: Points) -> Matrix:
    """(2, 3) similarity (scale, turn, shift; no mirror) that takes source to target, least squares.

    Both are (n, 2) with n >= 2. Points that all coincide give a pure shift.
    """
    source_mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    s, t = source - source_mean, target - target_mean
    variance = float((s**2).sum())
    if variance < 1e-12:
        return np.column_stack([np.eye(2), target_mean - source_mean])
    # in the plane the SVD solution is the complex quotient: scale e^(i angle) = <s, t> / <s, s>
    a = float((s * t).sum()) / variance
    b = float((s[:, 0] * t[:, 1] - s[:, 1] * t[:, 0]).sum()) / variance
    linear = np.array([[a, -b], [b, a]])
    return np.column_stack([linear, target_mean - linear @ source_mean])


def register(original: Face, edited: Face) -> Registration:
    """Register an edited face to its original; see the module's text for the rule."""
    if _same_pixels(original, edited):
        return Registration(IDENTITY, Grid.SAME, 1.0, _by_landmarks(original, edited)[0])
    found = _register_upright(original, edited)
    if found.agreement < UNLIKE:
        other = _register_upright(original, mirrored(edited))
        if other.agreement > found.agreement + MIRROR_GAIN:
            note = "the edited picture is mirrored; it was flipped back before measuring"
            return replace(other, mirrored=True, notes=(*other.notes, note))
    return found


def _same_pixels(original: Face, edited: Face) -> bool:
    one, other = original.picture.pixels, edited.picture.pixels
    if one.shape != other.shape or not np.array_equal(one[::64], other[::64]):
        return False
    return np.array_equal(one, other)


def mirrored(face: Face) -> Face:
    """The face in the mirror image of its picture, points renamed to their new sides."""
    picture = face.picture
    flipped = replace(
        picture,
        pixels=np.ascontiguousarray(picture.pixels[:, ::-1]),
        opaque=None if picture.opaque is None else picture.opaque[:, ::-1],
    )
    points = face.points[list(MIRROR_ORDER)] * [-1.0, 1.0] + [picture.width - 1.0, 0.0]
    x, y, width, height = face.box
    return replace(
        face, picture=flipped, points=points, box=(picture.width - x - width, y, width, height)
    )


def _register_upright(original: Face, edited: Face) -> Registration:
    matrix, stretch = _by_landmarks(original, edited)
    matcher = Matcher(original, edited)
    if stretch == 1.0 and original.picture.pixels.shape == edited.picture.pixels.shape:
        plain = _untouched_grid(matcher, original, matrix)
        if plain is not None:
            return plain
    refined, before, agreement = matcher.refine(matrix)
    if _reach(refined, matrix, edited) > MAX_REFINEMENT * original.ied:
        refined, agreement = matrix, before
    shift = shifting(*np.round(_shift_at(refined, edited)))
    if stretch == 1.0 and _reach(refined, shift, edited) <= SNAP_PX:
        return Registration(shift, Grid.SHIFTED, agreement, matrix)
    note = f"aspect ratio changed by the tool (width/height times {stretch:.3f}); taken back"
    return Registration(
        refined, Grid.RESAMPLED, agreement, matrix, stretch, notes=() if stretch == 1.0 else (note,)
    )


def _untouched_grid(matcher: Matcher, original: Face, landmarks: Matrix) -> Registration | None:
    """The identity, when the pixels do not speak against it; None when the tool moved the face."""
    wobble, ied = _reach(IDENTITY, landmarks, original), original.ied
    if wobble > 0.15 * ied:
        return None
    refined, plain, agreement = matcher.refine(IDENTITY)
    small = _reach(refined, IDENTITY, original) <= SNAP_PX
    if small or agreement < plain + PLAIN_GAIN * (1 - plain):
        near = wobble <= MAX_REFINEMENT * ied
        if small or near:
            return Registration(IDENTITY, Grid.SAME, plain, landmarks)
    return None


def _by_landmarks(original: Face, edited: Face) -> tuple[Matrix, float]:
    """Similarity of the stable points, and the stretch taken back where the picture's aspect
    ratio changed and the landmarks changed along with it."""
    target, source = original.points[STABLE], edited.points[STABLE]
    matrix = umeyama(source, target)
    o, e = original.picture, edited.picture
    stretch = (e.width / e.height) / (o.width / o.height)
    if abs(stretch - 1) > STRETCH:
        undo = scaling(1 / stretch, 1.0)
        other = compose(umeyama(apply(undo, source), target), undo)
        if _residual(other, source, target) < 0.7 * _residual(matrix, source, target):
            return other, stretch
    return matrix, 1.0


def _residual(matrix: Matrix, source: Points, target: Points) -> float:
    return float(np.sqrt(((apply(matrix, source) - target) ** 2).mean()))


def _reach(one: Matrix, other: Matrix, face: Face) -> float:
    """Furthest that two maps of edited pixels take any inner point of the face apart, in px."""
    points = face.points[17:]
    return float(np.hypot(*apply(one - other, points).T).max())


def _shift_at(matrix: Matrix, face: Face) -> Points:
    """Mean shift of the face's inner points under a map."""
    points = face.points[17:]
    return np.asarray((apply(matrix, points) - points).mean(axis=0))
