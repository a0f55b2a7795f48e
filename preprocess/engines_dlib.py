"""dlib: the frontal HOG detector and the 68-point predictor, averaged over jittered boxes.

The predictor's weights were trained on 300-W, and their author excludes commercial use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels
from preprocess.candidates import Candidate
from preprocess.models import model_path

Gray: TypeAlias = npt.NDArray[np.uint8]
Points: TypeAlias = npt.NDArray[np.float64]
Box: TypeAlias = tuple[float, float, float, float]

_GOAL_SIDES = (256, 512, 1024)
"""Longer side at which the detector looks, coarse first: it costs 4 ms at 256 and 75 at 1024."""
_DOUBLED_SIDE = 640
_JITTER = tuple(
    (dx, dy, grow)
    for grow in (0.0, -0.06, 0.06)
    for dx, dy in ((0.0, 0.0), (0.04, 0.04), (-0.04, 0.04), (0.04, -0.04), (-0.04, -0.04))
)
"""Shifts and growth of the box, in box sides: the predictor alone wobbles by up to 0.1 IED."""
_BOX_SIDE, _BOX_OFFSET = 2.4, (-0.02, 0.06)
"""The detector's usual box in IED, and its centre off the mean of points 17-67; over 26 London
portraits at 1024 px its side was 2.40 +- 0.20."""


class DlibEngine:
    """The detector (HOG, frontal faces of 80 px and more) and the predictor, built once."""

    name = "dlib"

    def __init__(self) -> None:
        self._detector: Any = None
        self._predictor: Any = None

    def detect(self, pixels: RgbPixels) -> list[Candidate]:
        """Every face in contiguous RGB pixels. Raises ModelMissing."""
        self._ready()
        gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
        return [Candidate(self._locate(gray, box), box) for box in self._boxes(gray)]

    def look_again(self, pixels: RgbPixels) -> list[Candidate]:
        """A border around the picture for faces that fill it; small pictures twice the size, as
        the detector's smallest face is 80 px."""
        self._ready()
        gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
        border = max(gray.shape) // 4
        grown = cv2.copyMakeBorder(gray, border, border, border, border, cv2.BORDER_REPLICATE)
        boxes = [
            (x - border, y - border, w, h)
            for x, y, w, h in self._boxes(np.asarray(grown, np.uint8))
        ]
        if not boxes and max(gray.shape) <= _DOUBLED_SIDE:
            boxes = self._boxes_at(gray, 2.0)
        return [Candidate(self._locate(gray, box), box) for box in boxes]

    def steady(self, pixels: RgbPixels, found: Candidate) -> Candidate:
        """The face as it is: its points are a mean of many boxes already."""
        return found

    def look_around(self, pixels: RgbPixels, known: Sequence[Candidate]) -> list[Candidate]:
        """Faces at the finest size looked at; the first look stops at the coarsest that shows any."""
        self._ready()
        gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
        boxes = self._boxes_at(gray, min(1.0, _GOAL_SIDES[-1] / max(gray.shape)))
        return [Candidate(self._locate(gray, box), box) for box in boxes]

    def close(self) -> None:
        """Free both models; the engine may still be used and then builds them again."""
        self._detector = self._predictor = None

    def _ready(self) -> None:
        if self._predictor is None:
            import dlib

            path = model_path("shape_predictor_68_face_landmarks.dat")
            self._detector = dlib.get_frontal_face_detector()
            self._predictor = dlib.shape_predictor(str(path))

    def _boxes(self, gray: Gray) -> list[Box]:
        """Boxes at the coarsest size that shows any face; finer looks cost four times as much."""
        scales = [min(1.0, side / max(gray.shape)) for side in _GOAL_SIDES]
        for scale in dict.fromkeys(scales):
            boxes = self._boxes_at(gray, scale)
            if boxes:
                return boxes
        return []

    def _boxes_at(self, gray: Gray, scale: float) -> list[Box]:
        size = tuple(max(round(n * scale), 1) for n in gray.shape[::-1])
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        small = gray if scale == 1 else cv2.resize(gray, size, interpolation=how)
        found, _, _ = self._detector.run(np.asarray(small, dtype=np.uint8), 0, 0.0)
        k = 1 / scale
        return [(r.left() * k, r.top() * k, r.width() * k, r.height() * k) for r in found]

    def _locate(self, gray: Gray, box: Box) -> Points:
        """A first guess in the detector's box, then a box laid around the guess itself: the
        detector's boxes jump by a tenth of the face between two saves of one picture."""
        guess = self._average(gray, box, _JITTER[:5])
        ied = float(np.hypot(*(guess[36:42].mean(axis=0) - guess[42:48].mean(axis=0))))
        x, y = guess[17:].mean(axis=0) + np.array(_BOX_OFFSET) * ied
        side = max(_BOX_SIDE * ied, 8.0)
        return self._average(gray, (x - side / 2, y - side / 2, side, side), _JITTER)

    def _average(
        self, gray: Gray, box: Box, jitter: tuple[tuple[float, float, float], ...]
    ) -> Points:
        import dlib

        x, y, w, h = box
        total = np.zeros((68, 2))
        for dx, dy, grow in jitter:
            left, top = x + (dx - grow / 2) * w, y + (dy - grow / 2) * h
            jittered = dlib.rectangle(
                round(left), round(top), round(left + w * (1 + grow)), round(top + h * (1 + grow))
            )
            shape = self._predictor(gray, jittered)
            total += [(p.x, p.y) for p in shape.parts()]
        return total / len(jitter)
