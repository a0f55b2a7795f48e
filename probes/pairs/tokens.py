"""Texts as tokens that join to the text again: words where a language writes words, characters in
Chinese."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[^\W\d_]+(?:[’'*:][^\W\d_]+)*|\d+|\s+|.", re.DOTALL)
"""Letters with apostrophes and gender stars inside ("nurse's", "Ingenieur*in") are one word;
figures, runs of space and every other character stand for themselves."""
_CHARACTERS = re.compile(r"[A-Za-z]+|\d+|\s+|.", re.DOTALL)
"""Chinese: every character for itself; Latin words ("TA") and figures whole."""


def tokens(text: str, language: str) -> tuple[str, ...]:
    """The tokens of ``text``; joined they are the text, space and punctuation included."""
    return tuple((_CHARACTERS if language == "zh" else _WORDS).findall(text))


def is_word(token: str) -> bool:
    """Whether a token has a letter in it (figures, space and punctuation have none)."""
    return any(c.isalpha() for c in token)
