"""A ledger written before calls kept their facts is read, resumed and reported like any other."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from service.store.ledger import Ledger
from service.store.tables import WARM_UP
from service.tool_calls import tool_calls

OLD = """
CREATE TABLE portraits (portrait_id TEXT NOT NULL, seq INTEGER NOT NULL, subject_id TEXT NOT NULL,
 attributes JSON NOT NULL, accepted INTEGER NOT NULL, face_found INTEGER NOT NULL, reason TEXT,
 facts JSON NOT NULL, face JSON, warnings JSON NOT NULL, sha256 VARCHAR(64) NOT NULL,
 PRIMARY KEY (portrait_id));
CREATE TABLE runs (run_id VARCHAR(32) NOT NULL, plan_sha256 VARCHAR(64) NOT NULL,
 plan_text TEXT NOT NULL, started VARCHAR(40) NOT NULL, finished VARCHAR(40),
 seconds FLOAT NOT NULL, versions JSON NOT NULL, inputs JSON NOT NULL, PRIMARY KEY (run_id));
CREATE TABLE items (item_id VARCHAR(32) NOT NULL, seq INTEGER NOT NULL, portrait_id TEXT NOT NULL,
 tool TEXT NOT NULL, tool_id TEXT NOT NULL, control INTEGER NOT NULL, task VARCHAR(40) NOT NULL,
 perturbation VARCHAR(40) NOT NULL, seed INTEGER NOT NULL, state VARCHAR(16) NOT NULL,
 outcome VARCHAR(32), reason TEXT, seconds FLOAT, model TEXT NOT NULL, attempts INTEGER NOT NULL,
 original VARCHAR(64), edited VARCHAR(64), mask VARCHAR(64), meta JSON NOT NULL,
 warnings JSON NOT NULL, evidence JSON NOT NULL, health JSON NOT NULL, PRIMARY KEY (item_id),
 FOREIGN KEY(portrait_id) REFERENCES portraits (portrait_id));
CREATE INDEX ix_items_seq ON items (seq);
CREATE INDEX ix_items_state ON items (state);
CREATE TABLE calls (call_id INTEGER NOT NULL, item_id VARCHAR(32) NOT NULL,
 attempt INTEGER NOT NULL, started VARCHAR(40) NOT NULL, ended VARCHAR(40), result VARCHAR(16),
 reason TEXT, PRIMARY KEY (call_id), FOREIGN KEY(item_id) REFERENCES items (item_id));
CREATE INDEX ix_calls_item_id ON calls (item_id);
CREATE TABLE measurements (item_id VARCHAR(32) NOT NULL, metric VARCHAR(60) NOT NULL,
 region VARCHAR(40) NOT NULL, position INTEGER NOT NULL, value FLOAT, unit VARCHAR(40) NOT NULL,
 status VARCHAR(20) NOT NULL, reason TEXT, PRIMARY KEY (item_id, metric, region),
 FOREIGN KEY(item_id) REFERENCES items (item_id));
INSERT INTO portraits VALUES ('a.jpg', 0, 's', '{}', 1, 1, NULL, '{}', NULL, '[]', '');
INSERT INTO items VALUES ('i1', 0, 'a.jpg', 't', 'identity', 0, 'restyle', 'none', 1, 'calling',
 NULL, NULL, NULL, 'model 1', 2, 'aa', NULL, NULL, '{}', '[]', '{}', '{}');
INSERT INTO calls VALUES (1, 'i1', 1, '2026-05-01T10:00:00+00:00', '2026-05-01T10:00:03+00:00',
 'failed', 'busy');
INSERT INTO calls VALUES (2, 'i1', 2, '2026-05-01T10:00:04+00:00', NULL, NULL, NULL);
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.sqlite3"
    with closing(sqlite3.connect(file)) as link:
        link.executescript(OLD)
    return file


def test_its_calls_keep_what_they_had_and_lack_what_was_not_asked(old: Path) -> None:
    with closing(Ledger.at(old)) as ledger:
        first, second = ledger.calls()
        assert (first["reason"], first["ended"]) == ("busy", "2026-05-01T10:00:03+00:00")
        assert {c["kind"] for c in (first, second)} == {"item"}
        for name in ("seconds", "model", "request_id", "meta"):
            assert first[name] is None


def test_it_is_gone_on_with_and_reported(old: Path) -> None:
    with closing(Ledger.at(old)) as ledger:
        assert ledger.cut_off("i1") == 1
        warm = ledger.begin_call("i1", 1, WARM_UP)
        ledger.end_call(warm, "i1", {"result": "edited", "meta": {"cost": {"amount": 1}}}, {})
        call = ledger.begin_call("i1", 3)
        done = {"result": "edited", "seconds": 2.5, "request_id": "r-1", "meta": {"a": [1]}}
        ledger.end_call(call, "i1", done, {"state": "edited", "edited": "bb"})
    with closing(Ledger.at(old)) as again:  # opening it twice adds nothing twice
        [facts] = tool_calls(["t"], again.items(), again.calls())
    assert (facts.calls, facts.retries, facts.warm_ups, facts.maybe_billed) == (3, 2, 1, 1)
    assert facts.seconds_median == 2.5 and facts.first_request_ids == ("r-1",)


def test_many_may_open_it_at_once(old: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: Ledger.at(old), range(16)))
    assert all(len(ledger.calls()) == 2 for ledger in opened)
    for ledger in opened:
        ledger.close()
