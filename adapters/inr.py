"""An implicit neural representation: a coordinate network learns the face and paints it back.

For every picture a small network f(x, y) -> (r, g, b) is trained from scratch on the face crop and
then asked for each of the crop's pixels. Two kinds: "grid", a four-level feature grid (16, 32, 64
and 128 cells a side, 4 features each; a dense form of Mueller et al., "Instant Neural Graphics
Primitives", 2022) in front of a perceptron 64 wide; and "siren" (Sitzmann et al., "Implicit Neural
Representations with Periodic Activation Functions", 2020), three sine layers 128 wide. What the
network cannot hold (pores, stubble, fine lines) is lost: that is the harm to be measured.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field

from adapters.codec import face_area, read_rgb, soft_window, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from domain.edits import Edited, EditOutcome, EditRequest, Task
from domain.pictures import RgbPixels

if TYPE_CHECKING:
    from torch import Generator, Tensor

    Network = Callable[[Tensor], Tensor]
    """(n, 2) places in 0..1, x then y, to (n, 3) colours around 0..1."""

MAX_BATCH = 4
LEVELS = (16, 32, 64, 128)
FEATURES = 4
GRID_WIDTH, SIREN_WIDTH, SIREN_OMEGA = 64, 128, 30.0
RENDER_CHUNK = 65_536
RIM_SHARE = 0.04
"""The painted crop fades into the picture over this share of its sides."""

SPEC = ToolSpec(
    id="inr",
    name="Implicit neural representation (coordinate network)",
    tasks=(Task.RECONSTRUCT,),
    seedable=True,
    deterministic=True,
    licence="part of this program",
)
EXAMPLE: Mapping[str, Any] = {"steps": 3, "size": 48, "points": 1024}


class InrSettings(Settings):
    """``steps`` of Adam with cosine decay, each on ``points`` pixels drawn without repetition.
    ``size`` is the longer side in pixels of the crop that is learned (0: the crop's own).
    ``rate`` is the first learning rate (None: 0.015 for "grid", 0.002 for "siren"). ``batch`` is
    how many pictures ``edit_many`` holds at a time, ``threads`` torch's for the time of an edit.
    """

    network: Literal["grid", "siren"] = "grid"
    steps: Annotated[int, Field(ge=1, le=20_000)] = 80
    points: Annotated[int, Field(ge=64, le=1 << 20)] = 16_384
    size: Annotated[int, Field(ge=0, le=1024)] = 256
    rate: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    batch: Annotated[int, Field(ge=1, le=MAX_BATCH)] = MAX_BATCH
    threads: Annotated[int, Field(ge=1, le=64)] = 1


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting, ImportError without torch."""
    import torch

    return InrTool(read_settings(InrSettings, settings, SPEC.id), torch.__version__)


class InrTool:
    """Trains one network a picture; nothing of it outlives the edit."""

    spec = SPEC

    def __init__(self, settings: InrSettings, torch_version: str) -> None:
        self._settings = settings
        self.model = f"inr {settings.model_dump_json()} torch {torch_version}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The picture with its face box repainted; ``meta.psnr_db`` is the fit's at ``size``."""
        pixels = read_rgb(request.picture)
        rows, columns = face_area(request, pixels)
        crop = pixels[rows, columns]
        seed = (self._settings.seed + request.seed) % (1 << 63)
        try:
            painted, psnr = _repaint(crop, self._settings, seed)
        finally:
            gc.collect()  # autograd graphs hold cycles; the next picture starts from none
        weight = soft_window(crop.shape[0], crop.shape[1], RIM_SHARE)[..., None]
        pixels[rows, columns] = np.rint(crop + weight * (painted - crop))
        return Edited(write_png(pixels), {"psnr_db": round(psnr, 2), "steps": self._settings.steps})

    def edit_many(self, requests: Iterable[EditRequest]) -> Iterator[EditOutcome]:
        """Outcomes in order; at most ``batch`` requests are taken and held at a time."""
        waiting = iter(requests)
        while group := list(islice(waiting, self._settings.batch)):
            outcomes = [self.edit(request) for request in group]
            del group
            yield from outcomes

    def close(self) -> None:
        """Nothing is kept between edits."""
        gc.collect()


def _repaint(crop: RgbPixels, settings: InrSettings, seed: int) -> tuple[np.ndarray, float]:
    """The learned crop at its own size, float 0..255, and the fit's PSNR in dB."""
    import torch

    height, width = crop.shape[:2]
    shrink = min(1.0, settings.size / max(height, width)) if settings.size else 1.0
    small = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    target = (
        crop if small == (width, height) else cv2.resize(crop, small, interpolation=cv2.INTER_AREA)
    )
    with _threads(settings.threads):
        truth = torch.from_numpy(target.reshape(-1, 3).astype(np.float32) / 255)
        places = _places(*small)
        generator = torch.Generator().manual_seed(seed)
        if settings.network == "grid":
            network, parameters = _grid(generator)
        else:
            network, parameters = _siren(generator)
        _fit(network, parameters, places, truth, generator, settings)
        with torch.no_grad():
            error = float((_render(network, places) - truth).square().mean())
            painted = _render(network, _places(width, height)).numpy().reshape(height, width, 3)
    return painted * 255.0, -10 * math.log10(max(error, 1e-12))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """torch's thread count is set for the edit (bits depend on it) and put back afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _places(width: int, height: int) -> Tensor:
    """Pixel centres, row by row, as (n, 2) places in 0..1."""
    import torch

    x = (torch.arange(width, dtype=torch.float32) + 0.5) / width
    y = (torch.arange(height, dtype=torch.float32) + 0.5) / height
    return torch.stack([x.repeat(height), y.repeat_interleave(width)], dim=1)


def _layer(inputs: int, outputs: int, bound: float, generator: Generator) -> tuple[Tensor, Tensor]:
    import torch

    weight = (torch.rand(outputs, inputs, generator=generator) * 2 - 1) * bound
    return weight.requires_grad_(), torch.zeros(outputs, requires_grad=True)


def _grid(generator: Generator) -> tuple[Network, list[Tensor]]:
    import torch
    from torch.nn import functional

    cells = [
        (torch.rand(1, FEATURES, n, n, generator=generator) * 0.2 - 0.1).requires_grad_()
        for n in LEVELS
    ]
    sizes = ((len(LEVELS) * FEATURES, GRID_WIDTH), (GRID_WIDTH, GRID_WIDTH), (GRID_WIDTH, 3))
    layers = [_layer(i, o, math.sqrt(3 / i), generator) for i, o in sizes]

    def network(places: Tensor) -> Tensor:
        at = (places * 2 - 1)[None, None]
        found = [
            functional.grid_sample(cell, at, padding_mode="border", align_corners=False)[0, :, 0]
            for cell in cells
        ]
        values = torch.cat(found).T
        for weight, bias in layers[:-1]:
            values = functional.relu(functional.linear(values, weight, bias))
        return functional.linear(values, *layers[-1])

    return network, [*cells, *(part for layer in layers for part in layer)]


def _siren(generator: Generator) -> tuple[Network, list[Tensor]]:
    import torch
    from torch.nn import functional

    bound = math.sqrt(6 / SIREN_WIDTH) / SIREN_OMEGA
    layers = [
        _layer(2, SIREN_WIDTH, 0.5, generator),
        _layer(SIREN_WIDTH, SIREN_WIDTH, bound, generator),
        _layer(SIREN_WIDTH, SIREN_WIDTH, bound, generator),
        _layer(SIREN_WIDTH, 3, bound, generator),
    ]

    def network(places: Tensor) -> Tensor:
        values = places * 2 - 1
        for weight, bias in layers[:-1]:
            values = torch.sin(SIREN_OMEGA * functional.linear(values, weight, bias))
        return functional.linear(values, *layers[-1]) + 0.5

    return network, [part for layer in layers for part in layer]


def _fit(
    network: Network,
    parameters: list[Tensor],
    places: Tensor,
    truth: Tensor,
    generator: Generator,
    settings: InrSettings,
) -> None:
    import torch

    rate = settings.rate or (0.015 if settings.network == "grid" else 0.002)
    grids = [p for p in parameters if p.dim() == 4]  # sparse gradients bear twice the rate
    rest = [p for p in parameters if p.dim() != 4]
    groups = [{"params": rest, "lr": rate}, *([{"params": grids, "lr": 2 * rate}] if grids else [])]
    adam = torch.optim.Adam(groups, betas=(0.9, 0.99), eps=1e-10)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, settings.steps)
    count = len(places)
    order, taken = torch.randperm(count, generator=generator), 0
    for _ in range(settings.steps):
        if taken + settings.points > count and taken:
            order, taken = torch.randperm(count, generator=generator), 0
        drawn = order[taken : taken + settings.points]
        taken += settings.points
        adam.zero_grad()
        loss = (network(places[drawn]) - truth[drawn]).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        decay.step()


def _render(network: Network, places: Tensor) -> Tensor:
    import torch

    starts = range(0, len(places), RENDER_CHUNK)
    parts = [network(places[start : start + RENDER_CHUNK]) for start in starts]
    return torch.cat(parts).clamp(0, 1)
