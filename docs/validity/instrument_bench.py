"""Does the instrument measure what it says? Planted edits on the 102 neutral London portraits.

Run by ``make validity``: ``python docs/validity/instrument_bench.py [FACES]`` (all 102 by default,
about six minutes on one core). Prints one line a figure with its target and exits 1 when one is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
from service import settings  # noqa: E402

settings.pin_threads()
import cv2  # noqa: E402
import numpy as np  # noqa: E402

from docs.validity.harness.london import SIDE, portraits  # noqa: E402
from docs.validity.harness.targets import Target, finish, report  # noqa: E402
from domain.faces import Face  # noqa: E402
from domain.pictures import Picture  # noqa: E402
from metrics import chrominance, landmarks, texture  # noqa: E402
from metrics.contract import specs  # noqa: E402
from metrics.lab import ciede2000  # noqa: E402
from metrics.pair import FacePair  # noqa: E402
from preprocess import models  # noqa: E402
from preprocess.faces import FaceFinder  # noqa: E402
from service.measuring import active_metrics  # noqa: E402
from service.native import silence_native_chatter  # noqa: E402
from tests.metrics.skin_edits import shift_lab  # noqa: E402
from tests.metrics.test_lab import SHARMA  # noqa: E402
from tests.planted import BENIGN, HARMFUL, blur_then_grain, noise  # noqa: E402

BENIGN_LEAST = {"mediapipe": 99.5, "dlib": 97.0}
MOUTH_MOST = 76.0


def retention(pictures: Sequence[Picture], engine: str) -> Iterator[Target]:
    """Mean FLRR of every planted edit with one engine; a face not found again counts as 0."""
    finder = FaceFinder(engine)
    found: dict[str, list[float]] = {}
    missed = 0
    for picture in pictures:
        face = finder.find(picture).face
        if face is None:
            missed += 1
            continue
        for name, edit in {**BENIGN, **HARMFUL}.items():
            again = finder.find(Picture(edit(picture.pixels, face.points))).face
            value = 0.0 if again is None else _flrr(face, again)
            found.setdefault(name, []).append(value)
    finder.close()
    yield Target(f"{engine}: originals without a face", missed, high=0)
    for name, values in found.items():
        low = BENIGN_LEAST[engine] if name in BENIGN else None
        high = MOUTH_MOST if name.startswith("mouth") else None
        text = f"{engine}: FLRR, {name} (worst face {min(values):.0f})"
        yield Target(text, float(np.mean(values)), low, high)


def _flrr(original: Face, edited: Face) -> float:
    figures = landmarks.measure(FacePair(original, edited))
    value = next(m.value for m in figures if m.metric == "flrr")
    return 0.0 if value is None else value


def pixels(pictures: Sequence[Picture]) -> Iterator[Target]:
    """Texture, bleaching and identity, worst face of all."""
    finder = FaceFinder("mediapipe")
    noisy, grained, off = [], [], []
    shifted: dict[str, list[float]] = {"csi": [], "delta_e00": []}
    perfect = {name: spec.perfect for name, spec in specs().items()}
    for picture in pictures:
        face = finder.find(picture).face
        if face is None:
            continue
        noisy.append(_coherence(face, noise(15)(picture.pixels, face.points)))
        grained.append(_coherence(face, blur_then_grain(0.03, 15)(picture.pixels, face.points)))
        lighter = _with(face, shift_lab(d_l=10)(picture.pixels, face.points))
        for m in chrominance.measure(FacePair(face, lighter)):
            if m.value is not None and m.metric in shifted:
                shifted[m.metric].append(m.value)
        same = FacePair(face, _with(face, picture.pixels.copy()))
        figures = [m for module in active_metrics() for m in module.measure(same)]
        off += [abs(m.value - perfect[m.metric]) for m in figures if m.value is not None]
    finder.close()
    yield Target("texture_coherence, noise sigma 15, worst face", min(noisy), low=0.95)
    yield Target("texture_coherence, blur 0.03 IED and grain, worst face", max(grained), high=0.1)
    yield Target("+10 L*: csi, worst face", max(shifted["csi"]), high=0.5)
    yield Target("+10 L*: delta_e00, least", min(shifted["delta_e00"]), low=5.0)
    yield Target(f"identity: worst of {len(off)} figures off perfect", max(off), high=0.0)


def _with(face: Face, edited: np.ndarray) -> Face:
    return Face(Picture(edited), face.points, face.box, face.engine)


def _coherence(face: Face, edited: np.ndarray) -> float:
    [value] = [
        m.value
        for m in texture.measure(FacePair(face, _with(face, edited)))
        if m.region == "face" and m.value is not None
    ]
    return value


def sharma() -> Target:
    """CIEDE2000 against the 34 published pairs."""
    worst = np.abs(ciede2000(SHARMA[:, :3], SHARMA[:, 3:6]) - SHARMA[:, 6]).max()
    return Target("CIEDE2000, Sharma's 34 pairs, worst difference", float(worst), high=1e-4)


def main() -> None:
    """All of it."""
    cv2.setNumThreads(1)
    silence_native_chatter()
    models.configure(settings.load().models)
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 102
    pictures = [picture for picture, _ in portraits(most)]
    print(f"{len(pictures)} London portraits at {SIDE} px")
    sources = [[sharma()], pixels(pictures), *(retention(pictures, e) for e in BENIGN_LEAST)]
    finish(sum(report(source) for source in sources))


if __name__ == "__main__":
    main()
