"""The service's own secret: 32 random bytes in a file that nobody else may read.

It signs deletion receipts and page cursors. Losing it makes older signatures unverifiable, nothing
else.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from uuid import uuid4

from domain.errors import LikenessError

LENGTH = 32


def read_secret(path: Path) -> bytes:
    """The secret in ``path``, made on the first call. Raises LikenessError when the file cannot be
    read, holds something else, or is open to other users of this machine."""
    try:
        if not path.exists():
            _make(path)
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(LENGTH + 1)
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) != LENGTH:
        raise LikenessError(f"{path}: not a secret of this service ({LENGTH} bytes were expected)")
    if stat.S_IMODE(mode) & 0o077:
        raise LikenessError(f"{path}: others may read it; mend it with: chmod 600 {path}")
    return data


def private_folder(path: Path) -> None:
    """Make ``path`` for this user alone, unless it is there: faces and keys' hashes go into it.
    Raises LikenessError."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LikenessError(f"{path}: cannot be made: {error.strerror or error}") from None


def _make(path: Path) -> None:
    """Write aside, then link: of several processes that start at once, one wins, and none reads
    half a secret."""
    private_folder(path.parent)
    aside = path.with_name(f"{path.name}.{uuid4().hex}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink()
