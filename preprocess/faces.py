"""From a picture to the one face that is measured, or to the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from domain.faces import Face
from domain.pictures import Picture
from preprocess.candidates import Candidate, Engine, choose
from preprocess.engines_dlib import DlibEngine
from preprocess.engines_mediapipe import MediapipeEngine

MIN_SIDE = 80
"""Shorter side of a picture, in pixels, below which no face is searched."""
MIN_IED = 24.0
"""Distance of the eyes, in pixels, below which skin and fine detail cannot be measured."""
ENGINES = ("mediapipe", "dlib")


@dataclass(frozen=True, slots=True, eq=False)
class FaceSearch:
    """What a search found.

    ``face`` is None exactly when ``reason`` (a short sentence) says why. ``code`` is the stable
    word for it: "image_too_small", "no_face", "not_upright", "not_human", "face_too_small", "" when
    there is a face. Only "no_face", "not_upright" and "not_human" mean that a face was lost; the
    small ones mean that the instrument cannot judge. ``count`` is how many faces were seen.
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

    def find(self, picture: Picture, near: tuple[float, float] | None = None) -> FaceSearch:
        """The face to measure.

        ``near`` is the place of the original's face centre in fractions of the picture's width and
        height; in an edited picture the face nearest to it is taken instead of the largest.
        Raises ModelMissing.
        """
        side = min(picture.width, picture.height)
        if side < MIN_SIDE:
            reason = f"image too small for measuring ({side} px, {MIN_SIDE} needed)"
            return FaceSearch(None, reason, 0, "image_too_small")
        found = self._engine.detect(picture.pixels)
        if not found:
            return FaceSearch(None, "no face found", 0, "no_face")
        chosen = choose(found, picture.width, picture.height, near)
        face = self._face(picture, chosen, found, near)
        if face.ied < MIN_IED:
            reason = (
                f"face too small for measuring (eyes {face.ied:.0f} px apart, {MIN_IED:.0f} needed)"
            )
            return FaceSearch(None, reason, len(found), "face_too_small")
        return FaceSearch(face, None, len(found))

    def close(self) -> None:
        """Free the models; the finder may still be used and then loads them again."""
        self._engine.close()

    def _face(
        self,
        picture: Picture,
        chosen: Candidate,
        found: list[Candidate],
        near: tuple[float, float] | None,
    ) -> Face:
        notes = []
        if len(found) > 1:
            how = "the largest" if near is None else "the one at the original's place"
            notes.append(f"{len(found)} faces found, {how} was taken")
        return Face(picture, chosen.points, chosen.box, self.engine, len(found), tuple(notes))


def place_of(face: Face) -> tuple[float, float]:
    """Centre of a face in fractions of its picture: what ``FaceFinder.find`` takes as ``near``."""
    x, y, w, h = face.box
    return (x + w / 2) / face.picture.width, (y + h / 2) / face.picture.height
