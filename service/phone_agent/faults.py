"""The contract's error tree: what is the device's trouble, what the caller's, and what is a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which an edit can end without a picture."""

    status: int
    kind: str
    """"device" (its state; another time may do), "call" (what was sent; never do it again) or
    "refusal" (the SDK will not do it)."""
    title: str
    retry_after: int | None = None
    retryable: bool = False


FAULTS: Mapping[str, Fault] = {
    "busy": Fault(409, "device", "the device is at work on another edit", 1, True),
    "locked": Fault(423, "device", "the device is held by its user or another session", 5, True),
    "thermal": Fault(503, "device", "the device is too hot to work", 30, True),
    "low_battery": Fault(503, "device", "the device's battery is too low to work", 300, True),
    "sdk_crashed": Fault(500, "device", "the SDK crashed and was started again", 2, True),
    "device_lost": Fault(502, "device", "the device is gone"),
    "model_missing": Fault(500, "device", "the SDK's model file is not on the device"),
    "bad_picture": Fault(400, "call", "the picture cannot be read"),
    "bad_size": Fault(400, "call", "the frame has a size that the SDK does not take"),
    "bad_parameters": Fault(400, "call", "the parameters cannot be read"),
    "unknown_parameter": Fault(400, "call", "the SDK has no such parameter"),
    "out_of_range": Fault(400, "call", "a parameter is out of its range"),
    "unknown_quality_mode": Fault(400, "call", "the SDK has no such quality mode"),
    "unauthorized": Fault(401, "call", "the token is missing or wrong"),
    "too_large": Fault(413, "call", "the picture is too large"),
    "unsupported_format": Fault(415, "call", "the colour format is not one of the device's"),
    "refused": Fault(422, "refusal", "the SDK does not edit this picture"),
}


class CallEnded(Exception):
    """Ends an edit with the fault ``code`` and a sentence about this very call."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail or FAULTS[code].title
