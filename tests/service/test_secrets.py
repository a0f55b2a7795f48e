"""What the process knows to be secret is in nothing that it writes down."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import LikenessError
from service import secrets
from service.cli import main

CANARY = "canary/4f9b+71c2=d0"


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets, "_known", set())
    secrets.remember(CANARY)
    yield


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {CANARY}.",
        "https://example.com/?key=canary%2F4f9b%2B71c2%3Dd0",
        "Basic " + base64.b64encode(CANARY.encode()).decode(),
        "Basic " + base64.b64encode(b"user:" + CANARY.encode()).decode(),
        f"cut off in the middle: {CANARY[:12]}",
    ],
    ids=["plain", "in an address", "base64", "basic authentication", "cut"],
)
def test_a_key_is_found_however_it_is_written(said: str) -> None:
    clean = secrets.scrub_text(said)
    assert "[key]" in clean and "4f9b" not in clean
    assert base64.b64encode(CANARY.encode()).decode()[4:20] not in clean


def test_the_password_of_a_pair_is_a_secret_by_itself() -> None:
    secrets.remember("somebody:correct horse")
    assert secrets.scrub_text("wrong password 'correct horse' given") == (
        "wrong password '[key]' given"
    )


def test_every_corner_of_a_structure_is_scrubbed_and_stays_json() -> None:
    said = {
        f"header {CANARY}": [CANARY, {"deep": (f"x {CANARY}", 1, None, True)}],
        "picture": b"\x89PNG", "odd": Path(CANARY), "nan": math.nan, "seed": 7,
        "image": base64.b64encode(bytes(range(256))).decode(),
    }  # fmt: skip
    clean = secrets.scrub(said)
    text = json.dumps(clean, allow_nan=False)
    assert "canary" not in text and CANARY not in text
    assert clean["picture"] == clean["image"] == "[data]"
    assert clean["seed"] == 7 and clean["nan"] == "nan"
    assert clean["header [key]"] == ["[key]", {"deep": ["x [key]", 1, None, True]}]


def test_what_is_no_secret_stays_as_it_is() -> None:
    plain = {"model": "gpt-image-1", "http_status": 200, "cost": {"amount": 0.04}}
    assert secrets.scrub(plain) == plain


def test_a_key_in_the_bytes_of_a_picture_is_seen() -> None:
    assert secrets.holds_secret(b"\x89PNG tEXt" + CANARY.encode() + b" IDAT")
    assert not secrets.holds_secret(b"\x89PNG tEXt IDAT")


def test_the_traceback_of_a_fault_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as cause:
            raise RuntimeError(f"no header for {CANARY}") from cause
    except RuntimeError as error:
        line = main._fault(error)
    [note] = tmp_path.iterdir()
    text = note.read_text()
    assert "RuntimeError" in text and "[key]" in text and "[key]" in line
    assert CANARY not in text + line


def test_an_expected_error_is_told_without_the_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise LikenessError(f"{'/a-long-folder' * 9}: {CANARY}")

    monkeypatch.setattr(main, "build_app", lambda: app)
    monkeypatch.setattr(main, "silence_native_chatter", lambda: None)
    with pytest.raises(SystemExit):
        main.run()
    told = capsys.readouterr().err
    assert CANARY not in told and "[key]" in told
    assert "/a-long-folder" * 9 in told, "a path is no encoded picture"
