"""Sends one message to an address that a stranger named: with the checks of ``http_download``, and
without reading what is answered beyond its status."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Mapping

import httpx

from adapters.over_http.addresses import _CheckedConnections
from adapters.over_http.download import _check, _client, _root, _Timed, is_allowed
from domain.errors import LikenessError


class NotDelivered(LikenessError):
    """Why no answer came: one sentence, without what stands in the URL behind its host."""


def check_target(url: str, allowed: Collection[str] = ()) -> None:
    """Pass an address that messages may be sent to: http(s), a public host and a usual port, or one
    that an operator allows. Nothing is resolved yet. Raises LikenessError."""
    if not is_allowed(url, allowed):
        _check(url)


def deliver(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    seconds: float,
    allowed: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """POST ``body`` and return the answer's status; a redirect is an answer like any other and is
    not followed. All of it ends within ``seconds``. Raises NotDelivered."""
    trusted = is_allowed(url, allowed)
    try:
        if not trusted:
            _check(url)
        network = _Timed(None if trusted else _CheckedConnections(), clock, clock() + seconds)
        with (
            _client(network) as client,
            client.stream("POST", url, content=body, headers=dict(headers)) as answer,
        ):
            return answer.status_code
    except LikenessError as error:
        raise NotDelivered(str(error)) from None
    except httpx.TimeoutException:
        raise NotDelivered("the server did not answer in time") from None
    except httpx.ConnectError as error:
        tls = isinstance(_root(error), ssl.SSLError)
        what = "its certificate is not valid" if tls else "it cannot be reached"
        raise NotDelivered(f"the server was not asked: {what}") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError):
        raise NotDelivered("the server did not give a whole answer") from None
