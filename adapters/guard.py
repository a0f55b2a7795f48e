"""The two fences of the adapter contract: settings are checked at the door, errors never cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import domain.settings
from domain.edits import EditOutcome, EditRequest, Failed
from domain.errors import LikenessError
from domain.settings import Settings


class EditEnded(Exception):
    """Raised deep inside an adapter to end the edit with ``outcome``."""

    def __init__(self, outcome: EditOutcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


__all__ = ["EditEnded", "Settings", "failures_are_answers", "one_line", "read_settings"]
S = TypeVar("S", bound=Settings)
T = TypeVar("T")


def read_settings(model: type[S], settings: Mapping[str, Any], tool: str) -> S:
    """The settings as ``model``; LikenessError with one line naming tool, key and cause."""
    return domain.settings.read_settings(model, settings, f"tool '{tool}'")


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
