"""A network really learns the face: well enough to be seen, from nothing, and leaves nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from adapters.codec import read_rgb, write_png
from adapters.contract import build
from adapters.inr import MAX_BATCH, InrTool
from domain.edits import Edited, EditRequest, Task
from domain.errors import LikenessError

QUICK = {"steps": 4, "size": 40, "points": 512}


def waves(width: int = 90, height: int = 80) -> np.ndarray:
    y, x = np.mgrid[:height, :width].astype(float)
    channels = [127 + 100 * np.sin(x / 9 + k) * np.cos(y / (7 + k)) for k in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def request(pixels: np.ndarray, seed: int = 1, **changes: object) -> EditRequest:
    height, width = pixels.shape[:2]
    return EditRequest(
        "a", Task.RECONSTRUCT, write_png(pixels), width=width, height=height, seed=seed, **changes
    )  # type: ignore[arg-type]


def tool(**settings: object) -> InrTool:
    made = build("inr", settings)
    assert isinstance(made, InrTool)
    return made


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((one.astype(float) - other) ** 2) / 255**2))


@pytest.mark.parametrize(("network", "least"), [("grid", 30.0), ("siren", 30.0)])
def test_a_smooth_picture_is_learned(network: str, least: float) -> None:
    pixels = waves()
    outcome = tool(network=network, steps=120, points=2048).edit(request(pixels))
    assert isinstance(outcome, Edited)
    assert psnr(read_rgb(outcome.picture), pixels) > least
    assert outcome.meta["psnr_db"] > least


def test_more_steps_come_nearer() -> None:
    few, many = (tool(**QUICK | {"steps": n}).edit(request(waves())) for n in (3, 60))
    assert isinstance(few, Edited)
    assert isinstance(many, Edited)
    assert many.meta["psnr_db"] > few.meta["psnr_db"] + 5


def test_a_real_face_is_reconstructed_to_28_db_at_default_settings(data_dir: Path) -> None:
    bgr = cv2.imread(str(data_dir / "faces" / "london" / "neutral" / "001_03.jpg"))
    small = cv2.resize(bgr, (512, 512), interpolation=cv2.INTER_AREA)
    pixels = np.ascontiguousarray(small[..., ::-1])
    outcome = tool().edit(request(pixels, face_box=(150, 142, 216, 299)))
    assert isinstance(outcome, Edited)
    assert outcome.meta["psnr_db"] >= 28


def test_same_seed_same_bytes_other_seed_other_bytes() -> None:
    first, again, other = (tool(**QUICK).edit(request(waves(), seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_the_global_random_state_and_thread_count_are_left_alone() -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    tool(**QUICK, threads=2).edit(request(waves()))
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads


def test_only_the_face_box_changes() -> None:
    pixels = waves()
    outcome = tool(**QUICK).edit(request(pixels, face_box=(20, 10, 40, 50)))
    assert isinstance(outcome, Edited)
    changed = (read_rgb(outcome.picture) != pixels).any(axis=2)
    assert changed[20:50, 30:50].any()
    changed[10:60, 20:60] = False
    assert not changed.any()


def test_the_painted_crop_fades_in_without_a_seam() -> None:
    pixels = np.full((100, 100, 3), 90, dtype=np.uint8)
    pixels[30:70, 30:70] = 200
    outcome = tool(steps=1, size=40).edit(request(pixels, face_box=(10, 10, 80, 80)))
    assert isinstance(outcome, Edited)
    steps = np.abs(read_rgb(outcome.picture)[:, 50].astype(int) - pixels[:, 50]).max(axis=1)
    assert steps[10] < steps[20]


def test_no_tensor_outlives_an_edit() -> None:
    made = tool(**QUICK)

    def alive() -> int:
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    made.edit(request(waves()))
    before = alive()
    for outcome in made.edit_many(request(waves(), seed) for seed in range(6)):
        assert isinstance(outcome, Edited)
        assert alive() == before


def test_at_most_four_pictures_are_held_at_a_time() -> None:
    taken = 0

    def requests() -> Iterator[EditRequest]:
        nonlocal taken
        for seed in range(9):
            taken += 1
            yield request(waves(), seed)

    done = 0
    for _ in tool(**QUICK).edit_many(requests()):
        assert taken - done <= MAX_BATCH
        done += 1
    assert done == 9
    with pytest.raises(LikenessError, match="'batch': Input should be less than or equal to 4"):
        tool(batch=5)
