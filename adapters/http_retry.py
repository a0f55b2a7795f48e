"""Whether an answer may be asked for again, and how long the server wants us to wait first.

Sources: RFC 9110 10.2.3 (Retry-After), the makers' SDKs (retry-after-ms, x-should-retry,
x-ratelimit-reset-*), google.rpc.RetryInfo, and sentences in bodies ("try again in 1.2s").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_UNITS = {"ms": 0.001, "milliseconds": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SENTENCE = re.compile(
    r"(?:try again|retry|resets?|available|wait)\D{0,40}?~?\s*(\d+(?:\.\d+)?)\s*"
    r"(milliseconds|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)\b",
    re.IGNORECASE,
)


def is_retryable(status: int, headers: Mapping[str, str]) -> bool:
    """By the server's own word (``x-should-retry``) where it gives one, else by the status."""
    word = headers.get("x-should-retry", "").strip().lower()
    if word in ("true", "false"):
        return word == "true"
    return status in RETRYABLE


def named_wait(headers: Mapping[str, str], body: Any, text: str = "") -> float | None:
    """Seconds to wait that the answer names, None where it names none. ``body`` is its JSON."""
    for wait in _waits(headers, body, text):
        if wait is not None and wait >= 0:
            return wait
    return None


def _waits(headers: Mapping[str, str], body: Any, text: str) -> Iterator[float | None]:
    yield _number(headers.get("retry-after-ms"), 0.001)
    yield retry_after(headers.get("retry-after"))
    yield from _in_body(body)
    # Several quotas may be reported; the one that is used up decides
    for name in ("requests", "tokens", "images", "input-images"):
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0":
            yield duration(headers.get(f"x-ratelimit-reset-{name}"))
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        yield _reset(headers.get(name))
    found = _SENTENCE.search(text)
    if found:
        unit = found[2].lower()
        factor = 0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]]
        yield float(found[1]) * factor


def retry_after(value: str | None) -> float | None:
    """A Retry-After header: seconds, or an HTTP date."""
    number = _number(value, 1.0)
    if number is not None or value is None:
        return number
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return (
        max(0.0, (moment - datetime.now(moment.tzinfo or UTC)).total_seconds())
        if moment.tzinfo
        else None
    )


def duration(value: str | None) -> float | None:
    """A duration such as "1m30s", "250ms", "20" or "8.64s", in seconds."""
    if value is None:
        return None
    number = _number(value, 1.0)
    if number is not None:
        return number
    parts = _DURATION.findall(value.strip())
    if not parts or "".join(n + u for n, u in parts) != value.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _reset(value: str | None) -> float | None:
    """A bare reset header: seconds from now, or an epoch time where the number is too large."""
    seconds = duration(value)
    if seconds is None or seconds < 1e9:
        return seconds
    return max(0.0, seconds - datetime.now(UTC).timestamp())


def _number(value: str | None, factor: float) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    # NaN and infinities are spelled like numbers
    return None if number is None or not abs(number) < 1e12 else number * factor


def _in_body(body: Any) -> Iterator[float | None]:
    """google.rpc.RetryInfo's ``retryDelay`` and keys named like the header, anywhere in the body."""
    if isinstance(body, Mapping):
        for key, value in body.items():
            if str(key).lower().replace("-", "_") in (
                "retrydelay",
                "retry_after",
                "retry_after_seconds",
            ):
                yield duration(str(value))
            yield from _in_body(value)
    elif isinstance(body, list):
        for value in body:
            yield from _in_body(value)
