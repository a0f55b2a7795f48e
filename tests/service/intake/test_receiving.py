"""What becomes of a batch on its way in, whatever happens meanwhile."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from domain.errors import LikenessError, ManifestError, StoreUnavailable
from service.intake.decoding import Judged
from service.intake.incoming import Desk, NoPictures
from service.intake.receiving import Receiver
from service.intake.url_list import Wanted
from service.limits import Limits
from service.store.batches import Batches
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.retention import Retention, sweep

REPO = Path(__file__).resolve().parents[3]
NOW = 1_800_000_000.0


class Gate:
    """Takes for a picture what begins with "P"."""

    processes = 2

    def __init__(self, also: Callable[[Path], object] = lambda _path: None) -> None:
        self._also = also
        self._lock = threading.Lock()
        self.now = self.most = 0

    def judge(self, path: Path) -> Judged:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self._also(path)
            good = path.read_bytes().startswith(b"P")
            return Judged(media_type="image/png") if good else Judged(code="bad", reason="bad")
        finally:
            with self._lock:
                self.now -= 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(str(tmp_path / "blobs"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "incoming").mkdir()
    return tmp_path / "incoming"


def file(folder: Path, number: int, data: bytes) -> Path:
    path = folder / f"{number}"
    path.write_bytes(data)
    return path


def stored(tmp_path: Path) -> list[Path]:
    return [p for p in tmp_path.glob("blobs/??/*") if p.is_file()]


def test_files_keep_the_order_in_which_they_were_sent(
    database: Database, blobs: Blobs, folder: Path
) -> None:
    batches = Batches(database)
    batch_id = batches.create("k", NOW, None)
    with Receiver(batch_id, batches, blobs, Gate()) as receiver:
        for number in range(30):
            data = b"P%d" % number if number % 3 else b"x"
            receiver.take(f"{number}.png", file(folder, number, data), len(data))
        counts = receiver.finish([])
    assert (counts.accepted, counts.rejected) == (20, 10)
    items = batches.items(batch_id)
    assert [i["name"] for i in items] == [f"{n}.png" for n in range(30)]
    assert [i["state"] == "accepted" for i in items] == [bool(n % 3) for n in range(30)]
    assert list(folder.iterdir()) == []


def test_few_files_wait_on_disk_however_many_are_sent(
    database: Database, blobs: Blobs, folder: Path
) -> None:
    waiting: list[int] = []
    gate = Gate(lambda _path: waiting.append(len(list(folder.iterdir()))))
    batches = Batches(database)
    batch_id = batches.create("k", NOW, None)
    with Receiver(batch_id, batches, blobs, gate) as receiver:
        for number in range(60):
            receiver.take("a", file(folder, number, b"P%d" % number), 3)
        receiver.finish([])
    assert max(waiting) <= 3 * gate.processes + 1
    assert gate.most <= gate.processes + 1


def test_a_row_is_there_before_its_bytes_are(
    database: Database, blobs: Blobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(database)
    batch_id = batches.create("k", NOW, None)
    rows_at_put: list[int] = []
    put_file = Blobs.put_file

    def put(self: Blobs, path: Path) -> str:
        rows_at_put.append(len(batches.items(batch_id)))
        return put_file(self, path)

    monkeypatch.setattr(Blobs, "put_file", put)
    with Receiver(batch_id, batches, blobs, Gate()) as receiver:
        receiver.take("a", file(folder, 1, b"P"), 1)
        receiver.finish([])
    assert rows_at_put == [1]


def test_a_store_that_goes_away_ends_it_and_nothing_stays(
    database: Database, blobs: Blobs, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(database)
    batch_id = batches.create("k", NOW, None)
    put_file, count = Blobs.put_file, iter(range(100))

    def put(self: Blobs, path: Path) -> str:
        if next(count) >= 3:
            raise StoreUnavailable("the blob store is gone")
        return put_file(self, path)

    monkeypatch.setattr(Blobs, "put_file", put)
    with pytest.raises(StoreUnavailable), Receiver(batch_id, batches, blobs, Gate()) as receiver:
        for number in range(50):
            receiver.take("a", file(folder, number, b"P%d" % number), 3)
        receiver.finish([])
    assert batches.get(batch_id) is None
    assert stored(tmp_path) == []


def desk(database: Database, blobs: Blobs, folder: Path) -> Desk:
    return Desk(database, blobs, Limits(), Gate(), folder)


def upload(*parts: tuple[str, bytes]) -> tuple[str, list[bytes]]:
    body = b"".join(
        b"--b\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + data + b"\r\n"
        for head, data in parts
    )
    return "multipart/form-data; boundary=b", [body, b"--b--\r\n"]


def test_a_sender_that_hangs_up_leaves_nothing(
    database: Database, blobs: Blobs, folder: Path, tmp_path: Path
) -> None:
    kind, pieces = upload(
        ('name="files"; filename="a"', b"P1"), ('name="files"; filename="b"', b"P")
    )

    def cut() -> Iterator[bytes]:
        yield pieces[0]
        raise ConnectionError("gone")

    batch_id = Batches(database).create("k", NOW, None)
    with pytest.raises(ConnectionError):
        desk(database, blobs, folder).multipart(batch_id, kind, cut())
    assert Batches(database).get(batch_id) is None
    assert stored(tmp_path) == []


@pytest.mark.parametrize("attributes", [{"a\nb": "x"}, {"a": "x"}])
def test_a_list_of_addresses_that_cannot_be_used_leaves_no_batch_behind(
    database: Database, blobs: Blobs, folder: Path, attributes: dict[str, str]
) -> None:
    batch_id = Batches(database).create("k", NOW, None)
    wanted = [Wanted("http://127.0.0.1/a.png", attributes=attributes)]
    with pytest.raises(LikenessError):
        desk(database, blobs, folder).urls(batch_id, wanted, "no,file\n", "")
    assert Batches(database).get(batch_id) is None


def test_a_zip_whose_sender_hangs_up_leaves_no_batch_behind(
    database: Database, blobs: Blobs, folder: Path
) -> None:
    def cut() -> Iterator[bytes]:
        yield b"PK"
        raise ConnectionError("gone")

    batch_id = Batches(database).create("k", NOW, None)
    with pytest.raises(ConnectionError):
        desk(database, blobs, folder).archive(batch_id, cut(), "")
    assert Batches(database).get(batch_id) is None


def test_a_manifest_that_comes_last_and_is_broken_takes_back_what_came_before(
    database: Database, blobs: Blobs, folder: Path, tmp_path: Path
) -> None:
    kind, pieces = upload(('name="files"; filename="a"', b"P1"), ('name="manifest"', b"no,file\n"))
    batch_id = Batches(database).create("k", NOW, None)
    with pytest.raises(ManifestError):
        desk(database, blobs, folder).multipart(batch_id, kind, pieces)
    assert Batches(database).get(batch_id) is None
    assert stored(tmp_path) == []


def test_what_a_browser_sends_for_an_empty_choice_is_no_file(
    database: Database, blobs: Blobs, folder: Path
) -> None:
    kind, pieces = upload(('name="files"; filename=""', b""), ('name="manifest"', b"\r\n"))
    batch_id = Batches(database).create("k", NOW, None)
    with pytest.raises(NoPictures):
        desk(database, blobs, folder).multipart(batch_id, kind, pieces)


KILLED = """
    import os, sys
    from pathlib import Path
    from service.intake.receiving import Receiver
    from service.store.batches import Batches
    from service.store.blobs import Blobs
    from service.store.database import Database
    from tests.service.intake.test_receiving import Gate, file
    home = Path(sys.argv[1])
    batches = Batches(Database(f"sqlite:///{home / 'service.sqlite3'}"))
    blobs = Blobs(str(home / "blobs"))
    with Receiver(batches.create("k", 1_800_000_000.0, None), batches, blobs, Gate()) as receiver:
        for number in range(9):
            receiver.take("a", file(home / "incoming", number, b"P%d" % number), 2)
        for job in receiver._jobs:
            job.result()
        os.kill(os.getpid(), 9)
"""


def test_a_process_that_is_killed_leaves_a_batch_that_no_run_may_use_and_the_sweeper_clears(
    database: Database, blobs: Blobs, folder: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)],
        cwd=REPO, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr
    (batch,) = Batches(database).page(10)
    assert (batch["state"], batch["accepted"]) == ("receiving", 0)
    assert len(stored(tmp_path)) == 9
    sweep(database, blobs, NOW + 3 * 86_400, retention=Retention())
    assert Batches(database).page(10) == []
    assert stored(tmp_path) == []
