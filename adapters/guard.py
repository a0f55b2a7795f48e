"""The two fences of the adapter contract: settings are checked at the door, errors never cross."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from domain.edits import EditOutcome, EditRequest, Failed
from domain.errors import LikenessError


class Settings(BaseModel):
    """Base of a tool's settings: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EditEnded(Exception):
    """Raised deep inside an adapter to end the edit with ``outcome``."""

    def __init__(self, outcome: EditOutcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


S = TypeVar("S", bound=Settings)
T = TypeVar("T")


def read_settings(model: type[S], settings: Mapping[str, Any], tool: str) -> S:
    """The settings as ``model``; LikenessError with one line naming tool, key and cause."""
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(key, model.model_fields, n=1)
            hint = (
                f"did you mean '{near[0]}'?" if near else f"known: {', '.join(model.model_fields)}"
            )
            raise LikenessError(f"tool '{tool}': unknown setting '{key}'; {hint}") from None
        if first["type"] == "missing":
            raise LikenessError(f"tool '{tool}': setting '{key}' is missing") from None
        cause = first["msg"].removeprefix("Value error, ")
        where = f"setting '{key}': " if key else ""
        raise LikenessError(f"tool '{tool}': {where}{cause}") from None


def one_line(text: str, limit: int = 200) -> str:
    """``text`` without line breaks and control characters, at most ``limit`` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def failures_are_answers(
    edit: Callable[[T, EditRequest], EditOutcome],
) -> Callable[[T, EditRequest], EditOutcome]:
    """Wrap ``edit`` so that whatever it raises comes back as ``Failed`` with its reason."""

    @wraps(edit)
    def guarded(self: T, request: EditRequest) -> EditOutcome:
        try:
            return edit(self, request)
        except EditEnded as end:
            return end.outcome
        except (ValueError, LikenessError) as error:
            return Failed(one_line(str(error)) or "the tool gave no reason")
        except Exception as error:
            return Failed(one_line(f"{type(error).__name__}: {error}"))

    return guarded
