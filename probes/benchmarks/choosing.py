"""Which items of a benchmark are asked when not all are: some of every kind, whole pairs of questions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from probes.benchmarks.items import Item

Kind = Literal["ambiguous", "with", "against"]
SHARES: dict[Kind, float] = {"ambiguous": 0.5, "with": 0.25, "against": 0.25}
"""Half the items are ambiguous, a quarter each have a text that says what the stereotype says, and the
opposite; what one kind lacks is filled from the others."""


def kind_of(item: Item) -> Kind:
    """The kind of context that ``item`` has. A disambiguated item must have a direction."""
    if item.condition == "ambiguous":
        return "ambiguous"
    return "with" if item.label == item.towards else "against"


def choose(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """At most ``limit`` of ``items`` in their own order, drawn by ``seed``: shared out over ``SHARES``,
    then over templates in turn, the negative and the non-negative question of a context together.
    None takes all. Items without a direction are not asked: nothing could be read from the answer."""
    able = [item for item in items if item.towards is not None]
    if limit is None or limit >= len(able):
        return able
    queues = {kind: _queue([i for i in able if kind_of(i) == kind], seed) for kind in SHARES}
    taken: list[Item] = []
    for kind, share in SHARES.items():
        wanted = round(limit * share)
        taken += queues[kind][:wanted]
        queues[kind] = queues[kind][wanted:]
    rest = [item for queue in queues.values() for item in queue]
    taken = (taken + rest)[:limit]
    place = {id(item): number for number, item in enumerate(items)}
    return sorted(taken, key=lambda item: place[id(item)])


def _queue(items: Sequence[Item], seed: int) -> list[Item]:
    """Items in the order in which they are taken: templates in turn, each giving a pair."""
    rng = random.Random(seed)
    by_template: dict[tuple[str, str], dict[tuple[str, tuple[str, ...]], list[Item]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for item in items:
        by_template[item.cluster][item.context, tuple(sorted(item.options))].append(item)
    piles = []
    for contexts in by_template.values():
        pairs = [_pair(some) for some in contexts.values()]
        rng.shuffle(pairs)
        piles.append(pairs)
    rng.shuffle(piles)
    found: list[Item] = []
    left: list[Item] = []
    while any(piles):
        for pile in piles:
            if pile:
                first, more = pile.pop()
                found += first
                left += more
    return found + left


def _pair(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """One question of each polarity, and what more is asked about the same text."""
    firsts = {item.polarity: item for item in reversed(items)}
    pair = [item for item in items if firsts[item.polarity] is item]
    return pair, [item for item in items if firsts[item.polarity] is not item]
