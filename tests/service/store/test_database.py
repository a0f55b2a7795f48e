"""What a database says reaches people as one line without a password, and a step that a lost
connection, a lock or a full disk stopped can be tried again: nothing of it was written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import IntegrityError

from domain.errors import Conflict, LedgerError, StoreUnavailable
from service.store.database import Database
from service.store.service_tables import batches as batches_table
from service.store.service_tables import events, jobs
from service.store.tables import portraits

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = (
        f"sqlite:///{tmp_path}/service.sqlite3"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )
    with closing(Database(url, lock_s=0.2)) as opened:
        opened.migrate()
        yield opened


def batch(batch_id: str) -> dict[str, str]:
    return {"batch_id": batch_id, "created": "2026", "owner": "o", "state": "ready"}


def put(database: Database, batch_id: str) -> None:
    with database.begin() as link:
        link.execute(insert(batches_table).values(batch(batch_id)))


def count(database: Database) -> int:
    with database.read() as link:
        return int(link.execute(select(func.count()).select_from(batches_table)).scalar_one())


# Both databases ------------------------------------------------------------------------------


def test_a_transaction_is_whole_or_not_at_all(database: Database) -> None:
    put(database, "a")
    with pytest.raises(RuntimeError), database.begin() as link:
        link.execute(insert(batches_table).values(batch("b")))
        raise RuntimeError
    assert count(database) == 1
    database.ping()


def test_what_is_there_already_is_a_conflict_without_the_values(database: Database) -> None:
    put(database, "key-of-a-batch")
    with pytest.raises(Conflict) as caught:
        put(database, "key-of-a-batch")
    assert "\n" not in str(caught.value) and "key-of-a-batch" not in str(caught.value)


def test_a_row_must_belong_to_something(database: Database) -> None:
    with pytest.raises(Conflict), database.begin() as link:
        link.execute(insert(events).values(run_id="none", at="2026", kind="k", data={}))


def test_a_caller_may_catch_the_drivers_error_inside(database: Database) -> None:
    put(database, "a")
    with database.begin() as link:
        with pytest.raises(IntegrityError), link.begin_nested():
            link.execute(insert(batches_table).values(batch("a")))
        link.execute(insert(batches_table).values(batch("b")))
    assert count(database) == 2


def test_what_a_database_cannot_hold_does_not_end_a_run(database: Database) -> None:
    row = {
        "run_id": "r", "portrait_id": "p", "seq": 0, "subject_id": "s", "accepted": 1,
        "attributes": {"x": "a\0b", "n": float("nan"), "deep": [{"i": float("inf")}]},
        "face_found": 1, "reason": "nul \0 and half \ud800 ü", "facts": {}, "warnings": [],
        "sha256": "",
    }  # fmt: skip
    with database.begin() as link:
        link.execute(insert(portraits).values(row))
    [found] = database.rows(select(portraits))
    assert found["reason"].startswith("nul \ufffd and half \ufffd") and "ü" in found["reason"]
    assert found["attributes"] == {"x": "a\0b", "n": None, "deep": [{"i": None}]}


def test_numbers_of_events_are_never_given_twice(database: Database) -> None:
    put(database, "b")
    with database.begin() as link:
        job = {"run_id": "r", "batch_id": "b", "owner": "o", "created": "", "state": "queued"}
        link.execute(insert(jobs).values(**job, plan_text=""))
        event = insert(events).values(run_id="r", at="", kind="k", data={})
        first = link.execute(event).inserted_primary_key
        link.execute(events.delete())
        second = link.execute(event).inserted_primary_key
    assert first is not None and second is not None and second[0] > first[0]


def test_tables_of_another_version_are_not_ready(database: Database) -> None:
    with database.begin() as link:
        link.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    with pytest.raises(LedgerError, match="not those of this version"):
        database.ping()


def test_writers_wait_for_each_other(database: Database) -> None:
    with database.begin() as link:
        job = {"run_id": "r", "batch_id": "b", "owner": "o", "created": "", "state": "queued"}
        link.execute(insert(batches_table).values(batch("b")))
        link.execute(insert(jobs).values(**job, plan_text=""))

    def count_up(_: int) -> None:
        with database.begin() as link:
            old = link.execute(select(jobs.c.attempts).with_for_update()).scalar_one()
            link.execute(jobs.update().values(attempts=old + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count_up, range(40)))
    assert database.rows(select(jobs.c.attempts)) == [{"attempts": 40}]


# SQLite --------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(Database(f"sqlite:///{tmp_path}/s.sqlite3")) as made:
        made.migrate()
    return tmp_path / "s.sqlite3"


def test_sqlite_is_set_up_to_survive_power_cuts_and_to_check_keys(file: Path) -> None:
    with closing(Database(f"sqlite:///{file}")) as database, database.read() as link:
        asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = [link.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked]
    assert found == ["wal", 2, 1, 30_000]


def test_a_file_that_is_locked_too_long_is_unavailable_and_then_not(file: Path) -> None:
    with closing(Database(f"sqlite:///{file}", lock_s=0.1)) as database:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                put(database, "a")
            assert count(database) == 0  # readers wait for nobody
            other.execute("ROLLBACK")
        put(database, "a")
        assert count(database) == 1


FULL = """
import resource, sys
from contextlib import ExitStack, closing
from sqlalchemy import insert
from domain.errors import StoreUnavailable
from service.store.database import Database
from service.store.service_tables import batches
with closing(Database("sqlite:///" + sys.argv[1])) as database:
    database.ping()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    row = {"created": "", "owner": "o", "state": "ready", "name": "x" * 1000}
    def fill(prefix):
        with database.begin() as link:
            for k in range(200):
                link.execute(insert(batches).values(batch_id=f"{prefix}{k}", **row))
    try:
        fill("a")
    except StoreUnavailable as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    fill("b")
"""


def test_a_full_disk_is_unavailable_and_the_next_try_succeeds(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(file)],
        cwd=REPO, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith(f"{file}: the ledger cannot be used: ")
    assert len(done.stdout.splitlines()) == 1 and "disk full" in done.stdout
    with closing(Database(f"sqlite:///{file}")) as database:
        rows = database.rows(select(batches_table.c.batch_id))
    assert {row["batch_id"][0] for row in rows} == {"b"} and len(rows) == 200


def test_a_read_only_file_is_unavailable(file: Path) -> None:
    database = Database(f"sqlite:///file:{file}?mode=ro&uri=true")
    with closing(database), pytest.raises(StoreUnavailable, match=r"readonly|read-only"):
        put(database, "a")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be written"):
        Database(f"sqlite:///{tmp_path}/file/s.sqlite3")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hush@h/n",
        "postgresql://me:hush@h:port/n",
        "hush",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_any_other_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(LedgerError) as caught:
        Database(url)
    assert "hush" not in str(caught.value) and "wanted: sqlite:///FILE" in str(caught.value)
