"""Settings of the phone tool, and what a device must have for them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from adapters.guard import Settings, one_line
from adapters.over_http.wire import HttpSettings
from adapters.phone.answers import Capabilities
from domain.errors import did_you_mean

HIGH = "HIGH_ACCURACY"


class PullSettings(Settings):
    """``listen`` "address:port" is where the phone asks for work, ``device`` the only device id that
    is served ("": the first that asks), ``wait_s`` how long one is waited for."""

    listen: str = "127.0.0.1:8643"
    device: str = ""
    wait_s: Annotated[float, Field(gt=0, le=3600)] = 60.0


class MobileSettings(HttpSettings):
    """One way to the phone: ``base_url``, or ``adb`` (with ``serial`` where several are connected, and
    ``port`` or ``socket``, an abstract socket's name, where the agent listens on the phone), or ``pull``.
    ``parameters`` are the SDK's own. ``frame`` is the shape of pictures sent, ``max_side`` their longest
    side. The key is the agent's token; ``pull`` cannot do without."""

    base_url: str = ""
    adb: bool = False
    serial: str = ""
    port: Annotated[int, Field(ge=1, le=65535)] = 8642
    socket: str = ""
    adb_program: str = "adb"
    adb_server_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    pull: PullSettings | None = None
    transport: Literal["png", "nv21"] = "png"
    quality_mode: str = HIGH
    require_high_accuracy: bool = True
    parameters: dict[str, float] = Field(default_factory=dict)
    frame: Literal["3:4", "4:3"] = "3:4"
    max_side: Annotated[int, Field(ge=64, le=8192)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.base_url != "") + self.adb + (self.pull is not None) != 1:
            raise ValueError("one way to the phone is needed: 'base_url', 'adb: true' or 'pull'")
        if self.pull is not None and self.key is None:
            raise ValueError("'pull' needs a token as its key, that the phone must present")
        return self


def unmet(wanted: MobileSettings, able: Capabilities) -> str:
    """Why a device with these capabilities cannot do what is wanted, in one line; "" when it can."""
    if wanted.quality_mode not in able.quality_modes:
        modes = one_line(", ".join(able.quality_modes), 100)
        return f"the device has no quality mode {wanted.quality_mode}; it has {modes}"
    if wanted.transport not in able.colour_formats:
        return f"the device does not take {wanted.transport} frames"
    for name, value in wanted.parameters.items():
        known = able.parameters.get(name)
        if known is None:
            return f"the SDK has no parameter '{name}'{did_you_mean(name, able.parameters)}"
        if not known.min <= value <= known.max:
            return f"parameter '{name}' takes {known.min:g} to {known.max:g}"
    return ""
