"""A real inpainting pipeline in miniature: every module of diffusers, none of the training.

5 MB, a tenth of a second a picture on one core. What it paints is noise: it stands in for Stable
Diffusion wherever the machinery is under test (masks, seeds, sizes, seams, adapters), never for
what a trained model does to a face. The same seed gives the same files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.diffusion.quiet import quiet
from samples.tiny_single_file import original_names

SEED = 20260901
WORDS = 77
"""Tokens a prompt may have, as in every CLIP text model."""
PROMPT_WIDTH = 32


def tiny_pipeline(
    folder: Path, *, channels: int = 9, checker: float | None = None, seed: int = SEED
) -> Path:
    """Write an SD-1.5-like inpainting pipeline to ``folder``, and return it.

    ``channels`` of the UNet: 9 for an inpainting model, 4 for a text-to-image model. ``checker``
    is the threshold of a safety checker with random weights (-2 flags every picture, 2 none);
    None for a pipeline without one.
    """
    with quiet(), _seeded(seed):
        from diffusers import StableDiffusionInpaintPipeline

        text = _text_model(PROMPT_WIDTH)
        pipeline = StableDiffusionInpaintPipeline(
            vae=_vae(),
            text_encoder=text,
            tokenizer=_tokenizer(),
            unet=_unet(channels),
            scheduler=_scheduler(),
            safety_checker=None if checker is None else _checker(checker),
            feature_extractor=None if checker is None else _feature_extractor(),
            requires_safety_checker=checker is not None,
        )
        pipeline.save_pretrained(folder)
    return folder


def tiny_xl(folder: Path, *, seed: int = SEED) -> Path:
    """Write an SDXL-like inpainting pipeline (two text models, sizes as conditions)."""
    with quiet(), _seeded(seed):
        from diffusers import StableDiffusionXLInpaintPipeline

        pipeline = StableDiffusionXLInpaintPipeline(
            vae=_vae(),
            text_encoder=_text_model(PROMPT_WIDTH),
            text_encoder_2=_text_model(PROMPT_WIDTH, projected=True),
            tokenizer=_tokenizer(),
            tokenizer_2=_tokenizer(),
            unet=_unet(
                9,
                cross_attention_dim=2 * PROMPT_WIDTH,
                addition_embed_type="text_time",
                addition_time_embed_dim=8,
                projection_class_embeddings_input_dim=PROMPT_WIDTH + 6 * 8,
            ),
            scheduler=_scheduler(),
            add_watermarker=False,
        )
        pipeline.save_pretrained(folder)
    return folder


def tiny_lora(folder: Path, *, seed: int = SEED, size: float = 0.5) -> Path:
    """Write a LoRA of rank 4 for the UNet's attention to ``folder``; returns its .safetensors file.

    ``size`` is the spread of its weights: large enough to be seen in a picture.
    """
    with quiet(), _seeded(seed + 1):
        import torch
        from diffusers import StableDiffusionInpaintPipeline
        from peft import LoraConfig
        from peft.utils import get_peft_model_state_dict

        unet = _unet(9)
        unet.add_adapter(
            LoraConfig(r=4, lora_alpha=4, target_modules=["to_q", "to_k", "to_v", "to_out.0"])
        )
        layers = get_peft_model_state_dict(unet)
        drawn = {name: torch.randn_like(value) * size for name, value in layers.items()}
        folder.mkdir(parents=True, exist_ok=True)
        StableDiffusionInpaintPipeline.save_lora_weights(
            folder, unet_lora_layers=drawn, weight_name="tiny_lora.safetensors"
        )
    return folder / "tiny_lora.safetensors"


def tiny_single_file(folder: Path) -> Path:
    """Write the pipeline of ``tiny_pipeline`` as one .safetensors file, with the names that Stable
    Diffusion's own checkpoints have; ``folder/config`` is the pipeline folder it is described by."""
    config = tiny_pipeline(folder / "config")
    with quiet():
        from diffusers import StableDiffusionInpaintPipeline
        from safetensors.torch import save_file

        pipeline = StableDiffusionInpaintPipeline.from_pretrained(config, local_files_only=True)
        weights = original_names(
            pipeline.unet.state_dict(),
            pipeline.vae.state_dict(),
            pipeline.text_encoder.state_dict(),
        )
        save_file(weights, folder / "tiny.safetensors")
    return folder / "tiny.safetensors"


def _unet(channels: int, **more: Any) -> Any:
    from diffusers import UNet2DConditionModel

    settings: dict[str, Any] = {
        "sample_size": 16,
        "in_channels": channels,
        "out_channels": 4,
        "layers_per_block": 2,
        "block_out_channels": (32, 64),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": PROMPT_WIDTH,
        "attention_head_dim": 4,
        "norm_num_groups": 8,
    }
    return UNet2DConditionModel(**(settings | more))


def _vae() -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(16, 32, 32, 32),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        latent_channels=4,
        norm_num_groups=8,
        sample_size=128,
    )


def _text_model(width: int, projected: bool = False) -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    config = CLIPTextConfig(
        vocab_size=514,
        hidden_size=width,
        intermediate_size=37,
        num_hidden_layers=2,
        num_attention_heads=4,
        projection_dim=width,
        max_position_embeddings=WORDS,
        bos_token_id=512,
        eos_token_id=513,
        pad_token_id=513,
    )
    return (CLIPTextModelWithProjection if projected else CLIPTextModel)(config)


def _tokenizer() -> Any:
    """One token a byte, and one for a byte that ends a word, as CLIP has before its merges."""
    from transformers import CLIPTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(
        vocab={word: number for number, word in enumerate(words)}, merges=[], model_max_length=WORDS
    )


def _scheduler() -> Any:
    from diffusers import DDIMScheduler

    return DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        steps_offset=1,
        clip_sample=False,
        set_alpha_to_one=False,
    )


def _checker(threshold: float) -> Any:
    import torch
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPVisionConfig

    vision = CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        projection_dim=16,
    )
    checker = StableDiffusionSafetyChecker(
        CLIPConfig(vision_config=vision.to_dict(), projection_dim=16)
    )
    for values in (checker.concept_embeds_weights, checker.special_care_embeds_weights):
        torch.nn.init.constant_(values, threshold)
    return checker


def _feature_extractor() -> Any:
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(crop_size={"height": 32, "width": 32}, size={"shortest_edge": 32})


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's global generator, which modules draw their weights from, is put back afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def describe(folder: Path) -> str:
    """One line about the pipeline in ``folder``: its class and its size on disk in MB."""
    index = json.loads((folder / "model_index.json").read_text("utf-8"))
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return f"{index['_class_name']}, {size / 1e6:.1f} MB, random weights"
