"""``likeness measure`` and ``likeness gate`` keep their contract: shape, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import pytest

REPO = Path(__file__).resolve().parents[3]
FACE = REPO / "samples" / "portraits" / "images" / "id01_base.jpg"
OTHER = REPO / "samples" / "portraits" / "images" / "id02_base.jpg"
METRICS = {
    "flrr", "nme", "pdl", "pdl_signed", "detail_change", "texture_coherence", "csi", "delta_l",
    "delta_e00", "delta_ita", "delta_hue",
}  # fmt: skip
REGIONS = {"upper_face", "lower_face", "beard", "eye_sockets", "cheeks", "forehead", "larynx"}


def likeness(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", *map(str, arguments)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def blurred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edits") / "blurred.png"
    cv2.imwrite(str(path), cv2.GaussianBlur(cv2.imread(str(FACE)), (0, 0), 4))
    return path


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edits") / "blank.png"
    cv2.imwrite(str(path), cv2.imread(str(FACE)) * 0)
    return path


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    done = likeness("measure", FACE, FACE, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_an_identical_pair_has_perfect_figures_in_the_agreed_shape(answer: dict[str, Any]) -> None:
    assert answer["outcome"] == "measured" and answer["reason"] is None
    assert answer["engine"] == "mediapipe"
    assert set(answer["metrics"]) >= METRICS
    assert answer["metrics"]["flrr"] == {"value": 100.0, "unit": "%", "status": "measured"}
    assert answer["metrics"]["texture_coherence"]["value"] == 1
    for name in ("pdl", "csi", "delta_e00", "nme", "detail_change"):
        assert answer["metrics"][name]["value"] == 0, name
    assert set(answer["regions"]) >= REGIONS
    assert answer["regions"]["beard"]["detail_change"]["value"] == 0
    health = answer["health"]
    assert health["score"] == 100 and health["decision"] == "pass"
    assert health["profile"] == "document" and isinstance(health["reasons"], list)
    assert set(answer["profiles"]) == {"document", "even"}


def test_a_pair_without_mask_says_why_drift_is_missing(answer: dict[str, Any]) -> None:
    drift = answer["metrics"]["outside_mask_drift"]
    assert drift["value"] is None and drift["status"] == "not_measurable" and drift["reason"]


@pytest.mark.parametrize("engine", ["mediapipe", "dlib"])
def test_both_engines_see_a_blur_and_say_who_spoke(blurred: Path, engine: str) -> None:
    done = likeness("measure", FACE, blurred, "--engine", engine, "--json")
    answer = json.loads(done.stdout)
    assert answer["engine"] == engine
    assert answer["metrics"]["detail_change"]["value"] < -1


def test_the_gate_passes_fails_and_cannot_run(blurred: Path, blank: Path, tmp_path: Path) -> None:
    assert likeness("gate", FACE, FACE).returncode == 0
    assert likeness("gate", FACE, blank).returncode == 1
    assert likeness("gate", FACE, blank, "--json").returncode == 1
    assert likeness("gate", FACE, FACE, "--min-score", "100").returncode == 0
    assert likeness("gate", FACE, tmp_path / "absent.jpg").returncode == 2
    assert likeness("gate", blank, FACE).returncode == 3


def test_an_unreadable_file_is_one_clear_line_and_exit_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"<html>")
    done = likeness("measure", FACE, bad, "--json")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "bad.jpg" in done.stderr and "HTML" in done.stderr


def test_a_batch_goes_on_after_a_bad_pair(blurred: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"")
    rows = [
        f"{FACE},{blurred}",
        f"{FACE},bad.jpg",
        f"absent.jpg,{FACE}",
        f"{OTHER},",
        f"{OTHER},{OTHER}",
    ]
    (tmp_path / "pairs.csv").write_text("original,edited\n" + "\n".join(rows) + "\n")
    done = likeness("measure", "--batch", tmp_path / "pairs.csv", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["outcome"] for a in lines] == [
        "measured", "edited_unreadable", "original_unreadable", "edited_unreadable", "measured",
    ]  # fmt: skip
    assert all(a["reason"] for a in lines[1:4])
    assert lines[1]["edited"] == "bad.jpg" and lines[0]["original"] == str(FACE)
    assert "100%" in done.stderr


def test_a_batch_with_a_wrong_column_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("orig,edited\na,b\n")
    done = likeness("measure", "--batch", tmp_path / "pairs.csv", "--json")
    assert done.returncode == 2
    assert "line 1: column 'original' is missing (found: orig, edited)" in done.stderr


def test_the_table_for_people_names_figures_and_reasons(blurred: Path) -> None:
    done = likeness("measure", FACE, blurred)
    assert done.returncode == 0
    assert "detail_change" in done.stdout and "health (document)" in done.stdout


def test_the_three_part_picture_is_written(blurred: Path, tmp_path: Path) -> None:
    target = tmp_path / "diagnosis.png"
    assert likeness("measure", FACE, blurred, "--diagnosis", target).returncode == 0
    height, width = cv2.imread(str(target)).shape[:2]
    assert width > 2 * height / 2 and width > 600
