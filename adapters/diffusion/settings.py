"""What a plan may say about a diffusion model."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adapters.guard import Settings

Dtype = Literal["float32", "fp16", "bf16"]
SchedulerName = Literal[
    "as_loaded",
    "ddim",
    "dpmpp_2m",
    "euler",
    "euler_ancestral",
    "heun",
    "lms",
    "pndm",
    "unipc",
]


class Lora(BaseModel):
    """One LoRA. ``path`` is a .safetensors file, or a folder that holds one, relative to the plan.
    ``scale`` is its weight (0: as if it were not there)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, Field(min_length=1)]
    scale: Annotated[float, Field(ge=-10, le=10)] = 1.0
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,64}$")] = ""


class DiffusionSettings(Settings):
    """``model`` is a folder or a single file (relative to the plan's folder, ``cwd``) or a hub id
    "owner/name", looked up in the local Hugging Face cache; it is fetched only with ``download``
    true. ``config`` is the pipeline folder that describes a single file. ``variant`` and
    ``revision`` are the hub's. ``vae`` replaces the model's own (a folder).

    ``steps``, ``guidance``, ``strength``, ``negative_prompt``, ``scheduler`` and
    ``padding_mask_crop`` (px) are handed to the pipeline; an empty ``strength`` is 1 for inpainting
    and 0.5 where the whole picture is repainted. ``max_side`` in px is the longest side sent (0: the
    model's own). ``batch_size`` is how many pictures ``edit_batch`` paints at once.

    ``composite`` puts the protected pixels back; ``seam`` is the width in px, inside the mask, over
    which they fade into the painted ones. ``safety_checker`` "on" insists on one.

    ``threads`` is torch's count for the time of an edit: the bits are the same for the same count.
    """

    model: Annotated[str, Field(min_length=1)]
    config: str = ""
    vae: str = ""
    variant: str = ""
    revision: str = ""
    download: bool = False
    cwd: str = ""
    loras: tuple[Lora, ...] = ()

    steps: Annotated[int, Field(ge=1, le=1000)] = 30
    guidance: Annotated[float, Field(ge=0, le=100)] = 7.5
    strength: Annotated[float, Field(gt=0, le=1)] | None = None
    negative_prompt: str = ""
    scheduler: SchedulerName = "as_loaded"
    padding_mask_crop: Annotated[int, Field(ge=0, le=4096)] | None = None
    max_side: Annotated[int, Field(ge=0, le=8192)] = 0
    batch_size: Annotated[int, Field(ge=1, le=64)] = 1

    composite: bool = True
    seam: Annotated[int, Field(ge=0, le=256)] = 4
    safety_checker: Literal["as_loaded", "on", "off"] = "as_loaded"

    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d{1,2})?)$")] = "auto"
    dtype: Dtype = "float32"
    matmul: Literal["highest", "high", "medium"] = "highest"
    attention_slicing: Literal["none", "auto", "max"] | Annotated[int, Field(ge=1)] = "none"
    cpu_offload: Literal["none", "model", "sequential"] = "none"
    vae_slicing: bool = False
    vae_tiling: bool = False
    threads: Annotated[int, Field(ge=1, le=64)] = 1

    @model_validator(mode="after")
    def _something_is_done(self) -> Self:
        if self.strength is not None and int(self.steps * self.strength) < 1:
            raise ValueError(
                f"strength {self.strength:g} of {self.steps} steps leaves none to be done"
            )
        names = [self.lora_name(number) for number in range(len(self.loras))]
        if len(set(names)) < len(names):
            raise ValueError("loras: two have the same name")
        return self

    def lora_name(self, number: int) -> str:
        """The name of the LoRA ``number``, counted from 0: its own, or one made up."""
        return self.loras[number].name or f"lora_{number}"
