"""The adapter over a real, tiny, untrained pipeline: masks, sizes, tasks, memory."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from domain.edits import Edited, Failed, Task
from tests.adapters.tiny_diffusion import (
    calls_of,
    edited,
    half_mask,
    portrait,
    request_for,
    tiny_pipeline,
    tool,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_pipeline(tmp_path_factory.mktemp("diffusion") / "tiny")


@pytest.fixture
def inpaint_calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    from diffusers import StableDiffusionInpaintPipeline

    return calls_of(StableDiffusionInpaintPipeline, monkeypatch)


def test_the_pipeline_gets_the_mask_with_white_where_it_shall_edit(
    model: Path, inpaint_calls: list[dict[str, Any]]
) -> None:
    mask = np.zeros((64, 64), dtype=np.uint8)
    mask[40:56, 8:24] = 255
    tool(model).edit(request_for(mask=mask))
    (sent,) = inpaint_calls[0]["mask_image"]
    assert sent.mode == "L"
    assert np.array_equal(np.asarray(sent), mask)
    (picture,) = inpaint_calls[0]["image"]
    assert np.array_equal(np.asarray(picture), portrait())


def test_protected_pixels_are_as_they_were_to_the_last_bit(model: Path) -> None:
    made = tool(model)
    assert made.spec.mask_support == "enforced"
    result = edited(made.edit(request_for()))
    assert np.array_equal(result[:32], portrait()[:32])
    assert np.abs(result[40:] - portrait()[40:]).mean() > 5


def test_the_drift_of_pixels_outside_the_mask_through_the_vae_is_measured_and_kept(
    model: Path,
) -> None:
    raw_tool = tool(model, composite=False)
    assert raw_tool.spec.mask_support == "advisory"
    raw = raw_tool.edit(request_for())
    off = np.abs(edited(raw)[:32] - portrait()[:32])
    assert off.mean() > 1, "the pipeline itself keeps protected pixels: nothing to measure here"
    for outcome in (raw, tool(model).edit(request_for())):
        found = outcome.meta["raw_drift"]
        assert found["mean"] == pytest.approx(off.mean(), abs=1e-3)
        assert found["max"] == off.max()
        assert found["changed_share"] == pytest.approx((off.max(axis=2) > 2).mean(), abs=1e-4)


def test_the_seam_at_the_mask_edge_is_measured_and_softened(model: Path) -> None:
    flat = np.full((64, 64, 3), 200, dtype=np.uint8)
    steps = [
        tool(model, seam=width).edit(request_for(flat)).meta["seam"]["result"]
        for width in (0, 2, 8)
    ]
    assert steps[0] > steps[1] > steps[2]


@pytest.mark.parametrize("size", [(65, 79), (100, 71), (3, 200), (17, 9)])
def test_a_size_that_is_no_multiple_of_8_comes_back_as_it_was_sent(
    model: Path, size: tuple[int, int], inpaint_calls: list[dict[str, Any]]
) -> None:
    width, height = size
    outcome = tool(model, composite=False).edit(request_for(portrait(width, height)))
    assert edited(outcome).shape == (height, width, 3)
    sent = inpaint_calls[0]
    assert sent["width"] % 8 == sent["height"] % 8 == 0
    assert 0 <= sent["width"] - max(width, 57) < 8
    assert (outcome.meta["sent"]["width"], outcome.meta["sent"]["height"]) == (
        sent["width"],
        sent["height"],
    )


def test_the_picture_is_padded_by_its_own_edge_and_never_resampled(
    model: Path, inpaint_calls: list[dict[str, Any]]
) -> None:
    pixels = portrait(66, 70)
    tool(model).edit(request_for(pixels))
    sent = np.asarray(inpaint_calls[0]["image"][0])
    assert np.array_equal(sent[:70, :66], pixels)
    assert (sent[:70, 66:] == pixels[:, -1:]).all()
    assert (sent[70:] == sent[69]).all()


def test_no_side_of_512_is_assumed(model: Path, inpaint_calls: list[dict[str, Any]]) -> None:
    made = tool(model)
    assert made.spec.size.max_side == 128  # this model's own: 16 latent numbers of 8 px
    made.edit(request_for(portrait(72, 64)))
    assert (inpaint_calls[0]["width"], inpaint_calls[0]["height"]) == (72, 64)


def test_out_of_memory_is_a_failure_that_names_what_to_reduce(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    made = tool(model)
    made.edit(request_for())

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(made._pipe.unet, "forward", full)
    outcome = made.edit(request_for())
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert "out of memory on cpu with 1 picture(s) of 64x64" in outcome.reason
    assert "a smaller max_side" in outcome.reason
    monkeypatch.undo()
    assert isinstance(made.edit(request_for()), Edited)


def test_restyling_repaints_the_whole_picture_without_a_mask(
    model: Path, inpaint_calls: list[dict[str, Any]]
) -> None:
    made = tool(model)
    outcome = made.edit(request_for(task=Task.RESTYLE, masked=False, prompt=""))
    assert np.abs(edited(outcome)[:32] - portrait()[:32]).mean() > 5
    assert np.asarray(inpaint_calls[0]["mask_image"][0]).min() == 255
    assert inpaint_calls[0]["strength"] == 0.5
    assert "raw_drift" not in outcome.meta  # nothing was protected
    assert outcome.meta["sent"]["prompt"] == inpaint_calls[0]["prompt"][0] != ""


def test_a_text_to_image_model_repaints_whole_pictures_as_image_to_image_does(
    tmp_path: Path,
) -> None:
    import torch
    from diffusers import StableDiffusionImg2ImgPipeline
    from PIL import Image

    folder = tiny_pipeline(tmp_path / "four", channels=4)
    made = tool(folder, steps=6)
    ours = edited(made.edit(request_for(task=Task.RESTYLE, masked=False)))
    parts = {**made._pipe.components}
    reference = StableDiffusionImg2ImgPipeline(**parts, requires_safety_checker=False)
    reference.set_progress_bar_config(disable=True)
    theirs = reference(
        prompt="a chin",
        image=Image.fromarray(portrait()),
        strength=0.5,
        num_inference_steps=6,
        guidance_scale=7.5,
        generator=torch.Generator().manual_seed(7),
    ).images[0]
    assert np.abs(ours - np.asarray(theirs, dtype=int)).max() <= 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mask": None}, "the request has no mask"),
        ({"mask": half_mask(32, 32)}, "the mask has another size"),
        ({"mask": np.zeros((64, 64), np.uint8)}, "nothing would be edited"),
        ({"picture": b"GIF89a"}, "cannot be read"),
    ],
)
def test_a_request_that_cannot_be_done_fails_with_its_cause(
    model: Path, changes: dict[str, Any], said: str
) -> None:
    from dataclasses import replace

    from domain.masks import Mask, MaskKind

    mask = changes.get("mask")
    if mask is not None:
        changes = {"mask": Mask(mask, MaskKind.FACE)}
    outcome = tool(model).edit(replace(request_for(), **changes))
    assert isinstance(outcome, Failed)
    assert said in outcome.reason


def test_a_prompt_longer_than_the_model_reads_is_cut_in_silence(
    model: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        outcome = tool(model).edit(request_for(prompt="a very long chin " * 40))
    assert isinstance(outcome, Edited)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_closing_frees_the_model_and_later_edits_say_so(model: Path) -> None:
    import weakref

    made = tool(model)
    made.edit(request_for())
    unet = weakref.ref(made._pipe.unet)
    made.close()
    assert unet() is None
    assert made.edit(request_for()) == Failed("the tool was closed")


def test_memory_stays_flat_over_edits(model: Path) -> None:
    made = tool(model, steps=1)
    request = request_for(portrait(128, 128))
    for _ in range(10):
        made.edit(request)
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(30):
        made.edit(request)
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 16_000_000
