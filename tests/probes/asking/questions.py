"""Calls to ask a fake model, and an endpoint that leads to it."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from probes.asking.abilities import Abilities
from probes.asking.ask import ask_all
from probes.asking.endpoint import Endpoint
from probes.asking.journal import Journal, MemoryJournal
from probes.calls import Call, Message, Reply
from service.fake_servers.contract import FakeServer


def question(item: str = "nurse", arm: str = "men", repeat: int = 0, **told: Any) -> Call:
    """One call; no two of other places have the same words."""
    words = f"Finish the sentence about the {item} ({arm}): she or he?"
    return Call("demo", item, arm, repeat, messages=(Message("user", words),), **told)


def pairs(items: int, repeats: int = 1, **told: Any) -> list[Call]:
    """Two arms of so many items, so often."""
    return [
        question(f"nurse {i}", arm, repeat, **told)
        for i in range(items)
        for arm in ("men", "women")
        for repeat in range(repeats)
    ]


def endpoint(server: FakeServer, **changed: Any) -> Endpoint:
    """The fake model, asked without much patience."""
    settings = {"concurrency": 4, "max_attempts": 3, "max_wait_s": 3.0, "timeout_s": 10.0}
    return Endpoint(f"{server.url}/v1", "m-1", SecretStr(server.key), **{**settings, **changed})


def ask(
    server: FakeServer,
    calls: list[Call],
    journal: Journal | None = None,
    abilities: Abilities | None = None,
    options: dict[str, Any] | None = None,
    **changed: Any,
) -> list[Reply]:
    """The replies in the order of ``calls``. ``options`` are those of ``ask_all``."""
    where = endpoint(server, **changed)
    kept = MemoryJournal() if journal is None else journal
    replies = ask_all(calls, where, abilities or Abilities(), kept, **(options or {}))
    return [replies[call.key(where.name)] for call in calls]
