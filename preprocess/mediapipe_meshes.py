"""Meshes from a MediaPipe face landmarker as arrays.

MediaPipe's Python interface makes an object of every one of the 478 points of a face, which costs
nearly a millisecond a face. The same call can be made with the result read as one block of memory.
That uses names that MediaPipe keeps to itself, so it is tried only where all of them are there, and
kept only after it gave the same as the public interface.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Mesh: TypeAlias = npt.NDArray[np.float64]
"""(n, 2): x then y in fractions of the picture's width and height."""


class MeshReader:
    """Reads the meshes of one landmarker. ``direct`` is None until the first face was read both
    ways, then whether the direct way is used."""

    def __init__(self, landmarker: Any) -> None:
        self._landmarker = landmarker
        self._calls = _direct_calls(landmarker)
        self.direct: bool | None = None if self._calls is not None else False

    def read(self, image: Any) -> list[Mesh]:
        """Every face's mesh. Raises what MediaPipe raises."""
        if self.direct and self._calls is not None:
            return _read_directly(self._landmarker, image, *self._calls)
        found = [_as_mesh(points) for points in self._landmarker.detect(image).face_landmarks]
        if found and self.direct is None and self._calls is not None:
            self.direct = _same(found, self._attempt(image))
        return found

    def _attempt(self, image: Any) -> list[Mesh]:
        try:
            return _read_directly(self._landmarker, image, *(self._calls or ()))
        except (AttributeError, TypeError, ValueError, ctypes.ArgumentError):
            return []


def _as_mesh(points: Any) -> Mesh:
    return np.array([[p.x for p in points], [p.y for p in points]], np.float64).T


def _same(one: list[Mesh], other: list[Mesh]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def _direct_calls(landmarker: Any) -> tuple[Any, Any, Any] | None:
    """MediaPipe's call for one picture, the one that frees its result, and the result's type."""
    from mediapipe.tasks.python.vision import face_landmarker

    library = getattr(landmarker, "_lib", None)
    detect = getattr(library, "MpFaceLandmarkerDetectImage", None)
    free = getattr(library, "MpFaceLandmarkerCloseResult", None)
    result = getattr(face_landmarker, "FaceLandmarkerResultC", None)
    if None in (detect, free, result) or getattr(landmarker, "_handle", None) is None:
        return None
    return detect, free, result


def _read_directly(landmarker: Any, image: Any, detect: Any, free: Any, result: Any) -> list[Mesh]:
    found = result()
    detect(landmarker._handle, image._image_ptr, None, ctypes.byref(found))
    try:
        faces = (found.face_landmarks[i] for i in range(found.face_landmarks_count))
        return [_block(face.landmarks, face.landmarks_count) for face in faces]
    finally:
        free(ctypes.byref(found))


def _block(points: Any, count: int) -> Mesh:
    """x and y of an array of C structures, copied out of MediaPipe's memory."""
    kind = points._type_
    size = ctypes.sizeof(kind)
    raw = np.frombuffer(ctypes.string_at(points, count * size), np.uint8).reshape(count, size)
    return np.column_stack([_field(raw, kind.x), _field(raw, kind.y)])


def _field(raw: npt.NDArray[np.uint8], field: Any) -> npt.NDArray[np.float64]:
    """One C float of every structure, float64."""
    part = np.ascontiguousarray(raw[:, field.offset : field.offset + field.size])
    return part.view(np.float32)[:, 0].astype(np.float64)
