"""Crops, registration and the drawn diagnosis."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
import synthetic_run as run
from hypothesis import given
from hypothesis import strategies as st

from domain.measurements import Measurement
from preprocess.decode import open_picture
from service.report.charts import script_json
from service.report.diagnosis import GAP, HEAD, PANEL, diagnosis_png
from service.report.model import RunData
from service.report.pictures import embed, make_trio, move, retained_flags, similarity

NAME = "images/id01_base.jpg"


@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-200, 200), st.floats(-200, 200))
def test_a_similarity_is_recovered_from_its_points(
    turn: float, scale: float, x: float, y: float
) -> None:
    c, s = scale * np.cos(turn), scale * np.sin(turn)
    known = np.array([[c, -s, x], [s, c, y]])
    points = run.template() * 100
    assert similarity(points, move(known, points)) == pytest.approx(known, abs=1e-6)


def test_an_untouched_picture_differs_nowhere() -> None:
    pixels, points = run.pixels_of(NAME), run.points_of(NAME).tolist()
    trio = make_trio(pixels, pixels, {"original_points": points, "edited_points": points}, 200)
    assert trio.difference is not None
    assert float(trio.difference.max()) < 0.5
    assert np.array_equal(trio.original, trio.edited)


def test_a_result_of_another_size_is_laid_over_the_face() -> None:
    pixels, points = run.pixels_of(NAME), run.points_of(NAME)
    half = cv2.resize(pixels, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    shifted = np.roll(half, 12, axis=1)
    after = (points + 0.5) / 2 - 0.5 + [12, 0]
    trio = make_trio(
        pixels, shifted, {"original_points": points.tolist(), "edited_points": after.tolist()}, 240
    )
    assert trio.difference is not None
    assert float(np.median(trio.difference)) < 1.5
    assert np.abs(trio.edited_points - trio.original_points).max() < 0.1


def test_points_measured_on_an_unstretched_copy_land_on_the_result_itself() -> None:
    pixels, points = run.pixels_of(NAME), run.points_of(NAME)
    height, width = pixels.shape[:2]
    wide = cv2.resize(pixels, (2 * width, height))
    evidence = {"original_points": points.tolist(), "edited_points": points.tolist(),
                "original_size": [width, height], "edited_size": [width, height]}  # fmt: skip
    trio = make_trio(pixels, wide, evidence, 240)
    assert trio.edited_points is not None
    assert trio.edited_points.shape == (68, 2)


def test_a_pair_without_evidence_is_laid_over_by_size() -> None:
    pixels = run.pixels_of(NAME)
    trio = make_trio(pixels, pixels[::2, ::2].copy(), {}, 200)
    assert trio.original_points is None
    assert "by size" in trio.aligned
    assert make_trio(pixels, None, {"original_points": "nonsense"}, 200).difference is None


def test_lost_points_are_read_from_either_form_of_evidence() -> None:
    assert retained_flags({}) is None
    assert retained_flags({"retained": [True] * 67 + [False]}) == [True] * 67 + [False]
    assert retained_flags({"lost": [0]}) == [False] + [True] * 67
    assert retained_flags({"collapsed": True}) == [False] * 68


def test_tools_take_turns_for_the_places_with_pictures(run_data: RunData) -> None:
    got = embed(run_data, limit=6)
    tools = sorted(i.tool for i in run_data.items if i.item_id in got.items)
    assert tools == sorted(2 * ["super-resolution", "style transfer, strong", "coordinate network"])
    assert all(p.startswith("data:image/jpeg;base64,") for p in got.pictures)


def test_a_picture_that_is_gone_is_said_and_the_others_go_on(run_data: RunData) -> None:
    first = run_data.items[0].original

    def load(key: str) -> bytes:
        if key == first:
            raise FileNotFoundError(2, "No such file or directory", key)
        return run_data.load_picture(key) if not key.startswith("reencode") else b"no picture"

    some = [i for i in run_data.items if i.tool in ("coordinate network", "re-encode")][:6]
    got = embed(replace(run_data, items=some, load_picture=load))
    assert got.items
    assert len(got.problems) >= 3
    assert all(text.startswith("picture cannot be shown") for text in got.problems.values())


def test_a_full_report_stops_taking_pictures_and_says_so(run_data: RunData) -> None:
    got = embed(run_data, limit=8, budget=60_000)
    assert 0 < len(got.items) < 8
    assert "the report has reached its size limit" in got.problems.values()


def test_the_diagnosis_rings_exactly_the_displaced_points() -> None:
    pixels, points = run.pixels_of(NAME), run.points_of(NAME)
    flags = [i < 48 for i in range(68)]
    evidence = {
        "original_points": points.tolist(),
        "edited_points": points.tolist(),
        "retained": flags,
    }
    png = diagnosis_png(pixels, pixels, evidence, [Measurement("csi", 1.25, "CIE Lab")], "pair 1")
    drawn = open_picture(png).pixels
    assert drawn.shape[1] == 3 * PANEL + 4 * GAP
    orange = (drawn[..., 0] > 230) & (drawn[..., 1] < 130) & (drawn[..., 2] < 80)
    rows, columns = np.nonzero(orange[HEAD : HEAD + PANEL])
    assert len(rows) > 500
    assert columns.min() > GAP + PANEL
    assert columns.max() < 2 * (GAP + PANEL)


def test_a_diagnosis_can_be_drawn_of_a_lost_face_and_of_no_result() -> None:
    pixels = run.pixels_of(NAME)
    for edited in (pixels, None):
        png = diagnosis_png(pixels, edited, {"original_points": run.points_of(NAME).tolist()})
        assert open_picture(png).height >= HEAD + PANEL


def test_json_in_a_script_element_cannot_end_it() -> None:
    text = str(script_json({"a": "</script><!--&\u2028"}))
    assert not set("<>&\u2028") & set(text)
