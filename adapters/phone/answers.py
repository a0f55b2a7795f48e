"""What a phone agent's answers mean: its capabilities, its facts about an edit, its error tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.guard import one_line
from adapters.over_http.wire import STOP_STATUSES, Reply
from adapters.phone.links import LOST, Link
from domain.edits import Failed, Refused
from domain.errors import LikenessError
from domain.retry import is_retryable, named_wait

CONTRACT = "1."
"""Contract versions that are spoken: all that add to 1.0."""
THROTTLED = frozenset({"severe", "critical", "emergency", "shutdown"})
"""Android's thermal states from which a device slows itself down."""
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")


class Range(BaseModel):
    """What a parameter takes."""

    model_config = ConfigDict(extra="ignore")
    min: float
    max: float


class Capabilities(BaseModel):
    """GET /v1/capabilities: openapi.yaml says what each means. Unknown keys are newer than we are."""

    model_config = ConfigDict(extra="ignore")
    contract: str
    sdk: str = "phone SDK"
    sdk_version: str
    model_hash: str
    soc: str = ""
    os: str = ""
    thermal_state: str = ""
    quality_modes: list[str]
    quality_mode: str = ""
    sides_multiple: int = Field(default=16, ge=1, le=256)
    min_side: int = Field(default=64, ge=1, le=8192)
    max_side: int = Field(default=4096, ge=64, le=8192)
    colour_formats: list[str]
    parameters: dict[str, Range] = {}

    @property
    def model(self) -> str:
        """The version string of a report."""
        where = " ".join(part for part in (self.soc, self.os and f"({self.os})") if part)
        name = f"{self.sdk} {self.sdk_version}" + (f" on {where}" if where else "")
        return one_line(f"{name}, model {self.model_hash[:12]}", 160)


def read_capabilities(reply: Reply, link: Link) -> Capabilities:
    """The agent's answer, checked. Raises LikenessError, one line, for what is not one."""
    if reply.status == 401:
        raise LikenessError("the phone agent does not take this token")
    if reply.status != 200:
        raise LikenessError(f"the phone agent answered HTTP {reply.status} for its capabilities")
    try:
        found = Capabilities.model_validate(reply.json())
    except (ValueError, ValidationError) as error:
        cause = error.errors()[0] if isinstance(error, ValidationError) else None
        what = ".".join(str(part) for part in cause["loc"]) if cause else "not JSON"
        raise LikenessError(
            f"the phone agent's capabilities cannot be read ({link.redact(what)})"
        ) from None
    if not found.contract.startswith(CONTRACT):
        raise LikenessError(
            f"the phone agent speaks contract {one_line(found.contract, 20)}; known: {CONTRACT}x"
        )
    return found


def facts_of(reply: Reply, link: Link) -> dict[str, Any]:
    """What the agent says of an edit it did, as meta["returned"]; keys it left out are absent."""
    names = {
        "x-quality-mode": "quality_mode", "x-working-size": "working_size",
        "x-thermal-before": "thermal_before", "x-thermal-after": "thermal_after",
        "x-sdk-ms": "sdk_ms", "x-sdk-version": "sdk_version", "x-model-hash": "model_hash",
        "x-faces": "faces", "x-frame-size": "frame_size",
    }  # fmt: skip
    said = {key: reply.headers.get(name) for name, key in names.items()}
    return {key: link.redact(one_line(value, 100)) for key, value in said.items() if value}


def size_of(text: str) -> tuple[int, int] | None:
    """ "768x1024" as (width, height)."""
    found = _SIZE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def outcome_of(reply: Reply, link: Link) -> Refused | Failed:
    """An answer without a picture, by the contract's error tree: a device's trouble may be tried again
    when the device says so, a call's never, a refusal is an outcome of its own. Anything that is not
    the contract's is judged by its status."""
    body = reply.json_or_none()
    problem: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    kind, code = problem.get("kind"), one_line(str(problem.get("code", "")), 60)
    detail = link.redact(str(problem.get("detail") or problem.get("title") or ""))
    meta = reply.meta()
    if kind == "refusal":
        return Refused("input", code or "refused", detail, meta)
    if reply.status in STOP_STATUSES:
        meta["stop"] = True
    if code == "device_lost":
        meta |= LOST
    if kind == "device":
        retryable = problem.get("retryable") is True
        wait = named_wait(reply.headers, problem) if retryable else None
        return Failed(f"the device: {detail} ({code})", retryable, wait, meta)
    if kind == "call":
        return Failed(f"the device does not take this call: {detail} ({code})", meta=meta)
    words = link.redact(reply.body[:400].decode("utf-8", "replace"))
    retryable = is_retryable(reply.status, reply.headers)
    wait = named_wait(reply.headers, body, words) if retryable else None
    return Failed(one_line(f"HTTP {reply.status}: {words}", 300), retryable, wait, meta)
