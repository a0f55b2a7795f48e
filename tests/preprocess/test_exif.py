"""Metadata: what is told about a person, and files without it, read again by exiftool itself."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from domain.errors import LikenessError, PictureRejected
from preprocess import programs
from preprocess.decode import encode_jpeg, open_picture
from preprocess.exif import ExifTool
from preprocess.exif_tags import UNREADABLE, read_exif
from preprocess.exiftool_process import ExifToolProcess

PROGRAM = shutil.which("exiftool")
needs_exiftool = pytest.mark.skipif(PROGRAM is None, reason="the exiftool program is absent")
SECRETS = ("Sample Person", "000123", "sample caption", "48.5")


@pytest.fixture(scope="module")
def tool() -> Iterator[ExifTool]:
    with ExifTool() as exiftool:
        yield exiftool


def told_by_exiftool(data: bytes, path: Path) -> dict[str, object]:
    """All tags by a fresh exiftool, independent of the class under test."""
    path.write_bytes(data)
    command = [str(PROGRAM), "-j", "-G1", "-a", "-n", str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    found: dict[str, object] = json.loads(done.stdout)[0]
    return found


@pytest.fixture
def personal(data_dir: Path) -> bytes:
    return (data_dir / "hard-images" / "exif-broken" / "gps_and_names.jpg").read_bytes()


@needs_exiftool
def test_hazards_are_told_by_name_and_never_by_value(tool: ExifTool, personal: bytes) -> None:
    facts = tool.facts(personal)
    assert facts.mime_type == "image/jpeg"
    assert {"IFD0:Artist", "ExifIFD:SerialNumber", "IPTC:Caption-Abstract"} <= set(facts.hazards)
    assert any(name.startswith("GPS:GPSLatitude") for name in facts.hazards)
    assert not any(secret in repr(facts) for secret in SECRETS)


@needs_exiftool
def test_a_normalised_picture_keeps_its_pixels_and_loses_what_it_told(
    tool: ExifTool, personal: bytes, tmp_path: Path
) -> None:
    clean, removed = tool.normalise(personal)
    assert np.array_equal(open_picture(clean).pixels, open_picture(personal).pixels)
    assert "IFD0:Artist" in removed
    told = told_by_exiftool(clean, tmp_path / "x.jpg")
    assert not any(secret in json.dumps(told) for secret in SECRETS)
    assert not any(key.split(":")[0] in ("GPS", "IFD0", "ExifIFD", "IPTC") for key in told)
    assert tool.facts(clean).hazards == ()


@needs_exiftool
def test_a_long_user_comment_is_removed_and_the_picture_stands_upright(
    tool: ExifTool, data_dir: Path
) -> None:
    path = data_dir / "hard-images" / "exif-broken" / "exif_60k_comment_or6.jpg"
    clean, removed = tool.normalise(path)
    assert removed == ["ExifIFD:UserComment"]
    assert open_picture(clean).facts.orientation == 1
    assert np.array_equal(open_picture(clean).pixels, open_picture(path).pixels)


@needs_exiftool
@pytest.mark.parametrize(
    "name",
    ["wrong-type/jpeg_plus_zip.jpg", "mpo-gainmap/motion_photo.jpg",
     "mpo-gainmap/frozenpond.mpo", "mpo-gainmap/phone_mpo_or6.jpg"],
)  # fmt: skip
def test_what_is_hung_on_behind_the_picture_does_not_travel(
    tool: ExifTool, data_dir: Path, name: str
) -> None:
    path = data_dir / "hard-images" / name
    clean, _ = tool.normalise(path)
    assert b"PK\3\4" not in clean
    assert b"ftyp" not in clean
    assert clean.count(b"\xff\xd8\xff") <= 1
    assert open_picture(clean).facts.frames == 1
    assert np.array_equal(open_picture(clean).pixels, open_picture(path).pixels)


@needs_exiftool
@pytest.mark.parametrize(
    "name",
    ["icc/displayp3_v4.jpg", "cmyk-ycck/portrait_cmyk_icc.jpg", "jpeg-variants/rgb_not_ycc.jpg",
     "orientation/png_exif_6.png", "orientation/tiff_or6.tif", "orientation/webp_exif_8.webp",
     "animated-multiframe/two_faces_anim.webp", "heif-avif/paris_icc.avif",
     "jxl-jp2-other/hopper.bmp"],
)  # fmt: skip
def test_a_normalised_picture_looks_the_same_and_tells_nothing(
    tool: ExifTool, data_dir: Path, name: str
) -> None:
    path = data_dir / "hard-images" / name
    clean, _ = tool.normalise(path)
    assert np.array_equal(open_picture(clean).pixels, open_picture(path).pixels)
    facts = tool.facts(clean)
    assert facts.hazards == ()
    assert facts.orientation == 1
    assert open_picture(clean).facts.frames == 1


@needs_exiftool
def test_words_that_firewalls_dislike_are_gone(tool: ExifTool, tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(encode_jpeg(np.full((32, 32, 3), 120, np.uint8), 90))
    comment = "<script>union select</script>"
    tags = [f"-UserComment={comment}", f"-Comment={comment}", f"-XMP:Description={comment}"]
    subprocess.run([str(PROGRAM), "-q", *tags, str(path)], check=True)
    assert comment.encode() in path.read_bytes()
    clean, removed = tool.normalise(path)
    assert comment.encode() not in clean
    assert {"ExifIFD:UserComment", "File:Comment", "XMP-dc:Description"} <= set(removed)


@needs_exiftool
def test_garbage_is_refused_although_exiftool_raises_no_error(tool: ExifTool) -> None:
    for garbage in (b"hello, this is text", b"%PDF-1.4", bytes(100)):
        with pytest.raises(PictureRejected):
            tool.facts(garbage)
        with pytest.raises(PictureRejected):
            tool.normalise(garbage)


@needs_exiftool
def test_hostile_names_never_reach_exiftool(
    tool: ExifTool, personal: bytes, tmp_path: Path
) -> None:
    for name in ("-o.jpg", "a\nb.jpg", "@args.jpg", "%d.jpg"):
        path = tmp_path / name
        path.write_bytes(personal)
        assert tool.facts(path).mime_type == "image/jpeg"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "%d.jpg",
        "-o.jpg",
        "@args.jpg",
        "a\nb.jpg",
    ]


@needs_exiftool
def test_one_process_serves_all_and_its_death_costs_one_answer_at_most(personal: bytes) -> None:
    with ExifTool() as exiftool:
        exiftool.facts(personal)
        first = exiftool._process.pid
        exiftool.facts(personal)
        assert exiftool._process.pid == first
        assert first is not None
        os.kill(first, signal.SIGKILL)
        time.sleep(0.05)
        assert exiftool.facts(personal).hazards
        assert exiftool._process.pid not in (None, first)


@needs_exiftool
def test_no_file_is_left_behind(personal: bytes) -> None:
    exiftool = ExifTool()
    folder = Path(exiftool._folder.name)
    exiftool.normalise(personal)
    assert list(folder.iterdir()) == []
    exiftool.close()
    assert not folder.exists()


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_an_absent_program_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "exiftool", lambda: None)
    data = encode_jpeg(np.zeros((8, 8, 3), np.uint8), 90)
    with ExifTool() as exiftool, pytest.raises(LikenessError, match="exiftool is not installed"):
        exiftool.facts(data)


def test_a_program_that_dies_hangs_or_cannot_start_is_named(tmp_path: Path) -> None:
    for body, said, seconds in (
        ("read x; exit 1", "died", 5.0),
        ("sleep 30", "longer than", 0.3),
    ):
        process = ExifToolProcess(script(tmp_path / said.split()[0], body), seconds)
        with pytest.raises(LikenessError, match=said):
            process.ask("-ver")
        assert process.pid is None
    with pytest.raises(LikenessError, match="cannot be started"):
        ExifToolProcess(str(tmp_path / "absent")).ask("-ver")
    with pytest.raises(ValueError, match="one argument a line"):
        ExifToolProcess().ask("-a\n-b")


def test_the_exif_reader_never_raises() -> None:
    rng = np.random.default_rng(5)
    for size in (0, 3, 8, 40, 200):
        for _ in range(40):
            block = b"Exif\0\0II*\0\x08\0\0\0" + rng.bytes(size)
            facts = read_exif(block)
            assert 1 <= facts.orientation <= 8
    assert read_exif(b"").warnings == (UNREADABLE,)


def test_only_the_first_directory_counts(data_dir: Path) -> None:
    picture = open_picture(data_dir / "hard-images" / "orientation" / "ifd0_1_ifd1_6.jpg")
    assert picture.facts.orientation == 1


def test_pillow_and_the_gate_read_the_same_orientation() -> None:
    scene = cv2.resize(np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8), (32, 24))
    for value in range(1, 9):
        tags = Image.Exif()
        tags[0x0112], tags[0x010E] = value, "a description before it"
        buffer = io.BytesIO()
        Image.fromarray(scene).save(buffer, "JPEG", exif=tags)
        assert open_picture(buffer.getvalue()).facts.orientation == value
