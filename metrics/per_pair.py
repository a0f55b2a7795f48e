"""Work that several metrics need is done once for each pair and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from metrics.pair import FacePair

T = TypeVar("T")


def once_per_pair(work: Callable[[FacePair], T]) -> Callable[[FacePair], T]:
    """Decorate ``work(pair)`` so that its result is kept while the pair lives."""
    kept: WeakKeyDictionary[Any, T] = WeakKeyDictionary()

    @wraps(work)
    def ask(pair: FacePair) -> T:
        if pair not in kept:
            kept[pair] = work(pair)
        return kept[pair]

    return ask
