"""Orders of options, and models whose answers follow places."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.benchmarks.permuting import UNUSABLE, Choice, consistency, orders


@given(st.integers(0, 10**6), st.text(max_size=8))
def test_in_as_many_orders_as_options_each_option_stands_once_in_each_place(
    seed: int, item: str
) -> None:
    some = orders(3, 3, seed, item)
    assert len(set(some)) == 3
    for place in range(3):
        assert sorted(order[place] for order in some) == [0, 1, 2]
    assert orders(3, 3, seed, item) == some
    assert len(set(orders(3, 6, seed, item))) == 6


def test_the_option_that_is_always_third_stands_everywhere() -> None:
    places = Counter(orders(3, 2, 1, str(n))[0].index(2) for n in range(600))
    assert all(150 < places[place] < 250 for place in range(3))


def test_more_orders_than_there_are_kinds_of_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 6"):
        orders(3, 7, 0, "x")


def asked(items: int, of_place: bool, seed: int = 0) -> dict[str, list[Choice]]:
    rng = random.Random(seed)
    chosen = {}
    for n in range(items):
        liked = rng.randrange(3)
        chosen[str(n)] = [
            Choice(order[0], 0) if of_place else Choice(liked, order.index(liked))
            for order in orders(3, 3, seed, str(n))
        ]
    return chosen


def test_a_model_that_picks_a_place_is_unusable() -> None:
    """What was seen on a small model: the answer changed on 80 of 80 items."""
    told = consistency(asked(80, of_place=True), 3)
    assert (told.changed.value, told.usable) == (1.0, False)
    assert told.why_not.startswith(f"{UNUSABLE}: the answer changed on 80 of 80 items")
    assert told.places == (240, 0, 0)
    assert told.places_p is not None and told.places_p < 1e-9


def test_a_model_that_picks_options_is_usable() -> None:
    told = consistency(asked(30, of_place=False), 3)
    assert (told.changed.value, told.why_not) == (0.0, "")
    assert told.places == (30, 30, 30)
    assert told.places_p == pytest.approx(1.0)


def test_a_guessing_model_is_unusable() -> None:
    rng = random.Random(3)
    chosen = {str(n): [Choice(rng.randrange(3), 0) for _ in range(3)] for n in range(60)}
    assert not consistency(chosen, 3).usable


def test_agreement_on_so_few_items_that_guessing_gives_it_is_not_enough() -> None:
    told = consistency({"1": [Choice(1, 0), Choice(1, 1)]}, 3)
    assert not told.usable
    assert "not shown to be above the 33 % that guessing gives" in told.why_not


def test_items_without_an_answer_in_every_order_are_not_compared() -> None:
    chosen = asked(20, of_place=False)
    chosen["0"][1] = Choice(None, None)
    chosen["1"] = chosen["1"][:2]
    told = consistency(chosen, 3)
    assert (told.items, told.compared) == (20, 18)
    nobody = consistency({"1": [Choice(None, None)] * 3}, 3)
    assert nobody.changed.value is None
    assert "has an answer in every order" in nobody.changed.reason
    assert not nobody.usable
    assert not consistency({}, 3).usable
