"""One call of a diffusers inpainting pipeline: what goes in, what comes out, and what was wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from adapters.diffusion.compositing import MaskPixels, pad_to_multiple
from adapters.diffusion.quiet import quiet
from adapters.diffusion.settings import DiffusionSettings
from domain.pictures import RgbPixels

LEAST_SIDE = 64
"""A latent of fewer than 8x8 numbers does not survive the UNet's halvings."""


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """One picture to be painted on: ``pixels`` (h, w, 3) and ``mask`` (h, w), white = edit."""

    pixels: RgbPixels
    mask: MaskPixels
    prompt: str
    seed: int
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Painted:
    """``pixels`` at the canvas's size, as the pipeline gave them. ``flagged``: by the safety checker.
    ``broken`` names where numbers overflowed: "latents", "picture" or "" for nowhere."""

    pixels: RgbPixels
    flagged: bool
    broken: str
    sent: tuple[int, int]
    """Width and height that the pipeline was called with."""


def paint(
    pipe: Any, canvases: Sequence[Canvas], settings: DiffusionSettings, multiple: int
) -> list[Painted]:
    """Paint the canvases in one call; all have one size and one strength. Every picture has a
    generator of its own, seeded on the CPU: its noise is the same in any batch and on any device."""
    import torch

    pixels = [pad_to_multiple(c.pixels, multiple, LEAST_SIDE) for c in canvases]
    masks = [pad_to_multiple(c.mask, multiple, LEAST_SIDE) for c in canvases]
    height, width = pixels[0].shape[:2]
    call: dict[str, Any] = {
        "prompt": [c.prompt for c in canvases],
        "negative_prompt": [settings.negative_prompt for _ in canvases],
        "image": [Image.fromarray(p) for p in pixels],
        "mask_image": [Image.fromarray(m) for m in masks],
        "generator": [torch.Generator("cpu").manual_seed(c.seed) for c in canvases],
    }
    if settings.padding_mask_crop is not None:  # diffusers takes one PIL picture then, no list
        if len(canvases) != 1:
            raise ValueError("with padding_mask_crop pictures are painted one by one")
        call = {name: value[0] for name, value in call.items()}
        call |= {"padding_mask_crop": settings.padding_mask_crop}
    cropped = settings.padding_mask_crop is not None
    call |= {
        "width": width,
        "height": height,
        "num_inference_steps": settings.steps,
        "guidance_scale": settings.guidance,
        "strength": canvases[0].strength,
        "output_type": "pil" if cropped else "np",
    }
    watch = _Watch(len(canvases))
    with quiet(), _torch_set(settings), watch.decoded(pipe):
        answer = pipe(**_known_to(pipe, call | {"callback_on_step_end": watch.step}))
    flags = getattr(answer, "nsfw_content_detected", None) or [False] * len(canvases)
    return [
        Painted(_cut(_levels(image), canvas), bool(flag), broken, (width, height))
        for image, canvas, flag, broken in zip(
            answer.images, canvases, flags, watch.found(), strict=True
        )
    ]


class _Watch:
    """Looks for numbers that are none, before a cast to 8 bits turns them into black."""

    def __init__(self, count: int) -> None:
        self._latents = [False] * count
        self._picture = [False] * count

    def step(self, pipe: Any, step: int, time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        """diffusers' callback at the end of each step."""
        _mark(self._latents, tensors["latents"])
        if all(self._latents):
            pipe._interrupt = True  # nothing comes of the steps left
        return {}

    @contextmanager
    def decoded(self, pipe: Any) -> Iterator[None]:
        """Look at every picture between the VAE and its cast to 8 bits."""
        processor = pipe.image_processor
        real = processor.postprocess

        def postprocess(image: Any, *more: Any, **named: Any) -> Any:
            _mark(self._picture, image)
            return real(image, *more, **named)

        processor.postprocess = postprocess
        try:
            yield
        finally:
            del processor.postprocess

    def found(self) -> list[str]:
        return [
            "latents" if latents else "picture" if picture else ""
            for latents, picture in zip(self._latents, self._picture, strict=True)
        ]


def _mark(broken: list[bool], tensor: Any) -> None:
    for number, finite in enumerate(tensor.isfinite().flatten(1).all(1).tolist()):
        if number < len(broken):
            broken[number] = broken[number] or not finite


def _known_to(pipe: Any, call: dict[str, Any]) -> dict[str, Any]:
    """The arguments that this pipeline's call has; other families lack some (negative prompts)."""
    known = inspect.signature(pipe.__call__).parameters
    return {name: value for name, value in call.items() if name in known}


def _levels(image: Any) -> RgbPixels:
    """8-bit pixels of a float (0..1) array or a PIL picture; what is no number becomes black."""
    if isinstance(image, Image.Image):
        return np.array(image.convert("RGB"), dtype=np.uint8)
    numbers = np.nan_to_num(np.asarray(image, dtype=np.float32), nan=0.0, posinf=1.0, neginf=0.0)
    return np.rint(numbers * 255).clip(0, 255).astype(np.uint8)


def _cut(pixels: RgbPixels, canvas: Canvas) -> RgbPixels:
    height, width = canvas.pixels.shape[:2]
    if pixels.shape[0] < height or pixels.shape[1] < width:
        raise ValueError(
            f"the pipeline answered {pixels.shape[1]}x{pixels.shape[0]} for {width}x{height}"
        )
    return np.ascontiguousarray(pixels[:height, :width])


@contextmanager
def _torch_set(settings: DiffusionSettings) -> Iterator[None]:
    """torch's thread count and float32 precision, which its bits depend on, for the time of a call."""
    import torch

    threads, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision(settings.matmul)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(matmul)
