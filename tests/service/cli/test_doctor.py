"""The doctor: what it finds, what mends it, and what its exit code says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from preprocess import models, programs
from service import checkup
from service.cli import doctor


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.callback()(lambda: None)
    doctor.register(made)
    return made


@pytest.fixture
def torchless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the slow look for a GPU."""
    monkeypatch.setattr(checkup, "_gpu", lambda: [checkup.Check("gpu", "note", "not asked")])


def by_name(checks: list[checkup.Check]) -> dict[str, checkup.Check]:
    return {check.name: check for check in checks}


def test_a_machine_that_is_set_up_is_well(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    told = json.loads(done.stdout)
    problems = [row for row in told["checks"] if row["status"] == "problem"]
    assert problems == []
    assert (done.exit_code, told["ok"]) == (0, True)
    assert {"python", "packages", "cv2", "model", "exiftool", "gpu", "threads", "disk"} <= {
        row["name"] for row in told["checks"]
    }


def test_the_licence_that_excludes_commercial_use_is_told(
    app: typer.Typer, torchless: None
) -> None:
    done = CliRunner().invoke(app, ["doctor"])
    assert "shape_predictor_68_face_landmarks.dat" in done.stdout
    assert "commercial use excluded" in done.stdout


def test_a_missing_model_is_a_problem_with_its_command(
    app: typer.Typer, torchless: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_directory", tmp_path)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "!! model        model face_landmarker.task is not on this machine" in done.stdout
    assert "mend it: likeness models fetch" in done.stdout
    assert "something needs mending" in done.stdout


def test_a_missing_exiftool_is_a_problem_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "exiftool", lambda: None)
    (check,) = checkup._exiftool()
    assert check.status == "problem"
    assert "apt install libimage-exiftool-perl" in check.mend


def test_an_exiftool_that_does_not_run_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "exiftool"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(programs, "exiftool", lambda: broken)
    (check,) = checkup._exiftool()
    assert check.status == "problem"
    assert "does not run" in check.found


def test_two_distributions_of_cv2_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    two = ["opencv-python", "opencv-python-headless"]
    monkeypatch.setattr(checkup, "cv2_distributions", lambda: two)
    (check,) = checkup._one_cv2()
    assert check.status == "problem"
    assert check.mend.startswith("pip uninstall -y opencv-python opencv-python-headless")


def test_a_full_disk_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "NEEDED_DISK_GB", 1e9)
    assert {check.status for check in checkup._disk()} == {"problem"}


def test_a_check_that_breaks_is_told_and_the_others_go_on(
    torchless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> list[checkup.Check]:
        raise RuntimeError("no such device")

    broken.__name__ = "_threads"
    monkeypatch.setattr(checkup, "_threads", broken)
    checks = by_name(checkup.run_all())
    assert checks["threads"].status == "problem"
    assert "no such device" in checks["threads"].found
    assert checks["disk"].status == "ok"
