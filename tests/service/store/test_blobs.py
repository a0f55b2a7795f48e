"""Pictures are kept by their hash, whole or not at all, in a folder and in an S3-type store."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.errors import LedgerError, StoreUnavailable
from service.store.blob_places import PART
from service.store.blobs import Blobs

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture(params=["folder", "s3", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "folder":
        return Blobs(str(tmp_path / "blobs"))
    if request.param == "memory":
        return Blobs(f"memory://likeness-{tmp_path.name}")
    return Blobs(request.getfixturevalue("s3").url(tmp_path.name))


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


# Both kinds ----------------------------------------------------------------------------------


def test_what_is_put_comes_back_and_can_be_deleted(blobs: Blobs) -> None:
    key = blobs.put(b"picture")
    assert key == hashlib.sha256(b"picture").hexdigest()
    assert blobs.put(b"picture") == key
    assert blobs.get(key) == b"picture" and blobs.size(key) == 7 and blobs.exists(key)
    with blobs.open(key) as source:
        assert source.read(3) == b"pic"
    assert blobs.delete(key) and not blobs.exists(key)
    assert not blobs.delete(key)
    blobs.ping()


def test_blobs_are_listed_by_the_time_they_were_stored(blobs: Blobs) -> None:
    assert list(blobs.older(time.time() + 60)) == []
    keys = {blobs.put(b"%d" % number) for number in range(40)}
    assert set(blobs.older(time.time() + 60)) == keys
    assert list(blobs.older(time.time() - 60)) == []
    for key in blobs.older(time.time() + 60):  # they may go meanwhile
        assert blobs.delete(key)
    assert list(blobs.older(time.time() + 60)) == []


def test_what_is_not_there_is_told_by_its_hash(blobs: Blobs) -> None:
    blobs.put(b"another")
    for ask in (blobs.get, blobs.size, blobs.open):
        with pytest.raises(LedgerError, match="picture 000000000000 cannot be read") as caught:
            ask("0" * 64)
        assert not isinstance(caught.value, StoreUnavailable)


@pytest.mark.parametrize("size", [0, 1000, 2 * PART + 1])
def test_a_file_is_stored_as_it_is(blobs: Blobs, tmp_path: Path, size: int) -> None:
    data = os.urandom(1000) * (size // 1000) + b"x" * (size % 1000)
    (tmp_path / "upload").write_bytes(data)
    key = blobs.put_file(tmp_path / "upload")
    assert key == hashlib.sha256(data).hexdigest()
    assert blobs.size(key) == size and blobs.get(key) == data


@pytest.mark.parametrize(
    "key", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "/" + "a" * 63, "é" * 64]
)
def test_what_is_no_key_is_never_a_path(blobs: Blobs, key: str) -> None:
    for ask in (blobs.get, blobs.size, blobs.open, blobs.exists, blobs.delete):
        with pytest.raises(LedgerError, match="not the key of a picture"):
            ask(key)


def test_many_may_put_the_same_bytes_at_once(blobs: Blobs) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: blobs.put(b"same" * 1000), range(24)))
    assert len(keys) == 1 and blobs.get(keys.pop()) == b"same" * 1000


def test_half_a_blob_that_a_disk_left_is_put_right_by_the_next_put(blobs: Blobs) -> None:
    key = blobs.put(b"picture")
    blobs._place.write(key, io.BytesIO(b"pict"), 4)
    assert blobs.put(b"picture") == key
    assert blobs.get(key) == b"picture"


def test_a_damaged_picture_is_not_handed_out(blobs: Blobs) -> None:
    key = blobs.put(b"picture")
    blobs._place.write(key, io.BytesIO(b"cipture"), 7)
    with pytest.raises(LedgerError, match="damaged"):
        blobs.get(key)


# A folder ------------------------------------------------------------------------------------


def test_only_the_blob_stays_in_the_folder(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    key = blobs.put(b"picture")
    blobs.ping()
    assert files(tmp_path / "blobs") == [tmp_path / "blobs" / key[:2] / key]


def test_file_and_folders_are_on_the_disk_before_the_key_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(handle: int) -> None:
        steps.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")  # noqa: PTH112
        real_sync(handle)

    def replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    Blobs(str(tmp_path / "blobs")).put(b"picture")
    assert steps[-3:] == ["file", "rename", "folder"]
    assert steps.count("folder") >= 3  # those that were made new are in their folders, too


def test_an_unwritable_place_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_bytes(b"a file where the folder should be")
    blobs = Blobs(str(tmp_path / "blobs"))
    with pytest.raises(StoreUnavailable, match="cannot store a picture") as caught:
        blobs.put(b"picture")
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        blobs.ping()


def test_a_full_disk_leaves_no_half_blob_and_the_next_try_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreUnavailable, match="No space left on device"):
            blobs.put(b"picture")
    assert files(tmp_path / "blobs") == []
    assert blobs.get(blobs.put(b"picture")) == b"picture"


def test_a_folder_that_is_gone_is_told_and_not_begun_anew(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    key = blobs.put(b"picture")
    (tmp_path / "blobs").rename(tmp_path / "away")
    for ask in (lambda: blobs.get(key), lambda: blobs.exists(key), lambda: blobs.put(b"new")):
        with pytest.raises(StoreUnavailable, match="gone"):
            ask()
    assert not (tmp_path / "blobs").exists()
    (tmp_path / "away").rename(tmp_path / "blobs")
    assert blobs.get(key) == b"picture"


WRITER = """
import os, sys
from service.store.blobs import Blobs
blobs = Blobs(sys.argv[1])
while True:
    print(blobs.put(os.urandom(3_000_000)), flush=True)
"""


def test_kill_9_leaves_every_key_that_was_given_whole_and_nothing_half(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    given: list[str] = []
    for round_ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], cwd=REPO, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        given += [writer.stdout.readline().strip() for _ in range(2 + round_)]
        os.kill(writer.pid, signal.SIGKILL)
        given += [line.strip() for line in writer.stdout if len(line) == 65]
        writer.stdout.close()
        writer.wait()
    blobs = Blobs(str(folder))
    for key in given:
        assert len(blobs.get(key)) == 3_000_000
    for path in folder.glob("[0-9a-f][0-9a-f]/*"):
        blobs.get(path.name)
    left = len(files(folder / ".parts"))
    assert blobs.tidy(time.time() - 3600) == 0  # a write under way is left alone
    assert blobs.tidy(time.time() + 1) == left
    assert files(folder / ".parts") == []
