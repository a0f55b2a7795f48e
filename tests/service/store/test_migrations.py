"""Tables of every earlier version come up to this one's with all that is in them, on SQLite and on
PostgreSQL, and are then exactly the tables that the program describes."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from domain.errors import LedgerError
from service.store import schema
from service.store.database import Database
from service.store.ledger import Ledger
from service.store.tables import metadata

REPO = Path(__file__).resolve().parents[3]
RUN = "0123456789abcdef0123456789abcdef"
EARLIER = ["0001", "0002", "0003", "0004"]
SERVICE = {"batches", "jobs", "events", "artefacts", "api_keys", "deliveries", "probe_calls"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = (
        f"sqlite:///{tmp_path}/service.sqlite3"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )
    with closing(Database(url)) as opened:
        yield opened


def steps() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    return ScriptDirectory.from_config(config)


def up_to(database: Database, revision: str) -> None:
    """An empty database of an earlier version."""
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with database.begin() as link:
        config.attributes["connection"] = link
        command.upgrade(config, revision)


def fill(database: Database, revision: str) -> None:
    """One run as that version wrote it: two portraits, two items, three calls, two figures."""
    run = {"run_id": RUN} if revision >= "0003" else {}
    kind = {"kind": "warm_up", "seconds": 2.5, "request_id": "r-1", "meta": "{}"}
    late = kind if revision >= "0002" else {}
    of_run: dict[str, Any] = {
        "run_id": RUN, "plan_sha256": "p", "plan_text": "name: «q»", "started": "2026-05-01",
        "seconds": 1.5, "versions": "{}", "inputs": json.dumps({"m.csv": "aa"}),
    }  # fmt: skip
    insert(database, "runs", of_run)
    for seq, name in enumerate(("a.jpg", "ü.jpg")):
        insert(
            database, "portraits",
            run | {
                "portrait_id": name, "seq": seq, "subject_id": f"s{seq}", "accepted": 1,
                "attributes": json.dumps({"gender": "female"}), "face_found": 1, "facts": "{}",
                "warnings": "[]", "sha256": "",
            },
        )  # fmt: skip
        insert(
            database, "items",
            run | {
                "item_id": f"i{seq}", "seq": seq, "portrait_id": name, "tool": "t",
                "tool_id": "identity", "control": 0, "task": "restyle", "perturbation": "none",
                "seed": 2**31 - 1, "state": "done", "outcome": "measured", "model": "m",
                "attempts": 1, "edited": "bb", "meta": "{}", "warnings": '["w"]',
                "evidence": json.dumps({"x": 0.1}), "health": "{}",
            },
        )  # fmt: skip
        insert(
            database, "measurements",
            run | {
                "item_id": f"i{seq}", "metric": "flrr", "region": "face", "position": 0,
                "value": 0.1 + 0.2 if seq else None, "unit": "%", "status": "measured",
            },
        )  # fmt: skip
    for number, item_id in enumerate(("i0", "i0", "i1"), 7):
        insert(
            database, "calls",
            run | late
            | {"call_id": number, "item_id": item_id, "attempt": 1, "started": "2026-05-01"},
        )  # fmt: skip

    if revision >= "0003" and database.is_postgres:  # it counts only what it numbered itself
        with database.begin() as link:
            link.execute(text("SELECT setval('calls_call_id_seq', 9)"))


def insert(database: Database, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    with database.begin() as link:
        link.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


def content(database: Database) -> dict[str, Any]:
    ledger = Ledger(database, RUN)
    return {
        "run": ledger.run(),
        "portraits": ledger.portraits(),
        "items": ledger.items(),
        "figures": ledger.measurements(),
        "calls": ledger.calls(),
    }


def differences(database: Database) -> list[Any]:
    with database.read() as link:
        return list(compare_metadata(MigrationContext.configure(link), metadata))


def keys(database: Database) -> dict[str, Any]:
    """Primary and foreign keys by table and name, which alembic's comparison passes over."""
    with database.read() as link:
        look = inspect(link)
        return {
            name: (
                look.get_pk_constraint(name),
                sorted(map(str, look.get_foreign_keys(name))),
                sorted(str(c["name"]) + str(c["type"]) for c in look.get_columns(name)),
            )
            for name in look.get_table_names()
        }


@pytest.mark.parametrize("revision", EARLIER)
def test_a_filled_database_of_an_earlier_version_comes_up_with_all_its_rows(
    database: Database, revision: str
) -> None:
    up_to(database, revision)
    fill(database, revision)
    database.migrate()
    found = content(database)
    assert found["run"]["plan_text"] == "name: «q»" and found["run"]["inputs"] == {"m.csv": "aa"}
    assert [p["portrait_id"] for p in found["portraits"]] == ["a.jpg", "ü.jpg"]
    assert found["portraits"][0]["attributes"] == {"gender": "female"}
    assert [i["seed"] for i in found["items"]] == [2**31 - 1] * 2
    assert [i["evidence"] for i in found["items"]] == [{"x": 0.1}] * 2
    assert [m["value"] for m in found["figures"]] == [None, 0.1 + 0.2]
    assert [c["call_id"] for c in found["calls"]] == [7, 8, 9]
    expected = "item" if revision == "0001" else "warm_up"
    assert {c["kind"] for c in found["calls"]} == {expected}
    assert {row["run_id"] for name in found if name != "run" for row in found[name]} == {RUN}
    assert Ledger(database, RUN).begin_call("i1", 2) == 10  # numbers go on after the last


@pytest.mark.parametrize("revision", [*EARLIER, None])
def test_it_is_then_exactly_what_the_program_describes(
    database: Database, revision: str | None
) -> None:
    if revision is not None:
        up_to(database, revision)
        fill(database, revision)
    database.migrate()
    assert differences(database) == []
    found = keys(database)
    assert found.keys() >= SERVICE
    assert found["items"][0]["constrained_columns"] == ["run_id", "item_id"]
    assert not [name for name in found if name.startswith("old_")]


def test_a_database_that_was_brought_up_has_the_keys_of_a_fresh_one(tmp_path: Path) -> None:
    with (
        closing(Database(f"sqlite:///{tmp_path}/old.sqlite3")) as old,
        closing(Database(f"sqlite:///{tmp_path}/new.sqlite3")) as new,
    ):
        up_to(old, "0001")
        old.migrate()
        new.migrate()
        assert keys(old) == keys(new)


def test_the_steps_form_one_line_that_ends_where_the_program_is() -> None:
    assert steps().get_heads() == [schema.HEAD]
    assert [s.revision for s in steps().walk_revisions()] == [
        "0005", "0004", "0003", "0002", "0001",
    ]  # fmt: skip


def test_a_database_that_is_up_to_date_takes_no_step(database: Database) -> None:
    database.migrate()
    fill(database, schema.HEAD)
    before = content(database)
    database.migrate()
    assert content(database) == before


def test_several_may_migrate_at_once(database: Database) -> None:
    up_to(database, "0001")
    fill(database, "0001")
    url = database.engine.url
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda _: Database(url), range(6)))
        list(threads.map(Database.migrate, opened))
    for one in opened:
        one.close()
    assert len(content(database)["calls"]) == 3
    assert differences(database) == []


def test_a_database_of_a_later_version_is_left_alone(database: Database) -> None:
    database.migrate()
    with database.begin() as link:
        link.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(LedgerError, match="written by a later version of this program"):
        database.migrate()


def test_a_step_that_fails_leaves_the_database_as_it_was(database: Database) -> None:
    up_to(database, "0001")
    fill(database, "0001")
    with database.begin() as link:  # in the way of a later step
        link.execute(text("CREATE TABLE old_calls (a INTEGER)"))
    with pytest.raises(LedgerError, match="the ledger cannot be used"):
        database.migrate()
    with database.begin() as link:
        assert schema.revision(link) == "0001"
        assert link.execute(text("SELECT count(*) FROM calls")).scalar() == 3
        link.execute(text("DROP TABLE old_calls"))
    database.migrate()
    assert len(content(database)["calls"]) == 3


KILLED = """
import os, signal, sys
from sqlalchemy import event
from service.store.database import Database
database = Database(sys.argv[1])
@event.listens_for(database.engine, "after_cursor_execute")
def die(_link, _cursor, statement, *_more):
    if sys.argv[2] in statement:
        os.kill(os.getpid(), signal.SIGKILL)
database.migrate()
"""


@pytest.mark.parametrize("at", ["INTO measurements", "DROP TABLE old_calls", "CREATE TABLE jobs"])
def test_a_process_killed_amid_a_step_leaves_the_database_as_it_was(
    database: Database, at: str
) -> None:
    up_to(database, "0001")
    fill(database, "0001")
    url = database.engine.url.render_as_string(hide_password=False)
    killed = subprocess.run([sys.executable, "-c", KILLED, url, at], cwd=REPO, check=False)
    assert killed.returncode == -signal.SIGKILL
    with database.read() as link:
        assert schema.revision(link) == "0001"
    database.migrate()
    assert len(content(database)["calls"]) == 3
    assert differences(database) == []


def test_a_ledger_that_was_cut_off_while_it_was_made_is_completed(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    with closing(Database(f"sqlite:///{file}")) as database:
        up_to(database, "0001")
    with closing(sqlite3.connect(file)) as link:
        link.executescript("DROP TABLE measurements; DROP TABLE calls; DROP TABLE alembic_version")
    with closing(Ledger.at(file)) as ledger:
        assert ledger.run() is None and ledger.calls() == []
        assert differences(ledger.database) == []


def test_a_ledger_given_half_of_its_columns_gets_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    with closing(Database(f"sqlite:///{file}")) as database:
        up_to(database, "0001")
        fill(database, "0001")
    with closing(sqlite3.connect(file)) as link:
        link.executescript(
            "DROP TABLE alembic_version;"
            "ALTER TABLE calls ADD COLUMN kind VARCHAR(16) DEFAULT 'item' NOT NULL;"
        )
    with closing(Ledger.at(file)) as ledger:
        assert ledger.run_id == RUN
        assert [c["meta"] for c in ledger.calls()] == [None] * 3
