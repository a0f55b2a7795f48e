"""Pages of long lists: opaque cursors that only this service can make, and that name a position.

A cursor holds the sort key of the last row shown, so that rows which come in or go meanwhile neither
double nor hide others (an offset would). It is signed with the service's secret and bound to its
list and filters: one of another list, another filter or another service is refused, not misread.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import Response

from service.api.problems import Problem

Row = TypeVar("Row")
Position = Sequence[str | int | float]
"""The sort key of a row: what ``ORDER BY`` of its list goes by."""

_VERSION = b"\x01"
_MAC_BYTES = 16
_LONGEST = 2048
"""Characters of a cursor; what is longer was not made here and is not even decoded."""
LARGEST_PAGE = 1000
USUAL_PAGE = 100

PageSize = Annotated[
    int,
    Query(ge=1, le=LARGEST_PAGE, description="Rows of a page at most.", examples=[USUAL_PAGE]),
]
CursorText = Annotated[
    str | None,
    Query(
        max_length=_LONGEST,
        description="`next` of the page before; leave it out for the first page.",
    ),
]


class Cursors:
    """Cursors of one list. ``scope`` names the list with everything that decides what is on it (the
    run, the filters): a cursor fits only the list that it was made for."""

    def __init__(self, secret: bytes, *scope: object) -> None:
        """``secret`` is the service's own; a key for cursors alone is derived from it."""
        self._key = hmac.digest(secret, b"likeness cursors 1", "sha256")
        self._scope = hashlib.sha256(json.dumps(list(scope), default=str).encode()).digest()

    def write(self, position: Position) -> str:
        """The cursor that goes on after the row at ``position``."""
        body = _VERSION + json.dumps(list(position), separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(body) + body).decode().rstrip("=")

    def read(self, cursor: str | None) -> list[Any] | None:
        """The position in ``cursor``, None for none. Raises Problem 400 for one that was altered, is
        of another list, or was made by another service."""
        if cursor is None:
            return None
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            data = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _refused() from None
        mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
        known = body[:1] == _VERSION and hmac.compare_digest(mac, self._mac(body))
        if len(cursor) > _LONGEST or not known:
            raise _refused()
        position: list[Any] = json.loads(body[1:])
        return position

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, self._scope + body, "sha256")[:_MAC_BYTES]


def _refused() -> Problem:
    return Problem(
        400,
        "bad-cursor",
        "This cursor was not made for this list with these filters; begin again without 'cursor'.",
    )


def cut(
    rows: Sequence[Row], limit: int, cursors: Cursors, position: Callable[[Row], Position]
) -> tuple[list[Row], str | None]:
    """A page of at most ``limit`` rows and the cursor of the next one, None on the last. ``rows`` are
    ``limit + 1`` rows where there are so many: the one too many only tells that there is more."""
    page = list(rows[:limit])
    more = len(rows) > limit and page
    return page, cursors.write(position(page[-1])) if more else None


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Name the next page in the header ``Link`` as well (RFC 8288)."""
    if cursor is not None:
        path = URL(scope=request.scope).include_query_params(cursor=cursor)
        # relative: a proxy in front may go by another name than this server knows of
        response.headers["Link"] = f'<{path.path}?{path.query}>; rel="next"'
