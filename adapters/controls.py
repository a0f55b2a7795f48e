"""Tools whose harm is known beforehand: they check the instrument, not a vendor.

``identity`` must show nothing, ``reencode`` no disparity, ``uniform_harm`` a harm on everyone and no
disparity, ``group_harm`` a disparity. They alone may read a portrait's declared attributes.

Size of the harm: inside the grown face box the picture is blended with a Gaussian blur of itself
that is too wide to hold fine detail. A blend weight w leaves (1 - w) of every Laplacian value and
so (1 - w)^2 of its energy; ``strength`` is the share of energy taken away, w = 1 - sqrt(1 - strength).
Expect ``detail_change`` of about log2(1 - strength): -1 at the default 0.5. Measured on twelve
London and rendered faces at 1024 px: -0.41 (sd 0.01), -1.00 (0.04) and -1.98 (0.11) at strengths
0.25, 0.5 and 0.75. At strength 1 what is left is the blur's own, so no figure is announced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field

from adapters.codec import face_area, read_rgb, soft_window, write_jpeg, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from domain.edits import Edited, EditOutcome, EditRequest, Task
from domain.pictures import RgbPixels

BLUR_SHARE = 0.02
"""Sigma of the blur as a share of the grown face box's width: some 0.05 inter-eye distances."""
RIM_SHARE = 0.02
"""Over this share of the box's sides the harm fades out, so that no seam is left."""

Strength = Annotated[float, Field(ge=0, le=1)]


class NoSettings(Settings):
    """``identity`` has none."""


class ReencodeSettings(Settings):
    """``quality`` of the JPEG, 1 to 100."""

    quality: Annotated[int, Field(ge=1, le=100)] = 92


class UniformSettings(Settings):
    """``strength``: the share of the face's detail energy taken away, 0 to 1."""

    strength: Strength = 0.5


class GroupSettings(Settings):
    """The harm falls only where the portrait declares ``attribute`` as ``value``."""

    value: Annotated[str, Field(min_length=1)]
    attribute: Annotated[str, Field(min_length=1)] = "gender"
    strength: Strength = 0.5


def take_detail(pixels: RgbPixels, request: EditRequest, strength: float) -> RgbPixels:
    """A copy of ``pixels`` with ``strength`` of the face's Laplacian energy blended away."""
    rows, columns = face_area(request, pixels)
    face = pixels[rows, columns].astype(np.float32)
    height, width = face.shape[:2]
    smooth = cv2.GaussianBlur(face, (0, 0), max(BLUR_SHARE * width, 1.0))
    weight = (1 - math.sqrt(1 - strength)) * soft_window(height, width, RIM_SHARE)[..., None]
    harmed = pixels.copy()
    harmed[rows, columns] = np.clip(np.rint(face + weight * (smooth - face)), 0, 255)
    return harmed


def _identity(request: EditRequest, settings: NoSettings) -> Edited:
    if not request.picture:
        raise ValueError("the request has no picture")
    return Edited(request.picture)


def _reencode(request: EditRequest, settings: ReencodeSettings) -> Edited:
    return Edited(write_jpeg(read_rgb(request.picture), settings.quality))


def _uniform_harm(request: EditRequest, settings: UniformSettings) -> Edited:
    pixels = read_rgb(request.picture)
    return Edited(write_png(take_detail(pixels, request, settings.strength)), {"harmed": True})


def _group_harm(request: EditRequest, settings: GroupSettings) -> Edited:
    declared = request.attributes.get(settings.attribute, "").strip().casefold()
    if declared == settings.value.strip().casefold():
        pixels = read_rgb(request.picture)
        return Edited(write_png(take_detail(pixels, request, settings.strength)), {"harmed": True})
    if not request.picture:
        raise ValueError("the request has no picture")
    return Edited(request.picture, {"harmed": False})


class Control:
    """A control ready to work; keeps nothing between calls."""

    def __init__(self, offer: ControlTool, settings: Settings) -> None:
        self.spec = offer.SPEC
        self.model = f"likeness control {offer.SPEC.id} " + settings.model_dump_json()
        self._offer, self._settings = offer, settings

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The request's picture with the control's known change."""
        return self._offer.work(request, self._settings)

    def close(self) -> None:
        """Nothing to free."""


@dataclass(frozen=True)
class ControlTool:
    """One entry of ``TOOLS``. ``EXAMPLE`` are settings with which it can be built."""

    SPEC: ToolSpec
    settings: type[Settings]
    work: Callable[[EditRequest, Any], Edited]
    EXAMPLE: Mapping[str, Any]

    def build(self, settings: Mapping[str, Any]) -> Adapter:
        """Make the control. Raises LikenessError on a wrong or missing setting."""
        return Control(self, read_settings(self.settings, settings, self.SPEC.id))


def _spec(tool_id: str, name: str) -> ToolSpec:
    return ToolSpec(
        tool_id, name, tuple(Task), deterministic=True, control=True, licence="part of this program"
    )


TOOLS: tuple[ControlTool, ...] = (
    ControlTool(_spec("identity", "Control: the picture unchanged"), NoSettings, _identity, {}),
    ControlTool(_spec("reencode", "Control: saved again as JPEG"), ReencodeSettings, _reencode, {}),
    ControlTool(
        _spec("uniform_harm", "Control: facial detail removed from everyone"),
        UniformSettings,
        _uniform_harm,
        {},
    ),
    ControlTool(
        _spec("group_harm", "Control: facial detail removed from one group"),
        GroupSettings,
        _group_harm,
        {"attribute": "gender", "value": "woman"},
    ),
)
