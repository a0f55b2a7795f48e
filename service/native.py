"""Keeps native libraries from talking on the user's terminal."""

from __future__ import annotations

import os
import sys


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
