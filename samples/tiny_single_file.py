"""A pipeline's weights under the names of Stable Diffusion's original single-file checkpoints.

The rules are those of diffusers' ``convert_diffusers_to_original_stable_diffusion.py`` (Apache-2.0),
for any number of levels with two layers each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Rules = tuple[tuple[str, str], ...]
"""Pairs of pattern and replacement; every pair is tried, in order."""

UNET_ENDS: Rules = (
    (r"^time_embedding\.linear_1", "time_embed.0"),
    (r"^time_embedding\.linear_2", "time_embed.2"),
    (r"^conv_in", "input_blocks.0.0"),
    (r"^conv_norm_out", "out.0"),
    (r"^conv_out", "out.2"),
)
UNET_RESNET: Rules = (
    (r"\.norm1\.", ".in_layers.0."),
    (r"\.conv1\.", ".in_layers.2."),
    (r"\.norm2\.", ".out_layers.0."),
    (r"\.conv2\.", ".out_layers.3."),
    (r"\.time_emb_proj\.", ".emb_layers.1."),
    (r"\.conv_shortcut\.", ".skip_connection."),
)
VAE: Rules = (
    (r"conv_shortcut", "nin_shortcut"),
    (r"conv_norm_out", "norm_out"),
    (r"mid_block\.attentions\.0\.group_norm", "mid.attn_1.norm"),
    (r"mid_block\.attentions\.0\.to_([qkv])\.", r"mid.attn_1.\1."),
    (r"mid_block\.attentions\.0\.to_out\.0", "mid.attn_1.proj_out"),
    (r"mid_block\.resnets\.0", "mid.block_1"),
    (r"mid_block\.resnets\.1", "mid.block_2"),
    (r"encoder\.down_blocks\.(\d)\.resnets", r"encoder.down.\1.block"),
    (r"encoder\.down_blocks\.(\d)\.downsamplers\.0", r"encoder.down.\1.downsample"),
    (r"decoder\.up_blocks\.(\d)\.resnets", r"decoder.up.\1.block"),
    (r"decoder\.up_blocks\.(\d)\.upsamplers\.0", r"decoder.up.\1.upsample"),
)


def original_names(
    unet: Mapping[str, Tensor], vae: Mapping[str, Tensor], text: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The three modules' weights as one checkpoint."""
    levels = 1 + max(
        int(found[1]) for name in unet if (found := re.match(r"up_blocks\.(\d)", name))
    )
    crossed = {
        int(found[1]) for name in unet if (found := re.match(r"up_blocks\.(\d)\.attentions", name))
    }
    named = {
        f"model.diffusion_model.{_unet_name(name, levels, crossed)}": value.contiguous()
        for name, value in unet.items()
    }
    depth = 1 + max(int(f[1]) for name in vae if (f := re.match(r"decoder\.up_blocks\.(\d)", name)))
    for name, value in vae.items():
        convolved = "mid_block.attentions.0.to_" in name and name.endswith("weight")
        shaped = value[:, :, None, None] if convolved else value  # they were 1x1 convolutions
        named[f"first_stage_model.{_vae_name(name, depth)}"] = shaped.contiguous()
    for name, value in text.items():
        whole = name if name.startswith("text_model.") else f"text_model.{name}"
        named[f"cond_stage_model.transformer.{whole}"] = value.contiguous()
    return named


def _unet_name(name: str, levels: int, crossed: set[int]) -> str:
    if found := re.match(r"down_blocks\.(\d)\.(resnets|attentions)\.(\d)\.(.*)", name):
        place = f"input_blocks.{3 * int(found[1]) + int(found[3]) + 1}.{int(found[2] != 'resnets')}"
        return _resnet(f"{place}.{found[4]}", found[2])
    if found := re.match(r"down_blocks\.(\d)\.downsamplers\.0\.conv\.(.*)", name):
        return f"input_blocks.{3 * (int(found[1]) + 1)}.0.op.{found[2]}"
    if found := re.match(r"up_blocks\.(\d)\.(resnets|attentions)\.(\d)\.(.*)", name):
        place = f"output_blocks.{3 * int(found[1]) + int(found[3])}.{int(found[2] != 'resnets')}"
        return _resnet(f"{place}.{found[4]}", found[2])
    if found := re.match(r"up_blocks\.(\d)\.upsamplers\.0\.(.*)", name):
        level = int(found[1])
        return f"output_blocks.{3 * level + 2}.{2 if level in crossed else 1}.{found[2]}"
    if found := re.match(r"mid_block\.(resnets|attentions)\.(\d)\.(.*)", name):
        middle = 2 * int(found[2]) if found[1] == "resnets" else 1
        return _resnet(f"middle_block.{middle}.{found[3]}", found[1])
    return _renamed(name, UNET_ENDS)


def _resnet(name: str, kind: str) -> str:
    return _renamed(name, UNET_RESNET) if kind == "resnets" else name


def _vae_name(name: str, depth: int) -> str:
    """The decoder's levels are counted from the other end."""
    renamed = _renamed(name, VAE)
    return re.sub(
        r"decoder\.up\.(\d)", lambda found: f"decoder.up.{depth - 1 - int(found[1])}", renamed
    )


def _renamed(name: str, rules: Rules) -> str:
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name
