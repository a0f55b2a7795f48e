"""Where the service keeps its things, and what it never shows of them."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from domain.errors import LikenessError
from service import settings
from service.limits import Limits
from service.store.secret_file import read_secret

NAMES = ("HOME", "DATABASE", "BLOBS", "SECRET_FILE", "HOSTS", "TOOLS")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"LIKENESS_{name}", raising=False)


def test_unset_everything_lies_under_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    server = settings.server()
    assert server.home == Path("/data/likeness")
    assert server.database == "sqlite:////data/likeness/service.sqlite3"
    assert server.blobs == "/data/likeness/blobs"
    assert server.secret_file == Path("/data/likeness/secret.key")
    assert server.hosts == () and server.tools is None


def test_each_place_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(
        NAMES, ("/h", "postgresql://x@y/z", "s3://b/p", "/run/key", "A.example, b", "/t.yaml"),
        strict=True,
    ):  # fmt: skip
        monkeypatch.setenv(f"LIKENESS_{name}", value)
    server = settings.server()
    assert (server.home, server.database, server.blobs) == (
        Path("/h"), "postgresql://x@y/z", "s3://b/p",
    )  # fmt: skip
    assert server.secret_file == Path("/run/key")
    assert server.hosts == ("a.example", "b")
    assert server.tools == Path("/t.yaml")


def test_passwords_in_addresses_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKENESS_DATABASE", "postgresql://a:canary-1@h/d")
    monkeypatch.setenv("LIKENESS_BLOBS", "s3://key:canary-2@bucket")
    assert "canary" not in repr(settings.server()) + str(settings.server())


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret.key"
    first = read_secret(path)
    assert len(first) == 32 and len(set(first)) > 8
    assert read_secret(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret.key"]


def test_of_several_that_start_at_once_all_read_the_same_secret(tmp_path: Path) -> None:
    path, found = tmp_path / "secret.key", list[bytes]()
    threads = [threading.Thread(target=lambda: found.append(read_secret(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 33])
def test_a_file_that_is_no_secret_is_refused_without_showing_it(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(LikenessError, match="not a secret of this service"):
        read_secret(path)


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    read_secret(path)
    path.chmod(0o644)
    with pytest.raises(LikenessError, match="chmod 600"):
        read_secret(path)


def test_the_picture_and_archive_limits_are_those_of_the_service() -> None:
    limits = Limits(max_file_bytes=1000, max_pixels=2_000_000, max_items=7, max_zip_ratio=9.0)
    assert limits.pictures().max_bytes == 1000
    assert limits.pictures().max_megapixels == 2.0
    archive = limits.archives()
    assert (archive.max_entries, archive.max_ratio) == (7, 9.0)
    assert archive.picture == limits.pictures()
