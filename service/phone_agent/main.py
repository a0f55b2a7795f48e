"""Command line of the reference agent."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from collections.abc import Iterator, Sequence

import uvicorn
from starlette.responses import Response

from domain.errors import LikenessError
from preprocess import models
from service import settings
from service.phone_agent.adb_device import AdbDevice
from service.phone_agent.agent import PLAYS, Job, PhoneAgent
from service.phone_agent.pull import Puller
from service.phone_agent.routes import app
from service.phone_agent.sdk import LOW, MODES, Sdk
from service.phone_agent.thermal import thermal

PORT = 8642
SOCKET = "localabstract:likeness"


def parser() -> argparse.ArgumentParser:
    """The agent's options."""
    made = argparse.ArgumentParser(
        prog="agent.py", description="A phone with a beautify SDK, without the phone."
    )
    add = made.add_argument
    add("--port", type=int, default=PORT, help="port on 127.0.0.1 (default %(default)s)")
    add("--token-file", default="", help="file with the token that callers must present")
    add("--mode-default", choices=MODES, default=LOW,
        help="quality mode until a caller sets one; LOW_POWER scales down in silence")  # fmt: skip
    add("--lies", action="store_true", help="work in LOW_POWER and say HIGH_ACCURACY")
    add("--thermal", default="load", metavar="HOW",
        help="load, load:FACTOR, or states in a row such as none,light,severe,critical")  # fmt: skip
    add("--fail", default="", metavar="CODES",
        help="what to do with each edit in turn, such as ok,busy,low_battery; then ok")  # fmt: skip
    add("--pull", default="", metavar="URL", help="ask this host for work instead of listening")
    add("--device", default="reference", help="device id told to the host of --pull")
    add("--adb", type=int, default=None, metavar="PORT",
        help="also answer `adb connect 127.0.0.1:PORT` (0: any free port)")  # fmt: skip
    return made


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the agent until it is interrupted. Returns the exit status: 2 when it cannot start."""
    chosen = parser().parse_args(arguments)
    try:
        models.configure(settings.load().models)
        token = _token(chosen.token_file)
        plays = _plays(chosen.fail)
        made = Sdk(chosen.mode_default, lies=chosen.lies, thermal=thermal(chosen.thermal))
        agent = PhoneAgent(made)
        if chosen.pull:
            return _pull(agent, chosen.pull, token, chosen.device)
        return _serve(agent, chosen.port, token, plays, chosen.adb)
    except (LikenessError, OSError) as error:
        print(f"agent: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0


def _token(path: str) -> str:
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read().strip()


def _plays(text: str) -> Iterator[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name != "ok" and name not in PLAYS]
    if unknown:
        raise LikenessError(f"--fail: no '{unknown[0]}'; known: ok, {', '.join(PLAYS)}")
    return iter(names)


def _serve(agent: PhoneAgent, port: int, token: str, plays: Iterator[str], adb: int | None) -> int:
    def play(job: Job, body: bytes) -> str | Response:
        return next(plays, "ok")

    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    device = None
    if adb is not None:
        device = AdbDevice({f"tcp:{port}": port, f"tcp:{PORT}": port, SOCKET: port}, port=adb)
        print(f"adb connect {device.serial}", flush=True)
    print(f"phone agent at http://127.0.0.1:{port}", flush=True)
    config = uvicorn.Config(app(agent, token, play), log_level="warning", lifespan="off")
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        if device is not None:
            device.close()
        agent.close()
    return 0


def _pull(agent: PhoneAgent, host: str, token: str, device: str) -> int:
    puller = Puller(agent, host, token, device)
    print(f"phone agent asking {host} for work", flush=True)
    worker = threading.Thread(target=_until_told, args=(puller,), daemon=True)
    worker.start()
    try:
        worker.join()
    finally:
        puller.stop()
        puller.close()
        agent.close()
    return 0


def _until_told(puller: Puller) -> None:
    try:
        puller.run()
    except LikenessError as error:
        print(f"agent: {error}", file=sys.stderr)
