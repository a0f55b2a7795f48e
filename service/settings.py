"""The only reader of the environment. Everything else is handed what it needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """``models`` is the folder of model files; ``data`` the folder of shared test data;
    ``workers`` the number of measuring processes (None: one a core)."""

    models: Path
    data: Path | None
    workers: int | None


def load() -> Settings:
    """Read LIKENESS_MODELS, LIKENESS_DATA and LIKENESS_WORKERS; unset means the default."""
    data = os.environ.get("LIKENESS_DATA")
    workers = os.environ.get("LIKENESS_WORKERS", "")
    models = os.environ.get("LIKENESS_MODELS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Settings(
        models=Path(models) if models else cache / "likeness" / "models",
        data=Path(data) if data else None,
        workers=int(workers) if workers.isdigit() and int(workers) > 0 else None,
    )


def variable(name: str) -> str | None:
    """One variable of the environment by its name: where a plan or a tool says that its key lies."""
    return os.environ.get(name)


def pin_threads() -> None:
    """One thread a process, set before numpy, torch or OpenCV start theirs.

    Several processes with several threads each on few cores run up to a hundred times slower,
    and thread counts change the last bits of sums, so results would not repeat.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    # mediapipe and TensorFlow Lite write start-up chatter to stderr, where progress bars live
    os.environ.setdefault("GLOG_minloglevel", "3")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
