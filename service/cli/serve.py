"""``likeness serve``: the service, with workers beside it."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import LikenessError
from service import settings
from service.cli.worker import LEAVE_S, in_time, say
from service.destinations import is_loopback

if TYPE_CHECKING:
    from service.api.context import Context
    from service.engine.children import Children

BACKLOG = 512


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = 8600,
    workers: Annotated[
        int, typer.Option(min=0, max=64, help="Worker processes beside the service.")
    ] = 1,
    open_to_everyone: Annotated[
        bool,
        typer.Option(
            "--open-to-everyone",
            help="Listen to the network without any key: whoever reaches this address may do "
            "everything, deletion included.",
        ),
    ] = False,
) -> None:
    """Serve the REST API and do the runs that are asked for.

    Everything is kept under LIKENESS_HOME unless LIKENESS_DATABASE and LIKENESS_BLOBS say
    otherwise. Without a key it listens to this machine only; make one with `likeness keys add`.
    """
    from service.model_offers import load_model_offers
    from service.offers import load_offers

    server = settings.server()
    load_offers(server.tools)  # a mistake in it is told now, not by the first plan
    load_model_offers(server.tools)
    listening = _listen(host, port)
    with listening:
        context = _context(server, host, open_to_everyone)
        try:
            _run(context, listening, workers)
        finally:
            context.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LikenessError(f"cannot listen on {host} port {port}: {why}") from None


def _context(server: settings.Server, host: str, open_to_everyone: bool) -> Context:
    """The service's context. Raises LikenessError where it would be open to the network unasked."""
    from service.api.context import build
    from service.store.api_keys import ApiKeys

    made: list[Context] = []
    near = is_loopback(host)
    in_time(lambda: made.append(build(server, open_access=near or open_to_everyone)))
    context = made[0]
    if not ApiKeys(context.database).any_made():
        if not near and not open_to_everyone:
            context.close()
            raise LikenessError(
                f"{host} can be reached from other machines and no key has been made: make one with "
                "'likeness keys add NAME', or listen on 127.0.0.1"
            )
        say(
            "no key has been made: open to every program on this machine, and to no other machine"
            if near
            else f"WARNING: OPEN TO EVERYONE who reaches {host}: no key has been made"
        )
    elif open_to_everyone:
        say("keys have been made, so one is needed: --open-to-everyone changes nothing")
    return context


def _run(context: Context, listening: socket.socket, workers: int) -> None:
    import uvicorn

    from service.api import logs
    from service.api.app import create_app
    from service.api.protocol import server_config
    from service.engine.housekeeping import Housekeeper

    logs.configure()
    app = create_app(context)
    host, port = listening.getsockname()[:2]
    serving = uvicorn.Server(server_config(app, host, port))
    app.state.ending = lambda: serving.should_exit  # streams end then: nobody waits for them

    def end(_number: int, _frame: object) -> None:
        # before uvicorn listens to signals; after it has ended by one, it raises that once more
        serving.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    keeper = Housekeeper(
        context.database, context.blobs, context.limits, context.secret,
        allowed=context.server.fetch_allow, say=say,
    )  # fmt: skip
    children = _children(context, workers)
    shown = f"[{host}]" if ":" in host else host
    print(f"likeness: http://{shown}:{port}/v1", flush=True)
    try:
        serving.run(sockets=[listening])
    finally:
        say("ending: runs under way go back to the queue")
        children.close(LEAVE_S)
        keeper.close()


def _children(context: Context, workers: int) -> Children:
    from service.engine.children import Children, command
    from service.engine.local import Machine
    from service.store.jobs import Jobs

    cores = Machine.this(settings.load().models, settings.load().workers).workers
    share = str(max(1, cores // max(1, workers)))
    jobs = Jobs(context.database)

    def full(name: str) -> str:
        return f"{socket.gethostname()[:60]}-{name}"

    def line(name: str) -> list[str]:
        return command("worker", "--name", full(name), "--measuring", share, "--with-parent")

    return Children(workers, line, lambda name: jobs.release_all_of(full(name)), say)
