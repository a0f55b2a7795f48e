"""PostgreSQL that is gone, dies amid a transaction, is locked, read only or busy: the caller is told
that the store is unavailable, nothing was written, and the next try succeeds."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text

from domain.errors import StoreUnavailable
from service.store.database import Database
from service.store.service_tables import batches as batches_table


def batch(batch_id: str) -> dict[str, str]:
    return {"batch_id": batch_id, "created": "2026", "owner": "o", "state": "ready"}


def put(database: Database, batch_id: str) -> None:
    with database.begin() as link:
        link.execute(insert(batches_table).values(batch(batch_id)))


def count(database: Database) -> int:
    with database.read() as link:
        return int(link.execute(select(func.count()).select_from(batches_table)).scalar_one())


def test_a_database_that_cannot_be_reached_is_unavailable_and_its_password_unseen() -> None:
    with closing(Database("postgresql://me:hush-hush@127.0.0.1:1/name")) as database:
        for ask in (database.ping, database.migrate):
            with pytest.raises(StoreUnavailable) as caught:
                ask()
            assert "hush" not in str(caught.value) and "\n" not in str(caught.value)
            assert str(caught.value).startswith("PostgreSQL database 'name' at 127.0.0.1: ")


def test_a_connection_lost_amid_a_transaction_leaves_nothing_and_the_next_try_succeeds(
    postgres: str, postgres_server: Any
) -> None:
    with closing(Database(postgres)) as database:
        database.migrate()
        with pytest.raises(StoreUnavailable) as caught, database.begin() as link:
            link.execute(insert(batches_table).values(batch("a")))
            pid = link.execute(text("SELECT pg_backend_pid()")).scalar_one()
            postgres_server.say(f"SELECT pg_terminate_backend({pid}, 5000)")
            link.execute(insert(batches_table).values(batch("b")))
        assert "\n" not in str(caught.value)
        assert count(database) == 0
        put(database, "a")
        assert count(database) == 1


def test_a_connection_lost_at_the_commit_is_unavailable(
    postgres: str, postgres_server: Any
) -> None:
    with closing(Database(postgres)) as database:
        database.migrate()
        with pytest.raises(StoreUnavailable), database.begin() as link:
            link.execute(insert(batches_table).values(batch("a")))
            pid = link.execute(text("SELECT pg_backend_pid()")).scalar_one()
            postgres_server.say(f"SELECT pg_terminate_backend({pid}, 5000)")
        assert count(database) == 0


def test_a_server_that_died_and_came_back_needs_no_hands(
    postgres: str, postgres_server: Any
) -> None:
    with closing(Database(postgres)) as database:
        database.migrate()
        put(database, "a")
        postgres_server.stop()
        try:
            for ask in (lambda: count(database), lambda: put(database, "b"), database.ping):
                with pytest.raises(StoreUnavailable):
                    ask()
        finally:
            postgres_server.start()
        put(database, "b")
        assert count(database) == 2


def test_a_lock_that_is_held_too_long_and_a_read_only_database_are_unavailable(
    postgres: str,
) -> None:
    with closing(Database(postgres)) as database:
        database.migrate()
        put(database, "a")
        with database.begin() as holder:
            holder.execute(select(batches_table).with_for_update())
            with pytest.raises(StoreUnavailable, match="lock"), database.begin() as link:
                link.execute(text("SET LOCAL lock_timeout = '50ms'"))
                link.execute(select(batches_table).with_for_update())
        with pytest.raises(StoreUnavailable, match="read-only"), database.begin() as link:
            link.execute(text("SET TRANSACTION READ ONLY"))
            link.execute(insert(batches_table).values(batch("b")))


def test_when_all_connections_are_in_use_it_is_unavailable(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Database(postgres)) as database:
        database.migrate()
        monkeypatch.setattr(database.engine.pool, "_timeout", 0.05)
        with ExitStack() as held:
            for _ in range(20):
                held.enter_context(database.read())
            with pytest.raises(StoreUnavailable, match="in use"), database.read():
                pass
        assert count(database) == 0
