"""From the files of a diffusion model to a pipeline ready to paint."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from adapters.diffusion.quiet import quiet
from adapters.diffusion.settings import DiffusionSettings
from adapters.diffusion.source import Source
from domain.errors import LikenessError

SCHEDULERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ddim": ("DDIMScheduler", {}),
    "dpmpp_2m": ("DPMSolverMultistepScheduler", {}),
    "euler": ("EulerDiscreteScheduler", {}),
    "euler_ancestral": ("EulerAncestralDiscreteScheduler", {}),
    "heun": ("HeunDiscreteScheduler", {}),
    "lms": ("LMSDiscreteScheduler", {}),
    "pndm": ("PNDMScheduler", {}),
    "unipc": ("UniPCMultistepScheduler", {}),
}
"""Class and extra settings of each scheduler; the rest is taken over from the model's own."""
DTYPES = {"float32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def pick_device(wanted: str) -> str:
    """ "cuda", "mps" or "cpu" for "auto"; otherwise what was wanted. Raises LikenessError when it is
    not there: a run on another device than the plan's would be another run."""
    import torch

    if wanted == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if wanted.startswith("cuda"):
        number = int(wanted.partition(":")[2] or 0)
        if not torch.cuda.is_available() or number >= torch.cuda.device_count():
            raise LikenessError(
                f"device '{wanted}' is not there: this machine's torch sees no such"
            )
    if wanted == "mps" and not torch.backends.mps.is_available():
        raise LikenessError("device 'mps' is not there: this machine's torch sees no such")
    return wanted


def load_pipeline(settings: DiffusionSettings, source: Source, device: str) -> Any:
    """The pipeline on ``device``, with its LoRAs, scheduler and memory settings. Raises whatever the
    packages raise, LikenessError where the cause can be named."""
    import torch

    with quiet():
        dtype = getattr(torch, DTYPES[settings.dtype])
        pipe = (
            _from_file(settings, source, dtype)
            if source.file
            else _from_folder(settings, source, dtype)
        )
        pipe.set_progress_bar_config(disable=True)
        _set_scheduler(pipe, settings)
        _add_loras(pipe, settings, source)
        _save_memory(pipe, settings)
        _place(pipe, settings, device)
    return pipe


def _from_folder(settings: DiffusionSettings, source: Source, dtype: Any) -> Any:
    from diffusers import AutoPipelineForInpainting

    parts = _replaced_parts(settings, source, dtype)
    if settings.variant:
        parts["variant"] = settings.variant
    return AutoPipelineForInpainting.from_pretrained(
        source.folder, dtype=dtype, local_files_only=True, **parts
    )


def _from_file(settings: DiffusionSettings, source: Source, dtype: Any) -> Any:
    import diffusers

    classes = {
        "StableDiffusionXL": diffusers.StableDiffusionXLInpaintPipeline,
        "StableDiffusion": diffusers.StableDiffusionInpaintPipeline,
    }
    family = source.kind.removesuffix("Pipeline").removesuffix("Img2Img").removesuffix("Inpaint")
    if family not in classes:
        raise LikenessError(
            f"a single file is read for Stable Diffusion 1, 2 and XL, not for '{source.kind}'"
        )
    parts = _replaced_parts(settings, source, dtype)
    if settings.safety_checker == "on":  # a single file never brings one
        from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
        from transformers import CLIPImageProcessor

        where = {"subfolder": "safety_checker", "local_files_only": True}
        parts["safety_checker"] = StableDiffusionSafetyChecker.from_pretrained(
            source.folder, dtype=dtype, **where
        )
        parts["feature_extractor"] = CLIPImageProcessor.from_pretrained(
            source.folder, subfolder="feature_extractor", local_files_only=True
        )
    # without a local folder as config, diffusers goes to the hub even when told not to
    return classes[family].from_single_file(
        str(source.file), config=str(source.folder), local_files_only=True, dtype=dtype, **parts
    )


def _replaced_parts(settings: DiffusionSettings, source: Source, dtype: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if settings.safety_checker == "off" and "safety_checker" in source.index:
        parts |= {"safety_checker": None, "requires_safety_checker": False}
    if source.vae is not None:
        from diffusers import AutoencoderKL

        parts["vae"] = AutoencoderKL.from_pretrained(source.vae, dtype=dtype, local_files_only=True)
    return parts


def _set_scheduler(pipe: Any, settings: DiffusionSettings) -> None:
    if settings.scheduler == "as_loaded":
        return
    import diffusers

    name, extra = SCHEDULERS[settings.scheduler]
    pipe.scheduler = getattr(diffusers, name).from_config(pipe.scheduler.config, **extra)


def _add_loras(pipe: Any, settings: DiffusionSettings, source: Source) -> None:
    if not settings.loras:
        return
    names = [settings.lora_name(number) for number in range(len(settings.loras))]
    for (path, _), name, lora in zip(source.loras, names, settings.loras, strict=True):
        if not hasattr(pipe, "load_lora_weights"):
            raise LikenessError(f"{type(pipe).__name__} takes no LoRA")
        with contextlib.suppress(ValueError):  # "invalid keys": found out by what it left, below
            pipe.load_lora_weights(
                str(path.parent), weight_name=path.name, adapter_name=name, local_files_only=True
            )
        taken = {one for part in pipe.get_list_adapters().values() for one in part}
        if name not in taken:  # diffusers only warns, and the run would be one without it
            raise LikenessError(f"lora '{lora.path}' fits no layer of this model")
    pipe.set_adapters(names, [lora.scale for lora in settings.loras])


def _save_memory(pipe: Any, settings: DiffusionSettings) -> None:
    if settings.attention_slicing != "none":
        pipe.enable_attention_slicing(settings.attention_slicing)
    if settings.vae_slicing:
        pipe.vae.enable_slicing()
    if settings.vae_tiling:
        pipe.vae.enable_tiling()


def _place(pipe: Any, settings: DiffusionSettings, device: str) -> None:
    if device == "cpu" or settings.cpu_offload == "none":
        pipe.to(device)
    elif settings.cpu_offload == "model":
        pipe.enable_model_cpu_offload(device=device)
    else:
        pipe.enable_sequential_cpu_offload(device=device)
