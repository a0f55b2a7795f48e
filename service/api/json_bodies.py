"""JSON that came from outside, before anything of ours reads it.

Python's reader takes more than JSON is: NaN, halves of characters that no database and no answer can
hold, and nesting as deep as the stack.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from service.api.problems import Problem

_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SUSPICIOUS = re.compile(rb"\\u(?:d[89a-f]|0000)", re.IGNORECASE)
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


def check_json(body: bytes, max_depth: int) -> None:
    """Raises Problem where ``body`` is no JSON (400) or nested beyond ``max_depth`` (413)."""
    if depth(body) > max_depth:
        raise Problem(413, "too-large", f"JSON nested deeper than {max_depth}")
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Problem(400, "bad-request", "not valid JSON: the text is not UTF-8") from None
    except json.JSONDecodeError as error:
        said = f"not valid JSON: line {error.lineno}, column {error.colno}"
        raise Problem(400, "bad-request", said) from None
    except ValueError:  # a number of thousands of digits
        raise Problem(400, "bad-request", "not valid JSON: a number that is none") from None
    if _SUSPICIOUS.search(body) and not _usable(value):
        said = "JSON with a NUL or half a character in a text"
        raise Problem(400, "bad-request", said)


def depth(body: bytes) -> int:
    """The deepest nesting of brackets in a text of JSON, strings left out."""
    deepest = now = 0
    for mark in _MARKS.finditer(body):
        match mark.group()[:1]:
            case b"[" | b"{":
                now += 1
                deepest = max(deepest, now)
            case b"]" | b"}":
                now -= 1
    return deepest


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("not JSON")


def _usable(value: Any) -> bool:
    match value:
        case str():
            return not _UNUSABLE.search(value)
        case list():
            return all(map(_usable, value))
        case dict():
            return all(_usable(k) and _usable(v) for k, v in value.items())
    return True
