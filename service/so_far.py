"""What the ledger of a run that is to be resumed knows already: what is left, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from domain.errors import LikenessError
from domain.measurements import Outcome
from domain.tools import Price
from service.store.ledger import CALLING, DONE, PLANNED, Ledger


@dataclass(frozen=True, slots=True)
class Asked:
    """Items of one tool with the portraits and people they show."""

    items: int
    portraits: frozenset[str]
    people: frozenset[str]


@dataclass(frozen=True, slots=True)
class SoFar:
    """The items and calls of the run, and the failed items that are to be called ``again``."""

    items: Sequence[Mapping[str, Any]]
    calls: Sequence[Mapping[str, Any]]
    subjects: Mapping[str, str]
    again: frozenset[str]
    _by_item: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, retry_failed: bool) -> SoFar | None:
        """The ledger at ``path``; None where the run has not planned its items yet: everything is left."""
        if not path.exists():
            raise LikenessError(f"{path.parent}: holds no run to resume")
        ledger = Ledger.at(path)
        try:
            items, calls = ledger.items(), ledger.calls()
            subjects = {r["portrait_id"]: r["subject_id"] for r in ledger.portraits()}
        finally:
            ledger.close()
        failed = (i for i in items if i["state"] == DONE and i["outcome"] == Outcome.FAILED.value)
        again = frozenset(i["item_id"] for i in failed) if retry_failed else frozenset()
        if not items:
            return None
        return cls(items, calls, subjects, again, {i["item_id"]: i["tool"] for i in items})

    @property
    def done(self) -> int:
        """Items that need no call any more."""
        return sum(not self._is_left(i) for i in self.items)

    def _is_left(self, item: Mapping[str, Any]) -> bool:
        return item["state"] in (PLANNED, CALLING) or item["item_id"] in self.again

    def left(self, label: str) -> Asked:
        """The items of one tool that still need a call."""
        mine = [i for i in self.items if i["tool"] == label and self._is_left(i)]
        ids = frozenset(i["portrait_id"] for i in mine)
        return Asked(len(mine), ids, frozenset(self.subjects.get(i, i) for i in ids))

    def _calls(self, label: str) -> Iterable[Mapping[str, Any]]:
        return (c for c in self.calls if self._by_item.get(c["item_id"]) == label)

    def seconds(self, label: str) -> float | None:
        """Median of the calls that brought a picture, None before there was one."""
        took = [
            float(c["seconds"])
            for c in self._calls(label)
            if c["result"] == "edited" and c["seconds"] is not None
        ]
        return median(took) if took else None

    def spent(self, label: str, price: Price | None, one: float | None) -> float:
        """What the tool said it charged, and for calls of which it said nothing the price."""
        total = 0.0
        for call in self._calls(label):
            said = (call["meta"] or {}).get("cost")
            if isinstance(said, Mapping) and price and said.get("currency") == price.currency:
                total += float(said.get("amount") or 0.0)
            else:
                total += one or 0.0
        return total
