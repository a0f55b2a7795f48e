"""The landmark engine lets go of its native half without ever waiting for a lock."""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import thread
from pathlib import Path

import mediapipe  # noqa: F401 - its first import keeps the frames alive that did it
import numpy as np

from preprocess import engines_mediapipe
from preprocess.engines_mediapipe import MediapipeEngine

GREY = np.full((320, 320, 3), 128, np.uint8)


def test_a_collection_inside_a_thread_pools_lock_does_not_wait_for_that_lock() -> None:
    engine = MediapipeEngine()
    engine.detect(GREY)
    with thread._global_shutdown_lock:  # held whenever work is being submitted
        del engine
        gc.collect()
    assert engines_mediapipe._ABANDONED


def test_what_was_abandoned_is_closed_when_the_next_one_is_built() -> None:
    engine = MediapipeEngine()
    engine.detect(GREY)
    del engine
    gc.collect()
    other = MediapipeEngine()
    other.detect(GREY)
    assert not engines_mediapipe._ABANDONED
    other.close()


def test_a_process_that_never_closed_its_engine_ends_well() -> None:
    code = (
        "import numpy as np; from preprocess.engines_mediapipe import MediapipeEngine; "
        "MediapipeEngine().detect(np.full((320, 320, 3), 128, np.uint8)); kept = MediapipeEngine(); "
        "kept.detect(np.full((320, 320, 3), 128, np.uint8))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).resolve().parents[2],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
