"""Every row of the group ``pairs`` of the hard pictures is judged as its manifest says."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.measurements import Decision, Outcome, PairResult
from service.gate import decide
from service.measuring import Instrument

HOPPER, KODIM = "hopper_orig.jpg", "kodim04_orig.jpg"


@pytest.fixture(scope="module")
def instrument() -> Iterator[Instrument]:
    made = Instrument()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pairs(data_dir: Path) -> Path:
    return data_dir / "hard-images" / "pairs"


def judged(instrument: Instrument, folder: Path, original: str, edit: str) -> PairResult:
    return instrument.measure_files(folder / original, folder / edit)


def figure(result: PairResult, metric: str) -> float:
    found = result.figure(metric)
    assert found is not None and found.value is not None, (metric, found)
    return found.value


def warned(result: PairResult, *words: str) -> bool:
    return any(all(w in said for w in words) for said in result.warnings)


@pytest.mark.parametrize(
    "edit", ["same_bytes_edit.jpg", "same_look_exif6_edit.jpg", "same_look_p3_edit.jpg"]
)
def test_the_same_look_in_another_file_is_no_harm(
    instrument: Instrument, pairs: Path, edit: str
) -> None:
    result = judged(instrument, pairs, HOPPER, edit)
    assert figure(result, "flrr") == 100
    assert abs(figure(result, "detail_change")) < 0.15
    assert figure(result, "csi") < 0.5 and abs(figure(result, "delta_l")) < 0.5
    assert decide(result).decision is Decision.PASS


def test_identical_bytes_give_perfect_values(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, HOPPER, "same_bytes_edit.jpg")
    assert figure(result, "texture_coherence") == 1
    assert figure(result, "pdl") == figure(result, "csi") == figure(result, "delta_e00") == 0


def test_a_blank_answer_is_an_outcome_not_a_shift(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, HOPPER, "blank_black_edit.png")
    assert result.outcome is Outcome.BLANK
    assert "blank image" in str(result.reason)
    assert all(m.value is None for m in result.measurements)
    assert decide(result).decision is Decision.FAIL


def test_a_damaged_answer_is_an_outcome(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, KODIM, "truncated_edit_edit.jpg")
    assert result.outcome is Outcome.EDITED_UNREADABLE
    assert "damaged image" in str(result.reason) and "truncated" in str(result.reason)


def test_a_tiny_answer_is_said_to_be_too_small(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, KODIM, "tiny_edit_edit.jpg")
    assert result.outcome is Outcome.NOT_MEASURABLE
    assert "edit too small (64 x" in str(result.reason)


def test_a_destroyed_face_is_lost_and_fails_the_gate(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, KODIM, "no_face_edit_edit.jpg")
    assert result.outcome is Outcome.FACE_LOST
    assert figure(result, "flrr") == 0
    assert result.figure("csi").value is None  # type: ignore[union-attr]
    assert decide(result).decision is Decision.FAIL


def test_a_second_face_is_told_and_fails_the_gate(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, KODIM, "two_faces_edit_edit.jpg")
    assert warned(result, "2 faces in the edit")
    assert decide(result).decision is Decision.FAIL


def test_a_mirrored_answer_is_told_and_no_change_of_shape(
    instrument: Instrument, pairs: Path
) -> None:
    result = judged(instrument, pairs, HOPPER, "mirrored_edit.jpg")
    assert warned(result, "mirror")
    assert figure(result, "flrr") > 95


def test_a_stretched_answer_is_told_and_no_change_of_shape(
    instrument: Instrument, pairs: Path
) -> None:
    result = judged(instrument, pairs, HOPPER, "stretched_square_edit.jpg")
    assert warned(result, "aspect ratio changed by the tool")
    assert figure(result, "flrr") > 95


@pytest.mark.parametrize(
    "edit", ["shift_5px_edit.jpg", "zoom_3pct_edit.jpg", "square_1024_edit.jpg"]
)
def test_framing_is_no_harm(instrument: Instrument, pairs: Path, edit: str) -> None:
    result = judged(instrument, pairs, HOPPER, edit)
    assert figure(result, "flrr") > 98
    assert abs(figure(result, "detail_change")) < 0.3
    assert figure(result, "csi") < 1


def test_another_person_is_flagged(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, HOPPER, "other_person_edit.jpg")
    assert warned(result, "another person")
    assert decide(result).decision is Decision.FAIL


def test_dropped_colour_is_said_to_be_dropped(instrument: Instrument, pairs: Path) -> None:
    result = judged(instrument, pairs, KODIM, "gray_edit_edit.jpg")
    assert warned(result, "monochrome")
    assert result.figure("delta_ita").value is None  # type: ignore[union-attr]


def test_smoothing_is_loss_and_sharpening_is_gain(instrument: Instrument, pairs: Path) -> None:
    smooth = judged(instrument, pairs, HOPPER, "smooth_skin_edit.jpg")
    sharp = judged(instrument, pairs, KODIM, "sharpened_edit.jpg")
    assert figure(smooth, "detail_change") < -2 and figure(smooth, "pdl_signed") > 0
    assert figure(smooth, "csi") < 0.5
    assert figure(sharp, "detail_change") > 1 and figure(sharp, "pdl_signed") < 0


def test_lightening_and_warming_are_told_apart(instrument: Instrument, pairs: Path) -> None:
    light = judged(instrument, pairs, HOPPER, "lighter_edit.jpg")
    warm = judged(instrument, pairs, HOPPER, "warmer_edit.jpg")
    assert 4 < figure(light, "delta_l") < 9
    assert abs(figure(warm, "delta_l")) < 1 and figure(warm, "csi") > 4


def test_heavy_compression_of_the_edit_is_said(instrument: Instrument, pairs: Path) -> None:
    assert warned(judged(instrument, pairs, KODIM, "jpeg_q25_edit.jpg"), "compressed")


def test_every_pair_of_the_manifest_ends_with_an_outcome(
    instrument: Instrument, data_dir: Path
) -> None:
    folder = data_dir / "hard-images"
    with (folder / "manifest.csv").open(encoding="utf-8") as source:
        rows = [r for r in csv.DictReader(source) if r["action"] == "pair"]
    assert len(rows) == 21
    for row in rows:
        original = row["expected"].split("original: ")[1].split(". ")[0]
        result = instrument.measure_files(folder / original, folder / row["file"])
        if result.outcome is Outcome.MEASURED:
            assert result.reason is None
        else:
            assert result.reason
