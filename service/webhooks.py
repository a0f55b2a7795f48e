"""Tells an address that a run has ended, by the rules of Standard Webhooks: headers webhook-id,
webhook-timestamp and webhook-signature, which is HMAC-SHA256 over "id.timestamp.body"
(https://www.standardwebhooks.com).

A message that does not arrive is sent again, with the same id, after longer and longer waits for
about a day. Nothing waits for it: a run is over whether or not somebody could be told.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from adapters.over_http.deliver import NotDelivered, check_target, deliver
from service.limits import Limits
from service.store.deliveries import DONE, FAILED, Deliveries, message
from service.store.events import instant

EVENTS = {"done": "run.finished", "failed": "run.failed", "cancelled": "run.cancelled"}
"""The event's name by the state that a run has ended in."""
WAITS_S = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 57_600.0)
"""Before the second try, the third, and so on: 23 h 37 min in all."""
JITTER = 0.1
GONE = 410
_HELD_S = 60.0
Row = Mapping[str, Any]

__all__ = ["EVENTS", "check_target", "message_of", "secret_of", "send_due", "signature"]


def secret_of(server_secret: bytes, owner: str) -> str:
    """The signing secret of one caller's webhooks: "whsec_" and 32 bytes in base64. It follows from
    the server's own secret and is stored nowhere."""
    return "whsec_" + base64.b64encode(_key(server_secret, owner)).decode()


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header webhook-signature."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def message_of(job: Row, state: str, error: str | None = None) -> dict[str, Any] | None:
    """What to enter in the table of deliveries when ``job`` ends in ``state``; None when nobody is
    to be told."""
    if not job["webhook_url"]:
        return None
    data = {
        "run_id": job["run_id"],
        "batch_id": job["batch_id"],
        "name": job["name"],
        "state": state,
        "error": error,
    }
    body = json.dumps({"type": EVENTS[state], "timestamp": instant(), "data": data})
    return message(job["run_id"], job["webhook_url"], EVENTS[state], body)


def send_due(
    deliveries: Deliveries,
    server_secret: bytes,
    limits: Limits,
    *,
    allowed: Collection[str] = (),
    clock: Callable[[], float] = time.time,
    chance: Callable[[], float] = random.random,
    most: int = 20,
) -> int:
    """Send the messages that are due, at most ``most``. Returns how many were tried. Raises
    StoreUnavailable. ``allowed`` are hosts that an operator trusts though they are not public."""
    for count in range(most):
        row = deliveries.claim(_HELD_S + limits.webhook_timeout_s)
        if row is None:
            return count
        status = _send(row, _key(server_secret, row["owner"]), limits, allowed, clock)
        if status is not None and 200 <= status < 300:
            deliveries.settle(row["delivery_id"], DONE, status)
        elif status == GONE or row["attempts"] >= min(limits.webhook_attempts, len(WAITS_S) + 1):
            deliveries.settle(row["delivery_id"], FAILED, status)
        else:
            wait = WAITS_S[row["attempts"] - 1] * (1 + JITTER * chance())
            deliveries.again(row["delivery_id"], status, wait)
    return most


def _send(
    row: Row, key: bytes, limits: Limits, allowed: Collection[str], clock: Callable[[], float]
) -> int | None:
    body, timestamp = row["body"].encode(), int(clock())
    headers = {
        "content-type": "application/json",
        "accept": "*/*",
        "webhook-id": row["delivery_id"],
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(key, row["delivery_id"], timestamp, body),
    }
    try:
        return deliver(row["url"], body, headers, seconds=limits.webhook_timeout_s, allowed=allowed)
    except NotDelivered:
        return None


def _key(server_secret: bytes, owner: str) -> bytes:
    return hmac.digest(server_secret, b"likeness webhook\0" + owner.encode(), hashlib.sha256)
