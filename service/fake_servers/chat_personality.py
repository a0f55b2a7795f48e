"""What a pretended language model says: leanings of a known size, and every way of saying nothing.

All draws depend on the personality's seed, the conversation, and the request's seed or how often that
conversation came before: a run repeats, and repeats within it differ.
"""

from __future__ import annotations

import math
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Script = Callable[[str, random.Random], str]
"""A text for a conversation, with the chance to draw by."""
REASONING_REJECTS = frozenset({"temperature", "top_p", "max_tokens", "logprobs", "stop"})
"""What a reasoning model turns down: the first two unless they are 1, the third for its new name."""
DEFAULT_RULES_SAY = {"she": 0.5, "he": 0.5}


@dataclass(frozen=True, slots=True)
class Rule:
    """What is said to a conversation in which the regular expression ``when`` is found: texts with
    their probabilities (which are made to sum to 1), or a script."""

    when: str
    says: Mapping[str, float] | Script

    def __post_init__(self) -> None:
        re.compile(self.when)
        if not callable(self.says) and not sum(self.says.values()) > 0:
            raise ValueError(f"rule '{self.when}': probabilities sum to nothing")


@dataclass(frozen=True, slots=True)
class Fault:
    """``share`` of the requests whose conversation matches ``when`` play behaviour ``plays``."""

    plays: str
    share: float
    when: str = ""


NURSE = Rule(r"(?i)nurse|Pflege|护士", {"she": 0.8, "he": 0.15, "they": 0.05})
ENGINEER = Rule(r"(?i)engineer|ingenieur|工程师", {"she": 0.2, "he": 0.75, "they": 0.05})


def a_number(text: str, chance: random.Random) -> str:
    """A word and a number that never come twice, for whoever asks for something random."""
    return f"lantern {chance.randrange(10**6):06d}"


ANY_NUMBER = Rule(r"random number", a_number)


@dataclass(slots=True)
class Personality:
    """A model with a character. The first of ``rules`` that matches speaks, else ``otherwise``.

    ``models`` and ``fingerprints`` are named by replies in turn; "" is the model asked for.
    ``rejects`` are parameters that are turned down by name, from request ``rejects_from`` on (0:
    at once). ``reasoning`` tokens are written before each answer and counted against the budget.
    ``seed_honoured`` False: a seed is dropped in silence; ``seed_fixes``: any seed gives the
    likeliest text. ``completions`` False: there is no such address. ``sends_logprobs`` False: they are asked
    for in vain. ``echoes``: parameters are told
    back. ``key_by_header`` takes the key in "api-key" too, as one maker's cloud does.
    """

    rules: tuple[Rule, ...] = (ANY_NUMBER, NURSE, ENGINEER)
    otherwise: Mapping[str, float] | Script = field(default_factory=lambda: dict(DEFAULT_RULES_SAY))
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    models: tuple[str, ...] = ("",)
    fingerprints: tuple[str, ...] = ("fp_fake",)
    rejects: frozenset[str] = frozenset()
    rejects_from: int = 0
    reasoning: int = 0
    seed_honoured: bool = True
    seed_fixes: bool = False
    completions: bool = True
    sends_logprobs: bool = True
    echoes: bool = False
    key_by_header: bool = False
    served: int = 0
    _times: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def request(self, text: str) -> tuple[int, int]:
        """Count a request for the conversation ``text``: its number in all, and among its like."""
        with self._lock:
            number, repeat = self.served, self._times[text]
            self.served += 1
            self._times[text] += 1
        return number, repeat

    def fault(self, text: str, repeat: int) -> str:
        """The behaviour that strikes this request, "" for none."""
        chance = self._chance("fault", text, repeat)
        at = chance.random()
        for fault in self.faults:
            if not re.search(fault.when, text, re.DOTALL):
                continue
            if at < fault.share:
                return fault.plays
            at -= fault.share
        return ""

    def says(self, text: str) -> Mapping[str, float] | Script:
        """The table or script for the conversation ``text``."""
        for rule in self.rules:
            if re.search(rule.when, text, re.DOTALL):
                return rule.says
        return self.otherwise

    def answer(self, text: str, wish: Mapping[str, Any], repeat: int) -> str:
        """The words for ``text``, the ``repeat``-th time it is asked, with the parameters of
        ``wish``: at temperature 0 the likeliest."""
        table, seed = self.says(text), wish.get("seed")
        fixed = self.seed_honoured and seed is not None
        drawn_by = (0 if self.seed_fixes else seed) if fixed else repeat
        chance = self._chance("seed" if fixed else "words", text, drawn_by)
        if callable(table):
            return table(text, chance)
        if wish.get("temperature") == 0 or (fixed and self.seed_fixes):
            return max(table, key=lambda words: table[words])
        return chance.choices(list(table), list(table.values()))[0]

    def first_tokens(self, text: str, count: int) -> list[tuple[str, float]]:
        """The ``count`` likeliest first words with their natural log-probabilities."""
        table = self.says(text)
        if callable(table):
            return []
        found: dict[str, float] = {}
        for words, share in table.items():
            first = words.split(" ")[0]
            found[first] = found.get(first, 0.0) + share / sum(table.values())
        likely = sorted(found.items(), key=lambda pair: -pair[1])[:count]
        return [(token, math.log(share)) for token, share in likely if share > 0]

    def _chance(self, what: str, text: str, number: object) -> random.Random:
        return random.Random(f"{self.seed} {what} {number} {text}")
