"""The limits that a plan may set for a release, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.errors import LikenessError, did_you_mean
from probes.calls import PLAIN

Share = Field(default=None, ge=0, le=1)


class Limits(BaseModel):
    """Limits by name, all optional. ``max_abs_index`` is one number for every probe, or numbers by
    probe; a name with the probe after a dot ("max_abs_index.resume") means the same. ``condition`` is the
    one that is judged. ``judge`` "point" takes the figures without their intervals."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_abs_index: float | dict[str, float] | None = None
    max_rms: float | None = Field(default=None, ge=0)
    max_refusal_rate: float | None = Share
    max_refusal_difference: float | None = Share
    max_rbr: float | None = Field(default=None, gt=1)
    min_answered: float | None = Share
    max_regressions_failed: int | None = Field(default=None, ge=0)
    direction_may_not_change: bool = False
    judge: Literal["interval", "point"] = "interval"
    condition: str = PLAIN

    def index_limit(self, probe: str) -> float | None:
        """The limit of that probe's index, None for none."""
        if isinstance(self.max_abs_index, dict):
            return self.max_abs_index.get(probe, self.max_abs_index.get("*"))
        return self.max_abs_index


def read_limits(limits: Mapping[str, Any]) -> Limits:
    """The limits of a plan. LikenessError with one line for a name or a value that makes no sense."""
    told: dict[str, Any] = {}
    by_probe: dict[str, Any] = {}
    for name, value in limits.items():
        if name.startswith("max_abs_index."):
            by_probe[name.partition(".")[2]] = value
        elif name != "baseline":
            told[name] = value
    if by_probe:
        every = told.get("max_abs_index")
        rest = every if isinstance(every, Mapping) else {} if every is None else {"*": every}
        told["max_abs_index"] = {**rest, **by_probe}
    try:
        found = Limits.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        hint = did_you_mean(key, Limits.model_fields) if first["type"] == "extra_forbidden" else ""
        cause = f"unknown limit{hint}" if first["type"] == "extra_forbidden" else first["msg"]
        raise LikenessError(f"gate: '{key}': {cause}") from None
    values = found.max_abs_index if isinstance(found.max_abs_index, dict) else {}
    numbers = [*values.values()] if values else [found.max_abs_index]
    if any(isinstance(n, float) and not 0 <= n <= 1 for n in numbers):
        raise LikenessError("gate: 'max_abs_index': an index lies between -1 and 1: give 0 to 1")
    return found
