"""A tool for the soak: hands the picture back as it came, and writes each call into a log.

``python logged_copy.py INPUT OUTPUT LOG SECONDS``. A line "begin HASH" when it starts and "end HASH"
once OUTPUT is whole; HASH is the SHA-256 of the picture, by which the ledger knows it too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path


def note(log: str, line: str) -> None:
    """One line, whole even when several programs write at once."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def main(source: str, target: str, log: str, seconds: str) -> None:
    """Copy ``source`` to ``target``."""
    digest = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    note(log, f"begin {digest}")
    time.sleep(float(seconds))
    shutil.copyfile(source, target)
    note(log, f"end {digest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
