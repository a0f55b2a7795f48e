"""How surprised a model is by a template: too easy and it does not think, too hard and it guesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

BAND = (15.0, 30.0)
"""Perplexities within which a template is kept, as published; it depends on the tokeniser."""
Place = Literal["inside", "below", "above", "unknown"]
NextToken = Callable[[str], Mapping[str, float]]
"""Text so far -> its likeliest next tokens with natural log-probabilities (``Reply.top_logprobs``)."""
Split = Callable[[str], Sequence[str]]
"""A tokeniser: text -> pieces that join to it again."""


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Of one text. ``value`` is exp(-mean log-probability) over ``tokens`` tokens, None with a
    ``reason``. ``bound`` True: tokens outside the list that the model gave count as its least likely
    member, so that the true value is at least this. ``tokeniser`` names whose tokens were counted.
    """

    template: str
    value: float | None
    place: Place
    tokens: int
    tokeniser: str
    bound: bool = False
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The figure in words."""
        if self.value is None:
            return f"'{self.template}': no perplexity: {self.reason}"
        least = "at least " if self.bound else ""
        low, high = BAND
        return (
            f"'{self.template}': perplexity {least}{self.value:.1f} over {self.tokens} tokens "
            f"of {self.tokeniser}: {self.place} of the band {low:g} to {high:g}"
        )


def from_echo(template: str, logprobs: Sequence[float | None], tokeniser: str) -> Perplexity:
    """From the log-probabilities of the prompt's own tokens, as servers echo them. The first token has
    none (None): it is left out."""
    known = [p for p in logprobs if p is not None]
    return _made(template, known, tokeniser, bound=False)


def by_walking(
    template: str, text: str, next_token: NextToken, split: Split, tokeniser: str
) -> Perplexity:
    """For servers that echo nothing: ``split`` cuts ``text`` into the model's tokens, and each is
    looked up among the likeliest next ones after the text before it. The first token is left out.

    One request a token. A token that the list lacks counts as its last member (``bound``).
    """
    pieces = list(split(text))
    if "".join(pieces) != text:
        return Perplexity(
            template, None, "unknown", 0, tokeniser, reason="the tokens do not join to the text"
        )
    found: list[float] = []
    bound = False
    so_far = pieces[0] if pieces else ""
    for piece in pieces[1:]:
        listed = next_token(so_far)
        if not listed:
            return Perplexity(
                template,
                None,
                "unknown",
                0,
                tokeniser,
                reason="the model gives no log-probabilities",
            )
        bound = bound or piece not in listed
        found.append(listed.get(piece, min(listed.values())))
        so_far += piece
    return _made(template, found, tokeniser, bound=bound)


def _made(template: str, known: Sequence[float], tokeniser: str, *, bound: bool) -> Perplexity:
    if not known:
        return Perplexity(
            template, None, "unknown", 0, tokeniser, reason="no token has a log-probability"
        )
    if any(not math.isfinite(p) or p > 1e-6 for p in known):
        return Perplexity(
            template,
            None,
            "unknown",
            len(known),
            tokeniser,
            reason="a log-probability is above 0 or not finite",
        )
    value = math.exp(-sum(known) / len(known))
    low, high = BAND
    place: Place = "below" if value < low else "above" if value > high else "inside"
    if bound and place != "above":
        place = "unknown"
        return Perplexity(
            template, value, place, len(known), tokeniser, True,
            "tokens outside the model's list: the true value may lie higher",
        )  # fmt: skip
    return Perplexity(template, value, place, len(known), tokeniser, bound)
