"""The section "Calls and cost": what each tool was asked, what it cost, and what to be wary of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from domain.tools import CLOCK_OFF_S
from service.report.model import RunData, ToolCalls
from service.report.wording import duration, figure, plural

CLOCK_OFF = CLOCK_OFF_S
MODELS_NAMED = 4


@dataclass(frozen=True)
class CallsRow:
    """One tool in the table. ``seconds``, ``cost`` and ``models`` are ready to read."""

    calls: ToolCalls
    seconds: str
    cost: Sequence[str]
    models: Sequence[str]


@dataclass(frozen=True)
class Notice:
    """A sentence about one tool that a reader of its figures must know. ``grave`` when it touches
    the figures themselves, not the bill."""

    tool: str
    text: str
    grave: bool = False


def calls_rows(data: RunData) -> list[CallsRow]:
    """The tools that were called, in the plan's order."""
    prices = {t.label: t.price for t in data.plan.tools}
    rows = []
    for one in data.calls:
        cost = [f"{money(amount, currency)}" for currency, amount in sorted(one.cost.items())]
        price = prices.get(one.tool)
        if price is not None and not price.per_megapixel and one.calls:
            said = money(price.per_call * (one.calls + one.warm_ups), price.currency)
            cost.append(f"at most {said} by the plan's price")
        rows.append(CallsRow(one, _seconds(one), cost, _models(one.models)))
    return rows


def notices(data: RunData) -> list[Notice]:
    """What to be wary of, tool by tool; nothing for a tool whose calls went plainly."""
    return [notice for one in data.calls for notice in _notices(one)]


def _notices(one: ToolCalls) -> Iterator[Notice]:
    if len(one.models) > 1:
        served = ", ".join(_models(one.models))
        yield Notice(
            one.tool,
            f"answered as {len(one.models)} different models ({served}), so its figures may mix"
            " what two models do. Audit each by itself before relying on them.",
            grave=True,
        )
    if one.unchanged:
        yield Notice(
            one.tool,
            f"sent {plural(one.unchanged, 'picture')} back unchanged, as a success. No harm is"
            " measured on a picture that was not edited: its figures look better than the tool is.",
            grave=True,
        )
    for note, count in one.notes.items():
        yield Notice(
            one.tool,
            f"remarked on {count} of {plural(one.items_called, 'item')}: {note}",
            grave=True,
        )
    if one.maybe_billed:
        ids = ", ".join(one.first_request_ids)
        quote = f" Ids of its calls, to quote to its maker: {ids}." if ids else ""
        whose = "call that was cut off or whose answer" if one.maybe_billed == 1 else (
            "calls that were cut off or whose answers"
        )  # fmt: skip
        yield Notice(
            one.tool, f"may have billed {one.maybe_billed:,} {whose} did not arrive whole.{quote}"
        )
    if one.clock_skew_s is not None and abs(one.clock_skew_s) > CLOCK_OFF:
        behind = "behind" if one.clock_skew_s > 0 else "ahead of"
        yield Notice(
            one.tool,
            f"tells another time: this machine's clock is {duration(abs(one.clock_skew_s))}"
            f" {behind} its server's. A server that signs by time may refuse such requests.",
        )


def money(amount: float, currency: str) -> str:
    """ "1.36 USD"; small amounts keep three significant digits."""
    if amount == 0 or abs(amount) >= 1:
        return f"{amount:,.2f} {currency}"
    return f"{figure(amount)} {currency}"


def _seconds(one: ToolCalls) -> str:
    if one.seconds_median is None:
        return "–"
    return f"{figure(one.seconds_median)} s" if one.seconds_median >= 0.01 else "under 0.01 s"


def _models(models: Mapping[str, int]) -> list[str]:
    """Model strings with their items, the most frequent first."""
    ranked = sorted(models.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{name or 'no name given'}: {plural(n, 'item')}" for name, n in ranked]
    rest = len(named) - MODELS_NAMED
    return [*named[:MODELS_NAMED], f"{rest} more"] if rest > 0 else named


def calls_json(data: RunData) -> list[dict[str, Any]]:
    """The same for machines: every field of ToolCalls, with the notices as sentences."""
    return [
        asdict(one)
        | {
            "models": dict(one.models),
            "cost": dict(one.cost),
            "notes": dict(one.notes),
            "notices": [f"{n.tool} {n.text}" for n in _notices(one)],
        }
        for one in data.calls
    ]
