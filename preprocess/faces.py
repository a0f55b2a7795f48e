"""From a picture to the one face that is measured, or to the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from domain.faces import Face
from domain.pictures import Picture, RgbPixels
from preprocess.candidates import Candidate, Engine, apart, choose, merge
from preprocess.engines_dlib import DlibEngine
from preprocess.engines_mediapipe import MediapipeEngine
from preprocess.face_notes import (
    FLAT_REFUSED,
    TILT_REFUSED,
    look_at,
    look_notes,
    place_notes,
    points_outside,
    tilt_of,
)
from preprocess.views import QUARTER_TURNS

MIN_SIDE = 80
"""Shorter side of a picture, in pixels, below which no face is searched."""
MIN_IED = 20.0
"""Distance of the eyes, in pixels, below which skin and fine detail cannot be measured."""
MAX_OUTSIDE = 22
"""Points (a third) that may lie outside the picture: what is not in the picture is only guessed."""
MAX_OUTSIDE_CUT = 44
"""The same for a portrait that was cut above the nose tip: jaw, lips and chin lie outside."""
MOVED = 0.06
"""IED; a point further from the original's place, after alignment, is looked at again."""
TURNED_SIDE = 512
"""Longer side, in pixels, at which quarter turns are tried."""
ENGINES = ("mediapipe", "dlib")


@dataclass(frozen=True, slots=True, eq=False)
class FaceSearch:
    """What a search found.

    ``face`` is None exactly when ``reason`` (a short sentence) says why. ``code`` is the stable
    word for it: "image_too_small", "no_face", "not_upright", "not_human", "face_cut",
    "face_too_small", "" when there is a face. Only "no_face", "not_upright" and "not_human" mean
    that a face was lost; the others mean that the instrument cannot judge. ``count`` is how many faces were seen.
    """

    face: Face | None
    reason: str | None
    count: int
    code: str = ""


def _make_engine(name: str) -> Engine:
    if name == "mediapipe":
        return MediapipeEngine()
    if name == "dlib":
        return DlibEngine()
    raise ValueError(f"unknown landmark engine {name!r}; known: {', '.join(ENGINES)}")


class FaceFinder:
    """Finds faces with one engine; keeps its models, so make one and use it for every picture.

    Not safe to share between threads; one a process.
    """

    def __init__(self, engine: str = "mediapipe") -> None:
        self._engine = _make_engine(engine)

    @property
    def engine(self) -> str:
        """Name of the engine that speaks."""
        return self._engine.name

    def find(
        self,
        picture: Picture,
        near: tuple[float, float] | Face | None = None,
        thorough: bool = False,
        cut: bool = False,
    ) -> FaceSearch:
        """The face to measure.

        ``near`` is for edited pictures: the original's face, or its place in fractions of its
        picture's width and height (``place_of``). The face nearest to that place is then taken
        instead of the largest; with a Face, to its place in fractions or in pixels, whichever some
        face fits better (a tool may scale the picture, or add to it), and where the points moved
        against the original's, more looks decide whether they did (30 ms).
        ``thorough`` also looks for small faces beside the one found, so that ``count`` holds them
        too (0.1 s more). ``cut`` takes a face that the picture's edge cuts, for portraits cut on
        purpose: its points outside are guesses, to be left out of every figure. Raises ModelMissing.
        """
        side = min(picture.width, picture.height)
        if side < MIN_SIDE:
            reason = f"image too small for measuring ({side} px, {MIN_SIDE} needed)"
            return FaceSearch(None, reason, 0, "image_too_small")
        found = self._engine.detect(picture.pixels)
        second_look = not found
        if second_look:
            found = self._engine.look_again(picture.pixels)
        if not found:
            turn = self._turned(picture.pixels)
            if turn is not None:
                reason = f"no upright face (one is seen when turned by {turn} degrees)"
                return FaceSearch(None, reason, 0, "not_upright")
            found = self._engine.look_around(picture.pixels, ())
        if not found:
            return FaceSearch(None, "no face found", 0, "no_face")
        if thorough:
            found = merge(found, self._engine.look_around(picture.pixels, found))
        places = _places(near, picture)
        chosen = choose(found, picture.width, picture.height, places)
        if isinstance(near, Face) and apart(chosen.points, near.points).max() > MOVED:
            chosen = self._engine.steady(picture.pixels, chosen)
        most_outside = MAX_OUTSIDE_CUT if cut else MAX_OUTSIDE
        return self._judged(picture, chosen, len(found), bool(places), second_look, most_outside)

    def close(self) -> None:
        """Free the models; the finder may still be used and then loads them again."""
        self._engine.close()

    def _turned(self, pixels: RgbPixels) -> int | None:
        """The quarter turn, in degrees clockwise, that brings a face upright; None without one."""
        shrink = min(1.0, TURNED_SIDE / max(pixels.shape[:2]))
        size = tuple(max(round(n * shrink), 1) for n in pixels.shape[1::-1])
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA) if shrink < 1 else pixels
        for degrees, code in QUARTER_TURNS.items():
            turned = np.ascontiguousarray(cv2.rotate(small, code), dtype=np.uint8)
            if any(abs(tilt_of(c.points)) < 45 for c in self._engine.detect(turned)):
                return degrees
        return None

    def _judged(
        self,
        picture: Picture,
        chosen: Candidate,
        count: int,
        matched: bool,
        second_look: bool,
        most_outside: int,
    ) -> FaceSearch:
        """The chosen face with its notes, or why it cannot be measured."""
        points = chosen.points
        tilt = tilt_of(points)
        if abs(tilt) > TILT_REFUSED:
            reason = f"no upright face (rotated by {abs(tilt):.0f} degrees)"
            return FaceSearch(None, reason, count, "not_upright")
        outside = points_outside(points, picture.width, picture.height)
        if outside > most_outside:
            reason = f"face cut by the picture's edge ({outside} of 68 points lie outside)"
            return FaceSearch(None, reason, count, "face_cut")
        look = look_at(picture, points)
        if look is None or look.flat >= FLAT_REFUSED:
            reason = "no human face (what was found is a flat drawing or lies outside the picture)"
            return FaceSearch(None, reason, count, "not_human")
        notes = [*place_notes(points, picture.width, picture.height), *look_notes(look)]
        if second_look:
            notes.append("face found only at a second look: turned away, cut, shaded or small")
        if count > 1:
            how = "the largest" if not matched else "the one at the original's place"
            notes.insert(0, f"{count} faces found, {how} was taken")
        face = Face(picture, points, chosen.box, self.engine, count, tuple(notes))
        if face.ied < MIN_IED:
            reason = (
                f"face too small for measuring (eyes {face.ied:.0f} px apart, {MIN_IED:.0f} needed)"
            )
            return FaceSearch(None, reason, count, "face_too_small")
        return FaceSearch(face, None, count)


def place_of(face: Face) -> tuple[float, float]:
    """Centre of a face in fractions of its picture: what ``FaceFinder.find`` takes as ``near``."""
    x, y, w, h = face.box
    return (x + w / 2) / face.picture.width, (y + h / 2) / face.picture.height


def _places(near: tuple[float, float] | Face | None, picture: Picture) -> list[tuple[float, float]]:
    """Where the original's face may lie in ``picture``, in fractions of its width and height."""
    if near is None:
        return []
    if not isinstance(near, Face):
        return [near]
    x, y = place_of(near)
    pixels = (x * near.picture.width / picture.width, y * near.picture.height / picture.height)
    return [(x, y), pixels]
