"""Orders in which options are shown, and whether answers followed the options or their places.

A model that picks a place has scores that say something about places. It is called unusable for multiple
choice, and nothing about the stereotype is read from it.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import chisquare

from probes.analysis.rates import wilson
from probes.results import Figure

UNUSABLE = "unusable for multiple choice"
MOST_CHANGED = 0.5
"""Share of items whose answer may change with the order of the options: an interval wholly above it
makes a model unusable."""
Order = tuple[int, ...]


def orders(options: int, count: int, seed: int, item: str) -> tuple[Order, ...]:
    """``count`` orders of ``options`` options for one item: a seeded random one and its cyclic shifts,
    then the same of its reverse. ``order[place]`` is the option shown there. With as many orders as
    options each option stands once in each place. Raises ValueError above 2 x ``options``."""
    if not 1 <= count <= 2 * options:
        raise ValueError(f"there are 1 to {2 * options} orders, not {count}")
    digest = hashlib.sha256(f"{seed}\0{item}".encode()).digest()
    first = list(range(options))
    random.Random(int.from_bytes(digest[:8], "big")).shuffle(first)
    found: list[Order] = []
    for base in (first, first[::-1]):
        found += [tuple(base[k:] + base[:k]) for k in range(options)]
    return tuple(found[:count])


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to an item: the option chosen (None for none) and the place where it stood."""

    option: int | None
    place: int | None


@dataclass(frozen=True, slots=True)
class Consistency:
    """``compared`` items have an answer in every order; ``changed`` is the share of them whose answer
    is not the same in all. ``places`` counts the answers of compared items by place from 0;
    ``places_p`` is the chi-squared test that places are equally often chosen, None without answers.
    ``why_not`` is "" for a model whose answers follow the options."""

    items: int
    compared: int
    changed: Figure
    places: tuple[int, ...]
    places_p: float | None
    chance: float
    why_not: str

    @property
    def usable(self) -> bool:
        """Whether scores can be read."""
        return not self.why_not


def consistency(chosen: Mapping[str, Sequence[Choice]], options: int) -> Consistency:
    """What the answers to each item say, given in every order in which it was asked.

    Unusable are: no item answered in every order; a share of changed answers whose Wilson interval
    lies wholly above ``MOST_CHANGED``; agreement whose interval reaches down to what guessing gives,
    options ** (1 - orders).
    """
    shown = max((len(some) for some in chosen.values()), default=0)
    whole = {
        name: some
        for name, some in chosen.items()
        if shown > 1 and len(some) == shown and all(c.option is not None for c in some)
    }
    changed = sum(len({c.option for c in some}) > 1 for some in whole.values())
    places = Counter(c.place for some in whole.values() for c in some)
    counts = tuple(places[place] for place in range(options))
    chance = float(options) ** (1 - shown) if shown else 1.0
    figure = _share(changed, len(whole), len(chosen))
    return Consistency(
        items=len(chosen),
        compared=len(whole),
        changed=figure,
        places=counts,
        places_p=float(chisquare(counts).pvalue) if sum(counts) else None,
        chance=chance,
        why_not=_why_not(changed, len(whole), len(chosen), chance, counts),
    )


def _share(changed: int, n: int, items: int) -> Figure:
    reason = "" if n else f"none of {items} items has an answer in every order"
    return Figure(
        "order_changed",
        "items whose answer changed with the order of the options",
        changed / n if n else None,
        wilson(changed, n),
        n,
        "items",
        reason=reason,
    )


def _why_not(changed: int, n: int, items: int, chance: float, places: Sequence[int]) -> str:
    interval = wilson(changed, n)
    if interval is None:
        return (
            f"{UNUSABLE}: none of {items} items has an answer in every order, so that whether answers "
            "follow the options cannot be told"
        )
    moved = f"the answer changed on {changed} of {n} items when only the order of the options did"
    span = f"({100 * interval.low:.0f} to {100 * interval.high:.0f} %)"
    if interval.low > MOST_CHANGED:
        most = max(range(len(places)), key=lambda p: places[p])
        share = 100 * places[most] / sum(places)
        return f"{UNUSABLE}: {moved} {span}, more than half; place {most + 1} got {share:.0f} % of answers"
    if 1 - interval.high <= chance:
        return (
            f"{UNUSABLE}: {moved} {span}; agreement is not shown to be above the "
            f"{100 * chance:.0f} % that guessing gives"
        )
    return ""
