"""Reads a plan's YAML so that every mistake can be told with file, line, key and the near miss."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from domain.errors import PlanError, did_you_mean

At = tuple[str | int, ...]
"""Where a value stands: keys and places in lists, outermost first."""
Lines = Mapping[At, int]
"""The line of every key and list entry, counted from 1."""
M = TypeVar("M", bound=BaseModel)
_IN_ADDRESS = re.compile(r"(?<=//)[^/\s]*@|\?.*(?=')")
"""User and password in an address, and its query: never repeated."""


def read_text(path: Path) -> str:
    """The plan's text. Raises PlanError with one line."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"{path}: no such plan") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: cannot be read as UTF-8 text: {error}") from None


def sha256_of(text: str) -> str:
    """Of a plan's text: a run can only be resumed with the very same plan."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse(path: Path, text: str, keys: str) -> tuple[Any, Lines]:
    """The mapping that ``text`` holds, with the line of each of its parts. ``keys`` names a few keys
    of such a plan. Raises PlanError for what is no YAML, no mapping, or has a key twice."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise PlanError(f"{where}: not valid YAML: {problem}") from None
    if not isinstance(node, yaml.MappingNode):
        raise PlanError(f"{path}:1: a plan is a mapping of keys ({keys})")
    lines: dict[At, int] = {}
    _walk(path, node, (), lines)
    return data, lines


def validated(path: Path, data: Any, lines: Lines, model: type[M]) -> M:
    """``data`` as ``model``. Raises PlanError with one line a mistake."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise PlanError("\n".join(_messages(path, error, lines, model))) from None


def refuse(path: Path, lines: Lines, problems: Iterable[tuple[At, str]]) -> None:
    """Raise PlanError with a line for each of ``problems``, if there are any."""
    told = [f"{path}:{line_of(lines, at)}: {said}" for at, said in problems]
    if told:
        raise PlanError("\n".join(told))


def line_of(lines: Lines, at: Sequence[str | int]) -> int:
    """The line of what stands at ``at``, or of the closest part around it."""
    here = tuple(at)
    while here not in lines and here:
        here = here[:-1]
    return lines.get(here, 1)


def _walk(path: Path, node: yaml.Node, at: At, lines: dict[At, int]) -> None:
    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if here in lines:
                raise PlanError(
                    f"{path}:{key.start_mark.line + 1}: '{key.value}' stands twice "
                    f"(first in line {lines[here]})"
                )
            _walk(path, value, here, lines)
            lines[here] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(path, value, (*at, index), lines)


def _messages(
    path: Path, error: ValidationError, lines: Lines, model: type[BaseModel]
) -> Iterable[str]:
    for item in error.errors():
        at = item["loc"]
        key = ".".join(str(part) for part in at)
        if item["type"] == "extra_forbidden":
            hint = did_you_mean(str(at[-1]), _siblings(model, at[:-1]), 0.5)
            said, at_line = f"unknown key{hint}", line_of(lines, at)
        elif item["type"] == "missing":
            said, at_line = "this key is required", line_of(lines, at[:-1])
        else:
            said = item["msg"].removeprefix("Value error, ") + _value_hint(item)
            at_line = line_of(lines, at)
        yield f"{path}:{at_line}: {f'{key}: ' if key else ''}{said}"


def _value_hint(item: Any) -> str:
    expected = str(item.get("ctx", {}).get("expected", ""))
    options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",") if part]
    given = item.get("input")
    said = f" (here: {given!r})" if isinstance(given, str | int | float) else ""
    return _IN_ADDRESS.sub("...", said) + did_you_mean(str(given), options, 0.5)


def _siblings(model: type[BaseModel], at: Sequence[str | int]) -> list[str]:
    """Field names of the plan's part at ``at``, for the near miss of an unknown key."""
    part: Any = model
    for step in at:
        if isinstance(step, int):
            continue
        if not (isinstance(part, type) and issubclass(part, BaseModel)):
            return []
        field = part.model_fields.get(step)
        if field is None:
            return []
        part = _model_in(field.annotation)
    return list(part.model_fields) if isinstance(part, type) and issubclass(part, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
