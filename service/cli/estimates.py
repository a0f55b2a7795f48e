"""How an estimate is shown, on a screen and to machines."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.tools import Price
from service.budget import Budget
from service.estimate import Estimate, ToolEstimate, estimate
from service.plans import LoadedPlan
from service.report.calls import money
from service.report.wording import duration, plural

NOT_KNOWN_YET = (
    "Portraits without a readable picture or without a face are not sent; how many is known only once"
    " the audit has looked at them."
)

NOTHING_LEFT = "No tool needs to be called any more."


def reckon(
    loaded: LoadedPlan,
    ledger: Path | None,
    *,
    retry_failed: bool = False,
    budget: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Estimate the run, show it unless ``quiet``, and raise LikenessError where it may go over the
    ``budget``. ``ledger`` is that of a run to be resumed."""
    limit = None if budget is None else Budget.parse(budget)
    found = estimate(loaded, ledger, retry_failed)
    if as_json and not quiet:
        print(json.dumps(answer(found, limit)))
    elif not quiet:
        show(found, limit)
    if limit is not None:
        limit.check(found)


def show(found: Estimate, budget: Budget | None) -> None:
    """A table of the tools, then money, time and what leaves this machine, in sentences."""
    console = Console(file=sys.stdout)
    for text in _head(found):
        console.print(Text(text))
    table = Table("tool", "items", "calls", "Mpx a call", "price a call", "cost")
    for column in table.columns[1:4]:
        column.justify = "right"
    for t in found.tools:
        if not t.control:
            table.add_row(*map(Text, _row(t)))
    console.print(table)
    left = any(t.calls for t in found.tools)
    more = [*_time(found), *_leaving(found), NOT_KNOWN_YET] if left else [NOTHING_LEFT]
    for text in [*_prices(found), *_money(found, budget), *more]:
        console.print(Text(text))


def _head(found: Estimate) -> list[str]:
    controls = [t for t in found.tools if t.control]
    lines = [
        f"{plural(found.portraits, 'portrait')} of {plural(found.people, 'person', 'people')};"
        f" sizes taken from {found.sized} of them. No tool was called."
    ]
    if found.resumed:
        lines.append(f"Resumed: {plural(found.done, 'item')} of this run need no call any more.")
    if controls:
        items = sum(t.items for t in controls)
        lines.append(f"Controls, on this machine and free: {plural(items, 'item')}.")
    return lines


def _row(t: ToolEstimate) -> tuple[str, ...]:
    calls = f"{t.calls:,} to {t.calls_at_most:,}" if t.calls_at_most > t.calls else f"{t.calls:,}"
    return (
        t.tool,
        f"{t.items:,}",
        calls,
        "unknown" if t.megapixels is None else f"{t.megapixels:.2f}",
        price_words(t.price),
        _cost(t),
    )


def price_words(price: Price | None) -> str:
    """ "0.04 USD", "0.01 USD + 0.02 USD a megapixel", "nothing" or "unknown"."""
    if price is None:
        return "unknown"
    parts = [money(price.per_call, price.currency)] if price.per_call else []
    if price.per_megapixel:
        parts.append(f"{money(price.per_megapixel, price.currency)} a megapixel")
    return " + ".join(parts) or "nothing"


def _cost(t: ToolEstimate) -> str:
    if t.expected is None or t.at_most is None or t.price is None:
        return "unknown"
    if not t.at_most:
        return "nothing"
    most = money(t.at_most, t.price.currency)
    return most if t.at_most == t.expected else f"{money(t.expected, '').strip()} to {most}"


def _prices(found: Estimate) -> list[str]:
    """Where each price is from: it is a promise of nobody but its source."""
    lines = [
        f"Price of {t.tool}: {t.price.source}."
        for t in found.tools
        if t.price is not None and t.at_most and t.price.source
    ]
    warmed = [f"{t.warm_ups} for {t.tool}" for t in found.tools if t.warm_ups]
    lines += [
        f"{t.tool} cannot be set up now ({t.note}): reckoned by its general facts. An audit would not"
        " begin so."
        for t in found.tools
        if t.note
    ]
    return [*lines, *([f"Warm-up calls are among them: {', '.join(warmed)}."] if warmed else [])]


def _money(found: Estimate, budget: Budget | None) -> list[str]:
    lines = []
    for currency, (spent, expected, most) in sorted(found.totals().items()):
        if most:
            before = f", {money(spent, currency)} of it spent already" if spent else ""
            lines.append(
                f"Money: {money(expected, currency)} expected, at most {money(most, currency)}{before}."
            )
    if found.unpriced:
        lines.append(
            f"Money: unknown for {', '.join(found.unpriced)}: set tools[].price in the plan."
        )
    if not lines:
        lines.append("Money: nothing.")
    if budget is not None and budget.excess(found) is None:
        lines.append(f"Within the budget of {budget}.")
    return lines


def _time(found: Estimate) -> list[str]:
    bounds = [t for t in found.tools if t.seconds_at_least and not t.control]
    if not bounds:
        return [
            "Time: not known before the tools have been called; likeness tools check times one."
        ]
    slowest = max(bounds, key=lambda t: t.seconds_at_least or 0.0)
    why = f"rate limit {slowest.rate}" if slowest.rate else f"{slowest.concurrency} at a time"
    return [f"Time: at least {duration(slowest.seconds_at_least or 0)} ({slowest.tool}: {why})."]


def _leaving(found: Estimate) -> list[str]:
    sent = [t for t in found.tools if t.leaves and t.items]
    if not sent:
        return ["Nothing leaves this machine."]
    return [
        f"Leaves this machine: {plural(t.pictures, 'portrait')} of"
        f" {plural(t.people, 'person', 'people')}, in {plural(t.items, 'picture')}, to"
        f" {t.destination} ({t.tool})."
        for t in sent
    ]


def answer(found: Estimate, budget: Budget | None) -> dict[str, Any]:
    """Everything the screen shows, for machines. Unknown figures are null."""
    return {
        "portraits": found.portraits,
        "people": found.people,
        "sized": found.sized,
        "resumed": found.resumed,
        "items_done": found.done,
        "tools": [_tool(t) for t in found.tools],
        "totals": {
            currency: {"spent": spent, "expected": expected, "at_most": most}
            for currency, (spent, expected, most) in sorted(found.totals().items())
        },
        "price_unknown": found.unpriced,
        "budget": asdict(budget) if budget else None,
        "over_budget": budget.excess(found) if budget else None,
        "not_known_yet": NOT_KNOWN_YET,
    }


def _tool(t: ToolEstimate) -> dict[str, Any]:
    return asdict(t) | {
        "destination": t.destination.host or None,
        "remote": t.leaves,
        "rate": str(t.rate) if t.rate else None,
        "faces_sent": {"pictures": t.items, "portraits": t.pictures, "people": t.people}
        if t.leaves
        else None,
    }
