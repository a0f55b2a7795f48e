"""``Prefer: wait=N`` (RFC 7240): the answer may take up to N seconds, if the run ends meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Header, Request

from service.api.security import in_thread

MOST_S = 60
_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?')
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.0)
T = TypeVar("T")

PreferText = Annotated[
    str | None,
    Header(
        max_length=200,
        description=f"`wait=N`: answer when the run has ended, after N seconds at most (up to {MOST_S}).",
        examples=["wait=20"],
    ),
]


def wait_in(prefer: str | None) -> int | None:
    """The seconds that a header ``Prefer`` asks to wait for, at most MOST_S; None where it asks for
    none. The first ``wait`` counts (RFC 7240, section 2); other preferences are left aside."""
    for preference in (prefer or "").split(","):
        found = _WAIT.fullmatch(preference.partition(";")[0].strip().lower())
        if found is not None:
            return min(MOST_S, int(found[1]))
    return None


def ending_of(request: Request) -> Callable[[], bool]:
    """Whether the service that answers ``request`` is being stopped: whoever runs it puts the question
    into ``app.state.ending``."""
    found: Callable[[], bool] = getattr(request.app.state, "ending", lambda: False)
    return found


async def until(
    look: Callable[[], T],
    ended: Callable[[T], bool],
    seconds: int | None,
    ending: Callable[[], bool] = lambda: False,
) -> T:
    """What ``look`` says when ``ended`` is true of it, or after ``seconds``, or once the service is
    ``ending``. ``look`` is called in a thread, and none is held while nothing happens."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + (seconds or 0)
    count = 0
    while True:
        found = await in_thread(look)
        left = until_s - loop.time()
        if ended(found) or left <= 0 or ending():
            return found
        await asyncio.sleep(min(left, _PAUSES[min(count, len(_PAUSES) - 1)]))
        count += 1
