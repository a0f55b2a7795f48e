"""``likeness sweep``: delete what is past its time now, not at the service's next turn."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated

import typer

from service import settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)


def sweep(
    as_json: Annotated[bool, typer.Option("--json", help="Counts by kind as JSON.")] = False,
) -> None:
    """Delete pictures, landmarks and records of the service that are past their time.

    The service and its workers do this every hour by themselves. Each batch that goes leaves a
    signed receipt; figures stay.
    """
    from service.cli.worker import open_database, say
    from service.limits import DEFAULT
    from service.receipts import Signer
    from service.store.blobs import Blobs
    from service.store.retention import sweep as sweep_now
    from service.store.secret_file import read_secret

    server = settings.server()
    sign = Signer(read_secret(server.secret_file)).sign
    stuck: list[str] = []
    database = open_database(server)
    try:
        gone = sweep_now(
            database, Blobs(server.blobs), time.time(), limits=DEFAULT, sign=sign, say=stuck.append
        )
    finally:
        database.close()
    if as_json:
        print(json.dumps(gone, sort_keys=True))
    else:
        for kind in sorted(gone):
            print(f"{kind}: {gone[kind]}")
    for line in stuck:
        say(line)
    if stuck:
        sys.exit(1)
