"""A black picture is a refusal, a fault or a night scene: never silently a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from domain.edits import Edited, Failed, Refused
from tests.adapters.tiny_diffusion import request_for, tiny_pipeline, tool


def changed_weights(folder: Path, part: str, change: dict[str, float]) -> Path:
    """The weights whose name begins so are multiplied by a factor, or filled with a NaN."""
    from safetensors.torch import load_file, save_file

    path = folder / part / "diffusion_pytorch_model.safetensors"
    weights = load_file(path)
    for start, factor in change.items():
        for name in [n for n in weights if n.startswith(start)]:
            weights[name] = weights[name] * factor
    save_file(weights, path, metadata={"format": "pt"})
    return folder


def test_fp16_that_overflows_in_the_vae_is_a_failure_that_names_what_mends_it(
    tmp_path: Path,
) -> None:
    folder = changed_weights(
        tiny_pipeline(tmp_path / "loud"), "vae", {"decoder.mid_block.resnets.0.conv1": 1e6}
    )
    outcome = tool(folder, dtype="fp16").edit(request_for())
    assert isinstance(outcome, Failed)
    assert "not a number in the picture that the VAE decoded" in outcome.reason
    assert "use dtype bf16 or float32, or a VAE made for fp16" in outcome.reason
    for dtype in ("bf16", "float32"):  # as the message promises
        assert isinstance(tool(folder, dtype=dtype).edit(request_for()), Edited)


def test_latents_that_are_not_numbers_fail_and_the_steps_left_are_not_run(tmp_path: Path) -> None:
    folder = changed_weights(
        tiny_pipeline(tmp_path / "poisoned"), "unet", {"conv_out.weight": float("nan")}
    )
    made = tool(folder, steps=9)
    outcome = made.edit(request_for())
    assert isinstance(outcome, Failed)
    assert "not a number in the latents" in outcome.reason
    assert "weights may be damaged" in outcome.reason  # float32 does not overflow


def test_not_a_number_is_found_behind_padding_mask_crop_too(tmp_path: Path) -> None:
    folder = changed_weights(
        tiny_pipeline(tmp_path / "poisoned"), "vae", {"decoder.conv_out.weight": float("nan")}
    )
    outcome = tool(folder, padding_mask_crop=4).edit(request_for())
    assert isinstance(outcome, Failed)
    assert "not a number in the picture" in outcome.reason


def test_a_black_picture_without_a_flag_is_a_failure(tmp_path: Path) -> None:
    folder = changed_weights(
        tiny_pipeline(tmp_path / "dark"),
        "vae",
        {"decoder.conv_out.weight": 0, "decoder.conv_out.bias": 0},
    )
    made = tool(folder)
    made.edit(request_for())
    made._pipe.vae.decoder.conv_out.bias.data.fill_(-1.0)
    outcome = made.edit(request_for())
    assert isinstance(outcome, Failed)
    assert "came back black and no safety checker had flagged it" in outcome.reason
    assert isinstance(tool(folder).edit(request_for()), Edited)
    night = np.zeros((64, 64, 3), dtype=np.uint8)
    assert isinstance(made.edit(request_for(night)), Edited)  # black for black is no fault


def test_the_safety_checkers_black_picture_is_a_refusal_told_by_its_flag_alone(
    tmp_path: Path,
) -> None:
    strict = tiny_pipeline(tmp_path / "strict", checker=-2.0)
    outcome = tool(strict).edit(request_for())
    assert isinstance(outcome, Refused)
    assert (outcome.stage, outcome.code) == ("output", "nsfw_content_detected")
    assert isinstance(tool(strict, safety_checker="off").edit(request_for()), Edited)
    lenient = tiny_pipeline(tmp_path / "lenient", checker=2.0)
    assert isinstance(tool(lenient, safety_checker="on").edit(request_for()), Edited)
