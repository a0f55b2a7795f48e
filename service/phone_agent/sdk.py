"""The pretended SDK: takes an NV21 frame, works on it in one of two quality modes, gives one back.

Its default mode is the trap that real ones set: unless told otherwise it works on a copy of half the
size and scales the result up, and says nothing.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from domain.errors import ModelMissing
from domain.pictures import Picture
from preprocess import models
from preprocess.faces import FaceFinder
from service.phone_agent import beautify as steps
from service.phone_agent import nv21
from service.phone_agent.faults import CallEnded
from service.phone_agent.thermal import REFUSES, STATES, THROTTLES, Load, Thermal

VERSION = "2.4.1"
HIGH, LOW = "HIGH_ACCURACY", "LOW_POWER"
MODES = (HIGH, LOW)
SIDES_MULTIPLE, MIN_SIDE, MAX_SIDE = 16, 64, 4096
ASPECT = 3 / 4
_LOW_SCALE = 2
_FINDER_MODEL = "face_landmarker.task"


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture as the SDK takes it."""

    data: bytes
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Report:
    """A result and what the SDK says of its making. ``ms`` is the SDK's own time."""

    frame: Frame
    mode: str
    working: tuple[int, int]
    thermal_before: str
    thermal_after: str
    ms: float
    faces: int


def model_hash() -> str:
    """SHA-256 over the code and the landmark model that decide the result."""
    digest = hashlib.sha256()
    for module in (steps, nv21):
        digest.update(Path(str(module.__file__)).read_bytes())
    digest.update(models.sha256_of(_FINDER_MODEL).encode())
    return digest.hexdigest()


class Sdk:
    """The one SDK of the one device: not safe to call twice at once, which its callers see to."""

    def __init__(
        self, mode: str = LOW, *, lies: bool = False, thermal: Thermal | None = None
    ) -> None:
        """``mode`` is set until a call sets another; with ``lies`` it works in low power whatever
        is set, and says that it did not."""
        self.mode, self.lies = mode, lies
        self.thermal: Thermal = thermal or Load()
        self.model_hash = model_hash()
        self._finder: FaceFinder | None = None

    def edit(self, frame: Frame, mode: str | None, strengths: steps.Strengths) -> Report:
        """Work on ``frame``. ``mode`` None leaves the one that is set. Raises CallEnded."""
        check_size(frame)
        if mode is not None:
            self.mode = mode
        before = self.thermal.state()
        heat = STATES.index(before)
        if heat >= REFUSES:
            self.thermal.work(0.0)
            raise CallEnded("thermal", f"thermal state {before}: the SDK does not work")
        used = LOW if heat >= THROTTLES else self.mode
        began = time.perf_counter()
        small = used == LOW or self.lies
        done, working, faces = self._work(frame, small, strengths)
        ms = (time.perf_counter() - began) * 1000
        self.thermal.work(working[0] * working[1] / 1e6)
        if self.lies:
            used, working = self.mode, (frame.width, frame.height)
        return Report(done, used, working, before, self.thermal.state(), ms, faces)

    def _work(
        self, frame: Frame, small: bool, strengths: steps.Strengths
    ) -> tuple[Frame, tuple[int, int], int]:
        pixels = nv21.unpack(frame.data, frame.width, frame.height)
        size = (frame.width, frame.height)
        if small:
            half = (max(frame.width // _LOW_SCALE, 1), max(frame.height // _LOW_SCALE, 1))
            pixels = np.asarray(cv2.resize(pixels, half, interpolation=cv2.INTER_AREA), np.uint8)
        working = (pixels.shape[1], pixels.shape[0])
        points = self._points(pixels)
        result = steps.beautify(pixels, points, strengths)
        if small:
            result = np.asarray(cv2.resize(result, size, interpolation=cv2.INTER_LINEAR), np.uint8)
        return Frame(nv21.pack(result), *size), working, int(points is not None)

    def _points(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64] | None:
        try:
            self._finder = self._finder or FaceFinder("mediapipe")
            face = self._finder.find(Picture(np.ascontiguousarray(pixels))).face
        except ModelMissing:
            raise CallEnded("model_missing") from None
        return None if face is None else face.points

    def close(self) -> None:
        """Free the models."""
        if self._finder is not None:
            self._finder.close()
            self._finder = None


def check_size(frame: Frame) -> None:
    """Raises CallEnded for a frame that the SDK turns away. Sides that are no multiple of 16 are not
    among them: those it ruins in silence, as real ones do."""
    width, height = frame.width, frame.height
    if min(width, height) < MIN_SIDE or max(width, height) > MAX_SIDE:
        raise CallEnded(
            "bad_size", f"{width}x{height}: sides of {MIN_SIDE} to {MAX_SIDE} are taken"
        )
    long, short = max(width, height), min(width, height)
    if abs(short - long * ASPECT) > SIDES_MULTIPLE / 2:
        raise CallEnded("bad_size", f"{width}x{height} is no 4:3 or 3:4 frame")
    if len(frame.data) != nv21.size_of(width, height):
        raise CallEnded("bad_size", f"{len(frame.data)} bytes are no {width}x{height} NV21 frame")
