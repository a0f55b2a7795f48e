"""The tiny diffusion models of samples/, and requests to go with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.codec import read_rgb, write_png
from adapters.stable_diffusion import DiffusionTool, build
from domain.edits import Edited, EditOutcome, EditRequest, Task
from domain.masks import Mask, MaskKind
from samples.tiny_diffusion import tiny_lora, tiny_pipeline, tiny_single_file, tiny_xl

__all__ = [
    "calls_of",
    "edited",
    "half_mask",
    "portrait",
    "request_for",
    "tiny_lora",
    "tiny_models",
    "tiny_pipeline",
    "tiny_single_file",
    "tiny_xl",
    "tool",
]


def tiny_models(folder: Path) -> Path:
    """``folder`` with tiny/, xl/, lora/ and single/tiny.safetensors in it."""
    tiny_pipeline(folder / "tiny")
    tiny_xl(folder / "xl")
    tiny_lora(folder / "lora")
    tiny_single_file(folder / "single")
    return folder


def tool(folder: Path, **settings: Any) -> DiffusionTool:
    """The adapter with two steps of the pipeline in ``folder``, on the CPU."""
    made = build({"model": str(folder), "steps": 2, "device": "cpu"} | settings)
    assert isinstance(made, DiffusionTool)
    return made


def portrait(width: int = 64, height: int = 64) -> np.ndarray:
    """(height, width, 3) uint8: a ramp with grain, no two pixels alike by design."""
    y, x = np.mgrid[:height, :width]
    grain = np.random.default_rng(0).integers(0, 40, (height, width, 3))
    ramp = np.stack([40 + x * 150 / width, 30 + y * 160 / height, (x + y) * 90 / width], axis=-1)
    return np.clip(ramp + grain, 0, 255).astype(np.uint8)


def half_mask(width: int = 64, height: int = 64) -> np.ndarray:
    """White below the middle row."""
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[height // 2 :] = 255
    return mask


def request_for(
    pixels: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    masked: bool = True,
    **changes: Any,
) -> EditRequest:
    pixels = portrait() if pixels is None else pixels
    height, width = pixels.shape[:2]
    mask = half_mask(width, height) if mask is None else mask
    settings: dict[str, Any] = {
        "item_id": "one",
        "task": Task.INPAINT_LOWER_FACE,
        "picture": write_png(pixels),
        "width": width,
        "height": height,
        "seed": 7,
        "prompt": "a chin",
        "mask": Mask(mask, MaskKind.LOWER_FACE) if masked else None,
    }
    return EditRequest(**(settings | changes))


def edited(outcome: EditOutcome) -> np.ndarray:
    """The picture's pixels as int; the outcome is shown when there is none."""
    assert isinstance(outcome, Edited), outcome
    return read_rgb(outcome.picture).astype(int)


def calls_of(pipeline_class: type, patch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of every call of ``pipeline_class`` from now on; the calls are made all the same."""
    calls: list[dict[str, Any]] = []
    real: Callable[..., Any] = pipeline_class.__call__

    @wraps(real)
    def recorded(self: Any, **named: Any) -> Any:
        calls.append(named)
        return real(self, **named)

    patch.setattr(pipeline_class, "__call__", recorded)
    return calls
