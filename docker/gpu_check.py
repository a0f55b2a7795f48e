"""Does Stable Diffusion do on this machine's GPU what it does on its CPU, and how fast?

Paints the sample portraits with a tiny untrained pipeline, and with a real model where one is named,
on the CPU in float32 and on CUDA in float32, bf16 and fp16, one by one and in batches. Prints a table
and, with --json, the same figures as JSON. Exit status: 0 when CUDA was there and every row painted,
1 when a row failed, 2 when there is no CUDA device (the CPU's row is measured all the same).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import psutil  # noqa: E402
import torch  # noqa: E402

from adapters.codec import read_rgb, write_png  # noqa: E402
from adapters.stable_diffusion import DiffusionTool, build  # noqa: E402
from domain.edits import Edited, EditOutcome, EditRequest, Task  # noqa: E402
from domain.masks import Mask, MaskKind  # noqa: E402
from samples.tiny_diffusion import tiny_pipeline  # noqa: E402

BATCH = 4
Figures: TypeAlias = tuple[float | None, float | None, float | None]
HEADINGS = (
    "model device dtype batch img/s peak_MB mean_off worst_off PSNR_dB repeats outcome".split()
)


@dataclass(frozen=True)
class Row:
    """One line of the table. ``peak_mb`` is CUDA's own account, or the process's resident memory on
    the CPU. ``mean_off``, ``worst_off`` (levels of 0..255) and ``psnr_db`` compare the unmixed
    pictures with the CPU's in float32 of the same seeds, or, for a batch, with the same pictures
    painted one by one on that device; equal pictures have no PSNR. ``repeats``: a second run gave the same bytes."""

    model: str
    device: str
    dtype: str
    batch: int
    images_per_s: float | None
    peak_mb: float | None
    mean_off: float | None
    worst_off: float | None
    psnr_db: float | None
    repeats: bool | None
    outcome: str

    def cells(self) -> list[str]:
        """As text; a dash for what there is no figure for."""
        return ["-" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v)
                for v in asdict(self).values()]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and return the exit status."""
    args = _arguments(arguments)
    cuda = torch.cuda.is_available()
    devices = [("cpu", "float32")]
    if cuda:
        devices += [("cuda", dtype) for dtype in ("float32", "bf16", "fp16")]
    print(_machine(cuda))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="likeness-gpu-") as folder:
        tiny = {"model": str(tiny_pipeline(Path(folder) / "tiny")), "max_side": 8192}
        requests = _requests(128, args.pictures)
        rows += _check("tiny", tiny | _common(args), requests, devices, len(requests))
    if args.model:
        real = {"model": args.model, "config": args.config} | _common(args)
        requests = _requests(args.size, args.real_pictures)
        rows += _check(Path(args.model).name, real, requests, devices, args.cpu_pictures)
    _print_table(rows)
    if args.json:
        found = {"machine": _machine(cuda), "rows": [asdict(row) for row in rows]}
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if any(row.outcome != "edited" for row in rows):
        return 1
    if not cuda:
        print("no CUDA device here: only the CPU was measured, nothing was compared with a GPU")
    return 0 if cuda else 2


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_check", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="", help="a real model: folder, single file or hub id")
    parser.add_argument("--config", default="", help="the folder that describes a single file")
    parser.add_argument("--size", type=int, default=512, help="side in px for the real model")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="for the CPU's rows")
    parser.add_argument("--pictures", type=int, default=8, help="for the tiny model")
    parser.add_argument("--real-pictures", type=int, default=BATCH, help="for the real model")
    parser.add_argument("--cpu-pictures", type=int, default=1, help="of these, done by the CPU too")
    parser.add_argument("--json", default="", help="write the figures to this file")
    return parser.parse_args(given)


def _common(args: argparse.Namespace) -> dict[str, Any]:
    # unmixed pictures: what is put back after the painting would hide half of what is compared
    return {"steps": args.steps, "threads": args.threads, "composite": False}


def _machine(cuda: bool) -> str:
    name = torch.cuda.get_device_name(0) if cuda else "none"
    return f"torch {torch.__version__}, CUDA {torch.version.cuda or 'not built in'}, GPU: {name}"


def _check(
    name: str,
    settings: dict[str, Any],
    requests: Sequence[EditRequest],
    devices: Sequence[tuple[str, str]],
    on_cpu: int,
) -> list[Row]:
    """The rows of one model. The CPU comes first and paints ``on_cpu`` of the pictures (and no
    batch when that is not all of them); the others are held against these."""
    reference: list[np.ndarray] | None = None
    rows = []
    for device, dtype in devices:
        tool = build(settings | {"device": device, "dtype": dtype, "batch_size": BATCH})
        assert isinstance(tool, DiffusionTool)
        some = requests[:on_cpu] if device == "cpu" else requests
        row, pictures = _single(name, tool, (device, dtype), some, reference)
        rows.append(row)
        reference = reference or pictures
        if pictures is not None and len(some) == len(requests):
            rows.append(_batched(name, tool, (device, dtype), some, pictures))
        tool.close()
    return rows


def _single(
    name: str,
    tool: DiffusionTool,
    where: tuple[str, str],
    requests: Sequence[EditRequest],
    reference: list[np.ndarray] | None,
) -> tuple[Row, list[np.ndarray] | None]:
    warm = tool.edit(requests[0])
    outcomes, seconds, peak = _timed(where[0], lambda: [tool.edit(r) for r in requests])
    pictures = _pictures(outcomes)
    if pictures is None:
        return _failed(name, where, 1, outcomes), None
    figures: Figures = _agreement(pictures, reference) if reference else (None, None, None)
    rate = len(requests) / seconds
    return Row(name, *where, 1, rate, peak, *figures, warm == outcomes[0], "edited"), pictures


def _batched(
    name: str,
    tool: DiffusionTool,
    where: tuple[str, str],
    requests: Sequence[EditRequest],
    alone: list[np.ndarray],
) -> Row:
    tool.edit_batch(requests[:BATCH])
    outcomes, seconds, peak = _timed(where[0], lambda: tool.edit_batch(requests))
    pictures = _pictures(outcomes)
    if pictures is None:
        return _failed(name, where, BATCH, outcomes)
    figures = _agreement(pictures, alone)
    return Row(name, *where, BATCH, len(requests) / seconds, peak, *figures, None, "edited")


def _failed(name: str, where: tuple[str, str], batch: int, outcomes: Sequence[EditOutcome]) -> Row:
    first = next(o for o in outcomes if not isinstance(o, Edited))
    said = getattr(first, "reason", "") or getattr(first, "code", "")
    return Row(name, *where, batch, None, None, None, None, None, None, f"failed: {said}")


def _timed(device: str, work: Any) -> tuple[list[EditOutcome], float, float]:
    """What ``work`` gives, its wall-clock seconds and the peak memory in MB (CPU: what is resident
    afterwards)."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    start = time.perf_counter()
    done = work()
    if device == "cuda":
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
    else:
        peak = psutil.Process().memory_info().rss
    return done, time.perf_counter() - start, peak / 1e6


def _pictures(outcomes: Sequence[EditOutcome]) -> list[np.ndarray] | None:
    found = [read_rgb(o.picture).astype(float) for o in outcomes if isinstance(o, Edited)]
    return found if len(found) == len(outcomes) else None


def _agreement(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> Figures:
    """Mean and worst absolute difference in levels, and PSNR in dB (None for equal pictures), over
    the pictures that both have."""
    off = np.concatenate([np.abs(a - b).ravel() for a, b in zip(ours, theirs, strict=False)])
    square = float((off**2).mean())
    psnr = None if square == 0 else 10 * math.log10(255**2 / square)
    return float(off.mean()), float(off.max()), psnr


def _requests(side: int, count: int) -> list[EditRequest]:
    """The sample portraits, ``side`` px square, to be repainted below the middle."""
    files = sorted((ROOT / "samples" / "portraits" / "images").glob("*.jpg"))
    mask = np.zeros((side, side), dtype=np.uint8)
    mask[side // 2 :] = 255
    made = []
    for number in range(count):
        pixels = read_rgb(files[number % len(files)].read_bytes())
        width = pixels.shape[1]
        square = cv2.resize(pixels[:width], (side, side), interpolation=cv2.INTER_AREA)
        picture = write_png(np.asarray(square, dtype=np.uint8))
        made.append(EditRequest(
            f"picture {number}", Task.INPAINT_LOWER_FACE, picture, width=side, height=side,
            seed=number, mask=Mask(mask, MaskKind.LOWER_FACE),
        ))  # fmt: skip
    return made


def _print_table(rows: Sequence[Row]) -> None:
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
