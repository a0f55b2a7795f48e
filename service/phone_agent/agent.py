"""The agent itself, whatever brings its jobs: an HTTP server (``routes``) or the host (``pull``).

One edit at a time; a second one is told "busy". The SDK lives in one thread, as its models ask.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import cv2
import numpy as np

from service.phone_agent import beautify, nv21
from service.phone_agent.faults import FAULTS, CallEnded
from service.phone_agent.sdk import (
    LOW,
    MAX_SIDE,
    MIN_SIDE,
    MODES,
    SIDES_MULTIPLE,
    VERSION,
    Frame,
    Report,
    Sdk,
)

CONTRACT = "1.0"
PNG, NV21 = "image/png", "application/x-nv21"
FORMATS = {"png": PNG, "nv21": NV21}
MAX_BYTES = 64_000_000
PLAYS: Mapping[str, str] = {
    "low_power": "works in LOW_POWER and says so",
    "lies": "works in LOW_POWER and says HIGH_ACCURACY",
    "new_model": "works with an updated model from here on",
    **{code: fault.title for code, fault in FAULTS.items()},
}
"""What an edit can be told to do instead of the usual."""


@dataclass(frozen=True, slots=True)
class Job:
    """An edit that was understood."""

    frame: Frame
    form: str
    mode: str | None
    strengths: beautify.Strengths
    request_id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back, by whatever way."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class PhoneAgent:
    """Reads jobs, keeps the device's lock, turns whatever happens into an answer."""

    def __init__(self, sdk: Sdk, soc: str = "reference", system: str = "reference 1") -> None:
        self.sdk, self._soc, self._system = sdk, soc, system
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="phone-sdk")

    def capabilities(self) -> dict[str, Any]:
        """The answer to GET /v1/capabilities."""
        return {
            "contract": CONTRACT,
            "sdk": "reference-beautify",
            "sdk_version": VERSION,
            "model_hash": self.sdk.model_hash,
            "soc": self._soc,
            "os": self._system,
            "thermal_state": self.sdk.thermal.state(),
            "quality_modes": list(MODES),
            "quality_mode": self.sdk.mode,
            "sides_multiple": SIDES_MULTIPLE,
            "min_side": MIN_SIDE,
            "max_side": MAX_SIDE,
            "aspects": ["4:3", "3:4"],
            "colour_formats": list(FORMATS),
            "colour_matrix": "bt601-full",
            "parameters": {
                name: {"min": 0.0, "max": 1.0, "default": usual}
                for name, usual in beautify.DEFAULTS.items()
            },
        }

    def read(self, parameters: bytes | str, body: bytes, media_type: str) -> Job:
        """Understand an edit. Raises CallEnded with the caller's mistake."""
        if len(body) > MAX_BYTES:
            raise CallEnded("too_large")
        said = _json_object(parameters)
        known = {"quality_mode", "parameters", "colour_format", "width", "height", "request_id"}
        for name in said:
            if name not in known:
                raise CallEnded("unknown_parameter", f"there is no '{name}'")
        form = said.get("colour_format", "png")
        if form not in FORMATS or media_type not in (FORMATS[form], "application/octet-stream"):
            raise CallEnded("unsupported_format", f"{form} in a body of {media_type}")
        mode = said.get("quality_mode")
        if mode is not None and mode not in MODES:
            raise CallEnded("unknown_quality_mode", f"there is no '{mode}'")
        frame = _nv21_frame(said, body) if form == "nv21" else _png_frame(body)
        strengths = _strengths(said.get("parameters", {}))
        return Job(frame, form, mode, strengths, str(said.get("request_id") or uuid4().hex)[:100])

    def work(self, job: Job, play: str = "ok") -> Answer:
        """Do an edit, or what ``play`` names in its stead. Never raises."""
        if not self._lock.acquire(blocking=False):
            return failed(CallEnded("busy"), job.request_id)
        try:
            return self._thread.submit(self._work, job, play).result()
        except CallEnded as end:
            return failed(end, job.request_id)
        except Exception as error:  # whatever an SDK does, the app lives on and says so
            return failed(CallEnded("sdk_crashed", type(error).__name__), job.request_id)
        finally:
            self._lock.release()

    def _work(self, job: Job, play: str) -> Answer:
        if play in FAULTS:
            raise CallEnded(play)
        if play == "new_model":
            self.sdk.model_hash = self.sdk.model_hash[::-1]
        lies, self.sdk.lies = self.sdk.lies, self.sdk.lies or play == "lies"
        try:
            mode = LOW if play == "low_power" else job.mode
            report = self.sdk.edit(job.frame, mode, job.strengths)
        finally:
            self.sdk.lies = lies
        frame = report.frame
        body = frame.data if job.form == "nv21" else _png(frame)
        return Answer(200, body, FORMATS[job.form], self._headers(job, report))

    def _headers(self, job: Job, report: Report) -> dict[str, str]:
        return {
            "X-Request-Id": job.request_id,
            "X-Quality-Mode": report.mode,
            "X-Working-Size": f"{report.working[0]}x{report.working[1]}",
            "X-Frame-Size": f"{report.frame.width}x{report.frame.height}",
            "X-Thermal-Before": report.thermal_before,
            "X-Thermal-After": report.thermal_after,
            "X-Sdk-Ms": f"{report.ms:.0f}",
            "X-Sdk-Version": VERSION,
            "X-Model-Hash": self.sdk.model_hash,
            "X-Faces": str(report.faces),
        }

    def close(self) -> None:
        """End the SDK's thread. May come twice."""
        self._thread.shutdown()
        self.sdk.close()


def failed(end: CallEnded, request_id: str = "") -> Answer:
    """A problem document (RFC 9457) with the contract's ``kind``, ``code`` and ``retryable``."""
    fault = FAULTS[end.code]
    problem = {
        "type": f"urn:phone-agent:{fault.kind}:{end.code}",
        "title": fault.title,
        "status": fault.status,
        "detail": end.detail,
        "kind": fault.kind,
        "code": end.code,
        "retryable": fault.retryable,
    }
    headers = {"X-Request-Id": request_id} if request_id else {}
    if fault.retry_after is not None:
        headers["Retry-After"] = str(fault.retry_after)
    return Answer(fault.status, json.dumps(problem).encode(), "application/problem+json", headers)


def _json_object(text: bytes | str) -> dict[str, Any]:
    try:
        said = json.loads(text or "{}")
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise CallEnded("bad_parameters", "the parameters are no JSON object")
    return said


def _strengths(said: Any) -> beautify.Strengths:
    if not isinstance(said, dict):
        raise CallEnded("bad_parameters", "'parameters' is no JSON object")
    for name, value in said.items():
        if name not in beautify.DEFAULTS:
            raise CallEnded("unknown_parameter", f"the SDK has no '{name}'")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            raise CallEnded("out_of_range", f"'{name}' takes 0 to 1")
    return beautify.Strengths(**said)


def _nv21_frame(said: Mapping[str, Any], body: bytes) -> Frame:
    width, height = said.get("width"), said.get("height")
    if not isinstance(width, int) or not isinstance(height, int) or min(width, height) < 1:
        raise CallEnded("bad_size", "an NV21 frame needs 'width' and 'height'")
    return Frame(body, width, height)


def _png_frame(body: bytes) -> Frame:
    found = None
    if body:
        found = cv2.imdecode(
            np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        )
    if found is None:
        raise CallEnded("bad_picture")
    pixels = np.ascontiguousarray(found[..., ::-1], dtype=np.uint8)
    return Frame(nv21.pack(pixels), pixels.shape[1], pixels.shape[0])


def _png(frame: Frame) -> bytes:
    pixels = nv21.unpack(frame.data, frame.width, frame.height)
    _, data = cv2.imencode(".png", pixels[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])
    return bytes(data.tobytes())
