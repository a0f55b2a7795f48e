"""Does one harm score the same on every skin tone? Two rendered heads in six tones each.

Run by ``make validity``: ``python docs/validity/health_bench.py`` (half a minute on one core). The
renders differ in skin tone alone, so one and the same edit is one and the same harm. Prints the
spread of both health profiles over the tones, and how far the two agree on tones I to III; exits 1
when the profile ``even`` spreads by more than three points.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from service import settings

settings.pin_threads()
import cv2  # noqa: E402
import numpy as np  # noqa: E402

from docs.validity.harness.targets import Target, finish, report  # noqa: E402
from domain.measurements import Health  # noqa: E402
from metrics.health import score  # noqa: E402
from preprocess import models  # noqa: E402
from preprocess.decode import encode_png  # noqa: E402
from service.measuring import Instrument  # noqa: E402
from service.native import silence_native_chatter  # noqa: E402
from tests.metrics.portrait_pairs import TONES, tone  # noqa: E402
from tests.metrics.skin_edits import bilateral, shift_lab  # noqa: E402
from tests.planted import PlantedEdit, blur, jpeg  # noqa: E402

SPREAD = 3.0
AGREEMENT = 4.0
HARMS: dict[str, PlantedEdit] = {
    "blur 0.003 IED": blur(0.003),
    "blur 0.01 IED": blur(0.01),
    "bilateral 7/25/5": bilateral(7, 25, 5),
    "bilateral 9/40/7": bilateral(9, 40, 7),
    "JPEG 75": jpeg(75),
    "JPEG 60": jpeg(60),
    "JPEG 30": jpeg(30),
    "+5 L*": shift_lab(d_l=5),
    "+10 L*": shift_lab(d_l=10),
}


def scores(instrument: Instrument, subject: str, edit: PlantedEdit) -> dict[str, list[float]]:
    """Both profiles' points over the six tones, the edit measured end to end as two files."""
    found: dict[str, list[float]] = {"even": [], "document": []}
    for group in TONES:
        face = tone(subject, group)
        edited = encode_png(edit(face.picture.pixels, face.points))
        result = instrument.measure_files(encode_png(face.picture), edited)
        for profile, values in found.items():
            values.append(_points(score(result.measurements, profile)))
    return found


def _points(health: Health) -> float:
    if health.score is None:
        sys.exit(f"no score: {'; '.join(health.reasons)}")
    return health.score


def targets() -> Iterator[Target]:
    """The spread of each harm and head, then the agreement."""
    instrument = Instrument()
    apart: dict[str, list[float]] = {"texture": [], "lightening": []}
    spreads: dict[str, list[float]] = {"even": [], "document": []}
    for name, edit in HARMS.items():
        for subject in ("id01", "id02"):
            found = scores(instrument, subject, edit)
            for profile, values in found.items():
                spreads[profile].append(max(values) - min(values))
            shown = "/".join(f"{v:.0f}" for v in found["even"])
            text = f"{name}, {subject}: even {shown}, spread"
            yield Target(text, spreads["even"][-1], high=SPREAD)
            shown = "/".join(f"{v:.0f}" for v in found["document"])
            yield Target(f"    document {shown}, spread", spreads["document"][-1])
            pairs = zip(found["even"][:3], found["document"][:3], strict=True)
            apart["lightening" if "L*" in name else "texture"] += [abs(a - b) for a, b in pairs]
    instrument.close()
    for profile, widths in spreads.items():
        yield Target(f"{profile}: mean spread over the tones", float(np.mean(widths)))
    text = "profiles apart on tones I-III, blur, bilateral and JPEG, mean"
    yield Target(text, float(np.mean(apart["texture"])), high=AGREEMENT)
    yield Target(
        "profiles apart on tones I-III, lightening, mean", float(np.mean(apart["lightening"]))
    )


def main() -> None:
    """All of it."""
    cv2.setNumThreads(1)
    silence_native_chatter()
    models.configure(settings.load().models)
    finish(report(targets()))


if __name__ == "__main__":
    main()
