"""The benches themselves: a figure out of bounds is missed, the planted smoothing is what it says."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from docs.validity.harness.smoothed import COPY, FIGURES, STRONG, smoothing
from docs.validity.harness.targets import Target, finish, report
from docs.validity.pictures_bench import Bench, any_disparity, found_in_a
from tests.planted import Points

FACES, EDITS, DISTURBED = 60, 5, 3


def face_points() -> Points:
    """A plain frontal face of 120 px between the eyes, its 68 points."""
    angle = np.linspace(np.pi, 0, 17)
    jaw = np.stack([300 + 150 * np.cos(angle), 280 + 200 * np.sin(angle)], axis=1)
    brows = [(180 + 20 * i, 230) for i in range(5)] + [(340 + 20 * i, 230) for i in range(5)]
    nose = [(300, 270 + 25 * i) for i in range(4)] + [(270 + 15 * i, 360) for i in range(5)]
    ring = np.linspace(0, 2 * np.pi, 7)[:6]
    eyes = [(x + 25 * np.cos(a), 270 + 8 * np.sin(a)) for x in (240, 360) for a in ring]
    outer, inner = np.linspace(0, 2 * np.pi, 13)[:12], np.linspace(0, 2 * np.pi, 9)[:8]
    mouth = [(300 + 50 * np.cos(a), 405 + 18 * np.sin(a)) for a in outer]
    mouth += [(300 + 35 * np.cos(a), 405 + 8 * np.sin(a)) for a in inner]
    return np.array([*jaw, *brows, *nose, *eyes, *mouth], dtype=np.float64)


def test_a_figure_outside_its_bounds_is_missed_and_ends_the_bench_with_one() -> None:
    targets = [Target("in", 5, low=5), Target("over", 6, high=5), Target("only shown", 99)]
    assert [t.kept for t in targets] == [True, False, True]
    assert "MISSED" in targets[1].line() and "kept" not in targets[2].line()
    assert report(targets) == 1
    with pytest.raises(SystemExit) as end:
        finish(1)
    assert end.value.code == 1
    with pytest.raises(SystemExit) as end:
        finish(0)
    assert end.value.code == 0


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_the_smoothing_takes_the_share_it_names_from_the_lower_face_alone(share: float) -> None:
    grain = np.random.default_rng(3).normal(128, 20, (600, 600, 3))
    pixels = np.clip(grain, 0, 255).astype(np.uint8)
    smoothed = smoothing(share)(pixels, face_points())
    chin, brow = (slice(430, 460), slice(280, 320)), (slice(180, 240), slice(220, 380))
    energy = [
        cv2.Laplacian(p[chin].astype(np.float32), cv2.CV_32F).var() for p in (smoothed, pixels)
    ]
    assert energy[0] / energy[1] == pytest.approx(1 - share, abs=0.05)
    assert np.array_equal(smoothed[brow], pixels[brow])


def test_a_bench_finds_what_is_planted_in_made_up_figures_and_nothing_else() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(0, 0.1, (FACES, EDITS, DISTURBED, len(FIGURES)))
    values[:, STRONG, :, 0] -= 2.0
    genders = np.where(np.arange(FACES) % 2, "male", "female")
    bench = Bench(values, genders, audits=20)
    assert bench.share(STRONG, COPY, found_in_a) == 100
    assert bench.share(COPY, STRONG, found_in_a) == 0, "the other group lost it"
    assert bench.share(COPY, COPY, any_disparity, repeats=3) <= 15
