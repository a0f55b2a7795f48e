"""The outermost layer: an id for every request, one line of log, one count, and never a bare fault."""

from __future__ import annotations

import re
import time
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.context import Context
from service.api.headers import dressed
from service.api.logs import LOGGER, where
from service.api.metrics import Metrics
from service.api.problems import answer, as_problem
from service.api.security import caller_of
from service.api.unread import CLOSE, Incoming

_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PREFIX = "/v1"
TOO_SLOW, GONE = 408, 499
"""What is counted where the client left before an answer began."""


class Edge:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, context: Context, metrics: Metrics) -> None:
        self._app, self._context, self._metrics = app, context, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens inside."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        begun, status = time.perf_counter(), GONE
        incoming = Incoming(scope, receive)

        async def dress(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = dressed(list(message["headers"]), request_id)
                if status >= 400 and await incoming.leave(wait=status != TOO_SLOW):
                    headers.append(CLOSE)
                message = {**message, "headers": headers}
            await send(message)

        with self._metrics.in_progress():
            try:
                await self._app(scope, incoming.receive, dress)
            except Exception as error:
                if status != GONE:  # half an answer is out: the broken connection must say so
                    self._fault(request_id, error)
                    raise _Broken from None
                problem = as_problem(error, self._context.limits.store_retry_s)
                if problem.status_code == 500:
                    self._fault(request_id, error)
                await answer(problem, request_id)(scope, receive, dress)
        self._note(scope, request_id, status, time.perf_counter() - begun)

    def _fault(self, request_id: str, error: Exception) -> None:
        facts = {"request_id": request_id, "kind": type(error).__name__, "where": where(error)}
        LOGGER.error("a fault of the service", extra={"facts": facts})

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        template, caller = route_of(scope), caller_of(scope)
        self._metrics.answered(scope["method"], template, status, seconds)
        facts = {
            "request_id": request_id,
            "method": scope["method"] if scope["method"].isalpha() else "?",
            "route": template,
            "status": status,
            "seconds": round(seconds, 4),
            "key_id": caller.key_id if caller else None,
        }
        LOGGER.info("request", extra={"facts": facts})


class _Broken(Exception):
    """An answer that broke off; what broke it is in our own log."""


def _request_id(scope: Scope) -> str:
    """The caller's own id where it is one, so that both sides' logs meet; else a new one."""
    for name, value in scope["headers"]:
        text: str = value.decode("latin-1")
        if name == b"x-request-id" and _GOOD_ID.fullmatch(text):
            return text
    return uuid4().hex


def route_of(scope: Scope) -> str:
    """The template of the matched route ("/v1/batches/{batch_id}"), never an address as sent."""
    template = getattr(scope.get("route"), "path", None)
    if not template:
        return "unmatched"
    # the framework keeps a route under the path it has in its own router, without the prefix
    inside = scope["path"].startswith(f"{PREFIX}/") and not template.startswith(f"{PREFIX}/")
    return f"{PREFIX}{template}" if inside else str(template)
