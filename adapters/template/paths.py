"""JSONPath for settings: parsed when they are read, so that a mistake shows before anything is sent."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext import parse
from pydantic import AfterValidator


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    return parse(text)


def check_path(text: str) -> str:
    """Raises ValueError with an example. "" is no path."""
    if not text:
        return text
    if not text.startswith("$"):
        raise ValueError(f"'{text}' is no JSONPath; one begins with $, such as $.data[0].url")
    try:
        _parsed(text)
    except (JSONPathError, RecursionError) as error:
        said = " ".join(str(error).split())[:100]
        raise ValueError(f"'{text}' is no JSONPath: {said}") from None
    except Exception as error:  # its lexer and parser raise what they like
        raise ValueError(f"'{text}' is no JSONPath: {type(error).__name__}") from None
    return text


JsonPath = Annotated[str, AfterValidator(check_path)]
"""A JSONPath, or "" for none."""


def look_up(path: str, body: Any) -> Any:
    """The first value at ``path`` that is not null; None where there is none, or no path."""
    if not path or body is None:
        return None
    try:
        found = _parsed(path).find(body)
    except Exception:  # a filter that does not suit this body finds nothing in it
        return None
    return next((match.value for match in found if match.value is not None), None)
