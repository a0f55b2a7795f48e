#!/usr/bin/env python
"""Start the reference phone agent: ``python samples/phone_agent/agent.py --help``.

Its code is the package service/phone_agent, which ``likeness fake-server phone`` runs too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from service import settings

settings.pin_threads()

from service.phone_agent.main import run  # noqa: E402 - threads are pinned before numpy starts

if __name__ == "__main__":
    raise SystemExit(run())
