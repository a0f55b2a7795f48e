"""``likeness fake-server``: a maker's protocol on loopback, for trying an audit without an account."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

import adapters.contract
from domain.errors import LikenessError
from service.cli.escape import printable
from service.fake_servers.contract import KEY, FakeServer, provider, providers, start
from service.fake_servers.desk import COMMON, RefusalRule

REMEMBERED = 50
"""Requests kept in memory: each holds a picture."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fake-server")(fake_server)


def fake_server(
    name: Annotated[str, typer.Argument(help="Which maker; see --list.")] = "",
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8787,
    key: Annotated[str, typer.Option(help="The key that clients must present.")] = KEY,
    portraits: Annotated[
        Path | None, typer.Option(help="Manifest whose portraits --refuse speaks of.")
    ] = None,
    refuse: Annotated[
        list[str] | None,
        typer.Option(help="Refuse a share of a group: gender=female:0.4. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which portraits of a group are refused.")] = 0,
    play: Annotated[str, typer.Option(help="Behaviours for the first calls: 429,500,ok.")] = "",
    slow_s: Annotated[float, typer.Option("--slow-s", min=0, help="How late 'slow' is.")] = 5.0,
    listed: Annotated[
        bool, typer.Option("--list", help="The makers and what each can play.")
    ] = False,
) -> None:
    """Answer as a maker's server would, on 127.0.0.1, until Ctrl-C. Edits are pretended."""
    if listed:
        _list()
        return
    if not name:
        raise LikenessError(f"which maker? known: {', '.join(providers())}")
    provider(name)  # before any portrait is read
    rule = _rule(portraits, refuse or [], seed)
    with start(name, key=key, port=port, refuse=rule, slow_s=slow_s, keep=REMEMBERED) as server:
        server.next(*(word for part in play.split(",") if (word := part.strip())))
        _announce(server)
        wait_for_the_end()
    print("ended")


def wait_for_the_end() -> None:
    """Return at Ctrl-C."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def _rule(manifest: Path | None, planted: list[str], seed: int) -> RefusalRule | None:
    if not planted:
        return None
    if manifest is None:
        raise LikenessError("--refuse needs --portraits, the manifest that names the groups")
    from service.fake_servers.refusing import Planted, PlantedRefusals

    rule = PlantedRefusals.from_manifest(manifest, [Planted.parse(p) for p in planted], seed)
    print(f"{len(rule.refused)} of {len(rule.album)} portraits will be refused")
    return rule


def _list() -> None:
    for module in providers().values():
        print(f"{module.NAME}: {module.DOES}")
        for word, what in module.BEHAVIOURS.items():
            print(f"  {word}: {what}")
    print("all of them:")
    for word, what in COMMON.items():
        print(f"  {word}: {what}")


def _announce(server: FakeServer) -> None:
    print(f"fake {server.name} at {server.url}\nkey: {printable(server.key)}")
    for spec, module in adapters.contract.discover().values():
        if getattr(module, "FAKE", "") == server.name:
            print(_snippet(spec, module, server))
    print("Ctrl-C ends it.", flush=True)


def _snippet(spec: adapters.contract.ToolSpec, module: Any, server: FakeServer) -> str:
    """Lines of a plan (flow style is JSON) and of a shell that lead the tool here."""
    settings = {**getattr(module, "EXAMPLE", {}), "base_url": server.url}
    lines = ["in a plan:", "  tools:", f"    - id: {spec.id}"]
    if spec.key_env is not None and server.key:
        settings["key_env"] = "FAKE_KEY"
        lines.insert(0, "in the shell: export FAKE_KEY=<the key above>")
    return "\n".join([*lines, f"      settings: {json.dumps(settings, default=str)}"])
