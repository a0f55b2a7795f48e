"""What the calls of each tool came to: from the ledger's rows to the facts of the report."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from domain.measurements import Outcome
from service.report.calls import CLOCK_OFF
from service.report.model import ToolCalls
from service.store.tables import WARM_UP

IDS_SHOWN = 3
UNCHANGED = "the answer is the picture that was sent, unchanged"
"""The warning on an item whose tool did nothing and called it a success."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
Row = Mapping[str, Any]


def tool_calls(
    labels: Sequence[str], items: Sequence[Row], calls: Sequence[Row]
) -> list[ToolCalls]:
    """One a tool, in the order of ``labels``, from rows of the ledger's tables."""
    tool_of = {i["item_id"]: i["tool"] for i in items}
    mine: dict[str, list[Row]] = {label: [] for label in labels}
    for call in calls:
        mine.setdefault(tool_of.get(call["item_id"], ""), []).append(call)
    return [_of(label, [i for i in items if i["tool"] == label], mine[label]) for label in labels]


def maybe_billed(call: Row) -> bool:
    """Whether work may have been done, and be charged, whose result never came."""
    return call["ended"] is None or (call["meta"] or {}).get("maybe_billed") is True


def is_unchanged(item: Row) -> bool:
    """Whether the answer was the picture that was sent: its bytes, or the same pixels."""
    same = item["edited"] is not None and item["edited"] == item["original"]
    return same or item["evidence"].get("unchanged") is True


def skew_lines(found: Iterable[ToolCalls]) -> list[str]:
    """A sentence for each tool whose clock is far from ours."""
    return [
        f"{c.tool}: its server's clock is {abs(c.clock_skew_s):.0f} s "
        f"{'ahead of' if c.clock_skew_s > 0 else 'behind'} this machine's; servers that sign by "
        "time refuse such calls"
        for c in found
        if c.clock_skew_s is not None and abs(c.clock_skew_s) > CLOCK_OFF
    ]


def _of(label: str, items: Sequence[Row], calls: Sequence[Row]) -> ToolCalls:
    wanted = [c for c in calls if c["kind"] != WARM_UP]
    edited = [c for c in wanted if c["result"] == "edited"]
    called = {c["item_id"] for c in wanted}
    seconds = [c["seconds"] for c in edited if c["seconds"] is not None]
    skews = [s for c in calls if (s := _number((c["meta"] or {}).get("clock_skew_s"))) is not None]
    outcomes = Counter(i["outcome"] for i in items)
    # The doubtful ones first: they are what one asks a maker about
    ids = [c["request_id"] for c in sorted(calls, key=maybe_billed, reverse=True)]
    return ToolCalls(
        tool=label,
        calls=len(wanted),
        items_called=len(called),
        retries=len(wanted) - len(called),
        failed=outcomes[Outcome.FAILED.value],
        refused=outcomes[Outcome.REFUSED.value],
        maybe_billed=sum(maybe_billed(c) for c in calls),
        warm_ups=len(calls) - len(wanted),
        seconds_median=median(seconds) if seconds else None,
        models=Counter(i["model"] for i in items if i["edited"] and i["model"]),
        clock_skew_s=median(skews) if skews else None,
        cost=_cost(calls),
        unchanged=sum(UNCHANGED in i["warnings"] for i in items),
        notes=_notes(items),
        first_request_ids=tuple(dict.fromkeys(i for i in ids if i))[:IDS_SHOWN],
    )


def _notes(items: Sequence[Row]) -> dict[str, int]:
    found: dict[str, tuple[str, int]] = {}
    for item in items:
        note = str((item.get("meta") or {}).get("note") or "") if item["edited"] else ""
        if note:
            kind = _NUMBER.sub("#", note)
            first, count = found.get(kind, (note, 0))
            found[kind] = first, count + 1
    return dict(found.values())


def _cost(calls: Sequence[Row]) -> dict[str, float]:
    """What the tool itself said that its calls cost, by currency."""
    found: dict[str, float] = {}
    for call in calls:
        cost = (call["meta"] or {}).get("cost")
        amount = _number(cost.get("amount")) if isinstance(cost, Mapping) else None
        if amount is not None and isinstance(cost, Mapping):
            currency = str(cost.get("currency") or "USD")
            found[currency] = found.get(currency, 0.0) + amount
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
