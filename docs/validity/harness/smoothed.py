"""Lower-face smoothing of known size on real portraits, measured once by the product's instrument."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from domain.measurements import PairResult
from domain.pictures import Picture
from domain.plan import Perturbation
from preprocess.decode import encode_jpeg, open_picture
from preprocess.perturb import perturb
from service.controls import RESAVED_QUALITY
from service.measuring import Instrument
from tests.metrics.skin_edits import around_face, only_in
from tests.planted import Pixels, PlantedEdit, Points, ied_of

Floats = npt.NDArray[np.float64]

DISTURBED: tuple[Perturbation, ...] = ("none", "noise", "red_up")
IDENTITY, COPY, WEAK, STRONG, EVERYWHERE = range(5)
SHARE = {WEAK: 0.4, STRONG: 0.8, EVERYWHERE: 0.4}
"""Share of the Laplacian energy that the planted smoothing takes: of the lower face, the last one
of the whole face."""
EDITS = (IDENTITY, COPY, WEAK, STRONG, EVERYWHERE)
FIGURES = (
    ("detail_change", "lower_face"),
    ("detail_change", "face"),
    ("flrr", "face"),
    ("delta_e00", "face"),
    ("health", "face"),
)
PLANTED = FIGURES[0]


def smoothing(share: float, region: str | None = "lower_face") -> PlantedEdit:
    """A region (None: all of the face) blended with a wide blur of itself; ``share`` of its
    Laplacian energy goes."""
    weight = 1 - math.sqrt(1 - share)

    def blend(pixels: Pixels, points: Points) -> Pixels:
        blurred = cv2.GaussianBlur(pixels, (0, 0), 0.05 * ied_of(points))
        return np.asarray(cv2.addWeighted(pixels, 1 - weight, blurred, weight, 0), dtype=np.uint8)

    local = only_in(region, blend) if region else blend

    def edit(pixels: Pixels, points: Points) -> Pixels:
        part, moved = around_face(pixels, points)
        left, top = (points - moved)[0].round().astype(int)
        out = pixels.copy()
        out[top : top + part.shape[0], left : left + part.shape[1]] = local(part, moved)
        return out

    return edit


def measure(pictures: Sequence[Picture]) -> Floats:
    """(faces, 5 edits, 3 disturbances, 5 figures); NaN where the instrument had no figure."""
    instrument = Instrument()
    values = np.full((len(pictures), len(EDITS), len(DISTURBED), len(FIGURES)), np.nan)
    for i, picture in enumerate(pictures):
        face = instrument.look(picture).face
        if face is None:
            continue
        for j, name in enumerate(DISTURBED):
            sent = perturb(picture, face, name, seed=1, portrait_id=picture.sha256)
            sent = Picture(sent.pixels, sha256=f"{picture.sha256} {name}")
            for edit in EDITS:
                result = instrument.measure(sent, _edited(sent, face.points, edit))
                values[i, edit, j] = [_figure(result, m, r) for m, r in FIGURES]
    instrument.close()
    return values


def _edited(sent: Picture, points: Points, edit: int) -> Picture:
    if edit == IDENTITY:
        return Picture(sent.pixels.copy())
    if edit == COPY:
        return open_picture(encode_jpeg(sent, RESAVED_QUALITY))
    region = None if edit == EVERYWHERE else "lower_face"
    return Picture(smoothing(SHARE[edit], region)(sent.pixels, points))


def _figure(result: PairResult, metric: str, region: str) -> float:
    if metric == "health":
        score = result.health[result.profile].score if result.profile in result.health else None
        return math.nan if score is None else score
    found = result.figure(metric, region)
    return math.nan if found is None or found.value is None else found.value
