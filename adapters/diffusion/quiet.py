"""Diffusers, transformers and peft talk to loggers, progress bars and ``warnings``: not while an
audit shows its own progress. Everything is put back as it was found."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

_LIBRARIES = ("transformers.utils.logging", "diffusers.utils.logging")
_LOGGERS = ("transformers", "diffusers", "peft", "huggingface_hub", "accelerate")


@contextmanager
def quiet() -> Iterator[None]:
    """No chatter from the diffusion packages inside the block; their errors are raised, so the lines
    that they log beside them are not needed either."""
    with ExitStack() as undo, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _LOGGERS:
            _hush(logging.getLogger(name), undo)
        for library in _LIBRARIES:  # importing them sets their level anew
            _hide_bars(importlib.import_module(library), undo)
        for name in _LOGGERS:
            _hush(logging.getLogger(name), undo)
        yield


def _hush(logger: logging.Logger, undo: ExitStack) -> None:
    undo.callback(logger.setLevel, logger.level)
    logger.setLevel(logging.CRITICAL)


def _hide_bars(library: Any, undo: ExitStack) -> None:
    if library.is_progress_bar_enabled():
        library.disable_progress_bar()
        undo.callback(library.enable_progress_bar)
