"""Keeps native libraries from talking on the user's terminal."""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEEP = 256 * 1024 * 1024


def keep_freed_memory() -> None:
    """Let the C library keep freed megabytes for the next picture (glibc only).

    By default each array of a picture's size is mapped anew and zeroed page by page by the kernel,
    which costs a tenth of a pair's time. Resident memory stays at its peak instead of swinging to it.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEEP)
        mallopt(_M_TRIM_THRESHOLD, _KEEP)


def silence_native_chatter() -> None:
    """Send file descriptor 2 to nowhere and keep Python's own stderr on the terminal.

    MediaPipe and TensorFlow Lite print start-up lines straight to the descriptor, past every
    setting of theirs, into the progress bars and one-line errors that belong there.
    """
    try:
        kept = os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    except OSError:  # no stderr at all (a daemon): nothing to keep quiet
        return
    sys.stderr.flush()
    sys.stderr = os.fdopen(kept, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
