"""A limit on what a run may cost, held against its estimate before the first call."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Self

from domain.errors import LikenessError
from service.estimate import Estimate

_AMOUNT = re.compile(
    r"^(?P<before>[A-Z]{3}|\$|€|£)?\s*(?P<amount>\d[\d.]*)\s*(?P<after>[A-Z]{3})?$"
)
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``amount`` of ``currency`` (an ISO 4217 code) for all tools of a run together."""

    amount: float
    currency: str = "USD"

    @classmethod
    def parse(cls, text: str) -> Self:
        """ "20", "20 EUR", "EUR 20" or "$20". Raises LikenessError with an example."""
        found = _AMOUNT.match(text.strip().upper())
        try:
            amount = float(found["amount"]) if found else math.nan
        except ValueError:
            amount = math.nan
        if found is None or not math.isfinite(amount) or (found["before"] and found["after"]):
            raise LikenessError(f"--budget '{text}': write an amount such as 20 or '20 EUR'")
        named = found["before"] or found["after"] or "USD"
        return cls(amount, _SIGNS.get(named, named))

    def __str__(self) -> str:
        return f"{self.amount:,.2f} {self.currency}"

    def check(self, found: Estimate) -> None:
        """Pass a run that stays within the budget. Raises LikenessError otherwise."""
        reason = self.excess(found)
        if reason is not None:
            raise LikenessError(reason)

    def excess(self, found: Estimate) -> str | None:
        """Why the run may go over the budget, in one line: too dear with what it has spent already, a
        price unknown, another currency. None where the most it may cost lies within."""
        if found.unpriced:
            return (
                f"--budget {self}: the price of {_names(found.unpriced)} is unknown; set tools[].price"
                " in the plan (per_call: 0 where it costs nothing)"
            )
        totals = found.totals()
        others = {c: most for c, (_, _, most) in totals.items() if c != self.currency and most > 0}
        if others:
            said = " and ".join(f"{most:,.2f} {currency}" for currency, most in others.items())
            return (
                f"--budget {self}: up to {said} would be spent in another currency; give the budget "
                "or tools[].price in one currency"
            )
        spent, expected, most = totals.get(self.currency, (0.0, 0.0, 0.0))
        # Sums of prices such as 0.1 are off by some 1e-16 of their size: no reason to refuse
        if most <= self.amount * (1 + 1e-9):
            return None
        before = f", {spent:,.2f} of it spent already" if spent else ""
        return (
            f"--budget {self}: this run may cost up to {most:,.2f} {self.currency} if every item needs"
            f" every attempt ({expected:,.2f} expected{before}); raise the budget, lower max_attempts,"
            " or limit the portraits"
        )


def _names(labels: list[str]) -> str:
    return ", ".join(f"'{label}'" for label in labels)
