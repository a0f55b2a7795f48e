"""Lists of stems counted in replies: prefixes of words where words have spaces, else substrings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from domain.errors import LikenessError

Counter = re.Pattern[str]


def counter(stems: Sequence[str], language: str) -> Counter:
    """What finds every occurrence of a stem once: of two that begin at one place the longer counts.
    Chinese has no spaces between words, so a stem is found anywhere there."""
    longest = sorted({stem.casefold() for stem in stems if stem.strip()}, key=len, reverse=True)
    if not longest:
        return re.compile(r"(?!)")
    joined = "|".join(re.escape(stem) for stem in longest)
    return re.compile(joined if language == "zh" else rf"(?<!\w)(?:{joined})")


def hits(words: Counter, text: str) -> int:
    """How many of the stems occur in ``text``, repetitions included."""
    return len(words.findall(text.casefold()))


def read_lexicon(file: Path) -> Mapping[str, tuple[str, ...]]:
    """Lists of stems from JSON {list: [stem, ...]}. Raises LikenessError naming file and list."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise LikenessError(f"lexicon '{file.name}' is not there or no JSON") from None
    if not isinstance(told, dict) or not told:
        raise LikenessError(f"lexicon '{file.name}': needs lists of stems by name")
    for name, stems in told.items():
        if not isinstance(stems, list) or not all(isinstance(s, str) and s.strip() for s in stems):
            raise LikenessError(f"lexicon '{file.name}': '{name}' is no list of texts")
    return {str(name): tuple(stems) for name, stems in told.items()}
