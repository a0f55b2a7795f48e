"""Archives made for one question each; the manifest's own are in test_hard_images.py."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.errors import PictureRejected
from preprocess.archive import (
    ArchiveLimits,
    EntryOutcome,
    clean_name,
    open_archive,
)
from preprocess.decode import encode_png

PNG = encode_png(np.full((8, 8, 3), 90, np.uint8))


def zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_entries_come_one_by_one_with_their_bytes() -> None:
    (entry,) = open_archive(zipped({"a/b.png": PNG})).entries()
    assert entry.outcome is EntryOutcome.ACCEPT
    assert entry.name == "b.png"
    assert entry.original_name == "a/b.png"
    assert entry.data == PNG


def test_an_archive_on_disk_is_closed_after_reading(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zipped({"b.png": PNG}))
    assert [e.name for e in open_archive(path).entries()] == ["b.png"]
    path.unlink()


def test_a_broken_picture_is_rejected_and_a_text_is_skipped() -> None:
    entries = list(open_archive(zipped({"x.jpg": b"<html>no</html>", "x.txt": b"text"})).entries())
    assert [(e.outcome, e.reason, e.code) for e in entries] == [
        (EntryOutcome.REJECT, "not an image: looks like HTML", "html"),
        (EntryOutcome.SKIP, "not an image", "not_image"),
    ]


def test_names_that_a_file_system_may_merge_stay_apart() -> None:
    names = [e.name for e in open_archive(zipped({"A.png": PNG, "sub/a.PNG": PNG})).entries()]
    assert names == ["A.png", "a (2).PNG"]


@pytest.mark.parametrize("name", ["/etc/x.png", "C:\\x.png", "a/../../x.png", "\\\\host\\x.png"])
def test_paths_that_lead_out_are_rejected(name: str) -> None:
    (entry,) = open_archive(zipped({name: PNG})).entries()
    assert (entry.outcome, entry.reason) == (EntryOutcome.REJECT, "unsafe path")


def test_total_size_is_capped_before_anything_is_unpacked() -> None:
    limits = ArchiveLimits(max_unpacked=10)
    with pytest.raises(PictureRejected, match="unpacks to more than"):
        open_archive(zipped({"x.png": PNG}), limits)


def test_the_number_of_entries_is_read_before_the_directory() -> None:
    data = bytearray(zipped({"x.png": PNG}))
    end = data.rfind(b"PK\5\6")
    data[end + 10 : end + 12] = b"\xff\xff"
    with pytest.raises(PictureRejected, match="too many files"):
        open_archive(bytes(data))


def test_a_lie_about_the_unpacked_size_does_not_get_more_bytes() -> None:
    data = bytearray(zipped({"x.png": b"\x89PNG\r\n\x1a\n" + bytes(100_000)}))
    at = data.find(b"PK\1\2")
    data[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    (entry,) = open_archive(bytes(data)).entries()
    assert entry.data is None or len(entry.data) <= 1001


def test_an_empty_or_absent_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(PictureRejected, match="empty file"):
        open_archive(b"")
    with pytest.raises(PictureRejected, match="cannot be read"):
        open_archive(tmp_path / "absent.zip")


@given(st.binary(max_size=200))
def test_noise_behind_the_signature_is_refused_by_name(noise: bytes) -> None:
    with pytest.raises(PictureRejected):
        list(open_archive(b"PK\3\4" + noise).entries())


@example("0000" + "\U0001d400" * 25 + "\U0001d4a9" * 3 + " \U0001d4a9")
@given(st.text(max_size=300))
def test_a_cleaned_name_is_one_safe_component(name: str) -> None:
    cleaned = clean_name(name)
    assert cleaned not in ("", ".", "..")
    assert not set(cleaned) & set("/\\\0\n\r<>:\"|?*$`;&%'")
    assert len(cleaned.encode()) <= 120
    assert clean_name(cleaned) == cleaned


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../etc/passwd.jpg", "passwd.jpg"),
        ("r\xe9sum\xe9 \xfc.jpg", "r\xe9sum\xe9 \xfc.jpg"),
        ("lpt1.png", "_lpt1.png"),
        ("~root.jpg", "_root.jpg"),
        ("photo.jpg.", "photo.jpg"),
        ("\u202egpj.exe", "gpj.exe"),
        ("", "picture"),
        ("x" * 300 + ".jpeg", "x" * 115 + ".jpeg"),
    ],
)
def test_names_are_cleaned_but_stay_recognisable(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned
