"""``likeness inspect`` on good, bad and oddly named files."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from domain.errors import ModelMissing
from domain.pictures import Picture
from preprocess.decode import encode_png
from preprocess.faces import FaceSearch
from service.cli import inspect as command

KEYS = {
    "file", "accepted", "reason", "width", "height", "profile", "orientation", "centre_srgb",
    "topleft_srgb", "faces", "ied", "format", "warnings",
}  # fmt: skip


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command("other")(lambda: None)
    command.register(app)
    result = CliRunner().invoke(app, ["inspect", *arguments])
    return result.exit_code, result.stdout


def lines(*arguments: str) -> list[dict[str, Any]]:
    code, out = run("--json", *arguments)
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def picture_file(path: Path, side: int = 40) -> str:
    pixels = np.zeros((side, 2 * side, 3), np.uint8)
    pixels[:, :] = (10, 20, 30)
    pixels[side // 4 : -side // 4, side // 2 : -side // 2] = (200, 100, 50)
    path.write_bytes(encode_png(pixels))
    return str(path)


def test_a_picture_is_one_object_a_line_with_its_colours(tmp_path: Path) -> None:
    (answer,) = lines(picture_file(tmp_path / "x.jpg"))
    assert set(answer) >= KEYS
    assert answer["accepted"] is True
    assert answer["reason"] is None
    assert (answer["width"], answer["height"]) == (80, 40)
    assert answer["centre_srgb"] == [200, 100, 50]
    assert answer["topleft_srgb"] == [10, 20, 30]
    assert (answer["format"], answer["profile"], answer["orientation"]) == ("PNG", "none", 1)
    assert answer["faces"] == 0
    assert answer["ied"] is None


def test_bad_files_are_lines_with_reasons_and_the_others_go_on(tmp_path: Path) -> None:
    html = tmp_path / "page.jpg"
    html.write_text("<html>503</html>", encoding="utf-8")
    good = picture_file(tmp_path / "good.png")
    answers = lines(str(html), str(tmp_path / "absent.png"), str(tmp_path), good)
    assert [a["accepted"] for a in answers] == [False, False, False, True]
    assert [a["reason"] for a in answers] == [
        "not an image: looks like HTML", "no such file", "a folder, not a file", None,
    ]  # fmt: skip
    assert all(set(a) == set(answers[0]) for a in answers)
    assert answers[0]["width"] is None
    assert answers[0]["centre_srgb"] is None


def test_names_reach_the_terminal_escaped_and_json_gives_them_back(tmp_path: Path) -> None:
    path = picture_file(tmp_path / "\u202egpj\x1b[31m\n.png")
    for arguments in (["--json", path], [path]):
        code, out = run(*arguments)
        assert code == 0
        assert len([line for line in out.splitlines() if not line.startswith("  - ")]) == 1
        shown = out.replace("\n", "")
        assert not any(unicodedata.category(c)[0] == "C" for c in shown)
    assert lines(path)[0]["file"] == path


def test_the_listing_for_people_names_size_colours_and_warnings(data_dir: Path) -> None:
    folder = data_dir / "hard-images"
    code, out = run(
        str(folder / "jpeg-variants" / "face_q5.jpg"),
        str(folder / "corrupt-truncated" / "zero_byte.jpg"),
    )
    assert code == 0
    assert "JPEG, 480 x 592" in out
    assert "heavily compressed" in out
    assert "zero_byte.jpg: rejected: empty file" in out


def test_faces_are_counted_and_the_distance_of_the_eyes_given(data_dir: Path) -> None:
    folder = data_dir / "hard-images" / "faces"
    one, none = lines(str(folder / "one_hat_scarf.jpg"), str(folder / "none_coffee.jpg"))
    assert one["faces"] == 1
    assert 80 < one["ied"] < 160
    assert none["faces"] == 0
    assert none["face_reason"] == "no face found"


class Finder:
    """A stand-in that fails, to see that the list goes on."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find(self, picture: Picture, thorough: bool = False) -> FaceSearch:
        raise self.error

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "error", [ModelMissing("no model: likeness models fetch"), ValueError("x")]
)
def test_faces_that_cannot_be_searched_leave_the_rest_of_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(command, "FaceFinder", lambda: Finder(error))
    (answer,) = lines(picture_file(tmp_path / "x.png"))
    assert answer["accepted"] is True
    assert answer["faces"] is None
    assert answer["face_reason"].startswith("not searched: ")
