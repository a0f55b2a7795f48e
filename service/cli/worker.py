"""``likeness worker``: does the runs that wait in the service's queue."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import StoreUnavailable
from service import secrets, settings

if TYPE_CHECKING:
    from service.engine.worker import Bench
    from service.store.database import Database

PATIENCE_S = 60.0
"""How long a database may take to appear when a process starts before it."""
LEAVE_S = 20.0
"""From the end of whoever started a worker to its own."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(
    measuring: Annotated[
        int | None, typer.Option(min=1, max=64, help="Measuring processes. Default: one a core.")
    ] = None,
    until_idle: Annotated[bool, typer.Option(help="End once no run waits.")] = False,
    name: Annotated[str | None, typer.Option(hidden=True)] = None,
    with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Do the runs that wait in the queue of the service, one at a time, until told to end.

    Works against the database and the pictures that LIKENESS_DATABASE and LIKENESS_BLOBS name, on
    this machine or another: start as many as you have machines. `likeness serve` starts its own.
    Ctrl-C or SIGTERM ends the calls under way and gives the run back; a second one ends at once.
    """
    # the statistics and the engines take seconds to load, which only this command should pay
    from service.engine.children import end_with_parent
    from service.engine.worker import Worker, worker_name

    bench = make_bench(measuring)
    name = name or worker_name()
    working = Worker(bench, name, lambda text: say(f"worker {name}: {text}"))
    on_signals(working.stop)
    if with_parent:
        end_with_parent(working.stop, LEAVE_S)
    say(f"worker {name}: ready")
    try:
        working.run(until_idle)
    finally:
        bench.database.close()


def make_bench(measuring: int | None) -> Bench:
    """What a worker needs, by the settings. Raises LikenessError."""
    from service.engine.local import Machine
    from service.engine.worker import Bench
    from service.limits import DEFAULT
    from service.model_offers import load_model_offers
    from service.offers import load_offers
    from service.store.blobs import Blobs

    chosen, server = settings.load(), settings.server()
    offers, models = load_offers(server.tools), load_model_offers(server.tools)
    database = open_database(server)
    machine = Machine.this(chosen.models, measuring or chosen.workers)
    work, blobs = server.home / "work", Blobs(server.blobs)
    return Bench(database, blobs, offers, DEFAULT, machine, work, models)


def open_database(server: settings.Server) -> Database:
    """The database with its tables up to date; one that is not there yet is waited for. Raises
    LikenessError."""
    from service.store.database import Database
    from service.store.secret_file import private_folder

    private_folder(server.home)
    database = Database(server.database)
    in_time(database.migrate)
    return database


def in_time(step: Callable[[], object], sleep: Callable[[float], object] = time.sleep) -> None:
    """Do ``step``, again each second for a minute while its store is unavailable. Raises what it
    raises then."""
    for left in range(int(PATIENCE_S), -1, -1):
        try:
            step()
            return
        except StoreUnavailable as error:
            if left == 0:
                raise
            if left == PATIENCE_S:
                say(f"waiting for the store: {error}")
            sleep(1.0)


def on_signals(stop: Callable[[], object]) -> None:
    """``stop`` on the first SIGTERM or SIGINT; the second ends the process at once."""

    def once(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, once)


def say(text: str) -> None:
    """A line of the log, on stderr, without keys. A log that cannot be written, on a full disk or
    a pipe that nobody reads, is no reason for work to end."""
    with contextlib.suppress(OSError, ValueError):
        print(secrets.hide_keys(text), file=sys.stderr, flush=True)
