"""Placeholders of a request template: which there are, where each may stand, and putting them in.

One pass over the template's own text alone, so that a placeholder inside a prompt stays text. A double
pair of braces, ``{{prompt}}``, writes the word itself in single ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

TEXTS = ("prompt", "seed", "width", "height")
ENCODED = ("picture_base64", "picture_data_uri", "mask_base64", "mask_data_uri")
FILES = ("picture", "mask")
KEY = "key"
ALL = (*TEXTS, *ENCODED, *FILES, KEY)
NUMBERS = frozenset({"seed", "width", "height"})
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")


def strings_of(template: Any) -> Iterator[str]:
    """Every text in a JSON template, keys left out: those are the API's names."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for part in template.values():
            yield from strings_of(part)
    elif isinstance(template, list | tuple):
        for part in template:
            yield from strings_of(part)


def names_in(template: Any) -> set[str]:
    """The placeholders used anywhere in ``template``."""
    return {m[2] for text in strings_of(template) for m in _PLACEHOLDER.finditer(text) if m[2]}


def check_names(template: Any, where: str, allowed: tuple[str, ...]) -> None:
    """Raises ValueError for a placeholder that is unknown, or may not stand here, saying which may."""
    for name in sorted(names_in(template) - set(allowed)):
        can = " ".join(f"{{{one}}}" for one in allowed) or "none"
        if name == KEY:
            raise ValueError(
                f"{where}: {{key}} may stand in headers only, where it is not written down"
            )
        if name in FILES:
            raise ValueError(
                f"{where}: {{{name}}} is a file, a part of its own in multipart; "
                f"here it can be {{{name}_base64}} or {{{name}_data_uri}}"
            )
        known = "unknown placeholder" if name not in ALL else "no place for"
        raise ValueError(f"{where}: {known} {{{name}}}; write one of: {can}")


def only_placeholder(text: str) -> str:
    """The name when ``text`` is one placeholder and nothing else, else ""."""
    found = _PLACEHOLDER.fullmatch(text)
    return (found[2] or "") if found else ""


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """``template`` with its placeholders replaced. A text that is {seed}, {width} or {height} alone
    becomes a number. JSON structure and keys stay."""
    if isinstance(template, str):
        name = only_placeholder(template)
        if name in NUMBERS:
            return values[name]
        return fill_text(template, values)
    if isinstance(template, Mapping):
        return {key: fill(part, values) for key, part in template.items()}
    if isinstance(template, list | tuple):
        return [fill(part, values) for part in template]
    return template


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """``text`` with its placeholders replaced, always as text."""
    return _PLACEHOLDER.sub(lambda m: f"{{{m[1]}}}" if m[1] else str(values[m[2]]), text)
