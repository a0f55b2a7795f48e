"""A language model behind OpenAI's protocol: chat/completions, completions and models.

Its character is a ``Personality``: leanings of a known size, refusals, faults. Streaming, tools and
several choices are not played. Source: the maker's API reference and error codes.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.chat_checks import Order, Rejected, read_order
from service.fake_servers.chat_personality import Fault, Personality, Rule
from service.fake_servers.chat_troubles import BEHAVIOURS, ERRORS, REFUSALS, error
from service.fake_servers.contract import KEY, FakeServer
from service.fake_servers.desk import Desk, seen_of

__all__ = ["BEHAVIOURS", "DOES", "NAME", "Fault", "Personality", "Rule", "app", "serve"]
NAME = "chat"
DOES = "a language model behind chat/completions: planted leanings, refusals, filters, faults"
_NO_FILTER = {"hate": {"filtered": False, "severity": "safe"}}
_STRUCK = {"hate": {"filtered": True, "severity": "high"}}


def app(desk: Desk) -> Starlette:
    """The server with the personality that nurses are women and engineers men to."""
    return with_personality(desk, Personality())


def serve(who: Personality, *, key: str = KEY, slow_s: float = 1.0, port: int = 0) -> FakeServer:
    """Start a server with the character ``who`` on 127.0.0.1; a context manager."""
    return FakeServer(_Module(who), Desk(key, BEHAVIOURS, slow_s=slow_s), port)


def with_personality(desk: Desk, who: Personality) -> Starlette:
    """The server with the character ``who``."""

    async def chat(request: Request) -> Response:
        return _turned_away(desk, who, request) or _answered(desk, who, request, chat=True)

    async def completions(request: Request) -> Response:
        if not who.completions:
            return _told(error(404, "Not Found", "invalid_request_error", None))
        return _turned_away(desk, who, request) or _answered(desk, who, request, chat=False)

    async def models(request: Request) -> Response:
        listed = [{"id": name or "fake", "object": "model"} for name in who.models]
        return _turned_away(desk, who, request) or JSONResponse({"object": "list", "data": listed})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
        ]
    )


def _turned_away(desk: Desk, who: Personality, request: Request) -> Response | None:
    presented = request.headers.get("api-key") if who.key_by_header else None
    if desk.has_bearer(request) or (presented and desk.has_key(presented)):
        return None
    return _told(error(401, _unauthorised(request), "invalid_request_error", "invalid_api_key"))


def _answered(desk: Desk, who: Personality, request: Request, *, chat: bool) -> Response:
    seen = seen_of(request)
    told = seen.json()
    number, repeat = who.request(repr(_words(told)))
    try:
        order = read_order(told, chat, who, number)
    except Rejected as wrong:
        return _told(wrong.error)
    behaviour = desk.turn(None)
    if seen.played == "ok" and (drawn := who.fault(order.text, repeat)):
        behaviour = seen.played = drawn
    if behaviour in ERRORS:
        return _told(ERRORS[behaviour])
    common = desk.common(behaviour)
    return common or JSONResponse(_Answer(who, order, number, repeat, behaviour).body())


class _Module:
    """This module with another character than the usual one."""

    NAME, DOES, BEHAVIOURS = NAME, DOES, BEHAVIOURS

    def __init__(self, who: Personality) -> None:
        self._who = who

    def app(self, desk: Desk) -> Starlette:
        return with_personality(desk, self._who)


@dataclass(slots=True)
class _Answer:
    """One answer with a 200."""

    who: Personality
    order: Order
    number: int
    repeat: int
    behaviour: str

    def body(self) -> dict[str, Any]:
        """The whole answer."""
        words = self._words()
        hidden, finish = self.who.reasoning, "stop"
        written = _tokens(words)
        if self.behaviour == "reasoning_ate_it" or hidden >= self.order.budget:
            hidden, words, written, finish = self.order.budget, "", 0, "length"
        elif self.behaviour == "cut" or hidden + written > self.order.budget:
            room = (
                self.order.budget - hidden if hidden + written > self.order.budget else written // 2
            )
            words, written, finish = words[: 4 * room], room, "length"
        if self.behaviour in ("filter_reply", "interrupted"):
            words = words[: len(words) // 2]
            finish = (
                "content_filter"
                if self.behaviour == "filter_reply"
                else "insufficient_system_resource"
            )
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion" if self.order.chat else "text_completion",
            "created": int(time.time()),
            "model": self._model(),
            "system_fingerprint": self._fingerprint(),
            "choices": [self._choice(words, finish)],
            "usage": self._usage(hidden, written),
            **self._echo(),
        }

    def _words(self) -> str:
        said = REFUSALS.get(self.behaviour) or self.who.answer(
            self.order.text, self.order.wish, self.repeat
        )
        if self.behaviour == "fenced":
            return f"```json\n{said}\n```"
        if self.behaviour == "prefixed":
            return (
                f"Sure, here is what you asked for:\n\n{said}\n\nLet me know if I can help further."
            )
        if self.behaviour == "malformed":
            return said.replace('"', "'").replace("}", ",}")
        if self.behaviour == "thinks_aloud":
            return f"<think>\nI'm sorry, I can't help... or can I?\n</think>\n\n{said}"
        return "" if self.behaviour in ("empty_reply", "filter_empty", "refuse_field") else said

    def _choice(self, words: str, finish: str) -> dict[str, Any]:
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": finish,
            "logprobs": self._logprobs(words),
        }
        struck = self.behaviour == "filter_empty"
        if struck or self.behaviour == "filter_reply":
            choice["content_filter_results"] = _STRUCK if struck else _NO_FILTER
        if not self.order.chat:
            return {**choice, "text": words}
        refusal = REFUSALS["refuse"] if self.behaviour == "refuse_field" else None
        content = None if refusal else words
        return {**choice, "message": {"role": "assistant", "content": content, "refusal": refusal}}

    def _logprobs(self, words: str) -> dict[str, Any] | None:
        count = self.order.logprobs
        if not count or not self.who.sends_logprobs:
            return None
        likely = self.who.first_tokens(self.order.text, count) or [
            (words.split(" ", maxsplit=1)[0], 0.0)
        ]
        first = words.split(" ", maxsplit=1)[0]
        told = dict(likely).get(first, math.log(1e-6))
        if not self.order.chat:
            return {"tokens": [first], "token_logprobs": [told], "top_logprobs": [dict(likely)]}
        listed = [{"token": t, "logprob": p, "bytes": list(t.encode())} for t, p in likely]
        return {
            "content": [{"token": first, "logprob": told, "top_logprobs": listed}],
            "refusal": None,
        }

    def _model(self) -> str:
        if self.behaviour == "wrong_model":
            return "another-model-0613"
        return self.who.models[self.number % len(self.who.models)] or self.order.model

    def _fingerprint(self) -> str:
        if self.behaviour == "other_backend":
            return "fp_other"
        return self.who.fingerprints[self.number % len(self.who.fingerprints)]

    def _usage(self, hidden: int, written: int) -> dict[str, Any]:
        read = _tokens(self.order.text) + 4
        return {
            "prompt_tokens": read,
            "completion_tokens": hidden + written,
            "total_tokens": read + hidden + written,
            "completion_tokens_details": {"reasoning_tokens": hidden},
        }

    def _echo(self) -> Mapping[str, Any]:
        names = ("temperature", "top_p", "seed") if self.who.echoes else ()
        return {name: self.order.wish[name] for name in names if name in self.order.wish}


def _words(told: Any) -> Any:
    """What makes two requests the same conversation."""
    return (told.get("messages"), told.get("prompt")) if isinstance(told, dict) else None


def _tokens(words: str) -> int:
    return math.ceil(len(words) / 4)


def _told(trouble: tuple[int, Any, Mapping[str, str]]) -> Response:
    status, body, headers = trouble
    return JSONResponse(
        body, status, headers={"x-request-id": f"req_{uuid.uuid4().hex}", **headers}
    )


def _unauthorised(request: Request) -> str:
    """The maker echoes the ends of a wrong key, so a client must not repeat the message as it is."""
    key = request.headers.get("authorization", "").partition(" ")[2].strip()
    shown = f"{key[:8]}{'*' * 12}{key[-4:]}" if len(key) > 12 else "*" * len(key)
    return f"Incorrect API key provided: {shown}."
