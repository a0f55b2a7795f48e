"""Settings of a tool or a probe as a plan gives them: checked at the door, told in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from domain.errors import LikenessError, did_you_mean


class Settings(BaseModel):
    """Base of the settings: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Settings)


def read_settings(model: type[S], settings: Mapping[str, Any], owner: str) -> S:
    """The settings as ``model``; LikenessError with one line naming ``owner`` ("tool 'inr'"), key
    and cause."""
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = f"; known: {', '.join(model.model_fields)}"
            hint = did_you_mean(key, model.model_fields) or known
            raise LikenessError(f"{owner}: unknown setting '{key}'{hint}") from None
        if first["type"] == "missing":
            raise LikenessError(f"{owner}: setting '{key}' is missing") from None
        cause = first["msg"].removeprefix("Value error, ")
        where = f"setting '{key}': " if key else ""
        raise LikenessError(f"{owner}: {where}{cause}") from None
