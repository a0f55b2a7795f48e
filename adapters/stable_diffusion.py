"""Stable Diffusion and its kin, run here: diffusers' inpainting pipelines (Apache-2.0).

Takes SD 1, 2 and XL and every family that ``AutoPipelineForInpainting`` knows, from a folder, a
single file or the local Hugging Face cache. The three inpainting tasks need the request's mask.
RETOUCH and RESTYLE repaint the whole picture (a mask that is white all over): for a model with a
4-channel UNet that is image-to-image, step for step; an inpainting model (9 channels) gets a blank
"masked picture" beside it and holds the face by ``strength`` alone.

A picture whose sides are no multiple of the latent's 8 px gets its last row and column repeated,
and the result is cut back: nothing is resampled. See docs/tools/stable_diffusion.md.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import numpy as np

from adapters.codec import read_rgb, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.diffusion.compositing import MaskPixels, composite, edge_figures
from adapters.diffusion.loading import load_pipeline, pick_device
from adapters.diffusion.painting import LEAST_SIDE, Canvas, Painted, paint
from adapters.diffusion.prompts import SEEDS, prompt_for
from adapters.diffusion.settings import DiffusionSettings
from adapters.diffusion.source import Source, find_source
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.pictures import RgbPixels
from domain.sizing import SizeRule

SPEC = ToolSpec(
    id="stable_diffusion",
    name="Stable Diffusion (diffusers, local)",
    tasks=(
        Task.INPAINT_BACKGROUND,
        Task.INPAINT_FACE,
        Task.INPAINT_LOWER_FACE,
        Task.RETOUCH,
        Task.RESTYLE,
    ),
    size=SizeRule(min_side=LEAST_SIDE),
    mask_support="enforced",
    takes_prompt=True,
    seedable=True,
    extra="diffusion",
    licence="the model's own",
    path_settings=("cwd",),
    refuses=("whatever the model's own safety checker flags, if it has one",),
)
EXAMPLE: Mapping[str, Any] = {"steps": 2, "device": "cpu"}
"""``model`` is wanting: the conformance suite builds a tiny one first."""
WHOLE = (Task.RETOUCH, Task.RESTYLE)
BLACK = 2
"""A picture with no level above this is black."""
PACKAGES = ("diffusers", "transformers", "accelerate", "peft", "safetensors")
MEND = "use dtype bf16 or float32, or a VAE made for fp16 (setting 'vae')"


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. The model is looked for now and loaded at the first edit. Raises LikenessError
    on a wrong setting or a model that is not there, ImportError without the packages."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise ImportError(f"No module named '{package}'")
    checked = read_settings(DiffusionSettings, settings, SPEC.id)
    try:
        return DiffusionTool(checked, find_source(checked), pick_device(checked.device))
    except LikenessError as error:
        raise LikenessError(f"tool '{SPEC.id}': {error}") from None


class DiffusionTool:
    """Holds the pipeline between edits; ``close`` lets go of its gigabytes."""

    def __init__(self, settings: DiffusionSettings, source: Source, device: str) -> None:
        self._settings, self._source, self._device = settings, source, device
        self._pipe: Any = None
        self._closed = False
        most = settings.max_side or max(source.own_side, LEAST_SIDE)
        self.spec = replace(
            SPEC,
            size=SizeRule(min_side=min(LEAST_SIDE, most), max_side=most),
            mask_support="enforced" if settings.composite else "advisory",
            deterministic=device == "cpu",
        )
        self.model = _model_string(settings, source, device)

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The painted picture at the size sent; ``meta`` holds what was sent, the raw picture's
        drift outside the mask and the seam."""
        return self._paint_group([self._canvas(request)], [request])[0]

    def edit_batch(self, requests: Sequence[EditRequest]) -> list[EditOutcome]:
        """Outcomes in order, ``batch_size`` pictures of one size and strength in a call. Each has
        the noise it would have alone; on some hardware the sums round differently by batch size."""
        outcomes: list[EditOutcome] = []
        ready = [(request, self._ready(request)) for request in requests]
        alone = self._settings.padding_mask_crop is not None
        for key, run in groupby(ready, lambda pair: _batch_key(pair[1])):
            members = list(run)
            if key is None:
                outcomes += [found for _, found in members if not isinstance(found, Canvas)]
                continue
            size = 1 if alone else self._settings.batch_size
            for start in range(0, len(members), size):
                outcomes += self._batch(members[start : start + size])
        return outcomes

    def close(self) -> None:
        """Let go of the pipeline and of the device memory that torch keeps back."""
        self._pipe, self._closed = None, True
        _free_memory()

    def _ready(self, request: EditRequest) -> Canvas | EditOutcome:
        """The request's canvas, or how it ended."""
        try:
            return self._canvas(request)
        except ValueError as error:
            return Failed(one_line(str(error)))

    def _batch(self, members: Sequence[tuple[EditRequest, Any]]) -> list[EditOutcome]:
        """One call; whatever ends it is the end of all that were in it."""
        canvases = [canvas for _, canvas in members]
        try:
            return self._paint_group(canvases, [request for request, _ in members])
        except EditEnded as end:
            return [end.outcome] * len(members)
        except Exception as error:
            return [Failed(one_line(f"{type(error).__name__}: {error}"))] * len(members)

    def _canvas(self, request: EditRequest) -> Canvas:
        pixels = read_rgb(request.picture)
        mask = _mask(request, pixels)
        default = 0.5 if request.task in WHOLE else 1.0
        strength = self._settings.strength or default
        if int(self._settings.steps * strength) < 1:
            raise ValueError(
                f"strength {strength:g} of {self._settings.steps} steps leaves none to be done"
            )
        prompt = prompt_for(request).replace("\0", " ")
        return Canvas(pixels, mask, prompt, request.seed % SEEDS, strength)

    def _paint_group(
        self, canvases: Sequence[Canvas], requests: Sequence[EditRequest]
    ) -> list[EditOutcome]:
        import torch

        if self._closed:
            return [Failed("the tool was closed")] * len(canvases)
        pipe = self._loaded()
        try:
            painted = paint(pipe, canvases, self._settings, self._source.multiple)
        except torch.OutOfMemoryError:
            raise EditEnded(Failed(self._out_of_memory(canvases))) from None
        return [
            self._outcome(canvas, one, request)
            for canvas, one, request in zip(canvases, painted, requests, strict=True)
        ]

    def _loaded(self) -> Any:
        if self._pipe is None:
            try:
                self._pipe = load_pipeline(self._settings, self._source, self._device)
            except Exception as error:  # damaged files, foreign formats, too little memory
                _free_memory()
                text = self._source.without_paths(str(error) or type(error).__name__)
                if "weights_only" in text:  # torch advises to let the file run its code
                    text = "a weights file holds more than weights; use .safetensors files"
                said = one_line(f"the model could not be loaded: {text}", 300)
                raise EditEnded(Failed(said, meta={"stop": True})) from None
        return self._pipe

    def _out_of_memory(self, canvases: Sequence[Canvas]) -> str:
        _free_memory()
        height, width = canvases[0].pixels.shape[:2]
        ways = ["a smaller max_side", "dtype bf16", "cpu_offload: model", "vae_tiling: true"]
        if len(canvases) > 1:
            ways.insert(0, "a smaller batch_size")
        return (
            f"out of memory on {self._device} with {len(canvases)} picture(s) of {width}x{height}; "
            f"try {', '.join(ways)}"
        )

    def _outcome(self, canvas: Canvas, painted: Painted, request: EditRequest) -> EditOutcome:
        meta: dict[str, Any] = {"sent": self._sent(canvas, painted)}
        if painted.flagged:
            said = "the model's safety checker flagged the picture and blacked it out"
            return Refused("output", "nsfw_content_detected", said, meta)
        if painted.broken:
            return Failed(self._overflow(painted.broken), meta=meta)
        if _went_black(
            canvas, painted.pixels, cropped=self._settings.padding_mask_crop is not None
        ):
            return Failed(
                f"the picture came back black and no safety checker had flagged it; numbers that "
                f"overflow do that (dtype {self._settings.dtype}): {MEND}",
                meta=meta,
            )
        result = painted.pixels
        if self._settings.composite:
            result = composite(canvas.pixels, result, canvas.mask, self._settings.seam)
        meta |= edge_figures(canvas.pixels, painted.pixels, result, canvas.mask)
        return Edited(write_png(result), meta)

    def _overflow(self, where: str) -> str:
        dtype = self._settings.dtype
        place = "the latents" if where == "latents" else "the picture that the VAE decoded"
        mend = MEND if dtype == "fp16" else "the model's weights may be damaged"
        return f"numbers overflowed (not a number in {place}) with dtype {dtype}: {mend}"

    def _sent(self, canvas: Canvas, painted: Painted) -> dict[str, Any]:
        s = self._settings
        return {
            "prompt": canvas.prompt,
            "negative_prompt": s.negative_prompt,
            "seed": canvas.seed,
            "steps": s.steps,
            "guidance": s.guidance,
            "strength": canvas.strength,
            "width": painted.sent[0],
            "height": painted.sent[1],
            "padding_mask_crop": s.padding_mask_crop,
            "composite": s.composite,
            "threads": s.threads,
        }


def _batch_key(found: Canvas | EditOutcome) -> tuple[Any, ...] | None:
    return (found.pixels.shape, found.strength) if isinstance(found, Canvas) else None


def _mask(request: EditRequest, pixels: RgbPixels) -> MaskPixels:
    """The request's mask (white = edit, as diffusers has it too); white all over for a whole-picture
    task without one."""
    if request.mask is None:
        if request.task not in WHOLE:
            raise ValueError("the request has no mask")
        return np.full(pixels.shape[:2], 255, dtype=np.uint8)
    if request.mask.values.shape != pixels.shape[:2]:
        raise ValueError("the mask has another size than the picture")
    if not request.mask.values.any():
        raise ValueError("the mask is empty: nothing would be edited")
    return request.mask.values


def _went_black(canvas: Canvas, painted: RgbPixels, cropped: bool) -> bool:
    """Black all over though the original was not. After padding_mask_crop the pipeline has put the
    surroundings back itself, so that only what was masked can tell."""
    where = canvas.mask > 127 if cropped else np.ones(canvas.mask.shape, dtype=bool)
    if not where.any():
        return False
    return bool(painted[where].max() <= BLACK < canvas.pixels[where].max())


def _free_memory() -> None:
    gc.collect()
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _model_string(settings: DiffusionSettings, source: Source, device: str) -> str:
    own = source.config("scheduler", "scheduler_config.json").get("_class_name", "own scheduler")
    scheduler = own if settings.scheduler == "as_loaded" else settings.scheduler
    loras = [
        f"lora {settings.lora_name(number)} x{lora.scale:g} ({source.loras[number][1]})"
        for number, lora in enumerate(settings.loras)
    ]
    parts = [
        f"{source.name} ({source.version})",
        source.kind,
        *loras,
        *([f"vae {source.vae.name}"] if source.vae else []),
        str(scheduler),
        settings.dtype,
        device,
        f"diffusers {_version('diffusers')}",
        f"torch {_version('torch')}",
    ]
    return ", ".join(parts)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
