"""Recognises a reply in which the model declines in words, in more languages than the question's.

Patterns lie in ``data/refusals/LANGUAGE.yaml``. They stand for "I may not or will not", not for "it
cannot be known": that one is an answer in several benchmarks and belongs to the probe.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from probes.loose_json import json_in

HEAD = 400
"""Characters of a reply within which it declines if it does; what follows is its consolation."""
_MARKS = re.compile(r"[*_`#>|~]+")
_OPENERS = "\"'“”„‘’«「『"
_QUOTED = re.compile(r"\A[\"“„«「『](.*?)[\"”“»」』](?=\s*\S)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Of one language. ``opening`` matches at the beginning of a reply, ``anywhere`` in its head,
    ``not_when`` anywhere: then it is no refusal of that language, since an answer follows."""

    language: str
    opening: re.Pattern[str]
    anywhere: re.Pattern[str]
    not_when: re.Pattern[str]


def refusal_in(text: str, language: str = "") -> str:
    """The language (its code) in whose words ``text`` declines, "" where it does not.
    ``language`` is tried first; all others after it."""
    head = _plain(_said(text))
    if not head:
        return ""
    known = patterns()
    for code in sorted(known, key=lambda c: c != language):
        found = known[code]
        declines = found.opening.match(head) or found.anywhere.search(head)
        if declines and not found.not_when.search(head):
            return code
    return ""


@lru_cache(maxsize=1)
def patterns() -> dict[str, Patterns]:
    """All languages by code, in the order of their names."""
    folder = resources.files("probes.data") / "refusals"
    texts = {
        entry.name.removesuffix(".yaml"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    }
    return {code: _compiled(code, yaml.safe_load(texts[code])) for code in sorted(texts)}


def _compiled(code: str, told: dict[str, Any]) -> Patterns:
    words = told.get("words", {})

    def joined(name: str) -> re.Pattern[str]:
        parts = [_filled(part, words) for part in told.get(name, ())]
        return re.compile("|".join(f"(?:{part})" for part in parts) or r"(?!)")

    return Patterns(code, joined("opening"), joined("anywhere"), joined("not_when"))


def _filled(pattern: str, words: dict[str, str]) -> str:
    for name, alternatives in words.items():
        pattern = pattern.replace(f"<{name}>", f"(?:{alternatives})")
    return pattern


def _said(text: str) -> str:
    """The words to look at: of a JSON object without any number or truth value its first text, of
    any other none."""
    if not text.lstrip().startswith(("{", "`")):
        return text
    found = json_in(text)
    if not isinstance(found, dict):
        return text
    values = list(found.values())
    if any(isinstance(value, bool | int | float | dict | list) for value in values):
        return ""
    return next((value for value in values if isinstance(value, str)), "")


def _plain(text: str) -> str:
    """``text`` in one form of letters, quotes and spaces, its head only. A text that opens with
    somebody's speech and goes on is a story, not the model speaking: nothing is left of it."""
    text = _MARKS.sub("", text[: 2 * HEAD]).strip()
    if _QUOTED.match(text):
        return ""
    text = unicodedata.normalize("NFKC", text).translate({0x2019: "'", 0x2018: "'", 0x02BC: "'"})
    return " ".join(text.lstrip(_OPENERS + " ").casefold().split())[:HEAD]
