"""MediaPipe's face landmarker (Apache-2.0): 478 mesh points, of which 68 stand for the scheme."""

from __future__ import annotations

import atexit
import json
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from domain.pictures import RgbPixels
from preprocess.candidates import Candidate, merge
from preprocess.mediapipe_meshes import Mesh, MeshReader
from preprocess.models import model_path
from preprocess.views import around, close_looks, tiles

MAX_FACES = 8
"""Upper end of the count of faces; each one costs about 9 ms."""
MIN_VIEW = 16
"""Pixels; smaller views are not looked at (an empty one would poison the landmarker)."""


@cache
def mesh_to_68() -> npt.NDArray[np.intp]:
    """(68,) vertex of the 478-point mesh that stands for each point of the 68-point scheme.

    Checked against 38 hand-placed points of 34 London portraits: mean distance 0.031 of the pupil
    distance, as good as dlib's own model.
    """
    text = resources.files("preprocess").joinpath("data/mediapipe_478_to_68.json").read_text()
    return np.array(json.loads(text), dtype=np.intp)


class MediapipeEngine:
    """Reused landmarkers (25 ms or more to build, 11 ms to run), rebuilt after any error."""

    name = "mediapipe"

    def __init__(self) -> None:
        self._strict = _Landmarker(presence=0.5)
        self._patient = _Landmarker(presence=0.1)

    def detect(self, pixels: RgbPixels) -> list[Candidate]:
        """Every face in contiguous RGB pixels, at most ``MAX_FACES``. Raises ModelMissing."""
        return self._strict.run(pixels)

    def look_again(self, pixels: RgbPixels) -> list[Candidate]:
        """Views that help faces which fill the frame, are turned away or half in shadow.

        The detector must be as sure as ever (0.5); only the mesh may be less sure that it fits. Over
        360 FairFace adults this finds 17 of the 28 that ``detect`` misses, nearly all in profile.
        """
        for view in close_looks(pixels):
            found = self._patient.run(view.pixels)
            if found:
                return [view.back(c) for c in found]
        return []

    def look_around(self, pixels: RgbPixels, known: Sequence[Candidate]) -> list[Candidate]:
        """Faces in overlapping tiles of a half, then a third of the side, each seen again in two
        zooms: a single tile takes the odd cat or hat for a face."""
        hidden = pixels.copy() if known else pixels
        for c in known:  # a face seen again in every tile would cost 9 ms each time
            x, y, w, h = (round(v) for v in c.box)
            area = (slice(max(y, 0), max(y + h, 0)), slice(max(x, 0), max(x + w, 0)))
            hidden[area] = 128
        found: list[Candidate] = []
        for share in (0.5, 1 / 3):
            for view in tiles(hidden, share):
                seen = [view.back(c) for c in self._strict.run(view.pixels)]
                new = merge(found, seen)[len(found) :]
                found += [c for c in new if self._confirmed(hidden, c)]
        return found

    def steady(self, pixels: RgbPixels, found: Candidate) -> Candidate:
        """Points at the median of the whole picture and three zooms: now and then noise throws the
        mesh of one look off by 0.1 IED, seldom that of most looks."""
        looks = [found.points]
        for times in (1.6, 2.0, 2.4):
            view = around(pixels, found, times)
            again = [view.back(c) for c in self._strict.run(view.pixels)]
            looks += [c.points for c in again[:1] if len(merge([found], [c])) == 1]
        return replace(found, points=np.median(looks, axis=0))

    def _confirmed(self, pixels: RgbPixels, found: Candidate) -> bool:
        zooms = (around(pixels, found, times) for times in (1.8, 2.6))
        return all(self._strict.run(zoom.pixels) for zoom in zooms)

    def close(self) -> None:
        """Free the landmarkers; the engine may still be used and then builds others."""
        self._strict.close()
        self._patient.close()


class _Landmarker:
    """One landmarker at one threshold, built when first needed.

    A landmarker that once met bad input raises for ever and hangs when closed; so after an error
    its handle is dropped without closing it, and a new one is built at the next call.
    """

    def __init__(self, presence: float) -> None:
        self._presence = presence
        self._landmarker: Any = None
        self._reader: MeshReader | None = None
        self._finalizer: Any = None

    def run(self, pixels: RgbPixels) -> list[Candidate]:
        import mediapipe as mp

        height, width = pixels.shape[:2]
        if min(height, width) < MIN_VIEW:
            return []
        image = mp.Image(image_format=mp.ImageFormat.SRGB, data=np.ascontiguousarray(pixels))
        reader = self._ready()
        try:
            found = reader.read(image)
        except Exception:
            self._drop()
            raise
        return [_candidate(mesh, width, height) for mesh in found]

    def close(self) -> None:
        if self._landmarker is not None:
            landmarker, self._landmarker, self._reader = self._landmarker, None, None
            self._finalizer.detach()
            _release(landmarker)

    def _ready(self) -> MeshReader:
        if self._reader is None:
            _release_abandoned()
            from mediapipe.tasks.python import BaseOptions, vision

            options = vision.FaceLandmarkerOptions(
                base_options=BaseOptions(model_asset_path=str(model_path("face_landmarker.task"))),
                num_faces=MAX_FACES,
                min_face_presence_confidence=self._presence,
            )
            self._landmarker = vision.FaceLandmarker.create_from_options(options)
            self._finalizer = weakref.finalize(self, _ABANDONED.append, self._landmarker)
            self._reader = MeshReader(self._landmarker)
        return self._reader

    def _drop(self) -> None:
        broken, self._landmarker, self._reader = self._landmarker, None, None
        self._finalizer.detach()
        broken._handle = None  # closing a poisoned landmarker hangs


def _candidate(mesh: Mesh, width: int, height: int) -> Candidate:
    all_points = mesh * (width, height)
    low, high = all_points.min(axis=0), all_points.max(axis=0)
    box = (float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))
    return Candidate(all_points[mesh_to_68()] - 0.5, box)


_ABANDONED: deque[Any] = deque()
"""Landmarkers whose owner was garbage-collected. Closing one hands work to a thread pool, and a
collection can strike while this very thread holds that pool's lock: so it is only put down here,
and closed when the next one is built or the interpreter ends."""


def _release_abandoned() -> None:
    while True:
        try:
            landmarker = _ABANDONED.popleft()
        except IndexError:
            return
        _release(landmarker)


# Registered before any finalizer's own exit hook, so it runs after it
atexit.register(_release_abandoned)


def _release(landmarker: Any) -> None:
    """Close a landmarker, or only let go of it: at the interpreter's end its threads are gone."""
    try:
        landmarker.close()
    except Exception:
        landmarker._handle = None
