"""Keeps the money spent below a limit: what a call may cost at most is set aside before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from domain.errors import LikenessError
from probes.asking.cost import Budget, most
from probes.asking.endpoint import Endpoint
from probes.calls import Call, Reply


class Spending:
    """Of one run, in one event loop. Without a budget everything may be spent."""

    def __init__(self, endpoint: Endpoint, budget: Budget | None, known: Iterable[Reply]) -> None:
        """``known`` are replies that were paid for before. Raises LikenessError where the budget
        cannot be kept."""
        self._price, self._budget = endpoint.price, budget
        if budget is not None and endpoint.price is None:
            raise LikenessError("a budget needs a price: give the endpoint one in the plan")
        if budget is not None and endpoint.price and budget.currency != endpoint.price.currency:
            raise LikenessError(
                f"the budget is in {budget.currency}, the price in {endpoint.price.currency}"
            )
        self.spent = sum(reply.cost or 0.0 for reply in known)
        self._aside = 0.0
        self._changed = asyncio.Event()

    async def set_aside(self, call: Call) -> bool:
        """Set aside what an attempt at ``call`` costs at most; False where that may pass the limit.
        What others have set aside may come back, so they are waited for before saying so."""
        if self._price is None or self._budget is None:
            return True
        cost = most(call, self._price)
        while self.spent + self._aside + cost > self._budget.amount:
            if self._aside <= 0 or self.spent + cost > self._budget.amount:
                return False
            self._changed.clear()
            await self._changed.wait()
        self._aside += cost
        return True

    def settle(self, call: Call, reply: Reply | None, maybe_billed: bool = False) -> float | None:
        """What the attempt came to, None without a price: by the tokens that ``reply`` counts, the
        most where it counts none or where no reply came of a request that was
        ``maybe_billed``."""
        if self._price is None:
            return None
        bound = most(call, self._price)
        cost = bound if maybe_billed else 0.0
        if reply is not None and reply.prompt_tokens is not None:
            cost = self._price.of(reply.prompt_tokens, reply.completion_tokens or 0)
        elif reply is not None:
            cost = bound
        self.spent += cost
        if self._budget is not None:
            self._aside = max(0.0, self._aside - bound)
            if self._aside < 1e-12:
                self._aside = 0.0
            self._changed.set()
        return cost
