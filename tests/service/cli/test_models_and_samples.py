"""``likeness models`` and ``likeness samples`` as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from domain.errors import LikenessError
from preprocess import models
from service.cli import models as models_command
from service.cli import samples as samples_command


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    models_command.register(made)
    samples_command.register(made)
    return made


def test_the_list_of_models_has_state_hash_and_licence(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["models", "list", "--json"])
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(rows) == set(models.manifest())
    dlib = rows["shape_predictor_68_face_landmarks.dat"]
    assert "commercial use excluded" in dlib["licence"]
    assert dlib["problem"] is None
    plain = CliRunner().invoke(app, ["models", "list"]).stdout
    assert all(row["sha256"] in plain for row in rows.values())


def test_models_can_be_fetched_from_a_folder(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = models.model_path("face_landmarker.task").parent
    monkeypatch.setattr(models, "_directory", tmp_path / "models")
    done = CliRunner().invoke(app, ["models", "fetch", "--from", str(here)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "models" / "face_landmarker.task").is_file()
    assert "verified" in done.stdout


def test_a_failed_fetch_ends_with_2_and_says_what_to_do(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_directory", tmp_path / "models")
    (tmp_path / "face_landmarker.task").write_bytes(b"not a model")
    done = CliRunner().invoke(
        app, ["models", "fetch", "face_landmarker.task", "--from", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "11 bytes, 3758596 expected" in done.stderr
    assert "likeness models fetch --from FOLDER" in done.stderr
    assert not (tmp_path / "models" / "face_landmarker.task").exists()


def test_every_public_set_is_told_with_its_licence(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["samples", "fetch"])
    assert done.exit_code == 0
    for word in ("CC BY 4.0", "no commercial use", "10.6084/m9.figshare.5047666", "subject_id"):
        assert word in done.stdout


def test_one_set_can_be_asked_for_and_an_unknown_one_is_an_error(app: typer.Typer) -> None:
    told = CliRunner().invoke(app, ["samples", "fetch", "london"]).stdout
    assert "london" in told
    assert "fairface" not in told
    wrong = CliRunner().invoke(app, ["samples", "fetch", "celeba"])
    assert isinstance(wrong.exception, LikenessError)
    assert "known: london, fairface, ffhq" in str(wrong.exception)


def test_the_samples_that_come_along_are_listed(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["samples", "list"])
    assert "68 portraits of 16 subjects" in done.stdout
