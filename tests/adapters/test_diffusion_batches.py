"""Seeds, batches, threads: what makes a painted picture the same again, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.edits import Edited, EditRequest, Failed, Refused, Task
from tests.adapters.tiny_diffusion import (
    calls_of,
    edited,
    portrait,
    request_for,
    tiny_pipeline,
    tool,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_pipeline(tmp_path_factory.mktemp("diffusion") / "tiny")


def four() -> list[EditRequest]:
    return [request_for(seed=seed, prompt=f"chin {seed}") for seed in (7, 8, 2**63 + 11, -1)]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(model: Path) -> None:
    first, again, other = (tool(model).edit(request_for(seed=seed)) for seed in (7, 7, 8))
    assert first == again
    assert np.abs(edited(first)[40:] - edited(other)[40:]).mean() > 5


@pytest.mark.parametrize("scheduler", ["as_loaded", "euler_ancestral"])
def test_the_same_seed_gives_the_same_noise_in_a_batch_of_any_size(
    model: Path, scheduler: str
) -> None:
    alone = [edited(tool(model, scheduler=scheduler).edit(request)) for request in four()]
    for size in (2, 3, 4):
        together = tool(model, scheduler=scheduler, batch_size=size).edit_batch(four())
        for one, other in zip(alone, map(edited, together), strict=True):
            off = np.abs(one - other)
            # sums over a batch are rounded in another order: a level at most, in a few pixels
            assert off.max() <= 1
            assert (off > 0).mean() < 0.002


def test_one_generator_for_each_picture_is_what_the_pipeline_gets(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers import StableDiffusionInpaintPipeline

    calls = calls_of(StableDiffusionInpaintPipeline, monkeypatch)
    tool(model, batch_size=4).edit_batch(four())
    generators = calls[0]["generator"]
    assert [g.device.type for g in generators] == ["cpu"] * 4
    assert [g.initial_seed() for g in generators] == [r.seed % 2**32 for r in four()]


def test_a_batch_of_one_has_the_bits_of_a_single_edit(model: Path) -> None:
    requests = four()
    assert tool(model).edit_batch(requests) == [tool(model).edit(request) for request in requests]


def test_a_batch_answers_in_order_though_sizes_and_faults_are_mixed(model: Path) -> None:
    requests = [
        request_for(seed=1),
        request_for(picture=b"no picture"),
        request_for(portrait(72, 64), seed=2),
        request_for(seed=3),
        request_for(seed=4),
        request_for(seed=5, task=Task.RETOUCH, masked=False),
    ]
    made = tool(model, batch_size=2)
    outcomes = made.edit_batch(requests)
    assert [type(outcome) for outcome in outcomes] == [Edited, Failed, *[Edited] * 4]
    assert edited(outcomes[2]).shape == (64, 72, 3)
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, Edited):
            assert np.abs(edited(outcome) - edited(made.edit(request))).max() <= 1


def test_one_refusal_in_a_batch_is_that_pictures_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tool(tiny_pipeline(tmp_path / "checked", checker=2.0), batch_size=4)
    made.edit(request_for())
    real = made._pipe.safety_checker.forward

    def second_is_flagged(**named: Any) -> Any:
        pictures, _ = real(**named)
        pictures[1] = 0
        return pictures, [False, True, False, False]

    monkeypatch.setattr(made._pipe.safety_checker, "forward", second_is_flagged)
    outcomes = made.edit_batch(four())
    assert [type(outcome) for outcome in outcomes] == [Edited, Refused, Edited, Edited]


def test_a_fault_in_a_batch_is_the_end_of_all_that_were_in_it_and_of_no_other(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    made = tool(model, batch_size=2)
    made.edit(request_for())
    real, calls = made._pipe.unet.forward, []

    def full_at_first(*more: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*more, **named)

    monkeypatch.setattr(made._pipe.unet, "forward", full_at_first)
    outcomes = made.edit_batch(four())
    assert [type(outcome) for outcome in outcomes] == [Failed, Failed, Edited, Edited]
    assert isinstance(outcomes[0], Failed)
    assert "a smaller batch_size" in outcomes[0].reason


def test_padding_mask_crop_paints_one_by_one_and_repeats(model: Path) -> None:
    mask = np.zeros((64, 64), dtype=np.uint8)
    mask[24:40, 24:40] = 255
    made = tool(model, padding_mask_crop=4, batch_size=4)
    outcomes = made.edit_batch([request_for(mask=mask, seed=seed) for seed in (7, 8)])
    assert outcomes[0] == made.edit(request_for(mask=mask))
    plain = edited(tool(model).edit(request_for(mask=mask)))
    close_up = edited(outcomes[0])
    assert np.abs(close_up - plain)[mask > 0].mean() > 1
    assert np.array_equal(close_up[mask == 0], plain[mask == 0])


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_thread_count_gives_the_same_bits_and_torchs_own_is_put_back(
    model: Path, threads: int
) -> None:
    import torch

    before = (torch.get_num_threads(), torch.get_float32_matmul_precision())
    first, again = (
        tool(model, steps=1, threads=threads, matmul="high").edit(request_for()) for _ in range(2)
    )
    assert first == again
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == before


def test_torchs_global_randomness_is_neither_used_nor_moved(model: Path) -> None:
    import torch

    made = tool(model, scheduler="euler_ancestral")
    torch.manual_seed(1)
    first, state = made.edit(request_for()), torch.get_rng_state()
    assert torch.equal(state, torch.manual_seed(1).get_state())
    torch.manual_seed(2)
    assert made.edit(request_for()) == first


@pytest.mark.parametrize(
    "settings",
    [{"scheduler": name} for name in ("ddim", "dpmpp_2m", "euler", "heun", "lms", "pndm", "unipc")]
    + [{"dtype": "fp16"}, {"dtype": "bf16"}]
    + [{"attention_slicing": "max"}, {"vae_tiling": True}, {"vae_slicing": True}]
    + [{"guidance": 1.0}, {"strength": 0.5}, {"negative_prompt": "a beard"}],
    ids=str,
)
def test_each_setting_reaches_the_picture_or_leaves_it_as_it_is(
    model: Path, settings: dict[str, Any]
) -> None:
    plain = edited(tool(model, steps=4).edit(request_for()))
    changed = edited(tool(model, steps=4, **settings).edit(request_for()))
    off = np.abs(plain - changed)[40:].max()
    if settings.keys() & {"attention_slicing", "vae_tiling", "vae_slicing"}:
        assert off <= 1  # they trade time for memory, nothing else
    elif settings == {"scheduler": "ddim"}:
        assert off == 0  # the model's own
    else:
        assert off > 0
