"""Speed of the instrument as ratios within one run (machines are noisy, ratios less so).

Run by ``make bench``. The last line printed is JSON:
pair_over_floor        all metrics of a pair / (decode both pictures + one MediaPipe run on each)
baseline_over_pair     the straightforward recipe / all metrics of a pair
two_process_scaling    pairs per second of two processes / of one
rss_mb_start, _end     resident memory after a warm-up and after 2,000 more pairs
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
from service import settings  # noqa: E402

settings.pin_threads()
import cv2  # noqa: E402
import dlib  # noqa: E402
import numpy as np  # noqa: E402
import psutil  # noqa: E402
from PIL import Image  # noqa: E402
from skimage.color import rgb2lab  # noqa: E402

from preprocess import models  # noqa: E402
from preprocess.decode import open_picture  # noqa: E402
from preprocess.faces import FaceFinder  # noqa: E402
from service.measuring import Instrument  # noqa: E402
from service.native import keep_freed_memory, silence_native_chatter  # noqa: E402

SIDE = 1024
PAIRS = 24
ROUNDS = 3
MEMORY_PAIRS = int(os.environ.get("LIKENESS_BENCH_PAIRS", "2000"))
SCALING_SECONDS = 12.0
Pair = tuple[Path, Path]


def make_pairs(folder: Path) -> list[Pair]:
    """Portraits at 1024 px (JPEG 95) with a lightly smoothed, re-encoded edit (JPEG 85)."""
    data = settings.load().data or REPO.parent / "shared" / "data"
    london = sorted((data / "faces" / "london" / "neutral").glob("*.jpg"))
    sources = london or sorted((REPO / "samples" / "portraits" / "images").glob("*.jpg"))
    print(f"pictures: {'London set' if london else 'rendered samples'}, {SIDE} px, {PAIRS} pairs")
    pairs = []
    for path in sources[:PAIRS]:
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        scale = SIDE / max(pixels.shape[:2])
        pixels = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        edit = cv2.bilateralFilter(pixels, 7, 30, 5)
        pair = (folder / f"{path.stem}.jpg", folder / f"{path.stem}_edit.jpg")
        cv2.imwrite(str(pair[0]), pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])
        cv2.imwrite(str(pair[1]), edit, [cv2.IMWRITE_JPEG_QUALITY, 85])
        pairs.append(pair)
    return pairs


class Baseline:
    """The recipe most people write first: Pillow, dlib HOG at full size, 68 points, scikit-image
    Lab of the whole picture, OpenCV's Laplacian."""

    def __init__(self) -> None:
        self.detector = dlib.get_frontal_face_detector()
        self.predictor = dlib.shape_predictor(
            str(models.model_path("shape_predictor_68_face_landmarks.dat"))
        )

    def __call__(self, pair: Pair) -> float:
        """Sum of the differences of points, mean a* and Laplacian variance of the two pictures."""
        first, second = (self._one(path) for path in pair)
        return sum(abs(a - b) for a, b in zip(first, second, strict=True))

    def _one(self, path: Path) -> tuple[float, float, float]:
        with Image.open(path) as opened:
            pixels = np.ascontiguousarray(opened.convert("RGB"))
        boxes = self.detector(pixels, 0)
        points = self.predictor(pixels, boxes[0]).num_parts if boxes else 0
        lab = rgb2lab(pixels)
        grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
        return points, float(lab[..., 1].mean()), float(cv2.Laplacian(grey, cv2.CV_64F).var())


def _timed(step: Callable[[Pair], object], pair: Pair) -> float:
    start = time.perf_counter()
    step(pair)
    return time.perf_counter() - start


def _serve_baseline(link: Connection) -> None:
    """The baseline in a process of its own, as a script would run: without our memory settings."""
    cv2.setNumThreads(1)
    models.configure(settings.load().models)
    baseline = Baseline()
    while (pair := link.recv()) is not None:
        link.send(_timed(baseline, pair))


def ratios(pairs: list[Pair]) -> tuple[float, float]:
    """Floor, pair and baseline timed in turn on each pair; medians of the per-pair ratios."""
    finder, instrument = FaceFinder("mediapipe"), Instrument()
    context = multiprocessing.get_context("spawn")
    link, other = context.Pipe()
    server = context.Process(target=_serve_baseline, args=(other,))
    server.start()

    def floor(pair: Pair) -> None:
        for path in pair:
            finder.find(open_picture(path))

    def baseline(pair: Pair) -> float:
        link.send(pair)
        seconds: float = link.recv()
        return seconds

    def row(pair: Pair) -> tuple[float, float, float]:
        whole = _timed(lambda p: instrument.measure_files(*p), pair)
        return _timed(floor, pair), whole, baseline(pair)

    row(pairs[0])
    times = [row(pair) for _ in range(ROUNDS) for pair in pairs]
    link.send(None)
    server.join()
    for name, column in zip(("floor", "pair", "baseline"), zip(*times, strict=True), strict=True):
        print(f"{name:9} median {1000 * statistics.median(column):7.1f} ms")
    over_floor = statistics.median(t[1] / t[0] for t in times)
    over_pair = statistics.median(t[2] / t[1] for t in times)
    return over_floor, over_pair


def _spin(pairs: list[Pair], ready: object, go: object, counted: object) -> None:
    cv2.setNumThreads(1)
    keep_freed_memory()
    silence_native_chatter()
    models.configure(settings.load().models)
    instrument = Instrument()
    instrument.measure_files(*pairs[0])
    ready.release()  # type: ignore[attr-defined]
    go.wait()  # type: ignore[attr-defined]
    end = time.perf_counter() + SCALING_SECONDS
    done = 0
    while time.perf_counter() < end:
        instrument.measure_files(*pairs[done % len(pairs)])
        done += 1
    with counted.get_lock():  # type: ignore[attr-defined]
        counted.value += done  # type: ignore[attr-defined]


def pairs_per_second(pairs: list[Pair], processes: int) -> float:
    """Throughput of so many processes that measure at the same time."""
    context = multiprocessing.get_context("spawn")
    ready, go, counted = context.Semaphore(0), context.Event(), context.Value("i", 0)
    crew = [
        context.Process(target=_spin, args=(pairs, ready, go, counted)) for _ in range(processes)
    ]
    for one in crew:
        one.start()
    for _ in crew:
        ready.acquire()
    go.set()
    for one in crew:
        one.join()
    return counted.value / SCALING_SECONDS


def scaling(pairs: list[Pair]) -> float:
    """Two processes against one, in turn A B A B, the better of each: noise only slows."""
    one = two = 0.0
    for _ in range(2):
        one = max(one, pairs_per_second(pairs, 1))
        two = max(two, pairs_per_second(pairs, 2))
    print(f"one process {one:.1f} pairs/s, two {two:.1f} pairs/s")
    return two / one


def memory(pairs: list[Pair]) -> tuple[float, float]:
    """Resident MB after a tenth of the pairs, and after all of them."""
    instrument, process = Instrument(), psutil.Process()
    start = 0.0
    for i in range(MEMORY_PAIRS + MEMORY_PAIRS // 10):
        instrument.measure_files(*pairs[i % len(pairs)])
        if i + 1 == MEMORY_PAIRS // 10:
            start = process.memory_info().rss / 1e6
    return start, process.memory_info().rss / 1e6


def main() -> None:
    """All four figures."""
    cv2.setNumThreads(1)
    keep_freed_memory()
    silence_native_chatter()
    models.configure(settings.load().models)
    with tempfile.TemporaryDirectory() as folder:
        pairs = make_pairs(Path(folder))
        over_floor, over_pair = ratios(pairs)
        grown = scaling(pairs)
        start, end = memory(pairs)
    answer = {
        "pair_over_floor": round(over_floor, 3),
        "baseline_over_pair": round(over_pair, 2),
        "two_process_scaling": round(grown, 2),
        "rss_mb_start": round(start, 1),
        "rss_mb_end": round(end, 1),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
