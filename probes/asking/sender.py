"""One call from its first attempt to its reply: whatever happens on the way, a reply comes back."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from probes.asking import replies
from probes.asking.body import CHAT, SYSTEM, TOKENS, Taken, body, parameters, path_of, wished
from probes.asking.endpoint import Endpoint
from probes.asking.pace import Pace
from probes.asking.spending import Spending
from probes.asking.trouble import Trouble, judge, one_line
from probes.asking.wire import Answer, Broken, Wire
from probes.calls import Call, Reply

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Bounds of the back-off where the server names no wait: anything between 0 and the first, doubled
with each attempt up to the second ("full jitter")."""
OUT_OF_MONEY = "budget"
NOT_SENT = "not sent: "
"""How the error of a call begins that never left this machine."""


@dataclass(slots=True)
class _Attempts:
    """What became of one call so far."""

    call: Call
    wish: Mapping[str, Any]
    began: float
    sent: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    waited: float = 0.0
    cost: float | None = None
    latency: float | None = None
    at: str = ""
    last: str = ""
    answer: Answer | None = None
    changed: set[str] = field(default_factory=set)

    def pay(self, cost: float | None) -> None:
        """Add what an attempt came to."""
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def reply(self, **told: Any) -> Reply:
        """The call's reply, with the facts that every one has."""
        answer = self.answer
        return Reply(
            http_status=answer.status if answer else None,
            request_id=answer.request_id if answer else None,
            requested=self.wish,
            sent=self.sent,
            attempts=self.number,
            latency_s=self.latency,
            waited_s=round(time.monotonic() - self.began, 4) if self.number else None,
            cost=self.cost,
            at=self.at,
            **told,
        )


class Sender:
    """Sends calls to one endpoint, one after another. ``taken``, ``pace`` and ``spending`` are
    shared by all senders of a run."""

    def __init__(self, endpoint: Endpoint, taken: Taken, pace: Pace, spending: Spending) -> None:
        self._endpoint, self._taken = endpoint, taken
        self._pace, self._spending = pace, spending
        self._wire = Wire(endpoint)
        # Not the run's seed: two runs that were thrown out together must not come back together
        self._jitter = random.Random()

    async def close(self) -> None:
        """Close the connection."""
        await self._wire.close()

    async def send(self, call: Call) -> Reply:
        """The reply to ``call``. Never raises for what a server or a network does."""
        doing = _Attempts(call, wished(call), time.monotonic())
        while True:
            if not await self._pace.turn():
                return self._unsent(doing, self._pace.halted)
            if not await self._spending.set_aside(call):
                self._pace.halt(OUT_OF_MONEY)
                return self._unsent(doing, OUT_OF_MONEY)
            trouble = await self._attempt(doing)
            if isinstance(trouble, Reply):
                return trouble
            ended = self._ended(doing, trouble)
            if ended is not None:
                return ended
            if trouble.kind == "retry":
                await self._wait(doing, trouble)

    async def _attempt(self, doing: _Attempts) -> Reply | Trouble:
        call = doing.call
        doing.number += 1
        doing.at = datetime.now(UTC).isoformat(timespec="milliseconds")
        doing.sent = parameters(call, doing.wish, self._taken)
        doing.answer = None
        reply: Reply | None = None
        billed = True  # until it is known otherwise: a cancelled request may have been answered
        try:
            content = body(call, self._endpoint.model, doing.sent)
            doing.answer = answer = await self._wire.post(path_of(call), content)
            doing.latency = answer.seconds
            told = self._read(doing, answer)
            billed = not isinstance(told, Trouble) or answer.status == 200
            if isinstance(told, Trouble):
                return told
            reply = doing.reply(**told)
            self._pace.answered()
        except Broken as broken:
            billed = broken.maybe_billed
            return Trouble("retry" if broken.retryable else "fatal", str(broken))
        finally:
            doing.pay(self._spending.settle(call, reply, billed))
        return replace(reply, cost=doing.cost) if doing.cost is not None else reply

    def _read(self, doing: _Attempts, answer: Answer) -> dict[str, Any] | Trouble:
        found = answer.found
        inner = found.get("error") if isinstance(found, Mapping) else None
        if answer.status != 200 or inner:
            status = answer.status
            if status == 200:  # some routers wrap what a back-end answered
                code = inner.get("code") if isinstance(inner, Mapping) else None
                status = code if isinstance(code, int) and 400 <= code < 600 else 500
            secrets = self._endpoint.secrets
            return judge(status, answer.headers, found, answer.text, doing.sent, secrets)
        try:
            return replies.read(doing.call, found)
        except replies.NoReply as wrong:
            shown = f" ({answer.headers.get('content-type', 'no type')})" if found is None else ""
            return Trouble("retry", f"HTTP 200, but {wrong}{shown}")

    def _ended(self, doing: _Attempts, trouble: Trouble) -> Reply | None:
        """The reply with which ``trouble`` ends the call; None where it is to be sent again."""
        doing.last = trouble.sentence
        told: dict[str, Any] = {"error": trouble.sentence}
        if trouble.kind == "filtered":
            told["filtered"] = True
        elif trouble.kind == "cut":
            told = {"finish_reason": "length"}
        elif trouble.kind == "stop":
            self._pace.halt(trouble.sentence)
        elif trouble.kind == "parameter" and self._without(trouble, doing):
            return None
        elif trouble.kind == "retry":
            return self._given_up(doing, trouble)
        elif (
            doing.answer is not None and doing.answer.status == 404 and path_of(doing.call) == CHAT
        ):
            self._pace.halt(f"{trouble.sentence}; does 'base_url' end where /{CHAT} begins?")
        return doing.reply(**told)

    def _given_up(self, doing: _Attempts, trouble: Trouble) -> Reply | None:
        """None while there are attempts and time left for another one."""
        if self._pace.halted:
            return self._unsent(doing, self._pace.halted)
        wait, allowed = trouble.wait or 0.0, self._endpoint.max_wait_s
        in_time = doing.waited + wait <= allowed
        if doing.number < self._endpoint.max_attempts and in_time:
            return None
        times = f" ({doing.number} attempts)" if doing.number > 1 else ""
        long = "" if in_time else f"asked to wait {wait:g} s, {allowed:g} s are allowed: "
        sentence = f"{long}{trouble.sentence}{times}"
        if wait > allowed:  # the limit is the server's, not this call's
            self._pace.halt(sentence)
        self._pace.given_up(sentence)
        return doing.reply(error=sentence)

    def _without(self, trouble: Trouble, doing: _Attempts) -> bool:
        """Change the parameter that was refused, for this call and all to come; False where this
        call was without it already, or has changed it before."""
        name = trouble.parameter
        if name in doing.changed:
            return False
        doing.changed.add(name)
        if name in TOKENS:
            if name == self._taken.tokens_parameter:
                self._taken.tokens_parameter = self._taken.other_tokens_parameter()
            return path_of(doing.call) == CHAT
        if name not in doing.sent and not (
            name == SYSTEM and any(m.role == "system" for m in doing.call.messages)
        ):
            return False
        self._taken.drop(name, trouble.sentence)
        return True

    async def _wait(self, doing: _Attempts, trouble: Trouble) -> None:
        highest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(doing.number - 1, 10))
        jitter = self._jitter.uniform(0.0, highest)
        wait = jitter
        if trouble.wait is not None:
            # The named wait holds everybody; the jitter keeps them from starting at one moment
            self._pace.hold(trouble.wait)
            wait = trouble.wait + min(jitter, 0.1 * trouble.wait + 0.05)
        wait = min(wait, max(0.0, self._endpoint.max_wait_s - doing.waited) + 1.0)
        doing.waited += wait
        await self._pace.sleep(wait)

    def _unsent(self, doing: _Attempts, reason: str) -> Reply:
        """Nothing more is sent."""
        told = f"{doing.last} (not sent again: {reason})" if doing.number else f"{NOT_SENT}{reason}"
        return doing.reply(error=one_line(told, self._endpoint.secrets))
