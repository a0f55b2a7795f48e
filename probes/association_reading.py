"""What a reply says of an occupation: log-odds of two pronouns, a stated share, a chosen pronoun."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from probes.association_texts import Words
from probes.statuses import json_in, spoken

Bound = Literal["", "at least", "at most"]


@dataclass(frozen=True, slots=True)
class Odds:
    """``log_odds`` in nats, men's pronoun over women's. ``bound`` says that one of the two was not
    among the tokens told: the log-odds are then "at least" or "at most" this. ``mass`` is the
    probability of both together, as far as told."""

    log_odds: float
    bound: Bound
    mass: float


def variants(word: str, chat: bool) -> frozenset[str]:
    """The tokens that count as ``word``. Going on in a sentence it has a space before it, or, where
    a tokeniser or a script has none, not; as a reply of its own it may begin with a capital."""
    forms = {word, f" {word}"}
    if chat:
        forms |= {form.replace(word, word.capitalize()) for form in forms}
    return frozenset(forms)


def pronoun_odds(told: Mapping[str, float], words: Words, chat: bool) -> Odds | None:
    """Log-odds from the most likely next tokens with their natural log-probabilities; None where
    neither pronoun is among them. One that is not has at most the probability of the last one told,
    which bounds the log-odds on the side of 0."""
    # -9999 or minus infinity is how servers write "as good as never": such a token is not told
    told = {token: p for token, p in told.items() if math.exp(min(p, 0.0)) > 0}
    men = _mass(told, variants(words.men, chat))
    women = _mass(told, variants(words.women, chat))
    if not men and not women:
        return None
    least = math.exp(min(*told.values(), 0.0))
    bound: Bound = "" if men and women else ("at least" if men else "at most")
    odds = math.log((men or least) / (women or least))
    return Odds(odds, bound, men + women)


def _mass(told: Mapping[str, float], forms: frozenset[str]) -> float:
    return sum(math.exp(min(p, 0.0)) for token, p in told.items() if token in forms)


def chosen_pronoun(text: str, words: Words) -> Literal["men", "women"] | None:
    """Which of the two pronouns a short answer names; None for neither or both."""
    said = spoken(text)
    found = [
        who
        for who, word in (("men", words.men), ("women", words.women))
        if (word in said if _no_spaces(word) else re.search(rf"\b{re.escape(word)}\b", said, re.I))
    ]
    return None if len(found) != 1 else ("men" if found == ["men"] else "women")


def _no_spaces(word: str) -> bool:
    return bool(re.search(r"[\u3400-\u9fff]", word))


_NUMBER = r"(?<![\w.,])(\d{1,3}(?:[.,]\d+)?)"
_PER_CENT = r"\s*(?:%|％|percent\b|per cent\b|prozent\b|个百分点)"
_RANGE = re.compile(_NUMBER + r"\s*%?\s*(?:-|–|—|~|～|to|and|bis|und|到|至)\s*(\d{1,3}(?:[.,]\d+)?)" + f"(?:{_PER_CENT})?", re.I)  # fmt: skip
_MARKED = re.compile(_NUMBER + _PER_CENT, re.I)
_OUT_OF = re.compile(_NUMBER + r"\s*(?:/|out of|in every|in|of|von|aus)\s*(10|100|1000)\b", re.I)
_ZH_PER_CENT = re.compile(r"百分之\s*([0-9.]+|[零〇一二两三四五六七八九十百]+)")
_ZH_TENTHS = re.compile(r"([一二两三四五六七八九0-9])成(半)?")
_PLAIN = re.compile(_NUMBER + r"(?![\w])")
_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}


def stated_share(text: str, asked: str, other: str) -> tuple[float | None, str]:
    """The share in [0, 1] that an answer states for the group called ``asked``, or None and why.

    Taken are 85, 85 %, 85 percent, 0.85 (a decimal below 1 without a sign is a share), 17 out of 20
    is not (only out of 10, 100, 1000), ranges (their middle), JSON with one number, and in Chinese
    百分之八十五 and 八成. Of two figures that add up to 100 %, that of ``asked`` counts where the
    words say which it is. Several other figures are no answer.
    """
    said = spoken(text)
    found = _json_share(said)
    if found is None:
        found = _shares(said)
    if len(found) == 2 and abs(sum(found) - 1) < 0.011 and found[0] != found[1]:
        return _of_two(said, found, asked, other)
    distinct = sorted(set(found))
    if not distinct:
        return None, "no number in it"
    if len(distinct) > 1:
        return None, "several numbers in it"
    if not 0 <= distinct[0] <= 1:
        return None, f"{100 * distinct[0]:g} is no percentage"
    return distinct[0], ""


def _json_share(said: str) -> list[float] | None:
    if "{" not in said:
        return None
    told: Any = json_in(said)
    if not isinstance(told, dict):
        return None
    numbers = [v for v in told.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    texts = [str(v) for v in told.values() if isinstance(v, str)]
    if len(numbers) == 1:
        return [_as_share(str(numbers[0]))]
    return _shares(" ; ".join(texts)) if len(texts) == 1 and not numbers else None


def _shares(said: str) -> list[float]:
    """Figures of the first form that occurs; the more a form says, the earlier it is tried."""
    if found := _RANGE.findall(said):
        return [(_number(low) + _number(high)) / 200 for low, high in found]
    if found := _MARKED.findall(said):
        return [_number(n) / 100 for n in found]
    if found := _OUT_OF.findall(said):
        return [_number(n) / float(of) for n, of in found]
    if found := _ZH_PER_CENT.findall(said):
        return [
            (_zh_number(n) if n[0] in _DIGITS or n[0] in "十百" else float(n)) / 100 for n in found
        ]
    if found := _ZH_TENTHS.findall(said):
        return [(_zh_number(n) if n in _DIGITS else int(n)) / 10 + (0.05 if half else 0) for n, half in found]  # fmt: skip
    return [_as_share(n) for n in _PLAIN.findall(said)]


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _as_share(text: str) -> float:
    value = _number(text)
    return value if 0 < value < 1 else value / 100


def _zh_number(text: str) -> float:
    if text.startswith("百") or text.endswith("百"):
        return 100.0
    tens, ten, ones = text.partition("十")
    if not ten:
        return float(_DIGITS.get(text, 0))
    return 10.0 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


def _of_two(said: str, found: list[float], asked: str, other: str) -> tuple[float | None, str]:
    mine, theirs = (_place(said, word) for word in (asked, other))
    if mine is None or theirs is None:
        return None, "two numbers in it, and no word which is whose"
    return (found[0] if mine < theirs else found[1]), ""


def _place(said: str, word: str) -> int | None:
    # "men" lies within "women"
    hit = re.search(re.escape(word) if _no_spaces(word) else rf"\b{re.escape(word)}\b", said, re.I)
    return hit.start() if hit else None
