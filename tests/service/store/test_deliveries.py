"""Messages that wait to be sent, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.store.database import Database
from service.store.deliveries import DONE, FAILED, Deliveries, message
from service.store.jobs import Jobs
from tests.service.store.service_rows import submit


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgres":
        opened = Database(request.getfixturevalue("postgres"))
    else:
        opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


def messages(database: Database, count: int) -> set[str]:
    found = set()
    for _ in range(count):
        run_id = submit(database)
        row = message(run_id, "https://example.com/", "run.cancelled", "{}")
        assert Jobs(database).cancel(run_id, row) == "cancelled"
        found.add(row["delivery_id"])
    return found


def test_senders_that_ask_at_once_never_get_the_same_message(database: Database) -> None:
    due, got = messages(database, 8), []
    start = threading.Barrier(4)

    def send() -> None:
        start.wait()
        while (row := Deliveries(database).claim(1000)) is not None:
            got.append(row["delivery_id"])

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(due)


def test_a_message_waits_for_its_time_and_is_never_sent_after_it_is_settled(
    database: Database,
) -> None:
    now = [1000.0]
    deliveries = Deliveries(database, lambda: now[0])
    one, two = sorted(messages(database, 2))
    rows = [deliveries.claim(60), deliveries.claim(60)]
    assert {r["delivery_id"] for r in rows if r} == {one, two}
    assert all(r is not None and r["owner"] == "k_one" and r["attempts"] == 1 for r in rows)
    deliveries.settle(one, DONE, 204)
    deliveries.again(two, 500, 30)
    assert deliveries.claim(60) is None
    now[0] += 30
    again = deliveries.claim(60)
    assert again is not None and (again["delivery_id"], again["attempts"]) == (two, 2)
    deliveries.settle(two, FAILED, 500)
    deliveries.again(two, None, 0)
    now[0] += 1e6
    assert deliveries.claim(60) is None
    assert deliveries.counts() == {"pending": 0, "done": 1, "failed": 1}
