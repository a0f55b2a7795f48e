"""Where replies are kept, so that none is paid for twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from probes.calls import Call, Reply


class Journal(Protocol):
    """Replies by the key of their call.

    ``known`` is asked once, from the thread that calls ``ask_all``; ``keep`` many times, from one
    other thread, never two at once."""

    def known(self, keys: Iterable[str]) -> Mapping[str, Reply]:
        """The replies that are kept under ``keys``; a key without one is absent."""
        ...

    def keep(self, entries: Sequence[tuple[str, Call, Reply]]) -> None:
        """Keep all of them or none, durably when it returns. A reply kept under the same key
        before is replaced: it was an error, and the call was sent again."""
        ...


class MemoryJournal:
    """Forgets everything with the process: for estimates, demonstrations and tests."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}

    def known(self, keys: Iterable[str]) -> Mapping[str, Reply]:
        """See ``Journal``."""
        return {key: self.replies[key] for key in keys if key in self.replies}

    def keep(self, entries: Sequence[tuple[str, Call, Reply]]) -> None:
        """See ``Journal``."""
        self.replies.update((key, reply) for key, _, reply in entries)


_DEFAULTS: dict[str, Any] = {f.name: getattr(Reply(), f.name) for f in fields(Reply)}


def reply_json(reply: Reply) -> str:
    """``reply`` as one line of JSON, without the fields that say nothing."""
    told = {
        name: value for name, usual in _DEFAULTS.items() if (value := getattr(reply, name)) != usual
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=dict)


def reply_from_json(text: str) -> Reply:
    """The reply that ``reply_json`` wrote. Fields of a later version are ignored.
    Raises ValueError where ``text`` is none."""
    told = json.loads(text)
    if not isinstance(told, dict):
        raise ValueError("a reply is a JSON object")
    known = {name: value for name, value in told.items() if name in _DEFAULTS}
    if "top_logprobs" in known:
        known["top_logprobs"] = tuple(known["top_logprobs"])
    return Reply(**known)
