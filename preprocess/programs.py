"""Where the exiftool program lies: on the PATH, or in this environment's own folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

EXIFTOOL_REMEDY = (
    "Debian or Ubuntu, as root: apt install libimage-exiftool-perl; "
    "without root, in a clone of this project with node and perl at hand: make setup"
)


def exiftool() -> Path | None:
    """The program, or None. Set-up without root puts it beside the interpreter (``.venv/bin``),
    which is not on the PATH of a user who starts ``.venv/bin/likeness`` directly."""
    found = shutil.which("exiftool") or shutil.which("exiftool", path=str(Path(sys.prefix) / "bin"))
    return Path(found) if found else None
