"""Proportions change by exactly what was done to the points, and by nothing else."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.faces import Face
from domain.measurements import Measurement
from metrics.pair import FacePair
from metrics.proportions import RATIOS, SPECS, axis, measure, proportions
from tests.metrics.portrait_pairs import identical, rendered

REPO = Path(__file__).resolve().parents[2]
STORED = json.loads((REPO / "metrics" / "data" / "proportions_axis.json").read_text())


@pytest.fixture(scope="module")
def face() -> Face:
    return rendered("id03_base")


def changed(face: Face, points: np.ndarray) -> dict[str, Measurement]:
    return {m.metric: m for m in measure(FacePair(face, replace(face, points=points)))}


def figure(found: dict[str, Measurement], metric: str) -> float:
    value = found[metric].value
    assert value is not None, found[metric].reason
    return value


def moved_apart(points: np.ndarray, one: list[int], other: list[int], factor: float) -> np.ndarray:
    """Points whose distance to their partners is ``factor`` times as large."""
    out = points.copy()
    middle = (points[one] + points[other]) / 2
    out[one] = middle + (points[one] - middle) * factor
    out[other] = middle + (points[other] - middle) * factor
    return out


def test_an_identical_pair_changes_nothing(face: Face) -> None:
    assert {m.metric: m.value for m in measure(identical(face))} == {s.id: 0.0 for s in SPECS}


def test_a_jaw_ten_per_cent_wider_is_measured_as_that(face: Face) -> None:
    found = changed(face, moved_apart(face.points, [5], [11], 1.1))
    assert figure(found, "jaw_width") == pytest.approx(10)
    assert figure(found, "jaw_angle") != 0
    assert figure(found, "nose_width") == pytest.approx(0, abs=1e-9)


def test_an_eye_opened_by_a_fifth_is_measured_as_that(face: Face) -> None:
    points = moved_apart(face.points, [37, 38, 43, 44], [41, 40, 47, 46], 1.2)
    assert figure(changed(face, points), "eye_opening") == pytest.approx(20, abs=0.01)


def test_a_narrowed_nose_is_negative(face: Face) -> None:
    points = moved_apart(face.points, [31], [35], 0.85)
    assert figure(changed(face, points), "nose_width") == pytest.approx(-15, abs=0.1)


def test_raised_brows_are_positive(face: Face) -> None:
    points = face.points.copy()
    points[17:27, 1] -= 0.03 * face.ied
    found = changed(face, points)
    before = proportions(face.points)[RATIOS.index("brow_to_eye")]
    assert figure(found, "brow_to_eye") == pytest.approx(100 * 0.03 / before, rel=0.02)


@given(
    scale=st.floats(0.3, 3),
    angle=st.floats(-1, 1),
    shift=st.tuples(st.floats(-300, 300), st.floats(-300, 300)),
)
def test_size_turn_and_place_of_a_face_do_not_enter(
    scale: float, angle: float, shift: tuple[float, float]
) -> None:
    points = rendered("id03_base").points
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    assert np.allclose(proportions(points), proportions(points @ turn * scale + shift))


def test_the_axis_points_to_the_masculine_end_of_the_sample() -> None:
    assert STORED["positive_end"] == "masculine"
    assert STORED["gap_of_group_means_sd"] > 1.3
    step = axis().sds * np.sign(axis().coefficients)
    assert axis().shift(axis().means, axis().means + step) > 0
    assert axis().shift(axis().means, axis().means) == 0


def test_a_shift_there_and_back_cancels(face: Face) -> None:
    edited = replace(face, points=moved_apart(face.points, [31], [35], 1.2))
    there = {m.metric: m.value for m in measure(FacePair(face, edited))}
    back = {m.metric: m.value for m in measure(FacePair(edited, face))}
    assert there["proportions_axis"] > 0
    assert there["proportions_axis"] == pytest.approx(-back["proportions_axis"], abs=1e-6)


def test_the_rendered_counterparts_move_the_way_their_shapes_were_made() -> None:
    towards_feminine = measure(FacePair(rendered("id05_base"), rendered("id05_gender_feminine")))
    towards_masculine = measure(FacePair(rendered("id02_base"), rendered("id02_gender_masculine")))
    assert towards_feminine[-1].value is not None and towards_masculine[-1].value is not None
    assert towards_feminine[-1].value < 0 < towards_masculine[-1].value


def test_a_face_turned_to_the_side_is_not_measured(face: Face) -> None:
    points = face.points.copy()
    points[27:36, 0] += 0.55 * face.ied
    found = changed(face, points)
    assert all(m.value is None for m in found.values())
    assert "turned to the side" in str(found["jaw_width"].reason)


def test_collapsed_points_are_not_measured(face: Face) -> None:
    found = changed(face, face.points * [1, 0.01] + [0, 300])
    assert all(m.reason == "the edited face's points are collapsed" for m in found.values())


@pytest.mark.slow
@pytest.mark.data
def test_the_derivation_gives_the_stored_axis(data_dir: Path) -> None:
    path = REPO / "docs" / "derivations" / "proportions_axis.py"
    spec = importlib.util.spec_from_file_location("proportions_axis_derivation", path)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    derived = script.derive(data_dir)
    print(derived["auc"])
    for name, auc in STORED["auc"].items():
        assert derived["auc"][name] == pytest.approx(auc, abs=0.01), name
    assert derived["auc"]["london, cross-validated"] >= 0.95
    assert derived["auc"]["congress, cross-validated"] >= 0.92
    again, stored = np.array(derived["coefficients"]), np.array(STORED["coefficients"])
    assert again @ stored / np.linalg.norm(again) / np.linalg.norm(stored) > 0.99
    assert derived["subjects"] == STORED["subjects"]
