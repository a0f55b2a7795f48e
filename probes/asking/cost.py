"""What asking will cost, before it is asked, and the limit it must not pass."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from domain.errors import LikenessError
from probes.asking.endpoint import Endpoint, TokenPrice
from probes.calls import Call

PER_MESSAGE = 4
"""Tokens around each message of a conversation (role and separators)."""
WRITTEN_LIKELY = 1 / 3
"""Share of ``max_tokens`` that an answer is taken to fill; a continuation fills all of it."""
FIRST_WORD_S, TOKENS_PER_S = 1.0, 50.0
"""For the guess of the time: seconds before a reply begins, and its speed afterwards."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one run may cost, what was spent on remembered replies included."""

    amount: float
    currency: str = "USD"

    def __post_init__(self) -> None:
        if not 0 <= self.amount < math.inf:
            raise LikenessError("a budget is an amount of 0 or more")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A guess, made without asking anyone. ``prompt_tokens`` is likely within a third;
    ``completion_tokens_most`` is a bound. Costs are None without a price."""

    calls: int
    prompt_tokens: int
    completion_tokens_most: int
    cost_likely: float | None
    cost_most: float | None
    currency: str
    seconds: float


def estimate(calls: Iterable[Call], endpoint: Endpoint) -> Estimate:
    """What ``calls`` will read, write, cost and take at ``endpoint``."""
    number, read, read_most, written, written_most = 0, 0, 0, 0.0, 0
    for call in calls:
        number += 1
        read += prompt_tokens(call)
        read_most += prompt_tokens_most(call)
        written += _written(call)
        written_most += call.sampling.max_tokens
    price = endpoint.price
    waiting = (number * FIRST_WORD_S + written / TOKENS_PER_S) / endpoint.concurrency
    paced = (number - 1) / endpoint.rate.calls * endpoint.rate.seconds if endpoint.rate else 0.0
    return Estimate(
        number,
        read,
        written_most,
        price.of(read, written) if price else None,
        price.of(read_most, written_most) if price else None,
        price.currency if price else "",
        max(waiting, paced, 0.0),
    )


def prompt_tokens(call: Call) -> int:
    """Tokens that ``call`` sends, by its letters: four to a token in alphabets, one each in scripts
    of syllables and words, which hold for byte-pair vocabularies within a third."""
    return _around(call) + math.ceil(sum(0.25 if c < "\u2e80" else 1.0 for c in _sent(call)))


def prompt_tokens_most(call: Call) -> int:
    """More than ``call`` will be counted as by any vocabulary in use: two letters to a token, and
    three tokens to a letter of the wide scripts."""
    return _around(call) + math.ceil(sum(0.5 if c < "\u2e80" else 3.0 for c in _sent(call)))


def most(call: Call, price: TokenPrice) -> float:
    """The bound on what one attempt at ``call`` costs."""
    return price.of(prompt_tokens_most(call), call.sampling.max_tokens)


def _sent(call: Call) -> str:
    return call.prompt if call.kind == "completion" else "".join(m.content for m in call.messages)


def _around(call: Call) -> int:
    return PER_MESSAGE * (len(call.messages) + 1)


def _written(call: Call) -> float:
    share = 1.0 if call.sampling.open_ended else WRITTEN_LIKELY
    return call.sampling.max_tokens * share
