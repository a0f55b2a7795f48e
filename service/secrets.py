"""The keys that this process has read, so that nothing it writes down holds one of them.

The last of three fences: adapters redact what a server said (``domain.redaction``), a plan never
holds a key, and whatever is on its way to a ledger, a screen or a fault file is scrubbed here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

from domain.redaction import redact, without_keys

_SHORTEST = 6
"""Characters below which a piece of a key would be found in ordinary words."""
_known: set[str] = set()
_lock = threading.Lock()


def remember(value: str) -> None:
    """From now on ``value`` is scrubbed. Of a "user:password" the password is one by itself too."""
    password = value.partition(":")[2]
    with _lock:
        _known.add(value)
        if len(password) >= _SHORTEST:
            _known.add(password)


def known() -> list[str]:
    """Every value remembered, the longest first: a key may hold another."""
    with _lock:
        return sorted(_known, key=len, reverse=True)


def scrub_text(text: str) -> str:
    """``text`` without any key (plain, URL-encoded or in base64) and without long runs of encoded
    data, which may be somebody's face."""
    return redact(text, known())


def hide_keys(text: str) -> str:
    """``text`` without any key, for messages of our own: a path in them looks like encoded data."""
    return without_keys(text, known())


def scrub(value: Any) -> Any:
    """``value`` as plain JSON data with every text in it scrubbed, names of keys as well. Bytes and
    strangers' objects become a word; a number that JSON has no sign for becomes its name."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case bytes() | bytearray() | memoryview():
            return "[data]"
        case Mapping():
            return {scrub_text(str(name)): scrub(part) for name, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [scrub(part) for part in value]
    return scrub_text(str(value))


def holds_secret(data: bytes) -> bool:
    """Whether a key stands somewhere in ``data`` as it is: a picture's text chunk may echo one."""
    return any(len(s) >= _SHORTEST and s.encode() in data for s in known())
