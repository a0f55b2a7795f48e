"""Decoders that warn by Python's warnings, kept from turning a reader's filter into a failure."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Python warnings within the block.

    The filters are global to the process and saved and restored by value, so two threads inside at
    once could leave them silenced for good: hence the lock.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
