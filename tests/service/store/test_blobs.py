"""Pictures are kept by their hash, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import LedgerError
from service.store.blobs import Blobs


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    key = blobs.put(b"picture")
    assert blobs.get(key) == b"picture"
    assert blobs.put(b"picture") == key
    assert len([p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]) == 1


def test_a_damaged_picture_is_not_handed_out(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    key = blobs.put(b"picture")
    (tmp_path / "blobs" / key[:2] / key).write_bytes(b"other")
    with pytest.raises(LedgerError, match="damaged"):
        blobs.get(key)


def test_a_missing_picture_is_told_by_its_hash(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        Blobs(str(tmp_path / "blobs")).get("0" * 64)


def test_an_unwritable_place_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_bytes(b"a file where the folder should be")
    with pytest.raises(LedgerError, match="cannot store a picture"):
        Blobs(str(tmp_path / "blobs")).put(b"picture")


def test_any_fsspec_store_serves() -> None:
    blobs = Blobs("memory://likeness-test")
    assert blobs.get(blobs.put(b"x")) == b"x"
