"""What every operation is handed: the database, the blobs, the limits and who may come in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.limits import DEFAULT, Limits
from service.settings import Server
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.secret_file import read_secret


@dataclass(frozen=True, slots=True)
class Context:
    """``clock`` gives epoch seconds. ``open_access``: who comes without a key is let in as
    administrator, as long as no key has been made; only for a server that listens on loopback."""

    database: Database
    blobs: Blobs
    limits: Limits
    server: Server
    secret: bytes = field(repr=False)
    clock: Callable[[], float] = time.time
    open_access: bool = False

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()


def build(server: Server, *, limits: Limits = DEFAULT, open_access: bool = False) -> Context:
    """The context by the settings, with the database brought up to date. Raises LikenessError."""
    secret = read_secret(server.secret_file)  # makes the home folder, where SQLite's file goes
    database = Database(server.database)
    database.migrate()
    return Context(database, Blobs(server.blobs), limits, server, secret, open_access=open_access)


def context_of(request: Request) -> Context:
    """The context of the application that answers ``request``."""
    context: Context = request.app.state.context
    return context


ContextOf = Annotated[Context, Depends(context_of)]
