"""Calls of a probe run are kept with their replies, each once, in SQLite and in PostgreSQL."""

from __future__ import annotations

import math

import pytest

from probes.calls import Call, Message, Reply
from service import secrets
from service.store.probe_calls import ProbeCalls
from service.store.tables import probe_calls
from tests.service.store.worlds import World

REPLY = Reply(
    text="她是护士。\0\ud800 “yes”",
    finish_reason="stop",
    model="m-1",
    sent={"temperature": 0.7},
    top_logprobs=({"she": -0.2, "he": -math.inf},),
)


def entry(repeat: int, reply: Reply = REPLY) -> tuple[str, Call, Reply]:
    call = Call("p", "护士", "men", repeat, "zh", (Message("user", "谁？"),), facts={"row": "护士"})
    return call.key("http://model m"), call, reply


def test_what_was_kept_is_known_again_and_nothing_else_is(world: World) -> None:
    world.database.migrate()
    journal = ProbeCalls(world.database, "r1")
    entries = [entry(n) for n in range(1_200)]
    journal.keep(entries)
    found = journal.known([key for key, _, _ in entries] + ["unknown"])
    assert found.keys() == {key for key, _, _ in entries} and journal.count() == 1_200
    one = found[entries[7][0]]
    assert one.text.startswith("她是护士。") and "“yes”" in one.text
    assert one.top_logprobs[0]["he"] == -math.inf and one.sent == {"temperature": 0.7}
    assert ProbeCalls(world.database, "r2").known([entries[0][0]]) == {}


def test_a_reply_kept_again_replaces_the_first_and_nothing_doubles(world: World) -> None:
    world.database.migrate()
    journal = ProbeCalls(world.database, "r1")
    journal.keep([entry(0, Reply(error="the server was down")), entry(1)])
    journal.keep([entry(0, Reply(text="here"))])
    journal.keep([])
    assert journal.known([entry(0)[0]])[entry(0)[0]].text == "here" and journal.count() == 2


def test_a_group_is_entered_whole_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.database.migrate()
    journal = ProbeCalls(world.database, "r1")
    made = journal._row

    def fail_at_two(key: str, call: Call, reply: Reply) -> dict[str, object]:
        return made(key, call, reply) | ({"arm": None} if call.repeat == 2 else {})

    monkeypatch.setattr(journal, "_row", fail_at_two)
    with pytest.raises(Exception, match="the ledger cannot be used"):
        journal.keep([entry(n) for n in range(4)])
    assert journal.count() == 0


def test_a_key_that_a_server_repeats_is_not_written_down(world: World) -> None:
    world.database.migrate()
    key = "sk-never-written-down-0123"
    secrets.remember(key)
    try:
        ProbeCalls(world.database, "r1").keep([entry(0, Reply(text=f"your key is {key}"))])
    finally:
        secrets._known.discard(key)
    rows = world.database.rows(probe_calls.select())
    assert key not in str(rows) and "[key]" in rows[0]["reply"]
