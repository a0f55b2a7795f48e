"""What a pipeline is made of: LoRAs, VAEs, families; and the string that tells one from another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from domain.edits import Failed
from tests.adapters.tiny_diffusion import edited, request_for, tiny_models, tiny_pipeline, tool


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models(tmp_path_factory.mktemp("diffusion"))


def test_a_lora_changes_the_picture_with_its_scale_and_not_at_all_at_0(models: Path) -> None:
    def painted(*scales: float) -> np.ndarray:
        loras = [{"path": str(models / "lora"), "scale": scale} for scale in scales]
        return edited(tool(models / "tiny", loras=loras).edit(request_for()))

    without = painted()
    assert np.array_equal(painted(0.0), without)
    off = [np.abs(painted(scale) - without).mean() for scale in (0.1, 0.3, 1.0)]
    assert 0 < off[0] < off[1] < off[2]
    twice = painted(0.5, 0.5)  # two of half the weight are one of the whole
    assert np.abs(twice - painted(1.0)).max() <= 1


def test_a_lora_that_fits_no_layer_is_a_failure_and_not_a_run_without_it(
    models: Path, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import save_file

    save_file(
        {
            "unet.elsewhere.to_q.lora_A.weight": torch.ones(4, 32),
            "unet.elsewhere.to_q.lora_B.weight": torch.ones(32, 4),
        },
        tmp_path / "foreign.safetensors",
    )
    made = tool(models / "tiny", loras=[{"path": str(tmp_path / "foreign.safetensors")}])
    outcome = made.edit(request_for())
    assert isinstance(outcome, Failed)
    assert "lora" in outcome.reason
    assert outcome.meta["stop"] is True


def test_a_lora_of_another_width_is_a_failure_in_one_line(models: Path) -> None:
    made = tool(models / "xl", loras=[{"path": str(models / "lora")}])
    outcome = made.edit(request_for())
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("the model could not be loaded: ")
    assert "\n" not in outcome.reason


def test_sdxl_paints_too(models: Path) -> None:
    made = tool(models / "xl")
    assert "StableDiffusionXLInpaintPipeline" in made.model
    result = edited(made.edit(request_for()))
    assert np.abs(result[40:] - edited(tool(models / "tiny").edit(request_for()))[40:]).mean() > 1


def test_another_vae_takes_the_place_of_the_models_own(models: Path, tmp_path: Path) -> None:
    other = tiny_pipeline(tmp_path / "other", seed=5)
    made = tool(models / "tiny", vae=str(other / "vae"))
    assert ", vae vae," in made.model
    plain = edited(tool(models / "tiny").edit(request_for()))
    assert np.abs(edited(made.edit(request_for()))[40:] - plain[40:]).mean() > 1


def test_the_model_string_tells_models_apart_that_differ_in_weights_alone(
    models: Path, tmp_path: Path
) -> None:
    other = tiny_pipeline(tmp_path / "tiny", seed=5)
    one, two = tool(models / "tiny").model, tool(other).model
    assert one.split(",")[0] != two.split(",")[0]
    assert one.split(",")[1:] == two.split(",")[1:]
    for part in ("DDIMScheduler", "float32", "cpu", "diffusers 0.", "torch 2."):
        assert part in one
    changed = tool(
        models / "tiny", scheduler="euler", dtype="bf16", loras=[{"path": str(models / "lora")}]
    )
    assert ", euler, bf16, cpu" in changed.model
    assert "lora lora_0 x1 (" in changed.model
