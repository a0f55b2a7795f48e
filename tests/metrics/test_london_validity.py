"""The published targets of the pixel metrics over all 102 neutral London portraits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from domain.faces import Face
from domain.pictures import Picture
from metrics import chrominance, texture
from metrics.conditions import original_warnings
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import edited, figures, london, value
from tests.metrics.skin_edits import around_face, shift_lab
from tests.planted import blur_then_grain, noise


def face_only(face: Face) -> Face:
    """The face with its surroundings cut off: the metrics look no further and edits run faster."""
    pixels, points = around_face(face.picture.pixels, face.points)
    return Face(Picture(pixels), points, face.box, face.engine)


@pytest.mark.slow
@pytest.mark.data
def test_coherence_and_bleaching_targets_hold_for_every_london_face(data_dir: Path) -> None:
    stems = sorted(p.stem for p in (data_dir / "faces" / "london" / "neutral").glob("*.jpg"))
    assert len(stems) == 102
    noisy, grained, csi, e00, warned = [], [], [], [], []
    for stem in stems:
        face = face_only(london(data_dir, stem))
        noisy.append(value(figures(edited(face, noise(15)), texture), "texture_coherence"))
        grain = edited(face, blur_then_grain(0.03, 15))
        grained.append(value(figures(grain, texture), "texture_coherence"))
        light = figures(edited(face, shift_lab(d_l=10)), chrominance)
        csi.append(value(light, "csi"))
        e00.append(value(light, "delta_e00"))
        warned += original_warnings(FacePair(face, face))
    print(f"\ncoherence: noise sigma 15 {np.mean(noisy):.3f} (worst {min(noisy):.3f}), blur and grain "
          f"{np.mean(grained):.3f} (worst {max(grained):.3f}); +10 L*: CSI {np.mean(csi):.2f} "
          f"(worst {max(csi):.2f}), CIEDE2000 {np.mean(e00):.1f} (least {min(e00):.1f})")  # fmt: skip
    assert min(noisy) >= 0.95
    assert max(grained) <= 0.1
    assert max(csi) < 0.5
    assert min(e00) > 5
    assert not warned
