"""Reads the JSON that models write: fenced, prefixed, with trailing commas and any quotes.

Nothing is evaluated. What was cut off in the middle is not completed: half an answer is none.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_STARTS = 40
"""Braces from which an object is tried; more of them stand in no answer."""
_DEEPEST = 60
_LONGEST = 200_000
_QUOTES = {
    '"': '"”“', "'": "'’", "“": "”“\"", "”": "”\"", "„": "“”\"", "‘": "’'", "«": "»", "「": "」",
}  # fmt: skip
_WORDS = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None,
}  # fmt: skip
_BARE = re.compile(r"[^\s,:{}\[\]\"'“”„‘’「」«»，：]+")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def json_in(text: str) -> Any | None:
    """The object (or list) that ``text`` holds, None where it holds no whole one.

    Of several the first in a fence counts, else the first with anything in it. Strict JSON is read
    as such; else single and typographic quotes, bare keys, trailing commas, comments, and Python's
    None, True and False are taken. A number that is not finite makes its object unreadable.
    """
    text = text[:_LONGEST]
    empty = None
    for part in (*_FENCE.findall(text), text):
        for found in _objects(part):
            if found:
                return found
            empty = found
    return empty


def _objects(text: str) -> Iterator[Any]:
    at, loose = 0, _Loose(text)
    for _ in range(_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        at = opening.start()
        try:
            found, end = _strict.raw_decode(text, at)
        except (ValueError, RecursionError):
            try:
                found, end = loose.value(at, 0)
            except _Unreadable:
                at += 1
                continue
        if isinstance(found, dict) or any(isinstance(part, dict) for part in found) or (
            at == 0 and not text[end:].strip()
        ):  # fmt: skip
            yield found
        at = end


def _not_finite(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_finite(digits)


_strict = json.JSONDecoder(parse_float=_finite, parse_constant=_not_finite)


class _Unreadable(Exception):
    """Not JSON, however it is looked at."""


class _Loose:
    """A parser that walks through ``text``. Each method gives what it read and where it stopped."""

    def __init__(self, text: str) -> None:
        self._text = text
        # Braces without end, each scanned to the end, must not take for ever
        self._patience = 4 * len(text) + 1000

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins at or after ``at``. Raises _Unreadable."""
        at = self._skip(at)
        first = self._at(at)
        if depth > _DEEPEST or not first:
            raise _Unreadable
        if first == "{":
            return self._object(at + 1, depth)
        if first == "[":
            return self._list(at + 1, depth)
        if first in _QUOTES:
            return self._string(at)
        return self._bare(at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while True:
            at = self._skip(at)
            if self._at(at) == "}":
                return found, at + 1
            key, at = self._string(at) if self._at(at) in _QUOTES else self._key(at)
            at = self._skip(at)
            if self._at(at) not in (":", "："):
                raise _Unreadable
            found[key], at = self.value(at + 1, depth + 1)
            at = self._after(at, "}")

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while True:
            at = self._skip(at)
            if self._at(at) == "]":
                return found, at + 1
            item, at = self.value(at, depth + 1)
            found.append(item)
            at = self._after(at, "]")

    def _after(self, at: int, closing: str) -> int:
        """Past the comma, if one is there; else the closing bracket must be."""
        at = self._skip(at)
        if self._at(at) in (",", "，"):
            return at + 1
        if self._at(at) != closing:
            raise _Unreadable
        return at

    def _string(self, at: int) -> tuple[str, int]:
        """Quotes within a string are not its end: what follows an end is a comma, colon, bracket."""
        closing = _QUOTES[self._at(at)]
        at += 1
        out: list[str] = []
        while letter := self._at(at):
            if letter == "\\":
                piece, at = self._escape(at + 1)
                out.append(piece)
            elif letter in closing and self._at(self._skip(at + 1)) in tuple(",:}]，："):
                return "".join(out), at + 1
            else:
                out.append(letter)
                at += 1
            self._patience -= 1
            if self._patience < 0:
                raise _Unreadable
        raise _Unreadable

    def _escape(self, at: int) -> tuple[str, int]:
        letter = self._at(at)
        if letter == "u":
            digits = self._text[at + 1 : at + 5]
            if re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                return chr(int(digits, 16)).encode("utf-8", "replace").decode(), at + 5
        return _ESCAPES.get(letter, letter), at + 1

    def _key(self, at: int) -> tuple[str, int]:
        word = _BARE.match(self._text, at)
        if word is None:
            raise _Unreadable
        return word[0], word.end()

    def _bare(self, at: int) -> tuple[Any, int]:
        word = _BARE.match(self._text, at)
        if word is None:
            raise _Unreadable
        if word[0].lower() in _WORDS:
            return _WORDS[word[0].lower()], word.end()
        if not _NUMBER.match(word[0]) or not math.isfinite(number := float(word[0])):
            raise _Unreadable
        whole = re.fullmatch(r"[+-]?\d{1,300}", word[0])
        return (int(word[0]) if whole else number), word.end()

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space else at

    def _at(self, at: int) -> str:
        return self._text[at : at + 1]
