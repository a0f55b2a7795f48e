"""Whether an answer may be asked for again, and how long the server wants us to wait first.

Sources: RFC 9110 10.2.3 (Retry-After), the makers' SDKs (retry-after-ms, x-should-retry,
x-ratelimit-reset-*), the RateLimit header fields draft, google.rpc.RetryInfo, and sentences in bodies
("try again in 1.2s", "try again in 6m0s", "your rate limit resets in ~30s").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
_AMOUNT = (
    r"\d+(?:\.\d+)?\s*"
    r"(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
    r"(?![a-z])"
)
_SENTENCE = re.compile(
    r"(?:try(?:ing)? again|retry|resets?|available|wait)\D{0,40}?"
    rf"({_AMOUNT}(?:\s*(?:,|and)?\s*{_AMOUNT})*)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_IN_BODY = {
    "retrydelay": 1.0,
    "retryafter": 1.0,
    "retryafterseconds": 1.0,
    "retryafterms": 0.001,
}
_DEEPEST = 20


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
    yield retry_after(headers.get("retry-after"), headers.get("date"))
    yield from _in_body(body)
    # Several quotas may be reported; those that are used up decide, and of them the longest
    used_up = [
        duration(headers.get(f"x-ratelimit-reset-{name}")) or 0.0
        for name in ("requests", "tokens", "images", "input-images")
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0"
    ]
    yield max(used_up, default=0.0) or None
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        yield _reset(headers.get(name))
    draft = re.search(r";\s*t=(\d+)", headers.get("ratelimit", ""))
    yield float(draft[1]) if draft else None
    yield _in_sentence(text)


def retry_after(value: str | None, server_date: str | None = None) -> float | None:
    """A Retry-After header: seconds, or an HTTP date. A date is measured from ``server_date``, the
    answer's Date header: two machines' clocks need not agree."""
    number = _number(value, 1.0)
    if number is not None or value is None:
        return number
    moment, now = _date(value), _date(server_date) or datetime.now(UTC)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


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


def _date(value: str | None) -> datetime | None:
    """An HTTP date, in any of the three forms of RFC 9110; one without a zone is in GMT."""
    try:
        moment = parsedate_to_datetime(value or "")
    except (ValueError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _reset(value: str | None) -> float | None:
    """A bare reset header: seconds from now, an epoch time where the number is too large for that,
    or an ISO date."""
    seconds = duration(value)
    if seconds is None and value:
        try:
            seconds = datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError):
            return None
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


def _in_sentence(text: str) -> float | None:
    found = _SENTENCE.search(text[:10_000])
    if found is None:
        return None
    return sum(
        float(number) * _UNITS["ms" if unit.lower().startswith(("ms", "mil")) else unit[0].lower()]
        for number, unit in _PART.findall(found[1])
    )


def _in_body(body: Any, depth: int = 0) -> Iterator[float | None]:
    """google.rpc.RetryInfo's ``retryDelay`` and keys named like the headers, anywhere in the body
    down to a depth that no maker's error reaches."""
    if depth > _DEEPEST:
        return
    if isinstance(body, Mapping):
        for key, value in body.items():
            factor = _IN_BODY.get(re.sub(r"[-_ ]", "", str(key)).lower())
            if factor is not None and isinstance(value, str | int | float):
                wait = duration(str(value))
                yield None if wait is None else wait * factor
            yield from _in_body(value, depth + 1)
    elif isinstance(body, list):
        for value in body:
            yield from _in_body(value, depth + 1)
